"""The support vectors of one problem, and the operations that online kernel algorithms are made of.

A vector lives in a slot. Its coefficient, its side (class 1 or 0 of the problem), its bound and
what the machine keeps up to date for it (`scores`) are arrays by slot; its kernel values with the
row at hand stand at `place` in that row's line of the block (`gram.py`), because problems trained
side by side share blocks. `active` lists the slots in use, for picking one at random. Freed slots
are used again, so that nothing ever moves; an empty slot has coefficient 0 and bounds [0, 0].
What is kept of kernel values among the vectors themselves is in `gram_cache.py`.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.records import array, filled, moved_along, spans_function
from polyplane.engine.tiles import at, put, span

__all__ = [
    "ACTIVE",
    "CLOCK",
    "INSERTED",
    "MISTAKES",
    "NOT_THERE",
    "OF_SIDE",
    "PART",
    "REMOVED",
    "SLOTS",
    "WANTED",
    "SupportSet",
    "Visit",
    "active_slots",
    "add_update",
    "count",
    "empty_set",
    "gathered_sum",
    "is_full",
    "likely_pick",
    "new_vector",
    "picked",
    "remove_least",
    "remove_vector",
    "slot_of",
    "spans_of_set",
    "spans_of_visit",
    "weighted_sum",
    "with_places",
    "with_room",
]

NOT_THERE = -1
ACTIVE, SLOTS, FREE, INSERTED, REMOVED, MISTAKES, WANTED, PART, CLOCK, OF_SIDE = range(10)
N_COUNTS = 12  # the last two by side
N_TOTALS = 12  # sums that belong to the problem as a whole; machines name them


class SupportSet(NamedTuple):
    """Arrays of a problem's vectors."""

    place: Annotated[Any, array(np.int32, "slot")]  # of its kernel values in a line of the block
    side: Annotated[Any, array(np.int32, "slot")]  # 1 or 0
    row: Annotated[Any, array(np.int64, "slot")]  # number of the row it was
    own: Annotated[Any, array(np.float64, "slot")]  # its kernel value with itself, in training
    coef: Annotated[Any, array(np.float64, "kind", "slot")]
    low: Annotated[Any, array(np.float64, "slot")]  # bounds of the coefficient, or what else
    high: Annotated[Any, array(np.float64, "slot")]  # belongs to the row
    scores: Annotated[Any, array(np.float64, "score", "slot")]  # kept up to date by the machine
    active: Annotated[Any, array(np.int32, "slot")]  # slots in use, as many as `counts` says
    position: Annotated[Any, array(np.int32, "slot", fill=NOT_THERE)]  # in `active`
    free: Annotated[Any, array(np.int32, "slot")]  # slots to use again
    gram: Annotated[Any, array(np.float32, "line", "slot")]  # values with the line's own vector
    line: Annotated[Any, array(np.int32, "slot", fill=NOT_THERE)]  # the vector's line
    owner: Annotated[Any, array(np.int32, "line", fill=NOT_THERE)]  # the slot whose line it is
    used: Annotated[Any, array(np.int64, "line", fill=-1)]  # when it was last; -1 if it is free
    counts: Annotated[Any, array(np.int64, "count")]
    totals: Annotated[Any, array(np.float64, "total")]


_, spans_of_set = spans_function(SupportSet, room="record.place.size", n_lines="record.owner.size")


class Visit(NamedTuple):
    """The rows of one chunk, as one problem sees them."""

    values: Any  # [row, place] float32: the block
    diagonal: Any  # [row] float32: K(x, x)
    side: Any  # [row] int32: class 1 or 0 of the problem
    weight: Any  # [row] float64: of the row
    slot: Any  # [row] int32: the slot that held it when the chunk began, or NOT_THERE
    row: Any  # [row] int64: its number
    first_place: Any  # of the chunk's own rows in a line


class VisitSpans(NamedTuple):
    """Support sets as spans, for use inside a loop."""

    values: Any
    diagonal: Any
    side: Any
    weight: Any
    slot: Any
    row: Any
    first_place: Any
    stride: Any


