"""Lines of LIBSVM text into arrays, by a fast loop for plain rows and a careful one for the rest.

A line is `label [qid:n] index:value ... [# comment]`. The fast loop never looks for the end of a
number: a list of all bytes that are not digits, made for some kilobytes at a time with vector
compares, says where colons, points and blanks stand, and digits are read eight at a time.
What is not plain (tabs, comments, `qid`, long numbers) is read by the careful loop, and what
arrays cannot answer (a text label, a number between two float32, indices out of order) is a
question for the caller, who answers in `state` and the table and calls again.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.data.number_text import (
    ASK,
    EXACT,
    KNOWN,
    NOT_A_NUMBER,
    POWERS,
    byte_at,
    count_byte,
    digits,
    ends_token,
    is_blank,
    is_digit,
    is_near_boundary,
    list_non_digits,
    put_single,
    read_number,
    scaled,
    two_numbers,
    word_of,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, put, span

__all__ = ["LARGEST_INDEX", "Table", "measure", "parse_lines"]

NEWLINE, HASH, COLON, BLANK, POINT, MINUS, PLUS, LETTER_E = 10, 35, 58, 32, 46, 45, 43, 101
SECTION = 4096  # bytes whose marks are listed at a time: they stay in the first cache
MARKS_OF_AN_ENTRY = 5  # colon, point, e, sign, blank
QID = int.from_bytes(b"qid:", "little")
LARGEST_INDEX = 2**31 - 2
WHOLE_POWERS = np.array([10**power for power in range(18)])

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
    MARK,  # next of the marks of the section
    N_MARKS,
    SECTION_START,
) = range(18)
STATE_SIZE = 18


class Table(NamedTuple):
    """Rows as they are read: labels, and the entries of row i from starts[i] to starts[i + 1]."""

    labels: Any
    starts: Any
    columns: Any
    values: Any


@jit
def measure(text: Any, start: Any, end: Any, n_lines: Any) -> Any:
    """The end of the first so many lines from start to end, how many these are, and the colons."""
    p, lines, colons = start, 0, 0
    characters = span(text)
    while p + 64 <= end:
        more = count_byte(characters, p, NEWLINE)
        if lines + more >= n_lines:
            break
        lines += more
        colons += count_byte(characters, p, COLON)
        p += 64
    while p < end and lines < n_lines:
        lines += text[p] == NEWLINE
        colons += text[p] == COLON
        p += 1
    return p, lines, colons


@jit
def list_section(text: Any, marks: Any, state: Any) -> None:
    """List the marks from the position on."""
    start = state[POSITION]
    end = min(start + SECTION, state[END])
    state[N_MARKS] = list_non_digits(span(text), start, end, span(marks))
    state[MARK], state[SECTION_START] = 0, start


@inlined
def _read_whole_entries(text: Any, marks: Any, columns: Any, values: Any, place: Any) -> Any:
    """Store entries of at most four digits each; return the place after them."""
    p, j, nnz, previous, last, base = place
    while j <= last:
        colon, end = np.int64(at(marks, j)), np.int64(at(marks, j + 1))
        n_index, n_value = colon - p, end - colon - 1
        if not 0 < n_index <= 4 or not 0 < n_value <= 4 or byte_at(text, colon) != COLON:
            break
        if byte_at(text, colon + 1) == MINUS:
            break
        both = two_numbers(text, p, n_index, colon + 1, n_value)
        column, byte = (both & 0xFFFF) - base, byte_at(text, end)
        if column <= previous or (byte != BLANK and byte != NEWLINE):
            break
        put(columns, nnz, np.int32(column))
        put(values, nnz, np.float32(both >> 32))
        nnz += 1
        previous = column
        p = end
        j += 1
        if byte == NEWLINE:
            break
        p += 1
        j += 1
    return p, j, nnz, previous, last, base


@inlined
def _decimals(text: Any, whole: Any, first: Any, n: Any) -> Any:
    """The whole number with n more digits, which are at first."""
    if n <= 8:
        return whole * at(span(WHOLE_POWERS), n) + digits(text, first, n)
    if n > 16:
        whole = whole * at(span(WHOLE_POWERS), n - 16) + digits(text, first, n - 16)
        first, n = first + n - 16, 16
    whole = whole * at(span(WHOLE_POWERS), n - 8) + digits(text, first, n - 8)
    return whole * 100_000_000 + digits(text, first + n - 8, 8)


@inlined
def _plain_exponent(text: Any, marks: Any, j: Any) -> Any:
    """The power of ten after the e at mark j, and the mark of its end; mark j if it is long."""
    first, end = np.int64(at(marks, j)) + 1, np.int64(at(marks, j + 1))
    sign, k = byte_at(text, first), j + 1
    if end == first and (sign in (MINUS, PLUS)):
        first, end, k = first + 1, np.int64(at(marks, j + 2)), j + 2
    if not 0 < end - first <= 4:
        return 0, j
    power = digits(text, first, end - first)
    return (-power if sign == MINUS else power), k


@inlined
def _read_decimal_entries(
    text: Any, marks: Any, columns: Any, values: Any, place: Any, takes_exponents: Any
) -> Any:
    """Store entries with few digits; return the place after them.

    `|` instead of `or`: with a branch for each condition the loop can take half as long again.
    """
    p, j, nnz, previous, last, base = place
    while j <= last:
        colon, end = np.int64(at(marks, j)), np.int64(at(marks, j + 1))
        n_index = colon - p
        is_negative = np.int64(byte_at(text, colon + 1) == MINUS)
        first = colon + 1 + is_negative
        n_whole = end - first
        is_long = (n_index < 1) | (n_index > 8) | (n_whole < 1) | (n_whole > 8)
        if is_long | (byte_at(text, colon) != COLON):
            break
        if n_index <= 4 and n_whole <= 4:
            both = two_numbers(text, p, n_index, first, n_whole)
            column, whole = (both & 0xFFFF) - base, both >> 32
        else:
            column, whole = digits(text, p, n_index) - base, digits(text, first, n_whole)
        k, n_decimals = j + 1, np.int64(0)
        if byte_at(text, end) == POINT:
            point, end, k = end, np.int64(at(marks, j + 2)), j + 2
            n_decimals = end - point - 1
            if (n_decimals < 1) | (n_whole + n_decimals > 18 + (whole == 0)):
                break
            whole = _decimals(text, whole, point + 1, n_decimals)
        number = np.float64(whole) / at(span(POWERS), n_decimals)
        byte = byte_at(text, end)
        if takes_exponents and byte | 32 == LETTER_E:
            power, after = _plain_exponent(text, marks, k)
            number, verdict = scaled(whole, power - n_decimals, False, True)
            if after == k or verdict != KNOWN:
                break
            k = after
            end = np.int64(at(marks, k))
            byte = byte_at(text, end)
        elif whole > EXACT and is_near_boundary(number):
            break
        if (column <= previous) | ((byte != BLANK) & (byte != NEWLINE)):
            break
        put(columns, nnz, np.int32(column))
        put_single(values, nnz, number, is_negative)
        nnz += 1
        previous = column
        p = end
        j = k
        if byte == NEWLINE:
            break
        p += 1
        j += 1
    return p, j, nnz, previous, last, base


@inlined
def _plain_label(text: Any, p: Any, marks: Any, j: Any) -> Any:
    """The label at p, its end and mark; the end is p if it is not a short whole number."""
    sign = byte_at(text, p)
    is_marked = at(marks, j) == p
    if is_marked and sign != MINUS and sign != PLUS:
        return 0.0, p, j
    first, j = (p + 1, j + 1) if is_marked else (p, j)
    end = np.int64(at(marks, j))
    if not 0 < end - first <= 8 or byte_at(text, end) not in (BLANK, NEWLINE):
        return 0.0, p, j
    number = np.float64(digits(text, first, end - first))
    return (-number if sign == MINUS else number), end, j


@jit
def read_plain_rows(text_array: Any, marks_array: Any, table: Any, state: Any) -> None:
    """Read labels and entries from the position on up to the first that is not plain."""
    text, marks = span(text_array), span(marks_array)
    columns, values = span(table.columns), span(table.values)
    p, row, nnz, previous = state[POSITION], state[ROW], state[ENTRY], state[PREVIOUS]
    base, j, last = state[BASE], state[MARK], state[N_MARKS] - MARKS_OF_AN_ENTRY
    part = state[PART]
    while j <= last and at(marks, j) < p:
        j += 1
    while j <= last:
        if part == BEFORE_LABEL:
            if row >= state[WANTED_ROWS] or p >= state[END] or state[HAS_TEXT_LABELS]:
                break
            label, end, j = _plain_label(text, p, marks, j)
            if end == p:
                break
            table.labels[row] = label
            part, previous = AFTER_LABEL, -1
            p = end
        else:
            place = p, j, nnz, previous, last, base
            place = _read_whole_entries(text, marks, columns, values, place)
            if byte_at(text, place[0]) != NEWLINE:
                place = _read_decimal_entries(text, marks, columns, values, place, False)
            if byte_at(text, place[0]) != NEWLINE:
                place = _read_decimal_entries(text, marks, columns, values, place, True)
            p, j, nnz, previous, _, _ = place
        byte = byte_at(text, p)
        if byte == NEWLINE and previous < state[WIDTH] and not state[IS_UNSORTED]:
            row += 1
            state[LINE] += 1
            table.starts[row] = nnz
            state[WIDEST] = max(state[WIDEST], previous)
            part = BEFORE_LABEL
        elif byte != BLANK:
            break
        p += 1
        j += 1
    state[POSITION], state[ROW], state[ENTRY], state[PREVIOUS] = p, row, nnz, previous
    state[MARK], state[PART] = j, part


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
    if word_of(text, p) != QID or not is_digit(byte_at(text, p + 4)):
        return p
    end = p + 4
    while is_digit(byte_at(text, end)):
        end += 1
    return end if ends_token(byte_at(text, end)) else p


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
def parse_lines(text: Any, marks: Any, table: Any, state: Any) -> Any:
    """Read lines until they end or the wanted rows are there: DONE, or a question.

    The table must have room for as many entries as there are colons, and rows as there are lines.
    """
    while state[POSITION] < state[END]:
        read_plain_rows(text, marks, table, state)
        if state[PART] == BEFORE_LABEL and state[ROW] >= state[WANTED_ROWS]:
            return DONE
        is_listed = state[MARK] + MARKS_OF_AN_ENTRY <= state[N_MARKS]
        if not is_listed and state[POSITION] != state[SECTION_START]:
            list_section(text, marks, state)
        elif state[POSITION] < state[END]:
            code = read_one_item(text, table, state)
            if code != GO_ON:
                return code
    return DONE
