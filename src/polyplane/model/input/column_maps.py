"""Maps of the columns of X for a classifier, so that nobody has to scale them first.

Kinds    as-is    columns are left alone, all of them
         plain    real columns are standardised
         rank     real columns are there twice, standardised and as their standardised ranks:
                  rank(x) is the share of rows below x and half of those equal to it
         knots    the same, and eight hats a column, so that planes can bend along it
         fine     the same, and hats at up to 8, 32 and 128 knots: any curve, if shrinkage is strong
Scores   in place of the value there may be its normal score, which is its rank through the normal
         quantile function: hats then lie along normal scores, too. It suits heavy tails.
Knots    values that are met often have one each, the others lie evenly among the rest of the rows:
         up to 64 ('fine': 128). The hats of a level are at some of them, evenly.
Others   columns of 0 and 1 are left as they are, so that sparse rows stay sparse; unless plain, a
         column of 3 to 8 values is a category, with a hat for each of them and no linear feature.
         Columns that never change say nothing and are dropped. Data in which many columns are of
         one kind and without a sign, such as texts and images, are left alone altogether, unless
         they must be mapped: what is found by itself is "as-is" then, whatever was asked for.
Length   values and ranks have the squared length 1/2 each, as all of a column's hats have that of
         their level; one factor then brings the whole to length 1 in the root mean square: steps
         then suit all data. The constant feature is 1 beside them; data left alone get one as long
         as their rows instead.
Folding  standardisation is linear, so finished planes take it in: they apply to X as it comes. In
         float32 that costs accuracy if means are many deviations from zero: errors are up to
         3e-7 |mean| / deviation of the spread of the scores, so 1e-3 of it at a mean of some
         thousands, a fifth at a million. All that is made of a column with knots is straight
         between two of them: there planes become their values at the knots, two of which count for
         a row, however many features it was trained on. Beyond its knots a column is cut.
Weights  a training may give each column a length of its own, by what it was worth to one before
         (`training/soft_planes/column_weights.py`).
Turned   where asked for, the principal directions of the ranks of real columns stand behind the
         columns and are mapped like them, standardised and with ranks and hats of their own: for
         columns that say more together than alone. Columns of few values take no part.
Width    of wide sparse data with at most half of the columns in use only these have features: a
         fit costs what its rows hold, however far apart their columns are.
Rows     statistics are of all training rows, values and ranks of at most 20,000, evenly spaced.
"""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.inspection import ColumnStatistics, column_statistics
from polyplane.engine.order import in_place
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.leveled import LevelTable, leveled_rows
from polyplane.engine.rows.mapped import ColumnTable, mapped_rows
from polyplane.engine.rows.storage import (
    CsrRows,
    Rows,
    count_rows,
    csr_rows_of,
    matrix_of,
    packed,
)
from polyplane.engine.rows.turned import Turn, n_directions, turned_rows

__all__ = [
    "AS_IS",
    "KINDS",
    "ColumnMap",
    "column_map",
    "compact_rows",
    "folded_map",
    "hats_at_knots",
]

AS_IS = "as-is"
KINDS = "plain", "rank", "knots", "fine"  # of maps
LEVELS = {"rank": (), "knots": ((8, 0.3),), "fine": ((8, 1.0), (32, 1.0), (128, 1.0))}
# hats of a column, and their share of the squared length
MOST_KNOTS = 128  # of a column, the same ones for all kinds: models of several kinds share them
MOST_FLAGS = 2_000  # columns of 0 and 1 without any other: more are a text
FEW_COLUMNS = 64  # real columns: fewer are a table, whatever they hold
LEAST_TABULAR_SHARE = 0.75  # of entries that are not zero
LEAST_MEAN, LEAST_POSITIVE = (
    0.1,
    0.9,
)  # deviations, and share of columns: ink and counts have no sign
# Columns are of one kind if most of them are at most so many times as large as others.
MAX_SIZE_RATIO_OF_ONE_KIND = 100.0
LEAST_DEVIATION = 1e-30  # below that a column counts as constant: its factor would overflow
MIN_WIDE_COLUMNS = 200  # columns, of which only those in use get features if that is at most half
ROWS_LOOKED_AT = 20_000
MOST_CATEGORIES = 8
MOST_TURNED = 32  # real columns: directions through more cost much and were never of use
LEAST_VARIANCE = 1e-4  # of a direction, as a share of the mean: below it is rounding
HALF = math.sqrt(0.5)
NOTHING = np.empty(0, np.float32)


