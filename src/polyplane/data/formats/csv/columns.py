"""Columns of numbers and of texts, read from the fields of a block into arrays.

Rows are read a tile at a time, column after column: a tile of text stays close at hand, and a loop
over one column knows what to expect. A number that is none, needs more digits than a double has, or
is too large ends the reading: the block is then read in another way.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.chunks import Array
from polyplane.data.formats.csv.dictionaries import FULL, N_MISSING, number_of, opened, word_at
from polyplane.data.formats.text.numbers import (
    KNOWN,
    POWERS,
    byte_at,
    byte_bits,
    digits,
    digits_around,
    first_bit,
    leading_digits,
    put_single,
    read_number,
)
from polyplane.data.table.texts import MISSING_TEXTS, NONE
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, put, span

__all__ = ["ODD", "Columns", "edges_of", "is_missing", "read_columns"]

ODD = -1
TILE_ROWS = 256
WORD, BLANKS = 8, int.from_bytes(b" " * 8, "little")
TAB, CARRIAGE_RETURN, SPACE, MINUS, POINT = b"\t\r -."
MISSING_WORDS = np.array([int.from_bytes(text.encode(), "little") for text in MISSING_TEXTS])


class Columns(NamedTuple):
    """Which fields are read."""

    numbers: Array  # pairs of a field and a column of X
    labels: Array  # fields that are a label, a number; one or none
    texts: Array  # fields that have tables, in their order


@inlined
def _is_blank(byte: Any) -> Any:
    return byte in (SPACE, TAB)


@inlined
def edges_of(text: Any, stops: Any, k: Any, quote: Any) -> Any:
    """Where field k begins and ends, without quotes and without blanks around it."""
    start, end = np.int64(at(stops, k)) + 1, np.int64(at(stops, k + 1))
    if start == end:
        return start, end
    first, last = byte_at(text, start), byte_at(text, end - 1)
    if first > SPACE and last > SPACE and first != quote:  # most fields
        return start, end
    if first == SPACE and last > SPACE and byte_at(text, start + 1) > SPACE:  # after a comma
        return start + 1, end
    if last == CARRIAGE_RETURN:  # of CR and LF, the last of which is the stop
        end -= 1
    if start < end and first == quote:
        start, end = start + 1, end - 1
        if byte_at(text, start) > SPACE and byte_at(text, end - 1) > SPACE:
            return start, end
    while start < end and _is_blank(byte_at(text, start)):
        start = min(end, start + max(1, first_bit(~byte_bits(text, start, SPACE))))
    while start < end and _is_blank(byte_at(text, end - 1)):
        end -= 1
        while end - WORD >= start and word_at(text, end - WORD, WORD) == BLANKS:
            end -= WORD
    return start, end


@inlined
def is_missing(text: Any, start: Any, n: Any) -> Any:
    if n > WORD:
        return False
    word, is_missing = word_at(text, start, n), False
    for k in range(N_MISSING):
        is_missing |= word == MISSING_WORDS[k]
    return is_missing


@inlined
def _read_number(text: Any, start: Any, end: Any, is_single: Any) -> Any:
    """A number without its sign, if it is negative, and whether it is known.

    Most are a few digits with or without a point.
    """
    is_negative = byte_at(text, start) == MINUS
    first = start + is_negative
    n = end - first
    k = leading_digits(text, first)
    if k == n and n > 0:  # up to eight, so that they are not followed by others
        return np.float64(digits(text, first, n)), is_negative, True
    m = n - k - 1
    if (
        byte_at(text, first + k) == POINT
        and leading_digits(text, first + k + 1) == m < n - 1 < WORD
    ):
        return np.float64(digits_around(text, first, k, n)) / POWERS[m], is_negative, True
    number, is_negative, p, verdict = read_number(text, start, is_single)
    return number, is_negative, verdict == KNOWN and p == end


@jit
def _read_numbers(
    text: Any, fields: Any, rows: Any, k: Any, quote: Any, X: Any, column: Any
) -> Any:
    """Fill a column of X, NaN for what is missing; return if anything is, or ODD."""
    source, stops, firsts, target = span(text), span(fields.stops), span(fields.firsts), span(X)
    width, n_gaps = X.shape[1], 0
    for i in range(rows[0], rows[1]):
        start, end = edges_of(source, stops, at(firsts, i) + k, quote)
        number, is_negative, is_known = _read_number(source, start, end, True)
        if is_known:
            put_single(target, i * width + column, number, np.int64(is_negative))
        elif is_missing(source, start, end - start):
            put(target, i * width + column, np.float32(np.nan))
            n_gaps += 1
        else:
            return ODD
    return n_gaps


@jit
def _read_labels(text: Any, fields: Any, rows: Any, k: Any, quote: Any, y: Any) -> Any:
    """The same of labels, as doubles."""
    source, stops, firsts, target = span(text), span(fields.stops), span(fields.firsts), span(y)
    n_gaps = 0
    for i in range(rows[0], rows[1]):
        start, end = edges_of(source, stops, at(firsts, i) + k, quote)
        number, is_negative, is_known = _read_number(source, start, end, False)
        if is_known:
            put(target, i, -number if is_negative else number)
        elif is_missing(source, start, end - start):
            put(target, i, np.nan)
            n_gaps += 1
        else:
            return ODD
    return n_gaps


@jit
def _read_texts(
    text: Any, fields: Any, rows: Any, k: Any, quote: Any, tables: Any, place: Any, codes: Any
) -> Any:
    """Fill a row of codes; return FULL where its table is."""
    source, stops, firsts, target = span(text), span(fields.stops), span(fields.firsts), span(codes)
    column, first = opened(tables, place), place * codes.shape[1]
    for i in range(rows[0], rows[1]):
        start, end = edges_of(source, stops, at(firsts, i) + k, quote)
        number = number_of(source, start, end - start, column)
        if number == FULL:
            return FULL
        put(target, first + i, np.int32(max(number - N_MISSING, NONE)))
    return 0


@jit
def read_columns(
    text: Any, fields: Any, row: Any, columns: Any, quote: Any, tables: Any, X: Any, y: Any,
    codes: Any,
) -> Any:  # fmt: skip
    """Read from a row on; return the row reached, the column whose table is full, if numbers lack.

    The row reached is the number of rows if all went well; else the column is ODD if a field was.
    """
    n_rows, has_gaps = fields.firsts.size, False
    for first in range(row, n_rows, TILE_ROWS):
        rows = first, min(first + TILE_ROWS, n_rows)
        for j in range(columns.numbers.shape[0]):
            k, column = columns.numbers[j, 0], columns.numbers[j, 1]
            n_gaps = _read_numbers(text, fields, rows, k, quote, X, column)
            if n_gaps < 0:
                return first, ODD, has_gaps
            has_gaps |= n_gaps > 0
        for k in columns.labels:
            if _read_labels(text, fields, rows, k, quote, y) < 0:
                return first, ODD, has_gaps
        for place in range(columns.texts.size):
            k = columns.texts[place]
            if _read_texts(text, fields, rows, k, quote, tables, place, codes) == FULL:
                return first, place, has_gaps
    return n_rows, ODD, has_gaps
