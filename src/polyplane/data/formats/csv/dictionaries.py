"""The different texts of columns, numbered as they are met while text is read.

Each column has a table with open addressing: a slot holds the number of a text, or `EMPTY`. Texts
of all columns stand in one pool of bytes, one after the other; of each the first sixteen bytes are
kept beside it, so that most are compared without it. A table starts with `MISSING_TEXTS`,
whose numbers are below those that count.

A full table, or a full pool, stops the reading: its owner makes room and goes on.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import types

from polyplane.data.chunks import Array
from polyplane.data.formats.text.numbers import PADDING, byte_at
from polyplane.data.table.texts import MISSING_TEXTS
from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import I64, NOTHING, OFFSET, SPAN, at, primitive, put, shifted, span

__all__ = [
    "FULL", "NOT_ASCII", "N_MISSING", "ODD_EDGES", "PLAIN", "Dictionaries", "Tables", "number_of",
    "opened", "word_at",
]  # fmt: skip

WORD, TWO_WORDS = 8, 16  # bytes
EMPTY, FULL = -1, -2
N_MISSING = len(MISSING_TEXTS)
FIRST_SLOTS = 2048  # of a column; half of them may be taken, and few of them meet
GROWTH = 8
MANY = 1 << 12  # texts of a column, which are forgotten after a block
MOST_BYTES = 1 << 30  # of all texts before a block, and far more than one has; Arrow takes twice
FIRST_POOL = 1 << 16  # bytes; those that are not used cost nothing
FACTOR = 0x9E3779B97F4A7C15  # odd, its bits as good as random: 2^64 over the golden ratio
MIXED_WELL = 34  # bits from here on; of yes, no, true and their like none meets a missing text
ALL_BITS = (1 << 64) - 1
BLANK = 32
HIGH_BITS = 0x8080808080808080 - (1 << 64)  # of bytes that are not ASCII, as a signed word
PLAIN, ODD_EDGES, NOT_ASCII = 0, 1, 2  # what is known of the texts of a column, the worst of them
INTEGER = types.int64


class Tables(NamedTuple):
    """The tables of some columns: slots of column k from `starts[k]` on, and half as many texts."""

    slots: Array
    starts: Array  # and the end
    words: Array  # the first sixteen bytes of each text as two words, 0 behind shorter ones
    offsets: Array  # of texts in the pool
    lengths: Array
    counts: Array  # texts of each column, with those that are missing
    oddness: Array  # of each column: PLAIN, ODD_EDGES or NOT_ASCII
    pool: Array
    n_used: Array  # bytes of the pool
    hash_bits: int  # which bits of a hash count: all, but in tests


def _signed(number: int) -> int:
    number &= ALL_BITS
    return number - (1 << 64) if number >> 63 else number


def _word_at(builder: Any, text: Any, offset: Any, n: Any) -> Any:
    pointer = builder.bitcast(builder.gep(text, [offset]), I64.as_pointer())
    word = builder.load(pointer, align=1)
    kept = builder.sub(builder.shl(I64(1), builder.shl(n, I64(3))), I64(1))
    first = builder.select(builder.icmp_signed(">", n, I64(0)), builder.and_(word, kept), I64(0))
    return builder.select(builder.icmp_signed(">=", n, I64(WORD)), word, first)


def _numpy_word_at(text: Any, offset: int, n: int) -> int:
    if offset < 0 or offset + WORD > len(text):
        raise IndexError(f"a word from {offset} on in an array of {len(text)}")
    kept = text[offset : offset + min(max(n, 0), WORD)].tobytes()
    return int.from_bytes(kept, "little", signed=n >= WORD)


def _put_word(builder: Any, text: Any, offset: Any, word: Any) -> None:
    pointer = builder.bitcast(builder.gep(text, [offset]), I64.as_pointer())
    builder.store(word, pointer, align=1)


def _numpy_put_word(text: Any, offset: int, word: int) -> None:
    if offset < 0 or offset + WORD > len(text):
        raise IndexError(f"a word from {offset} on in an array of {len(text)}")
    text[offset : offset + WORD] = list(int(word).to_bytes(WORD, "little", signed=True))


def _mixed(builder: Any, number: Any, word: Any) -> Any:
    product = builder.mul(builder.xor(number, word), I64(FACTOR))  # wraps around
    return builder.xor(product, builder.lshr(product, I64(32)))


def _numpy_mixed(number: int, word: int) -> int:
    product = ((int(number) ^ int(word)) * FACTOR) & ALL_BITS
    return _signed(product ^ (product >> 32))


# the eight bytes from i on, those from the n-th on as 0; n may be negative
word_at = primitive(INTEGER, (SPAN, OFFSET, INTEGER), _word_at, _numpy_word_at)
put_word = primitive(NOTHING, (SPAN, OFFSET, INTEGER), _put_word, _numpy_put_word)
mixed = primitive(INTEGER, (INTEGER, INTEGER), _mixed, _numpy_mixed)


@inlined
def _hash_of(text: Any, start: Any, n: Any) -> Any:
    number = mixed(mixed(word_at(text, start + WORD, n - WORD), 0), word_at(text, start, n))
    for k in range(TWO_WORDS, n, WORD):
        number = mixed(number, word_at(text, start + k, n - k))
    return number >> MIXED_WELL


@inlined
def _is_same(text: Any, start: Any, n: Any, column: Any, number: Any) -> Any:
    """Whether texts whose first two words are equal are so beyond these.

    Two words that a text does not fill tell all of it, for no text has a NUL byte in it.
    """
    if at(column.lengths, number) != n:
        return False
    offset = at(column.offsets, number)
    for k in range(TWO_WORDS, n, WORD):
        if word_at(text, start + k, n - k) != word_at(column.pool, offset + k, n - k):
            return False
    return True


class _Column(NamedTuple):
    """The table of one column as spans: arrays in a tuple are slow in loops."""

    place: int
    slots: Any
    last: int  # slot
    words: Any
    offsets: Any
    lengths: Any
    counts: Any
    oddness: Any
    pool: Any
    n_pool: int
    n_used: Any
    hash_bits: int


@inlined
def opened(tables: Any, column: Any) -> Any:
    """The table of a column, for `number_of`."""
    first = tables.starts[column]
    return _Column(
        column,
        shifted(span(tables.slots), first),
        tables.starts[column + 1] - first - 1,
        shifted(span(tables.words), first),
        shifted(span(tables.offsets), first >> 1),
        shifted(span(tables.lengths), first >> 1),
        span(tables.counts),
        span(tables.oddness),
        span(tables.pool),
        tables.pool.size,
        span(tables.n_used),
        tables.hash_bits,
    )


@inlined
def number_of(text: Any, start: Any, n: Any, column: Any) -> Any:
    """The number of the `n` bytes from `start` on; a new text gets one, or FULL without room."""
    word, next_word = word_at(text, start, n), word_at(text, start + WORD, n - WORD)
    slot = _hash_of(text, start, n) & column.hash_bits & column.last
    while True:
        number = np.int64(at(column.slots, slot))
        if number == EMPTY:
            return _added(text, start, n, column, slot)
        if (
            at(column.words, 2 * number) == word
            and at(column.words, 2 * number + 1) == next_word
            and (n < TWO_WORDS or _is_same(text, start, n, column, number))
        ):
            return number
        slot = (slot + 1) & column.last


@inlined
def _added(text: Any, start: Any, n: Any, column: Any, slot: Any) -> Any:
    """Give a new text a number, and write it to the pool."""
    number, used = at(column.counts, column.place), at(column.n_used, 0)
    if 2 * number > column.last or used + n + PADDING > column.n_pool:
        return np.int64(FULL)
    oddness, high_bits = at(column.oddness, column.place), 0
    for k in range(0, n, WORD):
        word = word_at(text, start + k, n - k)
        put_word(column.pool, used + k, word)
        high_bits |= word & HIGH_BITS
    if high_bits:
        oddness = np.int64(NOT_ASCII)
    if n > 0 and min(byte_at(text, start), byte_at(text, start + n - 1)) <= BLANK:
        oddness = max(oddness, np.int64(ODD_EDGES))
    put(column.words, 2 * number, word_at(text, start, n))
    put(column.words, 2 * number + 1, word_at(text, start + WORD, n - WORD))
    put(column.lengths, number, n)
    put(column.offsets, number, used)
    put(column.slots, slot, np.int32(number))
    put(column.counts, column.place, number + 1)
    put(column.n_used, 0, used + n)
    put(column.oddness, column.place, oddness)
    return number


@jit
def _enter(text: Any, starts: Any, tables: Any) -> None:
    """Enter the same texts into every column."""
    source = span(text)
    for k in range(tables.counts.size):
        column = opened(tables, k)
        for i in range(starts.size - 1):
            number_of(source, starts[i], starts[i + 1] - starts[i], column)


@jit
def _refill(old: Any, n_kept: Any, new: Any) -> None:
    """Enter the first texts of each column into other tables, in their order."""
    source = span(old.pool)
    for k in range(n_kept.size):
        column, first = opened(new, k), old.starts[k] >> 1
        for i in range(first, first + n_kept[k]):
            number_of(source, old.offsets[i], old.lengths[i], column)


@jit
def _gather(tables: Any, first: Any, starts: Any, out: Any) -> None:
    """Copy the texts of each column from the first on, one after the other, word by word."""
    pool, target = span(tables.pool), span(out)
    n = place = 0
    for k in range(tables.counts.size):
        base = tables.starts[k] >> 1
        for i in range(base + first, base + tables.counts[k]):
            offset, length = tables.offsets[i], tables.lengths[i]
            for k in range(0, length, WORD):
                put_word(target, n + k, word_at(pool, offset + k, length - k))
            n += length
            place += 1
            starts[place] = n


def _empty_tables(n_slots: Array | Sequence[int], n_pool: int, hash_bits: int) -> Tables:
    starts = np.concatenate([[0], np.cumsum(n_slots)]).astype(np.int64)
    n_texts, n_columns = int(starts[-1]) // 2, len(n_slots)
    return Tables(
        np.full(starts[-1], EMPTY, np.int32),
        starts,
        np.empty(2 * n_texts, np.int64),
        np.empty(n_texts, np.int64),
        np.empty(n_texts, np.int64),
        np.zeros(n_columns, np.int64),
        np.zeros(n_columns, np.int64),
        np.empty(n_pool + PADDING, np.uint8),
        np.zeros(1, np.int64),
        hash_bits,
    )


class Dictionaries:
    """The tables of some columns, and their texts as Arrow arrays."""

    def __init__(self, n_columns: int, hash_bits: int = -1) -> None:
        encoded = [text.encode() for text in MISSING_TEXTS]
        text = np.frombuffer(b"".join(encoded) + bytes(PADDING), np.uint8)
        starts = np.cumsum([0, *map(len, encoded)])
        n_pool = FIRST_POOL + n_columns * int(starts[-1])
        self.tables = _empty_tables([FIRST_SLOTS] * n_columns, n_pool, hash_bits)
        self._values: list[Any] = []
        _enter(text, starts, self.tables)

    def make_room(self, column: int) -> None:
        """More of it where a column had none, be it for numbers or for bytes."""
        tables = self.tables
        n_slots, n_pool = np.diff(tables.starts), tables.pool.size
        if 2 * tables.counts[column] >= n_slots[column]:
            n_slots[column] *= GROWTH
            n_pool = max(n_pool, GROWTH * int(tables.n_used[0]))  # as many more bytes will come
        else:
            n_pool *= GROWTH
        self._move(n_slots, n_pool, tables.counts)

    def forget_many(self) -> None:
        """Empty tables of many texts, so that memory is not that of all blocks."""
        counts = self.tables.counts
        is_large = counts > (MANY if self.tables.n_used[0] < MOST_BYTES else N_MISSING)
        if is_large.any():
            n_slots = np.where(is_large, FIRST_SLOTS, np.diff(self.tables.starts))
            self._move(n_slots, FIRST_POOL, np.where(is_large, N_MISSING, counts))
            self._values = []

    def _move(self, n_slots: Array, n_pool: int, n_kept: Array) -> None:
        """Take the first texts of each column to other tables."""
        old = self.tables
        n_pool = max(n_pool, int(old.n_used[0]) + PADDING)
        self.tables = _empty_tables(n_slots, n_pool, old.hash_bits)
        _refill(old, n_kept, self.tables)

    def values(self) -> list[Any]:
        """The texts of each column as an Arrow array, without those that are missing."""
        n_texts = (self.tables.counts - N_MISSING).tolist()
        if n_texts != [len(known) for known in self._values]:
            edges = [0, *accumulate(n_texts)]
            starts = np.zeros(edges[-1] + 1, np.int32)
            out = np.empty(int(self.tables.n_used[0]) + WORD, np.uint8)
            _gather(self.tables, N_MISSING, starts, out)
            buffers = pa.py_buffer(starts), pa.py_buffer(out)
            together = pa.StringArray.from_buffers(edges[-1], *buffers)
            both = zip(edges, n_texts, strict=False)
            self._values = [together.slice(start, n) for start, n in both]
        return self._values

    def has(self, byte: bytes) -> bool:
        """Whether that byte is in any text."""
        n_used = int(self.tables.n_used[0])
        return byte in self.tables.pool[:n_used].tobytes()

    def oddness(self) -> list[int]:
        """Whether texts of each column are PLAIN, have ODD_EDGES, or are NOT_ASCII."""
        found: list[int] = self.tables.oddness.tolist()
        return found
