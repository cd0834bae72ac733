"""Creation of models of planes: one for each problem, which starts with its first row."""

import sys

import numpy as np

from polyplane.engine.planes.planes import copied, with_classes, with_features, zero_planes
from polyplane.engine.tiles import LANES
from polyplane.model.many_classes.decomposition import Problem
from polyplane.training.columns import Columns
from polyplane.training.job import NewRows, Settings
from polyplane.training.planes.algorithm import PlaneJob
from polyplane.training.planes.state import PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData
from polyplane.training.state import known_classes, twin
from polyplane.training.work.memory import check_memory

__all__ = ["bytes_of_models", "meet_rows", "meet_seen", "new_training"]

BYTES_OF_MODEL = 8_000  # besides its planes, measured with tens of thousands of pairs


def new_training(job: PlaneJob, rows: NewRows, columns: Columns | None = None) -> PlaneTraining:
    """Return a training before its first row; `columns` are found in the rows unless given."""
    algorithm, settings = job
    return PlaneTraining(
        kind=settings.multi_class,
        seed=rows.seed,
        constant=float(settings.fit_intercept),
        known=known_classes(np.empty(0)),
        columns=columns or algorithm.columns.begun(job, rows),
        n_columns=rows.n_columns,
        own=algorithm.own_of_training(),
    )


def meet_rows(
    job: PlaneJob, before: PlaneTraining, rows: NewRows, columns: Columns | None = None
) -> tuple[PlaneTraining, TrainingData]:
    """Return a copy of the training that knows the rows, and the rows as its steps see them.

    Until a step is made, nothing of what was there before has changed. `columns` are those that it
    has from now on, unless they follow from the rows.
    """
    training = _copied(before)
    columns = columns or before.columns.widened(rows.n_columns, rows.data.rows)
    if columns is not before.columns:
        _see_through(training, columns)
    seen = columns.for_training(rows.data)
    _meet(job, training, rows, seen)
    return training, seen


def meet_seen(job: PlaneJob, before: PlaneTraining, rows: NewRows) -> PlaneTraining:
    """Return a copy of the training that knows the rows, which are as its steps see them."""
    training = _copied(before)
    _meet(job, training, rows, rows.data)
    return training


def _copied(before: PlaneTraining) -> PlaneTraining:
    training: PlaneTraining = twin(before)
    training.own = twin(before.own)
    training.models = [twin(model) for model in before.models]
    return training


def _meet(job: PlaneJob, training: PlaneTraining, rows: NewRows, seen: TrainingData) -> None:
    is_new = rows.labels is not training.labels  # some class, or all of a training that begins
    n_models = training.decomposition("").n_problems() * job.settings.n_estimators
    if is_new or rows.n_columns != training.n_columns or len(training.models) < n_models:
        training.n_columns = rows.n_columns
        _make_models(job, training, rows)
    for model in training.models:
        _introduce(job, training, model, seen, is_new)
    training.own.end_meeting()


def _make_models(job: PlaneJob, training: PlaneTraining, rows: NewRows) -> None:
    settings, training.known = job.settings, known_classes(rows.labels)
    known = {(model.problem, model.estimator) for model in training.models}
    n_models, n_bytes, what = _size_of_models(job, training)
    check_memory(settings.name, training.kind, n_models - len(known), n_bytes, what)
    if n_models > len(known):
        training.models += [
            _new_model(job, training, problem, estimator)
            for problem in training.decomposition(settings.combine).problems()
            for estimator in range(int(settings.n_estimators))
            if (problem, estimator) not in known
        ]


def _see_through(training: PlaneTraining, columns: Columns) -> None:
    """Let a training see columns otherwise, and its planes with it."""
    before, training.columns = training.columns, columns
    for model in training.models:
        planes = model.planes
        sums = columns.taken_over(before, planes.sums)
        if sums is not planes.sums:
            timed = planes.timed_sums
            timed = columns.taken_over(before, timed) if len(timed) else timed
            model.planes = planes._replace(sums=sums, timed_sums=timed)
        model.n_features = columns.n_features


def bytes_of_models(job: PlaneJob, rows: NewRows) -> int:
    """Return how much memory all models together need at least."""
    training = new_training(job, rows)
    training.known = known_classes(rows.labels)
    n_models, n_bytes, _ = _size_of_models(job, training)
    return n_models * n_bytes


def _keeps_average(job: PlaneJob, training: PlaneTraining) -> bool:
    is_for_streams = job.algorithm.stream is not None
    return bool(job.settings.average) and (not is_for_streams or training.first_rows is not None)


def _size_of_models(job: PlaneJob, training: PlaneTraining) -> tuple[int, int, str]:
    """Return the number of models, the least bytes of each, and what these are for."""
    algorithm, settings = job
    n_problems = training.decomposition(settings.combine).n_problems()
    n_models = n_problems * int(settings.n_estimators)
    n_codes = max(2, training.labels.size) if training.kind == "joint" else 2
    n_features = 1 + training.columns.n_features
    n_planes = algorithm.first_planes(settings, n_codes)
    n_lanes = -(-n_planes // LANES) * LANES * (2 if _keeps_average(job, training) else 1)
    n_bytes = 4 * (n_features * (n_lanes + n_planes) + training.labels.size) + BYTES_OF_MODEL
    return n_models, n_bytes, f"{n_planes} planes with {n_features:,} numbers each"


def _new_model(
    job: PlaneJob, training: PlaneTraining, problem: Problem, estimator: int
) -> PlaneModel:
    """All models of one estimator have the same seed: alone they would have it, too."""
    n_features = training.columns.n_features
    return PlaneModel(
        problem=problem,
        estimator=estimator,
        planes=zero_planes(n_features, _keeps_average(job, training)),
        alpha=1.0,
        constant=training.constant,
        seed=_seed_of(training.seed, estimator),
        n_features=n_features,
        own=job.algorithm.own(),
    )


def _introduce(
    job: PlaneJob, training: PlaneTraining, model: PlaneModel, seen: TrainingData, is_new: bool
) -> None:
    """Tell a model of classes and columns of the rows that are new to it.

    A model always knows at least two classes: until the second one is named, it stands for all
    that the first one is not.
    """
    settings = job.settings
    model.alpha = 0.0 if settings.is_open("alpha") else float(settings.alpha)
    model.n_features = training.columns.n_features
    model.planes = with_features(model.planes, model.n_features)
    if is_new or model.codes.size != training.labels.size:  # or the model is new
        model.codes = model.problem.codes(training.labels.size)
    n_before = model.planes.room_left.size
    n_now = model.problem.n_codes(training.labels.size)
    if n_now > n_before and model.visits_any(seen):
        planes = copied(model.planes) if n_before > 0 else model.planes
        model.planes = with_classes(planes, n_now, _room_per_class(settings))
        job.algorithm.start(training, model, seen, settings, n_before)
    model.rule = job.algorithm.rule_of(model, settings)


def _room_per_class(settings: Settings) -> int:
    """Return the number of planes that a class may add."""
    return sys.maxsize if settings.max_planes is None else settings.max_planes


def _seed_of(seed: int, estimator: int) -> int:
    """The seed of one model of an ensemble; the first has that of the whole."""
    if estimator == 0:
        return seed
    return int(np.random.default_rng([seed, estimator]).integers(2**31))
