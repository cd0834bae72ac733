"""Scores of a finished model for many rows.

Lanes of a finished model are ordered by group, then by age. A group is a set of planes that speak
with one voice: those of a class, or of one side of a problem where models of fewer classes stand
side by side. It scores what its best plane scores or, where it is soft, the logarithm of the sum
of exp(score) over its planes, which is log(number of planes) higher at most.
In a model of one group per class the first best lane is that of the lowest class and its oldest
plane: `best_planes` and the largest of `group_scores` agree.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.rows.storage import open_row, page_of, score_planes
from polyplane.engine.tiles import (
    LANES,
    add,
    at,
    by_owner,
    exponential,
    horizontal_max,
    horizontal_sum,
    lane_of,
    load,
    maximum,
    multiply,
    put,
    select_own,
    span,
    splat,
    store,
)

__all__ = [
    "Scorer",
    "best_planes",
    "group_scores",
    "plane_scores",
    "soft_group_scores",
    "soft_winners",
    "weighted_sums",
]

# Groups of up to so many planes are visited lane by lane, which is faster than whole tiles.
MAX_PLANES_BY_LANE = 8
# The log of a sum of n exponentials of at most 1 exceeds log n by less than n times this, however
# it is rounded: exponentials by two units in the last place, n additions by 6e-8 of the sum each.
ROUNDING_PER_PLANE = 1e-6


class Scorer(NamedTuple):
    """Planes for scoring only; `scores` is scratch, so each thread has a scorer of its own."""

    sums: Any  # [feature, lane] float32; feature 0 is the constant
    idle: Any  # [lane] float32: 0 where a plane is, minus infinity elsewhere
    group: Any  # [lane] int32, NO_PLANE where there is no plane
    group_starts: Any  # [group + 1] int32: lanes of group g begin at [g] and end before [g + 1]
    scales: Any  # [lane] float32: W = scale * sums, 1 where there is no plane
    scores: Any  # [lane] float32
    n_planes: Any
    empty_score: Any  # float32: of a group without planes; minus infinity: it must not win


class ScorerSpans(NamedTuple):
    """A scorer as spans, for use inside a loop; some are what `score_planes` asks for."""

    sums: Any
    idle: Any
    group: Any
    group_starts: Any
    scales: Any
    scores: Any
    stride: Any
    n_planes: Any
    n_tiles: Any
    n_groups: Any
    empty_score: Any


@inlined
def spans_of_scorer(scorer: Any) -> Any:
    """The scorer as a loop sees it."""
    return ScorerSpans(
        span(scorer.sums),
        span(scorer.idle),
        span(scorer.group),
        span(scorer.group_starts),
        span(scorer.scales),
        span(scorer.scores),
        scorer.group.size,
        scorer.n_planes,
        (scorer.n_planes + LANES - 1) // LANES,
        scorer.group_starts.size - 1,
        scorer.empty_score,
    )


@inlined
def score_and_scale(page: Any, i: Any, planes: Any) -> Any:
    """Scores of all planes on row i.

    Sums are scaled after they are made, because sums of integer-valued rows are exact.
    """
    a, b, ahead = open_row(page, i, i)
    score_planes(page, a, b, ahead, planes, planes.n_tiles)
    for o in range(0, planes.n_tiles * LANES, LANES):
        store(planes.scores, o, multiply(load(planes.scores, o), load(planes.scales, o)))


@inlined
def first_best_lane(planes: Any) -> Any:
    """Lowest lane with the highest score, NO_PLANE where there is none."""
    best = splat(np.float32(-np.inf))
    for o in range(0, planes.n_tiles * LANES, LANES):
        best = maximum(best, load(planes.scores, o))
    score = horizontal_max(best)
    for o in range(0, planes.n_tiles * LANES, LANES):
        lane = lane_of(load(planes.scores, o), score)
        if lane < LANES:
            return o + lane
    return NO_PLANE


# ---- one group ---------------------------------------------------------------------------


@inlined
def lanes_of_group(planes: Any, g: Any) -> Any:
    """First lane of group g, the end of its lanes, and whether they are few."""
    start, end = np.int64(at(planes.group_starts, g)), np.int64(at(planes.group_starts, g + 1))
    return start, end, end - start <= MAX_PLANES_BY_LANE


@inlined
def best_of_group(planes: Any, g: Any) -> Any:
    """Highest score of the planes of group g, minus infinity where there are none."""
    start, end, _ = lanes_of_group(planes, g)
    tiles = splat(np.float32(-np.inf))
    for o in range(start // LANES * LANES, end, LANES):
        tiles = maximum(tiles, select_own(load(planes.scores, o), planes.group, o, np.int32(g)))
    return horizontal_max(tiles)


@inlined
def take_from_group(planes: Any, g: Any, number: Any) -> Any:
    """Lower the scores of the planes of group g by the number."""
    start, end, are_few = lanes_of_group(planes, g)
    if are_few:
        for lane in range(start, end):
            put(planes.scores, lane, at(planes.scores, lane) - number)
        return
    for o in range(start // LANES * LANES, end, LANES):
        tile = load(planes.scores, o)
        lower = add(tile, splat(-number))
        store(planes.scores, o, by_owner(lower, tile, planes.group, o, np.int32(g)))


@inlined
def total_of_group(planes: Any, g: Any) -> Any:
    """Sum of the scores of the planes of group g."""
    start, end, are_few = lanes_of_group(planes, g)
    total = np.float32(0)
    if are_few:
        for lane in range(start, end):
            total += at(planes.scores, lane)
        return total
    zeros = tiles = splat(total)
    for o in range(start // LANES * LANES, end, LANES):
        own = by_owner(load(planes.scores, o), zeros, planes.group, o, np.int32(g))
        tiles = add(tiles, own)
    return horizontal_sum(tiles)


# ---- all groups --------------------------------------------------------------------------


@inlined
def find_best(planes: Any, out: Any, k: Any) -> Any:
    """`out[k, g]` = highest score of group g, minus infinity where it has no planes."""
    if planes.n_planes > MAX_PLANES_BY_LANE // 2 * planes.n_groups:
        for g in range(planes.n_groups):
            out[k, g] = best_of_group(planes, g)
        return
    for g in range(planes.n_groups):
        out[k, g] = -np.inf
    for lane in range(planes.n_planes):
        g = at(planes.group, lane)
        out[k, g] = max(out[k, g], at(planes.scores, lane))


@inlined
def soften(planes: Any, out: Any, k: Any) -> Any:
    """`out[k, g]`, the highest score of group g, becomes the log of its sum of exp(score).

    The scores of the planes are used up: they become their exponentials.
    """
    for g in range(planes.n_groups):
        if np.isfinite(out[k, g]):  # infinity less infinity is not a number
            take_from_group(planes, g, out[k, g])
    for o in range(0, planes.n_tiles * LANES, LANES):
        store(planes.scores, o, exponential(load(planes.scores, o)))
    for g in range(planes.n_groups):
        total = total_of_group(planes, g)
        if total > 1:  # else the logarithm is 0, or there is nothing to add to infinity
            out[k, g] += np.log(total)


@inlined
def score_without_planes(planes: Any) -> Any:
    """Score of a group without planes.

    Unless it has a score of its own, it belongs to a class never seen or pruned away: it scores
    one below the lowest plane and below zero, so that it cannot win.
    """
    zeros = depths = splat(np.float32(0))
    for o in range(0, planes.n_tiles * LANES, LANES):
        live = by_owner(zeros, load(planes.scores, o), planes.group, o, np.int32(NO_PLANE))
        depths = maximum(depths, multiply(live, splat(np.float32(-1))))
    lowest = -horizontal_max(depths)
    return max(planes.empty_score, lowest - max(np.float32(1), np.float32(-1e-6) * lowest))


@inlined
def fill_empty(out: Any, k: Any, score: Any) -> Any:
    """Give a score to the groups without planes."""
    for g in range(out.shape[1]):
        if out[k, g] == -np.inf:
            out[k, g] = score


@inlined
def best_two(out: Any, k: Any) -> Any:
    """Lowest group with the highest score, that score, and the highest of all other groups."""
    winner, highest, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    for g in range(out.shape[1]):
        score = out[k, g]
        second = max(second, min(highest, score))
        winner = g if score > highest else winner
        highest = max(highest, score)
    return winner, highest, second


@inlined
def most_gained(planes: Any) -> Any:
    """No soft score, however it is rounded, is further above the group's best plane."""
    n_planes = 1
    for g in range(planes.n_groups):
        start, end, _ = lanes_of_group(planes, g)
        n_planes = max(n_planes, end - start)
    return np.float32(np.log(n_planes) + ROUNDING_PER_PLANE * n_planes)


