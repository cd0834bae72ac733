"""Steps on the multi-hyperplane hinge loss: the one loop of multi-class SVM, MM and AMM.

Loss   max(0, 1 + best rival score - own score)                          (Eq. 4 and 8)
Step   W <- (1 - 1/t) W; if the loss is positive also
       W[own] += x / (lambda t) and W[rival] -= x / (lambda t)           (Eq. 11-13)

In the sum representation (`planes.py`) only the two additions are left. With t rows visited so
far the loss is positive where lambda t + Theta[rival] x - Theta[own] x > 0; before the first step
W = 0 and every row violates.

A class that may still grow has one more plane, its reserved zero plane (section 3.2), which wins
where all planes of the class are below zero; at an update it becomes a plane of its own. That is
all that tells AMM from MM, whose classes may not grow.
Equations of Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.assignment import best_scores, plane_of_other, plane_of_own
from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes import (
    MISTAKES,
    NO_PLANE,
    count_up,
    growing_rival,
    is_full,
    new_plane,
    rivals_may_grow,
    spans_of,
    tiles_used,
)
from polyplane.engine.rows import (
    add_to_pair,
    open_row,
    page_of,
    score_planes,
    squared_norm,
)
from polyplane.engine.tiles import at, put

__all__ = ["UNASSIGNED", "HingeRule", "hinge_epoch", "reassign"]

ROWS_AHEAD = 4  # rows between asking for one and needing it; 2 to 4 are alike when all is quiet
UNASSIGNED = -2  # a row that has not chosen its plane yet


class HingeRule(NamedTuple):
    """What the update depends on besides planes and rows."""

    alpha: float  # lambda of the papers
    grows_rivals: bool  # whether a rival's zero plane may become a plane


@inlined
def update(
    page: Any, a: Any, b: Any, planes: Any, own: Any, rival: Any, weight: Any, t: Any
) -> Any:
    """Theta[own] += weight x, Theta[rival] -= weight x, their norms, and the average."""
    norm = weight * squared_norm(page, a, b)
    change = weight * (2.0 * at(planes.scores, own) + norm)  # |Theta + wx|^2 - |Theta|^2
    put(planes.squared_norms, own, at(planes.squared_norms, own) + change)
    if rival != NO_PLANE:
        change = weight * (norm - 2.0 * at(planes.scores, rival))
        put(planes.squared_norms, rival, at(planes.squared_norms, rival) + change)
    add_to_pair(page, a, b, planes.sums, planes.stride, own, rival, weight)
    if planes.keeps_average:
        timed = np.float32(weight * (t * (t + 1.0)))
        add_to_pair(page, a, b, planes.timed_sums, planes.stride, own, rival, timed)


@inlined
def own_plane(planes: Any, label: Any, best: Any, chosen: Any) -> Any:
    """The plane that answers for its class and its score; NO_PLANE is the zero plane."""
    may_grow = at(planes.room_left, label) > 0
    if chosen >= 0 and at(planes.owner, chosen) != NO_PLANE:  # Eq. 8: z is fixed
        return chosen, at(planes.scores, chosen)
    if may_grow and (best < 0 or chosen != UNASSIGNED):  # a pruned plane falls back to zero
        return NO_PLANE, np.float32(0)
    return UNASSIGNED, best  # Eq. 10, sought only if the row violates


@jit
def hinge_epoch(
    rows: Any,
    labels: Any,
    weights: Any,
    order: Any,
    state: Any,
    rule: Any,
    chosen_planes: Any,
    t: Any,
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows.

    `weights` is empty where all rows count alike. `chosen_planes` is empty for online training;
    for Alg. 1 it holds z, the plane of each row, and rows still UNASSIGNED note their choice.
    A full state returns early.
    """
    page = page_of(rows)
    planes = spans_of(state)
    last = order.size - 1
    for k in range(order.size):
        if is_full(planes):
            return t
        i = order[k]
        label = labels[i]
        a, b, ahead = open_row(page, i, order[min(k + ROWS_AHEAD, last)])
        tiles = tiles_used(planes)
        score_planes(page, a, b, ahead, planes, tiles)
        best, rival_score = best_scores(planes.scores, planes.owner, tiles, label)
        if rival_score >= best:
            count_up(planes, MISTAKES)
        chosen = chosen_planes[i] if chosen_planes.size else UNASSIGNED
        own, own_score = own_plane(planes, label, best, chosen)
        own_is_zero = own == NO_PLANE
        rival_is_zero = rival_score < 0 and rivals_may_grow(planes, label)
        if rival_is_zero:
            rival_score = np.float32(0)
        violates = t == 0 or rule.alpha * t + rival_score - own_score > 0  # Eq. 4, Eq. 8
        if own == UNASSIGNED and (violates or chosen_planes.size):
            own = plane_of_own(planes.scores, planes.owner, tiles, label, best)
        if violates:
            rival = NO_PLANE
            if not rival_is_zero:
                rival = plane_of_other(planes.scores, planes.owner, tiles, label, rival_score)
            if own_is_zero:
                own = new_plane(planes, label)
            if rival_is_zero and rule.grows_rivals:
                rival = new_plane(planes, growing_rival(planes, label))
            weight = weights[i] if weights.size else np.float32(1)
            if own != NO_PLANE:  # which a score that overflowed to NaN would leave
                update(page, a, b, planes, own, rival, weight, t)  # Eq. 11-13
        if chosen_planes.size:
            chosen_planes[i] = own
        t += 1
    return t


@jit
def reassign(rows: Any, labels: Any, order: Any, state: Any, chosen_planes: Any) -> Any:
    """z of Eq. 9-10: each row takes the best plane of its class; return how many changed."""
    page = page_of(rows)
    planes = spans_of(state)
    tiles = tiles_used(planes)
    n_changed = 0
    for i in order:
        label = labels[i]
        before = chosen_planes[i]
        if before >= 0 and at(planes.owner, before) == NO_PLANE:
            before = NO_PLANE
        a, b, ahead = open_row(page, i, i)
        score_planes(page, a, b, ahead, planes, tiles)
        best, _ = best_scores(planes.scores, planes.owner, tiles, label)
        own, _ = own_plane(planes, label, best, UNASSIGNED)
        if own == UNASSIGNED:
            own = plane_of_own(planes.scores, planes.owner, tiles, label, best)
        n_changed += own != before
        chosen_planes[i] = own
    return n_changed
