"""A finished classifier: planes that no longer move, and how they score rows.

The planes of all its models stand side by side, so that one reading of a row serves them all.
They are ordered by model, then by group, then by age. Scores are taken from the sums and scaled
afterwards, W x = scale * (Theta x), because sums of integer-valued rows are exact.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.planes.scoring import (
    Scorer,
    best_planes,
    group_scores,
    plane_scores,
    soft_group_scores,
    soft_winners,
    weighted_sums,
)
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.storage import Rows, with_own_page
from polyplane.engine.tiles import LANES
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.threads import shared_out

__all__ = ["FinishedPlanes", "PlaneRecord", "added_up", "record_of"]

ROWS_WORTH_A_THREAD = 8_192  # fewer are done before a second thread has started
LEAST_LOG = -700.0  # of a probability: e^-700 is just not zero
NUMBERS_AT_ONCE = 1 << 18  # scores held while they are combined: they should stay in the cache


class FinishedPlanes(NamedTuple):
    """Planes of one model after its training."""

    sums: Array  # [feature, plane] float32
    owner: Array  # [plane] int32: its unit, which is code * n_units + number of the unit
    scales: Array  # [plane] float32: W = scale * sums
    n_units: int = 1  # of a class, of whose scores a class's is the sum


@dataclass(frozen=True)
class PlaneRecord:
    """Frozen planes of all models side by side."""

    sums: Array  # [feature, lane] float32, feature 0 is the constant, lanes padded to 16
    scales: Array  # [plane] float32: W = scale * sums
    group: Array  # [plane] int32: the planes that speak with one voice, numbered over all models
    plane_class: Array  # [plane] int32: rank of the class for or against which it speaks
    plane_sign: Array  # [plane] int32: -1 where it speaks against its class
    decomposition: Decomposition
    n_estimators: int
    empty_score: float  # of a group without planes; minus infinity: it must not win
    is_soft: bool = False  # a group scores the log of the sum of exp(score), not its best plane's
    calibration: float = 1.0  # class scores times that are logarithms of probabilities
    n_units: int = 1  # groups of a class, or of a side of a problem, whose scores are added up
    group_weights: Array | None = None  # [group] float32: factors of group scores in these sums

    @property
    def n_planes(self) -> int:
        """Return the number of planes."""
        return len(self.group)

    @property
    def n_groups(self) -> int:
        """Groups of all estimators together."""
        return self.n_estimators * self.decomposition.n_groups() * self.n_units

    @property
    def is_one_model(self) -> bool:
        """Return True if groups are classes, of which the best wins."""
        return (
            self.n_estimators == 1
            and self.n_units == 1
            and self.group_weights is None
            and self.decomposition.is_joint
            and self.empty_score == -np.inf
            and self.n_planes > 0
        )

    @property
    def best_plane_decides(self) -> bool:
        """Return True if the best plane of all decides."""
        return self.is_one_model and not self.is_soft

    def planes(self) -> Array:
        """W: planes by columns of X."""
        return (self.sums[1:, : self.n_planes] * self.scales).T

    def intercepts(self) -> Array:
        """The constant term of each plane."""
        intercepts: Array = self.sums[0, : self.n_planes] * self.scales
        return intercepts

    def plane_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Scores of all planes on each row of `order`."""
        out = np.empty((order.size, self.n_planes), np.float32)
        return self._shared_out(self._fill_plane_scores, rows, order, out, n_jobs)

    def class_scores(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Score of each class on each row of `order`."""
        out = np.empty((order.size, self.decomposition.n_classes), np.float32)
        return self._shared_out(self._fill_class_scores, rows, order, out, n_jobs)

    def classes_of(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Rank of the winning class of each row of `order`; of equal scores the lowest."""
        out = np.empty(order.size, np.int32)
        if not self.best_plane_decides:
            return self._shared_out(self._fill_classes, rows, order, out, n_jobs)
        winners: Array = self.plane_class[self.deciding_planes(rows, order, n_jobs)]
        return winners

    def deciding_planes(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """The plane that scores highest of those that speak for the winning class."""
        fill = self._fill_best_planes if self.best_plane_decides else self._fill_winners_planes
        return self._shared_out(fill, rows, order, np.empty(order.size, np.int32), n_jobs)

    def log_probabilities(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Logarithm of the probability of each class on each row of `order`; always finite."""
        out = np.empty((order.size, self.decomposition.n_classes))
        return self._shared_out(self._fill_log_probabilities, rows, order, out, n_jobs)

    def probabilities(self, rows: Rows, order: Array, n_jobs: int = 1) -> Array:
        """Probability of each class on each row of `order`; those of a row sum to one."""
        logs = self.log_probabilities(rows, order, n_jobs)
        return np.exp(logs, out=logs)

    # ---- the loops, on rows that belong to one thread ------------------------------------

    def _fill_plane_scores(self, rows: Rows, order: Array, out: Array) -> None:
        plane_scores(rows, order, self.scorer(), out)

    def _fill_best_planes(self, rows: Rows, order: Array, out: Array) -> None:
        best_planes(rows, order, self.scorer(), out)

    def _fill_class_scores(self, rows: Rows, order: Array, out: Array) -> None:
        """Some rows at a time: group scores of all rows at once could be large."""
        fill = soft_group_scores if self.is_soft else group_scores
        scorer, n_groups = self.scorer(), self.decomposition.n_groups()
        shape = self.n_estimators, n_groups, self.n_units
        n_at_once = max(1, NUMBERS_AT_ONCE // math.prod(shape))
        of_groups = np.empty((min(n_at_once, order.size), math.prod(shape)), np.float32)
        for start in range(0, order.size, n_at_once):
            part = order[start : start + n_at_once]
            fill(rows, part, scorer, of_groups[: part.size])
            mean = self._mean_of_groups(of_groups[: part.size].reshape(-1, *shape))
            out[start : start + n_at_once] = self.decomposition.class_scores(mean)

    def _mean_of_groups(self, scores: Array) -> Array:
        """Add up the units of each group, and take the mean over estimators.

        `scores` are [row, estimator, group, unit].
        """
        if self.group_weights is None:
            mean: Array = added_up(scores).mean(axis=1)
            return mean
        sums = np.empty(scores.shape[:3], np.float32)
        weighted_sums(scores.reshape(len(scores), -1), self.group_weights, self.n_units, sums)
        weighted: Array = sums.mean(axis=1)
        return weighted

    def _fill_log_probabilities(self, rows: Rows, order: Array, out: Array) -> None:
        """Odds of a class against the rest are its weight, too: with p_c its probability in that
        problem, those of all problems agree that it is c by p_c prod (1 - p_k) over all others k.

        A score too large for float32 counts as the largest number there is.
        """
        scores = np.empty(out.shape, np.float32)
        self._fill_class_scores(rows, order, scores)
        out[:] = self.calibration * np.nan_to_num(scores).astype(np.float64)
        out -= out.max(axis=1, keepdims=True)
        np.maximum(out, LEAST_LOG, out=out)
        out -= np.log(np.exp(out).sum(axis=1, keepdims=True))

    def _fill_classes(self, rows: Rows, order: Array, out: Array) -> None:
        if self.is_one_model and self.is_soft:
            soft_winners(rows, order, self.scorer(), out)
            return
        scores = np.empty((order.size, self.decomposition.n_classes), np.float32)
        self._fill_class_scores(rows, order, scores)
        out[:] = scores.argmax(axis=1)

    def _fill_winners_planes(self, rows: Rows, order: Array, out: Array) -> None:
        winners = np.empty(order.size, np.int32)
        self._fill_classes(rows, order, winners)
        n_at_once = max(1, NUMBERS_AT_ONCE // max(1, self.n_planes))
        speaks_for = np.where(self.plane_sign > 0, self.plane_class, -1)
        for start in range(0, order.size, n_at_once):
            part = slice(start, start + n_at_once)
            scores = np.empty((order[part].size, self.n_planes), np.float32)
            self._fill_plane_scores(rows, order[part], scores)
            takes_part = speaks_for == winners[part, None]
            scores[~takes_part] = -np.inf
            best = scores.argmax(axis=1) if self.n_planes else NO_PLANE
            out[part] = np.where(takes_part.any(axis=1), best, NO_PLANE)

    def scorer(self) -> Scorer:
        """The planes for the loops, with scratch of its own."""
        room = self.sums.shape[1]

        def padded(array: Array, fill: float) -> Array:
            out = np.full(room, fill, array.dtype)
            out[: self.n_planes] = array
            return out

        return Scorer(
            sums=self.sums,
            idle=padded(np.zeros(self.n_planes, np.float32), -np.inf),
            group=padded(self.group, NO_PLANE),
            group_starts=np.searchsorted(self.group, np.arange(self.n_groups + 1)).astype(np.int32),
            scales=padded(self.scales, 1),
            scores=aligned_zeros(1, room)[0],  # threads must not write to a shared cache line
            n_planes=self.n_planes,
            empty_score=np.float32(self.empty_score),
        )

    def _shared_out(
        self,
        fill: Callable[[Rows, Array, Array], None],
        rows: Rows,
        order: Array,
        out: Array,
        n_jobs: int,
    ) -> Array:
        """Fill `out` for the rows of `order`, each thread its share."""

        def work(first: int, last: int) -> None:
            fill(with_own_page(rows), order[first:last], out[first:last])

        shared_out(work, order.size, n_jobs, ROWS_WORTH_A_THREAD)
        return out


def added_up(of_units: Array) -> Array:
    """Sums over the last axis, one unit after the other: in any company a row is rounded alike."""
    total: Array = of_units[..., 0]
    for unit in range(1, of_units.shape[-1]):
        total = total + of_units[..., unit]
    return total


def record_of(
    models: Sequence[Sequence[FinishedPlanes]],
    decomposition: Decomposition,
    empty_score: float,
    is_soft: bool = False,
    calibration: float = 1.0,
) -> PlaneRecord:
    """The classifier that training has reached: `models[e][p]` is problem p of estimator e."""
    groups, classes, signs, columns = [], [], [], []
    n_units = max(made.n_units for problems in models for made in problems)
    for e, problems in enumerate(models):
        for p, made in enumerate(problems):
            code, unit = np.divmod(made.owner, n_units)
            group = decomposition.group_of(p, code) * n_units + unit
            by_group = np.argsort(group, kind="stable")
            class_, sign = decomposition.class_of(p, code[by_group])
            groups.append(group[by_group] + e * decomposition.n_groups() * n_units)
            classes.append(class_)
            signs.append(sign)
            columns.append((made, by_group))
    n_planes = sum(len(group) for group in groups)
    n_features = len(models[0][0].sums)
    sums = aligned_zeros(n_features, max(1, -(-n_planes // LANES)) * LANES)
    first = 0
    for made, by_group in columns:
        sums[:, first : first + by_group.size] = made.sums[:, by_group]
        first += by_group.size
    return PlaneRecord(
        sums=sums,
        scales=np.concatenate([made.scales[by_group] for made, by_group in columns]),
        group=np.concatenate(groups).astype(np.int32),
        plane_class=np.concatenate(classes).astype(np.int32),
        plane_sign=np.concatenate(signs).astype(np.int32),
        decomposition=decomposition,
        n_estimators=len(models),
        empty_score=empty_score,
        is_soft=is_soft,
        calibration=calibration,
        n_units=n_units,
    )
