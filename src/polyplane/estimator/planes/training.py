"""Models in training: their planes, what they have seen, and the walk over rows.

A classifier is one model or, where it is taken apart into problems or is an ensemble, several
side by side: each with planes, steps and order of its own, so that it is the model that its
problem alone would have given, and so that threads need not meet.
All training, whether `fit`, `partial_fit` or a search, is `visit`: rows in some order, cut only
where something is due by the count of steps. Where the caller cuts his data changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import (
    CREATED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    Planes,
    copied,
    count_planes,
    has_idle_tile,
    live_lanes,
    with_more_room,
)
from polyplane.engine.steps.resting import AWAKE, REST
from polyplane.engine.targets import LEFT_OUT, Targets
from polyplane.estimator.fitting.progress import Report
from polyplane.estimator.fitting.resuming import SeenRows, interrupts_wait
from polyplane.estimator.input.known_classes import ClassesMet
from polyplane.estimator.input.validation import TrainingData
from polyplane.model.many_classes.decomposition import Problem
from polyplane.model.plane_record import FinishedPlanes, PlaneRecord, record_of
from polyplane.model.prediction import HISTORY

__all__ = [
    "HISTORY",
    "LEAST_CHOICE",
    "NO_CHOICE",
    "Course",
    "EarlyStopping",
    "OwnState",
    "PlaneModel",
    "PlaneTraining",
    "Snapshot",
    "Walk",
    "next_multiple",
    "visit",
]

RECORD_EVERY = 10_000  # steps between points of the history, after powers of two up to there
NO_CHOICE = np.empty(0, np.int32)
LEAST_CHOICE = AWAKE - REST
NO_ROWS = SeenRows(0, 0)


class OwnState:
    """What one machine keeps of a model, or of a training, beside what all machines keep.

    A machine that keeps something has a dataclass of it in its own file, and makes one in
    `_own_of_model` or `_own_of_training`. Files hold of it what `files/training_tables.py` names.
    """

    def snapshot(self) -> Any:
        """What steps change of it, copied; None where they change nothing."""
        return None

    def return_to(self, snapshot: Any) -> None:
        """Take up an earlier `snapshot`."""

    def check(self, planes: Planes) -> None:
        """Refuse what a file tells if it does not belong to the planes of its model."""


class Snapshot(NamedTuple):
    """A state of a model to return to."""

    planes: Planes
    own: Any  # of the machine's own state, what steps change
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
    own: Any = field(default_factory=OwnState)  # the machine's own state

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def targets(self, data: TrainingData) -> Targets:
        """What this model is to learn of the rows."""
        return Targets(data.labels, self.codes, data.weights)

    def visits(self, data: TrainingData) -> Array:
        """Which rows this model visits."""
        is_visited: Array = self.codes[data.labels] != LEFT_OUT
        if data.weights.size:
            is_visited &= data.weights > 0
        return is_visited

    def visits_any(self, data: TrainingData) -> bool:
        """Whether it visits a row at all; most models visit all, which needs no look at rows."""
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
    def alpha_of_opposite_planes(self) -> float:
        """The alpha of the multi-class SVM that, with two classes, is Pegasos with `alpha`.

        It keeps its two planes opposite, W_1 = -W_0 = w/2: both get the same row with opposite
        signs. Its loss is 1 - w x and its regulariser alpha/4 |w|^2, so twice the alpha makes it
        Pegasos exactly, and one loop serves both.
        """
        is_two_class = self.planes.room_left.size == 2
        return 2 * self.alpha if is_two_class else self.alpha

    @property
    def mean_step(self) -> float:
        """The step that the sums handed out stand for: the last, or the mean of the average."""
        keeps_average = self.planes.timed_sums.size > 0
        return (2 * self.n_steps + 1) / 3 if keeps_average else self.n_steps  # step t weighs t

    def finished(self, alpha: float) -> FinishedPlanes:
        """The planes reached, W = Theta / (alpha t)."""
        lanes = live_lanes(self.planes)
        sums = mean_sums(self.planes, self.n_steps)[: self.n_features + 1, lanes]
        scale = 1.0 / (alpha * max(self.n_steps, 1))
        scales = np.full(lanes.size, scale, np.float32)
        return FinishedPlanes(sums, self.planes.owner[lanes], scales)

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
    """How far one model has come in a fit: enough to go on after an interruption, to the bit."""

    n_rows: int
    chosen: Array  # of each row its plane, or below 0 a note, for machines that keep such
    n_passes: int = 0  # completed
    is_over: bool = False
    first_step: int = 0  # of the pass at work
    mixed_by: Any = None  # the generator's state before it mixed the rows of the pass at work

    @property
    def is_amid(self) -> bool:
        """Whether a pass has begun and not ended."""
        return self.mixed_by is not None


@dataclass
class EarlyStopping:
    """What early stopping has seen."""

    best: float = np.inf
    since_best: int = 0  # passes
    snapshots: list[Snapshot] = field(default_factory=list)  # of all models at their best


@dataclass
class PlaneTraining(ClassesMet):
    """What `fit` and `partial_fit` leave behind and take up again."""

    constant: float
    n_columns: int
    models: list[PlaneModel] = field(default_factory=list)
    rows_seen: SeenRows = NO_ROWS  # by the latest fit
    split_seed: int = 0  # of the rows that early stopping holds out
    courses: list[Course] = field(default_factory=list)  # of the models, until a fit is finished
    watch: EarlyStopping = field(default_factory=EarlyStopping)
    own: Any = field(default_factory=OwnState)  # the machine's own state

    @property
    def is_unfinished(self) -> bool:
        """Whether a fit was interrupted."""
        return len(self.courses) > 0

    @property
    def n_steps(self) -> int:
        """Steps of all models."""
        return sum(model.n_steps for model in self.models)

    def record(
        self,
        finish: Callable[[PlaneModel], FinishedPlanes],
        combine: str,
        empty_score: float,
        is_soft: bool,
        calibration: float,
    ) -> PlaneRecord:
        """The classifier reached; `calibration` times its scores are log-odds."""
        decomposition = self.decomposition(combine)
        places = {problem: p for p, problem in enumerate(decomposition.problems())}
        n_estimators = 1 + max(model.estimator for model in self.models)
        made: list[list[Any]] = [[None] * len(places) for _ in range(n_estimators)]
        for model in self.models:
            finished = finish(model)
            if decomposition.is_joint:
                finished = _of_known_classes(finished, self.labels.size)
            made[model.estimator][places[model.problem]] = finished
        record = record_of(made, decomposition, empty_score, is_soft)
        return replace(record, calibration=calibration)


def _of_known_classes(planes: FinishedPlanes, n_classes: int) -> FinishedPlanes:
    """A class not named yet cannot win."""
    sums, owner, scales, n_units = planes
    is_known = owner < n_classes * n_units
    return FinishedPlanes(sums[:, is_known], owner[is_known], scales[is_known], n_units)


class Walk(NamedTuple):
    """What a machine does along the way."""

    steps: Callable[[PlaneModel, TrainingData, Array, Array], int]  # its loop; returns new n_steps
    due: Callable[[int], int]  # next count of steps at which `act` wants to be called
    act: Callable[[PlaneModel], None]


def _next_record(step: int) -> int:
    """Next power of two below RECORD_EVERY, then its multiples."""
    power = 1 << step.bit_length()
    return min(power, RECORD_EVERY) if step < RECORD_EVERY else next_multiple(step, RECORD_EVERY)


def next_multiple(step: int, interval: int) -> int:
    """The first multiple of `interval` after `step`."""
    return (step // interval + 1) * interval


def _make_room(model: PlaneModel, chosen: Array) -> None:
    """More lanes; rows that have chosen a plane follow it to its new place."""
    lanes = live_lanes(model.planes)
    place = np.full(model.planes.owner.size, NO_PLANE, np.int32)
    place[lanes] = np.arange(lanes.size, dtype=np.int32)
    model.planes = with_more_room(model.planes)
    chosen[chosen >= 0] = place[chosen[chosen >= 0]]


def visit(
    model: PlaneModel, data: TrainingData, order: Array, chosen: Array, walk: Walk, report: Report
) -> None:
    """Visit the rows in `order`, once each."""
    done = 0
    with interrupts_wait() as let_through:
        while done < order.size:
            before, mistakes = model.n_steps, int(model.planes.counts[MISTAKES])
            done += _visit_some(model, data, order[done:], chosen, walk)
            visited = model.n_steps - before
            n_mistakes = int(model.planes.counts[MISTAKES]) - mistakes
            report(visited, count_planes(model.planes), n_mistakes / max(visited, 1))
            let_through()


def _visit_some(
    model: PlaneModel, data: TrainingData, order: Array, chosen: Array, walk: Walk
) -> int:
    """Visit the first rows in `order`, up to where something is due; return how many."""
    before = model.n_steps
    next_act, next_note = walk.due(before), _next_record(before)
    part = order[: min(next_act, next_note) - before]
    model.n_steps = walk.steps(model, data, part, chosen)
    visited = model.n_steps - before
    if model.n_steps == next_act:
        walk.act(model)
    if visited < part.size or has_idle_tile(model.planes):
        _make_room(model, chosen)
    if model.n_steps == next_note:
        model.note()
    return visited
