"""Contribution of each column of a row to the lead of the winner over the runner-up.

Lead     the difference of two scores, each the weighted sum over units, and the mean over
         estimators, of what groups of planes score; where models are of a class against the rest,
         the score is itself the difference of two such sums. So the lead is a sum over groups of
         gain * score.
Shares   a group scores g. If it is its best plane's score, that plane has all of it. If it is the
         log of a sum of exponentials, plane p has the share exp(score_p - g).
Columns  plane p gives w_pf x_f to feature f, and a column what its features get: a product of two
         columns gives half to each. The lead is then, exactly, the sum over columns of
         gain * share_p * w_pf * x_f, and a base: gain * (g - share_p (score_p - constant_p)). Of a
         best plane that is its constant; of soft ones also the entropy of their shares, in which
         g exceeds the mean of its planes.
Typical  what plane p gives to a column in the mean over some rows may be taken from the column and
         added to the base, so that columns tell how a row differs from those.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.contributions import give, page_of_target, take_typical
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.planes.scoring import (
    fill_empty,
    find_best,
    lanes_of_group,
    score_without_planes,
    soften,
    spans_of_scorer,
    total_of_group,
)
from polyplane.engine.rows.storage import open_row, page_of, score_planes, value_at
from polyplane.engine.tiles import (
    LANES,
    at,
    by_owner,
    fma,
    fma_tiles,
    horizontal_sum,
    load,
    multiply,
    put,
    span,
    splat,
    store,
)

__all__ = [
    "Explained",
    "Parts",
    "Sides",
    "explain_best",
    "explain_soft",
    "mean_of_columns",
    "parts_of",
]


class Sides(NamedTuple):
    """Groups that speak for and against each choice: classes, or sides of pairs of them."""

    plus: Any  # [choice] int32: of the groups of one estimator
    minus: Any  # [choice] int32: the same, -1 where none speaks against it
    n_groups: Any  # of one estimator, each of so many units
    n_units: Any
    n_estimators: Any
    weights: Any  # [unit of a group of an estimator] float32: factors of scores
    given: Any  # [row, 2] int32: the groups to compare; of no rows where the best two choices are


class Explained(NamedTuple):
    """Results by row, besides contributions."""

    base: Any  # [row] float64
    choices: Any  # [row, 2] int32: the winner and the runner-up
    planes: Any  # [row, 2] int32: the best plane of each


class Parts(NamedTuple):
    """Room for the planes that have a part in the lead of one row."""

    lanes: Any  # [plane] int64: of best planes
    factors: Any  # [lane] float32: gain * share * scale, 0 of other planes between rows
    tiles: Any  # [tile] int64: the first lanes of tiles in which some of them are
    raw: Any  # [lane] float32: scores of planes, which `soften` uses up
    groups: Any  # [1, group] float32: scores
    bests: Any  # [group] float32: scores of their best planes
    means: Any  # [group of one estimator] float32


def parts_of(scorer: Any, sides: Any) -> Parts:
    """Room for one thread."""
    room, n_groups = scorer.group.size, scorer.group_starts.size - 1
    return Parts(
        np.empty(room, np.int64),
        np.zeros(room, np.float32),
        np.empty(room // LANES, np.int64),
        np.empty(room, np.float32),
        np.empty((1, n_groups), np.float32),
        np.empty(n_groups, np.float32),
        np.empty(sides.n_groups, np.float32),
    )


class SideSpans(NamedTuple):
    """Sides as spans, for use inside a loop: arrays handed on would be counted each time."""

    plus: Any
    minus: Any
    n_choices: Any
    n_groups: Any
    n_units: Any
    n_estimators: Any
    weights: Any


class PartSpans(NamedTuple):
    """Parts as spans."""

    lanes: Any
    factors: Any
    tiles: Any
    raw: Any
    scores: Any
    bests: Any
    means: Any


@inlined
def _spans_of_sides(sides: Any) -> Any:
    return SideSpans(
        span(sides.plus),
        span(sides.minus),
        sides.plus.size,
        sides.n_groups,
        sides.n_units,
        sides.n_estimators,
        span(sides.weights),
    )


@inlined
def _spans_of_parts(parts: Any) -> Any:
    return PartSpans(
        span(parts.lanes),
        span(parts.factors),
        span(parts.tiles),
        span(parts.raw),
        span(parts.groups),
        span(parts.bests),
        span(parts.means),
    )


# ---- who wins ----------------------------------------------------------------------------


@inlined
def _take_means(sides: Any, parts: Any) -> Any:
    """Units added up one after the other, then estimators: rounded as class scores are."""
    for group in range(sides.n_groups):
        total = np.float32(0)
        for e in range(sides.n_estimators):
            first = (e * sides.n_groups + group) * sides.n_units
            of_units = at(sides.weights, first) * at(parts.scores, first)
            for unit in range(first + 1, first + sides.n_units):
                of_units += at(sides.weights, unit) * at(parts.scores, unit)
            total += of_units
        put(parts.means, group, total / np.float32(sides.n_estimators))


@inlined
def _best_choices(sides: Any, parts: Any) -> Any:
    """The first choice with the highest score, and the first of the highest of the others."""
    is_one_model = sides.n_units == 1 and sides.n_estimators == 1
    if not is_one_model:
        _take_means(sides, parts)
    means = parts.scores if is_one_model else parts.means
    winner, runner_up = -1, -1
    highest = second = np.float32(0)
    for choice in range(sides.n_choices):
        score = at(means, at(sides.plus, choice))
        minus = at(sides.minus, choice)
        if minus >= 0:
            score -= at(means, minus)
        if winner < 0 or score > highest:
            runner_up, second = winner, highest
            winner, highest = choice, score
        elif runner_up < 0 or score > second:
            runner_up, second = choice, score
    return winner, runner_up


# ---- planes ------------------------------------------------------------------------------


@inlined
def _lane_of_best(planes: Any, parts: Any, start: Any, g: Any) -> Any:
    """The first plane of group g, which starts there, that has its highest score."""
    lane, raw, best = start, parts.raw, at(parts.bests, g)
    while at(raw, lane) != best:
        lane += 1
    return lane


@inlined
def _without_constant(planes: Any, constant: Any, o: Any, parts: Any) -> Any:
    """Scores of the tile at lane o, less what the constant gives to them."""
    of_constant = multiply(load(planes.scales, o), load(planes.sums, o))
    return fma(load(parts.raw, o), -constant, of_constant)


@inlined
def _mark_tile(parts: Any, n_tiles: Any, o: Any) -> Any:
    """Some planes of the tile at lane o have a part; return how many tiles there are."""
    t = n_tiles - 1
    while t >= 0 and at(parts.tiles, t) != o:
        t -= 1
    if t < 0:
        put(parts.tiles, n_tiles, o)
    return n_tiles + (t < 0)


@inlined
def _share_out(
    planes: Any, constant: Any, parts: Any, n: Any, g: Any, start: Any, end: Any, gain: Any
) -> Any:
    """Let planes of group g have a part, each its share; return how many tiles, and the sum."""
    zeros = sums = splat(np.float32(0))
    part = splat(gain / total_of_group(planes, g))  # its scores are exponentials by now
    factors = parts.factors
    for o in range(start // LANES * LANES, end, LANES):
        shares = by_owner(multiply(load(planes.scores, o), part), zeros, planes.group, o, g)
        scores = _without_constant(planes, constant, o, parts)
        sums = fma_tiles(sums, shares, by_owner(scores, zeros, planes.group, o, g))
        n = _mark_tile(parts, n, o)
        store(factors, o, fma_tiles(load(factors, o), shares, load(planes.scales, o)))
    return n, horizontal_sum(sums)


@inlined
def _parts_of_unit(
    planes: Any, constant: Any, parts: Any, n: Any, g: Any, gain: Any, is_soft: Any
) -> Any:
    """Let planes have a part in the score of group g.

    Return how many there are then, of tiles if it is soft, the base, and the best of the group.
    """
    start, end, _ = lanes_of_group(planes, g)
    score = at(parts.scores, g)
    base = np.float64(gain) * score
    if start == end or not np.isfinite(score):
        return n, base, NO_PLANE
    best = _lane_of_best(planes, parts, start, g)
    if is_soft:
        n, more = _share_out(planes, constant, parts, n, np.int32(g), start, end, gain)
        return n, base - more, best
    scale = at(planes.scales, best)
    put(parts.lanes, n, best)
    put(parts.factors, best, gain * scale)
    return n + 1, np.float64(gain) * (scale * constant * at(planes.sums, best)), best


@inlined
def _parts_of_group(
    sides: Any, planes: Any, constant: Any, parts: Any, n: Any, group: Any, sign: Any, is_soft: Any
) -> Any:
    """Add the parts of a group over all its units and estimators."""
    gain = np.float32(sign) / np.float32(sides.n_estimators)
    base, best, raw = 0.0, NO_PLANE, parts.raw
    for e in range(sides.n_estimators):
        for unit in range(sides.n_units):
            g = (e * sides.n_groups + group) * sides.n_units + unit
            weight = at(sides.weights, g)
            n, more, lane = _parts_of_unit(planes, constant, parts, n, g, weight * gain, is_soft)
            base += more
            if (
                lane != NO_PLANE
                and weight > 0
                and (best == NO_PLANE or at(raw, lane) > at(raw, best))
            ):
                best = lane
    return n, base, best


@inlined
def _parts_of_choice(
    sides: Any, planes: Any, constant: Any, parts: Any, n: Any, choice: Any, sign: Any, is_soft: Any
) -> Any:
    """Add the parts of all groups for or against a choice; the best plane is one that is for it."""
    plus, minus = at(sides.plus, choice), at(sides.minus, choice)
    n, base, best = _parts_of_group(sides, planes, constant, parts, n, plus, sign, is_soft)
    if minus >= 0:
        n, more, _ = _parts_of_group(sides, planes, constant, parts, n, minus, -sign, is_soft)
        base += more
    return n, base, best


# ---- columns -----------------------------------------------------------------------------


@inlined
def _give_of_lanes(
    page: Any, a: Any, b: Any, planes: Any, parts: Any, n: Any, target: Any, k: Any
) -> Any:
    """Add the contributions of n planes to the opened row's columns; return the typical part."""
    lanes, factors = parts.lanes, parts.factors
    if n == 2:
        plus, minus = at(lanes, 0), at(lanes, 1)
        of_plus, of_minus = at(factors, plus), at(factors, minus)
        for j in range(a, b):
            feature = np.int64(at(page.index, j))
            line = (feature + 1) * planes.stride
            weight = of_plus * at(planes.sums, line + plus)
            weight += of_minus * at(planes.sums, line + minus)
            give(target, k, j, feature, weight * value_at(page, j))
    else:
        for j in range(a, b):
            feature = np.int64(at(page.index, j))
            line = (feature + 1) * planes.stride
            weight = np.float32(0)
            for m in range(n):
                weight += at(factors, at(lanes, m)) * at(planes.sums, line + at(lanes, m))
            give(target, k, j, feature, weight * value_at(page, j))
    base = 0.0
    for m in range(n):
        base += take_typical(target, at(lanes, m), at(factors, at(lanes, m)), k)
        put(factors, at(lanes, m), np.float32(0))
    return base


