"""A round of several learners on a Dask cluster: who learns what, the tasks, and their mixture.

What a task does is in `estimator/planes/rounds/`; where it runs is settled here. A fit has one
model in a round, a search several: each task does its part for all of them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyplane.backends.dask_needed import Client, as_completed
from polyplane.backends.dask_rows import (
    LoadedRows,
    Part,
    faults_in_words,
    holders_of,
    near,
    unusable,
)
from polyplane.data.chunks import Chunk
from polyplane.data.table.layout import Layout
from polyplane.engine.planes.pack import NO_PART
from polyplane.engine.planes.planes import Array
from polyplane.estimator.files.saving import PackedModel, save
from polyplane.estimator.fitting.resuming import interrupts_wait
from polyplane.estimator.input.tables import give_layout
from polyplane.estimator.online_classifier import give_evaluations
from polyplane.estimator.planes.rounds.travelling_models import (
    Census,
    Moment,
    Piece,
    Task,
    alone,
    become_round,
    learned,
    mixed_model,
    mixed_shares,
    set_out,
    shares_of,
)
from polyplane.tuning.held_out import parts_of

__all__ = [
    "ALIKE", "MIXES", "Bundle", "HeldOut", "Learner", "after_round", "alone_each", "mixture_of",
    "one_pass", "rounds_of_pass",
]  # fmt: skip

ALIKE = 0.9  # cosine from which two new planes are one: less blurs planes, more leaves doubles
MIXES = 4  # in a pass: two learners lose a little less than by mixing once (docs/dask.md)


class Learner(NamedTuple):
    """What one learner does in a round."""

    number: int
    parts: Sequence[Part]
    rows: Census
    piece: Piece  # of each of the parts


def rounds_of_pass(rows: LoadedRows, n_learners: int, n_mixes: int) -> list[list[Learner]]:
    """Who learns what in each round of a pass: all partitions in turn, or pieces of few."""
    groups = _shared_out(rows, n_learners)
    n_rounds = n_mixes if len(groups) > 1 else 1  # one learner has nothing to mix
    rounds: list[list[Learner]] = [[] for _ in range(n_rounds)]
    for number, group in enumerate(groups):
        n_pieces = max(1, n_rounds // len(group))
        units = [([k], Piece(j, n_pieces)) for k in group for j in range(n_pieces)]
        if n_pieces == 1:
            blocks = np.array_split(np.array(group), n_rounds)
            units = [(block.tolist(), Piece()) for block in blocks if block.size]
        for k, (places, piece) in enumerate(units):
            parts = [rows.part(place) for place in places]
            rounds[k].append(Learner(number, parts, rows.census(places), piece))
    return [learners for learners in rounds if learners]


def _shared_out(rows: LoadedRows, n_learners: int) -> list[list[int]]:
    """The partitions of each learner: neighbours, which are mostly on one worker."""
    n_groups = min(n_learners, len(rows.chunks))
    groups = np.array_split(np.arange(len(rows.chunks)), n_groups)
    n_classes = rows.classes.size
    for group in groups:
        found = np.unique(np.concatenate([rows.surveys[k].labels for k in group]))
        if found.size == 1 < n_classes:
            numbers = f"{rows.numbers[group[0]]} to {rows.numbers[group[-1]]}"
            warnings.warn(
                f"Partitions {numbers}, which one learner learns, hold only the class "
                f"{found.tolist()[0]!r}: mix rows first, by dask_cluster.mix_rows, or give fewer "
                "learners.",
                stacklevel=3,
            )
            break
    return [group.tolist() for group in groups]


# ---- what travels ------------------------------------------------------------------------


class Bundle:
    """What a task hands on of all models of a round: models, learners on their way, or shares.

    Dask decides by the bytes of a result where tasks run, and counts traffic by them. Of tuples and
    dicts it weighs ten parts at random: for the same model that was a tenth of the truth, or twice.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _count_bytes(self.parts)


def _count_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_count_bytes(one) for one in value.values())
    if isinstance(value, Sequence):
        return sum(_count_bytes(one) for one in value)
    return 8  # a number


class HeldOut(NamedTuple):
    """Rows that single models of a round do not visit: one part of each partition."""

    n_parts: int
    seed: int
    left_out: Sequence[int]  # by each model: its part, or NO_PART

    def parts(self, y: Array, number: int) -> Array:
        """The part of each row of a partition; of the first as if it were all rows."""
        return parts_of(y, self.n_parts, [self.seed, number] if number else self.seed)


# ---- a round -----------------------------------------------------------------------------


