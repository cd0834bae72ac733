"""Columns of text: their different values, and which of them each row has.

Spaces around a value don't count; no value, and those of `MISSING_TEXTS`, are missing. All work is
done on different values, by Arrow: cells are touched only as numbers.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.engine.jit import jit

__all__ = [
    "MISSING_TEXTS", "NONE", "Tally", "Texts", "arrow_of", "bytes_of", "codes_of", "is_null",
    "merged", "strings_of", "stripped", "tally_together", "words_of",
]  # fmt: skip

MISSING_TEXTS = (
    *("", "?", "#N/A", "N/A", "n/a", "NA", "na", "NaN", "nan", "NAN", "-nan", "-NaN"),
    *("NULL", "null", "Null"),
)
# read by compiled code
NONE = -1  # code of a row without a value
LANES = 4  # counts of each value
MAX_ROWS_COPIED = 1 << 13  # whose codes are copied in less time than a call takes
NOT_IN_WORDS = r"[^\pL\pN']+"


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text: its different values, and which of them each row has, or `NONE`."""

    values: Any  # an Arrow array of strings, none of them missing or twice
    codes: Array

    def kept(self, keep: Array) -> "Texts":
        """The rows for which `keep` is true."""
        return Texts(self.values, self.codes[keep])

    def present(self) -> Any:
        """The values that rows have."""
        is_all = self.tally.n_used == len(self.values)
        return self.values if is_all else self.values.take(arrow_of(self.used))

    @property
    def used(self) -> Array:
        """Return the codes of the values that rows have."""
        return np.flatnonzero(self.counts)

    @property
    def counts(self) -> Array:
        """Return the number of rows of each value; a dictionary may hold values that no row has."""
        return self.tally.counts[:-1]

    @property
    def n_missing(self) -> int:
        """Return the number of rows without a value."""
        return self.tally.n_missing

    @property
    def first_rows(self) -> Array:
        """Where each value is first met, and last of all no value; the number of rows if never."""
        return self.tally.first_rows

    @functools.cached_property
    def tally(self) -> "Tally":
        """Return counts over all rows."""
        return _tallies([self], np.ascontiguousarray(self.codes, np.int32)[None])[0]


class Tally(NamedTuple):
    """Number of rows of each value, and the first row of each."""

    counts: Array  # rows of each value, and last of all of no value
    first_rows: Array  # the number of rows, if never
    n_used: int  # values that rows have
    n_missing: int
    most: int  # rows of one value


def tally_together(columns: Sequence[Texts]) -> None:
    """Tally columns of few rows by one call: by several, the calls would take longer than that."""
    new = [column for column in columns if "tally" not in column.__dict__]
    if len(new) > 1 and new[0].codes.size <= MAX_ROWS_COPIED:
        codes = np.stack([column.codes for column in new]).astype(np.int32, copy=False)
        for column, tally in zip(new, _tallies(new, codes), strict=True):
            column.__dict__["tally"] = tally


def _tallies(columns: Sequence[Texts], codes: Array) -> list[Tally]:
    """Return the tallies of columns whose codes stand one below the other."""
    starts = [0, *accumulate(len(column.values) + 1 for column in columns)]
    codes = codes.view()
    codes.flags.writeable = False  # so that one loop is compiled for all
    lanes = np.zeros((LANES, starts[-1]), np.int64)
    first_rows, facts = np.empty(starts[-1], np.int64), np.empty((len(columns), 3), np.int64)
    _count(codes, np.array(starts), lanes, first_rows, facts)
    return [
        Tally(lanes[0, start:stop], first_rows[start:stop], *numbers)
        for start, stop, numbers in zip(starts, starts[1:], facts.tolist(), strict=False)
    ]


@jit
def _count(codes: Any, starts: Any, lanes: Any, first_rows: Any, facts: Any) -> None:
    """Count rows of each code, and write where the first of them is; those of none come last.

    Rows take turns at some counts each: equal codes in a row would wait for each other at one.
    The first of these counts become those of all rows.
    """
    n_rows = codes.shape[1]
    first_rows[:] = n_rows
    for j in range(codes.shape[0]):
        start, last = starts[j], starts[j + 1] - 1
        for i in range(n_rows):
            k = start + codes[j, i] if codes[j, i] != NONE else last
            if i < first_rows[k]:
                first_rows[k] = i
            lanes[i % LANES, k] += 1
        n_used = most = 0
        for k in range(start, last + 1):
            lanes[0, k] = lanes[:, k].sum()
            if k < last:
                n_used += lanes[0, k] > 0
                most = max(most, lanes[0, k])
        facts[j, 0], facts[j, 1], facts[j, 2] = n_used, lanes[0, last], most


