"""Numbers in bytes, read eight digits at a time, to the last bit as Python reads them.

`read_number` gives a value whose float32 is `np.float32(float(text))`, or asks: w / 10^f is exact
in double arithmetic for w <= 2^53 and f <= 22 (Clinger 1990), and otherwise within 4 units in the
last place of what Python's `float` gives, so that both have the same float32 unless a rounding
boundary of float32 lies as near. Then, and near the ends of the range of float32, the verdict is
ASK and the caller calls `float`. `read_plain_number` reads numbers of up to 19 digits and leaves
all others to `read_number`.

Text is a span of bytes with at least `PADDING` readable bytes after the last that counts: whole
words are loaded. Without the JIT a load that leaves the array is an IndexError.
"""

from typing import Any

import numpy as np
from numba import types

from polyplane.engine.jit import inlined
from polyplane.engine.tiles import F32, I1, I32, I64, NOTHING, OFFSET, SPAN, at, primitive, span

__all__ = [
    "ASK",
    "KNOWN",
    "NOT_A_NUMBER",
    "PADDING",
    "POWERS",
    "bits_of",
    "byte_at",
    "ends_token",
    "is_blank",
    "is_digit",
    "put_single",
    "read_digits",
    "read_number",
    "read_plain_number",
]

PADDING = 64
KNOWN, ASK, NOT_A_NUMBER = 0, 1, 2
MOST_DIGITS = 18  # of which an int64 holds all
EXACT = 1 << 53  # whole numbers up to here are doubles
EXACT_POWER = 22  # and so are powers of ten
LEAST_POWER, MOST_POWER = -70, 40  # 10^18 times less is 0 as float32; times more is checked
MOST_EXPONENT = 1 << 40  # more digits than any line has
LEAST_SINGLE, MOST_SINGLE = 1.2e-38, 3.4e38  # inside: a normal float32, and far from its ends
POWERS = np.array([float(f"1e{power}") for power in range(-LEAST_POWER + 1)])
WHOLE_POWERS = np.array([10**power for power in range(9)])
SWAR = (  # digits to pairs to fours to eights: each lane, times a power of ten, joins the next
    (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
    (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
    (0x0000FFFF0000FFFF, 10_000 * 2**32 + 1, 32),
)
BLANK, MINUS, PLUS, POINT, LETTER_E = b" -+.e"
INTEGER = types.int64


# ---- words of eight bytes ----------------------------------------------------------------


def _word_at(array: Any, start: int) -> bytes:
    """Eight bytes of an array; unlike a slice it fails where they are not all there."""
    if start < 0 or start + 8 > len(array):
        raise IndexError(f"8 bytes from {start} on in an array of {len(array)}")
    return bytes(array[start : start + 8])


def _load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()), align=1)


def _leading_digits(builder: Any, text: Any, offset: Any) -> Any:
    low = builder.xor(_load(builder, text, offset, I64), I64(0x3030303030303030))
    above_9 = builder.or_(builder.add(low, I64(0x7676767676767676)), low)  # up to the first
    is_other = builder.and_(above_9, I64(0x8080808080808080))
    return builder.lshr(builder.cttz(is_other, I1(0)), I64(3))


def _digits(builder: Any, text: Any, offset: Any, n: Any) -> Any:
    half = builder.sub(I64(32), builder.shl(n, I64(2)))  # a shift by all 64 bits is undefined
    word = builder.shl(builder.shl(_load(builder, text, offset, I64), half), half)
    for mask, factor, shift in SWAR:
        word = builder.lshr(builder.mul(builder.and_(word, I64(mask)), I64(factor)), I64(shift))
    return word


def _put_single(builder: Any, values: Any, i: Any, number: Any, is_negative: Any) -> Any:
    bits = builder.bitcast(builder.fptrunc(number, F32), I32)
    sign = builder.shl(builder.trunc(is_negative, I32), I32(31))
    builder.store(builder.bitcast(builder.xor(bits, sign), F32), builder.gep(values, [i]))


