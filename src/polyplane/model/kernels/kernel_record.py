"""A finished kernel classifier: support vectors, coefficients of each problem, and its scores.

The problems share one block of kernel values a chunk of rows; each adds up its own coefficients
in the same order for every row, so that a row's score does not depend on its company.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import jit
from polyplane.engine.rows.storage import Rows, with_own_page
from polyplane.engine.support.support_set import gathered_sum
from polyplane.engine.tiles import span
from polyplane.model.kernels.kernel_values import Kernel, KernelRows, kernel_block, rows_at_hand
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.threads import shared_out

__all__ = ["Expansion", "KernelRecord"]

ROWS_AT_ONCE = 256
ROWS_WORTH_A_THREAD = 512


class Expansion(NamedTuple):
    """Result of one problem: f(x) = sum_i coef_i K(x_i, x) + intercept."""

    place: Array  # [vector] int32: among the support rows
    coef: Array  # [vector] float64
    intercept: float


@jit
def _add_up(values: Any, starts: Any, place: Any, coef: Any, intercepts: Any, out: Any) -> None:
    """out[j, p] = f_p of row j."""
    block, places, coefs = span(values), span(place), span(coef)
    for j in range(out.shape[0]):
        for p in range(intercepts.size):
            a, n = starts[p], starts[p + 1] - starts[p]
            f = gathered_sum(coefs, a, places, a, n, block, j * values.shape[1])
            out[j, p] = f + intercepts[p]


@dataclass(frozen=True)
class KernelRecord:
    """Frozen support rows, and the expansion of each problem over them."""

    kernel: Kernel
    support: KernelRows
    expansions: Sequence[Expansion]
    decomposition: Decomposition

    @property
    def intercepts(self) -> Array:
        """The constant of each problem."""
        return np.array([expansion.intercept for expansion in self.expansions])

    def dual_coefs(self) -> Array:
        """Problems by support rows: the coefficients as one matrix."""
        out = np.zeros((len(self.expansions), self.support.size))
        for p, expansion in enumerate(self.expansions):
            out[p, expansion.place] = expansion.coef
        return out

    def leads(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Return the lead of each problem's second side on each row of `order`."""
        sizes = [expansion.place.size for expansion in self.expansions]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = np.concatenate([expansion.place for expansion in self.expansions])
        coef = np.concatenate([expansion.coef for expansion in self.expansions])
        intercepts = self.intercepts
        out = np.empty((order.size, len(sizes)))

        def work(first: int, last: int) -> None:
            own_rows = with_own_page(rows)
            for k in range(first, last, ROWS_AT_ONCE):
                at_once = order[k : min(k + ROWS_AT_ONCE, last)]
                chunk = rows_at_hand(own_rows, at_once, at_once, at_once)
                values = kernel_block(self.kernel, self.support, chunk, 1, False)
                _add_up(values, starts, place, coef, intercepts, out[k : k + at_once.size])

        shared_out(work, order.size, n_jobs, ROWS_WORTH_A_THREAD)
        return out

    def class_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Score of each class, by rank, on each row of `order`."""
        return self.decomposition.scores_of_leads(self.leads(rows, order, n_jobs))

    def classes_of(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Rank of the winning class of each row of `order`; of equal scores the lowest."""
        winners: Array = self.class_scores(rows, order, n_jobs).argmax(axis=1)
        return winners
