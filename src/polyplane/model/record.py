"""A finished model: planes that no longer move, and how they score rows.

Planes are ordered by class, then by age. Scores are taken from the sums and scaled afterwards,
W x = scale * (Theta x), because sums of integer-valued rows are exact and scaled ones are not.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from polyplane.engine.planes import Array, Planes, aligned_zeros, live_lanes, mean_sums
from polyplane.engine.rows import Rows, with_own_page
from polyplane.engine.scoring import Scorer, best_planes, class_scores, plane_scores
from polyplane.engine.tiles import LANES

__all__ = ["PlaneRecord", "record_of"]

ROWS_WORTH_A_THREAD = 8_192  # fewer are done before a second thread has started


@dataclass(frozen=True)
class PlaneRecord:
    """Frozen planes of all classes side by side."""

    sums: Array  # [feature, lane] float32, feature 0 is the constant, lanes padded to 16
    owner: Array  # [plane] int32: index of the plane's class
    scale: float  # W = scale * sums
    n_classes: int

    @property
    def n_planes(self) -> int:
        """How many planes there are."""
        return len(self.owner)

    def planes(self) -> Array:
        """W: planes by columns of X."""
        return self.sums[1:, : self.n_planes].T * np.float32(self.scale)

    def intercepts(self) -> Array:
        """The constant term of each plane."""
        return self.sums[0, : self.n_planes] * np.float32(self.scale)

    def best_planes(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Index of the plane that decides each row of `order`."""
        return self._scored(best_planes, rows, order, np.empty(order.size, np.int32), n_jobs)

    def plane_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Scores of all planes on each row of `order`."""
        out = np.empty((order.size, self.n_planes), np.float32)
        return self._scored(plane_scores, rows, order, out, n_jobs)

    def class_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Score of each class, its best plane's, on each row of `order`."""
        out = np.empty((order.size, self.n_classes), np.float32)
        return self._scored(class_scores, rows, order, out, n_jobs)

    def classes_of(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Index of the winning class of each row of `order`; the lowest if there is no plane."""
        if self.n_planes == 0:
            return np.zeros(order.size, np.int32)
        winners: Array = self.owner[self.best_planes(rows, order, n_jobs)]
        return winners

    def _scorer(self) -> Scorer:
        room = self.sums.shape[1]
        idle = np.zeros(room, np.float32)
        idle[self.n_planes :] = -np.inf
        owner = np.zeros(room, np.int32)
        owner[: self.n_planes] = self.owner
        scratch = aligned_zeros(1, room)[0]  # threads must not write to a shared cache line
        return Scorer(self.sums, idle, owner, scratch, self.n_planes, np.float32(self.scale))

    def _scored(
        self, loop: Callable[..., None], rows: Rows, order: Array, out: Array, n_jobs: int
    ) -> Array:
        """Run `loop` over the rows, shared out among threads, each with scratch of its own."""
        n_threads = max(1, min(n_jobs, order.size // ROWS_WORTH_A_THREAD))
        bounds = np.linspace(0, order.size, n_threads + 1).astype(int)

        def work(k: int) -> None:
            part = slice(bounds[k], bounds[k + 1])
            loop(with_own_page(rows), order[part], self._scorer(), out[part])

        if n_threads == 1:
            work(0)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(work, range(n_threads)))
        return out


def record_of(
    planes: Planes, n_steps: int, scale: float, class_of_code: Array, n_columns: int
) -> PlaneRecord:
    """The model that training has reached; `class_of_code` maps owners to indices of classes."""
    lanes = live_lanes(planes)
    lanes = lanes[planes.owner[lanes] < len(class_of_code)]  # a class not named yet cannot win
    owner = class_of_code[planes.owner[lanes]].astype(np.int32)
    by_class = np.argsort(owner, kind="stable")
    sums = aligned_zeros(n_columns + 1, max(1, -(-lanes.size // LANES)) * LANES)
    sums[:, : lanes.size] = mean_sums(planes, n_steps)[: n_columns + 1, lanes[by_class]]
    return PlaneRecord(sums, owner[by_class], scale, len(class_of_code))