@inlined
def _give_of_tiles(
    page: Any, a: Any, b: Any, planes: Any, parts: Any, n: Any, target: Any, k: Any
) -> Any:
    """Give each column the parts of the planes in n tiles."""
    factors, tiles, zeros = parts.factors, parts.tiles, splat(np.float32(0))
    for j in range(a, b):
        feature = np.int64(at(page.index, j))
        line = (feature + 1) * planes.stride
        weights = zeros
        for t in range(n):
            o = at(tiles, t)
            weights = fma_tiles(weights, load(factors, o), load(planes.sums, line + o))
        give(target, k, j, feature, horizontal_sum(weights) * value_at(page, j))
    base = 0.0
    for t in range(n):
        o = at(tiles, t)
        for lane in range(o, o + LANES):
            if at(factors, lane) != 0:
                base += take_typical(target, lane, at(factors, lane), k)
        store(factors, o, zeros)
    return base


@inlined
def _score_groups(
    page: Any, a: Any, b: Any, ahead: Any, planes: Any, parts: Any, out: Any, is_soft: Any
) -> Any:
    """Scores of groups, `out[0, g]`, and of their best planes on the opened row."""
    score_planes(page, a, b, ahead, planes, planes.n_tiles)
    for o in range(0, planes.n_tiles * LANES, LANES):
        scores = multiply(load(planes.scores, o), load(planes.scales, o))
        store(planes.scores, o, scores)
        store(parts.raw, o, scores)
    without = score_without_planes(planes)
    find_best(planes, out, 0)
    for g in range(planes.n_groups):
        put(parts.bests, g, at(parts.scores, g))
    if is_soft:
        soften(planes, out, 0)
    fill_empty(out, 0, without)


