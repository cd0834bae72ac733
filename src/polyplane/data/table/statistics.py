"""Target statistics: what labels of training rows say of categories, as columns of numbers.

Key         a column of the table whose values are names: a category, or whole numbers that come
            again, such as flight numbers, zip codes and ids of agents. At most `MOST_KEYS`, those
            with most values.
Statistic   of a key, or of a pair of keys: for each class the smoothed log-odds of the class among
            the training rows that have this value, or this pair of values, and the logarithm of
            how many rows they are. With two classes one log-odds is enough.
Smoothing   `PRIOR_ROWS` rows with the shares of all training rows are added to those of a value.
Own label   no label may reach the statistics of its own row. Training rows therefore get
            statistics of other training rows: they are dealt into `N_PARTS` parts, and each part
            gets those of all other parts. All other rows get those of all training rows.
Rare        a pair of values of fewer than `LEAST_ROWS_OF_A_PAIR` rows counts as not met: it gets
            the shares of all rows, as a value does that training has not met.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from polyplane.data.chunks import Array
from polyplane.data.table.texts import NONE, Texts, codes_of, strings_of

__all__ = [
    "Key",
    "KeyedRows",
    "Labelled",
    "Statistic",
    "TargetStatistics",
    "entries_with_columns",
    "joined_codes",
    "keyed_rows",
    "keys_of",
    "learned_statistics",
    "one_after_the_other",
    "places_and_parts",
]

MOST_KEYS = 10  # pairs grow with their square
LEAST_ROWS_OF_A_NAME = 4  # on average, of whole numbers that are names: others are measurements
PRIOR_ROWS = 10.0
N_PARTS = 10
LEAST_ROWS_OF_A_PAIR = 2
LEAST_SHARE = 1e-4  # of a class, so that log-odds stay small
ROUNDING = 1e-9  # of a sum of weights from which all its terms were subtracted again


class Key(NamedTuple):
    """A column of the table, and the values by which its rows are known."""

    place: int  # of its source in the layout
    values: Any  # an Arrow array of strings, or float32 numbers that rise

    @property
    def n_codes(self) -> int:
        """Number of values, and one more for rows without a value."""
        return len(self.values) + 1


class KeyedRows(NamedTuple):
    """The keys of a table, and the value of each row."""

    keys: Sequence[Key]
    codes: Array  # [key, row] int32: place among the values, their number where there is none

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])


class Statistic(NamedTuple):
    """Numbers of each value of a key, or of each pair of values."""

    keys: tuple[int, ...]  # places among the keys: one or two
    codes: Array  # [entry] int64, rising, as `joined_codes` makes them
    values: Array  # [entry, column] float32
    rest: Array  # [column] float32, of values that were not met

    def columns(self, codes: Array) -> Array:
        """Return the numbers of rows by their joined codes."""
        if self.codes.size == 0:
            return np.tile(self.rest, (codes.size, 1))
        places = np.minimum(np.searchsorted(self.codes, codes), self.codes.size - 1)
        is_met = self.codes[places] == codes
        found: Array = np.where(is_met[:, None], self.values[places], self.rest)
        return found


@dataclass(frozen=True)
class TargetStatistics:
    """Columns of numbers that the values of keys stand for."""

    keys: Sequence[Key]
    statistics: Sequence[Statistic]
    class_names: Sequence[str]  # of the log-odds

    @property
    def n_numbers(self) -> int:
        """Columns of a statistic: log-odds, and the logarithm of rows."""
        return len(self.class_names) + 1

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.statistics) * self.n_numbers

    def places(self) -> list[tuple[int, ...]]:
        """Return the sources that each column is made of."""
        found = [tuple(self.keys[k].place for k in one.keys) for one in self.statistics]
        return [places for places in found for _ in range(self.n_numbers)]

    def names(self, names_of_sources: Sequence[str]) -> list[str]:
        """Return what the columns mean."""
        numbers = [f"log-odds of {name}" for name in self.class_names] + ["log rows"]
        return [
            f"{' and '.join(names_of_sources[place] for place in places)}: {number}"
            for places in self.places()[:: self.n_numbers]
            for number in numbers
        ]

    def columns(self, rows: KeyedRows) -> Array:
        """Return the columns of rows, as float32."""
        parts = [one.columns(joined_codes(rows, one.keys)) for one in self.statistics]
        return np.hstack(parts) if parts else np.empty((rows.n_rows, 0), np.float32)

    # ---- model files -----------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a model file; arrays are base64 of little-endian numbers."""
        return {
            "classes": list(self.class_names),
            "keys": [
                {"source": key.place, "numbers": _written(key.values, "<f4")}
                if isinstance(key.values, np.ndarray)
                else {"source": key.place, "texts": key.values.to_pylist()}
                for key in self.keys
            ],
            "statistics": [
                {
                    "keys": list(one.keys),
                    "codes": _written(one.codes, "<i8"),
                    "values": _written(one.values, "<f4"),
                    "rest": _written(one.rest, "<f4"),
                }
                for one in self.statistics
            ],
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any], n_sources: int) -> "TargetStatistics":
        """Return what `to_dict` has made plain, once it has been looked at."""
        keys = [_key_of(**one) for one in plain["keys"]]
        names = [str(name) for name in plain["classes"]]
        found = [_statistic_of(**one, n_columns=len(names) + 1) for one in plain["statistics"]]
        _need(all(0 <= key.place < n_sources for key in keys), "a key is of no column")
        for one in found:
            _need(len(one.keys) in (1, 2), "statistics are of one key or two")
            _need(all(0 <= k < len(keys) for k in one.keys), "statistics are of no key")
        return TargetStatistics(keys, found, names)


