"""Kernel values among the support vectors of a problem, as far as there is memory for them.

A vector's line holds its kernel values with all others, by slot. There are as many lines as the
cache has room for; the least recently used makes way. A machine that needs a line that is not
there says so in `counts[WANTED]` and returns; what it is then given is what the block would have
held, to the last bit, so that the size of the cache changes no result.
"""

from typing import Any

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.support.support_set import (
    CLOCK,
    NOT_THERE,
    PART,
    SLOTS,
    WANTED,
    SupportSet,
    count,
    spans_of_set,
)
from polyplane.engine.tiles import at, put

__all__ = ["add_line", "bring_line", "has_line", "keep_line", "touch_line"]


@inlined
def has_line(held: Any, slot: Any, part: Any) -> Any:
    """Return True if the vector's line is in the cache; if it is not, the caller is to bring it.

    `part` is where the step is then to be taken up again.
    """
    if at(held.line, slot) != NOT_THERE:
        return True
    put(held.counts, WANTED, np.int64(slot))
    put(held.counts, PART, part)
    return False


@inlined
def touch_line(held: Any, slot: Any) -> Any:
    """Where the vector's line starts in `gram`; it is in use now."""
    count(held, CLOCK, 1)
    line = at(held.line, slot)
    put(held.used, line, at(held.counts, CLOCK))
    return line * held.room


@inlined
def free_line(held: Any, slot: Any) -> Any:
    """Give the vector the line that was not used for longest; return where it starts."""
    oldest = 0
    for line in range(held.n_lines):
        if at(held.used, line) < at(held.used, oldest):
            oldest = line
    if at(held.owner, oldest) != NOT_THERE:
        put(held.line, at(held.owner, oldest), np.int32(NOT_THERE))
    put(held.owner, oldest, np.int32(slot))
    put(held.line, slot, np.int32(oldest))
    return touch_line(held, slot)


@inlined
def keep_line(held: Any, slot: Any, visit: Any, j: Any) -> Any:
    """The kernel values of row j, now a vector, enter the cache; return where they start."""
    values, o = visit.values, j * visit.stride
    start = free_line(held, slot)
    for i in range(at(held.counts, SLOTS)):
        put(held.gram, start + i, at(values, o + at(held.place, i)))
    for line in range(held.n_lines):
        owner = at(held.owner, line)
        if owner != NOT_THERE:
            put(held.gram, line * held.room + slot, at(values, o + at(held.place, owner)))
    put(held.gram, start + slot, np.float32(at(held.own, slot)))
    return start


@inlined
def add_line(held: Any, kind: Any, factor: Any, start: Any) -> Any:
    """scores[kind] += factor * line."""
    o = kind * held.room
    for i in range(at(held.counts, SLOTS)):
        put(held.scores, o + i, at(held.scores, o + i) + factor * at(held.gram, start + i))


@jit
def bring_line(held: SupportSet, slot: Any, values: Any) -> None:
    """Put a line into the cache: kernel values by slot."""
    spans = spans_of_set(held)
    start = free_line(spans, slot)
    for i in range(at(spans.counts, SLOTS)):
        put(spans.gram, start + i, values[i])
    put(spans.gram, start + slot, np.float32(at(spans.own, slot)))
