"""Large files as ranges of whole rows, for readers that work apart.

Text     is cut after line feeds. In CSV a line feed may stand in quotes, so a range is looked at
         twice, as if it began outside quotes and as if it began inside; which it was, the ranges
         before it tell (`exact_ranges`). A row belongs to the range in which it begins.
Parquet  is cut between row groups.
Whole    stay files of other formats, compressed ones, text without line feeds, and text between
         tabs with quotes in it, of which the first bytes say what they mean.
The rows of all ranges, one after the other, are those of the file.
"""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.sparse as sp

from polyplane.data.careful_reading import as_data_errors
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.formats.arrow import parquet
from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv.records import line_ends_in
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.data.formats.which import ReadOptions, plain_format_of
from polyplane.data.table.layout import Layout
from polyplane.engine.jit import jit

__all__ = ["Quotes", "Range", "exact_ranges", "quotes_in", "ranges_of", "read_range", "sample_of"]

LOOKED_AT = 1 << 16  # bytes at a time, for the end of a line
ALL_ROWS = 1 << 62
QUOTE, LINE_FEED, CARRIAGE_RETURN = b'"\n\r'
OUTSIDE, INSIDE = 0, 1  # of quotes


class Range(NamedTuple):
    """Some rows of a file."""

    path: str
    kind: str | None = None  # format; None: the file as a whole
    start: int = 0  # bytes of text, row groups of Parquet
    stop: int = 0
    header: bytes = b""  # of CSV: the names of columns, in front of each range but the first
    has_header: bool = False
    delimiter: str = ""

    @property
    def is_first(self) -> bool:
        """Whether the file begins with it."""
        return self.start == 0


class Quotes(NamedTuple):
    """What the quotes of a range of CSV do, by whether it begins outside or inside."""

    ends_inside: tuple[bool, bool]
    first_start: int  # of a record, if it begins inside; -1 where none begins
    are_there: bool


# ---- where to cut ------------------------------------------------------------------------


def ranges_of(path: str, options: ReadOptions, n_bytes: int) -> list[Range]:
    """Ranges of about so many bytes; those of CSV are exact after `exact_ranges`.

    A file that cannot be opened here is one range: whoever reads it says what is wrong with it.
    """
    try:
        kind = plain_format_of(path, options) if os.path.isfile(path) else None
        size = os.path.getsize(path) if kind is not None else 0
    except OSError:
        return [Range(path)]
    if kind == "parquet":
        return _row_groups(path, n_bytes)
    if kind not in ("libsvm", "csv"):
        return [Range(path)]
    with open(path, "rb") as file:
        opening = csv_text.opening_of(file, path, options.of_table()) if kind == "csv" else None
        if kind == "csv" and opening is None:
            return [Range(path)]
        about: dict[str, Any] = {} if opening is None else opening._asdict()
        cuts = [0, *_cuts(file, size, n_bytes, len(about.get("header", b""))), size]
    return [Range(path, kind, start, stop, **about) for start, stop in pairwise(cuts)]


def _cuts(file: BinaryIO, size: int, n_bytes: int, least: int) -> Iterator[int]:
    """Places after line feeds, about `n_bytes` apart."""
    last = 0
    for place in range(n_bytes, size - n_bytes // 2, n_bytes):
        if place < max(last, least):
            continue
        file.seek(place)
        while (some := file.read(LOOKED_AT)) and b"\n" not in some:
            place += len(some)
        last = place + some.find(b"\n") + 1
        if not some or last >= size:
            return
        yield last


def _row_groups(path: str, n_bytes: int) -> list[Range]:
    with as_data_errors(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups)]
    if not sizes:
        return [Range(path)]
    of_group = (np.cumsum(sizes) - np.array(sizes)) // n_bytes
    starts = np.flatnonzero(np.diff(of_group, prepend=-1)).tolist()
    stops = [*starts[1:], len(sizes)]
    return [Range(path, "parquet", a, b) for a, b in zip(starts, stops, strict=True)]


def quotes_in(part: Range) -> Quotes:
    """What the quotes of a range do."""
    text = np.frombuffer(_bytes_of(part) if part.kind == "csv" else b"", np.uint8)
    if not (text == QUOTE).any():
        return Quotes((False, True), -1, False)
    delimiter = ord(part.delimiter)
    outside, _ = _walk(text, delimiter, OUTSIDE)
    inside, first = _walk(text, delimiter, INSIDE)
    return Quotes((outside == INSIDE, inside == INSIDE), int(first), True)


@jit
def _walk(text: Array, delimiter: int, state: int) -> tuple[int, int]:
    """Whether a range ends in quotes that begins in this state, and where its first record starts.

    As in `csv/records.py` quotes open at the beginning of a field only. A range ends after a line
    feed, so that the next begins at a record or in quotes.
    """
    first = 0 if state == OUTSIDE else -1
    is_inside, is_start = state == INSIDE, True  # of a field
    i, n = 0, text.size
    while i < n:
        c = text[i]
        if is_inside:
            if c == QUOTE:
                if i + 1 < n and text[i + 1] == QUOTE:
                    i += 1
                else:
                    is_inside, is_start = False, False
        elif c == QUOTE and is_start:
            is_inside = True
        elif c == LINE_FEED or (c == CARRIAGE_RETURN and i + 1 < n and text[i + 1] != LINE_FEED):
            is_start = True
            if first < 0:
                first = i + 1
        else:
            is_start = c == delimiter
        i += 1
    return (INSIDE if is_inside else OUTSIDE), first


