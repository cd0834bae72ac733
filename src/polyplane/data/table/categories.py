"""Pairs of a column and a value as columns of X: one for each pair, or a fixed number by hashing.

One-hot   every pair has a column of X that is 1 where the value stands. Pairs are numbered as they
          are first met, row by row and from left to right, and a new one is appended, so earlier
          numbers never move and do not depend on the size of chunks.
Hashing   the pair's CRC-32 modulo `n_hash` is its column: nothing to remember, and different
          values may share a column.
Missing   is a value of its own, where rows without a value are kept.
Rest      the values that are rare, or more than can be held, share one pair; values that are new
          to frozen categories stand there too, if there is such a pair, and else set no column.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.data.table.texts import (
    NONE,
    Texts,
    arrow_of,
    codes_of,
    strings_of,
    words_of,
)

__all__ = [
    "MISSING", "MOST_CATEGORIES", "MOST_OF_A_COLUMN", "REST", "VALUE", "WORD", "Categories",
    "Facet", "Pair", "WordFacet", "common", "word_facet",
]  # fmt: skip

VALUE, MISSING, REST, WORD = "value", "missing", "rest", "word"  # what a pair says of its column
MOST_CATEGORIES = 1 << 16  # of all columns; what comes later is the rest of its column
MOST_OF_A_COLUMN = 1 << 12  # learned from a whole table: the most frequent ones
MAX_VALUES_LOOKED_UP_SINGLY = 64  # values that are looked up one by one


class Pair(NamedTuple):
    """A source, and what its cells may say."""

    source: str
    what: str  # VALUE, MISSING, REST, WORD, or a part of a date
    value: str = ""

    @property
    def name(self) -> str:
        """Return the name of the column of X."""
        if self.what == VALUE:
            return f"{self.source}={self.value}"
        return f"{self.source} {self.what}" + (f"={self.value}" if self.value else "")


class Facet(NamedTuple):
    """One thing that each row says about a source, at most."""

    source: str
    what: str
    texts: Texts
    tells_missing: bool = False  # rows without a value say that

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.texts.codes.size)

    @property
    def values(self) -> Any:
        """Return the texts that rows may have."""
        return self.texts.values

    def first_rows(self) -> Array:
        """Where each value is first met, and last of all no value; the number of rows if never."""
        return self.texts.first_rows

    def counts(self) -> Array:
        """Rows of each value."""
        return self.texts.counts


class WordFacet(NamedTuple):
    """The words of each row: several things that it says about a source."""

    source: str
    what: str
    words: Texts  # their codes follow each other, each word once in a text
    starts: Array  # of each different text
    codes: Array  # the text of each row
    tells_missing: bool = False

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.codes.size)

    @property
    def values(self) -> Any:
        """All words."""
        return self.words.values

    def first_rows(self) -> Array:
        """Where each word is first met, and last of all no text."""
        n_texts = self.starts.size - 1
        of_texts = Texts(range(n_texts), self.codes).first_rows
        found = np.full(len(self.values) + 1, self.codes.size)
        lengths = np.diff(self.starts)
        np.minimum.at(found, self.words.codes, np.repeat(of_texts[:-1], lengths))
        found[-1] = of_texts[-1]
        return found

    def counts(self) -> Array:
        """Rows in which each word stands."""
        n_rows = np.bincount(self.codes[self.codes != NONE], minlength=self.starts.size - 1)
        weights = np.repeat(n_rows, np.diff(self.starts))
        counts = np.bincount(self.words.codes, weights, minlength=len(self.values))
        return counts.astype(np.int64)

    def entries(self, table: Array) -> tuple[Array, Array]:
        """Where the entries of each row start, and the columns that are 1 for its words."""
        lengths = np.append(np.diff(self.starts), 0)[self.codes]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        shifts = np.append(self.starts[:-1], 0)[self.codes] - starts[:-1]
        places = np.repeat(shifts, lengths) + np.arange(starts[-1])
        return starts, table[self.words.codes[places]].astype(np.int32)


def word_facet(source: str, texts: Texts) -> WordFacet:
    """The words of a column of texts."""
    words, starts = words_of(texts)
    text_of = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    is_word = words.codes != NONE
    n_words = max(len(words.values), 1)
    once = np.unique(text_of[is_word] * n_words + words.codes[is_word])
    lengths = np.bincount(once // n_words, minlength=starts.size - 1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    own = Texts(words.values, (once % n_words).astype(np.int32))
    return WordFacet(source, WORD, own, starts, texts.codes)


def common(facet: Facet | WordFacet, rare: int) -> Array:
    """True for values of more than `rare` rows, if they are among the most frequent."""
    counts = facet.counts()
    is_common: Array = counts > rare
    if np.count_nonzero(is_common) > MOST_OF_A_COLUMN:
        order = np.lexsort([facet.first_rows()[:-1], -counts])
        is_common[order[MOST_OF_A_COLUMN:]] = False
    return is_common


@dataclass
class Categories:
    """The columns of pairs: numbered from 0, grown by what is read unless it is frozen."""

    n_hash: int = 0  # 0 is one-hot
    is_frozen: bool = False  # then new values are the rest
    numbers: dict[Pair, int] = field(default_factory=dict)  # of one-hot columns
    _known: dict[tuple[str, str], dict[str, int]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    def known(self) -> dict[tuple[str, str], dict[str, int]]:
        """The numbers of values by source and what is said of it, put in order when first asked.

        Threads that ask at once must never see a part of it: it is kept when it is whole.
        """
        if self._known is not None:
            return self._known
        known: dict[tuple[str, str], dict[str, int]] = {}
        for pair, number in self.numbers.items():
            known.setdefault(pair[:2], {})[pair.value] = number
        self._known = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Without what follows from the numbers: whether somebody has asked changes nothing."""
        return {name: value for name, value in vars(self).items() if name != "_known"}

    @property
    def width(self) -> int:
        """Return the number of columns that there are by now."""
        return self.n_hash or len(self.numbers)

    def copied(self) -> "Categories":
        """Return a copy, to grow by itself."""
        return Categories(self.n_hash, self.is_frozen, dict(self.numbers))

    def number_of(self, pair: Pair) -> int:
        """The column of a pair, or `NONE`."""
        if self.n_hash:
            return zlib.crc32(pair.name.encode()) % self.n_hash
        return self.known.get(pair[:2], {}).get(pair.value, NONE)

    def table_of(self, facet: Facet | WordFacet) -> Array:
        """The column of each value of a facet, and last of all that of no value."""
        rest = NONE
        if not self.n_hash and facet.what == VALUE:
            rest = self.number_of(Pair(facet.source, REST))
        table = np.empty(len(facet.values) + 1, np.int32)
        table[:-1] = self._places(facet)
        table[table == NONE] = rest
        table[-1] = self.number_of(Pair(facet.source, MISSING)) if facet.tells_missing else NONE
        return table

    def _places(self, facet: Facet | WordFacet) -> Array:
        """The column of each value, `NONE` for those without one of their own."""
        values = facet.values
        if self.n_hash:
            pairs = (Pair(facet.source, facet.what, value) for value in values.to_pylist())
            return np.array([self.number_of(pair) for pair in pairs], np.int64)
        known = self.known.get((facet.source, facet.what), {})
        if len(values) <= MAX_VALUES_LOOKED_UP_SINGLY or not known:
            few = [known.get(value, NONE) for value in values.to_pylist()] if known else NONE
            return np.full(len(values), few, np.int64)
        places = pc.index_in(values, value_set=strings_of(list(known)))
        numbers = np.array([*known.values(), NONE], np.int64)
        return numbers[codes_of(places)]

    def meet(
        self,
        facets: Sequence[Facet | WordFacet],
        are_common: Sequence[Array | None] | None = None,
    ) -> None:
        """Number the pairs that are new, in the order in which they are met.

        Values that are not common get no pair of their own.
        """
        if self.n_hash or self.is_frozen:
            return
        met: list[tuple[int, int, Pair]] = []
        for place, facet in enumerate(facets):
            is_common = None if are_common is None else are_common[place]
            met += [(row, place, pair) for row, pair in self._new_pairs(facet, is_common)]
        n_left = MOST_CATEGORIES - len(self.numbers)
        for n_met, (_, _, pair) in enumerate(sorted(met)):
            if n_met < n_left or pair.what not in (VALUE, WORD):
                self.add(pair)
            elif pair.what == VALUE:
                self.add(Pair(pair.source, REST))

    def add(self, pair: Pair) -> None:
        """Give a pair a column, unless it has one."""
        known = self.known  # before there is one more
        number = self.numbers.setdefault(pair, len(self.numbers))
        known.setdefault(pair[:2], {})[pair.value] = number

    def _new_pairs(
        self, facet: Facet | WordFacet, is_common: Array | None
    ) -> list[tuple[int, Pair]]:
        source, what = facet.source, facet.what
        first_rows = facet.first_rows()
        is_used = first_rows < facet.n_rows
        no_value, is_used = bool(is_used[-1]), is_used[:-1]
        is_own = is_used if is_common is None else is_used & is_common
        new = np.flatnonzero(is_own & (self._places(facet) == NONE))
        values = facet.values
        if new.size < len(values):
            values = values.take(arrow_of(new))
        met = [
            (row, Pair(source, what, value))
            for row, value in zip(first_rows[new].tolist(), values.to_pylist(), strict=True)
        ]
        others = first_rows[:-1][is_used & ~is_own]
        if what == VALUE and others.size:
            met.append((int(others.min()), Pair(source, REST)))
        if facet.tells_missing and no_value:
            met.append((int(first_rows[-1]), Pair(source, MISSING)))
        known = self.numbers
        return [(row, pair) for row, pair in met if pair not in known]