class _Level(NamedTuple):
    """One curve along a column, or the hats along it."""

    places: Array  # of each knot
    n_hats: int
    height: float


class _Column(NamedTuple):
    """Map of a column before its length is settled; without arguments, the column is left out."""

    shift: float = 0.0
    factor: float = 0.0
    squared: float = 0.0  # mean squared length of its features
    knots: Array = NOTHING
    levels: tuple[_Level, ...] = ()


@dataclass(frozen=True)
class ColumnMap:
    """Map of columns for the planes of a training, and of these planes back to X.

    The map for finished planes (`of_prediction`) is one, too, that has hats at all knots.
    """

    table: LevelTable | None  # None: columns are left alone
    n_columns: int
    n_features: int  # without the constant
    constant: float  # value of the constant feature, where there is an intercept
    used: Array | None = None  # [feature] int32, rising: the columns that have features; None: all
    turn: Turn | None = None  # that adds columns before they are mapped

    @property
    def is_as_is(self) -> bool:
        """Return True if columns are left alone."""
        return self.table is None

    @property
    def has_knots(self) -> bool:
        """Return True if prediction, too, has to map rows."""
        return self.table is not None and self.table.knots.size > 0

    @property
    def n_folded(self) -> int:
        """Features of finished planes, without the constant."""
        n_knots = 0 if self.table is None else int(self.table.knots.size)
        return self.n_features if n_knots == 0 else self.n_mapped + n_knots

    @property
    def n_mapped(self) -> int:
        """Columns that are mapped: those of X, and directions."""
        return self.n_columns + n_directions(self.turn)

    def count_entries(self, rows: Any) -> int:
        """Most features of all rows together that are not zero in training."""
        n_rows, table = count_rows(rows), self.table
        n_linear = rows.values.size if isinstance(rows, CsrRows) else n_rows * self.n_columns
        n_linear += n_rows * n_directions(self.turn)
        if table is None:
            return n_linear
        is_shifted = (table.shifts != 0) & (np.diff(table.knot_starts) == 0)
        return n_linear + n_rows * int(is_shifted.sum() + np.minimum(table.n_hats, 2).sum())

    def for_training(self, rows: Any) -> Rows:
        """Rows as training sees them; a constant of 0 stays 0."""
        rows = self._compact(rows)
        seen: Rows = (
            rows._replace(constant=np.float32(self.constant * rows.constant))
            if self.table is None
            else leveled_rows(_turned(rows, self.turn), self.table)
        )
        return seen

    def for_prediction(self, rows: Any) -> Rows:
        """Rows as folded planes see them; their constant must be 1, intercept or not."""
        rows = _turned(self._compact(rows), self.turn)
        seen: Rows = mapped_rows(rows, self._prediction_table()) if self.has_knots else rows
        return seen

    def _compact(self, rows: Any) -> Any:
        return rows if self.used is None else compact_rows(rows, self.used)

    def knows(self, rows: Any) -> bool:
        """Return True if all columns that rows hold have features."""
        if self.used is None:
            return True
        entries = _as_csr(rows)
        return bool(_places(self.used, entries.columns)[1].all())

    def with_all_columns(self) -> "ColumnMap":
        """Return the map with a feature for every column."""
        return replace(self, n_features=self.n_columns, used=None)

    def spread(self, sums: Array) -> Array:
        """Planes by feature, as they are for all columns."""
        if self.used is None:
            return sums
        wide = aligned_zeros(self.n_columns + 1, sums.shape[1])
        wide[0] = sums[0]
        wide[1 + self.used] = sums[1 : 1 + self.used.size]
        return wide

    def folded(self, sums: Array, constant: float = 1.0) -> Array:
        """Planes learnt on rows `for_training`, by feature, made those for rows `for_prediction`.

        `constant` is that of the rows before the map: 1 with an intercept, 0 without. Shifts make
        a constant term in any case, so row 0 of the result belongs to a constant of 1.
        """
        planes = sums.astype(np.float64)
        planes[0] *= self.constant * constant
        table = self.table
        if table is None:
            return planes.astype(np.float32)
        folded = np.zeros((1 + self.n_folded, planes.shape[1]))
        folded[0] = planes[0]
        has_knots = np.diff(table.knot_starts) > 0
        plain = np.flatnonzero(~has_knots)
        folded[1 + plain] = planes[1 + plain] * table.factors[plain, None].astype(np.float64)
        folded[0] -= (folded[1 + plain] * table.shifts[plain, None]).sum(axis=0)
        for j in np.flatnonzero(has_knots).tolist():
            first, end = table.knot_starts[j : j + 2]
            at_knots = slice(1 + self.n_mapped + first, 1 + self.n_mapped + end)
            folded[at_knots] = _values_at_knots(table, j, planes[1:])
        return folded.astype(np.float32)

    def knots_of(self, j: int) -> Array:
        """Return the knots of a mapped column; without knots, none."""
        if self.table is None or j >= self.n_mapped:
            return NOTHING
        knots: Array = self.table.knots[self.table.knot_starts[j] : self.table.knot_starts[j + 1]]
        return knots

    def spread_knots(self, own: "ColumnMap", sums: Array) -> Array:
        """Return planes `folded` by a map, as they are for this one, which has its knots, too."""
        if self.table is None:
            return own.spread(sums) if self.used is None else sums
        spread = np.zeros((1 + self.n_folded, sums.shape[1]))
        linear = own.spread(sums)[: 1 + own.n_mapped]
        spread[: len(linear)] = linear
        for j in range(own.n_mapped):
            knots, own_knots = self.knots_of(j), own.knots_of(j)
            if knots.size == 0:
                continue
            first = 1 + self.n_mapped + int(self.table.knot_starts[j])
            at_knots = spread[first : first + knots.size]
            if own_knots.size == 0:
                at_knots[:] = np.outer(knots, linear[1 + j])
                spread[1 + j] = 0
                continue
            assert own.table is not None
            start = 1 + own.n_mapped + int(own.table.knot_starts[j])
            values = sums[start : start + own_knots.size].astype(np.float64)
            places = np.interp(knots, own_knots, np.arange(own_knots.size))
            left = np.minimum(places.astype(int), own_knots.size - 2)
            share = (places - left)[:, None]
            at_knots[:] = (1 - share) * values[left] + share * values[left + 1]
        return spread.astype(np.float32)

    def columns_of_features(self) -> Array:
        """Return the column of X, or behind them the direction, to which each feature belongs."""
        if self.used is not None:
            return self.used
        columns = np.arange(self.n_mapped, dtype=np.int32)
        if self.table is None:
            return columns
        n_hats = self.table.n_hats
        hats = np.tile(columns, len(n_hats))
        return np.concatenate([columns, np.repeat(hats, n_hats.ravel())])

    def weighed(self, weights: Array) -> "ColumnMap":
        """Return the map with the features of each mapped column longer by its weight."""
        table: Any = self.table
        weights = weights.astype(np.float32)
        longer = table._replace(factors=table.factors * weights, heights=table.heights * weights)
        return replace(self, table=longer)

    def widened(self, n_columns: int) -> "ColumnMap":
        """Return the map for more columns: new ones are scaled like others, and not shifted."""
        n_new = n_columns - self.n_columns
        if n_new <= 0:
            return self
        if self.used is not None:
            return replace(self, n_columns=n_columns)
        if self.table is None:
            return replace(self, n_columns=n_columns, n_features=n_columns)
        if self.n_features > self.n_columns:  # directions, too, come with knots
            raise ValueError(
                f"X has {n_columns} columns, {n_new} more than before: the model's planes see "
                f"columns='knots', which cannot widen. Fit with columns='plain' for such streams."
            )
        used = self.table.factors[self.table.factors > 0]
        factor = float(np.median(used)) if used.size else 1.0
        n_knots = self.table.knots.size
        table = self.table._replace(
            shifts=_longer(self.table.shifts, n_new, 0.0),
            factors=_longer(self.table.factors, n_new, factor),
            knot_starts=_longer(self.table.knot_starts, n_new, n_knots),
            n_hats=_wider(self.table.n_hats, n_new),
            first_hat=_wider(self.table.first_hat, n_new),
            heights=_wider(self.table.heights, n_new),
        )
        return replace(self, table=table, n_columns=n_columns, n_features=n_columns)

    def of_prediction(self) -> "ColumnMap":
        """Return the map for finished planes, which have taken in all that is linear."""
        table = self.table and hats_at_knots(self.table.knot_starts, self.table.knots)
        return replace(self, table=table, n_features=self.n_folded, constant=1.0)

    def _prediction_table(self) -> ColumnTable:
        """Columns as they are, or two hats at the knots beside each value."""
        table: Any = self.table
        n_knots = np.diff(table.knot_starts).astype(np.int32)
        owner, place = _places_of_knots(table.knot_starts)
        return ColumnTable(
            shifts=np.zeros(n_knots.size, np.float32),
            factors=(n_knots == 0).astype(np.float32),
            knot_starts=table.knot_starts,
            knots=table.knots,
            ranks=(place / np.maximum(n_knots[owner] - 1, 1)).astype(np.float32),
            n_hats=n_knots,
            first_hat=(n_knots.size + table.knot_starts[:-1]).astype(np.int32),
            height=np.float32(1),
        )


