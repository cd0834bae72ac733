"""Steps on the cross-entropy of classes whose score is a sum of several soft maxima of planes.

Score  of class c  sum over its units u of log sum over the planes k of the unit of exp(s W_k x).
       One soft maximum of 64 planes has at most 64 pieces, a sum of four of 16 up to 16^4, for the
       same dot products. With one unit a class this is `softmax.py`.
Loss   log(1 + exp(-lead)), the lead being the own class's score over the log-sum-exp of all others
Step   W <- (1 - eta alpha) W; a plane of the own class gets + eta (1 - p) r_k x, where r_k is its
       share in its unit, and a plane of class c gets - eta (1 - p) q_c r_k x, where q_c is the
       share of c in the log-sum-exp of all other classes. For s = 1 that is the gradient.
       Rows with a lead above `enough` are left as they are, and so are planes whose push is below
       `floor` times the largest on their side.
Lanes  are ordered by unit, the units of a class side by side: `owner` is the unit of a plane, and
       unit g belongs to class g // n_units.

Rates, and how W shrinks, are those of `softmax.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.averaging import time_of
from polyplane.engine.planes.planes import MISTAKES, Planes, count_up
from polyplane.engine.planes.scoring import (
    best_of_group,
    lanes_of_group,
    take_from_group,
    total_of_group,
)
from polyplane.engine.rows.storage import add_to_tile
from polyplane.engine.steps.resting import let_rest, rests
from polyplane.engine.steps.softmax import NONE, rates_at
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.engine.tiles import (
    LANES,
    at,
    by_owner,
    exponential,
    horizontal_max,
    is_above,
    load,
    maximum,
    multiply,
    put,
    span,
    splat,
    store,
)

__all__ = ["UnitRoom", "unit_epoch", "unit_room"]


class Units(NamedTuple):
    """Numbers of planes, by unit."""

    scores: Any  # [lane] float32
    group: Any  # [lane] int32
    group_starts: Any  # [unit + 1] int32
    best: Any  # [unit] float32: highest score
    total: Any  # [unit] float32: sum of exp(score - highest)
    of_class: Any  # [class] float32: score
    n_units: Any  # of a class
    n_classes: Any


class UnitRoom(NamedTuple):
    """Where units stand, and room for numbers of each unit and class.

    The caller holds these arrays: arrays made inside a loop that only a span refers to are freed
    before the loop ends.
    """

    starts: Any  # [unit + 1] int32
    best: Any  # [unit] float32
    total: Any  # [unit] float32
    of_class: Any  # [class] float32


def unit_room(planes: Planes, n_units: int, n_classes: int) -> UnitRoom:
    """Return where the lanes of each unit begin; there must be no idle lanes between."""
    owner, n_groups = planes.owner[planes.owner >= 0], n_units * n_classes
    starts = np.searchsorted(owner, np.arange(n_groups + 1)).astype(np.int32)
    room = [np.zeros(size, np.float32) for size in (n_groups, n_groups, n_classes)]
    return UnitRoom(starts, *room)


@inlined
def score_classes(planes: Any, units: Any, shares: Any, n_tiles: Any, scale: Any) -> Any:
    """`of_class`, and `shares` = exp(scale (score - best of the unit)); scores are used up."""
    for g in range(units.n_classes * units.n_units):
        best = best_of_group(units, g)
        put(units.best, g, best)
        if best > NONE:
            take_from_group(units, g, best)
    scales = splat(scale)
    for o in range(0, n_tiles * LANES, LANES):
        share = exponential(multiply(scales, load(planes.scores, o)))
        store(planes.shrunk_scores, o, share)
    for c in range(units.n_classes):
        score = np.float32(0)
        for g in range(c * units.n_units, (c + 1) * units.n_units):
            total = total_of_group(shares, g)
            put(units.total, g, total)
            score += scale * at(units.best, g) + np.log(total)
        put(units.of_class, c, score if at(units.best, c * units.n_units) > NONE else NONE)


@inlined
def score_of_rivals(units: Any, label: Any) -> Any:
    """Log-sum-exp of the scores of all classes but one."""
    best = NONE
    for c in range(units.n_classes):
        if c != label:
            best = max(best, at(units.of_class, c))
    total = np.float32(0)
    if best > NONE:
        for c in range(units.n_classes):
            if c != label:
                total += np.exp(at(units.of_class, c) - best)
        best += np.log(total)
    return best


@inlined
def note_shares(planes: Any, shares: Any, g: Any) -> Any:
    """`largest_shares` of the planes of a unit of the row's class."""
    start, end, _ = lanes_of_group(shares, g)
    for o in range(start // LANES * LANES, end, LANES):
        before = load(planes.largest_shares, o)
        larger = maximum(before, load(shares.scores, o))
        store(planes.largest_shares, o, by_owner(larger, before, shares.group, o, np.int32(g)))


@inlined
def push_unit(shares: Any, g: Any, push: Any, least: Any) -> Any:
    """Shares of a unit become pushes, where those are not below the least."""
    start, end, _ = lanes_of_group(shares, g)
    pushes, threshold = splat(push), least / abs(push) if push != 0 else np.float32(0)
    for o in range(start // LANES * LANES, end, LANES):
        before = load(shares.scores, o)
        after = multiply(multiply(before, is_above(before, threshold)), pushes)
        store(shares.scores, o, by_owner(after, before, shares.group, o, np.int32(g)))


@inlined
def push_sides(units: Any, shares: Any, label: Any, rivals: Any, push: Any, floor: Any) -> Any:
    """Shares become what planes move by, own ones forward and others back."""
    most_own = most_rival = np.float32(0)
    for c in range(units.n_classes):
        if at(units.of_class, c) > NONE:
            part = np.float32(1) if c == label else np.exp(at(units.of_class, c) - rivals)
            for g in range(c * units.n_units, (c + 1) * units.n_units):
                largest = np.float32(part / at(units.total, g))
                put(units.best, g, largest)
                if c == label:
                    most_own = max(most_own, largest)
                else:
                    most_rival = max(most_rival, largest)
    for c in range(units.n_classes):
        if at(units.of_class, c) > NONE:
            least = floor * push * (most_own if c == label else most_rival)
            signed = push if c == label else -push
            for g in range(c * units.n_units, (c + 1) * units.n_units):
                push_unit(shares, g, np.float32(signed * at(units.best, g)), np.float32(least))


@inlined
def move_by_pushes(page: Any, a: Any, b: Any, planes: Any, n_tiles: Any, time: Any) -> Any:
    """V_k += push_k x, and the average."""
    for o in range(0, n_tiles * LANES, LANES):
        pushes = load(planes.shrunk_scores, o)
        either = maximum(pushes, multiply(pushes, splat(np.float32(-1))))
        if horizontal_max(either) > 0:
            add_to_tile(page, a, b, planes.sums, planes.stride, o, pushes)
            if planes.keeps_average:
                timed = multiply(pushes, splat(time))
                add_to_tile(page, a, b, planes.timed_sums, planes.stride, o, timed)


@jit
def unit_epoch(
    rows: Any,
    targets: Any,
    order: Any,
    state: Any,
    room: Any,
    rule: Any,
    resting: Any,
    t: Any,
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows."""
    page, goals, planes, tiles = opened(rows, targets, state)
    floor = np.float32(rule.floor)
    of_class, n_classes = room.of_class, room.of_class.size
    n_units = room.best.size // n_classes
    numbers = span(room.best), span(room.total), span(room.of_class), n_units, n_classes
    units = Units(planes.scores, planes.owner, span(room.starts), *numbers)
    shares = Units(planes.shrunk_scores, planes.owner, span(room.starts), *numbers)
    scale, eta = np.float32(1), 0.0
    for k in range(order.size):
        scale, eta = rates_at(planes, rule, t, k == 0, scale, eta)
        if rests(resting, order[k]):
            t += 1
            continue
        i, label, a, b = scored(page, goals, planes, tiles, order, k)
        score_classes(planes, units, shares, tiles, scale)
        own, rivals = of_class[label], score_of_rivals(units, label)
        if own > NONE and rivals > NONE:
            for g in range(label * n_units, (label + 1) * n_units):
                note_shares(planes, shares, g)
            lead = own - rivals
            let_rest(resting, i, lead, rule.enough)
            if lead <= 0:
                count_up(planes, MISTAKES)
            if lead < rule.enough:
                push = np.float32(eta / (1 + np.exp(lead)) * weight_of(goals, i))
                push_sides(units, shares, label, rivals, push, floor)
                move_by_pushes(page, a, b, planes, tiles, np.float32(time_of(t)))
        t += 1
    return t
