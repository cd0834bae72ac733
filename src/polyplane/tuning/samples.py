"""Rows to explore, from matrices, tables and files: in random order, so that any first of them are
a fair sample, with what they were called and where they stood."""

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import joined, widened
from polyplane.data.chunks import Chunk
from polyplane.data.reading import CHUNK_ROWS, Stream, stream
from polyplane.data.sample import sample, unlike_classes
from polyplane.data.table.frames import frame_of, has_texts, is_frame, rows_of
from polyplane.data.table.kinds import DATE
from polyplane.data.table.layout import Layout
from polyplane.report.columns import Columns, Table, is_sparse
from polyplane.tuning.budget import Budget
from polyplane.tuning.code import FRAME, GAPS, MATRIX

__all__ = [
    "Sample",
    "chunks_to_sample",
    "columns_of",
    "is_table",
    "sample_of_file",
    "sample_of_rows",
    "sample_of_stream",
]

MAX_SAMPLE_ROWS = 200_000
MAX_SAMPLE_CELLS = 1 << 27  # of dense rows, half a gigabyte
MAX_SHARE_OF_READING = 0.15  # of the seconds; a file that takes longer is known by its first rows
SMALL_FILE_BYTES = 1_000_000  # bytes of a file that is read at once, perhaps compressed
MIN_READING_SECONDS = 4.0  # seconds of reading, once there are as many rows as a sample may have
MAX_NAME_LETTERS = 200  # letters of a name
MISSING = "y has missing values: leave such rows out."


@dataclass(frozen=True)
class Sample:
    """Rows as algorithms see them, in random order."""

    X: Any  # dense float32, or CSR
    y: Array
    places: Array  # where each row stood among all that were met
    columns: Columns
    layout: Layout | None = None  # where X was a table
    n_met: int = 0  # rows from which it was drawn
    is_all: bool = True  # whether that is all there are
    title: str = "data"
    form: str = MATRIX  # of X as it came
    reading: tuple[Any, dict[str, Any]] | None = None  # of files that can be read again

    @property
    def n_rows(self) -> int:
        """Rows in memory."""
        return int(self.y.size)

    def without(self, names: Sequence[str]) -> "Sample":
        """Return the sample without some columns."""
        if not names:
            return self
        places = [k for k, name in enumerate(self.columns.names) if name in names]
        columns, left = self.columns.without(places)
        return replace(self, X=_as_floats(self.X[:, left]), columns=columns)

    @property
    def table(self) -> Table:
        """The rows as reports look at them."""
        return Table(self.X, self.y, self.columns)


def sample_of_rows(X: Any, y: Any, seed: int) -> Sample:
    """Return a sample of a matrix or of a table."""
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    labels = _labels_of(y)
    n_rows = frame_of(X).n_rows if is_table(X) else X.shape[0]
    if labels.size != n_rows:
        raise ValueError(f"X has {n_rows:,} rows and y {labels.size:,}: they must go together.")
    chosen = _mixed_order(labels, seed)[: _most_rows(X)]
    layout = None
    if is_table(X):
        layout = Layout(grows=False)
        frame = frame_of(X)
        take = pa.array(chosen)
        taken = [_plain_text(column).take(take) for column in frame.columns]
        rows = rows_of(frame._replace(columns=taken, n_rows=chosen.size), layout)
        columns = columns_of(layout)
    else:
        X = X.tocsr() if is_sparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, expected rows by columns.")
        rows = X[chosen]
        columns = _plain_columns(None, X.shape[1])
    form = MATRIX if layout is None else FRAME if is_frame(X) else GAPS
    return Sample(_as_floats(rows), labels[chosen], chosen, columns, layout, n_rows, form=form)


def sample_of_file(source: Any, budget: Budget, seed: int, **reading: Any) -> Sample:
    """Return a sample of a file of any size, of which no more is read than there is time for."""
    return sample_of_stream(stream(source, **reading), budget, seed)


def sample_of_stream(
    rows: Stream,
    budget: Budget,
    seed: int,
    chunks: Any = None,
    check: Callable[[Array], None] | None = None,
) -> Sample:
    """Return a sample of a stream; `chunks` are those of a pass that somebody watches.

    `check` may refuse labels in its own words.
    """
    start, limit = budget.elapsed, np.inf if budget.rows else MAX_SHARE_OF_READING * budget.seconds
    is_whole = True

    def in_time(first: Chunk, others: Iterator[Chunk]) -> Iterator[Chunk]:
        nonlocal is_whole
        yield first
        most, n_met = _most_rows(first.X), len(first.y)
        for chunk in others:
            n_met += len(chunk.y)
            if budget.elapsed - start > (
                limit if n_met < most else min(limit, MIN_READING_SECONDS)
            ):
                is_whole = False
                return
            yield chunk

    with contextlib.closing(chunks_to_sample(rows) if chunks is None else chunks) as each:
        first = next(each)
        found, n_met = sample(in_time(first, each), _most_rows(first.X), seed)
    if check is not None:
        check(found.y)
    if not found.y.size:
        raise ValueError("The rows have no labels: name their column with `label`.")
    layout = rows.layout if rows.layout.sources else None
    columns = columns_of(layout) if layout is not None else None
    X = found.X if layout is None or not is_sparse(found.X) else widened(found.X, layout.width)
    labels = _labels_of(found.y)
    order = _mixed_order(labels, seed)
    return Sample(
        _as_floats(X[order]),
        labels[order],
        order,
        columns or _plain_columns(None, X.shape[1]),
        layout,
        n_met,
        is_whole,
        ", ".join(_base_name(one) for one in rows.sources[:3]),
        reading=_reading_of(rows),
    )