def folded_map(maps: Sequence[ColumnMap]) -> ColumnMap:
    """Return the map for planes of several trainings at once: it has the knots of all of them."""
    n_columns = max(one.n_columns for one in maps)
    if all(one.is_as_is for one in maps):
        used = maps[0].used
        if used is not None and all(
            one.used is not None and np.array_equal(one.used, used) for one in maps
        ):
            return ColumnMap(None, n_columns, used.size, 1.0, used)
        return ColumnMap(None, n_columns, n_columns, 1.0)
    turns = [one.turn for one in maps if one.turn is not None]
    if any(not np.array_equal(turn.weights, turns[0].weights) for turn in turns):
        raise ValueError("Models with different directions cannot become one.")
    turn = turns[0] if turns else None
    n_mapped = n_columns + n_directions(turn)
    knots = [
        np.unique(np.concatenate([NOTHING, *(one.knots_of(j) for one in maps)]))
        for j in range(n_mapped)
    ]
    starts = np.cumsum([0, *(one.size for one in knots)]).astype(np.int32)
    table = hats_at_knots(starts, np.concatenate([NOTHING, *knots]))
    return ColumnMap(table, n_columns, n_mapped + int(starts[-1]), 1.0, turn=turn)


def hats_at_knots(knot_starts: Array, knots: Array) -> LevelTable:
    """Return the table of columns as they are, or with a hat at each knot and nothing else."""
    n_knots = np.diff(knot_starts).astype(np.int32)
    _, place = _places_of_knots(knot_starts)
    return LevelTable(
        shifts=np.zeros(n_knots.size, np.float32),
        factors=(n_knots == 0).astype(np.float32),
        knot_starts=knot_starts,
        knots=knots,
        places=place[None, :].astype(np.float32),
        n_hats=n_knots[None, :],
        first_hat=(n_knots.size + knot_starts[None, :-1]).astype(np.int32),
        heights=np.ones((1, n_knots.size), np.float32),
    )


