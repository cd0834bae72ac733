"""Rounds of several learners, as functions of an algorithm with its settings and a training.

Each learner goes on from the same training over rows of its own; what they reach is mixed
(`engine/planes/mixing.py`). How trainings travel between them is not settled here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.mixing import NEW, Share, settled, share_of
from polyplane.engine.planes.planes import Planes, live_lanes
from polyplane.engine.targets import LEFT_OUT, rows_of
from polyplane.training.job import NewRows
from polyplane.training.planes.algorithm import PlaneJob
from polyplane.training.planes.models import meet_rows, new_training
from polyplane.training.planes.passes import count_passes, visit
from polyplane.training.planes.state import PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData, codes_of, weighty
from polyplane.training.work.progress import silence

__all__ = [
    "Census",
    "Moment",
    "Piece",
    "begin_by_sample",
    "end_round",
    "has_begun",
    "join_round",
    "pass_over_piece",
    "share_of_model",
    "take_share",
]


class Census(NamedTuple):
    """Number of visited rows of each class."""

    labels: Array
    n_rows: Array

    def without_weight(self, class_weight: object) -> "Census":
        """Return the census without classes of weight 0."""
        given = class_weight if isinstance(class_weight, dict) else {}
        has_weight = [given.get(label, 1.0) > 0 for label in self.labels.tolist()]
        return Census(self.labels[has_weight], self.n_rows[has_weight])


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
        """Return True if the training ends with this round."""
        return self.n_done + self.n_made == self.n_parts


class Piece(NamedTuple):
    """Part of the rows of a partition, in the order of a pass, that is visited."""

    place: int = 0
    n_pieces: int = 1


# ---- the beginning -----------------------------------------------------------------------


def begin_by_sample(job: PlaneJob, rows: NewRows, census: Census, is_all: bool) -> PlaneTraining:
    """Return a training of the rows counted, of which these are some or all; none is learned.

    Maps of columns and first planes are found on these.
    """
    training = new_training(job, rows)
    if not is_all:  # other rows may use any columns
        training.columns = training.columns.of_all_columns()
    training, _ = meet_rows(job, training, rows)
    for model in training.models:
        n_visited = _count_visited(training, model, census)
        job.algorithm.begin(model, job.settings, count_passes(job.settings, n_visited) * n_visited)
    return training


def has_begun(training: PlaneTraining) -> bool:
    """Return True if all models have met a row that they visit."""
    return all(model.planes.room_left.size > 0 for model in training.models)


def _count_visited(training: PlaneTraining, model: PlaneModel, census: Census) -> int:
    """Return the number of counted rows that a model visits."""
    _, codes = codes_of(census.labels, training.labels)
    return int(census.n_rows[model.codes[codes] != LEFT_OUT].sum())


# ---- a learner ---------------------------------------------------------------------------


def join_round(
    job: PlaneJob, training: PlaneTraining, census: Census, n_pieces: int, moment: Moment
) -> None:
    """Let steps fall as suits a learner that visits a piece of these rows in each round."""
    for model in training.models:
        n_rows = _count_visited(training, model, census) // n_pieces
        if n_rows > 0:
            job.algorithm.schedule(model, n_rows, moment.n_done, moment.n_parts)


def pass_over_piece(
    job: PlaneJob, training: PlaneTraining, seen: TrainingData, learner: int, piece: Piece
) -> list[Array]:
    """Make a pass over rows, or a piece of one, as a pass of `fit`; return origins of planes.

    Those are, for each model and each plane that lives, its place among those that lived before,
    or NEW. Each learner has an order of its own; that of the first is that of `fit`.
    """
    return [_pass_of(job, model, seen, learner, piece) for model in training.models]


def _pass_of(
    job: PlaneJob, model: PlaneModel, data: TrainingData, learner: int, piece: Piece
) -> Array:
    members = weighty(in_place(data.labels.size), data.weights)
    order = rows_of(members, model.targets(data))
    before = model.generator.bit_generator.state
    if job.settings.shuffle:
        if learner > 0:
            bits: np.random.PCG64 = model.generator.bit_generator  # type: ignore[assignment]
            model.generator = np.random.Generator(bits.jumped(learner))
        shuffle(order, model.generator)
    order = np.array_split(order, piece.n_pieces)[piece.place]
    if piece.place + 1 < piece.n_pieces:  # the next has the same order
        model.generator.bit_generator.state = before
    lanes = live_lanes(model.planes).astype(np.int32)  # `visit` follows them where they go
    visit(job, model, data, order, silence, lanes=lanes)
    return _origins_of(model.planes, lanes)


def _origins_of(planes: Planes, lanes: Array) -> Array:
    """Return the place of each live plane among `lanes`, or NEW."""
    origin = np.full(planes.owner.size + 1, NEW, np.int64)
    origin[lanes] = np.arange(lanes.size)  # of those that went, in the last place: -1
    return origin[live_lanes(planes)]


def share_of_model(job: PlaneJob, model: PlaneModel, origin: Array, n_before: int) -> Share:
    """Return what a learner's model brings to the mixture; it had made `n_before` steps."""
    n_steps = model.n_steps
    share = share_of(model.planes, origin, model.own.won, n_steps, n_steps - n_before)
    return _scaled(share, job.algorithm.scale(model))


# ---- the end of a round ------------------------------------------------------------------


def take_share(job: PlaneJob, model: PlaneModel, share: Share) -> None:
    """Let a model be what learners have reached together."""
    model.n_steps = max(round(share.steps), model.n_steps + 1)
    share = _scaled(share, 1 / job.algorithm.scale(model))
    model.planes = settled(model.planes, share, model.n_units)
    if model.own.won.size:  # of algorithms whose planes all stay, in their order
        won = np.zeros(model.planes.owner.size, np.int64)
        won[: share.won.size] = np.rint(share.won)
        model.own.settle(won, model.planes.owner)


def _scaled(share: Share, scale: float) -> Share:
    """A share of planes whose sums are multiplied; as it is, by 1."""
    return share if scale == 1 else share._replace(sums=share.sums * np.float32(scale))


def end_round(
    job: PlaneJob, training: PlaneTraining, n_before: Sequence[int], moment: Moment
) -> None:
    """Do what is done between rounds, and count passes.

    Models that were mixed have made steps since `n_before`, and no learner's schedule is theirs.
    """
    algorithm, settings = job
    training.n_passes += moment.n_passes
    for model, before in zip(training.models, n_before, strict=False):
        if model.n_steps > before:
            made = round((model.n_steps - before) / moment.n_made)
            algorithm.schedule(model, made, moment.n_done + moment.n_made, moment.n_parts)
            algorithm.between(model, settings)
            model.note()
    if moment.n_passes > 0 and not moment.is_last:
        for model in training.models:
            algorithm.end_round(model, settings)
