"""Planes that a finished model can do without: prediction costs planes.

Taking plane k away changes the probability of a row's class only through the sum of exp(score)
over the planes of the class and over all planes, so that one look at the scores tells what every
single plane is worth. The least valuable ones go, some at a time, as long as probabilities have
changed by no more than a little on average. Changes count whichever way they go: on the rows that
a model was trained on a plane may be in the way and be of use elsewhere.
"""

import numpy as np

from polyplane.engine.planes.planes import Array

__all__ = ["needed_planes"]

SHARES_AT_ONCE = (0.25, 0.05, 0.0)  # of the planes, that go between two looks; one at least
TINY = 1e-300  # least sum: scores of a row may differ by nearly 700


def needed_planes(scores: Array, owner: Array, labels: Array, most_change: float) -> Array:
    """Indices of the planes that stay; `scores` are rows by planes, `labels` those of the rows.

    The probability of a row's class may change by `most_change` in the mean; every class keeps a
    plane.
    """
    parts = np.exp(np.asarray(scores, np.float64) - scores.max(axis=1, keepdims=True))
    is_own = owner == labels[:, None]
    before = _probability((parts * is_own).sum(axis=1), parts.sum(axis=1))
    kept = np.arange(owner.size)
    while True:
        expendable = _expendable(parts[:, kept], is_own[:, kept], owner[kept], before)
        for share in SHARES_AT_ONCE:
            n = max(1, int(share * kept.size))
            fewer = np.delete(kept, expendable[:n])
            if expendable.size == 0 or not np.isin(owner, owner[fewer]).all():
                continue
            own = (parts[:, fewer] * is_own[:, fewer]).sum(axis=1)
            now = _probability(own, parts[:, fewer].sum(axis=1))
            if np.abs(now - before).mean() <= most_change:
                kept = fewer
                break
        else:
            return kept


def _expendable(parts: Array, is_own: Array, owner: Array, before: Array) -> Array:
    """Planes by what changes without each of them, least first; last ones of a class are not."""
    own, total = _sums_without_each(parts * is_own), _sums_without_each(parts)
    change = np.abs(_probability(own, total) - before[:, None]).mean(axis=0)
    by_change = np.argsort(change, kind="stable")
    return by_change[np.bincount(owner)[owner[by_change]] > 1]


def _sums_without_each(parts: Array) -> Array:
    """Of each row; the largest part is left out, not taken off: what is left may be far smaller."""
    sums: Array = parts.sum(axis=1, keepdims=True) - parts
    largest = parts.argmax(axis=1)[:, None]
    others = parts.copy()
    np.put_along_axis(others, largest, 0, axis=1)
    np.put_along_axis(sums, largest, others.sum(axis=1, keepdims=True), axis=1)
    return sums


def _probability(own: Array, total: Array) -> Array:
    return np.clip(own, 0, None) / np.maximum(total, TINY)