def _numpy_put_single(values: Any, i: int, number: float, is_negative: int) -> None:
    values[i] = -np.float32(number) if is_negative else np.float32(number)


byte_at = primitive(
    INTEGER,
    (SPAN, OFFSET),
    lambda b, text, i: b.zext(b.load(b.gep(text, [i])), I64),
    lambda text, i: int(text[i]),
)
# how many of the 8 bytes from i on are digits, up to the first that is none
leading_digits = primitive(
    INTEGER,
    (SPAN, OFFSET),
    _leading_digits,
    lambda text, i: 8 - len(_word_at(text, i).lstrip(b"0123456789")),
)
# the number in the n bytes from i on, all digits; n is 0 to 8
digits = primitive(
    INTEGER,
    (SPAN, OFFSET, INTEGER),
    _digits,
    lambda text, i, n: int(b"0" + _word_at(text, i)[:n]),
)
bits_of = primitive(
    INTEGER,
    (types.float64,),
    lambda b, number: b.bitcast(number, I64),
    lambda number: int(np.float64(number).view(np.int64)),
)
# a double that is not negative as float32, with its sign: minus zero stays minus zero
put_single = primitive(
    NOTHING, (SPAN, OFFSET, types.float64, INTEGER), _put_single, _numpy_put_single
)


@inlined
def is_digit(byte: Any) -> Any:
    return 48 <= byte <= 57


@inlined
def is_blank(byte: Any) -> Any:
    """True of a blank, a tab and a carriage return."""
    return byte == 32 or byte == 9 or byte == 13


@inlined
def ends_token(byte: Any) -> Any:
    """True of blanks, the end of the line and the sign of a comment."""
    return is_blank(byte) or byte == 10 or byte == 35


@inlined
def _is_near_boundary(number: Any) -> Any:
    """True within 4 units in the last place of a double between two neighbours in float32."""
    return ((bits_of(number) + 4 - (1 << 28)) & ((1 << 29) - 1)) <= 8


@inlined
def _scaled(whole: Any, power: Any, is_cut: Any, is_single: Any) -> Any:
    """The whole number times that power of ten, and KNOWN or ASK; `is_cut`: digits are missing."""
    if whole == 0 or (is_single and power < LEAST_POWER):
        return 0.0, KNOWN
    is_exact = whole <= EXACT and abs(power) <= EXACT_POWER and not is_cut
    if not is_exact and not (is_single and LEAST_POWER <= power <= MOST_POWER):
        return 0.0, ASK
    number = np.float64(whole)
    number = number * POWERS[power] if power >= 0 else number / POWERS[-power]
    if is_exact:
        return number, KNOWN
    is_inside = LEAST_SINGLE < number < MOST_SINGLE
    return number, KNOWN if is_inside and not _is_near_boundary(number) else ASK


# ---- numbers of up to 19 digits ----------------------------------------------------------


@inlined
def read_digits(text: Any, start: Any, whole: Any) -> Any:
    """The whole number with the digits from start on after it, and their end: 24 are read at most.

    Of more digits than an int64 holds the number is of no use.
    """
    n = leading_digits(text, start)
    whole, end = whole * int(at(span(WHOLE_POWERS), n)) + digits(text, start, n), start + n
    if n == 8:
        n = leading_digits(text, end)
        whole, end = whole * int(at(span(WHOLE_POWERS), n)) + digits(text, end, n), end + n
        if n == 8:
            n = leading_digits(text, end)
            whole, end = whole * int(at(span(WHOLE_POWERS), n)) + digits(text, end, n), end + n
    return whole, end