def stripped(values: Any, codes: Array) -> Texts:
    """Texts of values as they are written: spaces around them don't count, and some are missing."""
    plain = pc.utf8_trim_whitespace(values)
    is_missing = pc.is_in(plain, value_set=_missing_texts())
    is_clean = not plain.null_count and not _truths(is_missing).any()
    if is_clean and pc.count_distinct(plain).as_py() == len(plain):
        return Texts(plain, codes)
    return _with_different(plain, is_missing, codes)


def _with_different(values: Any, is_missing: Any, codes: Array) -> Texts:
    """Texts of values among which some may be equal or missing."""
    keep = pc.invert(pc.or_kleene(pc.is_null(values), is_missing))
    different = pc.dictionary_encode(values.filter(keep))
    places = np.full(len(values) + 1, NONE, np.int32)  # NONE reads the last
    places[:-1][_truths(keep)] = codes_of(different.indices)
    return Texts(different.dictionary, places[codes])


def _truths(flags: Any) -> Array:
    """An Arrow array of truth values, off its buffer."""
    bits = flags.buffers()[1]
    if bits is None:
        return np.empty(0, np.bool_)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return every[flags.offset :][: len(flags)].astype(np.bool_)


def merged(columns: Sequence[Texts]) -> Texts:
    """One column after the other."""
    if len(columns) == 1:
        return columns[0]
    longest = columns[-1].values
    if all(longest.slice(0, len(column.values)).equals(column.values) for column in columns):
        return Texts(longest, np.concatenate([column.codes for column in columns]))
    values = pa.concat_arrays([column.values for column in columns])
    firsts = np.cumsum([0, *(len(column.values) for column in columns)])
    codes = [
        np.where(column.codes == NONE, NONE, column.codes + first)
        for column, first in zip(columns, firsts.tolist(), strict=False)
    ]
    return _with_different(values, pc.is_null(values), np.concatenate(codes))


def codes_of(indices: Any) -> Array:
    """Whole numbers of an Arrow array as int32, `NONE` where there is none.

    Off its buffers: `fill_null` and `to_numpy` load pandas, to ask whether something is a series.
    """
    indices = pc.cast(indices, pa.int32())
    _, numbers = indices.buffers()
    if numbers is None:  # of no rows
        return np.empty(0, np.int32)
    there: Array = np.frombuffer(numbers, np.int32)[indices.offset :][: len(indices)]
    if indices.null_count:
        there = np.where(is_null(indices), np.int32(NONE), there)
    return there


def arrow_of(numbers: Array, lacks: Array | None = None) -> Any:
    """Numbers as an Arrow array, none where they lack; `pa.array` would load pandas, too."""
    kinds = {"int32": pa.int32(), "int64": pa.int64(), "float64": pa.float64()}
    bits = None
    if lacks is not None:
        bits = pa.py_buffer(np.packbits(~lacks, bitorder="little"))
    buffers = [bits, pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(kinds[numbers.dtype.name], numbers.size, buffers)


def strings_of(values: Sequence[str]) -> Any:
    """Texts as an Arrow array, likewise."""
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    starts = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    joined = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(starts), joined)


def bytes_of(strings: Any) -> bytes:
    """The bytes of an Arrow array of strings, one after the other."""
    _, starts, text = strings.buffers()
    if len(strings) == 0 or text is None:
        return b""
    edges = np.frombuffer(starts, np.int32)[strings.offset :][: len(strings) + 1]
    return text.slice(int(edges[0]), int(edges[-1] - edges[0])).to_pybytes()  # type: ignore[no-any-return]


@functools.cache
def _missing_texts() -> Any:
    return strings_of(MISSING_TEXTS)


def is_null(column: Any) -> Array:
    """True where an Arrow array has no value."""
    return _truths(column.is_null())


def words_of(texts: Texts) -> tuple[Texts, Array]:
    """The words of each different value one after the other, in small letters, and their starts."""
    pieces = pc.split_pattern_regex(pc.utf8_lower(texts.values), NOT_IN_WORDS)
    if len(pieces) == 0:
        return Texts(strings_of([]), np.empty(0, np.int32)), np.zeros(1, np.int64)
    words = pc.dictionary_encode(pieces.flatten())
    starts = np.frombuffer(pieces.buffers()[1], np.int32)[pieces.offset :][: len(pieces) + 1]
    is_missing = pc.is_in(words.dictionary, value_set=strings_of([""]))
    own = _with_different(words.dictionary, is_missing, codes_of(words.indices))
    return own, starts.astype(np.int64)