def empty_set(n_coefs: int, n_scores: int) -> SupportSet:
    """No vectors, and no room for any."""
    sizes = {"kind": n_coefs, "score": n_scores, "count": N_COUNTS, "total": N_TOTALS}
    made = filled(SupportSet, slot=0, line=0, **sizes)
    made.counts[WANTED] = NOT_THERE
    return made


def with_room(vectors: SupportSet, room: int, n_lines: int) -> SupportSet:
    """Return the vectors with more slots, and with so many lines of the cache."""
    slots, lines = vectors.place.size, min(n_lines, room)
    kept = np.argsort(-vectors.used, kind="stable")[:lines]  # the most recently used
    kept = np.sort(kept[vectors.owner[kept] != NOT_THERE])
    gram = np.zeros((lines, room), np.float32)
    for k, old in enumerate(kept):  # line by line: all at once would need the memory twice
        gram[k, :slots] = vectors.gram[old]
    owner, used = np.full(lines, NOT_THERE, np.int32), np.full(lines, -1, np.int64)
    owner[: kept.size], used[: kept.size] = vectors.owner[kept], vectors.used[kept]
    without_lines = vectors._replace(gram=vectors.gram[:0])
    made: SupportSet = moved_along(without_lines, "slot", np.arange(slots), slot=room)
    made.line[:] = NOT_THERE
    made.line[owner[: kept.size]] = np.arange(kept.size)
    return made._replace(gram=gram, owner=owner, used=used)


def active_slots(held: SupportSet) -> Any:
    """Slots in use, in the order of `active`."""
    return held.active[: held.counts[ACTIVE]]


def with_places(held: SupportSet, new_place: Any) -> None:
    """Every vector's values have moved to another place of the line; empty slots point to 0."""
    slots = active_slots(held)
    place = new_place[held.place[slots]]
    held.place[:] = 0
    held.place[slots] = place


@inlined
def spans_of_visit(visit: Any) -> Any:
    """The rows as a loop sees them; `visit` must be its argument."""
    return VisitSpans(
        span(visit.values),
        span(visit.diagonal),
        span(visit.side),
        span(visit.weight),
        span(visit.slot),
        span(visit.row),
        visit.first_place,
        visit.values.shape[1],
    )


@inlined
def slot_of(held: Any, visit: Any, j: Any) -> Any:
    """The slot of row j of the chunk if it is a support vector, else NOT_THERE."""
    slot = np.int64(at(visit.slot, j))
    if slot >= 0 and at(held.position, slot) >= 0 and at(held.row, slot) == at(visit.row, j):
        return slot
    return np.int64(NOT_THERE)


@inlined
def count(held: Any, what: Any, change: Any) -> Any:
    """counts[what] += change."""
    put(held.counts, what, at(held.counts, what) + change)


@inlined
def is_full(held: Any) -> Any:
    """Return True if there is no slot for another vector."""
    return at(held.counts, FREE) == 0 and at(held.counts, SLOTS) == held.room


@inlined
def picked(coin: Any, n: Any) -> Any:
    """A number below n, each equally likely: the first that the binary digits of `coin` spell.

    Unlike the whole part of coin * n it stays the same where n changes a little, so that what
    will be picked can be foreseen.
    """
    width = 1
    while width < n:
        width *= 2
    while True:
        coin *= width
        number = np.int64(coin)
        coin -= number
        if number < n:
            return number


@jit
def likely_pick(coin: Any, n: Any) -> Any:
    """`picked`, for whoever looks ahead."""
    return picked(coin, n)


