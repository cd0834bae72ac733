"""A round of parameter mixing, of all models of an estimator: pure functions of what can travel.

In a round several learners go on from the same model, each over partitions of its own, one after
the other; `engine/planes/mixing.py` makes one of what they reach. Every function here, and every
`Journey`, leaves what it is given as it was and gives the same bits for the same arguments, so that
whoever runs them may run them again, elsewhere. A learner alone is the estimator: nothing is
mixed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import widened
from polyplane.engine.planes.mixing import NEW, Share, is_sound, mixed
from polyplane.engine.planes.planes import CREATED
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.restoring import restoring, training_of
from polyplane.estimator.fitting.thread_safety import writing
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.shell import job_of
from polyplane.training.planes.models import meet_rows, new_training
from polyplane.training.planes.rounds import (
    Census,
    Moment,
    Piece,
    begin_by_sample,
    end_round,
    has_begun,
    join_round,
    pass_over_piece,
    share_of_model,
    take_share,
)
from polyplane.training.planes.state import PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData, mean_weight_is_one, weighty

__all__ = [
    "Along", "Census", "Journey", "Moment", "Piece", "Shares", "Task", "as_seen", "become_round",
    "begun", "begun_by_sample", "completed", "count_passes", "has_begun", "mixed_model",
    "mixed_shares", "next_model", "writes_rows_out",
]  # fmt: skip


class Began(NamedTuple):
    """Facts about a model before the round."""

    n_steps: int
    n_created: float  # planes


class Along(NamedTuple):
    """A learner on its way through a round."""

    model: PackedModel
    origins: Sequence[Array]  # of each model's planes, among those that the round began with
    began: Sequence[Began]  # each model


class Shares(NamedTuple):
    """Result of a round, of one learner or of several together."""

    shares: Sequence[Share]  # of the models
    n_created: Sequence[float]  # planes of each model, before the round
    generators: Sequence[Any]  # their states, of the first learner


def begun(estimator: Any, X: Any, y: Any, classes: Array, n_columns: int) -> bool:
    """Let an estimator meet rows before the first round; return whether all its models have begun.

    A model begins when it meets a row that it will visit: one of a pair of classes needs a row of
    one of them. No row is learned.
    """
    with writing(estimator), restoring(estimator):
        check_parameters(estimator)
        before: PlaneTraining | None = training_of(estimator)
        rows = estimator.read_rows(_as_wide(X, n_columns), y, classes, before)
        job = job_of(estimator, {})
        training, _ = meet_rows(job, before or new_training(job, rows), rows)
        estimator.become(training)
        return has_begun(training)


def begun_by_sample(estimator: Any, X: Any, y: Any, n_columns: int, census: Census) -> None:
    """Begin a training as `fit` does, of the rows counted, of which these are some or all.

    Settings that are 'auto', maps of columns and first planes are found on these. No row is
    learned.
    """
    with writing(estimator), restoring(estimator):
        check_parameters(estimator)
        rows = estimator.read_rows(_as_wide(X, n_columns), y, census.labels, None)
        visited = census.without_weight(estimator.class_weight)
        if estimator.algorithm.is_soft:
            rows = rows._replace(data=mean_weight_is_one(rows.data))
        found = estimator.algorithm.search(job_of(estimator, {}), rows)
        is_all = rows.data.labels.size == int(census.n_rows.sum())
        training = begin_by_sample(job_of(estimator, found), rows, visited, is_all)
        training.found = found
        estimator.become(training)


def completed(model: PackedModel, X: Any, y: Any) -> PackedModel:
    """The model after its last round, as `fit` leaves it."""
    estimator = unpacked(model)
    with writing(estimator):
        training = training_of(estimator)
        seen = _seen(estimator, X, y)
        members = weighty(np.arange(seen.labels.size, dtype=np.int32), seen.weights)
        estimator.family.complete(job_of(estimator, training.found), training, seen, members)
    return packed(estimator)


def count_passes(estimator: Any) -> int:
    """Return the number of passes over the rows, as it was set or found."""
    return int(job_of(estimator, training_of(estimator).found).settings.max_iter)


def writes_rows_out(estimator: Any) -> bool:
    """Return True if rows as its steps see them are others than those that it is given."""
    return bool(estimator.algorithm.columns.writes_rows_out)


class Task(NamedTuple):
    """Facts that a learner gets at the start of a round."""

    learner: int  # its number
    rows: Census  # of the partitions that it visits
    moment: Moment


WHOLE = Piece()


class Journey:
    """A learner in a round, where it is: its estimator learns on from row to row.

    What it starts from stays as it was. Between tasks a learner travels as `Along`.
    """

    def __init__(self, start: PackedModel | Along) -> None:
        self._estimator = unpacked(start.model if isinstance(start, Along) else start)
        self._training: PlaneTraining = training_of(self._estimator)
        self._job = job_of(self._estimator, self._training.found)
        if isinstance(start, Along):
            self._origins, self._began = start.origins, start.began
        else:
            self._origins = [np.arange(_count_live(one)) for one in self._training.models]
            self._began = [_began(one) for one in self._training.models]

    def visit(
        self,
        X: Any,
        y: Any,
        task: Task | None = None,
        piece: Piece = WHOLE,
    ) -> None:
        """Learn one more partition, or a piece of it.

        At the first, with its `task`, its order and its schedule become its own.
        """
        self.visit_seen(_seen(self._estimator, X, y), task, piece)

    def visit_seen(
        self,
        seen: TrainingData,
        task: Task | None = None,
        piece: Piece = WHOLE,
    ) -> None:
        """Learn rows that are `as_seen` already."""
        with writing(self._estimator):
            learner = 0 if task is None else task.learner
            if task is not None:
                rows = task.rows.without_weight(self._estimator.class_weight)
                join_round(self._job, self._training, rows, piece.n_pieces, task.moment)
            origins = pass_over_piece(self._job, self._training, seen, learner, piece)
        self._origins = [_composed(*pair) for pair in zip(self._origins, origins, strict=True)]

    def along(self) -> Along:
        """The learner, to go on elsewhere: not here, since it has the arrays of this one."""
        return Along(packed(self._estimator), self._origins, self._began)

    def shares(self) -> Shares:
        """Return the learner's share of the mixture at the end of the round."""
        models = self._training.models
        made = [
            share_of_model(self._job, one, origin, began.n_steps)
            for one, origin, began in zip(models, self._origins, self._began, strict=True)
        ]
        states = [one.generator.bit_generator.state for one in models]
        return Shares(made, [began.n_created for began in self._began], states)

    def alone(self, moment: Moment) -> PackedModel:
        """The model after a round that one learner made."""
        with writing(self._estimator):
            end_round(self._job, self._training, (), moment)
        return packed(self._estimator)