@inlined
def read_plain_number(text: Any, start: Any, is_single: Any) -> Any:
    """The number from start on without its sign, if it is negative, its end, and the verdict.

    The grammar is `[+-] digits [. digits] [e [+-] digits]` with at most 19 digits; the verdict on
    others is ASK. KNOWN values are right as float32 where `is_single`, else to the last bit.
    """
    sign = byte_at(text, start)
    if is_digit(sign) and byte_at(text, start + 1) == BLANK:  # ones of 0/1 data: half the time
        return np.float64(sign - 48), np.int64(0), start + 1, KNOWN
    is_negative = np.int64(sign == MINUS)
    first = start
    if (sign == MINUS) | (sign == PLUS):
        first += 1
    whole, end = read_digits(text, first, 0)
    n_digits, power = end - first, np.int64(0)
    if n_digits == 0:
        return 0.0, is_negative, end, ASK
    if byte_at(text, end) == POINT:
        point = end
        whole, end = read_digits(text, point + 1, whole)
        power = point + 1 - end
        n_digits -= power
    if (n_digits > 19) | (whole < 0):
        return 0.0, is_negative, end, ASK
    if byte_at(text, end) | 32 == LETTER_E:
        exponent_sign = byte_at(text, end + 1)
        first = end + 1 + np.int64((exponent_sign == MINUS) | (exponent_sign == PLUS))
        n = leading_digits(text, first)
        if (n < 1) | (n > 4):
            return 0.0, is_negative, end, ASK
        exponent, end = digits(text, first, n), first + n
        power += -exponent if exponent_sign == MINUS else exponent
        number, verdict = _scaled(whole, power, False, is_single)
        return number, is_negative, end, verdict
    number = np.float64(whole) / at(span(POWERS), -power)
    is_known = (whole <= EXACT) | (is_single & (not _is_near_boundary(number)))
    return number, is_negative, end, KNOWN if is_known else ASK


# ---- numbers of any length ---------------------------------------------------------------


@inlined
def _read_exponent(text: Any, p: Any) -> Any:
    """The power of ten of the letter e at p, and where it ends; that is p where there is none."""
    q = p + 1
    sign = byte_at(text, q)
    if sign == 45 or sign == 43:
        q += 1
    if not is_digit(byte_at(text, q)):
        return 0, p
    power = 0
    while is_digit(byte_at(text, q)):
        power = min(power * 10 + byte_at(text, q) - 48, MOST_EXPONENT)
        q += 1
    return (-power if sign == 45 else power), q


@inlined
def _read_mantissa(text: Any, p: Any) -> Any:
    """The first digits as a whole number, its power of ten, if some were lost, and the end.

    The end is p where there is no digit.
    """
    q, whole, n, power = p, 0, 0, 0
    has_digits = has_point = is_cut = False
    while True:
        byte = byte_at(text, q)
        if is_digit(byte):
            has_digits = True
            if n < MOST_DIGITS:
                whole = whole * 10 + byte - 48
                n += whole > 0
                power -= has_point
            else:
                is_cut |= byte != 48
                power += not has_point
        elif byte == 46 and not has_point:
            has_point = True
        else:
            break
        q += 1
    return whole, power, is_cut, q if has_digits else p


@inlined
def read_number(text: Any, start: Any, is_single: Any) -> Any:
    """The number from start on without its sign, if it is negative, its end, and the verdict.

    The grammar is `[+-] digits [. digits] [e [+-] digits]`, with a digit before or after the
    point. KNOWN values are right as float32 where `is_single`, else to the last bit.
    """
    sign = byte_at(text, start)
    is_negative = sign == 45
    first = start + 1 if is_negative or sign == 43 else start
    whole, power, is_cut, p = _read_mantissa(text, first)
    if p == first:
        return 0.0, is_negative, p, NOT_A_NUMBER
    if byte_at(text, p) == 101 or byte_at(text, p) == 69:
        exponent, end = _read_exponent(text, p)
        if end == p:
            return 0.0, is_negative, p, NOT_A_NUMBER
        p = end
        power += exponent
    number, verdict = _scaled(whole, power, is_cut, is_single)
    return number, is_negative, p, verdict