def one_pass(
    client: Client,
    models: Sequence[PackedModel],
    rounds: Sequence[Sequence[Learner]],
    passes: tuple[int, int],
    alike: float,
    report: Callable[[int], None],
    held_out: HeldOut | None = None,
) -> Sequence[PackedModel]:
    """The rounds of a pass over all rows; `passes` were made before it, and are made in all."""
    n_done, n_passes = passes
    for k, learners in enumerate(rounds):
        ends_pass = k + 1 == len(rounds)
        moment = Moment(n_done * len(rounds) + k, n_passes * len(rounds), ends_pass)
        models = _one_round(client, models, learners, moment, alike, report, held_out)
    return models


def _one_round(
    client: Client,
    before: Sequence[PackedModel],
    learners: Sequence[Learner],
    moment: Moment,
    alike: float,
    report: Callable[[int], None],
    held_out: HeldOut | None,
) -> Sequence[PackedModel]:
    """All learners over what is theirs in the round, and the mixture."""
    (models,) = client.scatter([Bundle(before)], broadcast=True, hash=False)
    holders = holders_of(client, [part.chunk for one in learners for part in one.parts])
    begun_here, n_rows, numbers = [models], {}, dict[Any, int]()
    try:
        ends = []
        for one in learners:
            along, task = models, Task(one.number, one.rows, moment)
            for k, part in enumerate(one.parts):
                told = part.chunk, part.number, task if k == 0 else None, one.piece, held_out
                here = near(holders[part.chunk.key])
                along = client.submit(_learn, along, *told, pure=False, **here)
                begun_here.append(along)
                n_rows[along] = part.n_rows // one.piece.n_pieces
                numbers |= {along.key: part.number, part.chunk.key: part.number}
            ends.append(along)
        last = _mixed(client, models, ends, moment, alike, begun_here)
        for along in as_completed(n_rows):
            report(n_rows[along])
        with faults_in_words(numbers):
            reached: Bundle = last.result()
        return reached.parts
    except BaseException:
        client.cancel(begun_here)
        raise


def _mixed(
    client: Client,
    models: Any,
    ends: list[Any],
    moment: Moment,
    alike: float,
    begun_here: list[Any],
) -> Any:
    """What all learners reached."""
    if len(ends) == 1:
        return client.submit(alone_each, ends[0], moment, pure=False)
    level = [client.submit(_shares_each, end, models, pure=False) for end in ends]
    begun_here += level
    return mixture_of(client, models, level, moment, alike, begun_here)


def mixture_of(
    client: Client,
    models: Any,
    shares: list[Any],
    moment: Moment,
    alike: float,
    begun_here: list[Any],
) -> Any:
    """The next models of the shares of a round, by a tree of pairs: no task holds more than two."""
    level = shares
    while len(level) > 2:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [
            client.submit(_mixed_each, *pair, alike, pure=False) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
        begun_here += level
    return client.submit(_next_each, models, *level, alike, moment, pure=False)


# ---- tasks -------------------------------------------------------------------------------


def _learn(
    before: Bundle,
    chunk: Chunk,
    number: int,
    task: Task | None,
    piece: Piece,
    held_out: HeldOut | None,
) -> Bundle:
    start = [set_out(one) if isinstance(one, PackedModel) else one for one in before.parts]
    visited: list[Array | None] = [None] * len(start)
    if held_out is not None:
        parts = held_out.parts(chunk.y, number)
        visited = [None if k == NO_PART else parts != k for k in held_out.left_out]
    try:
        return Bundle(
            [
                learned(along, chunk.X, chunk.y, task, piece, own)
                for along, own in zip(start, visited, strict=True)
            ]
        )
    except (TypeError, ValueError) as error:
        raise unusable(number, error) from error


def alone_each(ends: Bundle, moment: Moment) -> Bundle:
    """The models after a round that one learner made."""
    return Bundle([alone(end, moment) for end in ends.parts])


def _shares_each(ends: Bundle, models: Bundle) -> Bundle:
    return Bundle([shares_of(*pair) for pair in zip(ends.parts, models.parts, strict=True)])


def _mixed_each(first: Bundle, second: Bundle, alike: float) -> Bundle:
    pairs = zip(first.parts, second.parts, strict=True)
    return Bundle([mixed_shares(*pair, alike) for pair in pairs])


def _next_each(
    models: Bundle, first: Bundle, second: Bundle, alike: float, moment: Moment
) -> Bundle:
    each = zip(models.parts, first.parts, second.parts, strict=True)
    return Bundle([mixed_model(*one, alike, moment) for one in each])


def after_round(
    estimator: Any,
    layout: Layout | None,
    checkpoint: Any,
    callback: Callable[[Any], Any] | None,
    model: PackedModel,
    measures: dict[str, dict[str, list[float]]] | None = None,
) -> None:
    """Let the estimator be what a round has reached; that is never done by halves."""
    with interrupts_wait():
        become_round(estimator, model)
        give_evaluations(estimator, measures or {})
        give_layout(estimator, layout)
        if checkpoint is not None:
            save(estimator, Path(checkpoint))
    if callback is not None:
        callback(estimator)
