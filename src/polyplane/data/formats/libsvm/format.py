"""LIBSVM text among the formats of rows."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, BinaryIO

from polyplane.data.chunk_sizes import no_rows, widened
from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.libsvm import reader
from polyplane.data.formats.row_format import (
    ALL_ROWS,
    Columns,
    FirstRows,
    Range,
    Ranges,
    Reading,
    ReadOptions,
    RowFormat,
)
from polyplane.data.formats.text_ranges import bytes_of, cuts_of
from polyplane.data.table.layout import Layout

__all__ = ["LIBSVM"]

LINE = re.compile(rb"\s*[^\s,;]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*")


def _looks_like(head: bytes) -> bool:
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(b"#")]
    return any(LINE.fullmatch(line.split(b"#")[0]) for line in lines[:-1] or lines)


def _chunks(
    file: BinaryIO, name: str, chunk_rows: int, options: ReadOptions, bad: BadRows
) -> Iterator[Chunk]:
    return reader.chunks(
        file,
        name,
        chunk_rows,
        n_features=options.n_features,
        base=options.base,
        text_labels=options.text_labels,
        bad=bad,
    )


def _read(one: Reading, chunk_rows: int) -> Iterator[Chunk]:
    """Rows without any entry wait until it is known how wide they are."""
    waiting: list[Chunk] = []
    for chunk in _chunks(one.file, one.name, chunk_rows, one.options, one.bad):
        width = chunk.X.shape[1]
        if width == 0:
            waiting.append(chunk)
            continue
        for rows in waiting:
            yield Chunk(widened(rows.X, width), rows.y)
        waiting = []
        yield chunk
    if waiting:
        raise DataError(
            "found nothing but labels, expected `index:value` after them; where no row has an "
            "entry, state n_features",
            one.name,
        )


def _settle(first_rows: FirstRows, options: ReadOptions) -> Mapping[str, Any]:
    """Return where indices start, and whether labels are text.

    Counted from 0, rows are as wide as the reader found them only if it counted from 0.
    """
    as_found, from_0 = first_rows(options.base), first_rows(0)
    if as_found is None or from_0 is None:
        return {}
    base = int(as_found.X.shape[1] != from_0.X.shape[1]) if options.base is None else options.base
    return {"base": base, "text_labels": as_found.y.dtype.kind == "U"}


def _write(file: BinaryIO, chunks: Iterable[Chunk], columns: Columns) -> int:
    n_rows = 0
    for chunk in chunks:
        if not chunk.y.size:
            raise ValueError("Rows have no labels, which LIBSVM text needs: write another format.")
        reader.write(file, chunk.X, chunk.y)
        n_rows += chunk.X.shape[0]
    return n_rows


def _cut(path: str, options: ReadOptions, size: int, n_bytes: int) -> list[Range]:
    with open(path, "rb") as file:
        cuts = cuts_of(file, size, n_bytes)
    return [Range(path, LIBSVM.name, start, stop) for start, stop in pairwise(cuts)]


def _read_range(part: Range, options: ReadOptions, bad: BadRows, layout: Layout) -> Chunk:
    chunks = _chunks(io.BytesIO(bytes_of(part)), part.path, ALL_ROWS, options, bad)
    return next(chunks, None) or no_rows(options.n_features or 0)


LIBSVM = RowFormat(
    name="libsvm",
    suffixes=(".libsvm", ".svm", ".svmlight"),
    options=frozenset(["n_features", "base", "text_labels"]),
    looks_like=_looks_like,
    is_text=True,
    read=_read,
    settle=_settle,
    write=_write,
    ranges=Ranges(_cut, _read_range),
)
