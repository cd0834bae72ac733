"""Rows for verbs: streams as the command line describes them, with progress and fair blame."""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.cli.failures import CallError
from polyplane.cli.output.screen import Screen
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats.which import settled_by
from polyplane.data.reading import Stream, stream
from polyplane.data.sample import unlike_classes
from polyplane.data.table.layout import Layout

__all__ = [
    "base_of",
    "blamed_on_the_call",
    "check_labels",
    "chunks_of",
    "open_rows",
    "tell_of_bad_rows",
]

LOOKED_AT = 1_000  # rows, to see where indices start
MAX_LABELS_SORTED = 100_000  # of the first rows; more are not sorted without need


@contextlib.contextmanager
def blamed_on_the_call() -> Iterator[None]:
    """Raise readers' complaints about options as `CallError`; a `DataError` stays as it is."""
    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from error


def open_rows(
    data: str | Sequence[str],
    reading: dict[str, Any],
    *,
    layout: Layout | None = None,
    base: Any = None,
    **others: Any,
) -> Stream:
    """The rows of files, as options of reading say, and for a model as it knows them.

    Of tables its layout says which columns; of LIBSVM text `base` where indices start, which a
    file that does not use the first feature would not tell.
    """
    with blamed_on_the_call():
        rows = stream(
            list(data) if not isinstance(data, str) else data,
            layout=layout,
            **others,
            **reading,
        )
    if base == 0 and reading.get("base") is None:
        rows.settled = {"base": base}
    return rows


def base_of(rows: Stream) -> int | None:
    """0 where the first rows of LIBSVM text have an index 0; None where that is open."""
    if rows.is_once:
        return None
    base = settled_by(rows.sources[0], LOOKED_AT, rows.options).get("base")
    return 0 if base == 0 else None


def chunks_of(
    rows: Stream, screen: Screen, title: str, one_pass: Generator[Chunk, None, None] | None = None
) -> Generator[Chunk, None, None]:
    """One pass with its progress; in the end rows that were left out are counted."""
    with (
        blamed_on_the_call(),
        screen.progress(title) as advance,
        contextlib.closing(one_pass or iter(rows)) as chunks,
    ):
        for chunk in chunks:
            yield chunk
            advance(chunk.X.shape[0])
    tell_of_bad_rows(rows, screen)


def tell_of_bad_rows(rows: Stream, screen: Screen) -> None:
    """Say how many rows were left out in the latest pass."""
    n_bad, n_left_out = rows.bad.n_skipped, rows.layout.n_left_out
    if n_bad:
        first = f"; the first: {rows.bad.errors[0]}" if rows.bad.errors else ""
        screen.note(f"{n_bad:,} rows could not be read and were left out{first}.")
    if n_left_out:
        screen.note(f"{n_left_out:,} rows without a value were left out.")


def check_labels(y: Array, source: str) -> None:
    """Rows to learn from have labels, of two classes at least and not one for each row."""
    if not y.size:
        raise DataError("has no labels, which this needs: name their column with --label", source)
    labels = np.unique(y[:MAX_LABELS_SORTED])
    if labels.size < 2:
        labels = np.unique(y)
    if labels.size < 2:
        raise DataError(f"has only the label {labels.tolist()[0]!r}, expected two classes", source)
    what = unlike_classes(labels, min(y.size, MAX_LABELS_SORTED))
    if what:
        found = "numbers" if labels.dtype.kind in "iuf" else "texts"
        raise DataError(
            f"has {labels.size:,} different {found} for labels, which looks like {what}; expected "
            "classes: name the column of the label with --label",
            source,
        )
