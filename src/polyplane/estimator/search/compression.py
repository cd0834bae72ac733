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

SHARES_AT_ONCE = (0.25, 0.05, 0.0)  # of the planes, that go between two looks; one at least
TINY = 1e-300  # least that is left of a unit


class _State(NamedTuple):
    """What a set of planes makes of the rows."""

    shares: Array  # [row, plane] of each plane in its unit
    probability: Array  # [row] of the own class
    others: Array  # [row, class] share of each class in all, 0 for the own class


def needed_planes(
    scores: Array, owner: Array, labels: Array, most_change: float, n_units: int = 1
) -> Array:
    """Indices of the planes that stay; `scores` are rows by planes, `labels` those of the rows.

    `owner` is the unit of each plane, ordered by class. The probability of a row's class may
    change by `most_change` in the mean; every unit keeps a plane.
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
    by_unit = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[by_unit], np.arange(units.size))
    best = np.maximum.reduceat(scores[:, by_unit], starts, axis=1)
    parts = np.exp(scores - best[:, place])
    totals = np.add.reduceat(parts[:, by_unit], starts, axis=1)
    of_class = np.full((len(scores), owner.max() // n_units + 1), -np.inf)
    classes = units // n_units
    first_units = np.searchsorted(classes, np.unique(classes))
    of_class[:, np.unique(classes)] = np.add.reduceat(best + np.log(totals), first_units, axis=1)
    others = special.softmax(of_class, axis=1)
    rows = np.arange(len(scores))
    probability = others[rows, labels]
    others[rows, labels] = 0
    return _State(parts / totals[:, place], probability, others)


def _expendable(state: _State, owner: Array, labels: Array, before: Array, n_units: int) -> Array:
    """Planes by what changes without each of them, least first; last ones of a unit are not."""
    left = np.maximum(1 - state.shares, TINY)  # of the unit's sum of exponentials
    classes, p = owner // n_units, state.probability[:, None]
    is_own = classes == labels[:, None]
    own = p * left / np.maximum(p * left + (1 - p), TINY)
    rival = p / np.maximum(1 - state.others[:, classes] * (1 - left), TINY)
    change = np.abs(np.where(is_own, own, rival) - before[:, None]).mean(axis=0)
    by_change = np.argsort(change, kind="stable")
    return by_change[np.bincount(owner)[owner[by_change]] > 1]