# ---- rows --------------------------------------------------------------------------------


@jit
def best_planes(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k]` = the plane that scores highest on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes)
        out[k] = first_best_lane(planes)


@jit
def plane_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, j]` = score of plane j on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes)
        for j in range(scorer.n_planes):
            out[k, j] = at(planes.scores, j)


@jit
def group_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, g]` = best score of group g on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes)
        find_best(planes, out, k)
        fill_empty(out, k, score_without_planes(planes))


@jit
def soft_group_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, g]` = log of the sum of exp(score) over the planes of group g on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes)
        without = score_without_planes(planes)
        find_best(planes, out, k)
        soften(planes, out, k)
        fill_empty(out, k, without)


@jit
def soft_winners(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k]` = the first of the groups with the highest of `soft_group_scores`.

    Rows that are clear need no exponential: if the best plane of all leads those of all other
    groups by more than a group can gain, its group wins. The comparison adds what `soften` adds,
    or more, and more never rounds to less: it cannot decide otherwise than soft scores would.
    """
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    gain = most_gained(planes)
    scores = np.empty((1, planes.n_groups), np.float32)
    for k in range(order.size):
        score_and_scale(page, order[k], planes)
        find_best(planes, scores, 0)
        winner, leader, rival = best_two(scores, 0)
        if max(rival, planes.empty_score) + gain >= leader:
            without = score_without_planes(planes)
            soften(planes, scores, 0)
            fill_empty(scores, 0, without)
            winner, _, _ = best_two(scores, 0)
        out[k] = winner


@jit
def weighted_sums(scores: Any, weights: Any, n_units: Any, out: Any) -> None:
    """`out[k, e, g]` = weighted sum of the scores of the units of group g of estimator e.

    `scores` are [row, group of units]; units are added one after the other, so that a row is
    rounded in the same way in any batch.
    """
    for k in range(out.shape[0]):
        first = 0
        for e in range(out.shape[1]):
            for g in range(out.shape[2]):
                total = np.float32(0)
                for u in range(first, first + n_units):
                    total += weights[u] * scores[k, u]
                out[k, e, g] = total
                first += n_units
