"""Planes that a finished model can do without: prediction costs planes.

Taking plane k away changes the score of its class only through the sum of exp(score) over the
planes of its unit: it falls by the log of what is left of that sum, as a share of it. So one look
at the scores tells what every single plane is worth. The least valuable ones go, some at a time,
as long as probabilities of the rows' classes have changed by no more than a little on average.
Changes count whichever way they go: on the rows that a model was trained on a plane may be in the
way and be of use elsewhere.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from polyplane.engine.planes.planes import Array

__all__ = ["needed_planes"]

SHARES_AT_ONCE = (0.25, 0.05, 0.01)  # of the planes, that go between two looks; one at least
TINY = 1e-300  # least sum: scores of a row may differ by nearly 700


class _State(NamedTuple):
    """What a set of planes makes of the rows."""

    left: Array  # [row, plane] of the sum of its unit without the plane
    own: Array  # [row] score of the own class over the best rival
    rivals: Array  # [row, class] exp(score - that of the best rival); 0 for the own class

    @property
    def probability(self) -> Array:
        """Of the own class of each row."""
        probability: Array = special.expit(self.own - _log(self.rivals.sum(axis=1)))
        return probability


def needed_planes(
    scores: Array, owner: Array, labels: Array, most_change: float, n_units: int = 1
) -> Array:
    """Indices of the planes that stay; `scores` are rows by planes, `labels` those of the rows.

    `owner` is the unit of each plane; units of a class follow each other. The probability of a
    row's class may change by `most_change` in the mean; every unit keeps a plane.
    """
    scores = np.asarray(scores, np.float64)
    kept = np.arange(owner.size)
    state = _state(scores, owner, labels, n_units)
    before = state.probability
    while True:
        expendable = _expendable(state, owner[kept], labels, before, n_units)
        for share in SHARES_AT_ONCE:
            n = max(1, int(share * kept.size))
            fewer = np.delete(kept, expendable[:n])
            if expendable.size == 0 or not np.isin(owner, owner[fewer]).all():
                continue
            now = _state(scores[:, fewer], owner[fewer], labels, n_units)
            if np.abs(now.probability - before).mean() <= most_change:
                kept, state = fewer, now
                break
        else:
            return kept


def _state(scores: Array, owner: Array, labels: Array, n_units: int) -> _State:
    units, place = np.unique(owner, return_inverse=True)
    of_unit = [np.flatnonzero(place == unit) for unit in range(units.size)]
    best = np.stack([scores[:, planes].max(axis=1) for planes in of_unit], axis=1)
    parts = np.exp(scores - best[:, place])
    totals = np.stack([parts[:, planes].sum(axis=1) for planes in of_unit], axis=1)
    left = np.empty_like(parts)
    for planes in of_unit:
        left[:, planes] = _sums_without_each(parts[:, planes])
    of_class = np.full((len(scores), owner.max() // n_units + 1), -np.inf)
    classes = units // n_units
    for code in np.unique(classes):
        of_class[:, code] = (best + np.log(totals))[:, classes == code].sum(axis=1)
    rows = np.arange(len(scores))
    own = of_class[rows, labels]
    of_class[rows, labels] = -np.inf
    best_rival = of_class.max(axis=1)
    return _State(left / totals[:, place], own - best_rival, np.exp(of_class - best_rival[:, None]))


def _expendable(state: _State, owner: Array, labels: Array, before: Array, n_units: int) -> Array:
    """Planes by what changes without each of them, least first; last ones of a unit are not."""
    classes, own = owner // n_units, state.own[:, None]
    without = _sums_without_each(state.rivals)[:, classes]
    rivals = np.where(
        classes == labels[:, None],
        state.rivals.sum(axis=1)[:, None],
        without + state.rivals[:, classes] * state.left,
    )
    lost = np.where(classes == labels[:, None], _log(state.left), 0.0)
    after = special.expit(own + lost - _log(rivals))
    change = np.abs(after - before[:, None]).mean(axis=0)
    by_change = np.argsort(change, kind="stable")
    return by_change[np.bincount(owner)[owner[by_change]] > 1]


def _sums_without_each(parts: Array) -> Array:
    """Of each row; the largest part is left out, not taken off: what is left may be far smaller."""
    sums: Array = parts.sum(axis=1, keepdims=True) - parts
    largest = parts.argmax(axis=1)[:, None]
    others = parts.copy()
    np.put_along_axis(others, largest, 0, axis=1)
    np.put_along_axis(sums, largest, others.sum(axis=1, keepdims=True), axis=1)
    return np.maximum(sums, 0)


def _log(sums: Array) -> Array:
    logs: Array = np.log(np.maximum(sums, TINY))
    return logs
