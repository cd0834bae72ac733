"""Why rows were given their labels: what each column gave to the lead of the winner.

The lead of a row is that of the winning class over the runner-up, in the scores of
`decision_function`; where pairs of classes decide (multi_class='ovo'), whose rule is not a sum, it
is the lead of the winner in the model of this pair. How it is shared out among columns is in
`engine/planes/explaining.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.planes.contributions import (
    ToColumns,
    ToEntries,
    ToOwners,
    ToPairs,
    Typical,
)
from polyplane.engine.planes.explaining import (
    Explained,
    Sides,
    explain_best,
    explain_soft,
    mean_of_columns,
    parts_of,
)
from polyplane.engine.rows.products import HashedRows, n_mapped, unhashed
from polyplane.engine.rows.storage import (
    CsrRows,
    DenseRows,
    Rows,
    count_rows,
    csr_rows_of,
    dense_rows,
    matrix_of,
    packed,
    with_own_page,
)
from polyplane.engine.rows.turned import Turn, n_directions
from polyplane.model.plane_record import ROWS_WORTH_A_THREAD, PlaneRecord
from polyplane.model.prediction import Features
from polyplane.model.threads import shared_out

__all__ = ["Change", "Explainer", "Explanation"]

MOST_UNHASHED = 1 << 28  # weights of products, told apart again
NOTHING_TYPICAL = Typical(np.empty((0, 0), np.float32), np.empty(0))
NO_GROUPS = np.empty((0, 2), np.int32)
ROWS_WRITTEN = 1 << 10  # at a time: rows of many features take some room
MIN_TERM_SIZE = 1e-6  # beside ranks, whose deviation is 1


class Change(NamedTuple):
    """Change of one column of a row, after which the runner-up wins.

    Attributes
    ----------
    column : int
        Number of the column, as in `contributions`.
    name : str or None
        Name of the column.
    old, new : object
        Value before and after; None if it is missing.
    size : float
        Share of the rows whose values lie between both, from 0 to 1.
    """

    column: int  # as in `contributions`
    name: str | None
    old: Any  # None: missing
    new: Any
    size: float  # share of rows that are passed over, from 0 to 1


@dataclass(frozen=True)
class Explanation:
    """Contributions of columns to the decision about each row: `lead` = their sum + `base`.

    Attributes
    ----------
    contributions : ndarray or CSR matrix of shape (n_rows, n_features)
        Contribution of each column to the lead of the winner over the runner-up.
    base : ndarray of shape (n_rows,)
        Part of the lead that no column gives.
    winner : ndarray of shape (n_rows,)
        Label that is predicted.
    runner_up : ndarray of shape (n_rows,)
        Label that scores next.
    planes : ndarray of shape (n_rows, 2)
        Numbers in `planes_` of the best plane of the winner and of the runner-up.
    names : sequence of str or None
        Names of the columns, where the model knows some.
    lead : ndarray of shape (n_rows,)
        Lead of the winner over the runner-up.
    importances : ndarray of shape (n_features,)
        Mean over the rows of the absolute contribution of each column.
    """

    contributions: Any  # [row, column] float32; CSR where X is sparse and its zeros give nothing
    base: Array  # [row] float64: what no column gives
    winner: Array  # [row]: the label predicted
    runner_up: Array  # [row]: the label that scores next
    planes: Array  # [row, 2]: in `planes_`, the best plane of the winner and of the runner-up
    names: Sequence[str] | None = None  # of columns, where the model knows some
    alternatives: Callable[[Array], list[Change | None]] | None = field(
        default=None, repr=False, compare=False
    )  # predicts changed rows anew

    def changes(self) -> list[Change | None]:
        """Return for each row the smallest change of one column that would make the runner-up win.

        None where no such change was found. Values are those that the column has in the rows of
        the reference, or in the rows explained; each changed row is predicted.
        """
        if self.alternatives is None:
            raise ValueError("Only the explanations of an estimator can try changes.")
        return self.alternatives(self.runner_up)

    @property
    def lead(self) -> Array:
        """Return the lead of the winner over the runner-up."""
        total: Array = np.asarray(self.contributions.sum(axis=1, dtype=np.float64)).ravel()
        return total + self.base

    @property
    def importances(self) -> Array:
        """Mean over the rows of the absolute contribution of each column."""
        total: Array = np.asarray(abs(self.contributions).sum(axis=0, dtype=np.float64)).ravel()
        return total / max(1, self.base.size)


@dataclass(frozen=True)
class Explainer:
    """A finished classifier and the columns to which its features belong."""

    record: PlaneRecord
    features: Features
    n_columns: int  # of the rows that features are made of
    labels: Array  # of classes, sorted
    names: Sequence[str] | None
    typical: Typical = NOTHING_TYPICAL
    shown_as: Array | None = None  # [column] int32: the one it is shown as, where some are one

    def with_reference(self, rows: Any) -> "Explainer":
        """Contributions are then what differs from the mean over these rows."""
        record, rows = self._told_apart(rows)
        of_columns = np.zeros((record.sums.shape[1], self._n_shown))
        order, owners = in_place(count_rows(rows)), self._owners()
        for piece in _pieces(rows, order):
            mean_of_columns(piece.rows, piece.order, order.size, record.sums, *owners, of_columns)
        typical = Typical(of_columns.astype(np.float32), of_columns.sum(axis=1))
        return replace(self, typical=typical)

    def explain(self, rows: Any, n_jobs: int) -> Explanation:
        """All rows, which are as planes see them."""
        if self.labels.size < 2:
            raise ValueError("There is nothing to explain before a second class has been met.")
        order = in_place(count_rows(rows))
        choices = self._choices_of_pairs(rows, order, n_jobs)
        found = Explained(np.empty(order.size), choices, np.empty_like(choices))
        record, rows = self._told_apart(rows)
        contributions: Any
        if self._keeps_zeros(rows):
            values = np.zeros(rows.values.size, np.float32)
            contributions = self._as_entries(rows, values)
            _fill(record, rows, order, ToEntries(values), found, n_jobs)
        else:
            contributions = np.zeros((order.size, self._n_shown), np.float32)
            _fill(record, rows, order, self._target(contributions), found, n_jobs)
            if self._turn is not None:
                contributions = self._by_column(contributions, rows, self._turn)
        return Explanation(
            contributions,
            found.base,
            self.labels[found.choices[:, 0]],
            self.labels[found.choices[:, 1]],
            found.planes,
            self.names,
        )

    def _choices_of_pairs(self, rows: Rows, order: Array, n_jobs: int) -> Array:
        """Room for winners and runners-up; where pairs decide, those."""
        choices = np.zeros((order.size, 2), np.int32)
        if _pairs_decide(self.record):
            scores = self.record.class_scores(rows, order, n_jobs)
            choices[:, 0] = scores.argmax(axis=1)
            scores[np.arange(order.size), choices[:, 0]] = -np.inf
            choices[:, 1] = scores.argmax(axis=1)
            choices[choices[:, 0] == choices[:, 1], 1] = 1  # all others are infinitely low
        return choices

    def _keeps_zeros(self, rows: Any) -> bool:
        """Return True if contributions are only at the entries of sparse rows."""
        is_plain = self.typical is NOTHING_TYPICAL and self.shown_as is None
        return is_plain and isinstance(rows, CsrRows)

    def _as_entries(self, rows: Any, values: Array) -> Any:
        """Contributions, which are yet to come, where rows have entries."""
        columns = rows.columns.copy()
        if self.features.columns is not None and self.features.columns.used is not None:
            columns = self.features.columns.used[columns]
        shape = count_rows(rows), self.n_columns
        return sp.csr_matrix((values, columns, rows.starts.copy()), shape=shape, copy=False)

    def _target(self, values: Array) -> Any:
        """Where contributions go in a matrix."""
        columns = self.features.columns
        if self.features.products is not None:
            return ToPairs(values, self.typical, *self._owners())
        is_own = columns is None or not (columns.has_knots or columns.used is not None)
        if is_own and self.shown_as is None:
            return ToColumns(values, self.typical)
        return ToOwners(values, self.typical, self._owners()[0])

    @property
    def _turn(self) -> Turn | None:
        return None if self.features.columns is None else self.features.columns.turn

    @property
    def _n_shown(self) -> int:
        """Columns that are shown, and directions behind them."""
        return self._n_columns_shown + n_directions(self._turn)

    @property
    def _n_columns_shown(self) -> int:
        """Some may have no part in any row, such as those that were set aside."""
        if self.shown_as is None:
            return self.n_columns
        n_named = 0 if self.names is None else len(self.names)
        return max(int(self.shown_as.max()) + 1, n_named)

    def _shown(self) -> Array:
        """Return the number of the column that each column or direction is shown as."""
        columns = self.shown_as
        if columns is None:
            columns = np.arange(self.n_columns, dtype=np.int32)
        behind = np.arange(self._n_columns_shown, self._n_shown, dtype=np.int32)
        shown: Array = np.concatenate([columns, behind])
        return shown

    def _by_column(self, contributions: Array, rows: Any, turn: Turn) -> Array:
        """Share contributions of directions among their columns by the sizes of their terms."""
        ranked = np.flatnonzero(np.diff(turn.knot_starts))
        base = rows.base.base
        values = matrix_of(packed(base, in_place(count_rows(base))), self.n_columns)[:, ranked]
        sizes = np.empty(values.shape)
        for k, (j, column) in enumerate(zip(ranked, values.toarray().T, strict=True)):
            part = slice(turn.knot_starts[j], turn.knot_starts[j + 1])
            sizes[:, k] = (
                np.abs(np.interp(column, turn.knots[part], turn.ranks[part])) + MIN_TERM_SIZE
            )
        n_shown = self._n_columns_shown
        weights = np.abs(turn.weights).astype(np.float64)
        given = sizes * ((contributions[:, n_shown:] / (sizes @ weights)) @ weights.T)
        shown = contributions[:, :n_shown].copy()
        np.add.at(shown.T, self._shown()[ranked], given.T.astype(np.float32))
        return shown

    def _owners(self) -> tuple[Array, Array]:
        """The two columns of each feature, which are the same unless it is a product."""
        columns = self.features.columns
        if self.features.products is not None:
            first, second = _columns_of_products(self.n_columns)
        elif columns is not None:
            first = second = columns.columns_of_features()
        else:
            first = second = np.arange(self.n_columns, dtype=np.int32)
        shown = self._shown()
        return shown[first], shown[second]

    def _told_apart(self, rows: Any) -> tuple[PlaneRecord, Any]:
        """The planes and the rows; hashed products are told apart again."""
        record = self.record
        if not isinstance(rows, HashedRows):
            n_features = self._owners()[0].size
            if len(record.sums) != n_features + 1:  # loops would write beyond the columns
                raise ValueError(
                    f"Planes have {len(record.sums) - 1} features, but {self.n_columns} columns "
                    f"make {n_features}."
                )
            return record, rows
        n_features = n_mapped(self.n_columns)
        if n_features * record.sums.shape[1] > MOST_UNHASHED:
            raise ValueError(
                f"{self.n_columns} columns make {n_features:,} products, too many to explain one "
                "by one: choose fewer columns, or see permutation_importance of scikit-learn."
            )
        sums = unhashed(record.sums, n_features, rows.totals.size)
        return replace(record, sums=sums), rows.base


def _pairs_decide(record: PlaneRecord) -> bool:
    return record.decomposition.kind == "ovo" and not record.decomposition.is_joint


def _columns_of_products(n_columns: int) -> tuple[Array, Array]:
    """The two columns of each feature, by the order of `engine/rows/products.py`."""
    last = np.repeat(np.arange(n_columns), np.arange(n_columns) + 2)
    place = np.arange(last.size) - last * (last + 3) // 2
    first = np.where(place == 0, last, place - 1)
    return first.astype(np.int32), last.astype(np.int32)


def _fill(
    record: PlaneRecord, rows: Any, order: Array, target: Any, found: Explained, n_jobs: int
) -> None:
    """Each thread its share of the rows."""
    sides = _sides_of(record)
    given = _groups_of_pairs(record, found.choices) if _pairs_decide(record) else NO_GROUPS
    explain = explain_soft if record.is_soft else explain_best

    def work(first: int, last: int) -> None:
        scorer = record.scorer()
        parts = parts_of(scorer, sides)
        for piece in _pieces(rows, order[first:last]):
            place = slice(first + piece.first, first + piece.first + piece.order.size)
            own, part = sides._replace(given=given[place]), target
            if not isinstance(target, ToEntries):
                part = target._replace(values=target.values[place])
            out = Explained(*(array[place] for array in found))
            explain(piece.rows, piece.order, scorer, own, parts, part, out)

    shared_out(work, order.size, n_jobs, ROWS_WORTH_A_THREAD)


class _Piece(NamedTuple):
    """Some rows as loops see them."""

    first: int  # where they begin in the order
    rows: CsrRows | DenseRows
    order: Array


def _pieces(rows: Any, order: Array) -> Iterator[_Piece]:
    """The rows of `order` as dense or CSR rows of 32 bits, where they are others some at a time.

    So the loops that explain, which are large, are compiled for these two and no other kinds.
    """
    if isinstance(rows, CsrRows):  # whose entries keep their places
        values = rows.values.astype(np.float32, copy=False)
        columns = rows.columns.astype(np.int32, copy=False)
        yield _Piece(0, csr_rows_of(values, columns, rows.starts, rows.constant), order)
        return
    mine = with_own_page(rows)
    if isinstance(rows, DenseRows) and rows.values.dtype == np.float32:
        yield _Piece(0, mine, order)
        return
    for first in range(0, order.size, ROWS_WRITTEN):
        part = order[first : first + ROWS_WRITTEN]
        some: Any
        if isinstance(rows, DenseRows):
            some = dense_rows(rows.values[part].astype(np.float32), rows.constant)
        else:
            some = packed(mine, part)
        yield _Piece(first, some, in_place(part.size))


def _sides_of(record: PlaneRecord) -> Sides:
    """Groups that speak for and against each class, by rank; none where pairs decide."""
    decomposition = record.decomposition
    plus = np.arange(decomposition.n_classes, dtype=np.int32)
    minus = np.full(plus.size, -1, np.int32)
    if not decomposition.is_joint:
        seconds = [problem.classes[1] for problem in decomposition.problems()]
        if decomposition.kind == "ovr":
            places = np.argsort(decomposition.ranks[seconds])
            plus, minus = (2 * places + 1).astype(np.int32), (2 * places).astype(np.int32)
        else:
            plus = minus = np.empty(0, np.int32)
    weights = record.group_weights
    if weights is None:
        weights = np.ones(record.n_groups, np.float32)
    return Sides(
        plus,
        minus,
        decomposition.n_groups(),
        record.n_units,
        record.n_estimators,
        weights,
        NO_GROUPS,
    )


def _groups_of_pairs(record: PlaneRecord, choices: Array) -> Array:
    """Return the groups of winners and runners-up in the model of the two."""
    codes = np.argsort(record.decomposition.ranks)[choices].astype(np.int64)
    low, high = codes.min(axis=1), codes.max(axis=1)
    place = high * (high - 1) // 2 + low
    groups: Array = (2 * place[:, None] + (codes == high[:, None])).astype(np.int32)
    return groups
