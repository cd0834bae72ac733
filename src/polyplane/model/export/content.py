"""What a program without Python needs of a fitted classifier, whatever its machine.

Columns of a table become a row of X (`table_input.py`). It is scaled as the pipeline around the
classifier asks, seen as its planes see rows, and scored by its record. `onnx_model.py` and
`c_header.py` write that down, each in its own language, and know nothing of machines: only kinds of
rows, of records and of kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import jit
from polyplane.engine.rows.products import HashedRows, Poly2Rows, hashed_column
from polyplane.engine.rows.storage import matrix_of
from polyplane.model.export.table_input import TableInput
from polyplane.model.format.model_file import ModelError
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.kernels.kernel_values import FormulaKernel
from polyplane.model.many_classes.decomposition import REST, Decomposition
from polyplane.model.plane_record import PlaneRecord

__all__ = [
    "Exported",
    "Scaling",
    "Support",
    "formula_of",
    "group_starts",
    "plane_constants",
    "plane_features",
    "product_features",
    "sides_of_problems",
    "support_of",
    "with_some_plane",
]


class Scaling(NamedTuple):
    """What a step of a pipeline makes of x: (x - shift) / divisor, kept within limits."""

    shift: Array | None  # [column] float64; None: nothing is taken away
    divisor: Array | None  # [column] float64; None: nothing is divided
    limits: tuple[float, float] | None = None

    @property
    def keeps_zeros(self) -> bool:
        """Whether sparse rows stay sparse."""
        return self.shift is None


@dataclass(frozen=True)
class Exported:
    """A fitted classifier for another program."""

    title: str  # name of the estimator
    n_columns: int
    column_names: Sequence[str]  # empty where columns have none
    classes: Array  # labels by rank
    scalings: Sequence[Scaling]
    record: PlaneRecord | KernelRecord
    rows: Any  # a row of zeros as finished planes see it, or None where there are no planes
    has_probabilities: bool
    table: TableInput | None = None  # where X is made of the columns of a table

    def summary(self) -> str:
        """What it is, in words."""
        if isinstance(self.record, PlaneRecord):
            parts = f"{self.record.n_planes} planes"
        else:
            parts = f"{self.record.support.size} support vectors"
        n_columns = self.n_columns if self.table is None else len(self.table.columns)
        return f"{self.title}: {n_columns} columns, {self.classes.size} classes, {parts}"


# ---- planes ------------------------------------------------------------------------------


def with_some_plane(record: PlaneRecord) -> PlaneRecord:
    """The record, where it has no planes with one of zeros that is in no group."""
    if record.n_planes:
        return record
    no_group = np.full(1, record.n_groups, np.int32)
    return replace(record, scales=np.ones(1, np.float32), group=no_group)


def group_starts(record: PlaneRecord) -> Array:
    """Where the planes of each group begin, and the end of the last."""
    return np.searchsorted(record.group, np.arange(record.n_groups + 1))


def plane_features(record: PlaneRecord) -> Array:
    """The sums of all planes, by feature without the constant."""
    return record.sums[1:, : record.n_planes]


def plane_constants(record: PlaneRecord, rows: Any) -> Array:
    """What the constant feature adds to the sum of each plane."""
    constants: Array = record.sums[0, : record.n_planes] * np.float32(rows.constant)
    return constants


@jit
def _hash_columns(columns: Any, n_hash: Any, place: Any, sign: Any) -> None:
    for k in range(columns.size):
        place[k], sign[k] = hashed_column(columns[k], n_hash)


def product_features(record: PlaneRecord, rows: Poly2Rows | HashedRows, n_columns: int) -> Array:
    """The planes over columns, then products of two, by feature: those of rows of products.

    Product x_i x_j, i <= j, comes by j, then by i. Factors and signs of hashes are taken in.
    """
    base: Any = rows.base if isinstance(rows, HashedRows) else rows
    j, i = np.tril_indices(n_columns)
    starts = np.arange(n_columns) * np.arange(3, n_columns + 3) // 2  # as `n_mapped` counts
    columns = np.concatenate([starts, starts[j] + 1 + i])
    factors = np.full(columns.size, base.cross, np.float32)
    factors[:n_columns] = base.linear
    factors[n_columns:][i == j] = base.square
    if isinstance(rows, HashedRows):
        place, sign = np.empty_like(columns), np.empty_like(factors)
        _hash_columns(columns, rows.totals.size, place, sign)
        columns, factors = place, factors * sign
    features: Array = plane_features(record)[columns] * factors[:, None]
    return features


# ---- classes -----------------------------------------------------------------------------


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
    """The support vectors of a kernel machine."""
    if record.support.size == 0:
        nothing = np.zeros((1, n_columns), np.float32), np.zeros(1, np.float32)
        return Support(*nothing, np.zeros((1, len(record.expansions))))
    vectors = matrix_of(record.support.entries, n_columns).toarray()
    return Support(vectors, record.support.lengths, np.ascontiguousarray(record.dual_coefs().T))