def _places_of_knots(knot_starts: Array) -> tuple[Array, Array]:
    """The column of each knot, and its place among the knots of that column."""
    owner = np.repeat(np.arange(knot_starts.size - 1), np.diff(knot_starts))
    return owner, np.arange(owner.size) - knot_starts[owner]


def _turned(rows: Any, turn: Turn | None) -> Any:
    return rows if turn is None else turned_rows(rows, turn)


def _values_at_knots(table: LevelTable, j: int, planes: Array) -> Array:
    """Return the scores of planes over the features of column j at each of its knots."""
    first, end = table.knot_starts[j : j + 2]
    knots = table.knots[first:end].astype(np.float64)
    values: Array = np.outer((knots - table.shifts[j]) * table.factors[j], planes[j])
    for level, n_hats in enumerate(table.n_hats[:, j]):
        places = table.places[level, first:end].astype(np.float64)
        height, hat = float(table.heights[level, j]), int(table.first_hat[level, j])
        if n_hats == 1:
            values += np.outer(height * places, planes[hat])
        elif n_hats > 1:
            left = np.minimum(places.astype(int), n_hats - 2)
            share = (places - left)[:, None]
            of_hats = planes[hat : hat + n_hats]
            values += height * ((1 - share) * of_hats[left] + share * of_hats[left + 1])
    return values


def _longer(array: Array, n_new: int, fill: float) -> Array:
    return np.concatenate([array, np.full(n_new, fill, array.dtype)])


def _wider(array: Array, n_new: int) -> Array:
    return np.pad(array, ((0, 0), (0, n_new)))