def as_seen(model: PackedModel, X: Any, y: Any) -> TrainingData:
    """Rows as the steps of a model see them, now and later: a sample has told all columns."""
    return _seen(unpacked(model), X, y)


def mixed_shares(first: Shares, second: Shares, alike: float) -> Shares:
    """The mixture of two."""
    _check_sound(first)
    _check_sound(second)
    parts = zip(first.shares, second.shares, first.n_created, strict=True)
    made = [mixed(a, b, n_created, alike) for a, b, n_created in parts]
    return first._replace(shares=made)


def next_model(before: PackedModel, reached: Shares, moment: Moment) -> PackedModel:
    """Return the model of the next round: mixed, and pruned as the algorithm prunes."""
    _check_sound(reached)
    estimator = unpacked(before)
    training: PlaneTraining = training_of(estimator)
    job = job_of(estimator, training.found)
    n_before = [model.n_steps for model in training.models]
    learned = zip(training.models, reached.shares, reached.generators, strict=True)
    with writing(estimator):
        for model, share, state in learned:
            model.generator.bit_generator.state = state
            if share.weight > 0:
                take_share(job, model, share)
        end_round(job, training, n_before, moment)
    return packed(estimator)


def mixed_model(
    before: PackedModel, first: Shares, second: Shares, alike: float, moment: Moment
) -> PackedModel:
    """The last mixture of a round, and what the next begins with: one task where two would be."""
    return next_model(before, mixed_shares(first, second, alike), moment)


def become_round(estimator: Any, model: PackedModel) -> None:
    """Let an estimator be what a round has reached, and nothing of what it was before."""
    reached = unpacked(model)
    parameters = reached.get_params(deep=False).keys()
    with writing(estimator):
        for name in vars(estimator).keys() - parameters:
            delattr(estimator, name)
        for name in vars(reached).keys() - parameters:
            setattr(estimator, name, vars(reached)[name])


def _began(model: PlaneModel) -> Began:
    return Began(model.n_steps, float(model.planes.counts[CREATED]))


def _count_live(model: PlaneModel) -> int:
    return int(np.count_nonzero(np.isfinite(model.planes.idle)))


def _composed(before: Array, since: Array) -> Array:
    """Origins of planes whose origins `since` lie among planes of the origins `before`."""
    composed: Array = np.append(before, NEW)[since]  # of a new one, the last
    return composed


def _seen(estimator: Any, X: Any, y: Any) -> TrainingData:
    """Rows as steps see them. All classes and columns must be known by now."""
    training: PlaneTraining = training_of(estimator)
    with writing(estimator):
        rows = estimator.read_rows(_as_wide(X, width_of(estimator)), y, None, training)
    known = training.labels
    if rows.labels.size > known.size:
        raise ValueError(f"y holds labels that are new: {rows.labels[known.size :].tolist()}")
    return training.columns.for_training(rows.data)


def _as_wide(X: Any, n_columns: int) -> Any:
    """Sparse rows of one file may use fewer columns than those of others."""
    return widened(X, n_columns) if sp.issparse(X) else X


def _check_sound(arrived: Shares) -> None:
    if not all(is_sound(share) for share in arrived.shares):
        raise ValueError(
            "a model that came from a worker is not sound: it holds numbers that are not finite, "
            "as of rows of huge values, or arrays that do not go together"
        )
