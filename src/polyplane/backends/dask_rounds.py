"""A round of several learners on a Dask cluster: who learns what, the tasks, and their mixture.

What a task does is in `estimator/planes/rounds/`; where it runs is settled here.
"""

import warnings
from collections.abc import Callable, Sequence
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
from polyplane.estimator.files.saving import PackedModel, save
from polyplane.estimator.fitting.resuming import interrupts_wait
from polyplane.estimator.input.tables import give_layout
from polyplane.estimator.online_classifier import give_evaluations
from polyplane.estimator.planes.rounds.travelling_models import (
    Along,
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

__all__ = ["ALIKE", "Learner", "after_round", "mixture_of", "one_round", "rounds_of_pass"]

ALIKE = 0.9  # cosine from which two new planes are one: less blurs planes, more leaves doubles


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


def one_round(
    client: Client,
    before: PackedModel,
    learners: Sequence[Learner],
    moment: Moment,
    alike: float,
    report: Callable[[int], None],
) -> PackedModel:
    """All learners over what is theirs in the round, and the mixture."""
    (model,) = client.scatter([before], broadcast=True, hash=False)
    holders = holders_of(client, [part.chunk for one in learners for part in one.parts])
    begun_here, n_rows, numbers = [model], {}, dict[Any, int]()
    try:
        ends = []
        for one in learners:
            along, task = model, Task(one.number, one.rows, moment)
            for k, part in enumerate(one.parts):
                told = part.chunk, part.number, task if k == 0 else None, one.piece
                here = near(holders[part.chunk.key])
                along = client.submit(_learn, along, *told, pure=False, **here)
                begun_here.append(along)
                n_rows[along] = part.n_rows // one.piece.n_pieces
                numbers |= {along.key: part.number, part.chunk.key: part.number}
            ends.append(along)
        last = _mixed(client, model, ends, moment, alike, begun_here)
        for along in as_completed(n_rows):
            report(n_rows[along])
        with faults_in_words(numbers):
            reached: PackedModel = last.result()
        return reached
    except BaseException:
        client.cancel(begun_here)
        raise


def _mixed(
    client: Client,
    model: Any,
    ends: list[Any],
    moment: Moment,
    alike: float,
    begun_here: list[Any],
) -> Any:
    """What all learners reached."""
    if len(ends) == 1:
        return client.submit(alone, ends[0], moment, pure=False)
    level = [client.submit(shares_of, end, model, pure=False) for end in ends]
    begun_here += level
    return mixture_of(client, model, level, moment, alike, begun_here)


def mixture_of(
    client: Client,
    model: Any,
    shares: list[Any],
    moment: Moment,
    alike: float,
    begun_here: list[Any],
) -> Any:
    """The next model of the shares of a round, by a tree of pairs: no task holds more than two."""
    level = shares
    while len(level) > 2:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [
            client.submit(mixed_shares, *pair, alike, pure=False) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
        begun_here += level
    return client.submit(mixed_model, model, *level, alike, moment, pure=False)


def _learn(
    along: Along | PackedModel, chunk: Chunk, number: int, task: Task | None, piece: Piece
) -> Along:
    start = set_out(along) if isinstance(along, PackedModel) else along
    try:
        return learned(start, chunk.X, chunk.y, task, piece)
    except (TypeError, ValueError) as error:
        raise unusable(number, error) from error


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