def compact_rows(rows: Any, used: Array) -> CsrRows:
    """The rows with only these columns, called by their places; in time of what they hold."""
    entries = _as_csr(rows)
    places, is_used = _places(used, entries.columns)
    values, starts = entries.values, entries.starts
    if not is_used.all():
        n_before = np.concatenate([[0], np.cumsum(is_used)])
        values, places, starts = values[is_used], places[is_used], n_before[starts]
    return csr_rows_of(values, places.astype(entries.columns.dtype), starts, entries.constant)


def _as_csr(rows: Any) -> CsrRows:
    return rows if isinstance(rows, CsrRows) else packed(rows, in_place(count_rows(rows)))


def _places(used: Array, columns: Array) -> tuple[Array, Array]:
    """Where each column stands among those in use, and whether it does."""
    places = np.searchsorted(used, columns)
    return places, used[np.minimum(places, used.size - 1)] == columns


def _few_in_use(rows: Any, n_columns: int) -> Array | None:
    """The columns in use of CSR rows, if they are at most half of very many."""
    if not isinstance(rows, CsrRows) or n_columns <= MIN_WIDE_COLUMNS:
        return None
    is_used = np.zeros(n_columns, bool)
    is_used[rows.columns] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    return used if 0 < 2 * used.size <= n_columns else None


def column_map(
    rows: Any,
    order: Array,
    n_columns: int,
    kind: str,
    may_leave_out: bool = False,
    must_map: bool = False,
    turns: bool = False,
    scores: str = "values",
    known_turn: Turn | None = None,
    n_read: int | None = None,
) -> ColumnMap:
    """The map of this kind for dense or CSR rows, found from the rows of `order`.

    Columns left alone may leave out those that none of all rows uses. Texts and images are left
    alone, unless they must be mapped. Directions are there if it turns, and can: plain columns do
    not. A `known_turn` gives the directions of another map of the same columns. Columns from
    `n_read` on are there, but no feature is made of them.
    """
    if kind not in (AS_IS, *KINDS):
        raise ValueError(f"columns must be one of {', '.join((AS_IS, *KINDS))}, not {kind!r}.")
    must_map = must_map and kind != AS_IS
    used = _few_in_use(rows, n_columns) if may_leave_out and not must_map else None
    seen = rows if used is None else compact_rows(rows, used)
    n_features = n_columns if used is None else used.size
    statistics = _read_only(column_statistics(seen, order, n_features), n_read)
    is_left_alone = kind == AS_IS or used is not None or not _is_tabular(statistics, order.size)
    if is_left_alone and not must_map:
        length = _root_mean_square_length(statistics) or 1.0
        return ColumnMap(None, n_columns, n_features, length, used)
    some = _evenly_spaced(order, 0 if kind == "plain" else ROWS_LOOKED_AT)
    values = _values(rows, some, n_columns)
    turn = known_turn
    if turn is None and turns and kind != "plain":
        turn = _turn(values, statistics)
    n_mapped = n_columns + n_directions(turn)
    if turn is not None:
        turned = turned_rows(rows, turn)
        statistics = column_statistics(turned, order, n_mapped)
        statistics = _read_only(statistics, n_read, n_columns)
        values = _values(turned, some, n_mapped)
    table = _table([_column(kind, statistics, j, values[:, j], scores) for j in range(n_mapped)])
    return ColumnMap(table, n_columns, n_mapped + int(table.n_hats.sum()), 1.0, turn=turn)


def _read_only(
    statistics: ColumnStatistics, n_read: int | None, n_columns: int | None = None
) -> ColumnStatistics:
    """Return the statistics, as if columns between `n_read` and `n_columns` never changed."""
    if n_read is None:
        return statistics
    deviation, is_binary = statistics.deviation.copy(), statistics.is_binary.copy()
    deviation[n_read:n_columns], is_binary[n_read:n_columns] = 0, False
    return statistics._replace(deviation=deviation, is_binary=is_binary)