@inlined
def _explain(
    rows: Any, order: Any, scorer: Any, chosen: Any, room: Any, values: Any, out: Any, is_soft: Any
) -> Any:
    page, planes, constant = page_of(rows), spans_of_scorer(scorer), rows.constant
    sides, parts, target = _spans_of_sides(chosen), _spans_of_parts(room), page_of_target(values)
    groups, given, is_given = room.groups, span(chosen.given), chosen.given.shape[0] > 0
    choices, of_planes, bases = span(out.choices), span(out.planes), span(out.base)
    none, plus, minus = np.int64(0), np.float32(1), np.float32(-1)  # 0, 1, -1 are a type each
    for k in range(order.size):
        a, b, ahead = open_row(page, order[k], order[k])
        _score_groups(page, a, b, ahead, planes, parts, groups, is_soft)
        if is_given:
            one, two = at(given, 2 * k), at(given, 2 * k + 1)
            n, base, best = _parts_of_group(
                sides, planes, constant, parts, none, one, plus, is_soft
            )
            n, more, second = _parts_of_group(
                sides, planes, constant, parts, n, two, minus, is_soft
            )
        else:
            first, other = _best_choices(sides, parts)
            put(choices, 2 * k, np.int32(first))
            put(choices, 2 * k + 1, np.int32(other))
            n, base, best = _parts_of_choice(
                sides, planes, constant, parts, none, first, plus, is_soft
            )
            n, more, second = _parts_of_choice(
                sides, planes, constant, parts, n, other, minus, is_soft
            )
        put(of_planes, 2 * k, np.int32(best))
        put(of_planes, 2 * k + 1, np.int32(second))
        if is_soft:
            typical = _give_of_tiles(page, a, b, planes, parts, n, target, k)
        else:
            typical = _give_of_lanes(page, a, b, planes, parts, n, target, k)
        put(bases, k, base + more + typical)


