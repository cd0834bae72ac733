"""Rows of a training: values, codes of classes, weights; some of them held out."""

from typing import NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import shuffle
from polyplane.engine.rows.storage import Rows

__all__ = [
    "TrainingData",
    "codes_of",
    "mean_weight_is_one",
    "small_integers",
    "stratified",
    "weighty",
]

LABEL_TABLE_LIMIT = 1 << 16


class TrainingData(NamedTuple):
    """Rows, the code of each row's class, and weights (empty: all 1)."""

    rows: Rows
    labels: Array
    weights: Array


def mean_weight_is_one(data: TrainingData) -> TrainingData:
    """Return the data with weights whose mean is 1: their unit must not change the steps."""
    has_weight = data.weights > 0
    if not has_weight.any():
        return data
    mean = data.weights[has_weight].mean(dtype=np.float64)
    return data._replace(weights=(data.weights / mean).astype(np.float32))


def weighty(members: Array, weights: Array) -> Array:
    """Rows of weight 0 are not visited: that is what leaving them out means."""
    return members[weights > 0] if weights.size else members


def small_integers(y: Array) -> Array | None:
    """y as integers of a small range, or None; most labels are, and then no sort is needed."""
    if y.dtype.kind not in "biuf":
        return None
    low, high = y.min(), y.max()
    if not (low > -LABEL_TABLE_LIMIT and high < LABEL_TABLE_LIMIT):
        return None
    whole = y.astype(np.int32)
    return None if y.dtype.kind == "f" and (whole != y).any() else whole


def codes_of(y: Array, known: Array | None) -> tuple[Array, Array]:
    """Return the labels met so far, old ones first in their order, and codes of the rows of y."""
    if known is not None and y.size == 1 and known.dtype == y.dtype:  # a stream of single rows
        places = np.flatnonzero(known == y)
        if places.size == 1:
            return known, places.astype(np.int32)
    whole = small_integers(y)
    if whole is not None:
        shift = int(whole.min())
        places = whole - shift
        table = np.zeros(int(places.max()) + 1, np.int32)
        table[places] = 1  # `np.bincount` takes three times as long
        present = np.flatnonzero(table)
        labels = (present + shift).astype(y.dtype)
    else:
        labels, places = np.unique(y, return_inverse=True)
        present, table = np.arange(labels.size), np.zeros(labels.size, np.int32)
    if known is None or known.size == 0:
        merged, codes = labels, np.arange(labels.size)
    else:
        _check_alike(known, labels)
        merged, codes = _merged(known, labels)
    table[present] = codes
    return merged, table[places]


def _merged(known: Array, labels: Array) -> tuple[Array, Array]:
    """The known labels and those that are new, which are sorted, and the code of each of these."""
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, labels, sorter=order), known.size - 1)
    codes = order[place]
    is_new = known[codes] != labels
    n_new = np.count_nonzero(is_new)
    if n_new == 0:
        return known, codes
    codes[is_new] = known.size + np.arange(n_new)
    return np.concatenate([known, labels[is_new]]), codes


def _check_alike(known: Array, labels: Array) -> None:
    if known.dtype.kind in "OUS" and labels.dtype.kind not in "OUS":
        raise ValueError(
            f"y holds numbers, but earlier labels are text, like {known.tolist()[0]!r}."
        )
    if known.dtype.kind not in "OUS" and labels.dtype.kind in "OUS":
        raise ValueError(
            f"y holds text, but earlier labels are numbers, like {known.tolist()[0]!r}."
        )


def stratified(members: Array, labels: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to keep and rows to hold out: of every class about the same share, at random."""
    mixed = members.copy()
    shuffle(mixed, np.random.default_rng(seed))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    place = np.floor(np.arange(by_class.size) * share)
    is_held_out = np.diff(place, append=np.floor(by_class.size * share)) > 0
    is_held_out[-1] |= not is_held_out.any()  # of few rows one at least
    return by_class[~is_held_out], by_class[is_held_out]
