"""Where the fields of a block of CSV text end, found 64 bytes at a time.

Quotes are followed by parity: a quote opens a field, the next one closes it, and one that is
doubled inside does both. That is right where every other quote opens or closes a whole field, and
no field runs over lines; a block in which one does not is refused here, and read in another way.

Text has at least `PADDING` readable bytes after the last that counts, as for numbers.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from polyplane.data.chunks import Array
from polyplane.data.formats.text.numbers import (
    BLOCK,
    STOPS_ROOM,
    byte_at,
    byte_bits,
    count_bits,
    first_bit,
    low_bits,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import I64, at, primitive, put, span

__all__ = [
    "NO_QUOTE", "Fields", "count_line_ends", "fields_of", "first_fields", "last_record_end",
]  # fmt: skip

LINE_FEED, CARRIAGE_RETURN = b"\n\r"
NO_QUOTE = 0  # in place of a quote, where it is but a character: no block has NUL bytes
ALL_BITS = (1 << BLOCK) - 1
STRIDES = 1, 2, 4, 8, 16, 32
INTEGER = types.int64


class Fields(NamedTuple):
    """Field k of row i is between two stops, from number `firsts[i] + k` on."""

    stops: Array  # delimiters and line ends; the first is the byte before the text
    firsts: Array


def _inside_bits(builder: Any, quotes: Any, was_inside: Any) -> Any:
    for stride in STRIDES:
        quotes = builder.xor(quotes, builder.shl(quotes, I64(stride)))
    return builder.xor(quotes, builder.sub(I64(0), was_inside))


def _numpy_inside_bits(quotes: int, was_inside: int) -> int:
    for stride in STRIDES:
        quotes ^= quotes << stride
    return (quotes & ALL_BITS) ^ (ALL_BITS * was_inside)


# which bytes are in quotes, from the one that opens to the one before that which closes
inside_bits = primitive(INTEGER, (INTEGER, INTEGER), _inside_bits, _numpy_inside_bits)
# the bytes after these, and the first if the bit before was set
bits_after = primitive(
    INTEGER,
    (INTEGER, INTEGER),
    lambda b, mask, first: b.or_(b.shl(mask, I64(1)), first),
    lambda mask, first: ((mask << 1) & ALL_BITS) | first,
)
highest_bit = primitive(
    INTEGER,
    (INTEGER,),
    lambda b, mask: b.lshr(mask, I64(BLOCK - 1)),
    lambda mask: mask >> (BLOCK - 1),
)


@inlined
def _line_end_bits(text: Any, block: Any) -> Any:
    """Line ends of 64 bytes; of CR and LF together it is the LF."""
    feeds, returns = byte_bits(text, block, LINE_FEED), byte_bits(text, block, CARRIAGE_RETURN)
    if returns:
        returns &= ~byte_bits(text, block + 1, LINE_FEED)
    return feeds | returns


@inlined
def _quoted_bits(quotes: Any, edges: Any, was_inside: Any, was_edge: Any, was_closed: Any) -> Any:
    """Bytes in quotes, which of the quotes close, and which bytes show that one is out of place.

    Before a quote that opens, and after one that closes, a field begins or ends, or the other half
    of a doubled quote stands.
    """
    inside = inside_bits(quotes, was_inside)
    closing = quotes & ~inside
    after_closing = bits_after(closing, was_closed)
    odd = quotes & inside & ~bits_after(edges, was_edge) & ~after_closing
    return inside, closing, odd | (after_closing & ~edges & ~quotes)


@jit
def _list_stops(text: Any, size: Any, delimiter: Any, quote: Any, stops: Any, ends: Any) -> Any:
    """Write where fields and lines end; return how many stops and line ends, or -1 if refused.

    What has more fields than there is room for is refused, too.
    """
    source, out, lines = span(text), span(stops), span(ends)
    put(out, 0, np.int32(-1))
    n, n_lines = 1, 0
    was_inside, was_edge, was_closed = 0, 1, 0
    for block in range(0, size, BLOCK):
        line_ends = _line_end_bits(source, block)
        delimiters = byte_bits(source, block, delimiter)
        quotes = byte_bits(source, block, quote) if quote != NO_QUOTE else 0
        if size - block < BLOCK:
            counting = low_bits(size - block)
            line_ends, delimiters = line_ends & counting, delimiters & counting
            quotes &= counting
        if quotes | was_inside | was_closed:
            edges = delimiters | line_ends | byte_bits(source, block, CARRIAGE_RETURN)
            inside, closing, odd = _quoted_bits(quotes, edges, was_inside, was_edge, was_closed)
            if odd | (line_ends & inside):
                return -1, 0
            delimiters &= ~inside
            was_inside, was_closed = highest_bit(inside), highest_bit(closing)
        mask = delimiters | line_ends
        was_edge = highest_bit(mask)
        total = count_bits(mask)
        if n + total + STOPS_ROOM > stops.size:
            return -1, 0
        for group in range(n, n + total, 8):
            for k in range(8):
                put(out, group + k, np.int32(block + first_bit(mask)))
                mask &= mask - 1
        n += total
        while line_ends:
            put(lines, n_lines, np.int32(block + first_bit(line_ends)))
            line_ends &= line_ends - 1
            n_lines += 1
    return n, n_lines


@jit
def _list_rows(
    text: Any, stops: Any, n_stops: Any, ends: Any, n_ends: Any, width: Any, firsts: Any
) -> Any:
    """Write at which stop each row begins; return how many rows, or -1 if one is of other width."""
    source, stop, line, first = span(text), span(stops), span(ends), span(firsts)
    n_rows = i = 0
    for k in range(n_ends):
        end = np.int64(at(line, k))
        start = np.int64(at(stop, i)) + 1
        if end == start or (end == start + 1 and byte_at(source, start) == CARRIAGE_RETURN):
            i += 1  # a blank line
            continue
        if i + width >= n_stops or at(stop, i + width) != end:
            return -1
        put(first, n_rows, np.int32(i))
        n_rows += 1
        i += width
    return n_rows


def fields_of(text: Array, size: int, width: int, delimiter: int, quote: int) -> Fields | None:
    """The fields of `size` bytes that end with a line end; None if they are refused."""
    n_lines = int(count_line_ends(text, 0, size))  # memory that is asked for in vain is dear, too
    stops = np.empty(min(n_lines * width, size) + 1 + STOPS_ROOM, np.int32)
    ends, firsts = np.empty(n_lines, np.int32), np.empty(n_lines, np.int32)
    n_stops, n_ends = _list_stops(text, size, delimiter, quote, stops, ends)
    if n_stops < 0:
        return None
    n_rows = _list_rows(text, stops, n_stops, ends, n_ends, width, firsts)
    return None if n_rows < 0 else Fields(stops[:n_stops], firsts[:n_rows])


def first_fields(text: Array, size: int, n_most: int, delimiter: int, quote: int) -> Fields | None:
    """The fields of the first lines, at most so many; None if they are refused, or one is blank.

    As many of a row as of the first.
    """
    stops, ends = np.empty(size + 1 + STOPS_ROOM, np.int32), np.empty(size, np.int32)
    n_stops, n_ends = _list_stops(text, size, delimiter, quote, stops, ends)
    n_ends = min(n_ends, n_most)
    if n_stops < 0 or n_ends == 0:
        return None
    width, firsts = int(np.searchsorted(stops[:n_stops], ends[0])), np.empty(n_ends, np.int32)
    n_rows = _list_rows(text, stops, n_stops, ends, n_ends, width, firsts)
    return Fields(stops[: n_rows * width + 1], firsts) if n_rows == n_ends else None


@jit
def count_line_ends(text: Any, start: Any, stop: Any) -> Any:
    """How many lines end between two places, by LF, CRLF or CR."""
    source, n_lines = span(text), 0
    for block in range(start, stop, BLOCK):
        line_ends = _line_end_bits(source, block)
        if stop - block < BLOCK:
            line_ends &= low_bits(stop - block)
        n_lines += count_bits(line_ends)
    return n_lines


@jit
def last_record_end(text: Any, size: Any, delimiter: Any, quote: Any) -> Any:
    """Where the last whole record ends, or -1 where a quote is out of place.

    An LF follows the text, so that a CR at its end ends none: it may belong to an LF to come.
    """
    source = span(text)
    end = was_inside = was_closed = 0
    was_edge = 1
    for block in range(0, size, BLOCK):
        line_ends, delimiters = _line_end_bits(source, block), byte_bits(source, block, delimiter)
        edges = delimiters | line_ends | byte_bits(source, block, CARRIAGE_RETURN)
        quotes = byte_bits(source, block, quote)
        counting = low_bits(size - block) if size - block < BLOCK else -1
        quotes &= counting
        inside, closing, odd = _quoted_bits(quotes, edges, was_inside, was_edge, was_closed)
        if odd & counting:
            return -1
        was_inside, was_closed = highest_bit(inside), highest_bit(closing)
        was_edge = highest_bit(edges)
        line_ends &= counting & ~inside
        while line_ends:
            end = block + first_bit(line_ends) + 1
            line_ends &= line_ends - 1
    return end
