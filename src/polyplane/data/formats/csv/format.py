"""CSV text among the formats of rows.

A line feed may stand in quotes, so a range is looked at twice, as if it began outside quotes and as
if it began inside; which it was, the ranges before it tell (`exact_ranges`). A row belongs to the
range in which it begins. Text between tabs with quotes in it stays whole: its first bytes say what
they mean.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np

from polyplane.data.chunk_sizes import joined, no_rows
from polyplane.data.chunks import Array, BadRows, Chunk
from polyplane.data.formats.csv import reader, writer
from polyplane.data.formats.row_format import (
    ALL_ROWS,
    TABLE,
    Range,
    Ranges,
    ReadOptions,
    RowFormat,
)
from polyplane.data.formats.text_ranges import bytes_of, cuts_of
from polyplane.data.table.layout import Layout
from polyplane.engine.jit import jit

__all__ = ["CSV", "Quotes", "exact_ranges", "quotes_in"]

QUOTE, LINE_FEED, CARRIAGE_RETURN = b'"\n\r'
OUTSIDE, INSIDE = 0, 1  # of quotes
DELIMITERS = b",", b";", b"\t"


def _looks_like(head: bytes) -> bool:
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(b"#")]
    return any(delimiter in line for line in lines for delimiter in DELIMITERS)


# ---- ranges ------------------------------------------------------------------------------


def _cut(path: str, options: ReadOptions, size: int, n_bytes: int) -> list[Range]:
    """Return ranges that are exact after `exact_ranges`."""
    with open(path, "rb") as file:
        opening = reader.opening_of(file, path, options.of_table())
        if opening is None:
            return [Range(path)]
        cuts = cuts_of(file, size, n_bytes, len(opening.header))
    return [Range(path, CSV.name, start, stop, *opening) for start, stop in pairwise(cuts)]


def _read_range(part: Range, options: ReadOptions, bad: BadRows, layout: Layout) -> Chunk:
    head = b"" if part.is_first else part.header
    return _rows_of(io.BytesIO(head + bytes_of(part)), part, options, bad, layout)


def _rows_of(
    file: BinaryIO, part: Range, options: ReadOptions, bad: BadRows, layout: Layout
) -> Chunk:
    stated = replace(options.of_table(), delimiter=part.delimiter, header=part.has_header)
    chunks = list(reader.chunks(file, part.path, ALL_ROWS, stated, bad, layout))
    return joined(chunks) if chunks else no_rows(layout.width)


def _learn(
    parts: Sequence[Range], options: ReadOptions, bad: BadRows, layout: Layout, n_bytes: int
) -> None:
    """Learn a layout; files whose columns have other names than the first take no part."""
    alike = [part for part in parts if part.header == parts[0].header]
    heads = [parts[0].header, *(_first_records(part, n_bytes) for part in alike)]
    _rows_of(io.BytesIO(b"".join(heads)), parts[0], options, bad, layout)


def _first_records(part: Range, n_bytes: int) -> bytes:
    """Whole records from the beginning of a range, without the header."""
    start = part.start + len(part.header) if part.is_first else part.start
    some = part._replace(start=start, stop=min(part.stop, start + n_bytes))
    text = bytes_of(some)
    if some.stop == part.stop:
        return text if text.endswith(b"\n") else text + b"\n"
    return text[: reader.end_of_records(text, part.delimiter)]


# ---- quotes ------------------------------------------------------------------------------


class Quotes(NamedTuple):
    """Effect of the quotes in a range of CSV, by whether it begins outside or inside of quotes."""

    ends_inside: tuple[bool, bool]
    first_start: int  # of a record, if it begins inside; -1 where none begins
    are_there: bool


def quotes_in(part: Range) -> Quotes:
    """Return the effect of the quotes in a range."""
    text = np.frombuffer(bytes_of(part) if part.kind == "csv" else b"", np.uint8)
    if not (text == QUOTE).any():
        return Quotes((False, True), -1, False)
    delimiter = ord(part.delimiter)
    outside, _ = _walk(text, delimiter, OUTSIDE)
    inside, first = _walk(text, delimiter, INSIDE)
    return Quotes((outside == INSIDE, inside == INSIDE), int(first), True)


@jit
def _walk(text: Array, delimiter: int, state: int) -> tuple[int, int]:
    """Return the state in which a range ends, and where its first record starts.

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


CSV = RowFormat(
    name="csv",
    suffixes=(".csv", ".tsv"),
    options=TABLE,
    looks_like=_looks_like,
    is_text=True,
    read=lambda one, n: reader.chunks(
        one.file, one.name, n, one.options.of_table(), one.bad, one.layout
    ),
    write=lambda file, chunks, columns: writer.write(
        file, chunks, columns.names, columns.n_features
    ),
    ranges=Ranges(_cut, _read_range, _learn),
)
