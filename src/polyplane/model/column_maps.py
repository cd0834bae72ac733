"""How a classifier sees the columns of X, so that nobody has to scale them first.

Kinds    plain    real columns are standardised
         rank     real columns become their ranks, standardised: rank(x) is the share of rows below
                  x and half of those equal to it, exact at up to 64 knots, and linear in between
         knots    the same, and eight hats along the ranks, so that planes can bend; a column of 3
                  to 8 values is a category, with a hat for each of them and no linear feature;
                  one of two values is plain
Others   columns of 0 and 1 are not shifted, so that sparse rows stay sparse. Columns that never
         change say nothing and are dropped. Data that are not tabular, wide and sparse such as
         texts and images, are left alone altogether.
Length   linear features have one common factor and hats one height, such that both parts, and the
         whole, have length 1 in the root mean square: steps then suit all data. The constant
         feature is 1 beside them; data left alone get one as long as their rows instead.
Folding  standardisation is linear, so finished planes take it in: they apply to X as it comes, or
         to rows in which only columns with knots are mapped. In float32 that costs accuracy if
         means are many deviations from zero: errors are up to 3e-7 |mean| / deviation of the
         spread of the scores, so 1e-3 of it at a mean of some thousands, a fifth at a million.
Width    of wide sparse data with at most half of the columns in use only these have features: a
         fit costs what its rows hold, however far apart their columns are.
Rows     statistics are of all training rows, values and ranks of at most 20,000, evenly spaced.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.inspection import ColumnStatistics, column_statistics
from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.mapped import ColumnTable, mapped_rows
from polyplane.engine.rows.storage import CsrRows, Rows, count_rows, matrix_of, packed

__all__ = ["KINDS", "ColumnMap", "column_map", "compact_rows"]

KINDS = "plain", "rank", "knots"
MOST_TABULAR_COLUMNS = 200  # wider data are tabular if they are dense
LEAST_TABULAR_SHARE = 0.75  # of entries that are not zero
LEAST_DEVIATION = 1e-30  # below that a column counts as constant: its factor would overflow
ROWS_LOOKED_AT = 20_000
MOST_KNOTS = 64
MOST_CATEGORIES = 8
N_HATS = 8
NOTHING = np.empty(0, np.float32)


class _Column(NamedTuple):
    """How a column is mapped before lengths are settled; without arguments, not at all."""

    shift: float = 0.0
    factor: float = 0.0
    squared_linear: float = 0.0  # mean square of the linear feature
    knots: Array = NOTHING
    ranks: Array = NOTHING
    n_hats: int = 0
    squared_hats: float = 0.0  # mean squared length of the hats, if their height is 1


@dataclass(frozen=True)
class ColumnMap:
    """What columns become for training, and how planes learnt there apply to X."""

    table: ColumnTable | None  # None: columns are left alone
    n_columns: int
    n_features: int  # in training, without the constant
    constant: float  # value of the constant feature in training, where there is an intercept
    used: Array | None = None  # [feature] int32, rising: the columns that have features; None: all

    @property
    def has_knots(self) -> bool:
        """Whether prediction, too, has to map rows."""
        return self.table is not None and self.table.knots.size > 0

    def for_training(self, rows: Any) -> Rows:
        """Rows as training sees them; a constant of 0 stays 0."""
        rows = self._compact(rows)
        seen: Rows = (
            rows._replace(constant=np.float32(self.constant * rows.constant))
            if self.table is None
            else mapped_rows(rows, self.table)
        )
        return seen

    def for_prediction(self, rows: Any) -> Rows:
        """Rows as folded planes see them; their constant must be 1, intercept or not."""
        rows = self._compact(rows)
        seen: Rows = mapped_rows(rows, self._prediction_table()) if self.has_knots else rows
        return seen

    def _compact(self, rows: Any) -> Any:
        return rows if self.used is None else compact_rows(rows, self.used)

    def knows(self, rows: Any) -> bool:
        """Whether all columns that rows hold have features."""
        if self.used is None:
            return True
        entries = _as_csr(rows)
        return bool(_places(self.used, entries.columns)[1].all())

    def with_all_columns(self) -> "ColumnMap":
        """The same map with a feature for every column."""
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
        if self.table is not None:
            plain = np.flatnonzero(np.diff(self.table.knot_starts) == 0)
            planes[1 + plain] *= self.table.factors[plain, None]
            planes[0] -= (planes[1 + plain] * self.table.shifts[plain, None]).sum(axis=0)
        return planes.astype(np.float32)

    def widened(self, n_columns: int) -> "ColumnMap":
        """The same map for more columns: new ones are scaled like others, and not shifted."""
        n_new = n_columns - self.n_columns
        if n_new <= 0:
            return self
        if self.used is not None:
            return replace(self, n_columns=n_columns)
        if self.table is None:
            return replace(self, n_columns=n_columns, n_features=n_columns)
        if self.n_features > self.n_columns:
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
            n_hats=_longer(self.table.n_hats, n_new, 0),
            first_hat=_longer(self.table.first_hat, n_new, 0),
        )
        return replace(self, table=table, n_columns=n_columns, n_features=n_columns)

    def of_prediction(self) -> "ColumnMap":
        """What is left of the map once planes have taken in all that is linear."""
        table = self._prediction_table() if self.has_knots else None
        return ColumnMap(table, self.n_columns, self.n_features, 1.0, self.used)

    def _prediction_table(self) -> Any:
        """The map without what folded planes have taken in."""
        table: Any = self.table
        has_knots = np.diff(table.knot_starts) > 0
        return table._replace(
            shifts=np.where(has_knots, table.shifts, np.float32(0)),
            factors=np.where(has_knots, table.factors, np.float32(1)),
        )


def _longer(array: Array, n_new: int, fill: float) -> Array:
    return np.concatenate([array, np.full(n_new, fill, array.dtype)])


def compact_rows(rows: Any, used: Array) -> CsrRows:
    """The rows with only these columns, called by their places; in time of what they hold."""
    entries = _as_csr(rows)
    places, is_used = _places(used, entries.columns)
    values, starts = entries.values, entries.starts
    if not is_used.all():
        n_before = np.concatenate([[0], np.cumsum(is_used)])
        values, places, starts = values[is_used], places[is_used], n_before[starts]
    places, starts = places.astype(entries.columns.dtype), starts.astype(entries.starts.dtype)
    return CsrRows(values, places, starts, entries.constant)


def _as_csr(rows: Any) -> CsrRows:
    return rows if isinstance(rows, CsrRows) else packed(rows, in_place(count_rows(rows)))


def _places(used: Array, columns: Array) -> tuple[Array, Array]:
    """Where each column stands among those in use, and whether it does."""
    places = np.searchsorted(used, columns)
    return places, used[np.minimum(places, used.size - 1)] == columns


def _few_in_use(rows: Any, n_columns: int) -> Array | None:
    """The columns in use of CSR rows, if they are at most half of very many."""
    if not isinstance(rows, CsrRows) or n_columns <= MOST_TABULAR_COLUMNS:
        return None
    is_used = np.zeros(n_columns, bool)
    is_used[rows.columns] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    return used if 0 < 2 * used.size <= n_columns else None


def column_map(
    rows: Any, order: Array, n_columns: int, kind: str, may_leave_out: bool = False
) -> ColumnMap:
    """The map of this kind for dense or CSR rows, found from the rows of `order`.

    It may leave out columns that none of all rows uses.
    """
    if kind not in KINDS:
        raise ValueError(f"columns must be one of {', '.join(KINDS)}, not {kind!r}.")
    used = _few_in_use(rows, n_columns) if may_leave_out else None
    if used is not None:  # so few are not tabular
        statistics = column_statistics(compact_rows(rows, used), order, used.size)
        length = _root_mean_square_length(statistics) or 1.0
        return ColumnMap(None, n_columns, used.size, length, used)
    statistics = column_statistics(rows, order, n_columns)
    if not _is_tabular(statistics, order.size):
        return ColumnMap(None, n_columns, n_columns, _root_mean_square_length(statistics) or 1.0)
    n_looked_at = 0 if kind == "plain" else ROWS_LOOKED_AT
    values = _values(rows, _evenly_spaced(order, n_looked_at), n_columns)
    table = _table([_column(kind, statistics, j, values[:, j]) for j in range(n_columns)])
    return ColumnMap(table, n_columns, n_columns + int(table.n_hats.sum()), 1.0)


def _is_tabular(statistics: ColumnStatistics, n_rows: int) -> bool:
    n_columns, n_nonzero = statistics.mean.size, float(statistics.n_nonzero.sum())
    is_narrow: bool = n_columns <= MOST_TABULAR_COLUMNS
    return is_narrow or n_nonzero >= LEAST_TABULAR_SHARE * n_rows * n_columns


def _root_mean_square_length(statistics: ColumnStatistics) -> float:
    return math.sqrt((np.square(statistics.mean) + np.square(statistics.deviation)).sum())


def _evenly_spaced(order: Array, n_most: int) -> Array:
    n = min(order.size, n_most)
    return order[np.arange(n) * order.size // max(n, 1)]


def _values(rows: Any, order: Array, n_columns: int) -> Array:
    """The rows of `order` as a matrix."""
    values: Array = matrix_of(packed(rows, order), n_columns).toarray()
    return values


def _column(kind: str, statistics: ColumnStatistics, j: int, values: Array) -> _Column:
    """What becomes of column j, of which some values are given unless it can only be plain."""
    mean, deviation = float(statistics.mean[j]), float(statistics.deviation[j])
    if deviation < LEAST_DEVIATION:
        return _Column()
    if statistics.is_binary[j]:
        return _Column(factor=1.0, squared_linear=mean)
    distinct, counts = np.unique(values, return_counts=True)
    if kind == "rank" and distinct.size > 1:
        return _ranked(distinct, counts, 0)
    if kind == "knots" and distinct.size > MOST_CATEGORIES:
        return _ranked(distinct, counts, N_HATS)
    if kind == "knots" and distinct.size > 2:
        return _category(distinct)
    return _Column(mean, 1 / deviation, 1.0)


def _category(distinct: Array) -> _Column:
    ranks = np.arange(distinct.size) / (distinct.size - 1)
    return _Column(knots=distinct, ranks=ranks, n_hats=distinct.size, squared_hats=1.0)


def _ranked(distinct: Array, counts: Array, n_hats: int) -> _Column:
    chosen, middles = _knots(counts)
    ranks = np.interp(distinct, distinct[chosen], middles[chosen])
    mean = float(np.average(ranks, weights=counts))
    deviation = math.sqrt(np.average(np.square(ranks - mean), weights=counts))
    hats = np.average(_squared_hats(ranks, n_hats), weights=counts) if n_hats else 0.0
    return _Column(mean, 1 / deviation, 1.0, distinct[chosen], middles[chosen], n_hats, float(hats))


def _knots(counts: Array) -> tuple[Array, Array]:
    """Which of some values, met so many times each, are knots, and the ranks of all values."""
    n_up_to = counts.cumsum()
    n_rows = n_up_to[-1]
    middles = (n_up_to - counts / 2) / n_rows
    if counts.size <= MOST_KNOTS:
        return np.arange(counts.size), middles
    places = np.arange(MOST_KNOTS) * (n_rows - 1) // (MOST_KNOTS - 1)
    return np.unique(np.searchsorted(n_up_to, places, side="right")), middles


def _squared_hats(ranks: Array, n_hats: int) -> Array:
    """Squared length of the two hats beside each rank."""
    share = ranks * (n_hats - 1) % 1
    squared: Array = np.square(share) + np.square(1 - share)
    return squared


def _table(columns: Sequence[_Column]) -> ColumnTable:
    """The columns brought to length 1."""
    linear = sum(column.squared_linear for column in columns)
    hats = sum(column.squared_hats for column in columns)
    share = 0.5 if linear > 0 and hats > 0 else 1.0
    factor = math.sqrt(share / linear) if linear > 0 else 0.0
    height = math.sqrt(share / hats) if hats > 0 else 0.0
    n_hats = np.array([column.n_hats for column in columns], np.int32)
    starts = np.cumsum([0, *(column.knots.size for column in columns)])
    return ColumnTable(
        shifts=np.array([column.shift for column in columns], np.float32),
        factors=np.array([column.factor * factor for column in columns], np.float32),
        knot_starts=starts.astype(np.int32),
        knots=np.concatenate([NOTHING, *(column.knots for column in columns)]),
        ranks=np.concatenate([NOTHING, *(column.ranks for column in columns)]).astype(np.float32),
        n_hats=n_hats,
        first_hat=(len(columns) + n_hats.cumsum() - n_hats).astype(np.int32),
        height=np.float32(height),
    )
