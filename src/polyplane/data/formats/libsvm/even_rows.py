"""Rows of LIBSVM text that are even: `label [qid:n] index:value ...`, one separator after each.

What a row holds is counted before a number is read, eight entries are read at a time, and what each
of these is made of is counted again: if the counts agree, nothing in the row has been passed over.
Why that is enough: after the label and each value stands a separator, which is looked at. If there
are no others, then between a value and the next index is nothing but what the counts forbid.
Indices rise and have at most 7 digits, values at most 7 before the point and 22 in all.

Lines and colons are marked some kilobytes ahead of who reads them, each line with counts of what it
holds.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.formats.libsvm.lanes import (
    LANES,
    put_columns,
    put_decimals,
    put_exponentials,
    put_long_decimals,
    put_ones,
    put_short_values,
    put_wide_columns,
)
from polyplane.data.formats.libsvm.state import (
    BASE,
    END,
    ENTRY,
    LINE,
    POSITION,
    ROW,
    UNEVEN_END,
    WANTED_ROWS,
    WIDEST,
    WIDTH,
)
from polyplane.data.formats.text.numbers import (
    BLOCK,
    KNOWN,
    byte_at,
    byte_bits,
    count_bits,
    digits,
    ends_token,
    first_bit,
    is_digit,
    leading_digits,
    low_bits,
    odd_bits,
    read_number,
    separator_bits,
    word_of,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, put, span

__all__ = [
    "NEXT_LINE", "N_LINES", "Marks", "list_lines", "no_marks", "read_listed_rows", "restart_at",
    "skip_query",
]  # fmt: skip

MINUS, PLUS = b"-+"
QID = int.from_bytes(b"qid:", "little")
THREE_TIMES = 1 + (1 << LANES) + (1 << 2 * LANES)  # points, exponents and their signs
ONE, SHORT, DECIMAL, LONG, EXPONENTIAL = range(5)  # values, each kind includes those before
SECTION = 8192  # bytes that are listed at a time: they and their marks stay in the first cache
MOST_COLONS, MOST_LINES = 1 << 14, 1 << 11  # a row with more is left to others
NEWLINE, COLON = b"\n:"

# of each line, and in `counts` of the last one, which has not ended
SEPARATORS, ODD, COLONS, LINE_END = range(4)  # colons are those of the lines before, too
LINE_SIZE = 4
# in `counts` only
LISTED, N_LINES, NEXT_LINE, SEEN_COLONS = range(4, 8)  # next byte; lines and colons read so far
N_COUNTS = 8


# ---- where lines and colons are ----------------------------------------------------------


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


# ---- rows --------------------------------------------------------------------------------


@inlined
def _is_white(byte: Any) -> Any:
    return (byte == 32) | (byte == 10) | (byte | 4 == 13)


@inlined
def skip_query(text: Any, p: Any) -> Any:
    """The end of `qid:n` at p, or p."""
    if word_of(text, p) != QID or not is_digit(byte_at(text, p + 4)):
        return p
    end = p + 4
    while is_digit(byte_at(text, end)):
        end += 1
    return end if ends_token(byte_at(text, end)) else p


@inlined
def _read_label(text: Any, p: Any) -> Any:
    """The label at p, its end, and how many odd bytes it has; the end is p if it is unknown."""
    sign = byte_at(text, p)
    is_signed = np.int64((sign == MINUS) | (sign == PLUS))
    first = p + is_signed
    n = leading_digits(text, first)
    if 0 < n < 8 and _is_white(byte_at(text, first + n)):
        direction = np.float64(1 - 2 * np.int64(sign == MINUS))  # a branch would often be wrong
        return direction * digits(text, first, n), first + n, is_signed
    number, is_negative, end, verdict = read_number(text, p, False)
    if verdict != KNOWN or end - p >= BLOCK or not _is_white(byte_at(text, end)):
        return 0.0, p, 0
    n_odd = count_bits(odd_bits(text, p) & low_bits(end - p))
    return (-number if is_negative else number), end, n_odd


@inlined
def _read_entries(
    text: Any, colons: Any, first: Any, n_entries: Any, columns: Any, values: Any, entry: Any,
    base: Any, is_wide: Any, kind: Any,
) -> Any:  # fmt: skip
    """Store entries from the first colon on; how many odd bytes they have, -1 if they are wrong.

    Indices that are wide and kinds of values that were met are expected from then on.
    """
    n_odd, previous = 0, np.int64(-1)
    for k in range(0, n_entries, LANES):
        i, to, lanes = first + k, entry + k, low_bits(min(n_entries - k, LANES))
        wrong = found = lanes
        if not is_wide:
            wrong = lanes & put_columns(text, colons, i, columns, to, base, previous)
        if wrong != 0:  # of the whole group, since a column that was wrong has misled the next
            is_wide = True
            wrong = lanes & put_wide_columns(text, colons, i, columns, to, base, previous)
        if kind == ONE:
            found = put_ones(text, colons, i, values, to)
            kind = ONE if found & lanes == 0 else SHORT
        if kind == SHORT:
            found = put_short_values(text, colons, i, values, to)
            kind = SHORT if found & lanes == 0 else DECIMAL
        if kind == DECIMAL:
            found = put_decimals(text, colons, i, values, to)
            kind = DECIMAL if found & lanes == 0 else LONG
        if kind == LONG:
            found = put_long_decimals(text, colons, i, values, to)
            kind = LONG if found & lanes == 0 else EXPONENTIAL
        if kind == EXPONENTIAL:
            found = put_exponentials(text, colons, i, values, to)
        if wrong | (found & lanes) != 0:
            return -1, is_wide, kind
        n_odd += count_bits(found >> LANES & lanes * THREE_TIMES)
        previous = np.int64(at(columns, to + LANES - 1))
    return n_odd, is_wide, kind


@jit
def read_listed_rows(text_array: Any, marks: Any, table: Any, state: Any) -> None:
    """Read rows whose lines are listed, up to one that is not even, which ends at `UNEVEN_END`."""
    text, colons, lines = span(text_array), span(marks.colons), span(marks.lines)
    columns, values, room = span(table.columns), span(table.values), table.columns.size
    counts, line, n_seen = marks.counts, marks.counts[NEXT_LINE], marks.counts[SEEN_COLONS]
    p, row, entry, widest = state[POSITION], state[ROW], state[ENTRY], state[WIDEST]
    last_row = min(state[WANTED_ROWS], row + counts[N_LINES] - line)
    base, is_even, is_wide, kind = state[BASE], True, False, ONE
    while is_even and row < last_row and p < state[END]:
        facts = line * LINE_SIZE
        newline = np.int64(at(lines, facts + LINE_END))
        label, end, n_odd = _read_label(text, p)
        has_query = np.int64(end < newline and skip_query(text, end + 1) > end + 1)
        first, n_seen = n_seen + has_query, np.int64(at(lines, facts + COLONS))
        n_entries = n_seen - first
        is_padded = np.int64(_is_white(byte_at(text, newline - 1)))
        n_separators = n_entries + 1 + has_query + is_padded
        is_even = n_separators == at(lines, facts + SEPARATORS)
        is_even &= (end > p) & (entry + n_entries + LANES <= room)
        if is_even:
            more_odd, is_wide, kind = _read_entries(
                text, colons, first, n_entries, columns, values, entry, base, is_wide, kind
            )
            last = np.int64(at(columns, entry + n_entries - 1) if n_entries > 0 else -1)
            is_even = (more_odd >= 0) & (last < state[WIDTH])
            is_even &= n_odd + more_odd + 3 * has_query == at(lines, facts + ODD)
        if is_even:
            table.labels[row] = label
            row, entry, p, widest = row + 1, entry + n_entries, newline + 1, max(widest, last)
            table.starts[row] = entry
        else:
            state[UNEVEN_END] = newline + 1
        line += 1
    state[LINE] += row - state[ROW]
    state[POSITION], state[ROW], state[ENTRY], state[WIDEST] = p, row, entry, widest
    counts[NEXT_LINE], counts[SEEN_COLONS] = line, n_seen
