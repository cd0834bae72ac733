"""Rows to try recipes on, and other rows to judge them by."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import DenseRows, dense_rows, packed
from polyplane.estimator.input.stratified import stratified
from polyplane.estimator.input.validation import TrainingData, weighty

__all__ = ["Split", "held_out_of_refit", "splits_of", "taken"]

MOST_TO_TRY = 10_000  # rows: with all rows of a large table the blend is no better
MOST_TO_JUDGE = 20_000  # rows
JUDGED_SHARE = 0.2  # of the rows, where there are fewer
MANY_ROWS = 20_000  # from which on some rows are held out of the training on all rows
MOST_HELD_OUT, HELD_OUT_SHARE = 5_000, 0.05
N_SPLITS = {1: 1, 2: 1, 3: 3}  # by quality


class Split(NamedTuple):
    """Rows on which every recipe is trained, and rows by which it is judged."""

    tried: TrainingData
    judged: TrainingData
    judged_places: Array  # of the judged rows in all data; none of an `eval_set`


def splits_of(
    data: TrainingData, quality: int, seed: int, judged_by: TrainingData | None = None
) -> list[Split]:
    """Return stratified splits of the rows with a weight; `judged_by` are rows of an `eval_set`."""
    members = weighty(in_place(data.labels.size), data.weights)
    if judged_by is not None:
        tried = _some(members, data.labels, MOST_TO_TRY, seed)
        return [Split(taken(data, tried), judged_by, np.empty(0, np.int64))]
    splits = []
    for k in range(N_SPLITS[quality]):
        share = min(JUDGED_SHARE, MOST_TO_JUDGE / members.size)
        rest, judged = stratified(members, data.labels, share, seed + k)
        tried = _some(rest, data.labels, MOST_TO_TRY, seed + k)
        splits.append(Split(taken(data, tried), taken(data, judged), judged))
    return splits


def held_out_of_refit(data: TrainingData, split: Split) -> tuple[TrainingData | None, TrainingData]:
    """Return rows that no chosen recipe is trained on, and the data in which they weigh nothing.

    Where rows are many, recipes that are trained on all of them are surer and err less than in
    their trials: some of the judged rows then tell how sure they may be, and what to expect. Few
    rows are all needed for training. Rows of an `eval_set` tell it in any case.
    """
    places, n_rows = split.judged_places, data.labels.size
    if places.size == 0:
        return split.judged, data
    if n_rows < MANY_ROWS:
        return None, data
    n_held = min(MOST_HELD_OUT, int(HELD_OUT_SHARE * n_rows), places.size)
    held = places[in_place(n_held) * places.size // n_held]  # evenly, since they stand by class
    weights = data.weights.copy() if data.weights.size else np.ones(n_rows, np.float32)
    weights[held] = 0
    return taken(data, held), data._replace(weights=weights)


def _some(members: Array, labels: Array, n_most: int, seed: int) -> Array:
    """Return at most so many rows, of every class about the same share."""
    if members.size <= n_most:
        return np.sort(members)
    return np.sort(stratified(members, labels, n_most / members.size, seed)[1])


def taken(data: TrainingData, order: Array) -> TrainingData:
    """Return some of the rows, written out."""
    rows: Any = data.rows
    some: Any
    if isinstance(rows, DenseRows):
        some = dense_rows(np.ascontiguousarray(rows.values[order]), float(rows.constant))
    else:
        some = packed(rows, order)
    weights = data.weights[order] if data.weights.size else data.weights
    return TrainingData(some, data.labels[order], weights)
