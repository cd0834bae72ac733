"""Rows as LIBSVM text, in the fewest digits that read back to the same float32."""

from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from polyplane.data.chunks import DataError
from polyplane.data.formats.libsvm.errors import label_problem, shown, word_at
from polyplane.data.formats.libsvm.lines import LARGEST_INDEX
from polyplane.data.formats.libsvm.numbers import POWERS, bits_of
from polyplane.engine.jit import inlined, jit

__all__ = ["write"]

BUFFER = 1 << 20
ROOM_OF_AN_ENTRY = 48  # blank, ten digits, colon, sign, nine digits with zeros, point or exponent
WHOLE_BELOW = 1e9
LEAST_POWER, MOST_POWER = -13, 22  # of ten: digits times or over 10^22 are still exact
MOST_DIGITS = 9  # enough for every float32
DONE, FULL, ASK_VALUE = range(3)
ROW, ENTRY, USED, IS_IN_ROW = range(4)


@inlined
def _put_whole(out: Any, p: Any, number: Any) -> Any:
    """Write a whole number; return where it ends."""
    n, rest = 1, number // 10
    while rest > 0:
        n, rest = n + 1, rest // 10
    for place in range(p + n - 1, p - 1, -1):
        out[place] = 48 + number % 10
        number //= 10
    return p + n


@inlined
def _times_power(number: Any, power: Any) -> Any:
    return number * POWERS[power] if power >= 0 else number / POWERS[-power]


@inlined
def _fewest_digits(value: Any, power: Any) -> Any:
    """Digits and their number, so that they read back to the value, which is 10^power or more."""
    fewest, most = 1, MOST_DIGITS
    while fewest < most:
        n = (fewest + most) // 2
        digits = np.floor(_times_power(np.float64(value), n - 1 - power) + 0.5)
        if np.float32(_times_power(digits, power + 1 - n)) == value:
            most = n
        else:
            fewest = n + 1
    return np.int64(np.floor(_times_power(np.float64(value), most - 1 - power) + 0.5)), most


@inlined
def _power_of(value: Any) -> Any:
    """The power of ten below a positive value, kept near the range in which it is used."""
    binary = (bits_of(value) >> 52) - 1023
    power = min(max(binary * 1233 >> 12, LEAST_POWER - 1), MOST_POWER + 1)  # log10(2) = 0.3010
    return power + (_times_power(1.0, power + 1) <= value)


@inlined
def _put_point(out: Any, p: Any, end: Any) -> Any:
    """Put a point before p, where digits up to end stand; return the new end."""
    for place in range(end, p, -1):
        out[place] = out[place - 1]
    out[p] = 46
    return end + 1


@inlined
def _put_decimal(out: Any, p: Any, digits: Any, n: Any, power: Any) -> Any:
    """Write digits whose first stands for that power of ten; return where they end."""
    if -5 <= power < 0:
        for place in range(p, p - power + 1):
            out[place] = 48
        out[p + 1] = 46
        return _put_whole(out, p - power + 1, digits)
    end = _put_whole(out, p, digits)
    n_whole = power + 1 if 0 <= power < n else 1
    if n_whole < n:
        end = _put_point(out, p + n_whole, end)
    if power == n_whole - 1:
        return end
    out[end] = 101
    if power < 0:
        out[end + 1] = 45
    return _put_whole(out, end + (2 if power < 0 else 1), abs(power))


@inlined
def _put_value(out: Any, p: Any, value: Any) -> Any:
    """Write a value; return where it ends, or p where Python must write it."""
    magnitude, first = abs(value), p
    if np.signbit(value):
        out[p] = 45
        p += 1
    if magnitude < WHOLE_BELOW and magnitude == np.floor(magnitude):
        return _put_whole(out, p, np.int64(magnitude))
    power = _power_of(np.float64(magnitude))
    if not LEAST_POWER <= power <= MOST_POWER:
        return first
    digits, n = _fewest_digits(magnitude, power)
    if np.float32(_times_power(np.float64(digits), power + 1 - n)) != magnitude:
        return first
    if digits == np.int64(POWERS[n]):  # 9.9999997e-05 is 1e-4
        digits, n, power = 1, 1, power + 1
    return _put_decimal(out, p, digits, n, power)


