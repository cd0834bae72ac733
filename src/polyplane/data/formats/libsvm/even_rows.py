"""Rows of LIBSVM text that are even: `label [qid:n] index:value ...`, one separator after each.

What a row holds is counted before a number is read, eight entries are read at a time, and what each
of these is made of is counted again: if the counts agree, nothing in the row has been passed over.
Why that is enough: after the label and each value stands a separator, which is looked at. If there
are no others, then between a value and the next index is nothing but what the counts forbid.
Indices rise and have at most 7 digits, values at most 7 before the point and 22 in all.
"""

from typing import Any

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
from polyplane.data.formats.libsvm.marks import (
    COLONS,
    LINE_END,
    LINE_SIZE,
    N_LINES,
    NEXT_LINE,
    ODD,
    SEEN_COLONS,
    SEPARATORS,
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
    count_bits,
    digits,
    ends_token,
    is_digit,
    leading_digits,
    low_bits,
    odd_bits,
    read_number,
    word_of,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, span

__all__ = ["read_listed_rows", "skip_query"]

MINUS, PLUS = b"-+"
QID = int.from_bytes(b"qid:", "little")
THREE_TIMES = 1 + (1 << LANES) + (1 << 2 * LANES)  # points, exponents and their signs
ONE, SHORT, DECIMAL, LONG, EXPONENTIAL = range(5)  # values, each kind includes those before


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
