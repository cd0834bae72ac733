"""A round of several learners on a Dask cluster: who learns what, the tasks, and their mixture.

What a task does is in `training/planes/rounds.py`; where it runs is settled here.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.backends.dask_needed import Client, as_completed, wait
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
from polyplane.estimator.input.tables import give_layout
from polyplane.estimator.learners.travelling_models import (
    Census,
    Journey,
    Moment,
    Piece,
    Task,
    as_seen,
    become_round,
    mixed_model,
    mixed_shares,
    writes_rows_out,
)
from polyplane.estimator.online_classifier import give_evaluations
from polyplane.training.rows import TrainingData
from polyplane.training.work.interruption import interrupts_wait

__all__ = [
    "MIN_COSINE_OF_ONE_PLANE", "MIXTURES_PER_PASS", "Learner", "Parcel", "Plan", "after_round",
    "check_mixes", "mixture_of", "one_stretch", "plan_of", "rows_as_seen", "together",
]  # fmt: skip

# From this cosine on two new planes become one: less blurs planes, more leaves doubles.
MIN_COSINE_OF_ONE_PLANE = 0.9
# Two learners lose a little less than by mixing once a pass (docs/dask.md).
MIXTURES_PER_PASS = 4
MAX_ROUNDS = 20  # of a training: more win nothing, and each costs as much (docs/dask.md)
MAX_ROWS_RATIO = 2  # rows of a learner beside those of another, where they learn what is near
LEG_BYTES = 1 << 27  # rows that a task may hold: they need not all be in memory at once


class Learner(NamedTuple):
    """One learner's share of the work of a round."""

    number: int
    parts: Sequence[Part]
    rows: Census
    piece: Piece  # of each of the parts


class Plan(NamedTuple):
    """Who learns what between one mixture and the next."""

    rounds: list[list[Learner]]  # of a pass; or a single one, of several passes
    n_at_once: int  # passes in a round, where these are several

    def stretches(self, n_done: int, n_passes: int) -> Iterator[tuple[int, int]]:
        """Passes before, and after, all that is left to make: one pass or round at a time."""
        for first in range(n_done, n_passes, self.n_at_once):
            yield first, min(first + self.n_at_once, n_passes)


def plan_of(rows: LoadedRows, learners: int | None, mixes: float | None, n_passes: int) -> Plan:
    """Rounds of passes of which there are so many in all."""
    groups = _shared_out(rows, learners)
    mixes = mixes or _mixes_for(n_passes)
    if len(groups) == 1:  # nothing is mixed
        mixes = 1
    n_at_once = 1 if mixes >= 1 else round(1 / mixes)
    return Plan(_rounds_of_pass(rows, groups, max(1, int(mixes))), n_at_once)