@jit
def format_rows(
    labels: Any, label_starts: Any, codes: Any, starts: Any, columns: Any, values: Any,
    base: Any, out: Any, state: Any,
) -> Any:  # fmt: skip
    """Write rows until they end, the room does, or a value is odd: it follows what is written."""
    row, entry, p = state[ROW], state[ENTRY], state[USED]
    is_in_row, code = state[IS_IN_ROW] != 0, DONE
    while row < codes.size:
        if not is_in_row:
            first, end = label_starts[codes[row]], label_starts[codes[row] + 1]
            if p + end - first >= out.size:
                code = FULL
                break
            for place in range(first, end):
                out[p] = labels[place]
                p += 1
            is_in_row = True
        while entry < starts[row + 1]:
            if p + ROOM_OF_AN_ENTRY > out.size:
                code = FULL
                break
            out[p] = 32
            colon = _put_whole(out, p + 1, np.int64(columns[entry]) + base)
            out[colon] = 58
            p = _put_value(out, colon + 1, values[entry])
            entry += 1
            if p == colon + 1:
                code = ASK_VALUE
                break
        if code == DONE and p >= out.size:
            code = FULL
        if code != DONE:
            break
        out[p] = 10
        p += 1
        row += 1
        is_in_row = False
    state[ROW], state[ENTRY], state[USED], state[IS_IN_ROW] = row, entry, p, is_in_row
    return code


def _text_of(value: np.float32) -> bytes:
    """A value beyond the range of the compiled writer."""
    short = str(value)
    return (short if np.float32(float(short)) == value else repr(float(value))).encode()


def _label_text(label: Any) -> bytes:
    if isinstance(label, np.floating):
        is_whole = label == np.rint(label) and abs(label) < 2.0**53
        text = str(int(label)) if is_whole else repr(float(label))
    else:
        text = str(int(label)) if isinstance(label, np.bool_) else str(label)
    word = text.encode()
    problem = label_problem(word)
    if problem is None and (not word or word_at(word, 0) != word):
        problem = f"the label {shown(word)} is empty or has a blank or # in it"
    if problem is not None:
        raise DataError(f"cannot write this row: {problem}")
    return word


def _rows_of(X: Any, base: int) -> Any:
    """X as canonical CSR float32, checked."""
    with np.errstate(over="ignore"):
        rows = sp.csr_matrix(X, dtype=np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise DataError("X holds values that are not finite in float32: they cannot be written")
    if rows.shape[1] - 1 + base > LARGEST_INDEX:
        raise DataError(f"X has {rows.shape[1]:,} columns, more than indices can tell apart")
    return rows


def write(file: BinaryIO, X: Any, y: Any, base: int = 1) -> None:
    """Write rows and their labels; indices start at `base`, and zeros of a dense X are left out."""
    rows = _rows_of(X, base)
    kinds, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.size != rows.shape[0]:
        raise DataError(f"X has {rows.shape[0]:,} rows, but there are {codes.size:,} labels")
    words = [_label_text(kind) for kind in kinds]
    label_starts = np.cumsum([0, *map(len, words)])
    labels = np.frombuffer(b"".join(words), np.uint8)
    starts = rows.indptr.astype(np.int64)
    entries = rows.indices.astype(np.int32, copy=False), rows.data
    longest = max(map(len, words), default=0)
    out, state = np.empty(BUFFER + longest, np.uint8), np.zeros(4, np.int64)
    code = FULL
    while code != DONE:
        code = format_rows(labels, label_starts, codes, starts, *entries, base, out, state)
        file.write(out[: state[USED]].data)
        if code == ASK_VALUE:
            file.write(_text_of(rows.data[state[ENTRY] - 1]))
        state[USED] = 0
