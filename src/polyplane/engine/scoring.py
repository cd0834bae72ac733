"""Scores of a finished model for many rows.

Lanes of a finished model are ordered by class, then by age, so that the first best lane is that
of the lowest class and its oldest plane: `best_planes` and the largest class score agree.
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
)

__all__ = ["Scorer", "best_planes", "class_scores", "plane_scores"]


class Scorer(NamedTuple):
    """Planes for scoring only; `scores` is scratch, so each thread has a scorer of its own."""

    sums: Any  # [feature, lane] float32; feature 0 is the constant
    idle: Any  # [lane] float32: 0 where a plane is, minus infinity elsewhere
    owner: Any  # [lane] int32: class of the plane
    scores: Any  # [lane] float32
    n_planes: Any
    scale: Any  # float32: W = scale * sums


class ScorerSpans(NamedTuple):
    """What `score_planes` asks for."""

    sums: Any
    idle: Any
    scores: Any
    stride: Any


@inlined
def spans_of_scorer(scorer: Any) -> Any:
    """The scorer as a loop sees it."""
    return ScorerSpans(span(scorer.sums), span(scorer.idle), span(scorer.scores), scorer.owner.size)


@inlined
def count_tiles(n_planes: Any) -> Any:
    """Tiles that so many planes fill."""
    return (n_planes + LANES - 1) // LANES


@inlined
def first_best_lane(planes: Any, tiles: Any, scale: Any) -> Any:
    """Lowest lane with the highest score, NO_PLANE where there is none.

    Scaled scores are compared, as everywhere: scaling can round two scores to a tie.
    """
    best = splat(np.float32(-np.inf))
    for o in range(0, tiles * LANES, LANES):
        best = maximum(best, multiply(load(planes.scores, o), splat(scale)))
    score = horizontal_max(best)
    for o in range(0, tiles * LANES, LANES):
        lane = lane_of(multiply(load(planes.scores, o), splat(scale)), score)
        if lane < LANES:
            return o + lane
    return NO_PLANE


@jit
def best_planes(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k]` = the plane that decides row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    tiles = count_tiles(scorer.n_planes)
    for k in range(order.size):
        a, b, ahead = open_row(page, order[k], order[k])
        score_planes(page, a, b, ahead, planes, tiles)
        out[k] = first_best_lane(planes, tiles, scorer.scale)


@jit
def plane_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, j]` = score of plane j on row `order[k]`."""
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        a, b, ahead = open_row(page, order[k], order[k])
        score_planes(page, a, b, ahead, planes, count_tiles(scorer.n_planes))
        for j in range(scorer.n_planes):
            out[k, j] = scorer.scale * at(planes.scores, j)


@jit
def class_scores(rows: Any, order: Any, scorer: Any, out: Any) -> None:
    """`out[k, c]` = best score of class c on row `order[k]`.

    A class without planes, which can only be one never seen or pruned away, scores one below
    the lowest plane and below zero, so that it cannot win.
    """
    page = page_of(rows)
    planes = spans_of_scorer(scorer)
    for k in range(order.size):
        a, b, ahead = open_row(page, order[k], order[k])
        score_planes(page, a, b, ahead, planes, count_tiles(scorer.n_planes))
        out[k, :] = -np.inf
        lowest = np.float32(0)
        for j in range(scorer.n_planes):
            score = scorer.scale * at(planes.scores, j)
            lowest = min(lowest, score)
            out[k, scorer.owner[j]] = max(out[k, scorer.owner[j]], score)
        for c in range(out.shape[1]):
            if out[k, c] == -np.inf:
                out[k, c] = lowest - max(np.float32(1), np.float32(-1e-6) * lowest)
