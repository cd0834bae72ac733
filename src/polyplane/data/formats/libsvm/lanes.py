"""Eight entries of LIBSVM text at a time, read without a branch.

An entry is known by its colon. The bytes before it are the index, those after it the value: each
is loaded as a word of 4 or 8 bytes, or as several, and `(stops - 1) & ~stops` masks the digits
before the first byte that is none. Digits that start a word are a number times a power of ten,
which a word with a 1 in place of the last digit gives; their quotient is the double that Python
reads where both are exact (Clinger 1990), and else near enough, or doubtful, as in `number_text`.
A point is taken out by shifting the bytes after it.

Each word stores what it reads of the entries whose colons are at `colons[i]` and after, and returns
a mask: lanes that it cannot read, and above these, lanes with a point, an exponent, its sign.
"""

from typing import Any, NamedTuple

from numba import types

from polyplane.data.formats.libsvm.vectors import LANES, on_lanes
from polyplane.engine.tiles import OFFSET, SPAN

__all__ = [
    "LANES",
    "put_columns",
    "put_decimals",
    "put_exponentials",
    "put_long_decimals",
    "put_ones",
    "put_short_values",
    "put_wide_columns",
]

BLANK, PLUS, MINUS, ONE = b" +-1"
EXACT = 2.0**53  # whole numbers below are doubles
ULPS, MORE_ULPS = 8, 16  # more than rounding can have added without and with an exponent
PLACES = 1e8, 1e6  # of the second and the third word
MOST_EXPONENT = 15  # so that no number leaves the range of float32


