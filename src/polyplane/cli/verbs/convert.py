"""`polyplane convert`: rows from any format to any other; models of other programs to ours."""

import contextlib
import sys
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from polyplane.cli.failures import CallError
from polyplane.cli.input.row_input import blamed_on_the_call, chunks_of, open_rows
from polyplane.cli.output.screen import Screen
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.reading import Stream
from polyplane.data.writing import NAMED, format_written, write, write_to
from polyplane.estimator.files.importing import import_model, is_text_model
from polyplane.estimator.files.saving import save

__all__ = ["run"]

WIDTH_FIRST = ("csv", "arrow", "parquet")  # formats that say at the beginning how wide rows are
WRITTEN_OUT = ("arrow", "parquet")  # columns of a table stay columns, also where text became many
MOST_WRITTEN_OUT = 10_000  # columns
LABEL = "label"


def run(
    screen: Screen,
    *,
    data: Sequence[str],
    output: str,
    to: str | None,
    reading: dict[str, Any],
) -> None:
    """Read chunks, write chunks; or read a model, write a model."""
    if len(data) == 1 and is_text_model(data[0]):
        _convert_model(screen, data[0], output, reading.get("n_features"))
        return
    if output == "-" and to is None:
        raise CallError("OUT is standard output, whose name states no format: pass --to FORMAT.")
    with blamed_on_the_call():
        kind = to if output == "-" and to is not None else format_written(output, to)
    rows = open_rows(data, reading)
    width = _width_of_sparse(rows, screen) if kind in WIDTH_FIRST else None
    with contextlib.closing(chunks_of(rows, screen, "Converting")) as found:
        chunks: Iterator[Chunk] = found
        first, chunks = _peeked(
            _written_out(rows, chunks, width) if kind in WRITTEN_OUT else chunks
        )
        names = _names_of(rows, first, width, kind)
        if kind == "csv" and not isinstance(first.X, np.ndarray) and width is None:
            raise DataError(
                "has sparse rows, of which CSV must know beforehand how wide they are: state "
                "--n-features, or save it to a file first",
                data[0],
            )
        counted = _Counted(chunks)
        with blamed_on_the_call():
            if output == "-":
                n_rows = write_to(sys.stdout.buffer, counted, kind, names, width)
            else:
                n_rows = write(output, counted, kind, names, width)
    if output == "-":
        return
    screen.say(f"Wrote {n_rows:,} rows of {counted.width:,} columns to {output} ({kind}).")
    screen.result(
        {
            "rows": n_rows,
            "features": counted.width,
            "skipped": rows.bad.n_skipped,
            "output": output,
            "format": kind,
        }
    )


def _convert_model(screen: Screen, path: str, output: str, n_features: int | None) -> None:
    if output == "-":
        raise CallError("OUT is standard output, but a model goes into a file: name one.")
    model = import_model(path, n_features)
    save(model, output)
    name = type(model).__name__
    screen.say(f"Wrote {output}, a {name} for {model.n_features_in_:,} columns.")
    screen.result({"model": output, "algorithm": name, "features": model.n_features_in_})


def _peeked(chunks: Iterator[Chunk]) -> tuple[Chunk, Iterator[Chunk]]:
    """The first chunk, and all of them."""
    first = next(chunks)
    return first, chain([first], chunks)


def _written_out(
    rows: Stream, chunks: Iterator[Chunk], width: int | None
) -> Generator[Chunk, None, None]:
    """The rows of a table with a value in each column; others as they come."""
    for chunk in chunks:
        is_dense = isinstance(chunk.X, np.ndarray)
        if is_dense or not rows.layout.sources or width is None or width > MOST_WRITTEN_OUT:
            yield chunk
        else:
            yield Chunk(widened(chunk.X, width).toarray(), chunk.y)


class _Counted:
    """Chunks, and how wide they have been."""

    def __init__(self, chunks: Any) -> None:
        self.chunks, self.width = chunks, 0

    def __iter__(self) -> Any:
        for chunk in self.chunks:
            self.width = max(self.width, chunk.X.shape[1])
            yield chunk


def _width_of_sparse(rows: Stream, screen: Screen) -> int | None:
    """Return the number of columns of sparse rows, by a pass of its own; None of other rows."""
    if rows.options.n_features is not None:
        return rows.options.n_features
    if rows.is_once:
        return None
    for chunk in chunks_of(rows, screen, "Looking for the last column"):
        if isinstance(chunk.X, np.ndarray):
            return None
    return rows.n_columns


def _names_of(rows: Stream, first: Chunk, width: int | None, kind: str) -> list[str] | None:
    """Names of columns, where the source has some that can be written."""
    names = rows.layout.feature_names
    is_dense = isinstance(first.X, np.ndarray)
    if kind not in NAMED or (not is_dense and kind != "csv"):
        return None
    if not rows.layout.sources or len(names) != (first.X.shape[1] if is_dense else width):
        return None
    if any(name.strip().lstrip("+-").replace(".", "").isdigit() for name in names):
        return None  # they are positions
    names = [f"{name}_column" if name == LABEL else name for name in names]
    return names if len(set(names)) == len(names) else None
