"""Chunks of rows, which every problem of a training of kernels visits.

One block of kernel values with all support rows serves every problem, and each problem then walks
through the chunk in exact sequence (`engine/support/support_set.py`). Where chunks are cut changes
nothing, not one bit.
"""

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.support.gram import padded
from polyplane.engine.support.support_set import (
    MISTAKES,
    NOT_THERE,
    PART,
    WANTED,
    SupportSet,
    Visit,
    active_slots,
    with_places,
)
from polyplane.engine.targets import LEFT_OUT
from polyplane.model.kernels.kernel_values import KernelRows, kernel_block, rows_at_hand
from polyplane.training.kernels.algorithm import KernelAlgorithm, Stretch
from polyplane.training.kernels.lines import bring_lines, make_room
from polyplane.training.kernels.state import KernelModel, KernelTraining, SupportRows
from polyplane.training.rows import TrainingData
from polyplane.training.work.interruption import interrupts_wait
from polyplane.training.work.progress import Report
from polyplane.training.work.side_by_side import for_each

__all__ = ["DEAD_SHARE", "learn_chunk"]

DEAD_SHARE = 1 / 8  # of support rows that no problem needs any longer, before they are removed


def learn_chunk(
    training: KernelTraining,
    data: TrainingData,
    part: Array,
    first_number: int,
    algorithm: KernelAlgorithm,
    n_threads: int,
    report: Report,
) -> None:
    """Every problem visits the rows of `part`, in that order."""
    labels = data.labels[part]
    chunk = rows_at_hand(data.rows, part, first_number + part.astype(np.int64), labels)
    weights = data.weights[part].astype(np.float64) if data.weights.size else np.ones(part.size)
    values = kernel_block(training.kernel, training.support, chunk, n_threads, True)
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
        _walk(training, model, visit, order, algorithm)

    mistakes = sum(int(model.held.counts[MISTAKES]) for model in training.models)
    with interrupts_wait():
        try:
            for_each(learn, len(training.models), n_threads, report)
        finally:
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
    training: KernelTraining,
    model: KernelModel,
    visit: Visit,
    order: Array,
    algorithm: KernelAlgorithm,
) -> None:
    """One problem visits its rows of a chunk."""
    coins, done = algorithm.coins(model, order.size), 0
    model.held.counts[[PART, WANTED]] = 0, NOT_THERE  # a step that was broken off is over
    while done < order.size:
        before, done = done, algorithm.walk(Stretch(training, model, visit, order, coins, done))
        model.n_steps += done - before
        if model.held.counts[WANTED] != NOT_THERE:
            bring_lines(training, model, visit, algorithm.foreseen(model, coins[done:]))
        elif done < order.size:
            make_room(training, model)


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
