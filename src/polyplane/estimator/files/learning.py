"""The training part of a model file: how an estimator learns on where it stopped, to the bit.

Each record is looked at by itself as its table puts it together, and the whole in the end: compiled
loops do not look where they reach. Whatever is used as an index must lie in what it points into.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from polyplane.engine.planes.planes import LANES_USED, NO_PLANE, Planes
from polyplane.engine.steps.polytope import PolytopeRule
from polyplane.engine.support.support_set import ACTIVE, NOT_THERE, WANTED
from polyplane.estimator.files.training_tables import (
    TABLES,
    Curve,
    KernelState,
    PlaneState,
    columns_in_training,
)
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.fitting.streams import give_stream_course, stream_course_of
from polyplane.estimator.fitting.thread_safety import remember
from polyplane.estimator.online_classifier import evaluations_of, give_evaluations, give_training
from polyplane.estimator.shell import job_of
from polyplane.model.format.checks import need, need_within
from polyplane.model.format.schema import Many, Nested, Reader, Writer
from polyplane.model.kernels.kernel_values import FormulaKernel, GivenKernel, Kernel
from polyplane.model.prediction import FittedModel
from polyplane.training.columns import Columns
from polyplane.training.kernels.state import KernelTraining
from polyplane.training.planes.algorithm import start_at_zero
from polyplane.training.planes.first_rows import FirstRows
from polyplane.training.planes.state import LEAST_CHOICE, OwnState, PlaneModel, PlaneTraining
from polyplane.training.soft_planes.mapped_columns import MappedColumns
from polyplane.training.state import known_classes

__all__ = ["read_training", "write_training"]

LEAST_ALPHA = 1e-16  # a little less than may be set: doubled and found ones are rounded
PATH = "training"
CURVES = Many(Nested(TABLES["evaluations"]))


# ---- writing -----------------------------------------------------------------------------


def write_training(estimator: Any, out: Writer) -> dict[str, Any]:
    """The training part as JSON; its arrays go to `out`."""
    training = training_of(estimator)
    is_kernel = isinstance(training, KernelTraining)
    kind, state = ("kernel", _kernel_state(training)) if is_kernel else ("planes", training)
    stream = stream_course_of(estimator)
    path = f"{PATH}.stream"
    return {
        kind: TABLES[kind].write(state, f"{PATH}.{kind}", out),
        "stream": None if stream is None else TABLES["stream"].write(stream, path, out),
        "evaluations": CURVES.write(_curves_of(estimator), f"{PATH}.evaluations", out),
    }


def _curves_of(estimator: Any) -> list[Curve]:
    found = evaluations_of(estimator)
    return [Curve(name, *one) for name, measures in found.items() for one in measures.items()]


def _kernel_state(training: KernelTraining) -> KernelState:
    return KernelState(
        training.seed,
        training.cache_bytes,
        _offset_of(training.kernel),
        training.models,
        training.pool,
        training.n_seen,
        training.course,
        training.generator,
    )


def _offset_of(kernel: Any) -> float:
    return float(kernel.formula.offset if isinstance(kernel, FormulaKernel) else kernel.offset)


def _with_offset(kernel: Any, offset: float) -> Kernel:
    if isinstance(kernel, FormulaKernel):
        formula = kernel.formula._replace(offset=np.float32(offset))
        return replace(kernel, formula=formula)
    given: Kernel = replace(kernel, offset=offset)
    return given


# ---- reading -----------------------------------------------------------------------------


def read_training(plain: Any, arrays: dict[str, Any], estimator: Any, model: FittedModel) -> None:
    """Give an estimator its training."""
    need(isinstance(plain, dict), "the training part is not a record")
    source, kind = Reader(arrays), "planes" if model.has_planes else "kernel"
    state = TABLES[kind].read(plain.get(kind), f"{PATH}.{kind}", source)
    made = _plane_training if model.has_planes else _kernel_training
    give_training(estimator, made(state, estimator, model))
    remember(estimator, model.record)
    if plain.get("stream") is not None:
        course = TABLES["stream"].read(plain["stream"], f"{PATH}.stream", source)
        give_stream_course(estimator, course)
    evaluations: dict[str, dict[str, list[float]]] = {}
    for curve in CURVES.read(plain.get("evaluations"), f"{PATH}.evaluations", source, {}):
        evaluations.setdefault(curve.set, {})[curve.measure] = curve.values
    give_evaluations(estimator, evaluations)


def _plane_training(state: PlaneState, estimator: Any, model: FittedModel) -> PlaneTraining:
    record: Any = model.record
    job = job_of(estimator, dict(model.found))
    algorithm, settings = job
    columns = _columns(algorithm.columns, state.own["columns"], model)
    training = PlaneTraining(
        kind=record.decomposition.kind,
        known=known_classes(model.labels[record.decomposition.ranks]),
        columns=columns,
        n_columns=model.n_columns,
        found=dict(model.found),
        n_passes=model.n_passes,
        **vars(state) | {"own": _own_state(algorithm.own_of_training(), state.own)},
    )
    _check_models(training, estimator, record.n_estimators)
    is_mapped = isinstance(columns, MappedColumns)
    n_seen = columns.map.n_folded if is_mapped else columns.n_features
    is_alpha_free = "alpha" in vars(settings) and "alpha" not in algorithm.searched
    for one in training.models:
        need(len(record.sums) == n_seen + 1, "planes have other features")
        one.n_features, one.codes = columns.n_features, one.problem.codes(training.labels.size)
        one.own = _own_state(algorithm.own(), one.own)
        one.rule = _rule(one, algorithm.rule_kept or algorithm.rule_of(one, settings))
        _check_plane_model(one, training.labels.size)
        has_a_plane_each = algorithm.start is start_at_zero
        need(not has_a_plane_each or _have_planes(one.planes), "a class has no plane")
        is_right = LEAST_ALPHA <= one.alpha <= 1 / LEAST_ALPHA
        need(is_alpha_free or is_right, "an alpha is out of its range")
    _give_histories(training, model)
    _check_first_rows(training, training.first_rows)
    _check_courses(training)
    return training


def _columns(kind: type[Columns], told: Any, model: FittedModel) -> Any:
    """The view of columns, with what the training part says beside the prediction part."""
    features: Any = model.features
    columns = kind.of_features(features, model.n_columns)
    is_mapped = isinstance(columns, MappedColumns)
    need((told is not None) == is_mapped, "columns are of another algorithm")
    if isinstance(columns, MappedColumns):
        return columns.of_map(columns_in_training(columns.map, told))
    return columns


def _own_state(own: OwnState, told: dict[str, Any]) -> Any:
    """An algorithm's own state with what the file tells of it."""
    known = vars(own).keys() & told.keys()
    made: Any = own
    return replace(made, **{name: told[name] for name in known}) if known else own


