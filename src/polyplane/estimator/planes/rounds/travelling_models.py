"""A round of parameter mixing, of all models of a machine: pure functions of what can travel.

In a round several learners go on from the same model, each over partitions of its own, one after
the other; `engine/planes/mixing.py` makes one of what they reach. Every function here, and every
`Journey`, leaves what it is given as it was and gives the same bits for the same arguments, so that
whoever runs them may run them again, elsewhere. A learner alone is the machine as it is: nothing is
mixed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import widened
from polyplane.engine.planes.assignment_by_entropy import tally_of
from polyplane.engine.planes.mixing import NEW, Share, is_sound, mixed, settled, share_of
from polyplane.engine.planes.planes import CREATED
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.thread_safety import writing
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.online_classifier import training_of
from polyplane.estimator.planes.rounds.learner import (
    Census,
    Moment,
    Piece,
    begin_by_sample,
    complete_by_sample,
    count_passes,
    end_round,
    has_begun,
    join_round,
    meet_rows,
    pass_over,
    scale_of,
    seen_by,
    writes_rows_out,
)
from polyplane.estimator.planes.training import PlaneModel

__all__ = [
    "Along", "Census", "Journey", "Moment", "Piece", "Shares", "Task", "as_seen", "become_round",
    "begun", "begun_by_sample", "completed", "count_passes", "has_begun", "mixed_model",
    "mixed_shares", "next_model", "writes_rows_out",
]  # fmt: skip

NOTHING_WON = np.empty(0, np.int64)


class Began(NamedTuple):
    """What is remembered of a model before the round."""

    n_steps: int
    n_created: float  # planes


class Along(NamedTuple):
    """A learner on its way through a round."""

    model: PackedModel
    origins: Sequence[Array]  # of each model's planes, among those that the round began with
    began: Sequence[Began]  # each model


class Shares(NamedTuple):
    """What one learner, or several together, reached in a round."""

    shares: Sequence[Share]  # of the models
    n_created: Sequence[float]  # planes of each model, before the round
    generators: Sequence[Any]  # their states, of the first learner


def begun(machine: Any, X: Any, y: Any, classes: Array, n_columns: int) -> bool:
    """Let a machine meet rows before the first round; return whether all its models have begun."""
    return meet_rows(machine, _as_wide(X, n_columns), y, classes)


def begun_by_sample(machine: Any, X: Any, y: Any, n_columns: int, census: Census) -> None:
    """Let a machine begin with what some of all rows tell: settings, layout, columns, planes."""
    begin_by_sample(machine, _as_wide(X, n_columns), y, census)


def completed(model: PackedModel, X: Any, y: Any) -> PackedModel:
    """The model after its last round, as `fit` leaves it."""
    machine = unpacked(model)
    complete_by_sample(machine, _as_wide(X, width_of(machine)), y)
    return packed(machine)


class Task(NamedTuple):
    """What a learner knows of itself when it sets out."""

    learner: int  # its number
    rows: Census  # of the partitions that it visits
    moment: Moment


WHOLE = Piece()


class Journey:
    """A learner in a round, where it is: its machine is open, and goes on from row to row.

    What it starts from stays as it was. Between tasks a learner travels as `Along`.
    """

    def __init__(self, start: PackedModel | Along) -> None:
        self._machine = unpacked(start.model if isinstance(start, Along) else start)
        self._models: Sequence[PlaneModel] = training_of(self._machine).models
        if isinstance(start, Along):
            self._origins, self._began = start.origins, start.began
        else:
            self._origins = [np.arange(_count_live(one)) for one in self._models]
            self._began = [_began(one) for one in self._models]

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
        self.visit_seen(_seen(self._machine, X, y), task, piece)

    def visit_seen(
        self,
        seen: TrainingData,
        task: Task | None = None,
        piece: Piece = WHOLE,
    ) -> None:
        """The same of rows that are `as_seen` already."""
        if task is not None:
            join_round(self._machine, task.rows, piece.n_pieces, task.moment)
        learner = 0 if task is None else task.learner
        origins = pass_over(self._machine, seen, learner, piece)
        self._origins = [_composed(*pair) for pair in zip(self._origins, origins, strict=True)]

    def along(self) -> Along:
        """The learner, to go on elsewhere: not here, since it has the arrays of this one."""
        return Along(packed(self._machine), self._origins, self._began)

    def shares(self) -> Shares:
        """What it brings to the mixture at the end of the round."""
        made = [
            _scaled(
                share_of(one.planes, origin, _won(one), one.n_steps, one.n_steps - began.n_steps),
                scale_of(self._machine, one),
            )
            for one, origin, began in zip(self._models, self._origins, self._began, strict=True)
        ]
        states = [one.generator.bit_generator.state for one in self._models]
        return Shares(made, [began.n_created for began in self._began], states)

    def alone(self, moment: Moment) -> PackedModel:
        """The model after a round that one learner made."""
        with writing(self._machine):
            end_round(self._machine, (), moment)
        return packed(self._machine)


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
    """What the next round begins with: mixed, and pruned as the machine prunes."""
    _check_sound(reached)
    machine = unpacked(before)
    models = training_of(machine).models
    n_before = [model.n_steps for model in models]
    with writing(machine):
        for model, share, state in zip(models, reached.shares, reached.generators, strict=True):
            model.generator.bit_generator.state = state
            if share.weight > 0:
                _take(machine, model, share)
        end_round(machine, n_before, moment)
    return packed(machine)


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


def _scaled(share: Share, scale: float) -> Share:
    """A share of planes whose sums are multiplied; as it is, by 1."""
    return share if scale == 1 else share._replace(sums=share.sums * np.float32(scale))


def _take(machine: Any, model: PlaneModel, share: Share) -> None:
    model.n_steps = max(round(share.steps), model.n_steps + 1)
    n_units = getattr(model.own, "n_units", 1)
    share = _scaled(share, 1 / scale_of(machine, model))
    model.planes = settled(model.planes, share, n_units)
    if _won(model).size:  # of machines whose planes all stay, in their order
        won = np.zeros(model.planes.owner.size, np.int64)
        won[: share.won.size] = np.rint(share.won)
        model.own.tally = tally_of(won, model.planes.owner)


def _won(model: PlaneModel) -> Array:
    """Rows that each plane has won, by lane, where a machine counts them."""
    tally = getattr(model.own, "tally", None)
    return NOTHING_WON if tally is None else tally.of_plane


def _began(model: PlaneModel) -> Began:
    return Began(model.n_steps, float(model.planes.counts[CREATED]))


def _count_live(model: PlaneModel) -> int:
    return int(np.count_nonzero(np.isfinite(model.planes.idle)))


def _composed(before: Array, since: Array) -> Array:
    """Origins of planes whose origins `since` lie among planes of the origins `before`."""
    composed: Array = np.append(before, NEW)[since]  # of a new one, the last
    return composed


def _seen(machine: Any, X: Any, y: Any) -> TrainingData:
    return seen_by(machine, _as_wide(X, width_of(machine)), y)


def _as_wide(X: Any, n_columns: int) -> Any:
    """Sparse rows of one file may use fewer columns than those of others."""
    return widened(X, n_columns) if sp.issparse(X) else X


def _check_sound(arrived: Shares) -> None:
    if not all(is_sound(share) for share in arrived.shares):
        raise ValueError(
            "a model that came from a worker is not sound: it holds numbers that are not finite, "
            "as of rows of huge values, or arrays that do not go together"
        )