def _turn(values: Array, statistics: ColumnStatistics) -> Turn | None:
    """Principal directions of the standardised ranks of the real columns, of variance 1."""
    knots: list[Array] = [NOTHING] * values.shape[1]
    ranks: list[Array] = [NOTHING] * values.shape[1]
    of_rows = []
    is_real = ~statistics.is_binary & (statistics.deviation >= LEAST_DEVIATION)
    for j in np.flatnonzero(is_real).tolist():
        distinct, counts = np.unique(values[:, j], return_counts=True)
        if distinct.size > MOST_CATEGORIES:
            chosen = _knots(counts, MOST_KNOTS)
            knots[j] = distinct[chosen]
            ranks[j] = _rank_level(distinct, counts, chosen).places.astype(np.float32)
            of_rows.append(np.interp(values[:, j], knots[j], ranks[j]))
    if not 1 < len(of_rows) <= MOST_TURNED:
        return None
    variances, directions = np.linalg.eigh(np.cov(of_rows))
    kept = variances > LEAST_VARIANCE * variances.mean()
    weights = directions[:, kept] / np.sqrt(variances[kept])
    weights *= np.sign(weights[np.abs(weights).argmax(axis=0), np.arange(weights.shape[1])])
    starts = np.cumsum([0, *(one.size for one in knots)]).astype(np.int32)
    by_column = np.ascontiguousarray(weights, np.float32)
    return Turn(starts, np.concatenate(knots), np.concatenate(ranks), by_column)


def _is_tabular(statistics: ColumnStatistics, n_rows: int) -> bool:
    """Return True if columns are few, of different sizes, or of both signs."""
    is_real = ~statistics.is_binary & (statistics.deviation >= LEAST_DEVIATION)
    n_nonzero = statistics.n_nonzero[is_real]
    if n_nonzero.size == 0 and is_real.size > MOST_FLAGS:
        return False  # words that are there or not
    if n_nonzero.size < FEW_COLUMNS:
        return True
    squared = np.square(statistics.mean[is_real]) + np.square(statistics.deviation[is_real])
    sizes = np.sqrt(squared * n_rows / np.maximum(n_nonzero, 1))  # of entries that are not zero
    small, large = np.quantile(sizes, [0.1, 0.9])
    is_dense = n_nonzero.sum() >= LEAST_TABULAR_SHARE * n_rows * n_nonzero.size
    is_positive = statistics.mean[is_real] > LEAST_MEAN * statistics.deviation[is_real]
    is_of_both_signs = is_dense and is_positive.mean() < LEAST_POSITIVE
    return bool(large > MAX_SIZE_RATIO_OF_ONE_KIND * small) or is_of_both_signs


def _root_mean_square_length(statistics: ColumnStatistics) -> float:
    return math.sqrt((np.square(statistics.mean) + np.square(statistics.deviation)).sum())


