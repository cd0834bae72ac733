"""Numbers in bytes, read eight digits at a time, to the last bit as Python reads them.

`read_number` gives a value whose float32 is `np.float32(float(text))`, or asks: w / 10^f is exact
in double arithmetic for w <= 2^53 and f <= 22 (Clinger 1990), and otherwise within 4 units in the
last place of what Python's `float` gives, so that both have the same float32 unless a rounding
boundary of float32 lies as near. Then, and near the ends of the range of float32, the verdict is
ASK and the caller calls `float`.

Text is a span of bytes with at least `PADDING` readable bytes after the last that counts: whole
words are loaded. Without the JIT a load that leaves the array is an IndexError.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from polyplane.engine.jit import inlined
from polyplane.engine.tiles import F32, I1, I8, I32, I64, NOTHING, OFFSET, SPAN, primitive, put

__all__ = [
    "ASK",
    "BLOCK",
    "EXACT",
    "KNOWN",
    "NOT_A_NUMBER",
    "PADDING",
    "POWERS",
    "STOPS_ROOM",
    "bits_of",
    "byte_at",
    "byte_bits",
    "count_bits",
    "count_byte",
    "digits",
    "digits_around",
    "ends_token",
    "first_bit",
    "is_blank",
    "is_digit",
    "is_near_boundary",
    "leading_digits",
    "list_non_digits",
    "low_bits",
    "odd_bits",
    "put_single",
    "read_number",
    "scaled",
    "separator_bits",
    "word_of",
]

PADDING = 128
BLOCK = 64
STOPS_ROOM = BLOCK  # stops are listed in groups, so that some may follow the last
KNOWN, ASK, NOT_A_NUMBER = 0, 1, 2
MOST_DIGITS = 18  # of which an int64 holds all
EXACT = 1 << 53  # whole numbers up to here are doubles
EXACT_POWER = 22  # and so are powers of ten
LEAST_POWER, MOST_POWER = -70, 40  # 10^18 times less is 0 as float32; times more is checked
MOST_EXPONENT = 1 << 40  # more digits than any line has
LEAST_SINGLE, MOST_SINGLE = 1.2e-38, 3.4e38  # inside: a normal float32, and far from its ends
POWERS = np.array([float(f"1e{power}") for power in range(-LEAST_POWER + 1)])
SWAR = (  # digits to pairs to fours to eights: each lane, times a power of ten, joins the next
    (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
    (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
    (0x0000FFFF0000FFFF, 10_000 * 2**32 + 1, 32),
)
BYTES = ir.VectorType(I8, BLOCK)
_WHITE = np.isin(np.arange(256), [*b"\t\n\r "])
_USUAL = _WHITE | np.isin(np.arange(256), [*b"0123456789:"])
INTEGER = types.int64


def _window(array: Any, start: int, size: int) -> Any:
    """Elements of an array; unlike a slice it fails where they are not all there."""
    if start < 0 or start + size > len(array):
        raise IndexError(f"{size} bytes from {start} on in an array of {len(array)}")
    return array[start : start + size]


def _load(builder: Any, pointer: Any, offset: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()), align=1)


def _every(byte: int) -> Any:
    return ir.Constant(BYTES, [byte] * BLOCK)


def _byte_bits(builder: Any, text: Any, offset: Any, byte: Any) -> Any:
    one = builder.insert_element(ir.Constant(BYTES, ir.Undefined), builder.trunc(byte, I8), I32(0))
    lanes = ir.Constant(ir.VectorType(I32, BLOCK), [0] * BLOCK)
    wanted = builder.shuffle_vector(one, one, lanes)
    equal = builder.icmp_unsigned("==", _load(builder, text, offset, BYTES), wanted)
    return builder.bitcast(equal, I64)


def _is_separator(builder: Any, here: Any) -> Any:
    is_blank = builder.icmp_unsigned("==", here, _every(32))
    is_newline = builder.icmp_unsigned("==", here, _every(10))
    is_other = builder.icmp_unsigned("==", builder.or_(here, _every(4)), _every(13))  # 9 and 13
    return builder.or_(builder.or_(is_blank, is_newline), is_other)


def _separator_bits(builder: Any, text: Any, offset: Any) -> Any:
    return builder.bitcast(_is_separator(builder, _load(builder, text, offset, BYTES)), I64)


def _odd_bits(builder: Any, text: Any, offset: Any) -> Any:
    here = _load(builder, text, offset, BYTES)
    before = _load(builder, text, builder.sub(offset, I64(1)), BYTES)
    is_number = builder.icmp_unsigned("<=", builder.sub(here, _every(48)), _every(10))  # and colons
    is_minus = builder.icmp_unsigned("==", here, _every(45))
    is_sign = builder.and_(is_minus, builder.icmp_unsigned("==", before, _every(58)))
    is_known = builder.or_(builder.or_(is_number, is_sign), _is_separator(builder, here))
    return builder.not_(builder.bitcast(is_known, I64))


def _numpy_odd_bits(text: Any, offset: int) -> int:
    here, before = _window(text, offset, BLOCK), _window(text, offset - 1, BLOCK)
    return _bits(~(_USUAL[here] | ((here == 45) & (before == 58))))


def _leading_digits(builder: Any, text: Any, offset: Any) -> Any:
    kind = ir.VectorType(I8, 8)
    here = builder.sub(_load(builder, text, offset, kind), ir.Constant(kind, [48] * 8))
    is_other = builder.icmp_unsigned(">", here, ir.Constant(kind, [9] * 8))
    return builder.zext(builder.cttz(builder.bitcast(is_other, I8), I1(0)), I64)


def _numpy_leading_digits(text: Any, offset: int) -> int:
    here = _window(text, offset, 8)
    return 8 - len(here.tobytes().lstrip(b"0123456789"))


def _bits(flags: Any) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _non_digits(builder: Any, text: Any, offset: Any) -> Any:
    here = _load(builder, text, offset, BYTES)
    before = _load(builder, text, builder.sub(offset, I64(1)), BYTES)
    is_digit = builder.icmp_unsigned("<=", builder.sub(here, _every(48)), _every(9))
    is_minus = builder.icmp_unsigned("==", here, _every(45))
    follows_colon = builder.icmp_unsigned("==", before, _every(58))
    is_sign = builder.and_(is_minus, follows_colon)
    return builder.not_(builder.bitcast(builder.or_(is_digit, is_sign), I64))


def _numpy_non_digits(text: Any, offset: int) -> int:
    here, before = _window(text, offset, BLOCK), _window(text, offset - 1, BLOCK)
    is_mark = (here - np.uint8(48) > 9) & ~((here == 45) & (before == 58))
    return _bits(is_mark)


def _digits(builder: Any, text: Any, offset: Any, n: Any) -> Any:
    unused = builder.sub(I64(64), builder.shl(n, I64(3)))
    return _sum_of_digits(builder, builder.shl(_load(builder, text, offset, I64), unused))


def _sum_of_digits(builder: Any, word: Any) -> Any:
    for mask, factor, shift in SWAR:
        word = builder.lshr(builder.mul(builder.and_(word, I64(mask)), I64(factor)), I64(shift))
    return word


def _digits_around(builder: Any, text: Any, offset: Any, k: Any, n: Any) -> Any:
    word, half = _load(builder, text, offset, I64), builder.shl(k, I64(2))
    before = builder.shl(builder.shl(I64(1), half), half)  # a shift by all 64 bits is undefined
    before = builder.sub(before, I64(1))
    after = builder.and_(builder.lshr(word, I64(8)), builder.not_(before))
    has_other = builder.zext(builder.icmp_signed("<", k, n), I64)
    unused = builder.sub(I64(64), builder.shl(builder.sub(n, has_other), I64(3)))
    word = builder.or_(builder.and_(word, before), after)
    return _sum_of_digits(builder, builder.shl(word, unused))


def _numpy_digits_around(text: Any, offset: int, k: int, n: int) -> int:
    assert 0 <= k <= n <= 8
    word = _window(text, offset, 8)[:n].tobytes()
    return int(word[:k] + word[k + 1 :])


def _numpy_digits(text: Any, offset: int, n: int) -> int:
    assert 0 < n <= 8
    return int(_window(text, offset, 8)[:n].tobytes())


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
# the four bytes from i on, as little-endian machines see them
word_of = primitive(
    INTEGER,
    (SPAN, OFFSET),
    lambda b, text, i: b.zext(_load(b, text, i, I32), I64),
    lambda text, i: int.from_bytes(_window(text, i, 4).tobytes(), "little"),
)
# which of the 64 bytes from i on are this one, or white space, as bits
byte_bits = primitive(
    INTEGER,
    (SPAN, OFFSET, INTEGER),
    _byte_bits,
    lambda text, i, byte: _bits(_window(text, i, BLOCK) == byte),
)
separator_bits = primitive(
    INTEGER,
    (SPAN, OFFSET),
    _separator_bits,
    lambda text, i: _bits(_WHITE[_window(text, i, BLOCK)]),
)
# which of the 64 bytes from i on are neither digits nor a minus after a colon, as bits
non_digits = primitive(INTEGER, (SPAN, OFFSET), _non_digits, _numpy_non_digits)
# how many of the 8 bytes from i on are digits, up to the first that is none
leading_digits = primitive(INTEGER, (SPAN, OFFSET), _leading_digits, _numpy_leading_digits)
# which are no whole numbers, colons, minuses after colons, or white space
odd_bits = primitive(INTEGER, (SPAN, OFFSET), _odd_bits, _numpy_odd_bits)
# the number in the n bytes from i on, all digits; n is 1 to 8
digits = primitive(INTEGER, (SPAN, OFFSET, INTEGER), _digits, _numpy_digits)
# the number in the n bytes from i on, of which the k-th is left out if k < n; up to 8, not all
digits_around = primitive(
    INTEGER, (SPAN, OFFSET, INTEGER, INTEGER), _digits_around, _numpy_digits_around
)
first_bit = primitive(
    INTEGER,
    (INTEGER,),
    lambda b, mask: b.cttz(mask, I1(0)),
    lambda mask: int(mask & -mask).bit_length() - 1 if mask else BLOCK,
)
count_bits = primitive(
    INTEGER, (INTEGER,), lambda b, mask: b.ctpop(mask), lambda mask: mask.bit_count()
)
# the lowest n bits are set, n below 64
low_bits = primitive(
    INTEGER,
    (INTEGER,),
    lambda b, n: b.sub(b.shl(I64(1), n), I64(1)),
    lambda n: (1 << int(n)) - 1,
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
def count_byte(text: Any, i: Any, byte: Any) -> Any:
    return count_bits(byte_bits(text, i, byte))


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
def is_near_boundary(number: Any) -> Any:
    """True within 4 units in the last place of a double between two neighbours in float32."""
    return ((bits_of(number) + 4 - (1 << 28)) & ((1 << 29) - 1)) <= 8


@inlined
def list_non_digits(text: Any, start: Any, end: Any, stops: Any) -> Any:
    """Write where the bytes from start to end that end a number stand; return how many."""
    n = 0
    for block in range(start, end, BLOCK):
        mask = non_digits(text, block)
        total = count_bits(mask)
        for group in range(n, n + total, 8):
            for k in range(8):
                put(stops, group + k, np.int32(block + first_bit(mask)))
                mask &= mask - 1
        n += total
    return n


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
def scaled(whole: Any, power: Any, is_cut: Any, is_single: Any) -> Any:
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
    return number, KNOWN if is_inside and not is_near_boundary(number) else ASK


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
    number, verdict = scaled(whole, power, is_cut, is_single)
    return number, is_negative, p, verdict
