"""Kernel models in training: support rows that all problems share, and the walk over chunks.

Rows are met a chunk at a time: one block of kernel values with all support rows serves every
problem, and each problem then walks through the chunk in exact sequence
(`engine/support/support_set.py`). Support rows are copied out, so that a stream need not be kept;
memory grows with them alone. Where chunks are cut changes nothing, not one bit.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.support.gram import padded
from polyplane.engine.support.gram_cache import bring_line
from polyplane.engine.support.support_set import (
    MISTAKES,
    NOT_THERE,
    PART,
    WANTED,
    SupportSet,
    Visit,
    active_slots,
    with_places,
    with_room,
)
from polyplane.engine.targets import LEFT_OUT
from polyplane.estimator.fitting.progress import Report
from polyplane.estimator.fitting.resuming import SeenRows, interrupts_wait
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.input.known_classes import ClassesMet
from polyplane.estimator.input.validation import TrainingData
from polyplane.model.kernels.kernel_record import Expansion, KernelRecord
from polyplane.model.kernels.kernel_values import (
    Kernel,
    KernelRows,
    kernel_block,
    no_rows,
    rows_at_hand,
)
from polyplane.model.many_classes.decomposition import Problem

__all__ = [
    "KernelCourse", "KernelModel", "KernelTraining", "Walker", "bring_lines", "learn_chunk",
    "make_lines", "make_room", "no_visit", "one_by_one",
]  # fmt: skip

FIRST_ROOM = 64
LEAST_LINES = 8  # of the cache: a step needs two at once
LINES_AT_ONCE = 64  # brought together: the price of a few is hardly that of one
DEAD_SHARE = 1 / 8  # of support rows that no problem needs any longer, before they are removed


class Growing:
    """An array that is appended to without being copied each time."""

    def __init__(self, start: Array) -> None:
        self.room, self.size = start.copy(), start.size

    @property
    def array(self) -> Array:
        """What it holds."""
        return self.room[: self.size]

    def append(self, more: Array) -> None:
        """Add to its end."""
        size = self.size + more.size
        if size > self.room.size:
            longer = np.empty(max(size, 2 * self.size), self.room.dtype)
            longer[: self.size] = self.array
            self.room = longer
        self.room[self.size : size] = more
        self.size = size


class SupportRows:
    """Support rows, which grow."""

    def __init__(self, rows: KernelRows | None = None) -> None:
        rows = no_rows() if rows is None else rows
        entries = rows.entries
        self.values, self.columns = Growing(entries.values), Growing(entries.columns)
        self.starts, self.constant = Growing(entries.starts), entries.constant
        self.by_row = [Growing(array) for array in (rows.lengths, rows.numbers, rows.labels)]

    @property
    def rows(self) -> KernelRows:
        """The rows, in place."""
        entries = CsrRows(self.values.array, self.columns.array, self.starts.array, self.constant)
        return KernelRows(entries, *(grown.array for grown in self.by_row))

    def append(self, rows: KernelRows) -> None:
        """Add rows to the end."""
        entries = rows.entries
        self.starts.append(self.values.size + entries.starts[1:])
        self.values.append(entries.values)
        self.columns.append(entries.columns)
        of_rows = (rows.lengths, rows.numbers, rows.labels)
        for grown, more in zip(self.by_row, of_rows, strict=True):
            grown.append(more)


@dataclass
class KernelModel:
    """One problem in training."""

    problem: Problem
    held: SupportSet
    seed: int
    rule: Any = None
    n_steps: int = 0
    is_over: bool = False  # another pass would change nothing

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)


@dataclass
class KernelCourse:
    """How far a fit has come in the pass at work: enough to go on after an interruption."""

    rows_seen: SeenRows
    first_number: int  # of the rows of X
    mixed_by: Any = None  # the generator's state before it mixed the rows
    n_visited: int = 0


@dataclass
class KernelTraining(ClassesMet):
    """What `fit` and `partial_fit` leave behind and take up again."""

    kernel: Kernel
    cache_bytes: int
    is_dense: bool  # how users hold their rows
    models: list[KernelModel] = field(default_factory=list)
    pool: SupportRows = field(default_factory=SupportRows)
    places: dict[int, int] = field(default_factory=dict)  # of support rows, by number
    n_seen: int = 0  # rows of X handed in so far: their numbers
    n_learned: int = 0  # chunks since training was last taken up
    course: KernelCourse | None = None  # until a fit is finished

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def copied(self) -> "KernelTraining":
        """The same training, of which classes and problems can be added without a trace."""
        twin = copy.copy(self)
        twin.models, twin.n_learned = list(self.models), 0
        return twin

    @property
    def support(self) -> KernelRows:
        """The support rows of all problems."""
        return self.pool.rows

    def live(self) -> Array:
        """Places of support rows that a problem needs, in increasing order."""
        is_live = np.zeros(self.support.size, bool)
        for model in self.models:
            is_live[model.held.place[active_slots(model.held)]] = True
        return np.flatnonzero(is_live)

    def record(
        self, expand: Callable[[KernelModel], tuple[Array, float]], combine: str
    ) -> KernelRecord:
        """The classifier reached; `expand` gives a model's coefficients by slot.

        Its kernel has no offset: that is in the intercepts.
        """
        live = self.live()
        live = live[np.argsort(self.support.numbers[live])]
        decomposition = self.decomposition(combine)
        by_problem = {model.problem: model for model in self.models}
        place_of = np.zeros(self.support.size, np.int32)
        place_of[live] = np.arange(live.size)
        expansions = []
        for problem in decomposition.problems():
            model = by_problem[problem]
            coefs, intercept = expand(model)
            slots = np.sort(active_slots(model.held))
            expansions.append(Expansion(place_of[model.held.place[slots]], coefs[slots], intercept))
        return KernelRecord(
            self.kernel.without_offset(), self.support.chosen(live), expansions, decomposition
        )


@dataclass(frozen=True)
class Walker:
    """What a machine does with a chunk."""

    walk: Callable[[KernelModel, Visit, Array, Array, int], int]
    coins: Callable[[KernelModel, int], Array]
    foreseen: Callable[[KernelModel, Array], Array]  # slots whose lines coins ask for
    uses_cache: bool


def make_room(training: KernelTraining, model: KernelModel, uses_cache: bool) -> None:
    """More slots, and as many lines as the cache has room for."""
    _resize(training, model, padded(max(FIRST_ROOM, model.held.place.size * 3 // 2)), uses_cache)


def make_lines(training: KernelTraining, uses_cache: bool) -> None:
    """Lines for models that have none, as they come from a file."""
    for model in training.models:
        room = model.held.place.size
        if uses_cache and room > 0 and model.held.owner.size == 0:
            _resize(training, model, room, uses_cache)


def _resize(training: KernelTraining, model: KernelModel, room: int, uses_cache: bool) -> None:
    n_lines = _lines_in(training.cache_bytes // len(training.models), room) if uses_cache else 0
    model.held = with_room(model.held, room, n_lines)


def _lines_in(n_bytes: int, room: int) -> int:
    """Lines of so many slots for which there is room."""
    return max(LEAST_LINES, n_bytes // (4 * max(room, 1)))


def one_by_one(training: KernelTraining, uses_cache: bool) -> Iterator[KernelModel]:
    """Each model in turn, with the whole cache to itself; in the end all have their share again.

    Steps among all vectors of a model go round: with too few lines they would find none of them.
    """
    is_shared = uses_cache and len(training.models) > 1
    for model in training.models:
        if is_shared:
            for other in training.models:
                is_at_work = other is model
                room = other.held.place.size
                n_bytes = training.cache_bytes if is_at_work else 0
                other.held = with_room(other.held, room, _lines_in(n_bytes, room))
        yield model
    if is_shared:
        for model in training.models:
            _resize(training, model, model.held.place.size, uses_cache)


def bring_lines(
    training: KernelTraining, model: KernelModel, visit: Visit, foreseen: Array
) -> None:
    """Compute the line that is wanted, and with it those that are foreseen to be."""
    held = model.held
    wanted = int(held.counts[WANTED])
    held.counts[WANTED] = NOT_THERE
    others = np.unique(foreseen[held.line[foreseen] == NOT_THERE])
    most = min(LINES_AT_ONCE, held.owner.size // 2)
    slots = np.append(others[others != wanted][: most - 1], wanted)
    in_support = slots[held.place[slots] < visit.first_place]
    is_new = held.place >= visit.first_place
    own = np.unique(held.place[active_slots(held)])  # problems share rows, of which each has a few
    own = own[own < visit.first_place]
    support = training.support
    found = kernel_block(
        training.kernel, support.chosen(own), support.chosen(held.place[in_support]), 1, False
    )
    place = np.minimum(np.searchsorted(own, held.place), max(own.size - 1, 0))  # of idle ones: any
    line_of = dict(zip(in_support.tolist(), found, strict=True))
    for slot in slots.tolist():
        if slot in line_of:
            line = line_of[slot][place]
            line[is_new] = visit.values[held.place[is_new] - visit.first_place, held.place[slot]]
        else:
            line = visit.values[held.place[slot] - visit.first_place, held.place]
        bring_line(held, slot, line)


def no_visit(training: KernelTraining) -> Visit:
    """A chunk without rows, for steps among support vectors alone."""
    first_place, nothing = padded(training.support.size), np.empty(0, np.int32)
    block = np.empty((0, first_place), np.float32)
    return Visit(block, block, nothing, nothing, nothing, nothing, first_place)


def learn_chunk(
    training: KernelTraining,
    data: TrainingData,
    part: Array,
    first_number: int,
    walker: Walker,
    n_jobs: int,
    report: Report,
) -> None:
    """Every problem visits the rows of `part`, in that order."""
    labels = data.labels[part]
    chunk = rows_at_hand(data.rows, part, first_number + part.astype(np.int64), labels)
    weights = data.weights[part].astype(np.float64) if data.weights.size else np.ones(part.size)
    values = kernel_block(training.kernel, training.support, chunk, n_jobs, True)
    first_place = padded(training.support.size)
    diagonal = values[np.arange(part.size), first_place + np.arange(part.size)]
    known = np.array([training.places.get(number, NOT_THERE) for number in chunk.numbers.tolist()])

    def learn(k: int, _: Report) -> None:
        model = training.models[k]
        side = model.problem.codes(training.labels.size)[labels]
        order = np.flatnonzero(side != LEFT_OUT)
        if model.is_over or order.size == 0:
            return
        slot = _slots_at(model.held, known, training.support.size)
        visit = Visit(values, diagonal, side, weights, slot, chunk.numbers, first_place)
        _walk(training, model, visit, order, walker)

    mistakes = sum(int(model.held.counts[MISTAKES]) for model in training.models)
    with interrupts_wait():
        try:
            for_each(learn, len(training.models), n_jobs, report)
        finally:
            training.n_learned += 1
            _settle(training, chunk, first_place, known)
        if training.course is not None:
            training.course.n_visited += part.size
    mistakes = sum(int(model.held.counts[MISTAKES]) for model in training.models) - mistakes
    error = mistakes / part.size if len(training.models) == 1 else np.nan
    report(part.size, training.support.size, error)


def _slots_at(held: SupportSet, places: Array, n_places: int) -> Array:
    """The slot whose vector stands at each place, or NOT_THERE."""
    slot_at = np.full(n_places + 1, NOT_THERE, np.int32)  # the last is found by NOT_THERE itself
    slots = active_slots(held)
    slot_at[held.place[slots]] = slots
    return slot_at[places]


def _walk(
    training: KernelTraining, model: KernelModel, visit: Visit, order: Array, walker: Walker
) -> None:
    """One problem visits its rows of a chunk."""
    coins, done = walker.coins(model, order.size), 0
    model.held.counts[[PART, WANTED]] = 0, NOT_THERE  # a step that was broken off is over
    while done < order.size:
        before, done = done, walker.walk(model, visit, order, coins, done)
        model.n_steps += done - before
        if model.held.counts[WANTED] != NOT_THERE:
            bring_lines(training, model, visit, walker.foreseen(model, coins[done:]))
        elif done < order.size:
            make_room(training, model, walker.uses_cache)


def _settle(training: KernelTraining, chunk: KernelRows, first_place: int, known: Array) -> None:
    """Rows of the chunk that became support vectors join the support rows."""
    is_used = np.zeros(chunk.size, bool)
    for model in training.models:
        place = model.held.place[active_slots(model.held)]
        is_used[place[place >= first_place] - first_place] = True
    new = np.flatnonzero(is_used & (known == NOT_THERE))
    n_before = training.support.size
    place_of_chunk = known.copy()
    place_of_chunk[new] = n_before + np.arange(new.size)
    new_place = np.concatenate([np.arange(first_place), place_of_chunk])
    for model in training.models:
        with_places(model.held, new_place)
    if new.size:
        training.pool.append(chunk.chosen(new))
        numbers = chunk.numbers[new].tolist()
        training.places.update(zip(numbers, place_of_chunk[new].tolist(), strict=True))
    _compact(training)


def _compact(training: KernelTraining) -> None:
    """Drop support rows that no problem needs, once they are many."""
    size, live = training.support.size, training.live()
    if size - live.size <= DEAD_SHARE * size:
        return
    new_place = np.zeros(size, np.int64)
    new_place[live] = np.arange(live.size)
    for model in training.models:
        with_places(model.held, new_place)
    training.pool = SupportRows(training.support.chosen(live))
    training.places = {number: k for k, number in enumerate(training.support.numbers.tolist())}
