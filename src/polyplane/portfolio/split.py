"""Rows to try recipes on, and other rows to judge them by."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import DenseRows, dense_rows, packed
from polyplane.estimator.input.stratified import stratified
from polyplane.estimator.input.validation import TrainingData, weighty

__all__ = ["Split", "splits_of", "taken"]

MOST_TO_TRY = 10_000  # rows: with all rows of a large table the blend is no better
MOST_TO_JUDGE = 20_000  # rows
JUDGED_SHARE = 0.2  # of the rows, where there are fewer
N_SPLITS = {1: 1, 2: 1, 3: 3}  # by quality


class Split(NamedTuple):
    """Rows on which every recipe is trained, and rows by which it is judged."""

    tried: TrainingData
    judged: TrainingData


def splits_of(
    data: TrainingData, quality: int, seed: int, judged_by: TrainingData | None = None
) -> list[Split]:
    """Return stratified splits of the rows with a weight; `judged_by` are rows of an `eval_set`."""
    members = weighty(in_place(data.labels.size), data.weights)
    if judged_by is not None:
        return [Split(taken(data, _some(members, data.labels, MOST_TO_TRY, seed)), judged_by)]
    splits = []
    for k in range(N_SPLITS[quality]):
        share = min(JUDGED_SHARE, MOST_TO_JUDGE / members.size)
        rest, judged = stratified(members, data.labels, share, seed + k)
        tried = _some(rest, data.labels, MOST_TO_TRY, seed + k)
        splits.append(Split(taken(data, tried), taken(data, judged)))
    return splits


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
