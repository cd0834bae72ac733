"""Planes that a finished model can do without: prediction costs planes.

Taking plane k away changes the score of its class only through the sum of exp(score) over the
planes of its unit: it falls by the log of what is left of that sum, as a share of it. So one look
at the scores tells what every single plane is worth. The least valuable ones go, some at a time,
as long as probabilities of the rows' classes have changed by no more than a little on average.
Changes count whichever way they go: on the rows that a model was trained on a plane may be in the
way and be of use elsewhere.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from polyplane.arrays import Array
from polyplane.engine.planes.expendable import changes_without_each, sums_of_units
from polyplane.engine.planes.planes import live_lanes
from polyplane.engine.planes.pruning import with_only
from polyplane.engine.rows.storage import products
from polyplane.engine.targets import rows_of
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData

__all__ = ["compress_model", "needed_planes"]

ROWS_TO_COMPRESS = 4_000
LEAST_CHANGE, MOST_CHANGE = 1e-3, 3e-3  # of the mean probability of a row's class: planes may go
CHANGE_OF_MISS = 0.015  # the same as a share of what probabilities lack: clean data want less
SHARES_AT_ONCE = (0.25, 0.05, 0.01)  # of the planes, that go between two looks; in the end one
MOST_LOG_ODDS = 700.0  # which float64 can hold as odds


def needed_planes(
    scores: Array,
    owner: Array,
    labels: Array,
    most_change: float | Callable[[float], float],
    n_units: int = 1,
) -> Array:
    """Indices of the planes that stay; `scores` are rows by planes, `labels` those of the rows.

    `owner` is the unit of each plane; units of a class follow each other. The probability of a
    row's class may change by `most_change` in the mean, a number or a function of what these
    probabilities lack of 1 in the mean; every unit keeps a plane.
    """
    order = np.argsort(owner, kind="stable")
    by_plane = np.ascontiguousarray(scores.T[order], np.float64)
    planes = _Planes(by_plane, owner[order], labels, n_units)
    before = planes.look().probability
    most = most_change(1 - float(before.mean())) if callable(most_change) else most_change
    for share in SHARES_AT_ONCE:
        while True:
            fewer = planes.fewer(share, before)
            if fewer is None:
                break
            now = planes.look(fewer)
            if np.abs(now.probability - before).mean() > most:
                break
            planes.take(now)
    kept: Array = np.sort(order[planes.is_kept])
    return kept


class _Look(NamedTuple):
    """Scores of rows by some of the planes."""

    is_kept: Array
    top: Array  # [unit, row] plane with the largest part
    rest: Array  # [unit, row] sum of the other parts
    odds: Array  # [class, row] exp(score), relative to the best of the classes other than the row's
    probability: Array  # [row] of its class


class _Planes:
    """Planes by unit, of which fewer and fewer are kept; all arrays are [plane or unit, row]."""

    def __init__(self, scores: Array, owner: Array, labels: Array, n_units: int) -> None:
        units, first, self.unit = np.unique(owner, return_index=True, return_inverse=True)
        self.scores = scores
        self.starts = np.append(first, owner.size)
        classes, self.class_of = np.unique(units // n_units, return_inverse=True)
        self.labels = np.searchsorted(classes, labels)
        self.best = np.maximum.reduceat(scores, first, axis=0)
        self.parts = np.exp(scores - self.best[self.unit])
        self.is_kept = np.ones(owner.size, np.bool_)
        self.ranking: Array | None = None  # of the planes kept, once it is known

    def look(self, is_kept: Array | None = None) -> _Look:
        """At what these planes, or all, would make of the rows."""
        is_kept = self.is_kept if is_kept is None else is_kept
        top, rest = np.empty(self.best.shape, np.int64), np.empty(self.best.shape)
        sums_of_units(self.scores, is_kept, self.starts, self.parts, self.best, top, rest)
        totals = np.take_along_axis(self.parts, top, axis=0) + rest
        of_unit = self.best + np.log(totals)
        rows = np.arange(totals.shape[1])
        is_first = np.flatnonzero(np.diff(self.class_of, prepend=-1))
        of_class = np.add.reduceat(of_unit, is_first, axis=0)
        own = of_class[self.labels, rows]
        of_class[self.labels, rows] = -np.inf
        best_rival = of_class.max(axis=0)
        odds = np.exp(of_class - best_rival)
        log_odds = np.clip(own - best_rival, -MOST_LOG_ODDS, MOST_LOG_ODDS)
        probability = special.expit(log_odds - np.log(odds.sum(axis=0)))
        odds[self.labels, rows] = np.exp(log_odds)
        self.seen = _Look(is_kept, top, rest, odds, probability)
        return self.seen

    def take(self, look: _Look) -> None:
        """Keep the planes of a look."""
        self.is_kept, self.ranking = look.is_kept, None

    def fewer(self, share: float, before: Array) -> Array | None:
        """Return the kept planes without a share of them, or one; None if a unit would be empty."""
        n_of_unit = np.add.reduceat(self.is_kept, self.starts[:-1], dtype=int)
        if self.ranking is None:
            self.ranking = self.by_change(before)
        expendable = self.ranking
        expendable = expendable[n_of_unit[self.unit[expendable]] > 1]
        n_gone = min(max(1, int(share * self.is_kept.sum())), expendable.size)
        fewer = self.is_kept.copy()
        fewer[expendable[:n_gone]] = False
        has_all = bool(np.logical_or.reduceat(fewer, self.starts[:-1]).all())
        return fewer if n_gone and has_all else None

    def by_change(self, before: Array) -> Array:
        """Planes that are kept, by what changes without each of them, least first."""
        look = self.seen if self.seen.is_kept is self.is_kept else self.look()
        changes = np.empty(self.unit.size)
        changes_without_each(
            self.parts,
            self.is_kept,
            self.starts,
            look.top,
            look.rest,
            self.class_of,
            self.labels,
            look.odds,
            before,
            changes,
        )
        kept = np.flatnonzero(self.is_kept)
        by_change: Array = kept[np.argsort(changes[kept], kind="stable")]
        return by_change


def compress_model(
    model: PlaneModel,
    data: TrainingData,
    members: Array,
    scale: float,
    n_units: int,
) -> None:
    """Drop planes that decide nothing on some of the model's rows; W is `scale` times its sums."""
    order = rows_of(members, model.targets(data))
    generator = np.random.default_rng([model.seed, order.size])
    some = np.sort(generator.permutation(order)[:ROWS_TO_COMPRESS])
    lanes = live_lanes(model.planes)
    planes = model.planes.sums[: model.n_features + 1, lanes] * scale
    scores = products(data.rows, some, planes)
    labels = model.codes[data.labels[some]]
    owner = model.planes.owner[lanes]
    kept = needed_planes(scores, owner, labels, _allowed_change, n_units)
    model.planes = with_only(model.planes, lanes[kept])


def _allowed_change(miss: float) -> float:
    """Return the allowed change of the mean probability of the right class, which is 1 - `miss`."""
    return float(np.clip(CHANGE_OF_MISS * miss, LEAST_CHANGE, MOST_CHANGE))
