"""Lines of LIBSVM text into arrays, by one plain and one careful compiled loop.

A line is `label [qid:n] index:value ... [# comment]`. Labels and entries that follow one blank and
have few digits are plain: the plain loop reads many of them, eight bytes at a time. What is not
plain (comments, `qid`, several blanks, long numbers) is read by the careful loop, an item at a time
and byte after byte. What arrays cannot answer (a text label, a number between two float32, indices
out of order) is a question for the caller, who answers in `state` and the table and calls again.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.formats.libsvm.numbers import (
    ASK,
    KNOWN,
    NOT_A_NUMBER,
    byte_at,
    ends_token,
    is_blank,
    is_digit,
    put_single,
    read_digits,
    read_number,
    read_plain_number,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import put, span

__all__ = ["STATE_SIZE", "Table", "parse_lines"]

NEWLINE, HASH, COLON, BLANK = b"\n#: "
QID = tuple(b"qid:")
LARGEST_INDEX = 2**31 - 2
MOST_INDEX_DIGITS = 9  # of a plain entry

# what a call ends with
DONE, GO_ON, ASK_LABEL, ASK_VALUE, ZERO_INDEX, OUT_OF_ORDER, REPEATED, TOO_WIDE, BAD = range(9)
# where a row stands
BEFORE_LABEL, AFTER_LABEL, AMONG_ENTRIES = range(3)
# places in `state`
(
    POSITION,  # next byte
    END,  # just after the newline of the last line
    LINE,  # lines ended so far
    ROW,  # rows ended so far
    WANTED_ROWS,
    PART,  # where the row stands
    ENTRY,  # entries so far
    PREVIOUS,  # last column of the row, -1 before the first
    IS_UNSORTED,  # a column of the row fell
    BASE,  # what is taken from an index to get its column
    WIDTH,  # columns from this one on are too many
    WIDEST,  # largest column so far
    HAS_TEXT_LABELS,
    TOKEN,  # what a question is about
    TOKEN_END,
) = range(15)
STATE_SIZE = 15


class Table(NamedTuple):
    """Rows as they are read: labels, and the entries of row i from starts[i] to starts[i + 1]."""

    labels: Any
    starts: Any
    columns: Any
    values: Any


# ---- the plain loop ----------------------------------------------------------------------


@inlined
def _read_entries(text: Any, columns: Any, values: Any, place: Any, base: Any) -> Any:
    """Store plain entries from the blank before the first on; return the place after them.

    `|` instead of `or`: with a branch for each condition the loop can take half as long again.
    """
    p, entry, previous = place
    while byte_at(text, p) == BLANK:
        index, colon = read_digits(text, p + 1, 0)
        n = colon - p - 1
        if (n < 1) | (n > MOST_INDEX_DIGITS) | (byte_at(text, colon) != COLON):
            break
        number, is_negative, end, verdict = read_plain_number(text, colon + 1, True)
        byte, column = byte_at(text, end), index - base
        is_odd = (byte != BLANK) & (byte != NEWLINE)
        if is_odd | (verdict != KNOWN) | (column <= previous):
            break
        put(columns, entry, np.int32(column))
        put_single(values, entry, number, is_negative)
        entry += 1
        previous = column
        p = end
    return p, entry, previous


@jit
def read_plain_items(text_array: Any, table: Any, state: Any) -> None:
    """Read labels and entries from the position on up to the first that is not plain."""
    text, columns, values = span(text_array), span(table.columns), span(table.values)
    p, row, entry, previous = state[POSITION], state[ROW], state[ENTRY], state[PREVIOUS]
    part, widest, first_row = state[PART], state[WIDEST], state[ROW]
    while True:
        if part == BEFORE_LABEL:
            if p >= state[END] or row >= state[WANTED_ROWS] or state[HAS_TEXT_LABELS]:
                break
            number, is_negative, end, verdict = read_plain_number(text, p, False)
            byte = byte_at(text, end)
            if verdict != KNOWN or (byte != BLANK and byte != NEWLINE):
                break
            table.labels[row] = -number if is_negative else number
            part, previous, p = AFTER_LABEL, -1, end
        p, entry, previous = _read_entries(text, columns, values, (p, entry, previous), state[BASE])
        end = p + np.int64(is_blank(byte_at(text, p)))
        if byte_at(text, end) != NEWLINE or previous >= state[WIDTH] or state[IS_UNSORTED]:
            break
        row += 1
        table.starts[row] = entry
        widest = max(widest, previous)
        part, p = BEFORE_LABEL, end + 1
    state[LINE] += row - first_row
    state[POSITION], state[ROW], state[ENTRY], state[PREVIOUS] = p, row, entry, previous
    state[PART], state[WIDEST] = part, widest


# ---- the careful loop --------------------------------------------------------------------


@inlined
def _end_row(table: Any, state: Any) -> Any:
    """End the row at its newline, or ask to put it in order, or refuse it."""
    if state[IS_UNSORTED]:
        return OUT_OF_ORDER
    if state[PREVIOUS] >= state[WIDTH]:
        return TOO_WIDE
    state[WIDEST] = max(state[WIDEST], state[PREVIOUS])
    state[ROW] += 1
    table.starts[state[ROW]] = state[ENTRY]
    state[PART] = BEFORE_LABEL
    return GO_ON


@inlined
def _read_index(text: Any, start: Any) -> Any:
    """The index from start on and the place of its colon; -1 where there is no such thing."""
    p, index = start, 0
    while is_digit(byte_at(text, p)) and index <= LARGEST_INDEX:
        index = index * 10 + byte_at(text, p) - 48
        p += 1
    is_index = p > start and byte_at(text, p) == COLON and index <= LARGEST_INDEX
    return index if is_index else -1, p


@inlined
def _place_index(index: Any, table: Any, state: Any) -> Any:
    """Note the column of the next entry, or say what is wrong with it."""
    column = index - state[BASE]
    if index < 0:
        return BAD
    if column < 0:
        return ZERO_INDEX
    if column == state[PREVIOUS]:
        return REPEATED
    state[IS_UNSORTED] |= column < state[PREVIOUS]
    table.columns[state[ENTRY]] = column
    state[PREVIOUS] = column
    return GO_ON


@inlined
def _skip_blanks_and_comment(text: Any, p: Any) -> Any:
    while is_blank(byte_at(text, p)):
        p += 1
    if byte_at(text, p) == HASH:
        while byte_at(text, p) != NEWLINE:
            p += 1
    return p


@inlined
def _skip_query(text: Any, p: Any) -> Any:
    """The end of `qid:n` at p, or p."""
    for k in range(4):
        if byte_at(text, p + k) != QID[k]:
            return p
    end = p + 4
    while is_digit(byte_at(text, end)):
        end += 1
    return end if end > p + 4 and ends_token(byte_at(text, end)) else p


@inlined
def _take_number(
    number: Any, is_negative: Any, start: Any, end: Any, verdict: Any, table: Any, state: Any
) -> Any:
    """Store the number from start to end as the label or the value of the entry, or ask."""
    if state[PART] == BEFORE_LABEL:
        if verdict != KNOWN or state[HAS_TEXT_LABELS]:
            return ASK_LABEL
        table.labels[state[ROW]] = -number if is_negative else number
        state[PART], state[PREVIOUS] = AFTER_LABEL, -1
    elif verdict == KNOWN:
        put_single(span(table.values), state[ENTRY], number, np.int64(is_negative))
        state[ENTRY] += 1
    else:
        if verdict == ASK:
            state[TOKEN], state[TOKEN_END] = start, end
        return ASK_VALUE if verdict == ASK else BAD
    state[POSITION] = end
    return GO_ON


@jit
def read_one_item(text_array: Any, table: Any, state: Any) -> Any:
    """Read the label, entry, `qid` or line end at the position; GO_ON, or a question."""
    text = span(text_array)
    p = _skip_blanks_and_comment(text, state[POSITION])
    state[POSITION] = state[TOKEN] = p
    is_label = state[PART] == BEFORE_LABEL
    if byte_at(text, p) == NEWLINE:
        code = GO_ON if is_label else _end_row(table, state)
        if code == GO_ON:
            state[POSITION] = p + 1
            state[LINE] += 1
        return code
    if state[PART] == AFTER_LABEL and state[ENTRY] == table.starts[state[ROW]]:
        state[PART] = AMONG_ENTRIES
        state[POSITION] = _skip_query(text, p)
        if state[POSITION] > p:
            return GO_ON
    if not is_label:
        index, colon = _read_index(text, p)
        code = _place_index(index, table, state)
        if code != GO_ON:
            return code
        p = colon + 1
    number, is_negative, end, verdict = read_number(text, p, not is_label)
    if not ends_token(byte_at(text, end)):
        verdict = NOT_A_NUMBER
    return _take_number(number, is_negative, p, end, verdict, table, state)


@jit
def parse_lines(text: Any, table: Any, state: Any) -> Any:
    """Read lines until they end or the wanted rows are there: DONE, or a question.

    The table must have room for all rows and entries that the lines can hold.
    """
    while True:
        read_plain_items(text, table, state)
        is_between = state[PART] == BEFORE_LABEL
        if is_between and (state[POSITION] >= state[END] or state[ROW] >= state[WANTED_ROWS]):
            return DONE
        code = read_one_item(text, table, state)
        if code != GO_ON:
            return code
