"""Text values as columns of their own: one for each value, or a fixed number by hashing.

One-hot   every pair of source column and value has a column that is 1 where the value stands.
          Pairs are numbered as they are first met, row by row and from left to right, and a new
          one is appended, so earlier numbers never move and do not depend on the size of chunks.
Hashing   the pair's CRC-32 modulo `n_hash` is its column: nothing to remember, and different
          values may share a column.
Missing   spaces around a value don't count; no value, and those of `MISSING_TEXTS`, set no column.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array, DataError

__all__ = ["MISSING_TEXTS", "MOST_CATEGORIES", "NONE", "Categories", "Texts", "texts_of"]

MISSING_TEXTS = (
    *("", "?", "#N/A", "N/A", "n/a", "NA", "na", "NaN", "nan", "NAN", "-nan", "-NaN"),
    *("NULL", "null", "Null"),
)
MOST_CATEGORIES = 1 << 16  # one-hot; more values than that are names or numbers of rows
# read by compiled code
NONE = -1  # code of a row without a value


class Texts(NamedTuple):
    """A column of text: its different values, and which of them each row has, or `NONE`."""

    values: list[str | None]
    codes: Array

    def kept(self, keep: Array) -> "Texts":
        """The rows for which `keep` is true."""
        return Texts(self.values, self.codes[keep])


def texts_of(column: Any) -> Texts:
    """An Arrow array of any type as text, missing values marked."""
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(pc.cast(column, pa.string()))
    stripped = [_stripped(value) for value in pc.cast(column.dictionary, pa.string()).to_pylist()]
    values = [None if value in MISSING_TEXTS else value for value in stripped]
    codes = _codes_of(pc.cast(column.indices, pa.int64()))
    is_present = np.array([value is not None for value in values] + [False])  # NONE reads the last
    return Texts(values, np.where(is_present[codes], codes, NONE))


def _codes_of(indices: Any) -> Array:
    """Numbers of an Arrow array, `NONE` where there is none.

    Off its buffers: `fill_null` and `to_numpy` load pandas, to ask whether something is a series.
    """
    _, numbers = indices.buffers()
    there: Array = np.frombuffer(numbers, np.int64)[indices.offset :][: len(indices)]
    if indices.null_count:
        _, bits = indices.is_null().buffers()
        is_null = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[: len(indices)]
        there = np.where(is_null, NONE, there)
    return there


def _stripped(value: str | None) -> str:
    return "" if value is None else value.strip()


@dataclass
class Categories:
    """The columns of text values: numbered from 0, grown by what is read unless it is frozen."""

    n_hash: int = 0  # 0 is one-hot
    is_frozen: bool = False  # then new values set no column
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)  # of one-hot columns

    @property
    def width(self) -> int:
        """How many columns there are by now."""
        return self.n_hash or len(self.numbers)

    def columns_of(self, sources: Sequence[str], columns: Sequence[Texts], path: Any) -> Array:
        """For each row and each source the column that is 1, or `NONE`."""
        if not self.n_hash and not self.is_frozen:
            self._meet(sources, columns, path)
        places = [
            np.array([self._number(source, value) for value in texts.values] + [NONE])[texts.codes]
            for source, texts in zip(sources, columns, strict=True)
        ]
        return np.stack(places, axis=1).astype(np.int32)

    def _number(self, source: str, value: str | None) -> int:
        if value is None:
            return NONE
        if self.n_hash:
            return zlib.crc32(f"{source}={value}".encode()) % self.n_hash
        return self.numbers.get((source, value), NONE)

    def _meet(self, sources: Sequence[str], columns: Sequence[Texts], path: Any) -> None:
        """Number the pairs that are new, in the order in which they are met."""
        met: list[tuple[int, int, tuple[str, str]]] = []
        for place, (source, texts) in enumerate(zip(sources, columns, strict=True)):
            first_rows = np.full(len(texts.values) + 1, len(texts.codes))
            first_rows[texts.codes[::-1]] = np.arange(len(texts.codes))[::-1]
            for value, row in zip(texts.values, first_rows.tolist(), strict=False):
                is_used = value is not None and row < len(texts.codes)
                if is_used and (source, value) not in self.numbers:
                    met.append((row, place, (source, str(value))))
        if len(self.numbers) + len(met) > MOST_CATEGORIES:
            most = max(sources, key=lambda source: sum(name == source for name, _ in self.numbers))
            raise DataError(
                f"found more than {MOST_CATEGORIES} different texts, most of them in column "
                f"{most!r}, expected categories; drop=({most!r},) leaves that column out, and "
                "categories='hash' gives all texts a fixed number of columns",
                path,
            )
        for _, _, pair in sorted(met):
            self.numbers.setdefault(pair, len(self.numbers))
