"""Blocks of CSV text that hold nothing but numbers, read at the speed of memory.

Everything else, such as a missing value or a number that takes more digits than a double has, makes
`parse_numbers` stop: the block is then read in another way.
"""

from typing import Any

import numpy as np

from polyplane.data.text.numbers import KNOWN, byte_at, is_digit, put_single, read_number, scaled
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import span

__all__ = ["LABEL", "SKIPPED", "parse_numbers"]

SKIPPED, LABEL = -1, -2  # what a field is, other than a column of X
TAB, LINE_FEED, CARRIAGE_RETURN, SPACE, MINUS, POINT, ZERO = b"\t\n\r -.0"
LETTER_E, LETTER_CASE = ord("e"), 32
MOST_DIGITS = 17  # before and after the point: an int64 holds all


@inlined
def _is_line_end(byte: Any) -> Any:
    return byte in (LINE_FEED, CARRIAGE_RETURN)


@inlined
def _after_spaces(text: Any, p: Any, delimiter: Any) -> Any:
    byte = byte_at(text, p)
    while byte in (SPACE, TAB) and byte != delimiter:
        p += 1
        byte = byte_at(text, p)
    return p


@inlined
def _after_field(text: Any, p: Any, size: Any, delimiter: Any) -> Any:
    byte = byte_at(text, p)
    while p < size and byte != delimiter and not _is_line_end(byte):
        p += 1
        byte = byte_at(text, p)
    return p


@inlined
def _read_field(text: Any, start: Any, is_single: Any) -> Any:
    """What `read_number` gives; most numbers are a few digits with or without a point."""
    is_negative = byte_at(text, start) == MINUS
    first = p = start + is_negative
    whole = 0
    byte = byte_at(text, p)
    while is_digit(byte) and p < first + MOST_DIGITS:
        whole = whole * 10 + byte - ZERO
        p += 1
        byte = byte_at(text, p)
    n_digits, power = p - first, 0
    if byte == POINT:
        p += 1
        byte = byte_at(text, p)
        while is_digit(byte) and p <= first + MOST_DIGITS:
            whole = whole * 10 + byte - ZERO
            power -= 1
            p += 1
            byte = byte_at(text, p)
        n_digits -= power
    if n_digits == 0 or is_digit(byte) or (byte | LETTER_CASE) == LETTER_E:
        return read_number(text, start, is_single)
    number, verdict = scaled(whole, power, False, is_single)
    return number, is_negative, p, verdict


@jit
def parse_numbers(text: Any, size: Any, delimiter: Any, uses: Any, X: Any, y: Any) -> Any:
    """Fill rows of X and y from `size` bytes; return how many, or -1 if not all are numbers.

    `uses` says for each field which column of X it is, or LABEL, or SKIPPED. There are no quotes,
    and `text` is longer than `size` by the padding that `number_text` asks for.
    """
    source, target, width = span(text), span(X), X.shape[1]
    p = row = 0
    while p < size:
        if _is_line_end(byte_at(source, p)):
            p += 1
            continue
        for k in range(uses.size):
            if uses[k] == SKIPPED:
                p = _after_field(source, p, size, delimiter)
            else:
                start = _after_spaces(source, p, delimiter)
                number, is_negative, p, verdict = _read_field(source, start, uses[k] != LABEL)
                if verdict != KNOWN:
                    return -1
                p = _after_spaces(source, p, delimiter)
                if uses[k] == LABEL:
                    y[row] = -number if is_negative else number
                else:
                    put_single(target, row * width + uses[k], number, np.int64(is_negative))
            if k + 1 < uses.size:
                if byte_at(source, p) != delimiter:
                    return -1
                p += 1
        if p < size and not _is_line_end(byte_at(source, p)):
            return -1
        row += 1
    return row
