"""Shrinkage of SAMM: W is read off the sums by soft-thresholding of planes and of components.

Dual averaging minimises  alpha/2 |W|^2 + mu sum_j |w_j| + l1 |W|_1 - <Theta/t, W>,  where t rows
have been visited. With l1 = 0 the solution is
    alpha t w_j = Theta_j max(0, 1 - mu t / |Theta_j|),
so that a plane lives only while the length of its sum grows faster than mu a step; until then
it is dormant. With mu = 0 it is alpha t w_j = S(Theta_j, l1 t), S(v, h) = v - clamp(v, -h, h).
With both terms |S(Theta_j)| would take the place of |Theta_j|: we keep the latter, since the
former changes with every step at all components.
Paper: Sparse Adaptive Multi-hyperplane Machine (PAKDD 2016), sections 4.1 and 4.2.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import chosen_by_type, inlined
from polyplane.engine.planes.planes import LANES_USED
from polyplane.engine.rows.storage import score_planes, value_at
from polyplane.engine.tiles import LANES, add, at, fma, load, maximum, multiply, splat, store

__all__ = ["HingeRule", "SparseRule", "plane_to_update", "score_by_rule", "zero_wins"]


class HingeRule(NamedTuple):
    """Settings of the update."""

    alpha: float  # lambda of the papers
    grows_rivals: bool  # whether a rival's zero plane may become a plane
    clone_probability: float = 0.0  # GAMM: p at the start
    clone_decay: float = 1.0  # GAMM: factor of p at each cloning


class SparseRule(NamedTuple):
    """Settings of the update of SAMM: a type of its own, which others need not compile."""

    alpha: float
    grows_rivals: bool
    mu: float  # weight of the lengths of planes
    l1: float = 0.0  # weight of the absolute components of planes
    clone_probability: float = 0.0
    clone_decay: float = 1.0


@inlined
def soft_threshold(tile: Any, minus_h: Any) -> Any:
    """S(v, h) = v - clamp(v, -h, h) = v + max(-max(v, -h), -h)."""
    from_below = multiply(splat(np.float32(-1)), maximum(tile, minus_h))
    return add(tile, maximum(from_below, minus_h))


@inlined
def score_thresholded_planes(page: Any, a: Any, b: Any, planes: Any, tiles: Any, h: Any) -> Any:
    """`scores` = Theta x, which norms need, and `shrunk_scores` = S(Theta, h) x."""
    stride, minus_h = planes.stride, splat(np.float32(-h))
    for o in range(0, tiles * LANES, LANES):
        idle, tile = load(planes.idle, o), load(planes.sums, o)  # feature 0 is the constant
        score = fma(idle, page.constant, tile)
        shrunk = fma(idle, page.constant, soft_threshold(tile, minus_h))
        for j in range(a, b):
            tile = load(planes.sums, at(page.index, j) * stride + stride + o)
            score = fma(score, value_at(page, j), tile)
            shrunk = fma(shrunk, value_at(page, j), soft_threshold(tile, minus_h))
        store(planes.scores, o, score)
        store(planes.shrunk_scores, o, shrunk)


@inlined
def shrink_scores(planes: Any, scores: Any, tiles: Any, threshold: Any) -> Any:
    """`shrunk_scores` = scores times max(0, 1 - threshold / |Theta|)."""
    one, zero = splat(np.float32(1)), splat(np.float32(0))
    for o in range(0, tiles * LANES, LANES):
        factor = fma(one, np.float32(-threshold), load(planes.inverse_lengths, o))
        store(planes.shrunk_scores, o, multiply(load(scores, o), maximum(factor, zero)))


@inlined
def dormant_plane(planes: Any, label: Any, threshold: Any, otherwise: Any) -> Any:
    """Return the dormant plane of a class with the largest Theta x > 0, or `otherwise`."""
    found, most = otherwise, np.float32(0)
    for lane in range(at(planes.counts, LANES_USED)):
        is_dormant = np.float32(threshold) * at(planes.inverse_lengths, lane) >= 1
        if is_dormant and at(planes.owner, lane) == label and at(planes.scores, lane) > most:
            found, most = lane, at(planes.scores, lane)
    return found


# ---- what the loop asks of its rule: plain sums, or shrunk ones ------------------------------


def _score_plain(
    rule: Any, page: Any, a: Any, b: Any, ahead: Any, planes: Any, tiles: Any, t: Any
) -> Any:
    score_planes(page, a, b, ahead, planes, tiles)
    return planes.scores


def _score_shrunk(
    rule: Any, page: Any, a: Any, b: Any, ahead: Any, planes: Any, tiles: Any, t: Any
) -> Any:
    if rule.l1 > 0:
        score_thresholded_planes(page, a, b, planes, tiles, rule.l1 * t)
    else:
        score_planes(page, a, b, ahead, planes, tiles)
    if rule.mu > 0 or rule.l1 == 0:
        scores = planes.shrunk_scores if rule.l1 > 0 else planes.scores
        shrink_scores(planes, scores, tiles, rule.mu * t)
    return planes.shrunk_scores


def _is_below_zero(rule: Any, score: Any) -> Any:
    return score < 0


def _is_not_above_zero(rule: Any, score: Any) -> Any:
    return score < 0 or (rule.mu > 0 and score == 0)


def _keep_plane(rule: Any, planes: Any, label: Any, best: Any, own: Any, t: Any) -> Any:
    return own


def _wake_plane(rule: Any, planes: Any, label: Any, best: Any, own: Any, t: Any) -> Any:
    if rule.mu > 0 and best <= 0:
        return dormant_plane(planes, label, rule.mu * t, own)
    return own


_BODIES: dict[str, dict[type, Any]] = {
    "score_by_rule": {HingeRule: _score_plain, SparseRule: _score_shrunk},
    "zero_wins": {HingeRule: _is_below_zero, SparseRule: _is_not_above_zero},
    "plane_to_update": {HingeRule: _keep_plane, SparseRule: _wake_plane},
}


def score_by_rule(
    rule: Any, page: Any, a: Any, b: Any, ahead: Any, planes: Any, tiles: Any, t: Any
) -> Any:
    """Score all planes; return the scores alpha t W x. `planes.scores` is Theta x, for norms.

    Both are minus infinity where a lane is idle.
    """
    return _BODIES["score_by_rule"][type(rule)](rule, page, a, b, ahead, planes, tiles, t)


def zero_wins(rule: Any, score: Any) -> Any:
    """Return True if a zero plane wins over this score."""
    return _BODIES["zero_wins"][type(rule)](rule, score)


def plane_to_update(rule: Any, planes: Any, label: Any, best: Any, own: Any, t: Any) -> Any:
    """The own plane `own`, which scores `best`, or a dormant plane that takes its place."""
    return _BODIES["plane_to_update"][type(rule)](rule, planes, label, best, own, t)


for _word in (score_by_rule, zero_wins, plane_to_update):
    chosen_by_type(_word, _BODIES[_word.__name__])