def _check_models(training: Any, estimator: Any, n_estimators: int) -> None:
    """One for each problem and estimator; what they promise is counted before it is made."""
    decomposition = training.decomposition(estimator.combine)
    n_models = n_estimators * decomposition.n_problems()
    need(len(training.models) == n_models, "models are missing")
    known = {
        (one.problem, one.estimator if isinstance(one, PlaneModel) else 0)
        for one in training.models
    }
    problems = decomposition.problems()
    expected = {(problem, place) for problem in problems for place in range(n_estimators)}
    need(known == expected, "models are missing")


def _rule(model: Any, like: Any) -> Any:
    """Return the rule that steps read, after checks of its kind and its kinds of numbers."""
    given = model.rule
    if isinstance(like, PolytopeRule):
        need(given is None, "a rule is of another algorithm")
        return like
    if given is None:
        need(like is None or model.n_steps == 0, "a rule is missing")
        return None
    is_known = like is not None and given.keys() == like._asdict().keys()
    need(is_known, "a rule is of another algorithm")
    for name, expected in like._asdict().items():
        is_flag, is_whole = isinstance(expected, bool), isinstance(expected, int)
        need(isinstance(given[name], bool) == is_flag, "a rule is of another algorithm")
        need(isinstance(given[name], int) or not is_whole, "a rule is of another algorithm")
    return type(like)(**given)


def _check_plane_model(model: PlaneModel, n_classes: int) -> None:
    n_codes = model.problem.n_codes(n_classes)
    need(len(model.planes.sums) > model.n_features, "planes have fewer features than their model")
    need(model.planes.room_left.size <= n_codes, "a model has more classes than there are")
    _check_owners(model.planes, model)
    model.own.check(model.planes)


def _have_planes(planes: Planes) -> bool:
    """Return True if each class has a plane, without which some algorithms find no answer."""
    return bool(np.isin(np.arange(planes.room_left.size), planes.owner).all())