def exact_ranges(parts: Sequence[Range], quotes: Sequence[Quotes]) -> list[Range]:
    """The ranges of one file, cut between records; one in which none begins is empty."""
    if parts[0].kind != "csv" or not any(one.are_there for one in quotes):
        return list(parts)
    size = parts[-1].stop
    if parts[0].delimiter == "\t":  # what its quotes mean is settled by its first bytes
        return [Range(parts[0].path), *(part._replace(start=size, stop=size) for part in parts[1:])]
    starts, is_inside = [], False
    for part, one in zip(parts, quotes, strict=True):
        first = one.first_start if is_inside else 0
        starts.append(part.start + first if first >= 0 else -1)
        is_inside = one.ends_inside[int(is_inside)]
    stops, stop = [], size
    for start in reversed(starts):
        stops.append(stop)
        stop = start if start >= 0 else stop
    return [
        part._replace(start=stop if start < 0 else start, stop=stop)
        for part, start, stop in zip(parts, starts, reversed(stops), strict=True)
    ]


# ---- rows of a range ---------------------------------------------------------------------


def read_range(
    part: Range, options: ReadOptions, settled: Mapping[str, Any], layout: Layout, skips_bad: bool
) -> Chunk:
    """The rows of a range, which may be none; `settled` is of LIBSVM text, `layout` of tables."""
    bad = BadRows(skips_bad)
    if part.start == part.stop:
        return _no_rows(layout.width if layout.sources else 0)
    try:
        return _rows_of(part, replace(options, **settled), layout, bad)
    except DataError as error:
        if error.line is None or part.is_first or part.kind == "parquet":
            raise
        line = error.line + _lines_before(part) - part.header.count(b"\n")
        raise DataError(error.problem, error.path, line, error.column) from None


def _rows_of(part: Range, options: ReadOptions, layout: Layout, bad: BadRows) -> Chunk:
    if part.kind == "parquet":
        groups = range(part.start, part.stop)
        chunks = parquet.chunks(part.path, ALL_ROWS, options.of_table(), bad, layout, groups)
        return joined(list(chunks))
    head = b"" if part.is_first else part.header
    file = io.BytesIO(head + _bytes_of(part))
    if part.kind == "libsvm":
        chunks = libsvm_text.chunks(
            file, part.path, ALL_ROWS, n_features=options.n_features, base=options.base,
            text_labels=options.text_labels, bad=bad,
        )  # fmt: skip
        return next(chunks, None) or _no_rows(options.n_features or 0)
    return _of_table(file, part, options, layout, bad)


def _of_table(
    file: BinaryIO, part: Range, options: ReadOptions, layout: Layout, bad: BadRows
) -> Chunk:
    stated = replace(options.of_table(), delimiter=part.delimiter, header=part.has_header)
    chunks = list(csv_text.chunks(file, part.path, ALL_ROWS, stated, bad, layout))
    if not chunks:
        return _no_rows(layout.width)
    return joined(chunks)


def _no_rows(width: int) -> Chunk:
    return Chunk(sp.csr_matrix(np.empty((0, width), np.float32)), np.empty(0))


def _bytes_of(part: Range) -> bytes:
    with open(part.path, "rb") as file:
        file.seek(part.start)
        return file.read(part.stop - part.start)


def _lines_before(part: Range) -> int:
    text = _bytes_of(part._replace(start=0, stop=part.start))
    return line_ends_in(text, 0, len(text))


# ---- a sample of all ---------------------------------------------------------------------


def sample_of(parts: Sequence[Range], options: ReadOptions, n_bytes: int) -> Layout:
    """The layout that the first rows of all ranges give together, about so many bytes of them.

    Files whose columns are named otherwise than those of the first take no part.
    """
    layout = Layout()
    layout.grows = False
    first, bad = parts[0], BadRows(skips=True)
    of_range = max(LOOKED_AT, n_bytes // len(parts))
    if first.kind == "parquet":
        table, text = _first_groups(parts, of_range), io.BytesIO()
        with pa.ipc.new_stream(text, table.schema) as writer:
            writer.write_table(table)
        text.seek(0)
        of_table = options.of_table()
        list(parquet.arrow_chunks(first.path, ALL_ROWS, of_table, bad, layout, text))
        return layout
    alike = [part for part in parts if part.header == first.header]
    heads = [first.header, *(_first_records(part, of_range) for part in alike)]
    _of_table(io.BytesIO(b"".join(heads)), first, options, layout, bad)
    return layout


def _first_records(part: Range, n_bytes: int) -> bytes:
    """Whole records from the beginning of a range, without the header."""
    start = part.start + len(part.header) if part.is_first else part.start
    some = part._replace(start=start, stop=min(part.stop, start + n_bytes))
    text = _bytes_of(some)
    if some.stop == part.stop:
        return text if text.endswith(b"\n") else text + b"\n"
    return text[: csv_text.end_of_records(text, part.delimiter)]


def _first_groups(parts: Sequence[Range], n_bytes: int) -> Any:
    """The first row group of each range, or the beginning of it, as one table."""
    tables = []
    for part in parts:
        with as_data_errors(part.path, "Parquet"), pyarrow.parquet.ParquetFile(part.path) as file:
            table = file.read_row_group(part.start)
            facts = file.metadata.metadata or {}
        n_rows = max(1, n_bytes * table.num_rows // max(table.nbytes, 1))
        facts = {name: facts[name] for name in facts if name != b"ARROW:schema"}
        tables.append(table.slice(0, n_rows).replace_schema_metadata(facts))
    alike = [table for table in tables if table.schema.equals(tables[0].schema)]
    return pa.concat_tables(alike)
