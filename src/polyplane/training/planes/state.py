"""Trainings of planes: models side by side, with planes, steps and orders of their own.

A classifier is one model or, where it is taken apart into problems or is an ensemble, several side
by side, so that each is the model that its problem alone would have given, and so that threads need
not meet.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import (
    CREATED,
    MISTAKES,
    PRUNED,
    Planes,
    copied,
)
from polyplane.engine.steps.resting import AWAKE, REST
from polyplane.engine.targets import LEFT_OUT, Targets
from polyplane.model.many_classes.decomposition import Problem
from polyplane.model.plane_record import FinishedPlanes, PlaneRecord, record_of
from polyplane.training.planes.first_rows import FirstRows
from polyplane.training.rows import TrainingData
from polyplane.training.state import Training

__all__ = [
    "LEAST_CHOICE",
    "NO_CHOICE",
    "NO_ROWS_WON",
    "Course",
    "OwnState",
    "PlaneModel",
    "PlaneTraining",
    "Snapshot",
]

NO_CHOICE = np.empty(0, np.int32)
NO_ROWS_WON = np.empty(0, np.int64)
LEAST_CHOICE = AWAKE - REST


class OwnState:
    """State that only one algorithm keeps of a model, or of a training.

    An algorithm that keeps something has a dataclass of it in its own file. Files hold of it what
    `files/training_tables.py` names.
    """

    def snapshot(self) -> Any:
        """Return what steps change of it, copied; None where they change nothing."""
        return None

    def return_to(self, snapshot: Any) -> None:
        """Take up an earlier `snapshot`."""

    def check(self, planes: Planes) -> None:
        """Refuse what a file tells if it does not belong to the planes of its model."""

    def end_meeting(self) -> None:
        """Forget what only models share that start together."""

    @property
    def won(self) -> Array:
        """Rows that each plane has won, by lane, where they are counted."""
        return NO_ROWS_WON

    def settle(self, won: Array, owner: Array) -> None:
        """Take up what several learners have won together."""


class Snapshot(NamedTuple):
    """A state of a model to return to."""

    planes: Planes
    own: Any  # of the algorithm's own state, what steps change
    n_steps: int
    mistakes_noted: int
    n_notes: int


@dataclass
class PlaneModel:
    """One model in training."""

    problem: Problem
    estimator: int  # which of an ensemble it belongs to
    planes: Planes
    alpha: float
    constant: float  # 1 with an intercept, 0 without
    seed: int
    n_features: int  # of the planes, without the constant
    codes: Array = field(default_factory=lambda: np.empty(0, np.int32))
    n_steps: int = 0
    mistakes_noted: int = 0
    rule: Any = None  # what its steps follow
    history: list[tuple[int, int, int, int, float]] = field(default_factory=list)
    n_units: int = 1  # soft maxima of a class, since it started
    own: Any = field(default_factory=OwnState)  # of its algorithm

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def targets(self, data: TrainingData) -> Targets:
        """Return the labels of the rows as codes of this model."""
        return Targets(data.labels, self.codes, data.weights)

    def visits(self, data: TrainingData) -> Array:
        """Return which rows this model visits."""
        is_visited: Array = self.codes[data.labels] != LEFT_OUT
        if data.weights.size:
            is_visited &= data.weights > 0
        return is_visited

    def visits_any(self, data: TrainingData) -> bool:
        """Return True if the model visits any row; most visit all, which needs no look at rows."""
        if data.weights.size == 0 and (self.codes != LEFT_OUT).all():
            return data.labels.size > 0
        return bool(self.visits(data).any())

    def first_row(self, data: TrainingData) -> int:
        """The first row, as it stands, that this model visits."""
        return int(np.argmax(self.visits(data)))

    def start_of(self, n_planes: int, label: int, length: float) -> Array:
        """Planes of a class before the first step: random directions of a length, or one zero.

        Planes that start equal would be told apart only by the rule that breaks ties.
        """
        if n_planes == 1:
            return np.zeros((1, 1), np.float32)
        generator = np.random.default_rng([self.seed, label])
        start = generator.standard_normal((n_planes, self.n_features + 1))
        start *= length / np.linalg.norm(start, axis=1, keepdims=True)
        start[:, 0] *= self.constant
        return start.astype(np.float32)

    @property
    def mean_step(self) -> float:
        """The step that the sums handed out stand for: the last, or the mean of the average."""
        keeps_average = self.planes.timed_sums.size > 0
        return (2 * self.n_steps + 1) / 3 if keeps_average else self.n_steps  # step t weighs t

    def snapshot(self) -> Snapshot:
        """The state now."""
        own = self.own.snapshot()
        return Snapshot(
            copied(self.planes), own, self.n_steps, self.mistakes_noted, len(self.history)
        )

    def return_to(self, snapshot: Snapshot) -> None:
        """Take up an earlier state."""
        self.planes, own, self.n_steps, self.mistakes_noted, n_notes = snapshot
        self.own.return_to(own)
        del self.history[n_notes:]

    def note(self) -> None:
        """Append a point to the history; its error is that of the steps since the point before."""
        counts = self.planes.counts
        mistakes = int(counts[MISTAKES])
        steps = self.n_steps - (self.history[-1][0] if self.history else 0)
        error = (mistakes - self.mistakes_noted) / steps
        self.mistakes_noted = mistakes
        created, pruned = int(counts[CREATED]), int(counts[PRUNED])
        self.history.append((self.n_steps, created - pruned, created, pruned, error))


@dataclass
class Course:
    """Progress of one model in a fit: enough to resume after an interruption, to the bit."""

    n_rows: int
    chosen: Array  # of each row its plane, or below 0 a note, for algorithms that keep such
    n_passes: int = 0  # completed
    is_over: bool = False
    first_step: int = 0  # of the pass at work
    mixed_by: Any = None  # the generator's state before it mixed the rows of the pass at work

    @property
    def is_amid(self) -> bool:
        """Return True if a pass has begun and not ended."""
        return self.mixed_by is not None


@dataclass(kw_only=True)
class PlaneTraining(Training):
    """State of plane models between calls of `fit` and `partial_fit`."""

    models: list[PlaneModel] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)  # of the models, until a fit is finished
    first_rows: FirstRows | None = None  # of a stream, until there are enough to start from
    own: Any = field(default_factory=OwnState)  # of its algorithm

    @property
    def is_unfinished(self) -> bool:
        """Return True if a fit was interrupted."""
        return len(self.courses) > 0

    @property
    def n_features(self) -> int:
        """Features of the planes, without the constant."""
        return self.columns.n_features

    def end_fit(self) -> None:
        """Forget how far a fit has come."""
        self.courses = []

    def snapshot(self) -> list[Snapshot]:
        """Return the state of each model."""
        return [model.snapshot() for model in self.models]

    def return_to(self, snapshots: list[Snapshot]) -> None:
        """Take up an earlier state."""
        for model, state in zip(self.models, snapshots, strict=False):
            model.return_to(state)

    def record(
        self,
        finish: Callable[[PlaneModel], FinishedPlanes],
        combine: str,
        empty_score: float,
        is_soft: bool,
    ) -> PlaneRecord:
        """Return the classifier reached; `finish` gives the planes of a model."""
        decomposition = self.decomposition(combine)
        places = {problem: p for p, problem in enumerate(decomposition.problems())}
        n_estimators = 1 + max(model.estimator for model in self.models)
        made: list[list[Any]] = [[None] * len(places) for _ in range(n_estimators)]
        for model in self.models:
            finished = finish(model)
            if decomposition.is_joint:
                finished = _of_known_classes(finished, self.labels.size)
            made[model.estimator][places[model.problem]] = finished
        return record_of(made, decomposition, empty_score, is_soft)


def _of_known_classes(planes: FinishedPlanes, n_classes: int) -> FinishedPlanes:
    """A class not named yet cannot win."""
    sums, owner, scales, n_units = planes
    is_known = owner < n_classes * n_units
    if is_known.all():
        return planes
    return FinishedPlanes(sums[:, is_known], owner[is_known], scales[is_known], n_units)
