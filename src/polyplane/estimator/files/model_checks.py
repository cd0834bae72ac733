"""Whether what a model file holds can be a model: compiled loops do not look where they reach.

Each record is looked at by itself as it is put together, and the whole in the end. Whatever is
used as an index must lie in what it points into, sizes must agree, and numbers must be finite.
"""

from typing import Any

import numpy as np

from polyplane.engine.support.support_set import ACTIVE, NOT_THERE, WANTED
from polyplane.estimator.files.array_checks import (
    LARGEST_COUNT,
    need,
    need_count,
    need_numbers,
    need_within,
)
from polyplane.estimator.kernels.kernel_training import KernelModel, KernelTraining
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.planes.stream_start import FirstRows
from polyplane.estimator.planes.training import Model, Training
from polyplane.model.column_maps import ColumnMap
from polyplane.model.kernels import Kernel

__all__ = ["check_estimator_state", "check_sizes"]

LEAST_ALPHA = 1e-16  # a little less than may be set: doubled and found ones are rounded


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
    _check_models(estimator, training)
    if isinstance(training, KernelTraining):
        _check_kernel_training(estimator, training)
    else:
        _check_training(estimator, training)


def check_sizes(estimator: Any) -> None:
    """Whole numbers among parameters are such as arrays can be counted with."""
    for name, value in estimator.get_params(deep=False).items():
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        need(not is_whole or abs(value) < LARGEST_COUNT, f"{name} is beyond all counts")


def _check_found(estimator: Any) -> None:
    """What was 'auto' has been found, and is what the parameter could have been set to."""
    found, given = vars(estimator).get("_found"), estimator.get_params(deep=False)
    need(isinstance(found, dict) and found.keys() <= given.keys(), "settings found are none")
    need("auto" not in found.values(), "a setting has not been found")
    made = type(estimator)(**found)
    check_parameters(made)
    check_sizes(made)
    open_ = {name for name, value in given.items() if isinstance(value, str) and value == "auto"}
    if estimator._is_soft():
        open_ -= {"alpha"}  # which is settled step by step
    need(open_ <= found.keys(), "a setting has not been found")


def _check_models(estimator: Any, training: Any) -> None:
    """One for each problem and estimator; what they promise is counted before it is made."""
    models, kind = training.models, KernelModel if _is_kernel(training) else Model
    is_list = isinstance(models, list) and all(isinstance(model, kind) for model in models)
    need(is_list and len(models) > 0, "there are no models")
    decomposition = training.decomposition(estimator.combine)
    known = {(model.problem, getattr(model, "estimator", 0)) for model in models}
    n_each = 1 + max(place for _, place in known)
    need(len(models) == n_each * decomposition.n_problems(), "models are missing")
    problems = decomposition.problems()
    expected = {(problem, place) for problem in problems for place in range(n_each)}
    need(known == expected, "models are missing")
    for model in models:
        _check_rule_of(estimator, model)


def _is_kernel(training: Any) -> bool:
    return isinstance(training, KernelTraining)


def _check_rule_of(estimator: Any, model: Any) -> None:
    """A rule is what the machine's steps read: of its kind, and of its kinds of numbers."""
    rule, expected = model.rule, estimator._rule_like(model)
    need(type(rule) in (type(expected), type(None)), "a rule is of another machine")
    if rule is None:
        need(expected is None or model.n_steps == 0, "a rule is missing")
        return
    for value, like in zip(rule, expected, strict=True):
        is_flag, is_whole = isinstance(like, bool), isinstance(like, int)
        need(isinstance(value, bool) == is_flag, "a rule is of another machine")
        need(isinstance(value, int) or not is_whole, "a rule is of another machine")


def _check_training(estimator: Any, training: Training) -> None:
    n_classes = training.labels.size
    _check_found(estimator)
    estimator._check_state()
    need(training.n_columns == estimator.n_features_in_, "the number of columns is unclear")
    need_numbers(training.constant, training.calibration)
    need(isinstance(training.columns, _map_of(estimator)), "a map of columns is none")
    if training.columns is not None:
        need(training.columns.n_columns == training.n_columns, "a map is of other columns")
    for model in training.models:
        need(model.n_features == estimator._features_of(training), "planes have other features")
        codes = model.problem.codes(n_classes)
        need(np.array_equal(model.codes, codes), "a model has other classes")
        n_codes = model.problem.n_codes(n_classes)
        need(model.planes.room_left.size <= n_codes, "a model has more classes than there are")
        need(isinstance(model.columns, _map_of(estimator)), "a map of columns is none")
        for name in ("n_columns", "n_features"):
            is_same = getattr(model.columns, name, 0) == getattr(training.columns, name, 0)
            need(is_same, "a map is of other columns")
        is_used = not estimator._is_soft()
        need(not is_used or LEAST_ALPHA <= model.alpha <= 1 / LEAST_ALPHA, "an alpha is none")
    if training.buffer is not None:
        need(isinstance(training.buffer, FirstRows), "first rows are none")
        for part in training.buffer.parts:
            need_within(part.labels, 0, n_classes, "a label is")
            need_within(part.rows.columns, 0, training.n_columns, "a column is")
    _check_courses(training)


def _map_of(estimator: Any) -> type:
    return ColumnMap if estimator._is_soft() else type(None)


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
        slots = {NOT_THERE, *held.active[:n_active].tolist()}
        named = [held.counts[WANTED], *(held.totals[k] for k in estimator._totals_of_slots())]
        need(slots.issuperset(float(slot) for slot in named), "a slot that is named is not there")
