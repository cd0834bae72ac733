"""A machine as one of several learners, in rounds: it begins, visits its part, ends the round.

`travelling_models.py` makes rounds of it. What a machine does otherwise there are methods that it
may override, each with its contract.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.mixing import NEW
from polyplane.engine.planes.planes import Planes, live_lanes
from polyplane.engine.targets import LEFT_OUT, rows_of
from polyplane.estimator.fitting.thread_safety import writing
from polyplane.estimator.input.validation import TrainingData, all_or_nothing, codes_of, weighty
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.planes.new_models import PlaneStarts
from polyplane.estimator.planes.training import NO_CHOICE, PlaneModel, PlaneTraining, visit

__all__ = [
    "Census", "Moment", "Piece", "PlaneLearner", "begin_by_sample", "complete_by_sample",
    "count_passes", "end_round", "has_begun", "join_round", "meet_rows", "pass_over", "scale_of",
    "seen_by", "writes_rows_out",
]  # fmt: skip


class PlaneLearner(PlaneStarts):
    """A machine in rounds of several learners."""

    _training: PlaneTraining
    class_weight: Any
    _read_training: Callable[..., tuple[TrainingData, Array]]
    _better_settings: Callable[..., dict[str, Any]]
    _check_classes: Callable[[Array], None]
    _draw_seed: Callable[[], int]
    _complete: Callable[..., None]

    # ---- what a machine adds -------------------------------------------------------------

    _writes_rows_out = False  # for training, so that whoever visits them often should keep that

    def _scale_of(self, model: PlaneModel) -> float:
        """The factor by which sums are what learners average."""
        return 1.0

    def _schedule(self, model: PlaneModel, n_rows: int, n_done: int, n_parts: int) -> None:
        """Let steps fall over parts of so many rows each, of which some have been made."""

    def _end_pass_of_all(self, model: PlaneModel) -> None:
        """What is done after each pass of all learners but the last."""

    def _view_of_sample(
        self, training: PlaneTraining, data: TrainingData, is_all: bool
    ) -> TrainingData:
        """The same of a sample of the rows to come, or of all of them."""
        return self._training_view(training, data)


class Census(NamedTuple):
    """How many rows there are of each class."""

    labels: Array
    n_rows: Array

    def visited_by(self, machine: PlaneLearner) -> "Census":
        """Without rows of weight 0."""
        given = machine.class_weight if isinstance(machine.class_weight, dict) else {}
        has_weight = [given.get(label, 1.0) > 0 for label in self.labels.tolist()]
        return Census(self.labels[has_weight], self.n_rows[has_weight])


def _count_visited(machine: PlaneLearner, model: PlaneModel, census: Census) -> int:
    """How many of the rows counted a model visits."""
    visited = census.visited_by(machine)
    _, codes = codes_of(visited.labels, machine._training.labels)
    return int(visited.n_rows[model.codes[codes] != LEFT_OUT].sum())


def begin_by_sample(machine: PlaneLearner, X: Any, y: Any, census: Census) -> None:
    """Begin a training as `fit` does, of the rows counted, of which these are some or all.

    Settings that are 'auto', maps of columns and first planes are found on these. No row is
    learned.
    """
    with writing(machine), all_or_nothing(machine):
        check_parameters(machine)
        data, labels = machine._read_training(X, y, census.labels, None, False)
        data = machine._weighed(data)
        machine._check_classes(labels)
        seed, n_rows = machine._draw_seed(), int(census.n_rows.sum())
        n_to_come = int(census.visited_by(machine).n_rows.sum())
        machine._found = machine._better_settings(data, labels, seed, n_to_come)
        machine.n_iter_ = 0
        training = machine._training = machine._new_training(seed)
        is_all = data.labels.size == n_rows
        machine._meet(training, labels, machine._view_of_sample(training, data, is_all))
        for model in training.models:
            n_visited = _count_visited(machine, model, census)
            machine._begin(model, machine._count_passes(n_visited) * n_visited)


def complete_by_sample(machine: PlaneLearner, X: Any, y: Any) -> None:
    """Do with models what `fit` does in the end, with some of its rows or all."""
    with writing(machine):
        data, _ = machine._read_training(X, y, None, None, True)
        seen = machine._training_view(machine._training, data)
        members = weighty(in_place(data.labels.size), data.weights)
        machine._complete(machine._training, seen, members)


def count_passes(machine: PlaneLearner) -> int:
    """How many passes over the rows are set, or were found."""
    return int(machine._setting("max_iter"))


def meet_rows(machine: PlaneLearner, X: Any, y: Any, classes: Any) -> bool:
    """Begin a training as `fit` does, or let it meet more rows; return whether all has begun.

    A model begins when it meets a row that it will visit: one of a pair of classes needs a row of
    one of them. No row is learned.
    """
    goes_on = hasattr(machine, "_training")
    with writing(machine), all_or_nothing(machine):
        check_parameters(machine)
        data, labels = machine._read_training(X, y, classes, None, goes_on)
        machine._check_classes(labels)
        if not goes_on:
            seed = machine._draw_seed()
            machine._found, machine.n_iter_ = {}, 0
            machine._training = machine._new_training(seed)
        machine._meet(machine._training, labels, data)
    return has_begun(machine)


def has_begun(machine: PlaneLearner) -> bool:
    """Whether all models have met a row that they visit."""
    return all(model.planes.room_left.size > 0 for model in machine._training.models)


class Moment(NamedTuple):
    """Where a round stands in a training."""

    n_done: int  # parts of the training before it
    n_parts: int  # in all
    n_passes: int = 1  # over all rows that end with it

    @property
    def n_made(self) -> int:
        """Parts that it makes: itself, or passes where it is several."""
        return max(1, self.n_passes)

    @property
    def is_last(self) -> bool:
        """Whether the training ends with it."""
        return self.n_done + self.n_made == self.n_parts


class Piece(NamedTuple):
    """Which part of the rows of a partition, in the order of a pass, is visited."""

    place: int = 0
    n_pieces: int = 1


def join_round(machine: PlaneLearner, census: Census, n_pieces: int, moment: Moment) -> None:
    """Let steps fall as suits a learner that visits a piece of these rows in each round."""
    for model in machine._training.models:
        n_rows = _count_visited(machine, model, census) // n_pieces
        if n_rows > 0:
            machine._schedule(model, n_rows, moment.n_done, moment.n_parts)


def writes_rows_out(machine: PlaneLearner) -> bool:
    """Whether rows as it sees them are others than those that it is given, and worth keeping."""
    return machine._writes_rows_out


def seen_by(machine: PlaneLearner, X: Any, y: Any) -> TrainingData:
    """Rows as its steps see them. All classes and columns must be known by now."""
    with writing(machine):
        data, labels = machine._read_training(X, y, None, None, True)
        known = machine._training.labels
        if labels.size > known.size:
            raise ValueError(f"y holds labels that are new: {labels[known.size :].tolist()}")
        return machine._training_view(machine._training, data)


def pass_over(
    machine: PlaneLearner,
    seen: TrainingData,
    learner: int,
    piece: Piece,
) -> list[Array]:
    """Make a pass over rows, or a piece of one, as a pass of `fit`; return origins of planes.

    Those are, for each model and each plane that lives, its place among those that lived before,
    or NEW. Each learner has an order of its own; that of the first is that of `fit`.
    """
    with writing(machine):
        models = machine._training.models
        return [_pass_of(machine, model, seen, learner, piece) for model in models]


def _pass_of(
    machine: PlaneLearner,
    model: PlaneModel,
    data: TrainingData,
    learner: int,
    piece: Piece,
) -> Array:
    """The pass of one model; return the origins of its planes."""
    walk = machine._walk()

    def steps(model: PlaneModel, data: TrainingData, order: Array, _: Array) -> int:
        n_steps: int = walk.steps(model, data, order, NO_CHOICE)
        return n_steps

    def silent(*_: Any) -> None:
        """Nobody looks."""

    members = weighty(in_place(data.labels.size), data.weights)
    order = rows_of(members, model.targets(data))
    before = model.generator.bit_generator.state
    if machine.shuffle and learner > 0:
        bits: Any = model.generator.bit_generator
        model.generator = np.random.Generator(bits.jumped(learner))
    if machine.shuffle:
        shuffle(order, model.generator)
    order = np.array_split(order, piece.n_pieces)[piece.place]
    if piece.place + 1 < piece.n_pieces:  # the next has the same order
        model.generator.bit_generator.state = before
    lanes = live_lanes(model.planes).astype(np.int32)  # `visit` follows them where they go
    visit(model, data, order, lanes, walk._replace(steps=steps), silent)
    return _origins_of(model.planes, lanes)


def _origins_of(planes: Planes, lanes: Array) -> Array:
    """Of each plane that lives its place among `lanes`, or NEW."""
    origin = np.full(planes.owner.size + 1, NEW, np.int64)
    origin[lanes] = np.arange(lanes.size)  # of those that went, in the last place: -1
    return origin[live_lanes(planes)]


def scale_of(machine: PlaneLearner, model: PlaneModel) -> float:
    """The factor by which sums are what learners average."""
    return float(machine._scale_of(model))


def end_round(machine: PlaneLearner, n_before: Sequence[int], moment: Moment) -> None:
    """Do what a machine does between rounds, and count passes.

    Models that were mixed have made steps since `n_before`, and no learner's schedule is theirs.
    """
    machine.n_iter_ += moment.n_passes
    models = machine._training.models
    for model, before in zip(models, n_before, strict=False):
        if model.n_steps > before:
            made = round((model.n_steps - before) / moment.n_made)
            machine._schedule(model, made, moment.n_done + moment.n_made, moment.n_parts)
            machine._act(model)
            model.note()
    if moment.n_passes > 0 and not moment.is_last:
        for model in models:
            machine._end_pass_of_all(model)
