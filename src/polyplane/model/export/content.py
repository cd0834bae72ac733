"""A fitted classifier for programs without Python: one description for all exports.

Columns of a table become a row of X (`table_input.py`), which is scaled as the pipeline around the
classifier asks (`Scaling`). Columns of X are mapped, or multiplied by each other, before planes
score them (`Planes`); groups of planes, or support vectors, score classes (`Decomposition`). All of
it is values, which the folders beside this file write down, each in its own language, without
knowing anything of estimators.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import jit
from polyplane.engine.rows.mapped import ColumnTable, MappedRows
from polyplane.engine.rows.products import HashedRows, Poly2Rows, hashed_column
from polyplane.engine.rows.storage import DenseRows, matrix_of
from polyplane.engine.rows.turned import Turn, TurnedRows
from polyplane.model.export.table_input import TableInput
from polyplane.model.format.model_file import ModelError
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.kernels.kernel_values import FormulaKernel
from polyplane.model.many_classes.decomposition import REST, Decomposition
from polyplane.model.plane_record import PlaneRecord

__all__ = [
    "Exported",
    "Mapped",
    "Planes",
    "Products",
    "Scaling",
    "Support",
    "formula_of",
    "planes_of",
    "sides_of_problems",
    "support_of",
]


class Scaling(NamedTuple):
    """Map of a step of a pipeline: (x - shift) / divisor, kept within limits."""

    shift: Array | None  # [column] float64; None: nothing is taken away
    divisor: Array | None  # [column] float64; None: nothing is divided
    limits: tuple[float, float] | None = None

    @property
    def keeps_zeros(self) -> bool:
        """Return True if sparse rows stay sparse."""
        return self.shift is None


# ---- planes ------------------------------------------------------------------------------


class Mapped(NamedTuple):
    """Columns that are mapped, with directions through their ranks behind them."""

    table: ColumnTable
    turn: Turn | None


class Products(NamedTuple):
    """Columns and products of two columns, by factors."""

    linear: np.float32
    square: np.float32
    cross: np.float32
    n_hash: int  # 0: products are not hashed


@dataclass(frozen=True)
class Planes:
    """Planes over columns that are as they are, mapped, or multiplied, and groups of planes."""

    columns: Mapped | Products | None  # None: as they are
    sums: Array  # [feature, plane] float32, without the constant feature
    constants: Array  # [plane] float32: what the constant feature adds
    scales: Array  # [plane] float32: of sums with constants
    group_starts: Array  # [group + 1]: where the planes of each group begin, and the end
    group_weights: Array | None  # [group] float32
    is_soft: bool  # a group scores the log of a sum of exponentials, not its best plane's score
    empty_score: float  # of a group without planes; minus infinity: it must not win
    n_units: int  # groups that are added up
    n_estimators: int  # whose sums are averaged

    @property
    def n_planes(self) -> int:
        """Return the number of planes."""
        return self.scales.size

    @cached_property
    def group_sizes(self) -> Array:
        """Return the number of planes in each group."""
        return np.diff(self.group_starts)

    def of_products(self, n_columns: int) -> Array:
        """Return the planes over columns, then over products of two columns, by feature.

        Product x_i x_j, i <= j, comes by j, then by i. Factors and signs of hashes are taken in.
        """
        assert isinstance(self.columns, Products)
        j, i = np.tril_indices(n_columns)
        starts = np.arange(n_columns) * np.arange(3, n_columns + 3) // 2  # as `n_mapped` counts
        columns = np.concatenate([starts, starts[j] + 1 + i])
        factors = np.full(columns.size, self.columns.cross, np.float32)
        factors[:n_columns] = self.columns.linear
        factors[n_columns:][i == j] = self.columns.square
        if self.columns.n_hash:
            place, sign = np.empty_like(columns), np.empty_like(factors)
            _hash_columns(columns, self.columns.n_hash, place, sign)
            columns, factors = place, factors * sign
        features: Array = self.sums[columns] * factors[:, None]
        return features


def planes_of(record: PlaneRecord, rows: Any) -> Planes:
    """Return the planes of a record; `rows` are any rows as these planes see them.

    A record without planes has one of zeros that is in no group.
    """
    n_planes, scales = record.n_planes, record.scales
    if n_planes == 0:
        n_planes, scales = 1, np.ones(1, np.float32)
    return Planes(
        columns=_columns_of(rows),
        sums=record.sums[1:, :n_planes],
        constants=record.sums[0, :n_planes] * np.float32(rows.constant),
        scales=scales,
        group_starts=np.searchsorted(record.group, np.arange(record.n_groups + 1)),
        group_weights=record.group_weights,
        is_soft=record.is_soft,
        empty_score=record.empty_score,
        n_units=record.n_units,
        n_estimators=record.n_estimators,
    )


def _columns_of(rows: Any) -> Mapped | Products | None:
    """Return what rows do to columns before planes see them."""
    if isinstance(rows, DenseRows):
        return None
    if isinstance(rows, MappedRows):
        turn = rows.base.table if isinstance(rows.base, TurnedRows) else None
        return Mapped(rows.table, turn)
    base = rows.base if isinstance(rows, HashedRows) else rows
    if not isinstance(base, Poly2Rows):
        raise ModelError(f"planes over {type(rows).__name__} cannot be exported")
    n_hash = rows.totals.size if isinstance(rows, HashedRows) else 0
    return Products(base.linear, base.square, base.cross, n_hash)


@jit
def _hash_columns(columns: Any, n_hash: Any, place: Any, sign: Any) -> None:
    for k in range(columns.size):
        place[k], sign[k] = hashed_column(columns[k], n_hash)


# ---- the whole ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Exported:
    """A fitted classifier for another program."""

    title: str  # name of the estimator
    n_columns: int  # of X
    column_names: Sequence[str]  # empty where columns have none
    classes: Array  # labels by rank
    table: TableInput | None  # where X is made of the columns of a table
    scalings: Sequence[Scaling]  # of X
    scorer: Planes | KernelRecord
    decomposition: Decomposition  # from scores of groups or problems to those of classes
    calibration: float | None  # scores times that are log-probabilities; None: there are none

    def summary(self) -> str:
        """Return the size of the model, in words."""
        if isinstance(self.scorer, Planes):
            parts = f"{self.scorer.n_planes} planes"
        else:
            parts = f"{self.scorer.support.size} support vectors"
        n_columns = self.n_columns if self.table is None else len(self.table.columns)
        return f"{self.title}: {n_columns} columns, {self.classes.size} classes, {parts}"


def sides_of_problems(decomposition: Decomposition) -> Array:
    """Rank of the class of both sides of each problem, REST where a side has none."""
    sides = np.array([problem.classes for problem in decomposition.problems()])
    return np.where(sides == REST, REST, decomposition.ranks[sides]).astype(np.int32)


# ---- kernels -----------------------------------------------------------------------------


class Support(NamedTuple):
    """Support vectors with their zeros: one at least, without weight where there is none."""

    vectors: Array  # [vector, column] float32
    squared_lengths: Array  # [vector] float32
    coefs: Array  # [vector, problem] float64


def formula_of(record: KernelRecord) -> Any:
    """The formula of the kernel; functions and matrices of the user's have none."""
    if not isinstance(record.kernel, FormulaKernel):
        raise ModelError(
            "a kernel that is precomputed or a function cannot be exported, for it is no part of "
            "the model: fit with kernel='rbf', 'linear', 'poly' or 'sigmoid'"
        )
    return record.kernel.formula


def support_of(record: KernelRecord, n_columns: int) -> Support:
    """The support vectors of a kernel model."""
    if record.support.size == 0:
        nothing = np.zeros((1, n_columns), np.float32), np.zeros(1, np.float32)
        return Support(*nothing, np.zeros((1, len(record.expansions))))
    vectors = matrix_of(record.support.entries, n_columns).toarray()
    return Support(vectors, record.support.lengths, np.ascontiguousarray(record.dual_coefs().T))
