"""Rows to try recipes on, and other rows to judge them by."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.data.table.statistics import KeyedRows, TargetStatistics
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import DenseRows, dense_rows, packed
from polyplane.portfolio.label_statistics import LabelStatistics, widened
from polyplane.portfolio.recipes import Effort
from polyplane.training.rows import TrainingData, stratified, weighty

__all__ = [
    "MANY_ROWS",
    "Split",
    "held_out_places",
    "splits_of",
    "taken",
    "with_label_statistics",
    "without",
]

MOST_TO_JUDGE = 20_000  # rows
JUDGED_SHARE = 0.2  # of the rows, where there are fewer
MANY_ROWS = 20_000  # from which on some are held out of the refit, and one seed is enough
MOST_HELD_OUT, HELD_OUT_SHARE = 5_000, 0.05


class Split(NamedTuple):
    """Rows on which every recipe is trained, and rows by which it is judged."""

    tried: TrainingData
    judged: TrainingData
    tried_places: Array  # in all data
    judged_places: Array  # in all data; none of an `eval_set`


def splits_of(
    data: TrainingData, effort: Effort, seed: int, judged_by: TrainingData | None = None
) -> list[Split]:
    """Return stratified splits of the rows with a weight; `judged_by` are rows of an `eval_set`."""
    members = weighty(in_place(data.labels.size), data.weights)
    if judged_by is not None:
        tried = _some(members, data.labels, effort.rows_to_try, seed)
        return [Split(taken(data, tried), judged_by, tried, np.empty(0, np.int64))]
    n_judged = min(JUDGED_SHARE * members.size, MOST_TO_JUDGE)
    splits, left = [], members  # no row is judged twice
    for k in range(effort.most_splits):
        is_enough = k > 0 and k * n_judged >= effort.rows_to_judge
        if is_enough or left.size < 2:
            break
        left, judged = stratified(left, data.labels, min(0.5, n_judged / left.size), seed + k)
        rest = np.setdiff1d(members, judged, assume_unique=True)
        tried = _some(rest, data.labels, effort.rows_to_try, seed + k)
        is_met = np.isin(data.labels[judged], data.labels[tried])
        if is_met.any():  # rows of a class that no recipe has met would decide how sure all may be
            judged = judged[is_met]
        splits.append(Split(taken(data, tried), taken(data, judged), tried, judged))
    return splits


def with_label_statistics(
    splits: list[Split],
    data: TrainingData,
    statistics: LabelStatistics,
    n_columns: int,
    eval_keys: KeyedRows | None,
) -> tuple[list[Split], TargetStatistics]:
    """Return splits whose rows have target statistics behind `n_columns`, and those of the first.

    Labels of judged rows are left out.
    """
    wide, first = [], None
    for split in splits:
        made, columns = statistics.of_rows(data, split.judged_places)
        of_judged = columns[split.judged_places] if eval_keys is None else made.columns(eval_keys)
        tried = widened(split.tried, columns[split.tried_places], n_columns)
        judged = widened(split.judged, of_judged, n_columns)
        wide.append(split._replace(tried=tried, judged=judged))
        first = first or made
    assert first is not None
    return wide, first


def held_out_places(n_rows: int, split: Split) -> Array:
    """Return the rows that no chosen recipe is trained on.

    Where rows are many, recipes that are trained on all of them are surer and err less than in
    their trials: some of the judged rows then tell how sure they may be, and what to expect. Few
    rows are all needed for training.
    """
    places: Array = split.judged_places
    if n_rows < MANY_ROWS:
        return places[:0]
    n_held = min(MOST_HELD_OUT, int(HELD_OUT_SHARE * n_rows), places.size)
    evenly = in_place(n_held) * places.size // max(n_held, 1)  # since they stand by class
    held: Array = places[evenly]
    return held


def without(data: TrainingData, places: Array) -> TrainingData:
    """Return data in which some rows weigh nothing."""
    if places.size == 0:
        return data
    weights = data.weights.copy() if data.weights.size else np.ones(data.labels.size, np.float32)
    weights[places] = 0
    return data._replace(weights=weights)


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