def _evenly_spaced(order: Array, n_most: int) -> Array:
    n = min(order.size, n_most)
    return order[np.arange(n) * order.size // max(n, 1)]


def _values(rows: Any, order: Array, n_columns: int) -> Array:
    """The rows of `order` as a matrix."""
    values: Array = matrix_of(packed(rows, order), n_columns).toarray()
    return values


# ---- one column --------------------------------------------------------------------------


def _column(kind: str, statistics: ColumnStatistics, j: int, values: Array, scores: str) -> _Column:
    """Return the map of column j; values are given unless it can only be plain."""
    mean, deviation = float(statistics.mean[j]), float(statistics.deviation[j])
    if deviation < LEAST_DEVIATION:
        return _Column()
    if statistics.is_binary[j]:
        return _Column(factor=1.0, squared=mean)
    distinct, counts = np.unique(values, return_counts=True)
    if kind == "plain" or distinct.size <= 2:
        return _Column(mean, 1 / deviation, 1.0)
    if distinct.size <= MOST_CATEGORIES:
        hats = _Level(np.arange(distinct.size), distinct.size, 1.0)
        return _Column(squared=1.0, knots=distinct, levels=(hats,))
    if scores == "normal":
        return _normal(kind, distinct, counts)
    return _spread(kind, distinct, counts, mean, deviation)


def _spread(kind: str, distinct: Array, counts: Array, mean: float, deviation: float) -> _Column:
    """Values, ranks and hats of a real column of these values, met so many times each."""
    chosen = _knots(counts, MOST_KNOTS)
    knots = distinct[chosen]
    shares = _shares_of_hats(kind, knots.size)
    levels = [_rank_level(distinct, counts, chosen)]
    levels += [_hat_level(distinct, counts, knots, n, share) for n, share in shares.items()]
    squared = 1.0 + sum(shares.values())
    return _Column(mean, HALF / deviation, squared, knots, tuple(levels))


def _normal(kind: str, distinct: Array, counts: Array) -> _Column:
    """Normal scores in place of values, their ranks, and hats along them."""
    chosen = _knots(counts, MOST_KNOTS)
    middles = (counts.cumsum() - counts / 2) / counts.sum()
    quantile = importlib.import_module("scipy.special").ndtri  # which prediction need not load
    at_knots = quantile(middles[chosen])
    scores = np.interp(distinct, distinct[chosen], at_knots)
    mean = float(np.average(scores, weights=counts))
    deviation = math.sqrt(np.average(np.square(scores - mean), weights=counts))
    shares = _shares_of_hats(kind, chosen.size)
    levels = [
        _Level((at_knots - mean) / deviation, 1, HALF),
        _rank_level(distinct, counts, chosen),
    ]
    levels += [_hat_level(scores, counts, at_knots, n, share) for n, share in shares.items()]
    squared = 1.0 + sum(shares.values())
    return _Column(squared=squared, knots=distinct[chosen], levels=tuple(levels))


def _shares_of_hats(kind: str, n_knots: int) -> dict[int, float]:
    """Squared lengths of levels by their numbers of hats; levels that are alike become one."""
    shares: dict[int, float] = {}
    for n_hats, share in LEVELS[kind]:
        n = min(n_hats, n_knots)
        shares[n] = shares.get(n, 0.0) + share
    return shares


def _knots(counts: Array, n_most: int) -> Array:
    """Return the positions of the values that are knots, by the number of rows of each value."""
    if counts.size <= n_most:
        return np.arange(counts.size)
    n_rows = int(counts.sum())
    is_often = counts * n_most > n_rows
    n_up_to = np.cumsum(np.where(is_often, 0, counts))
    n_rest = max(2, n_most - int(is_often.sum()))
    places = np.arange(n_rest) * (n_up_to[-1] - 1) // (n_rest - 1)
    rest = np.searchsorted(n_up_to, places, side="right")
    return np.unique([0, counts.size - 1, *np.flatnonzero(is_often), *rest])


def _rank_level(distinct: Array, counts: Array, chosen: Array) -> _Level:
    """The ranks, standardised."""
    middles = (counts.cumsum() - counts / 2) / counts.sum()
    ranks = np.interp(distinct, distinct[chosen], middles[chosen])
    mean = float(np.average(ranks, weights=counts))
    deviation = math.sqrt(np.average(np.square(ranks - mean), weights=counts))
    return _Level((middles[chosen] - mean) / deviation, 1, HALF)


def _hat_level(distinct: Array, counts: Array, knots: Array, n_hats: int, share: float) -> _Level:
    """Hats at so many of the knots, evenly, of this mean squared length."""
    at = knots[np.arange(n_hats) * (knots.size - 1) // (n_hats - 1)]
    part = np.interp(distinct, at, np.arange(n_hats)) % 1
    squared = np.average(np.square(part) + np.square(1 - part), weights=counts)
    return _Level(np.interp(knots, at, np.arange(n_hats)), n_hats, math.sqrt(share / squared))


# ---- all columns -------------------------------------------------------------------------


def _table(columns: Sequence[_Column]) -> LevelTable:
    """The columns brought to length 1."""
    squared = sum(column.squared for column in columns)
    factor = 1 / math.sqrt(squared) if squared > 0 else 0.0
    n_levels = max((len(column.levels) for column in columns), default=0)
    starts = np.cumsum([0, *(column.knots.size for column in columns)])
    places = np.zeros((n_levels, starts[-1]), np.float32)
    n_hats = np.zeros((n_levels, len(columns)), np.int32)
    heights = np.zeros((n_levels, len(columns)), np.float32)
    for j, column in enumerate(columns):
        for k, level in enumerate(column.levels):
            places[k, starts[j] : starts[j + 1]] = level.places
            n_hats[k, j], heights[k, j] = level.n_hats, factor * level.height
    first_hat = len(columns) + n_hats.ravel().cumsum() - n_hats.ravel()
    return LevelTable(
        shifts=np.array([column.shift for column in columns], np.float32),
        factors=np.array([column.factor * factor for column in columns], np.float32),
        knot_starts=starts.astype(np.int32),
        knots=np.concatenate([NOTHING, *(column.knots for column in columns)]),
        places=places,
        n_hats=n_hats,
        first_hat=first_hat.reshape(n_hats.shape).astype(np.int32),
        heights=heights,
    )
