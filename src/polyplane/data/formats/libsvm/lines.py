"""Lines of LIBSVM text into arrays: even rows by the fastest loop, and others by what is here.

A line is `label [qid:n] index:value ... [# comment]`. Of a row that is not even, entries with few
digits are plain: a list of all bytes that are not digits, made for some kilobytes at a time, says
where colons, points and blanks stand, and digits are read eight at a time. What is not plain
either (tabs, comments, `qid`, long numbers) is read by the careful loop, byte after byte, and what
arrays cannot answer (a text label, a number between two float32, indices out of order) is a
question for the caller, who answers in `state` and the table and calls again.
"""

from typing import Any

import numpy as np

from polyplane.data.formats.libsvm.even_rows import (
    N_LINES,
    NEXT_LINE,
    list_lines,
    read_listed_rows,
    restart_at,
    skip_query,
)
from polyplane.data.formats.libsvm.state import (
    AFTER_LABEL,
    AMONG_ENTRIES,
    ASK_LABEL,
    ASK_VALUE,
    BAD,
    BASE,
    BEFORE_LABEL,
    DONE,
    END,
    ENTRY,
    GO_ON,
    HAS_TEXT_LABELS,
    IS_UNSORTED,
    LARGEST_INDEX,
    LINE,
    N_STOPS,
    OUT_OF_ORDER,
    PART,
    POSITION,
    PREVIOUS,
    REPEATED,
    ROW,
    SECTION_START,
    STOP,
    TOKEN,
    TOKEN_END,
    TOO_WIDE,
    UNEVEN_END,
    WANTED_ROWS,
    WIDEST,
    WIDTH,
    ZERO_INDEX,
)
from polyplane.data.formats.text.numbers import (
    ASK,
    BLOCK,
    EXACT,
    KNOWN,
    NOT_A_NUMBER,
    POWERS,
    byte_at,
    byte_bits,
    count_byte,
    digits,
    ends_token,
    first_bit,
    is_blank,
    is_digit,
    is_near_boundary,
    list_non_digits,
    put_single,
    read_number,
    scaled,
)
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, put, span

__all__ = ["SECTION", "measure", "parse_lines"]

NEWLINE, HASH, COLON, BLANK, POINT, MINUS, PLUS, LETTER_E = b"\n#: .-+e"
SECTION = 4096  # bytes whose stops are listed at a time: they stay in the first cache
STOPS_OF_AN_ENTRY = 5  # colon, point, e, sign, blank
WHOLE_POWERS = np.array([10**power for power in range(18)])


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
def list_section(text: Any, stops: Any, state: Any) -> None:
    """List the stops from the position on."""
    start = state[POSITION]
    end = min(start + SECTION, state[UNEVEN_END])
    state[N_STOPS] = list_non_digits(span(text), start, end, span(stops))
    state[STOP], state[SECTION_START] = 0, start


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
def _plain_exponent(text: Any, stops: Any, j: Any) -> Any:
    """The power of ten after the e at stop j, and the stop at its end; stop j if it is long."""
    first, end = np.int64(at(stops, j)) + 1, np.int64(at(stops, j + 1))
    sign, k = byte_at(text, first), j + 1
    if end == first and (sign in (MINUS, PLUS)):
        first, end, k = first + 1, np.int64(at(stops, j + 2)), j + 2
    if not 0 < end - first <= 4:
        return 0, j
    power = digits(text, first, end - first)
    return (-power if sign == MINUS else power), k


