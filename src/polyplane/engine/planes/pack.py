"""Several models of the same rows, trained by one reading: a few rows, one model after the other.

Models that differ only in alpha, or in the rows they leave out, visit the same rows in the same
order. A few rows are opened (`rows/at_hand.py`); then each model takes its steps on them
(`hinge.py`). Each becomes, to the bit, what it would have become by itself.

Models that have reached the same planes take the same step, whatever their alphas are, as long as
the row violates the margins of all of them or of none. They are one mind: planes with several
alphas. With small alphas that lasts: alpha only tells where the margin is. At the first row that
parts them the loop stops before the step, and the caller makes two minds of one.

The arrays of all minds lie in one record, a mind's own after another's, in places of the same
size: what Python sees of a mind's planes are views of its place.
The loop goes on until a mind is due: it is parted, has made as many steps as it may, or its lanes
are full. The others still finish the rows at hand, so that what is due for several is done at
once. Counts that the history wants are noted by the loop.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import (
    N_COUNTS,
    Array,
    Planes,
    PlanesSpans,
    is_full,
    spans_of,
    tiles_used,
)
from polyplane.engine.records import array, blank, fields_of, filled, spans_function
from polyplane.engine.rows.at_hand import open_some, page_at_hand, spans_at_hand
from polyplane.engine.rows.storage import page_of, score_planes
from polyplane.engine.steps.hinge import (
    NO_COIN,
    UNASSIGNED,
    HingeRule,
    compared,
    learn,
    violates,
)
from polyplane.engine.steps.visits import ROWS_AHEAD
from polyplane.engine.targets import label_of, spans_of_targets
from polyplane.engine.tiles import at, put, shifted

__all__ = [
    "MOST_NOTES", "NO_PART", "Minds", "hinge_epoch_of_pack", "new_minds", "new_pack", "noted",
    "place_in_pack", "plan_notes",
]  # fmt: skip

NO_PART = -1  # what a mind leaves out that visits every row
MOST_NOTES = 16  # that the loop makes of a mind before Python looks at them
NOTE = 1 + N_COUNTS  # a count of steps, and the counts there
NO_STEP = -1  # where nothing is to be noted


class Minds(NamedTuple):
    """The minds of a pack; there are places for more, without alphas."""

    alphas: Annotated[Any, array(np.float64, "mind", "alpha")]  # the largest first
    n_alphas: Annotated[Any, array(np.int64, "mind")]
    left_out: Annotated[Any, array(np.int64, "mind")]  # the part of the rows it does not visit
    room: Annotated[Any, array(np.int64, "mind")]  # lanes of its planes
    n_steps: Annotated[Any, array(np.int64, "mind")]
    n_visited: Annotated[Any, array(np.int64, "mind")]  # entries of the order
    last_step: Annotated[Any, array(np.int64, "mind")]  # where something is due
    is_due: Annotated[Any, array(np.int64, "mind")]
    n_violated: Annotated[Any, array(np.int64, "mind")]  # of its alphas, by the row that parts it
    notes: Annotated[Any, array(np.int64, "mind", "number")]  # see NOTE
    n_noted: Annotated[Any, array(np.int64, "mind")]


_, _spans_of_minds = spans_function(
    Minds, n_minds="record.n_alphas.size", most_alphas="record.alphas.shape[1]"
)


def new_minds(n_models: int) -> Minds:
    """Places for so many."""
    return filled(Minds, mind=n_models, alpha=n_models, number=(MOST_NOTES + 1) * NOTE)


def new_pack(planes: Planes, n_minds: int, n_lanes: int) -> Planes:
    """Places for so many planes like these, each of so many lanes."""
    made = {}
    for name, field in fields_of(Planes).items():
        sizes = dict(zip(field.axes, getattr(planes, name).shape, strict=True))
        last = field.axes[-1]
        sizes[last] = n_minds * (n_lanes if last == "lane" else sizes[last])
        made[name] = blank(field, sizes)
    return Planes(**made)


def place_in_pack(pack: Planes, minds: Minds, k: int, planes: Planes) -> Planes:
    """Put planes into place k, which has room for them; return what they are there."""
    made = {}
    for name in fields_of(Planes):
        whole, part = getattr(pack, name), getattr(planes, name)
        first = k * (whole.size // minds.n_alphas.size)
        own = whole.reshape(-1)[first : first + part.size].reshape(part.shape)
        own[...] = part
        made[name] = own
    minds.room[k] = planes.owner.size
    return Planes(**made)


def plan_notes(minds: Minds, k: int, steps: Sequence[int]) -> None:
    """Have the counts noted when a mind has made so many steps, each time."""
    minds.n_noted[k] = 0
    minds.notes[k] = NO_STEP
    minds.notes[k, : len(steps) * NOTE : NOTE] = steps


def noted(minds: Minds, k: int) -> Iterator[tuple[int, Array]]:
    """The notes that a mind has made: after how many steps, and the counts there."""
    for note in minds.notes[k].reshape(-1, NOTE)[: minds.n_noted[k]]:
        yield int(note[0]), note[1:]


@inlined
def _spans_of_mind(pack: Any, minds: Any, k: Any, n_classes: Any) -> Any:
    """The planes of one mind as a loop sees them."""
    lane, room = k * (pack.stride // minds.n_minds), at(minds.room, k)
    return PlanesSpans(
        shifted(pack.sums, lane * pack.n_features),
        shifted(pack.timed_sums, lane * pack.n_features if pack.keeps_average else 0),
        shifted(pack.squared_norms, lane),
        shifted(pack.inverse_lengths, lane),
        shifted(pack.owner, lane),
        shifted(pack.idle, lane),
        shifted(pack.room_left, k * n_classes),
        shifted(pack.counts, k * N_COUNTS),
        shifted(pack.scores, lane),
        shifted(pack.shrunk_scores, lane),
        shifted(pack.largest_shares, lane),
        room,
        room,
        pack.n_features,
        pack.keeps_average,
    )


@inlined
def _note_counts(minds: Any, m: Any, planes: Any) -> Any:
    """Put the counts down; return the step of the next note."""
    n = at(minds.n_noted, m) + 1
    place = (m * (MOST_NOTES + 1) + n) * NOTE  # of the next
    for c in range(N_COUNTS):
        put(minds.notes, place - N_COUNTS + c, at(planes.counts, c))
    put(minds.n_noted, m, n)
    return at(minds.notes, place)


@inlined
def _count_violated(minds: Any, m: Any, t: Any, seen: Any) -> Any:
    """How many alphas of a mind have their margins violated."""
    n = 0
    while violates(at(minds.alphas, m * minds.most_alphas + n), t, seen):
        n += 1
    return n


@inlined
def _visit_some(
    page: Any, wanted: Any, parts: Any, order: Any, done: Any, end: Any, hand: Any, planes: Any,
    minds: Any, m: Any, grows_rivals: Any,
) -> Any:  # fmt: skip
    """Let one mind visit the rows at hand, entries `done` to `end`; return whether it is due."""
    lowest = at(minds.alphas, m * minds.most_alphas + at(minds.n_alphas, m) - 1)
    rule = HingeRule(at(minds.alphas, m * minds.most_alphas), grows_rivals, 0.0, 1.0)
    left_out, last_step = at(minds.left_out, m), at(minds.last_step, m)
    k, t, n_violated = max(done, at(minds.n_visited, m)), at(minds.n_steps, m), 0
    next_note = at(minds.notes, (m * (MOST_NOTES + 1) + at(minds.n_noted, m)) * NOTE)
    while k < end and t < last_step and not is_full(planes):
        i, o = order[k], k - done
        if parts[i] != left_out:
            a, b, tiles = at(hand.first, o), at(hand.end, o), tiles_used(planes)
            score_planes(page, a, b, at(hand.ahead, o), planes, tiles)
            seen = compared(rule, planes, planes.scores, tiles, label_of(wanted, i), UNASSIGNED)
            if violates(rule.alpha, t, seen) and not violates(lowest, t, seen):
                n_violated = _count_violated(minds, m, t, seen)
                break
            learn(rule, page, a, b, planes, planes.scores, wanted, i, seen, True, NO_COIN, t)
            t += 1
            if t == next_note:
                next_note = _note_counts(minds, m, planes)
        k += 1
    put(minds.n_steps, m, t)
    put(minds.n_visited, m, k)
    put(minds.n_violated, m, n_violated)
    is_due = t == last_step or is_full(planes) or n_violated > 0
    put(minds.is_due, m, np.int64(is_due))
    return is_due


@jit
def hinge_epoch_of_pack(
    rows: Any, targets: Any, parts: Any, order: Any, state: Any, record: Any, at_hand: Any,
    grows_rivals: Any,
) -> Any:  # fmt: skip
    """Let all minds visit rows in `order`, up to where one is due.

    `parts` is the part that each row belongs to. No mind may be due before. Return whether the
    next row is not too long for the rows at hand.
    """
    page = page_of(rows)
    wanted = spans_of_targets(targets)
    pack = spans_of(state)
    minds = _spans_of_minds(record)
    hand = spans_at_hand(at_hand)
    opened = page_at_hand(page, hand)
    n_classes = state.room_left.size // minds.n_minds
    done = order.size
    for m in range(minds.n_minds):
        put(minds.is_due, m, 0)
        if at(minds.n_alphas, m) > 0:
            done = min(done, at(minds.n_visited, m))
    is_due = False
    while done < order.size and not is_due:
        end = open_some(page, order, done, ROWS_AHEAD, hand)
        if end == done:
            return False
        for m in range(minds.n_minds):
            if at(minds.n_alphas, m) > 0:
                planes = _spans_of_mind(pack, minds, m, n_classes)
                is_due |= _visit_some(
                    opened, wanted, parts, order, done, end, hand, planes, minds, m, grows_rivals
                )
        done = end
    return True
