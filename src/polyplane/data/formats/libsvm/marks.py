"""Where the lines and the colons of LIBSVM text are, a few kilobytes ahead of who reads it.

Each line has counts of what it holds, so that a row of a label and as many entries as colons, with
one separator after each and nothing else, can be told from others before a number is read.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.formats.libsvm.lanes import LANES
from polyplane.data.formats.text.numbers import (
    BLOCK,
    byte_bits,
    count_bits,
    first_bit,
    odd_bits,
    separator_bits,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import put, span

__all__ = [
    "COLONS",
    "LINE_END",
    "LINE_SIZE",
    "NEXT_LINE",
    "N_LINES",
    "ODD",
    "SEEN_COLONS",
    "SEPARATORS",
    "Marks",
    "list_lines",
    "no_marks",
    "restart_at",
]

SECTION = 8192  # bytes that are listed at a time: they and their marks stay in the first cache
MOST_COLONS, MOST_LINES = 1 << 14, 1 << 11  # a row with more is left to others
NEWLINE, COLON = b"\n:"

# of each line, and in `counts` of the last one, which has not ended
SEPARATORS, ODD, COLONS, LINE_END = range(4)  # colons are those of the lines before, too
LINE_SIZE = 4
# in `counts` only
LISTED, N_LINES, NEXT_LINE, SEEN_COLONS = range(4, 8)  # next byte; lines and colons read so far
N_COUNTS = 8


class Marks(NamedTuple):
    """Places of colons, and lines with their counts."""

    colons: Any
    lines: Any  # LINE_SIZE numbers each
    counts: Any


def no_marks() -> Marks:
    """Room for marks."""
    return Marks(
        np.zeros(MOST_COLONS + 2 * BLOCK, np.int32),
        np.zeros((MOST_LINES + BLOCK) * LINE_SIZE, np.int32),
        np.zeros(N_COUNTS, np.int64),
    )


@jit
def restart_at(marks: Any, position: Any) -> None:
    """Forget all marks; list those from the position on."""
    marks.counts[:] = 0
    marks.counts[LISTED] = position


@inlined
def _list_bits(bits: Any, start: Any, places: Any, n: Any) -> Any:
    """Write where bits are set; return how many places are listed now.

    Some follow the last that counts: a loop of as many turns as bits would end unexpectedly.
    """
    total = count_bits(bits)
    for k in range(6):
        put(places, n + k, np.int32(start + first_bit(bits)))
        bits &= bits - 1
    if total > 6:
        for k in range(6, 10):
            put(places, n + k, np.int32(start + first_bit(bits)))
            bits &= bits - 1
    if total > 10:
        for k in range(10, 16):
            put(places, n + k, np.int32(start + first_bit(bits)))
            bits &= bits - 1
    for k in range(16, total):
        put(places, n + k, np.int32(start + first_bit(bits)))
        bits &= bits - 1
    return n + total


@inlined
def _end_line(n: Any, bits: Any, lines: Any, place: Any) -> Any:
    """Note how many there were before the block and are in it; those in it are to come again."""
    n_here = count_bits(bits)
    put(lines, place, np.int32(n + n_here))
    return -n_here


@jit
def _list_section(text_array: Any, marks: Any, end: Any) -> None:
    """List what the next bytes hold, up to the end at most."""
    text, colon_places, lines = span(text_array), span(marks.colons), span(marks.lines)
    counts = marks.counts
    start, n_lines = counts[LISTED], counts[N_LINES]
    n_colons, n_separators, n_odd = counts[COLONS], counts[SEPARATORS], counts[ODD]
    p = start
    while p < min(end, start + SECTION) and n_colons < MOST_COLONS and n_lines < MOST_LINES:
        colons, separators = byte_bits(text, p, COLON), separator_bits(text, p)
        newlines, odd = byte_bits(text, p, NEWLINE), odd_bits(text, p)
        while newlines != 0:
            before = newlines ^ (newlines - 1)
            line = n_lines * LINE_SIZE
            put(lines, line + LINE_END, np.int32(p + first_bit(newlines)))
            put(lines, line + COLONS, np.int32(n_colons + count_bits(colons & before)))
            n_separators = _end_line(n_separators, separators & before, lines, line + SEPARATORS)
            n_odd = _end_line(n_odd, odd & before, lines, line + ODD)
            n_lines += 1
            newlines &= newlines - 1
        n_colons = _list_bits(colons, p, colon_places, n_colons)
        n_separators += count_bits(separators)
        n_odd += count_bits(odd)
        p += BLOCK
    for k in range(LANES):  # whoever reads eight at a time reads some text there, too
        put(colon_places, n_colons + k, np.int32(start))
    counts[LISTED], counts[N_LINES] = p, n_lines
    counts[COLONS], counts[SEPARATORS], counts[ODD] = n_colons, n_separators, n_odd


@inlined
def list_lines(text: Any, marks: Any, end: Any) -> None:
    """Once all lines have been read, list more, at least one; none where it has many colons."""
    counts = marks.counts
    n_seen = counts[SEEN_COLONS]
    counts[COLONS] -= n_seen
    for k in range(counts[COLONS]):
        marks.colons[k] = marks.colons[n_seen + k]
    counts[N_LINES] = counts[NEXT_LINE] = counts[SEEN_COLONS] = 0
    while counts[N_LINES] == 0 and counts[LISTED] < end and counts[COLONS] < MOST_COLONS:
        _list_section(text, marks, end)
