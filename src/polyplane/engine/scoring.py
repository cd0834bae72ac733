"""Scores of a finished model for many rows.

Lanes of a finished model are ordered by group, then by age. A group is a set of planes whose best
one counts: those of a class, or of one side of a problem where models of fewer classes stand side
by side. In a model of one group per class the first best lane is therefore that of the lowest
class and its oldest plane: `best_planes` and the largest class score agree.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes import NO_PLANE
from polyplane.engine.rows import open_row, page_of, score_planes
from polyplane.engine.tiles import (
    LANES,
    at,
    horizontal_max,
    lane_of,
    load,
    maximum,
    multiply,
    span,
    splat,
    store,
)

__all__ = ["Scorer", "best_planes", "group_scores", "plane_scores"]


class Scorer(NamedTuple):
    """Planes for scoring only; `scores` is scratch, so each thread has a scorer of its own."""

    sums: Any  # [feature, lane] float32; feature 0 is the constant
    idle: Any  # [lane] float32: 0 where a plane is, minus infinity elsewhere
    group: Any  # [lane] int32
    scales: Any  # [lane] float32: W = scale * sums, 1 where there is no plane
    scores: Any  # [lane] float32
    n_planes: Any
    empty_score: Any  # float32: of a group without planes; minus infinity: it must not win


class ScorerSpans(NamedTuple):
    """What `score_planes` asks for."""

    sums: Any
    idle: Any
    scales: Any
    scores: Any
    stride: Any


@inlined
def spans_of_scorer(scorer: Any) -> Any:
    """The scorer as a loop sees it."""
    return ScorerSpans(
        span(scorer.sums),
        span(scorer.idle),
        span(scorer.scales),
        span(scorer.scores),
        scorer.group.size,
    )


@inlined
def score_and_scale(page: Any, i: Any, planes: Any, n_planes: Any) -> Any:
    """Scores of all planes on row i; return how many tiles they fill.

    Sums are scaled after they are made, because sums of integer-valued rows are exact.
    """
    tiles = (n_planes + LANES - 1) // LANES
    a, b, ahead = open_row(page, i, i)
    score_planes(page, a, b, ahead, planes, tiles)
    for o in range(0, tiles * LANES, LANES):
        store(planes.scores, o, multiply(load(planes.scores, o), load(planes.scales, o)))
    return tiles


@inlined
def first_best_lane(planes: Any, tiles: Any) -> Any:
    """Lowest lane with the highest score, NO_PLANE where there is none."""
    best = splat(np.float32(-np.inf))
    for o in range(0, tiles * LANES, LANES):
        best = maximum(best, load(planes.scores, o))
    score = horizontal_max(best)
    for o in range(0, tiles * LANES, LANES):
        lane = lane_of(load(planes.scores, o), score)
        if lane < LANES:
            return o + lane
    return NO_PLANE


@jit
def best_planes(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k]` = the plane that scores highest on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        tiles = score_and_scale(page, order[k], planes, scorer.n_planes)
        out[k] = first_best_lane(planes, tiles)


@jit
def plane_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, j]` = score of plane j on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes, scorer.n_planes)
        for j in range(scorer.n_planes):
            out[k, j] = at(planes.scores, j)


@jit
def group_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, g]` = best score of group g on row `order[k]`.

    A group without planes, unless it has a score of its own, belongs to a class never seen or
    pruned away: it scores one below the lowest plane and below zero, so that it cannot win.
    """
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        score_and_scale(page, order[k], planes, scorer.n_planes)
        out[k, :] = -np.inf
        lowest = np.float32(0)
        for j in range(scorer.n_planes):
            score = at(planes.scores, j)
            lowest = min(lowest, score)
            out[k, scorer.group[j]] = max(out[k, scorer.group[j]], score)
        below_all = lowest - max(np.float32(1), np.float32(-1e-6) * lowest)
        for g in range(out.shape[1]):
            if out[k, g] == -np.inf:
                out[k, g] = max(scorer.empty_score, below_all)