def _mixes_for(n_passes: int) -> float:
    """Return the number of mixtures per pass for a number of passes."""
    if n_passes > MAX_ROUNDS:
        return 1 / math.ceil(n_passes / MAX_ROUNDS)
    return min(MIXTURES_PER_PASS, MAX_ROUNDS // n_passes)


def check_mixes(mixes: float | None) -> None:
    """A whole number, or one by a whole number."""
    if mixes is not None and not (mixes > 0 and max(mixes, 1 / mixes) % 1 < 1e-9):
        raise ValueError(
            f"mixes={mixes!r} must be a whole number of at least 1, or less than 1 to mix in every "
            "so-many-th pass: 1/2 in every second."
        )


def _rounds_of_pass(
    rows: LoadedRows, groups: Sequence[Sequence[int]], n_rounds: int
) -> list[list[Learner]]:
    """Who learns what in each round of a pass: all partitions in turn, or pieces of few."""
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


def _shared_out(rows: LoadedRows, learners: int | None) -> list[list[int]]:
    """The partitions of each learner."""
    groups = _neighbours(rows, learners)
    for group in groups:
        found = np.unique(np.concatenate([rows.surveys[k].labels for k in group]))
        if found.size == 1 < rows.classes.size:
            numbers = [rows.numbers[k] for k in group]
            is_row = len(numbers) == numbers[-1] - numbers[0] + 1
            named = f"{numbers[0]} to {numbers[-1]}" if is_row else ", ".join(map(str, numbers))
            warnings.warn(
                f"Partitions {named}, which one learner learns, hold only the class "
                f"{found.tolist()[0]!r}: mix rows first, by dask_cluster.mix_rows, or give fewer "
                "learners.",
                stacklevel=3,
            )
            break
    return groups


def _neighbours(rows: LoadedRows, learners: int | None) -> list[list[int]]:
    """By numbers; or by where partitions are, where these were put down otherwise.

    So it is only where nobody has said how many learners there are: who does wants the same result
    wherever rows are.
    """
    threads = rows.client.nthreads()
    n_learners = learners or max(1, sum(threads.values()))
    n_groups = min(n_learners, len(rows.chunks))
    split = np.array_split(np.arange(len(rows.chunks)), n_groups)
    by_number: list[list[int]] = [group.tolist() for group in split]
    holders = holders_of(rows.client, rows.chunks)
    homes = [min(holders[chunk.key], default=None) for chunk in rows.chunks]
    are_together = all(len({homes[k] for k in group}) == 1 for group in by_number)
    if learners is not None or are_together or None in homes:
        return by_number
    by_place: list[list[int]] = []
    for worker, n_threads in threads.items():
        own = [k for k, home in enumerate(homes) if home == worker]
        by_place += [group.tolist() for group in np.array_split(own, n_threads) if group.size]
    n_rows = [sum(rows.surveys[k].n_rows for k in group) for group in by_place]
    is_even = len(by_place) == n_groups and max(n_rows) <= MAX_ROWS_RATIO * min(n_rows)
    return sorted(by_place) if is_even else by_number


# ---- what travels ------------------------------------------------------------------------


class Parcel:
    """Container of a task's result: a model, a learner on its way, its share, or rows.

    Dask decides by the bytes of a result where tasks run, and counts traffic by them. For tuples
    and dicts it samples ten parts at random: for one model that was a tenth of the truth, or twice.
    """

    def __init__(self, content: Any) -> None:
        self.content = content

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _count_bytes(self.content)


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


class SeenRows(Parcel):
    """A partition as the steps of a training see it."""

    def __init__(self, y: Array, data: TrainingData) -> None:
        super().__init__((y, data))

    @property
    def y(self) -> Array:
        """Its labels."""
        labels: Array = self.content[0]
        return labels

    @property
    def data(self) -> TrainingData:
        """Its rows."""
        seen: TrainingData = self.content[1]
        return seen


def rows_as_seen(rows: LoadedRows, estimator: Any, model: PackedModel) -> LoadedRows:
    """Return the partitions as steps see them, which else are made again in every pass.

    What is kept is a few times as large: only small partitions are worth it, and visited often. A
    lost one is made again.
    """
    n_bytes = sum(one.n_bytes for one in rows.surveys)
    n_workers = max(1, len(rows.client.nthreads()))
    if not writes_rows_out(estimator) or n_bytes > LEG_BYTES * n_workers:
        return rows
    (shared,) = rows.client.scatter([Parcel(model)], broadcast=True, hash=False)
    holders = holders_of(rows.client, rows.chunks)
    seen = [
        rows.client.submit(_as_seen, shared, chunk, number, pure=False, **near(holders[chunk.key]))
        for chunk, number in zip(rows.chunks, rows.numbers, strict=True)
    ]
    wait(seen)  # where they are is asked next
    return rows._replace(chunks=seen)


# ---- a round -----------------------------------------------------------------------------


def one_stretch(
    client: Client,
    model: PackedModel,
    plan: Plan,
    stretch: tuple[int, int],
    n_passes: int,
    alike: float,
    report: Callable[[int], None],
) -> PackedModel:
    """The rounds of a pass over all rows, or the one of several, of so many in all."""
    n_done, n_after = stretch
    n_rounds = len(plan.rounds)
    for k, learners in enumerate(plan.rounds):
        n_ended = n_after - n_done if k + 1 == n_rounds else 0
        moment = Moment(n_done * n_rounds + k, n_passes * n_rounds, n_ended)
        model = _one_round(client, model, learners, moment, alike, report)
    return model


def _one_round(
    client: Client,
    before: PackedModel,
    learners: Sequence[Learner],
    moment: Moment,
    alike: float,
    report: Callable[[int], None],
) -> PackedModel:
    """All learners over what is theirs in the round, and the mixture."""
    (model,) = client.scatter([Parcel(before)], broadcast=True, hash=False)
    holders = holders_of(client, [part.chunk for one in learners for part in one.parts])
    begun_here, n_rows, numbers = [model], {}, dict[Any, int]()
    try:
        ends = []
        for one in learners:
            along = model
            for leg in _legs(one, holders, moment, len(learners) == 1):
                chunks = [part.chunk for part in leg.parts]
                here, told = near(holders[chunks[0].key]), leg.told()
                along = client.submit(_learn, along, chunks, told, pure=False, **here)
                begun_here.append(along)
                n_rows[along] = leg.count_rows()
                numbers |= {along.key: leg.parts[0].number}
                numbers |= {part.chunk.key: part.number for part in leg.parts}
            ends.append(along)
        last = ends[0]
        if len(ends) > 1:
            last = mixture_of(client, model, ends, moment, alike, begun_here)
        for along in as_completed(n_rows):
            report(n_rows[along])
        with faults_in_words(numbers):
            reached: PackedModel = last.result().content
        return reached
    except BaseException:
        client.cancel(begun_here)
        raise


def together(parts: Iterable[Part], holders: Mapping[Any, Any]) -> list[list[Part]]:
    """Neighbours that one task may have at hand: on one worker, and not too large for it."""
    blocks: list[list[Part]] = []
    for part in parts:
        block = blocks[-1] if blocks else []
        n_bytes = part.n_bytes + sum(other.n_bytes for other in block)
        here = {tuple(holders[other.chunk.key]) for other in [*block, part]}
        if not block or len(here) > 1 or here == {()} or n_bytes > LEG_BYTES:
            blocks.append([])
        blocks[-1].append(part)
    return blocks


class Leg(NamedTuple):
    """Partitions, on one worker, that a learner visits in one task."""

    parts: Sequence[Part]
    piece: Piece
    n_times: int  # one after the other, and again
    task: Task | None  # at the first of a round
    end: Callable[[Journey], Any]  # what is handed on

    def told(self) -> "Leg":
        """Return the leg without the rows, which Dask hands to a task by itself."""
        return self._replace(parts=[part._replace(chunk=None) for part in self.parts])

    def count_rows(self) -> int:
        """Return the number of rows that are visited."""
        n_rows = sum(part.n_rows for part in self.parts)
        return n_rows * self.n_times // self.piece.n_pieces


def _legs(
    learner: Learner, holders: Mapping[Any, Any], moment: Moment, is_alone: bool
) -> Iterator[Leg]:
    """A learner's way through a round; it makes several passes in one task where it can."""
    blocks = together(learner.parts, holders)
    n_times, n_rounds = (moment.n_made, 1) if len(blocks) == 1 else (1, moment.n_made)
    way = blocks * n_rounds
    reached = partial(Journey.alone, moment=moment) if is_alone else Journey.shares
    for k, parts in enumerate(way):
        task = Task(learner.number, learner.rows, moment) if k == 0 else None
        end = reached if k + 1 == len(way) else Journey.along
        yield Leg(parts, learner.piece, n_times, task, end)


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
            client.submit(_mixed, *pair, alike, pure=False) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
        begun_here += level
    return client.submit(_next, model, *level, alike, moment, pure=False)


# ---- tasks -------------------------------------------------------------------------------


def _learn(before: Parcel, chunks: Sequence[Any], leg: Leg) -> Parcel:
    """The model after one leg of a learner; chunks are rows as they came, or as they are seen."""
    journey, task = Journey(before.content), leg.task
    for _ in range(leg.n_times):
        for chunk, part in zip(chunks, leg.parts, strict=True):
            try:
                if isinstance(chunk, SeenRows):
                    journey.visit_seen(chunk.data, task, leg.piece)
                else:
                    journey.visit(chunk.X, chunk.y, task, leg.piece)
            except (TypeError, ValueError) as error:
                raise unusable(part.number, error) from error
            task = None
    return Parcel(leg.end(journey))


def _as_seen(model: Parcel, chunk: Chunk, number: int) -> SeenRows:
    try:
        return SeenRows(chunk.y, as_seen(model.content, chunk.X, chunk.y))
    except (TypeError, ValueError) as error:
        raise unusable(number, error) from error


def _mixed(first: Parcel, second: Parcel, alike: float) -> Parcel:
    return Parcel(mixed_shares(first.content, second.content, alike))


def _next(model: Parcel, first: Parcel, second: Parcel, alike: float, moment: Moment) -> Parcel:
    return Parcel(mixed_model(model.content, first.content, second.content, alike, moment))


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