# ---- rows --------------------------------------------------------------------------------


@jit
def explain_best(
    rows: Any, order: Any, scorer: Any, sides: Any, parts: Any, target: Any, out: Any
) -> None:
    """Fill `out` for the rows of `order`, where a group scores what its best plane scores."""
    _explain(rows, order, scorer, sides, parts, target, out, False)


@jit
def explain_soft(
    rows: Any, order: Any, scorer: Any, sides: Any, parts: Any, target: Any, out: Any
) -> None:
    """Explain rows where a group scores the log of the sum of exp(score) over its planes."""
    _explain(rows, order, scorer, sides, parts, target, out, True)


@jit
def mean_of_columns(
    rows: Any, order: Any, n_rows: Any, sums: Any, first: Any, second: Any, out: Any
) -> None:
    """`out[lane, column]` += what the lane's sums give to the column, by the count of all rows."""
    page = page_of(rows)
    for k in range(order.size):
        a, b, _ = open_row(page, order[k], order[k])
        for j in range(a, b):
            feature = at(page.index, j)
            half = np.float64(value_at(page, j)) / (2 * n_rows)
            for lane in range(sums.shape[1]):
                part = half * sums[feature + 1, lane]
                out[lane, first[feature]] += part
                out[lane, second[feature]] += part
