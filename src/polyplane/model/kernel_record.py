"""A finished kernel classifier: support vectors, coefficients of each problem, and its scores.

The problems share one block of kernel values a chunk of rows; each adds up its own coefficients
in the same order for every row, so that a row's score does not depend on its company.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import jit
from polyplane.engine.planes import Array
from polyplane.engine.rows import Rows, with_own_page
from polyplane.model.decomposition import Decomposition
from polyplane.model.kernels import Kernel, KernelRows, kernel_block, rows_at_hand

__all__ = ["Expansion", "KernelRecord"]

ROWS_AT_ONCE = 256
ROWS_WORTH_A_THREAD = 512


class Expansion(NamedTuple):
    """What one problem has reached: f(x) = sum_i coef_i K(x_i, x) + intercept."""

    place: Array  # [vector] int32: among the support rows
    coef: Array  # [vector] float64
    intercept: float


@jit
def _add_up(values: Any, starts: Any, place: Any, coef: Any, intercepts: Any, out: Any) -> None:
    """out[j, p] = f_p of row j."""
    for j in range(out.shape[0]):
        line = values[j]
        for p in range(intercepts.size):
            s0 = s1 = s2 = s3 = 0.0
            i, end = starts[p], starts[p + 1]
            while i + 4 <= end:
                s0 += coef[i] * line[place[i]]
                s1 += coef[i + 1] * line[place[i + 1]]
                s2 += coef[i + 2] * line[place[i + 2]]
                s3 += coef[i + 3] * line[place[i + 3]]
                i += 4
            while i < end:
                s0 += coef[i] * line[place[i]]
                i += 1
            out[j, p] = (s0 + s1) + (s2 + s3) + intercepts[p]


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
        """How far each problem's second side leads on each row of `order`."""
        sizes = [expansion.place.size for expansion in self.expansions]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        place = np.concatenate([expansion.place for expansion in self.expansions])
        coef = np.concatenate([expansion.coef for expansion in self.expansions])
        intercepts = self.intercepts
        out = np.empty((order.size, len(sizes)))

        def work(part: slice) -> None:
            own_rows, todo = with_own_page(rows), order[part]
            for k in range(0, todo.size, ROWS_AT_ONCE):
                at_once = todo[k : k + ROWS_AT_ONCE]
                chunk = rows_at_hand(own_rows, at_once, at_once, at_once)
                values = kernel_block(self.kernel, self.support, chunk, 1, False)
                found = out[part][k : k + ROWS_AT_ONCE]
                _add_up(values, starts, place, coef, intercepts, found)

        n_threads = max(1, min(n_jobs, order.size // ROWS_WORTH_A_THREAD))
        bounds = np.linspace(0, order.size, n_threads + 1).astype(int)
        parts = [slice(bounds[k], bounds[k + 1]) for k in range(n_threads)]
        if n_threads == 1:
            work(parts[0])
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(work, parts))
        return out

    def class_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Score of each class, by rank, on each row of `order`."""
        return self.decomposition.scores_of_leads(self.leads(rows, order, n_jobs))
