"""Steps on squared hinges of planes, one a class, each against all others: for texts.

Loss   sum over planes k of max(0, 1 - y_k W_k x)^2 / 2, y_k being 1 for the row's class, else -1
Step   W <- (1 - eta alpha) W, then W_k += eta y_k max(0, 1 - y_k W_k x) x: the gradient.

On long rows of few entries and many classes this errs less than cross-entropy, whose steps ask all
planes for probabilities. Rates, and how W shrinks, are those of `softmax.py`.
"""

from typing import Any

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import MISTAKES, count_up
from polyplane.engine.planes.winners_and_ties import best_scores
from polyplane.engine.rows.storage import add_to_tile
from polyplane.engine.steps.softmax import rates_at
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.engine.tiles import (
    LANES,
    add,
    by_owner,
    horizontal_max,
    load,
    maximum,
    multiply,
    splat,
)

__all__ = ["squared_hinge_epoch"]


@inlined
def move_planes(
    page: Any, a: Any, b: Any, planes: Any, n_tiles: Any, label: Any, scale: Any, push: Any
) -> Any:
    """V_k += push y_k slack_k x; idle lanes score minus infinity and have no slack."""
    one, zero = splat(np.float32(1)), splat(np.float32(0))
    minus_one, scales, pushes = splat(np.float32(-1)), splat(scale), splat(push)
    for o in range(0, n_tiles * LANES, LANES):
        signs = by_owner(one, minus_one, planes.owner, o, label)
        margins = multiply(signs, multiply(scales, load(planes.scores, o)))
        slacks = maximum(add(one, multiply(minus_one, margins)), zero)
        if horizontal_max(slacks) > 0:
            factors = multiply(multiply(slacks, signs), pushes)
            add_to_tile(page, a, b, planes.sums, planes.stride, o, factors)


@jit
def squared_hinge_epoch(rows: Any, targets: Any, order: Any, state: Any, rule: Any, t: Any) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows."""
    page, goals, planes, tiles = opened(rows, targets, state)
    scale, eta = np.float32(1), 0.0
    for k in range(order.size):
        scale, eta = rates_at(planes, rule, t, k == 0, scale, eta)
        i, label, a, b = scored(page, goals, planes, tiles, order, k)
        own, rival = best_scores(planes.scores, planes.owner, tiles, label)
        if own <= rival:
            count_up(planes, MISTAKES)
        push = np.float32(eta * weight_of(goals, i))
        move_planes(page, a, b, planes, tiles, label, scale, push)
        t += 1
    return t
