"""Steps of the convex polytope machine, one or two polytopes in one pass over the rows.

Score  f(x) = max_k W_k x: positive outside the polytope, negative inside
Loss   of a positive max(0, 1 - W_z x); of a negative the sum over k of max(0, 1 + W_k x)
Step   Alg. 1: where a positive has max_k W_k x < 1, one plane z = ASSIGN(x) gets + x / (lambda t);
       every plane with W_k x > -1 for a negative gets - x / (lambda t)

A plane speaks for its owner, the class outside its polytope: rows of that class are its positives,
all others its negatives. With planes of one class there is one polytope; with planes of both there
are two, f and its mirror image, and rows belong where max(planes of 1) - max(planes of 0) says.
In the sum representation (`planes.py`) nothing shrinks. With t rows visited so far 1 becomes
lambda t; before the first step W = 0 and every row violates everywhere. Planes that start as
small noise only break the ties among them: they are a constant part of Theta.

Departures  (1) planes shrink before the update, as in Pegasos; Alg. 1 shrinks after it, which
                makes the update at step t smaller by (t - 1) / t;
            (2) rows follow `order` instead of independent draws;
            (3) a weighted row counts once in the entropy, whatever its weight.
`squared_norms` of the planes are not kept: nothing is pruned here.
Paper       Kantchelian, Tschantz, Huang, Bartlett, Joseph, Tygar (NIPS 2014),
            papers.nips.cc/paper/2014/hash/b147a61c1d07c1c999560f62add6dbc7-Abstract.html
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.assignment_by_entropy import (
    Tally,
    entropy_of,
    new_tally,
    plane_by_entropy,
    spans_of_tally,
)
from polyplane.engine.planes.averaging import time_of
from polyplane.engine.planes.planes import MISTAKES, NO_PLANE, count_up
from polyplane.engine.planes.winners_and_ties import best_scores, plane_of_own
from polyplane.engine.rows.storage import add_to_pair, add_to_tile
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.engine.tiles import (
    LANES,
    horizontal_max,
    is_above,
    load,
    multiply,
    select_other,
    splat,
)

__all__ = ["PolytopeRule", "Tally", "entropy_of", "new_tally", "polytope_epoch"]

NONE = np.float32(-np.inf)  # best score where there are no planes


class PolytopeRule(NamedTuple):
    """Settings of the update."""

    alpha: float  # lambda of the paper
    entropy: float  # h in bits; 0 leaves every row to the plane that wins it


@inlined
def is_mistake(own: Any, other: Any) -> Any:
    """Return True if the row would be called the other class; a side without planes scores 0."""
    return (other if other > NONE else np.float32(0)) >= (own if own > NONE else np.float32(0))


@inlined
def pull(page: Any, a: Any, b: Any, planes: Any, plane: Any, weight: Any, timed: Any) -> Any:
    """Theta[plane] += weight x, and the average."""
    add_to_pair(page, a, b, planes.sums, planes.stride, plane, NO_PLANE, weight)
    if planes.keeps_average:
        add_to_pair(page, a, b, planes.timed_sums, planes.stride, plane, NO_PLANE, timed)


@inlined
def push(
    page: Any,
    a: Any,
    b: Any,
    planes: Any,
    n_tiles: Any,
    label: Any,
    limit: Any,
    weight: Any,
    timed: Any,
) -> Any:
    """Theta[k] -= weight x for all planes of the other class that score above `limit`."""
    for o in range(0, n_tiles * LANES, LANES):
        scores = select_other(load(planes.scores, o), planes.owner, o, label)
        if horizontal_max(scores) > limit:
            violates = is_above(scores, limit)
            factors = multiply(splat(-weight), violates)
            add_to_tile(page, a, b, planes.sums, planes.stride, o, factors)
            if planes.keeps_average:
                factors = multiply(splat(-timed), violates)
                add_to_tile(page, a, b, planes.timed_sums, planes.stride, o, factors)


@jit
def polytope_epoch(
    rows: Any,
    targets: Any,
    order: Any,
    state: Any,
    tally: Any,
    rule: Any,
    chosen_planes: Any,
    t: Any,
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows.

    `chosen_planes` is UNADJ of Alg. 2: the plane that won each row when it last violated, or
    NO_PLANE. It is empty where rows are never seen again. It and `tally` are read and changed
    only if `rule.entropy` is positive.
    """
    page, goals, planes, tiles = opened(rows, targets, state)
    won = spans_of_tally(tally, chosen_planes)
    for k in range(order.size):  # departure 2
        i, label, a, b = scored(page, goals, planes, tiles, order, k)
        own, other = best_scores(planes.scores, planes.owner, tiles, label)
        if is_mistake(own, other):
            count_up(planes, MISTAKES)
        margin = np.float32(rule.alpha * t) if t > 0 else np.float32(np.inf)
        pulls = NONE < own < margin  # a positive with W_z x < 1
        pushes = other > -margin  # a negative with W_k x > -1 for some k
        if pulls or pushes:
            weight = weight_of(goals, i)
            timed = np.float32(weight * time_of(t))
            if pulls:
                z = plane_of_own(planes.scores, planes.owner, tiles, label, own)
                if z != NO_PLANE:  # which a score that overflowed to NaN would leave
                    if rule.entropy > 0:
                        z = plane_by_entropy(planes, tiles, won, label, i, z, rule.entropy)
                    pull(page, a, b, planes, z, weight, timed)  # departure 1
            if pushes:
                push(page, a, b, planes, tiles, label, -margin, weight, timed)  # departure 1
        t += 1
    return t