def _written(numbers: Array, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype).tobytes()).decode()


def _array_of(text: str, dtype: str) -> Array:
    made: Array = np.frombuffer(base64.b64decode(text, validate=True), dtype)
    made = made.astype(made.dtype.newbyteorder("="))
    _need(bool(np.isfinite(made).all()), "statistics are not finite")
    return made


def _key_of(source: Any, numbers: Any = None, texts: Any = None) -> Key:
    if numbers is None:
        values = strings_of([str(text) for text in texts])
        _need(len(values) > 0 and len(set(texts)) == len(texts), "values of a key meet twice")
        return Key(int(source), values)
    found = _array_of(numbers, "<f4")
    _need(found.size > 0 and bool((np.diff(found) > 0).all()), "numbers of a key do not rise")
    return Key(int(source), found)


def _statistic_of(keys: Any, codes: Any, values: Any, rest: Any, n_columns: int) -> Statistic:
    found, numbers = _array_of(codes, "<i8"), _array_of(values, "<f4")
    of_rest = _array_of(rest, "<f4")
    _need(numbers.size == found.size * n_columns, "statistics are of other values")
    _need(of_rest.size == n_columns, "statistics are of other values")
    _need(bool((found[1:] > found[:-1]).all()), "values of statistics do not rise")
    return Statistic(tuple(map(int, keys)), found, numbers.reshape(-1, n_columns), of_rest)


def _need(is_right: bool, words: str) -> None:
    if not is_right:
        raise ValueError(words)


# ---- keys --------------------------------------------------------------------------------


def keys_of(texts: Mapping[int, Texts], numbers: Mapping[int, Array]) -> list[Key]:
    """Return the keys of a whole table, given cells by source; without a category none.

    `texts` are categories; `numbers` are float32, NaN where a value is missing.
    """
    if not texts:
        return []
    found = [Key(place, strings_of(cells.present().to_pylist())) for place, cells in texts.items()]
    for place, column in numbers.items():
        values = np.unique(column[~np.isnan(column)])
        is_few = values.size <= column.size / LEAST_ROWS_OF_A_NAME
        if is_few and bool((np.floor(values) == values).all()):
            found.append(Key(place, values))
    most = sorted(found, key=lambda key: -len(key.values))[:MOST_KEYS]
    return sorted((key for key in most if len(key.values) > 1), key=lambda key: key.place)


def keyed_rows(keys: Sequence[Key], cells: Iterable[Any], n_rows: int) -> KeyedRows:
    """Return the codes of rows, given the cells of each key: texts, or numbers with NaN."""
    codes = np.empty((len(keys), n_rows), np.int32)
    for k, (key, own) in enumerate(zip(keys, cells, strict=True)):
        codes[k] = _codes(key, own)
    return KeyedRows(keys, codes)


def _codes(key: Key, cells: Any) -> Array:
    if isinstance(cells, Texts):
        found = codes_of(pc.index_in(cells.values, value_set=key.values))
        of_values: Array = np.append(found, len(key.values))[cells.codes]  # NONE reads the last
        return of_values
    places = np.minimum(np.searchsorted(key.values, cells), len(key.values) - 1)
    codes = np.where(key.values[places] == cells, places, NONE)
    of_numbers: Array = np.where(np.isnan(cells), len(key.values), codes)
    return of_numbers


def one_after_the_other(first: KeyedRows | None, second: KeyedRows) -> KeyedRows:
    """Return the rows of both, which have the same keys."""
    if first is None:
        return second
    return second._replace(codes=np.concatenate([first.codes, second.codes], axis=1))


def joined_codes(rows: KeyedRows, keys: Sequence[int]) -> Array:
    """Return one code for each row of one or two keys, -1 where a value was not met."""
    codes: Array = rows.codes[keys[0]].astype(np.int64)
    for k in keys[1:]:
        other = rows.codes[k]
        is_known = (codes >= 0) & (other >= 0)
        codes = np.where(is_known, codes * rows.keys[k].n_codes + other, NONE)
    return codes


