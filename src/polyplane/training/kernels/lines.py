"""Slots of support vectors, and lines of kernel values among them that are kept."""

from collections.abc import Iterator

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.support.gram import padded
from polyplane.engine.support.gram_cache import bring_line
from polyplane.engine.support.support_set import NOT_THERE, WANTED, Visit, active_slots, with_room
from polyplane.model.kernels.kernel_values import kernel_block
from polyplane.training.kernels.state import KernelModel, KernelTraining

__all__ = ["bring_lines", "make_lines", "make_room", "no_visit", "one_by_one"]

FIRST_ROOM = 64
LEAST_LINES = 8  # of the cache: a step needs two at once
LINES_AT_ONCE = 64  # brought together: the price of a few is hardly that of one


def make_room(training: KernelTraining, model: KernelModel) -> None:
    """More slots, and as many lines as the cache has room for."""
    _resize(training, model, padded(max(FIRST_ROOM, model.held.place.size * 3 // 2)))


def make_lines(training: KernelTraining) -> None:
    """Lines for models that have none, as they come from a file."""
    for model in training.models:
        room = model.held.place.size
        if training.cache_bytes > 0 and room > 0 and model.held.owner.size == 0:
            _resize(training, model, room)


def _resize(training: KernelTraining, model: KernelModel, room: int) -> None:
    n_bytes = training.cache_bytes
    n_lines = _lines_in(n_bytes // len(training.models), room) if n_bytes > 0 else 0
    model.held = with_room(model.held, room, n_lines)


def _lines_in(n_bytes: int, room: int) -> int:
    """Lines of so many slots for which there is room."""
    return max(LEAST_LINES, n_bytes // (4 * max(room, 1)))


def one_by_one(training: KernelTraining) -> Iterator[KernelModel]:
    """Each model in turn, with the whole cache to itself; in the end all have their share again.

    Steps among all vectors of a model go round: with too few lines they would find none of them.
    """
    is_shared = training.cache_bytes > 0 and len(training.models) > 1
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
            _resize(training, model, model.held.place.size)


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
