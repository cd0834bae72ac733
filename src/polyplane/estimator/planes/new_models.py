"""How models of hyperplane machines come to be: for each problem one, when it has a row to visit.

What a machine starts with are methods that it may override, each with its contract.
"""

import copy
import dataclasses
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import with_classes, with_features, with_planes, zero_planes
from polyplane.engine.tiles import LANES
from polyplane.estimator.fitting.memory import check_memory
from polyplane.estimator.input.known_classes import known_classes
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.planes.passes import PlanePasses
from polyplane.estimator.planes.training import OwnState, PlaneModel, PlaneTraining
from polyplane.model.many_classes.decomposition import Problem

__all__ = ["PlaneStarts", "begun_like", "seed_of"]

BYTES_OF_MODEL = 8_000  # besides its planes, measured with tens of thousands of pairs


class PlaneStarts(PlanePasses):
    """A machine as it makes its models."""

    classes_: Array
    average: bool
    combine: str
    fit_intercept: bool

    # ---- what a machine adds -------------------------------------------------------------

    def _room_per_class(self) -> int:
        """How many planes a class may grow by itself."""
        return 0

    def _least_planes(self, n_codes: int) -> int:
        """How many planes a model of so many classes has at least."""
        return n_codes

    def _alpha_of(self, model: PlaneModel) -> float:
        """The regularisation of a model."""
        return float(self._setting("alpha"))

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        """Give classes `first` and later their first planes: one that is zero."""
        labels = np.arange(first, model.planes.room_left.size)
        model.planes = with_planes(model.planes, labels, np.zeros((labels.size, 1)))

    def _weighed(self, data: TrainingData) -> TrainingData:
        """The rows of a fit with the weights that steps use."""
        return data

    def _training_view(self, training: PlaneTraining, data: TrainingData) -> TrainingData:
        """The data as steps see them, where that is not how finished planes do."""
        return data

    def _own_of_model(self, training: PlaneTraining) -> OwnState:
        """What the machine itself keeps of each model, before its first row."""
        return OwnState()

    def _own_of_training(self) -> OwnState:
        """What the machine itself keeps of a training, before its first row."""
        return OwnState()

    def _keeps_average(self, training: PlaneTraining) -> bool:
        """Whether the mean of the planes over all steps is kept."""
        return bool(self.average)

    def _count_features(self, n_columns: int) -> int:
        """Features of the planes, without the constant, for so many columns of X."""
        return n_columns

    def _features_of(self, training: PlaneTraining) -> int:
        """Features of the planes of a training."""
        return self._count_features(training.n_columns)

    # ---- models --------------------------------------------------------------------------

    def _new_training(self, seed: int) -> PlaneTraining:
        return PlaneTraining(
            kind=self._setting("multi_class"),
            seed=seed,
            constant=float(self.fit_intercept),
            known=known_classes(np.empty(0)),
            n_columns=width_of(self),
            own=self._own_of_training(),
        )

    def _meet(self, training: PlaneTraining, labels: Array, data: TrainingData) -> None:
        """Classes and columns that training has not met yet."""
        known = {(model.problem, model.estimator) for model in training.models}
        met = copy.copy(training)
        met.known, met.n_columns = known_classes(labels), width_of(self)
        self._check_memory(met, len(known))
        training.known, training.n_columns = met.known, met.n_columns
        for problem in training.decomposition(self.combine).problems():
            for e in range(int(self._setting("n_estimators"))):
                if (problem, e) not in known:
                    training.models.append(self._new_model(training, problem, e))
        for model in training.models:
            self._introduce(model, training, data)
        self.classes_ = training.classes

    def _check_memory(self, training: PlaneTraining, n_known: int) -> None:
        """Planes of models to come, in training and as they will be finished."""
        n_models, n_bytes, what = self._size_of_models(training)
        check_memory(type(self).__name__, training.kind, n_models - n_known, n_bytes, what)

    def _size_of_models(self, training: PlaneTraining) -> tuple[int, int, str]:
        """How many there are, the bytes of each at least, and what these are for."""
        n_problems = training.decomposition(self.combine).n_problems()
        n_models = n_problems * int(self._setting("n_estimators"))
        n_codes = max(2, training.labels.size) if training.kind == "joint" else 2
        n_features = 1 + self._features_of(training)
        n_planes = self._least_planes(n_codes)
        n_lanes = -(-n_planes // LANES) * LANES * (2 if self._keeps_average(training) else 1)
        n_bytes = 4 * (n_features * (n_lanes + n_planes) + training.labels.size) + BYTES_OF_MODEL
        return n_models, n_bytes, f"{n_planes} planes with {n_features:,} numbers each"

    def _new_model(self, training: PlaneTraining, problem: Problem, estimator: int) -> PlaneModel:
        """All models of one estimator have the same seed: alone they would have it, too."""
        n_features = self._features_of(training)
        return PlaneModel(
            problem=problem,
            estimator=estimator,
            planes=zero_planes(n_features, self._keeps_average(training)),
            alpha=1.0,
            constant=training.constant,
            seed=seed_of(training.seed, estimator),
            n_features=n_features,
            own=self._own_of_model(training),
        )

    def _introduce(self, model: PlaneModel, training: PlaneTraining, data: TrainingData) -> None:
        """What is new in the data to a model; it starts when it has a row to visit.

        A model always knows at least two classes: until the second one is named, it stands for
        all that the first one is not.
        """
        model.alpha = self._alpha_of(model)
        model.n_features = self._features_of(training)
        model.planes = with_features(model.planes, model.n_features)
        model.codes = model.problem.codes(training.labels.size)
        n_before = model.planes.room_left.size
        n_now = model.problem.n_codes(training.labels.size)
        if n_now > n_before and model.visits_any(data):
            model.planes = with_classes(model.planes, n_now, self._room_per_class())
            self._start_classes(model, data, n_before)
        model.rule = self._rule(model)


# ---- what other files ask of a machine ---------------------------------------------------


def begun_like(
    machine: Any,
    settings: dict[str, Any],
    data: TrainingData,
    labels: Array,
    seed: int,
    members: Array,
) -> tuple[Any, PlaneTraining]:
    """A machine like this one with other settings, before its first pass over `members`."""
    own = {field.name: getattr(machine, field.name) for field in dataclasses.fields(machine)}
    made: Any = type(machine)(**(own | settings))
    made.n_features_in_, made._found = width_of(machine), {}
    training = made._training = made._new_training(seed)
    made._meet(training, labels, data)
    made._set_out(training, data, members)
    return made, training


def seed_of(seed: int, estimator: int) -> int:
    """The seed of one model of an ensemble; the first has that of the whole."""
    if estimator == 0:
        return seed
    return int(np.random.default_rng([seed, estimator]).integers(2**31))