@inlined
def _read_entries(text: Any, stops: Any, columns: Any, values: Any, place: Any) -> Any:
    """Store entries with few digits; return the place after them.

    `|` instead of `or`: with a branch for each condition the loop can take half as long again.
    """
    p, j, nnz, previous, last, base = place
    while j <= last:
        colon, end = np.int64(at(stops, j)), np.int64(at(stops, j + 1))
        n_index = colon - p
        is_negative = np.int64(byte_at(text, colon + 1) == MINUS)
        first = colon + 1 + is_negative
        n_whole = end - first
        is_long = (n_index < 1) | (n_index > 8) | (n_whole < 1) | (n_whole > 8)
        if is_long | (byte_at(text, colon) != COLON):
            break
        column, whole = digits(text, p, n_index) - base, digits(text, first, n_whole)
        k, n_decimals = j + 1, np.int64(0)
        if byte_at(text, end) == POINT:
            point, end, k = end, np.int64(at(stops, j + 2)), j + 2
            n_decimals = end - point - 1
            if (n_decimals < 1) | (n_whole + n_decimals > 18 + (whole == 0)):
                break
            whole = _decimals(text, whole, point + 1, n_decimals)
        number = np.float64(whole) / at(span(POWERS), n_decimals)
        byte = byte_at(text, end)
        if byte | 32 == LETTER_E:
            power, after = _plain_exponent(text, stops, k)
            number, verdict = scaled(whole, power - n_decimals, False, True)
            if after == k or verdict != KNOWN:
                break
            k = after
            end = np.int64(at(stops, k))
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
def _plain_label(text: Any, p: Any, stops: Any, j: Any) -> Any:
    """The label at p, its end and stop; the end is p if it is not a short whole number."""
    sign = byte_at(text, p)
    is_stop = at(stops, j) == p
    if is_stop and sign != MINUS and sign != PLUS:
        return 0.0, p, j
    first, j = (p + 1, j + 1) if is_stop else (p, j)
    end = np.int64(at(stops, j))
    if not 0 < end - first <= 8 or byte_at(text, end) not in (BLANK, NEWLINE):
        return 0.0, p, j
    number = np.float64(digits(text, first, end - first))
    return (-number if sign == MINUS else number), end, j


@jit
def read_plain_items(text_array: Any, stops_array: Any, table: Any, state: Any) -> None:
    """Read labels and entries from the position on up to the first that is not plain."""
    text, stops = span(text_array), span(stops_array)
    columns, values = span(table.columns), span(table.values)
    p, row, nnz, previous = state[POSITION], state[ROW], state[ENTRY], state[PREVIOUS]
    base, j, last = state[BASE], state[STOP], state[N_STOPS] - STOPS_OF_AN_ENTRY
    part = state[PART]
    while j <= last and at(stops, j) < p:
        j += 1
    while j <= last:
        if part == BEFORE_LABEL:
            if p >= state[UNEVEN_END] or state[HAS_TEXT_LABELS]:
                break
            label, end, j = _plain_label(text, p, stops, j)
            if end == p:
                break
            table.labels[row] = label
            part, previous = AFTER_LABEL, -1
            p = end
        else:
            place = p, j, nnz, previous, last, base
            place = _read_entries(text, stops, columns, values, place)
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
    state[STOP], state[PART] = j, part


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
        state[POSITION] = skip_query(text, p)
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
def read_uneven_row(text: Any, stops: Any, table: Any, state: Any) -> Any:
    """Read on to the end of the row, or up to a question."""
    while state[POSITION] < state[UNEVEN_END]:
        read_plain_items(text, stops, table, state)
        is_listed = state[STOP] + STOPS_OF_AN_ENTRY <= state[N_STOPS]
        if not is_listed and state[POSITION] != state[SECTION_START]:
            list_section(text, stops, state)
        elif state[POSITION] < state[UNEVEN_END]:
            code = read_one_item(text, table, state)
            if code != GO_ON:
                return code
    return GO_ON


@inlined
def _end_of_line(text: Any, p: Any) -> Any:
    """The place after the newline of the line at p."""
    while byte_bits(text, p, NEWLINE) == 0:
        p += BLOCK
    return p + first_bit(byte_bits(text, p, NEWLINE)) + 1


@jit
def parse_lines(text: Any, stops: Any, marks: Any, table: Any, state: Any) -> Any:
    """Read lines until they end or the wanted rows are there: DONE, or a question.

    The table must have room for as many entries as there are colons, and rows as there are lines.
    """
    counts = marks.counts
    while True:
        code = read_uneven_row(text, stops, table, state)
        if code != GO_ON:
            return code
        if state[POSITION] >= state[END] or state[ROW] >= state[WANTED_ROWS]:
            return DONE
        has_numbers = not state[HAS_TEXT_LABELS]  # lines may be listed from before a text was met
        if has_numbers and counts[NEXT_LINE] == counts[N_LINES]:
            list_lines(text, marks, state[END])
        if has_numbers and counts[NEXT_LINE] < counts[N_LINES]:
            read_listed_rows(text, marks, table, state)
        else:
            state[UNEVEN_END] = _end_of_line(span(text), state[POSITION])
            restart_at(marks, state[UNEVEN_END])