def chunks_to_sample(rows: Stream) -> Generator[Chunk, None, None]:
    """Yield the chunks of a pass; of a small file all rows at once, as `read` takes them.

    Their layout is then learned from all rows, rather than from the first and grown by others.
    """
    is_small = len(rows.sources) == 1 and not rows.is_once and not rows.caches
    is_small = (
        is_small and _size_of(rows.sources[0]) <= SMALL_FILE_BYTES and rows.chunk_rows >= CHUNK_ROWS
    )
    if is_small:
        yield joined(rows.all_chunks())
    else:
        yield from rows


def _size_of(source: Any) -> float:
    is_file = isinstance(source, str | os.PathLike) and os.path.isfile(source)
    return os.path.getsize(source) if is_file else np.inf


def _reading_of(rows: Stream) -> tuple[Any, dict[str, Any]] | None:
    """Return the files and options with which a stream can be read again; None for a pipe."""
    if not all(isinstance(one, str | os.PathLike) and os.path.exists(one) for one in rows.sources):
        return None
    sources = [os.fspath(one) for one in rows.sources]
    every = fields(rows.options)
    given = {one.name: getattr(rows.options, one.name) for one in every}
    given = {one.name: given[one.name] for one in every if given[one.name] != one.default}
    return sources[0] if len(sources) == 1 else sources, given


def _base_name(source: Any) -> str:
    is_path = isinstance(source, str | os.PathLike)
    return os.path.basename(os.fspath(source)) if is_path else "a stream"


def _plain_text(column: Any) -> Any:
    """Return views of texts as strings: rows of views cannot be taken, and old Arrow casts none."""
    is_view = pa.types.is_string_view(column.type)
    return pa.array(column.to_pylist(), pa.string()) if is_view else column


def is_table(X: Any) -> bool:
    """Return True if X needs a layout: columns of several types, texts, or gaps to fill."""
    has_gaps = isinstance(X, np.ndarray) and X.dtype.kind == "f" and bool(np.isnan(X).any())
    return is_frame(X) or has_texts(X) or (has_gaps and X.ndim == 2)


def _labels_of(y: Any) -> Array:
    """Return one label a row, of two classes at least."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y has {labels.ndim} dimensions, expected one label a row.")
    if labels.dtype.kind == "O":
        if any(_is_missing(label) for label in labels.tolist()):
            raise ValueError(MISSING)
        labels = labels.astype(str)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(MISSING)
    kinds = np.unique(labels)
    what = unlike_classes(kinds, labels.size)
    if what:
        raise ValueError(
            f"y has {kinds.size:,} different values in {labels.size:,} rows, which looks like "
            f"{what}; expected classes."
        )
    if kinds.size < 2:
        raise ValueError("y has but one label, expected two classes at least.")
    return labels


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ == "NAType" or label != label


def _mixed_order(y: Array, seed: int) -> Array:
    """Return a random order whose first rows, however many, have each class in its share."""
    generator = np.random.default_rng(seed)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    order = generator.permutation(y.size)
    by_class = order[np.argsort(codes[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    ranks = np.arange(y.size) - np.repeat(starts, counts)
    keys = (ranks + generator.random(y.size)) / np.repeat(counts, counts)
    return by_class[np.argsort(keys, kind="stable")]


def _most_rows(X: Any) -> int:
    is_dense = isinstance(X, np.ndarray) and X.ndim == 2
    return max(
        1,
        min(
            MAX_SAMPLE_ROWS, MAX_SAMPLE_CELLS // max(1, X.shape[1]) if is_dense else MAX_SAMPLE_ROWS
        ),
    )


def _as_floats(X: Any) -> Any:
    """Return rows as float32, with gaps; infinity is refused."""
    with np.errstate(over="ignore"):
        rows = X.astype(np.float32) if is_sparse(X) else np.ascontiguousarray(X, dtype=np.float32)
    values: Any = rows.data if is_sparse(rows) else rows.ravel()
    if values.size and np.isinf([np.fmax.reduce(values), np.fmin.reduce(values)]).any():
        raise ValueError(
            "X contains infinity, or a number too large for float32: replace or drop such values."
        )
    return rows


def columns_of(layout: Layout) -> Columns:
    """Return the columns of a table, each with the columns of X that are made of it."""
    source_of = layout.sources_of_columns()
    if source_of is None:  # values are hashed together
        return _plain_columns(layout.feature_names, layout.width)
    said = [pair.name[len(pair.source) :].lstrip(" =") for pair in layout.categories.numbers]
    values = [""] * len(layout.number_sources) + [one[:MAX_NAME_LETTERS] or "–" for one in said]
    origins = {k: one.origin for k, one in enumerate(layout.sources) if one.kind == DATE}
    names = [source.name[:MAX_NAME_LETTERS] for source in layout.sources]
    return Columns(names, source_of, values, origins)


def _plain_columns(names: Sequence[str] | None, width: int) -> Columns:
    if names is None or len(names) < width:
        return Columns([f"column {k + 1}" for k in range(width)])
    return Columns([str(name)[:MAX_NAME_LETTERS] for name in names])