@inlined
def gathered_sum(coef: Any, c: Any, place: Any, p: Any, n: Any, values: Any, o: Any) -> Any:
    """Sum of coef[c + i] values[o + place[p + i]] for i < n, always in the same order."""
    s0 = s1 = s2 = s3 = 0.0
    i = 0
    while i + 4 <= n:
        s0 += at(coef, c + i) * at(values, o + at(place, p + i))
        s1 += at(coef, c + i + 1) * at(values, o + at(place, p + i + 1))
        s2 += at(coef, c + i + 2) * at(values, o + at(place, p + i + 2))
        s3 += at(coef, c + i + 3) * at(values, o + at(place, p + i + 3))
        i += 4
    while i < n:
        s0 += at(coef, c + i) * at(values, o + at(place, p + i))
        i += 1
    return (s0 + s1) + (s2 + s3)


@inlined
def weighted_sum(held: Any, kind: Any, visit: Any, j: Any) -> Any:
    """Sum of coefficients of a kind times kernel values with row j of the chunk."""
    n, line = at(held.counts, SLOTS), j * visit.stride
    return gathered_sum(held.coef, kind * held.room, held.place, 0, n, visit.values, line)


@inlined
def new_vector(held: Any, visit: Any, j: Any, own: Any) -> Any:
    """Take a slot for row j of the chunk; return it. The set must not be full.

    `own` is its value with itself, which may hold more than the kernel's.
    """
    side = at(visit.side, j)
    if at(held.counts, FREE) > 0:
        count(held, FREE, -1)
        slot = np.int64(at(held.free, at(held.counts, FREE)))
    else:
        slot = at(held.counts, SLOTS)
        count(held, SLOTS, 1)
    n = at(held.counts, ACTIVE)
    put(held.active, n, np.int32(slot))
    put(held.position, slot, np.int32(n))
    put(held.place, slot, np.int32(visit.first_place + j))
    put(held.side, slot, side)
    put(held.row, slot, at(visit.row, j))
    put(held.own, slot, np.float64(own))
    count(held, ACTIVE, 1)
    count(held, OF_SIDE + side, 1)
    count(held, INSERTED, 1)
    return slot


@inlined
def remove_vector(held: Any, slot: Any, n_coefs: Any) -> Any:
    """Give a slot back; the last of `active` takes its position."""
    count(held, ACTIVE, -1)
    count(held, OF_SIDE + at(held.side, slot), -1)
    count(held, REMOVED, 1)
    last, hole = at(held.active, at(held.counts, ACTIVE)), at(held.position, slot)
    put(held.active, hole, last)
    put(held.position, last, hole)
    put(held.position, slot, np.int32(NOT_THERE))
    for kind in range(n_coefs):
        put(held.coef, kind * held.room + slot, 0.0)
    put(held.low, slot, 0.0)
    put(held.high, slot, 0.0)
    put(held.free, at(held.counts, FREE), np.int32(slot))
    count(held, FREE, 1)
    if at(held.line, slot) != NOT_THERE:  # its kernel values are of use to nobody
        put(held.owner, at(held.line, slot), np.int32(NOT_THERE))
        put(held.used, at(held.line, slot), -1)
        put(held.line, slot, np.int32(NOT_THERE))


@inlined
def add_update(held: Any, visit: Any, j: Any, now: Any, timed: Any) -> Any:
    """Add to both coefficients of row j, which becomes a support vector if it is none yet."""
    slot = slot_of(held, visit, j)
    if slot == NOT_THERE:
        slot = new_vector(held, visit, j, at(visit.diagonal, j))
    put(held.coef, slot, at(held.coef, slot) + now)
    put(held.coef, held.room + slot, at(held.coef, held.room + slot) + timed)


@inlined
def remove_least(held: Any) -> Any:
    """Remove the vector with the smallest |coef| sqrt(K(x, x)), of equals the lowest row number."""
    slot, least = np.int64(at(held.active, 0)), np.inf
    for q in range(at(held.counts, ACTIVE)):
        s = np.int64(at(held.active, q))
        size = at(held.coef, s) * at(held.coef, s) * at(held.own, s)
        if size < least or (size == least and at(held.row, s) < at(held.row, slot)):
            slot, least = s, size
    remove_vector(held, slot, 2)
