"""How many fields of the first records are numbers, by column, without a text made of any.

A field is missing, a number, none, or unsure: such as infinity, one with a decimal comma, or with
letters at its ends that may be white space. Who has to know what an unsure one is makes a text of
it and asks the plain rules. The others are those of the plain rules.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.chunks import Array
from polyplane.data.formats.csv.columns import edges_of, is_missing
from polyplane.data.formats.csv.fields import NO_QUOTE, Fields, first_fields
from polyplane.data.formats.csv.records import Block
from polyplane.data.formats.text.numbers import byte_at
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import span

__all__ = ["BYTES_LOOKED_AT", "NUMBERS", "TEXTS", "UNSURE", "FirstFields", "look_at_fields"]

NUMBERS, TEXTS, UNSURE, MISSING = range(4)
BYTES_LOOKED_AT = 1 << 16
SPACE, DELETE, PLUS, MINUS, POINT, COMMA, ZERO, NINE = b" \x7f+-.,09"
QUOTE, LINE_FEED = b'"\n'
SMALL = 32  # the bit that tells small letters from capitals
LETTER_A, LETTER_E, LETTER_I, LETTER_N = b"aein"


class FirstFields(NamedTuple):
    """The first records of a block as fields, all of the same width."""

    width: int
    n_records: int
    end: int  # of the first record, in the buffer of the block
    counts: Array  # below the first: NUMBERS, TEXTS and UNSURE of each column
    of_first: Array  # the same of the first


def look_at_fields(
    block: Block, delimiter: str, has_quotes: bool, n_most: int
) -> FirstFields | None:
    """The first so many records, or all if there are fewer; None where the plain rules must."""
    size = min(block.stop - block.start, BYTES_LOOKED_AT)
    text, is_whole = np.frombuffer(block.buffer, np.uint8)[block.start :], size < BYTES_LOOKED_AT
    if is_whole and size and text[size - 1] != LINE_FEED and text[size] == LINE_FEED:
        size += 1  # the end of the last line, or the second half of it
    is_quoted = has_quotes and block.buffer.find(b'"', block.start, block.start + size) >= 0
    quote = QUOTE if is_quoted else NO_QUOTE
    fields = first_fields(text, size, n_most, ord(delimiter), quote)
    if fields is None or (fields.firsts.size < n_most and not is_whole):
        return None
    n_records = fields.firsts.size
    width = (fields.stops.size - 1) // n_records
    counts = np.zeros((2, width, MISSING + 1), np.int64)
    _count(text, fields, quote, counts)
    end = block.start + int(fields.stops[width]) + 1
    return FirstFields(width, n_records, end, counts[1, :, :MISSING], counts[0, :, :MISSING])


@jit
def _count(text: Any, fields: Fields, quote: Any, counts: Any) -> None:
    """Count fields of each column by what they are: those of the first row, and the others."""
    source, stops, n_columns = span(text), span(fields.stops), counts.shape[1]
    for i in range(fields.firsts.size):
        for k in range(n_columns):
            start, end = edges_of(source, stops, np.int64(fields.firsts[i]) + k, quote)
            counts[min(i, 1), k, _verdict(source, start, end)] += 1


@inlined
def _verdict(text: Any, start: Any, end: Any) -> Any:
    """What a field without blanks around it is."""
    if is_missing(text, start, end - start):
        return MISSING
    first, last = byte_at(text, start), byte_at(text, end - 1)
    if min(first, last) <= SPACE or max(first, last) >= DELETE:
        return UNSURE  # there may be other white space around it
    p = start + (first in (PLUS, MINUS))
    if p == end:
        return TEXTS
    end_of_number = _end_of_number(text, p, end)
    if end_of_number == end:
        return NUMBERS
    is_odd = byte_at(text, end_of_number) == COMMA or _may_be_special(text, p)
    return UNSURE if is_odd else TEXTS


@inlined
def _end_of_digits(text: Any, p: Any, end: Any) -> Any:
    while p < end and ZERO <= byte_at(text, p) <= NINE:
        p += 1
    return p


@inlined
def _end_of_number(text: Any, start: Any, end: Any) -> Any:
    """Where digits end, with a point among them and an exponent behind; `start` if there is none.

    An exponent without digits is part of no number.
    """
    p = _end_of_digits(text, start, end)
    n_digits = p - start
    if p < end and byte_at(text, p) == POINT:
        after_point = p + 1
        p = _end_of_digits(text, after_point, end)
        n_digits += p - after_point
    if n_digits == 0:
        return start
    if p < end and byte_at(text, p) | SMALL == LETTER_E:
        exponent = p + 1
        exponent += exponent < end and byte_at(text, exponent) in (PLUS, MINUS)
        after_exponent = _end_of_digits(text, exponent, end)
        p = after_exponent if after_exponent > exponent else p
    return p


@inlined
def _may_be_special(text: Any, p: Any) -> Any:
    """Whether a text begins as inf and nan do."""
    first, second = byte_at(text, p) | SMALL, byte_at(text, p + 1) | SMALL
    return (first == LETTER_I and second == LETTER_N) or (first == LETTER_N and second == LETTER_A)