def _check_owners(planes: Planes, model: Any) -> None:
    """Classes, or the units of classes, that there are; units stand in their order."""
    n_units = model.n_units
    need_within(planes.owner, NO_PLANE, planes.room_left.size * n_units, "an owner is")
    n_used = int(planes.counts[LANES_USED])
    in_order = bool((np.diff(planes.owner[:n_used]) >= 0).all())
    has_gaps = bool((planes.owner[:n_used] == NO_PLANE).any())
    need(n_units == 1 or (in_order and not has_gaps), "planes do not stand by unit")


def _give_histories(training: PlaneTraining, model: FittedModel) -> None:
    """To each model the points that the prediction part tells of it."""
    numbers = model.history["model"].tolist()
    for number, point in zip(numbers, model.history.tolist(), strict=True):
        notes = training.models[number].history
        is_later = point[1] > (notes[-1][0] if notes else 0)
        need(is_later and point[1] <= training.models[number].n_steps, "a history does not rise")
        notes.append(point[1:])


def _check_first_rows(training: PlaneTraining, first_rows: FirstRows | None) -> None:
    for part in () if first_rows is None else first_rows.parts:
        need_within(part.labels, 0, training.labels.size, "a label is")
        rows: Any = part.rows
        need_within(rows.columns, 0, training.n_columns, "a column is")


def _check_courses(training: PlaneTraining) -> None:
    n_models, snapshots = len(training.models), training.watch.snapshots
    need(len(training.courses) in (0, n_models), "courses are missing")
    need(len(snapshots) in (0, n_models), "snapshots are missing")
    for model, course in zip(training.models, training.courses, strict=False):
        need_within(course.chosen, LEAST_CHOICE, model.planes.owner.size, "a chosen plane is")
        is_known = course.chosen.size in (0, training.rows_seen.n_rows)
        need(is_known, "chosen planes are of other rows")
    for model, snapshot in zip(training.models, snapshots, strict=False):
        is_like = snapshot.planes.room_left.size == model.planes.room_left.size
        _check_owners(snapshot.planes, model)
        is_like = is_like and (snapshot.own is None) == (model.own.snapshot() is None)
        need(is_like and len(snapshot.planes.sums) > model.n_features, "a snapshot is of another")


def _kernel_training(state: KernelState, estimator: Any, model: FittedModel) -> KernelTraining:
    record: Any = model.record
    training = KernelTraining(
        kind=record.decomposition.kind,
        seed=state.seed,
        known=known_classes(model.labels[record.decomposition.ranks]),
        columns=Columns(model.n_columns),
        n_columns=model.n_columns,
        found=dict(model.found),
        n_passes=model.n_passes,
        kernel=_with_offset(record.kernel, state.offset),
        gamma=float(model.gamma or 0.0),
        cache_bytes=state.cache_bytes,
        is_dense=model.is_dense,
        models=state.models,
        pool=state.pool,
        n_seen=state.n_seen,
        course=state.course,
    )
    training.generator = state.generator
    if state.course is not None:
        training.rows_seen = state.course.rows_seen
    numbers = training.support.numbers.tolist()
    training.places = {number: place for place, number in enumerate(numbers)}
    _check_models(training, estimator, 1)
    _check_support(training, estimator, model.n_columns)
    return training


def _check_support(training: KernelTraining, estimator: Any, n_columns: int) -> None:
    support = training.support
    need_within(support.entries.columns, 0, n_columns, "a column is")
    need_within(support.labels, 0, training.labels.size, "a label is")
    is_given = isinstance(training.kernel, GivenKernel)
    need_within(support.numbers, 0, n_columns if is_given else 1 << 62, "a number of a row is")
    job = job_of(estimator, training.found)
    empty, rule = job.algorithm.new_set(), job.algorithm.rule(job.settings)
    named_slots = np.flatnonzero(empty.totals == NOT_THERE)
    for model in training.models:
        model.rule = _rule(model, rule)
        held, n_active = model.held, int(model.held.counts[ACTIVE])
        is_like = len(held.coef) == len(empty.coef) and len(held.scores) == len(empty.scores)
        need(is_like, "a problem is of another algorithm")
        need_within(held.place[held.active[:n_active]], 0, support.size, "a place is")
        need_within(held.place, 0, max(1, support.size), "an empty slot's place is")
        slots = {NOT_THERE, *held.active[:n_active].tolist()}
        named = [held.counts[WANTED], *held.totals[named_slots]]
        need(slots.issuperset(float(slot) for slot in named), "a slot that is named is not there")
