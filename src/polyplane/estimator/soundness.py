"""Whether what a model file holds can be a model: compiled loops do not look where they reach.

Each record is looked at by itself as it is put together, and the whole in the end. Whatever is
used as an index must lie in what it points into, sizes must agree, and numbers must be finite.
"""

from typing import Any

import numpy as np

from polyplane.engine.support_set import ACTIVE
from polyplane.estimator.demands import (
    need,
    need_count,
    need_numbers,
    need_within,
)
from polyplane.estimator.first_rows import FirstRows
from polyplane.estimator.kernel_training import KernelTraining
from polyplane.estimator.training import Training
from polyplane.model.kernels import Kernel

__all__ = ["check_estimator_state"]


def check_estimator_state(estimator: Any) -> None:
    """Refuse a fitted estimator whose parts do not fit together."""
    training = estimator._training
    labels = training.labels
    is_labels = isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.size > 0
    need(is_labels and np.unique(labels).size == labels.size, "labels are none")
    need(np.array_equal(estimator.classes_, training.classes), "labels and classes differ")
    need_count(estimator.n_features_in_, estimator.n_iter_, training.seed)
    names = getattr(estimator, "feature_names_in_", None)
    need(names is None or len(names) == estimator.n_features_in_, "features' names are too many")
    need(training.kind in ("joint", "ovr", "ovo"), "a decomposition is none")
    known = {(model.problem, getattr(model, "estimator", 0)) for model in training.models}
    n_models = 1 + max((place for _, place in known), default=0)
    problems = training.decomposition(estimator.combine).problems()
    expected = {(problem, place) for problem in problems for place in range(n_models)}
    need(known == expected and len(training.models) == len(expected), "models are missing")
    if isinstance(training, KernelTraining):
        _check_kernel_training(estimator, training)
    else:
        _check_training(estimator, training)


def _check_training(estimator: Any, training: Training) -> None:
    n_classes = training.labels.size
    need(training.n_columns == estimator.n_features_in_, "the number of columns is unclear")
    need_numbers(training.constant, training.calibration)
    if training.columns is not None:
        need(training.columns.n_columns == training.n_columns, "a map is of other columns")
    for model in training.models:
        need(model.n_features == estimator._features_of(training), "planes have other features")
        codes = model.problem.codes(n_classes)
        need(np.array_equal(model.codes, codes), "a model has other classes")
        n_codes = model.problem.n_codes(n_classes)
        need(model.planes.room_left.size <= n_codes, "a model has more classes than there are")
        need(model.columns is None or training.columns is not None, "a map is missing")
    if training.buffer is not None:
        need(isinstance(training.buffer, FirstRows), "first rows are none")
        for part in training.buffer.parts:
            need_within(part.labels, 0, n_classes, "a label is")
            need_within(part.rows.columns, 0, training.n_columns, "a column is")
    _check_courses(training)


def _check_courses(training: Training) -> None:
    n_models, snapshots = len(training.models), training.watch.snapshots
    need(len(training.courses) in (0, n_models), "courses are missing")
    need(len(snapshots) in (0, n_models), "snapshots are missing")
    for model, course in zip(training.models, training.courses, strict=False):
        need_within(course.chosen, -2, model.planes.owner.size, "a chosen plane is")
        is_known = course.chosen.size in (0, training.rows_seen.n_rows)
        need(is_known, "chosen planes are of other rows")
    for model, snapshot in zip(training.models, snapshots, strict=False):
        is_like = snapshot.planes.room_left.size == model.planes.room_left.size
        need(is_like and len(snapshot.planes.sums) > model.n_features, "a snapshot is of another")


def _check_kernel_training(estimator: Any, training: KernelTraining) -> None:
    support = training.support
    need(isinstance(training.kernel, Kernel), "a kernel is none")
    need(training.kernel.n_columns == estimator.n_features_in_, "the number of columns is unclear")
    need_within(support.entries.columns, 0, estimator.n_features_in_, "a column is")
    need_within(support.labels, 0, training.labels.size, "a label is")
    need_count(training.cache_bytes, training.n_seen)
    empty = estimator._new_set()
    for model in training.models:
        held, n_active = model.held, int(model.held.counts[ACTIVE])
        is_like = len(held.coef) == len(empty.coef) and len(held.scores) == len(empty.scores)
        need(is_like, "a problem is of another machine")
        need_within(held.place[held.active[:n_active]], 0, support.size, "a place is")
        need_within(held.place, 0, max(1, support.size), "an empty slot's place is")
