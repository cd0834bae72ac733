"""Kernel values of support rows with rows at hand, whatever the kernel is.

The four with a formula are computed by tiles (`engine/support/gram.py`). A function of the user's
is called on two matrices, and a Gram matrix of the user's is looked up: there the rows are not
needed, only their numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.storage import CsrRows, Rows, matrix_of, packed
from polyplane.engine.support.gram import (
    chunk_tiles,
    desk_for,
    fill_block,
    padded,
    squared_lengths,
)
from polyplane.engine.tiles import LANES
from polyplane.model.threads import shared_out

__all__ = [
    "FormulaKernel", "FunctionKernel", "GivenKernel", "Kernel", "KernelRows", "kernel_block",
    "no_rows", "rows_at_hand",
]  # fmt: skip

ROWS_WORTH_A_THREAD = 256


class KernelRows(NamedTuple):
    """Rows by themselves, with what kernels need of them."""

    entries: CsrRows
    lengths: Array  # squared
    numbers: Array  # [row] int64: of the row since training began
    labels: Array  # [row] int32: code of its class

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.lengths)

    def chosen(self, which: Array) -> "KernelRows":
        """Some of the rows."""
        of_rows = (self.lengths, self.numbers, self.labels)
        return KernelRows(packed(self.entries, which), *(array[which] for array in of_rows))


def no_rows() -> KernelRows:
    """None yet."""
    entries = CsrRows(
        np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(1, np.int64), np.float32(0)
    )
    nothing = (np.empty(0, kind) for kind in (np.float32, np.int64, np.int32))
    return KernelRows(entries, *nothing)


def rows_at_hand(rows: Rows, order: Array, numbers: Array, labels: Array) -> KernelRows:
    """The rows of `order`, copied."""
    entries = packed(rows, order)
    return KernelRows(entries, squared_lengths(entries), numbers, labels)


Fill = Callable[[KernelRows, Array, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Kernel(ABC):
    """Kernel values in any way."""

    n_columns: int

    @abstractmethod
    def against(self, chunk: KernelRows) -> Fill:
        """A function (rows, out, column, n_jobs) that writes K(chunk row j, row i) to
        out[j, column + i]."""

    @abstractmethod
    def without_offset(self) -> "Kernel":
        """The kernel alone, as finished models see it."""


def kernel_block(
    kernel: Kernel, support: KernelRows, chunk: KernelRows, n_jobs: int, with_own: bool
) -> Array:
    """K(chunk row, support row), and from column `padded(support.size)` on, if wanted, K(chunk
    row, chunk row)."""
    first = padded(support.size)
    out = np.zeros((chunk.size, first + with_own * padded(chunk.size)), np.float32)
    fill = kernel.against(chunk)
    fill(support, out, 0, n_jobs)
    if with_own:
        fill(chunk, out, first, 1)
    if not np.isfinite(out.sum()) and not np.isfinite(out).all():
        raise ValueError(
            "The kernel returned NaN or infinity: scale the columns, or lower gamma, coef0 or the "
            "degree; in a function of your own look at how it treats zero rows."
        )
    return out


@dataclass(frozen=True, kw_only=True)
class FormulaKernel(Kernel):
    """A kernel that has a formula, as a tuple of `engine/support/gram.py`."""

    formula: Any

    def without_offset(self) -> Kernel:
        """See `Kernel`."""
        return replace(self, formula=self.formula._replace(offset=np.float32(0)))

    def against(self, chunk: KernelRows) -> Fill:
        """See `Kernel`."""
        tiles = chunk_tiles(chunk.entries, chunk.lengths, self.n_columns)

        def fill(rows: KernelRows, out: Array, column: int, n_jobs: int) -> None:
            def work(first: int, last: int) -> None:
                fill_block(
                    self.formula,
                    rows.entries,
                    rows.lengths,
                    first,
                    last,
                    tiles,
                    desk_for(rows.entries),
                    out,
                    column,
                )

            shared_out(work, rows.size, n_jobs, ROWS_WORTH_A_THREAD, LANES)

        return fill


@dataclass(frozen=True, kw_only=True)
class GivenKernel(Kernel):
    """A Gram matrix: row i of X holds K(x_i, x_j) for all training rows j."""

    offset: float

    def without_offset(self) -> Kernel:
        """See `Kernel`."""
        return replace(self, offset=0.0)

    def against(self, chunk: KernelRows) -> Fill:
        """See `Kernel`."""
        matrix = matrix_of(chunk.entries, self.n_columns).toarray()

        def fill(rows: KernelRows, out: Array, column: int, n_jobs: int) -> None:
            found = matrix[:, rows.numbers] + np.float32(self.offset)
            out[:, column : column + rows.size] = found

        return fill


@dataclass(frozen=True, kw_only=True)
class FunctionKernel(Kernel):
    """A function of two matrices, rows by rows."""

    offset: float
    function: Callable[[Any, Any], Any]
    is_dense: bool  # whether it is called on arrays, as users hold their rows

    def without_offset(self) -> Kernel:
        """See `Kernel`."""
        return replace(self, offset=0.0)

    def _matrix(self, rows: KernelRows) -> Any:
        matrix = matrix_of(rows.entries, self.n_columns)
        return matrix.toarray() if self.is_dense else matrix

    def against(self, chunk: KernelRows) -> Fill:
        """See `Kernel`."""
        ours = self._matrix(chunk)

        def fill(rows: KernelRows, out: Array, column: int, n_jobs: int) -> None:
            if rows.size == 0:
                return
            values = np.asarray(self.function(ours, self._matrix(rows)), np.float32)
            if values.shape != (chunk.size, rows.size):
                raise ValueError(
                    f"The kernel was called on {chunk.size} and {rows.size} rows and returned an "
                    f"array of shape {values.shape}; it must be ({chunk.size}, {rows.size})."
                )
            out[:, column : column + rows.size] = values + np.float32(self.offset)

        return fill