def _columns(
    m: Any, n_bytes: int, text: Any, colons: Any, i: Any, columns: Any, entry: Any, base: Any,
    previous: Any,
) -> Any:  # fmt: skip
    """Store the columns of the entries; return which are none or do not rise.

    Indices have fewer digits than a word has bytes.
    """
    words = m.words(text, colons, i, -n_bytes, n_bytes)
    stops = m.non_digits(words)
    is_wrong = (stops == 0) | (stops >> 8 * (n_bytes - 1) != 0)
    for shift in (8, 16, 32)[: n_bytes // 4 + 1]:
        stops = stops | stops >> shift
    columns_found = m.number(words & ~stops) - m.splat(base)
    m.store(columns, entry, columns_found)
    return m.mask(is_wrong | ~m.rises(columns_found, previous))


def _first_stop(m: Any, word: Any) -> Any:
    """Masks of the digits that start a word and of the byte after them, 0 if that is not in it."""
    stops = m.non_digits(word)
    digits = (stops - 1) & ~stops
    return digits, digits ^ (digits << 8 | 0xFF)


def _next_bytes(words: Any) -> Any:
    """The same text from one byte further on; the last byte is neither digit nor white."""
    following = [*(word << 56 for word in words[1:]), 0xFF << 56]
    return [a >> 8 | b for a, b in zip(words, following, strict=True)]


def _without_sign(m: Any, words: Any) -> Any:
    """Whether there is a minus, and the words without it."""
    is_negative = (words[0] & 0xFF) == MINUS
    pairs = zip(_next_bytes(words), words, strict=True)
    return is_negative, [m.select(is_negative, after, word) for after, word in pairs]


def _power_after(digits: Any) -> Any:
    """A 1 in place of the last of the digits: as a number, the power of ten that follows them."""
    return (digits >> 8) + 1


def _put_signed(m: Any, values: Any, entry: Any, number: Any, is_negative: Any) -> None:
    """Store floats that are not negative with their signs: minus zero stays minus zero."""
    bits = m.low_bits_of(number)
    m.store(values, entry, m.select(is_negative, bits | 1 << 31, bits))


def _ones(m: Any, text: Any, colons: Any, i: Any, values: Any, entry: Any) -> Any:
    """Store ones; return which values are something else."""
    word = m.words(text, colons, i, 1, 2)
    m.store(values, entry, m.ones(32))
    return m.mask(((word & 0xFF) != ONE) | (word >> 8 > BLANK))


def _short_values(m: Any, text: Any, colons: Any, i: Any, values: Any, entry: Any) -> Any:
    """Store whole numbers of less than four bytes; return which are none."""
    word = m.words(text, colons, i, 1, 4)
    is_negative = (word & 0xFF) == MINUS
    word = m.select(is_negative, word >> 8 | 0xFF << 24, word)
    digits, stop = _first_stop(m, word)
    is_wrong = (stop == 0) | (digits == 0) | ((m.white(word) & stop) != stop)
    to_the_end = m.reversed_bytes(_power_after(digits))  # what moves the last digit there
    number = m.floats(m.number((word & digits) * to_the_end), 32)
    _put_signed(m, values, entry, number, is_negative)
    return m.mask(is_wrong)


class _Mantissas(NamedTuple):
    """Digits with or without a point among them."""

    total: Any  # all digits as one whole number, with zeros after them
    power: Any  # ten to how many of these follow the point
    is_negative: Any
    has_point: Any
    is_wrong: Any
    ends_white: Any
    ends_in_e: Any
    n_bytes: Any


def _without_point(m: Any, words: Any) -> Any:
    """Whether there is a point in the first word, the words without it, the digits before it."""
    whole, point = _first_stop(m, words[0])
    has_point = ((words[0] ^ _eight(b".")) & point) == 0
    after = _next_bytes(words)
    after[0] = after[0] & ~whole | words[0] & whole
    pairs = zip(after, words, strict=True)
    return has_point, [m.select(has_point, other, word) for other, word in pairs], whole


def _mantissas(m: Any, words: Any) -> _Mantissas:
    """What starts the words, which are two or three of 8 bytes.

    Of a third word 6 digits count: ten to the 22nd is the largest power that is a double.
    """
    is_negative, words = _without_sign(m, words)
    has_point, words, whole = _without_point(m, words)
    is_wrong = (whole == 0) | (whole >> 56 != 0)
    last = last_place = counted = whole & 0
    numbers = []
    for k, word in enumerate(words):
        digits, stop = _first_stop(m, word)
        if k > 0:
            goes_on = last_place == 0
            digits, stop = m.select(goes_on, digits, 0), m.select(goes_on, stop, 0)
        numbers.append(m.floats(m.number((word & digits) << (16 if k == 2 else 0)), 64))
        last, last_place = last | word & stop, last_place | stop
        counted = counted | digits & _eight(bytes([1 << k]))
    total, power = numbers[0], m.floats(m.number(_power_after(whole)), 64)
    for number, places in zip(numbers[1:], PLACES, strict=False):
        total, power = total * places + number, power * places
    if len(words) == 3:
        is_wrong = is_wrong | (digits >> 48 != 0)
    ends_white = (m.white(last) & last_place) != 0
    letter = (last | _eight(b" ")) ^ _eight(b"e")
    ends_in_e = (last_place != 0) & ((letter & last_place) == 0)
    n_bytes = m.count_ones(counted) + m.numbers(is_negative) + m.numbers(has_point)
    return _Mantissas(
        total, power, is_negative, has_point, is_wrong, ends_white, ends_in_e, n_bytes
    )


def _eight(byte: bytes) -> int:
    return int.from_bytes(byte * 8, "little")


def _is_near(m: Any, number: Any, ulps: int) -> Any:
    """True so near to the middle between two neighbours in float32."""
    shifted = m.low_bits_of(number) + (2**32 + ulps - 2**28)
    return (shifted & (2**29 - 1)) <= 2 * ulps


def _decimals(m: Any, n_words: int, text: Any, colons: Any, i: Any, values: Any, entry: Any) -> Any:
    """Store numbers with or without points; return which cannot be read, and which have points."""
    words = [m.words(text, colons, i, 1 + 8 * k, 8) for k in range(n_words)]
    found = _mantissas(m, words)
    number = found.total / found.power
    is_doubtful = (found.total >= EXACT) & _is_near(m, number, ULPS)
    _put_signed(m, values, entry, m.floats(number, 32), found.is_negative)
    return m.mask(found.is_wrong | ~found.ends_white | is_doubtful, found.has_point)


def _exponents(m: Any, word: Any) -> Any:
    """Powers of ten that start a word: their size, whether less than 1, signed, cannot be read."""
    is_less = (word & 0xFF) == MINUS
    is_signed = is_less | ((word & 0xFF) == PLUS)
    word = m.select(is_signed, word >> 8, word)
    digits, stop = _first_stop(m, word)
    has_two = digits == 0xFFFF
    exponent = m.select(has_two, (word & 15) * 10 + (word >> 8 & 15), word & 15)
    is_wrong = (
        ~(has_two | (digits == 0xFF)) | ((m.white(word) & stop) == 0) | (exponent > MOST_EXPONENT)
    )
    return exponent, is_less, is_signed, is_wrong


def _exponentials(m: Any, text: Any, colons: Any, i: Any, values: Any, entry: Any) -> Any:
    """Like `_decimals`, with exponents: return also which have one, and which of them a sign."""
    found = _mantissas(m, [m.words(text, colons, i, 1 + 8 * k, 8) for k in range(3)])
    has_exponent = found.ends_in_e
    exponent, is_less, is_signed, is_wrong = _exponents(
        m, m.words(text, colons, i, found.n_bytes + 2, 4)
    )
    exponent = m.select(has_exponent, exponent, 0)
    total, power, one = found.total, found.power, m.ones(64)
    factors = [m.select((exponent & 1 << k) != 0, one * 10.0 ** (1 << k), one) for k in range(4)]
    size = (factors[0] * factors[1]) * (factors[2] * factors[3])
    number = (total * m.select(is_less, one, size)) / (power * m.select(is_less, size, one))
    is_doubtful = ((total >= EXACT) | has_exponent) & _is_near(m, number, MORE_ULPS)
    is_wrong = found.is_wrong | is_doubtful | (has_exponent & is_wrong)
    is_wrong = is_wrong | ~(found.ends_white | has_exponent)
    _put_signed(m, values, entry, m.floats(number, 32), found.is_negative)
    return m.mask(is_wrong, found.has_point, has_exponent, has_exponent & is_signed)


COLUMNS = types.int64, (SPAN, SPAN, OFFSET, SPAN, OFFSET, types.int64, types.int64)
VALUES = types.int64, (SPAN, SPAN, OFFSET, SPAN, OFFSET)
put_columns = on_lanes(*COLUMNS, lambda m, *given: _columns(m, 4, *given))
put_wide_columns = on_lanes(*COLUMNS, lambda m, *given: _columns(m, 8, *given))
put_ones = on_lanes(*VALUES, _ones)
put_short_values = on_lanes(*VALUES, _short_values)
put_decimals = on_lanes(*VALUES, lambda m, *given: _decimals(m, 2, *given))
put_long_decimals = on_lanes(*VALUES, lambda m, *given: _decimals(m, 3, *given))
put_exponentials = on_lanes(*VALUES, _exponentials)
