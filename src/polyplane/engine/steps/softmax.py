"""Steps on the cross-entropy of classes whose score is the log-sum-exp of their planes.

Score  of class c  log sum over its planes k of exp(s W_k x), with s the sharpness (1 at first)
Loss   log(1 + exp(-lead)), the lead being the own class's score over the log-sum-exp of all others
Step   W <- (1 - eta alpha) W; a plane of the own class gets + eta (1 - p) r_k x and any other
       plane - eta (1 - p) r_k x, where p = 1 / (1 + exp(-lead)) and r_k is the plane's share in
       the log-sum-exp of its side. For s = 1 that is the gradient; with several classes (1 - p) r_k
       is the probability of a rival's plane.
       Rows with a lead above `enough` are left as they are, and so are planes whose share is below
       `floor` times the largest on their side: planes of a class share what is near to both and
       leave the rest to one of them. Rows that lead by more may rest (`resting.py`).
Rates  over n steps eta falls on a line to 0; in a stream, whose length nobody knows, as
       1 / sqrt(1 + t / 10,000).

W = c V: what shrinks is the number c, and V only takes sums of rows. c is known in closed form,
exp(-alpha times the sum of all eta), and whenever it has fallen by 1024 the factor is moved to V,
where it is exact. Rates are those of the last step that is a multiple of 16, counted from `start`,
so that they depend on no cut.
Both sides take their maximum off before anything is exponentiated: nothing over- or underflows.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.averaging import time_of
from polyplane.engine.planes.planes import MISTAKES, count_up
from polyplane.engine.planes.winners_and_ties import best_scores
from polyplane.engine.rows.storage import add_to_tile
from polyplane.engine.steps.resting import let_rest, rests
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.engine.tiles import (
    LANES,
    add,
    by_owner,
    exponential,
    horizontal_max,
    horizontal_sum,
    is_above,
    load,
    maximum,
    multiply,
    splat,
    store,
)

__all__ = ["HORIZON", "SoftmaxRule", "planes_scale", "softmax_epoch"]

STEPS_AT_A_RATE = 16
HORIZON = 10_000.0  # steps of a stream after which eta has fallen by sqrt(2)
LOG_OF_SHIFT = 10 * np.log(2.0)  # c between 1 and 1 / 1024
SHARPENING_PERIOD = 0.3, 0.8  # parts of the schedule between which the sharpness rises
NONE = np.float32(-np.inf)  # best score of a side without planes


class SoftmaxRule(NamedTuple):
    """Settings of the update."""

    step: float  # eta at the start
    alpha: float  # weight of |W|^2 / 2 beside the mean loss
    start: int  # count of visited rows at which the schedule begins
    n_steps: int  # of the schedule; 0 in a stream
    sharpness: float  # s at the end of the schedule
    enough: float  # lead at which a row is left as it is
    floor: float  # least share, of the largest on its side, of a plane that moves


@inlined
def shrinkage(rule: Any, t: Any) -> Any:
    """-log(c) after t steps of the schedule, and how many times 1024 has been moved to V."""
    if rule.n_steps == 0:
        passed = 2 * HORIZON * (np.sqrt(1 + t / HORIZON) - 1)
    else:
        passed = t - 0.5 * t * t / rule.n_steps
    total = rule.alpha * rule.step * passed
    n_shifts = np.floor(total / LOG_OF_SHIFT)
    return total - n_shifts * LOG_OF_SHIFT, n_shifts


@inlined
def rates(rule: Any, t: Any) -> Any:
    """c s and eta / c after t steps of the schedule."""
    shrunk = np.exp(-shrinkage(rule, t)[0])
    if rule.n_steps == 0:
        return np.float32(shrunk), rule.step / (shrunk * np.sqrt(1 + t / HORIZON))
    part = t / rule.n_steps
    rise = min(
        max((part - SHARPENING_PERIOD[0]) / (SHARPENING_PERIOD[1] - SHARPENING_PERIOD[0]), 0.0), 1.0
    )
    sharpness = 1 + (rule.sharpness - 1) * rise
    return np.float32(shrunk * sharpness), rule.step * max(1 - part, 0.0) / shrunk


@inlined
def new_shift(rule: Any, since: Any) -> Any:
    """Return the factor that c lost between two rates: a power of 1 / 1024."""
    before = shrinkage(rule, np.float64(max(since - STEPS_AT_A_RATE, 0)))[1]
    return np.float32(1024.0 ** (before - shrinkage(rule, np.float64(since))[1]))


@jit
def planes_scale(rule: Any, t: Any) -> Any:
    """c s, by which V is s W, when t rows have been visited."""
    since = (t - rule.start) // STEPS_AT_A_RATE * STEPS_AT_A_RATE
    scale = rates(rule, np.float64(since))[0]
    if since == t - rule.start:  # the step that moves this shift to V is still to come
        scale *= new_shift(rule, since)
    return scale


@inlined
def move_shifts(planes: Any, rule: Any, since: Any) -> Any:
    """Multiply V by what c has lost since the rates before, where that is a power of 1024."""
    shift = new_shift(rule, since)
    if shift < 1:
        factor = splat(shift)
        for o in range(0, planes.n_features * planes.stride, LANES):
            store(planes.sums, o, multiply(load(planes.sums, o), factor))
            if planes.keeps_average:
                store(planes.timed_sums, o, multiply(load(planes.timed_sums, o), factor))


@inlined
def rates_at(planes: Any, rule: Any, t: Any, is_first: Any, scale: Any, eta: Any) -> Any:
    """c s and eta / c of the step on row t: those before, unless they are due to change."""
    since = t - rule.start
    is_due = since % STEPS_AT_A_RATE == 0
    if is_due:
        move_shifts(planes, rule, since)
    if is_first or is_due:
        return rates(rule, np.float64(since // STEPS_AT_A_RATE * STEPS_AT_A_RATE))
    return scale, eta


@inlined
def take_shares(
    planes: Any, n_tiles: Any, label: Any, own: Any, rival: Any, scale: Any, floor: Any
) -> Any:
    """`shrunk_scores` = exp(scale (score - best of its side)); return their sums over each side.

    Those below `floor` become 0 after they are counted. `largest_shares` notes those of the row's
    class: a plane that never has much of any row of its class is not needed.
    """
    own_sum = rival_sum = zero = splat(np.float32(0))
    minus_own, minus_rival, scales = splat(-own), splat(-rival), splat(scale)
    for o in range(0, n_tiles * LANES, LANES):
        minus_best = by_owner(minus_own, minus_rival, planes.owner, o, label)
        share = exponential(multiply(scales, add(load(planes.scores, o), minus_best)))
        own_share = by_owner(share, zero, planes.owner, o, label)
        own_sum = add(own_sum, own_share)
        largest = maximum(own_share, load(planes.largest_shares, o))
        store(planes.largest_shares, o, largest)
        rival_sum = add(rival_sum, by_owner(zero, share, planes.owner, o, label))
        store(planes.shrunk_scores, o, multiply(share, is_above(share, floor)))
    return horizontal_sum(own_sum), horizontal_sum(rival_sum)


@inlined
def move_planes(
    page: Any,
    a: Any,
    b: Any,
    planes: Any,
    n_tiles: Any,
    label: Any,
    own_push: Any,
    rival_push: Any,
    time: Any,
) -> Any:
    """V_k += push share_k x, by the side's push, and the average."""
    own_pushes, rival_pushes = splat(own_push), splat(rival_push)
    for o in range(0, n_tiles * LANES, LANES):
        share = load(planes.shrunk_scores, o)
        if horizontal_max(share) > 0:
            push = by_owner(own_pushes, rival_pushes, planes.owner, o, label)
            factors = multiply(share, push)
            add_to_tile(page, a, b, planes.sums, planes.stride, o, factors)
            if planes.keeps_average:
                factors = multiply(factors, splat(time))
                add_to_tile(page, a, b, planes.timed_sums, planes.stride, o, factors)


@jit
def softmax_epoch(
    rows: Any, targets: Any, order: Any, state: Any, rule: Any, resting: Any, t: Any
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows."""
    page, goals, planes, tiles = opened(rows, targets, state)
    floor = np.float32(rule.floor)
    scale, eta = np.float32(1), 0.0
    for k in range(order.size):
        scale, eta = rates_at(planes, rule, t, k == 0, scale, eta)
        if rests(resting, order[k]):
            t += 1
            continue
        i, label, a, b = scored(page, goals, planes, tiles, order, k)
        own, rival = best_scores(planes.scores, planes.owner, tiles, label)
        if own > NONE and rival > NONE:
            own_sum, rival_sum = take_shares(planes, tiles, label, own, rival, scale, floor)
            lead = scale * (own - rival) + np.log(own_sum / rival_sum)
            let_rest(resting, i, lead, rule.enough)
            if lead <= 0:
                count_up(planes, MISTAKES)
            if lead < rule.enough:
                miss = 1 / (1 + np.exp(lead))
                push = np.float32(eta * miss * weight_of(goals, i))
                time = np.float32(time_of(t))
                move_planes(
                    page, a, b, planes, tiles, label, push / own_sum, -push / rival_sum, time
                )
        t += 1
    return t