def entries_with_columns(
    values: Array, columns: Array, starts: Array, behind: Array, n_columns: int
) -> tuple[Array, Array, Array]:
    """Return values, columns and starts of CSR rows with more columns behind the `n_columns`."""
    n_rows, n_new = behind.shape
    row = np.arange(n_rows + 1)
    joined_starts = starts.astype(np.int64) + row * n_new
    is_new = np.ones(joined_starts[-1], bool)
    is_new[np.arange(values.size) + np.repeat(row[:-1] * n_new, np.diff(starts))] = False
    joined_values = np.empty(is_new.size, np.float32)
    joined_columns = np.empty(is_new.size, np.int32)
    joined_values[~is_new], joined_columns[~is_new] = values, columns
    joined_values[is_new] = behind.ravel()
    joined_columns[is_new] = np.tile(np.arange(n_columns, n_columns + n_new), n_rows)
    return joined_values, joined_columns, joined_starts


# ---- learning ----------------------------------------------------------------------------


class Labelled(NamedTuple):
    """Labels of rows by rank of their class, and the weight of each row."""

    ranks: Array
    weights: Array  # 0 of rows from which nothing is learned
    n_classes: int


def places_and_parts(rows: KeyedRows, keys: Sequence[int], seed: int) -> tuple[Array, Array, Array]:
    """Return the codes that rows have, the place of each row among them, and its part."""
    codes, places = np.unique(joined_codes(rows, keys), return_inverse=True)
    parts = np.random.default_rng(seed).permutation(rows.n_rows) % N_PARTS
    return codes, places, parts


def learned_statistics(
    rows: KeyedRows,
    combinations: Sequence[tuple[int, ...]],
    labelled: Labelled,
    class_names: Sequence[Any],
    seed: int,
) -> tuple[TargetStatistics, Array]:
    """Return the statistics of rows with a weight, and the columns of all rows.

    Rows with a weight get columns in which they are not counted.
    """
    learned = [_learned(rows, keys, labelled, seed) for keys in combinations]
    names = [str(name) for name in (class_names[1:] if len(class_names) == 2 else class_names)]
    columns = [own for _, own in learned]
    made = TargetStatistics(rows.keys, [one for one, _ in learned], names)
    return made, np.hstack(columns) if columns else np.empty((rows.n_rows, 0), np.float32)


def _learned(
    rows: KeyedRows, keys: tuple[int, ...], labelled: Labelled, seed: int
) -> tuple[Statistic, Array]:
    codes, places, parts = places_and_parts(rows, keys, seed)
    of_others = places, np.where(labelled.weights > 0, parts, N_PARTS)  # a part without weights
    least = 1 if len(keys) == 1 else LEAST_ROWS_OF_A_PAIR
    n_rows, n_rows_of_others = _tallied(labelled.weights > 0, codes.size, *of_others)
    totals = np.empty((codes.size, labelled.n_classes))
    totals_of_others = np.empty((places.size, labelled.n_classes))
    for k in range(labelled.n_classes):
        own = np.where(labelled.ranks == k, labelled.weights, 0.0)
        totals[:, k], totals_of_others[:, k] = _tallied(own, codes.size, *of_others)
    all_rows = totals.sum(axis=0)
    values = _numbers(totals, n_rows >= least, all_rows)
    columns = np.empty((places.size, values.shape[1]), np.float32)
    for part in range(N_PARTS + 1):
        is_in = of_others[1] == part
        of_part = np.bincount(labelled.ranks[is_in], labelled.weights[is_in], all_rows.size)
        is_met = n_rows_of_others[is_in] >= least
        columns[is_in] = _numbers(totals_of_others[is_in], is_met, all_rows - of_part)
    is_met = (n_rows >= least) & (codes != NONE)
    rest = _numbers(np.zeros((1, all_rows.size)), np.zeros(1, bool), all_rows)[0]
    return Statistic(keys, codes[is_met], values[is_met], rest), columns


def _tallied(amounts: Array, n_entries: int, places: Array, parts: Array) -> tuple[Array, Array]:
    """Return the sums of entries, and for each row that of its entry without its own part."""
    flat = places * (N_PARTS + 1) + parts
    by_part = np.bincount(flat, amounts, n_entries * (N_PARTS + 1)).reshape(n_entries, -1)
    total = by_part.sum(axis=1)
    others = total[places] - by_part.ravel()[flat]
    others[others < ROUNDING * total[places]] = 0.0
    return total, others


def _numbers(totals: Array, is_met: Array, all_rows: Array) -> Array:
    """Return log-odds of classes and the logarithm of rows, of [entry, class] sums of weights."""
    shares = all_rows / max(float(all_rows.sum()), ROUNDING)
    totals = np.where(is_met[:, None], totals, 0.0)
    n_rows = totals.sum(axis=1, keepdims=True)
    part = (totals + PRIOR_ROWS * shares) / (n_rows + PRIOR_ROWS)
    part = np.clip(part[:, 1:] if shares.size == 2 else part, LEAST_SHARE, 1 - LEAST_SHARE)
    numbers: Array = np.hstack([np.log(part / (1 - part)), np.log1p(n_rows)])
    return numbers.astype(np.float32)
