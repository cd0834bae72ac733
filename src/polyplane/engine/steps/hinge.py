"""Steps on the multi-hyperplane hinge loss: the one loop of multi-class SVM, MM and all AMMs.

Loss   max(0, 1 + best rival score - own score)                          (Eq. 4 and 8)
Step   W <- (1 - 1/t) W; if the loss is positive also
       W[own] += x / (lambda t) and W[rival] -= x / (lambda t)           (Eq. 11-13)

In the sum representation (`planes.py`) only the two additions are left. With t rows visited so
far the loss is positive where lambda t + Theta[rival] x - Theta[own] x > 0; before the first step
W = 0 and every row violates.

A class that may still grow has one more plane, its reserved zero plane (section 3.2), which wins
where all planes of the class are below zero; at an update it becomes a plane of its own. That is
all that tells AMM from MM, whose classes may not grow.
SAMM reads W off Theta with shrinkage (`shrinkage.py`); the loop compares shrunk scores. With
mu > 0 a plane may be shrunk to nothing: it is dormant, one more zero plane. Therefore
- a zero plane wins where no plane of the class is above zero;
- an own zero plane that is to be updated is the dormant plane with the largest Theta x, if that
  is positive, else a new plane; a rival's is never a dormant one;
- a class without room answers by its planes alone, and a dormant one scores 0.
GAMM splits planes: at an update the own plane is cloned with probability p first, and p shrinks
with each cloning.
Equations of Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.averaging import time_of
from polyplane.engine.planes.planes import (
    CLONED,
    MISTAKES,
    NO_PLANE,
    clone_plane,
    count_up,
    growing_rival,
    inverse_length,
    is_full,
    new_plane,
    rivals_may_grow,
    spans_of,
    tiles_used,
)
from polyplane.engine.planes.winners_and_ties import best_scores, plane_of_other, plane_of_own
from polyplane.engine.rows.storage import add_to_pair, open_row, page_of, score_planes, squared_norm
from polyplane.engine.steps.shrinkage import (
    HingeRule,
    SparseRule,
    plane_to_update,
    score_by_rule,
    zero_wins,
)
from polyplane.engine.steps.visits import ROWS_AHEAD
from polyplane.engine.targets import label_of, spans_of_targets, weight_of
from polyplane.engine.tiles import at, put

__all__ = [
    "UNASSIGNED",
    "HingeRule",
    "SparseRule",
    "hinge_epoch",
    "reassign",
    "update",
]

UNASSIGNED = -2  # a row that has not chosen its plane yet
NO_COIN = np.float64(1)  # above every probability


@inlined
def change_norm(planes: Any, plane: Any, change: Any) -> Any:
    """|Theta|^2 += change."""
    after = at(planes.squared_norms, plane) + change
    put(planes.squared_norms, plane, after)
    put(planes.inverse_lengths, plane, inverse_length(after))


@inlined
def update(
    page: Any, a: Any, b: Any, planes: Any, own: Any, rival: Any, weight: Any, t: Any
) -> Any:
    """Theta[own] += weight x, Theta[rival] -= weight x, their norms, and the average."""
    norm = weight * squared_norm(page, a, b)
    change_norm(planes, own, weight * (2.0 * at(planes.scores, own) + norm))
    if rival != NO_PLANE:
        change_norm(planes, rival, weight * (norm - 2.0 * at(planes.scores, rival)))
    add_to_pair(page, a, b, planes.sums, planes.stride, own, rival, weight)
    if planes.keeps_average:
        timed = np.float32(weight * time_of(t))
        add_to_pair(page, a, b, planes.timed_sums, planes.stride, own, rival, timed)


@inlined
def own_plane(planes: Any, scores: Any, label: Any, best: Any, zero_wins: Any, chosen: Any) -> Any:
    """The plane that answers for its class and its score; NO_PLANE is the zero plane."""
    may_grow = at(planes.room_left, label) > 0
    if chosen >= 0 and at(planes.owner, chosen) != NO_PLANE:  # Eq. 8: z is fixed
        return chosen, at(scores, chosen)
    if may_grow and (zero_wins or chosen != UNASSIGNED):  # or it was pruned
        return NO_PLANE, np.float32(0)
    return UNASSIGNED, best  # Eq. 10, sought only if the row violates


@inlined
def splits(planes: Any, plane: Any, coin: Any, rule: Any) -> Any:
    """Return True if the coin of this step clones a plane: with probability p, if there is room."""
    if coin >= rule.clone_probability:
        return False
    p = rule.clone_probability * rule.clone_decay ** np.float64(at(planes.counts, CLONED))
    return coin < p and at(planes.room_left, at(planes.owner, plane)) > 0


@inlined
def rival_to_lower(
    planes: Any, scores: Any, tiles: Any, label: Any, score: Any, is_zero: Any, rule: Any
) -> Any:
    """The rival plane that has this score; a zero plane becomes a plane or stays as it is."""
    if not is_zero:
        return plane_of_other(scores, planes.owner, tiles, label, score)
    if rule.grows_rivals:
        return new_plane(planes, growing_rival(planes, label))
    return NO_PLANE


class Compared(NamedTuple):
    """Scores of a model on a row before it learns from it."""

    best: Any  # highest score of the planes of the row's class
    own: Any  # the plane that answers for its class, UNASSIGNED where that is to be sought
    own_score: Any
    rival_score: Any
    rival_is_zero: Any  # whether a rival's zero plane has that score
    is_mistake: Any


@inlined
def compared(rule: Any, planes: Any, scores: Any, tiles: Any, label: Any, chosen: Any) -> Any:
    """The best own plane beside the best rival, of a row whose scores are known."""
    best, rival_score = best_scores(scores, planes.owner, tiles, label)
    is_mistake = rival_score >= best
    own, own_score = own_plane(planes, scores, label, best, zero_wins(rule, best), chosen)
    rival_is_zero = zero_wins(rule, rival_score) and rivals_may_grow(planes, label)
    if rival_is_zero:
        rival_score = np.float32(0)
    return Compared(best, own, own_score, rival_score, rival_is_zero, is_mistake)


@inlined
def violates(alpha: Any, t: Any, seen: Any) -> Any:
    """Return True if the loss of the row is positive."""
    margin = np.float64(alpha) * t  # in plain Python, too, where scores are float32
    return t == 0 or margin + seen.rival_score - seen.own_score > 0  # Eq. 4, Eq. 8


@inlined
def learn(
    rule: Any,
    page: Any,
    a: Any,
    b: Any,
    planes: Any,
    scores: Any,
    wanted: Any,
    i: Any,
    seen: Any,
    is_online: Any,
    coin: Any,
    t: Any,
) -> Any:
    """Take the step on row i, which was `compared`; return its own plane."""
    label, tiles, own = label_of(wanted, i), tiles_used(planes), seen.own
    own_is_zero, is_violated = own == NO_PLANE, violates(rule.alpha, t, seen)
    if seen.is_mistake:
        count_up(planes, MISTAKES)
    if own == UNASSIGNED and (is_violated or not is_online):
        own = plane_of_own(scores, planes.owner, tiles, label, seen.best)
    if is_violated:
        own = plane_to_update(rule, planes, label, seen.best, own, t)
        if own_is_zero and own == NO_PLANE:
            own = new_plane(planes, label)
        elif is_online and own != NO_PLANE and splits(planes, own, coin, rule):
            clone_plane(planes, own)
        rival = rival_to_lower(
            planes, scores, tiles, label, seen.rival_score, seen.rival_is_zero, rule
        )
        if own != NO_PLANE:  # which a score that overflowed to NaN would leave
            update(page, a, b, planes, own, rival, weight_of(wanted, i), t)  # Eq. 11-13
    return own


@jit
def hinge_epoch(
    rows: Any,
    targets: Any,
    order: Any,
    state: Any,
    rule: Any,
    coins: Any,
    chosen_planes: Any,
    t: Any,
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows.

    `coins` holds a uniform number for each entry of `order`, or nothing where nothing is cloned.
    `chosen_planes` is empty for online training; for Alg. 1 it holds z, the plane of each row,
    rows still UNASSIGNED note their choice, and nothing is cloned. A full state returns early.
    """
    page = page_of(rows)
    wanted = spans_of_targets(targets)
    planes = spans_of(state)
    is_online = chosen_planes.size == 0
    last = order.size - 1
    for k in range(order.size):
        if is_full(planes):
            return t
        i = order[k]
        a, b, ahead = open_row(page, i, order[min(k + ROWS_AHEAD, last)])
        scores = score_by_rule(rule, page, a, b, ahead, planes, tiles_used(planes), t)
        chosen = UNASSIGNED if is_online else chosen_planes[i]
        coin = coins[k] if coins.size > 0 else NO_COIN
        seen = compared(rule, planes, scores, tiles_used(planes), label_of(wanted, i), chosen)
        own = learn(rule, page, a, b, planes, scores, wanted, i, seen, is_online, coin, t)
        if not is_online:
            chosen_planes[i] = own
        t += 1
    return t


@jit
def reassign(rows: Any, targets: Any, order: Any, state: Any, chosen_planes: Any) -> Any:
    """z of Eq. 9-10: each row takes the best plane of its class; return how many changed."""
    page = page_of(rows)
    wanted = spans_of_targets(targets)
    planes = spans_of(state)
    tiles = tiles_used(planes)
    n_changed = 0
    for i in order:
        label = label_of(wanted, i)
        before = chosen_planes[i]
        if before >= 0 and at(planes.owner, before) == NO_PLANE:
            before = NO_PLANE
        a, b, ahead = open_row(page, i, i)
        score_planes(page, a, b, ahead, planes, tiles)
        best, _ = best_scores(planes.scores, planes.owner, tiles, label)
        own, _ = own_plane(planes, planes.scores, label, best, best < 0, UNASSIGNED)
        if own == UNASSIGNED:
            own = plane_of_own(planes.scores, planes.owner, tiles, label, best)
        n_changed += own != before
        chosen_planes[i] = own
    return n_changed
