"""LaSVM: an online kernel SVM by sequential direction search.

Problem     maximise  sum_i y_i a_i - 1/2 sum_ij a_i a_j K(x_i, x_j)
            with sum_i a_i = 0 and a_i between 0 and C y_i: the SVM with linear slack
Algorithm   PROCESS a fresh row, then REPROCESS; in the end REPROCESS until no pair violates by
            more than tau = `tol` (section 3.2: PROCESS, REPROCESS, online iterations, finishing).
Symbols     coef: a_i, signed; low, high: A_i = min(0, C y_i), B_i = max(0, C y_i)
            scores: the gradients g_i = y_i - sum_j a_j K(x_i, x_j) of all vectors
            top, bottom: i = argmax g with a < B and j = argmin g with a > A; b = (g_i + g_j) / 2
Departures  (1) a row whose pair does not violate is not added at all, instead of staying with a
            zero coefficient until the next REPROCESS, as in the authors' program;
            (2) S is seeded with the first row of each class; until both are there, other rows are
            passed by;
            (3) a row's bound is C times its weight;
            (4) with a `budget`, the smallest coefficient above it is handed to the vector of the
            steepest gradient that has room, or dropped where none has.
Paper       Bordes, Ertekin, Weston, Bottou (JMLR 6, 2005),
            https://www.jmlr.org/papers/v6/bordes05a.html
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined, jit
from polyplane.engine.support.gram_cache import add_line, has_line, keep_line, touch_line
from polyplane.engine.support.support_set import (
    ACTIVE,
    MISTAKES,
    NOT_THERE,
    OF_SIDE,
    PART,
    SLOTS,
    WANTED,
    SupportSet,
    count,
    empty_set,
    is_full,
    new_vector,
    remove_vector,
    slot_of,
    spans_of_set,
    spans_of_visit,
    weighted_sum,
)
from polyplane.engine.tiles import at, put
from polyplane.estimator.kernel_classifier import CachedKernelClassifier
from polyplane.estimator.parameters import is_flag, parameter, positive, register, whole
from polyplane.training.job import Settings
from polyplane.training.kernels.algorithm import NO_COINS, KernelAlgorithm, Stretch
from polyplane.training.kernels.lines import bring_lines, no_visit
from polyplane.training.kernels.state import KernelModel, KernelTraining, one_sided

__all__ = ["LASVM", "LaSVMClassifier", "lasvm_finish", "lasvm_walk"]

TOP, BOTTOM, IDLE = 0, 1, 2  # of the totals: slots, or NOT_THERE; vectors of coefficient 0
MIN_RELATIVE_CURVATURE = 1e-10  # of K(x, x): two vectors that are one
STEPS_AT_ONCE = 10_000  # of finishing, between looks at Ctrl-C
LINES_FETCHED_AHEAD = 32  # vectors at either end whose lines are brought along


class LaSVMRule(NamedTuple):
    """Settings of the steps."""

    C: Any
    tol: Any
    n_reprocess: Any
    budget: Any  # 0: none


@inlined
def extreme(held: Any, which: Any) -> Any:
    """The slot at the top or at the bottom, or NOT_THERE."""
    return np.int64(at(held.totals, which))


@inlined
def find_extremes(held: Any, i: Any, j: Any, step: Any) -> Any:
    """Where the gradient is largest of those that may rise, and smallest of those that may fall.

    On the way, unless the step is 0, every gradient follows a_i += lambda, a_j -= lambda.
    """
    top = bottom = NOT_THERE
    most, least, n_idle = -np.inf, np.inf, 0
    if step != 0:
        start_i, start_j = touch_line(held, i), touch_line(held, j)
    else:
        start_i = start_j = 0
    for s in range(at(held.counts, SLOTS)):
        coef, score = at(held.coef, s), at(held.scores, s)
        low, high = at(held.low, s), at(held.high, s)
        if step != 0:
            change = np.float64(at(held.gram, start_i + s)) - at(held.gram, start_j + s)
            score -= step * change
            put(held.scores, s, score)
        if score > most and coef < high:
            top, most = s, score
        if score < least and coef > low:
            bottom, least = s, score
        n_idle += coef == 0 and low < high
    put(held.totals, TOP, np.float64(top))
    put(held.totals, BOTTOM, np.float64(bottom))
    put(held.totals, IDLE, np.float64(n_idle))


@inlined
def violates(held: Any, tol: Any) -> Any:
    """Return True if top and bottom are a tau-violating pair."""
    i, j = extreme(held, TOP), extreme(held, BOTTOM)
    if i == NOT_THERE or j == NOT_THERE:
        return False
    return at(held.scores, i) - at(held.scores, j) > tol


@inlined
def shift(held: Any, i: Any, j: Any, step: Any) -> Any:
    """a_i += lambda, a_j -= lambda, with all that follows; both lines are there."""
    put(held.coef, i, min(at(held.coef, i) + step, at(held.high, i)))
    put(held.coef, j, max(at(held.coef, j) - step, at(held.low, j)))
    find_extremes(held, i, j, step)


@inlined
def direction_step(held: Any, i: Any, j: Any) -> Any:
    """The best step along a_i - a_j within the bounds."""
    between = np.float64(at(held.gram, touch_line(held, i) + j))
    curvature = at(held.own, i) + at(held.own, j) - 2 * between
    step = min(at(held.high, i) - at(held.coef, i), at(held.coef, j) - at(held.low, j))
    if curvature > MIN_RELATIVE_CURVATURE * abs(at(held.own, i)):
        step = min(step, (at(held.scores, i) - at(held.scores, j)) / curvature)
    shift(held, i, j, step)


@inlined
def note_mistake(held: Any, y: Any, score: Any) -> Any:
    """Count the row if its score, with the bias as it is now, is on the wrong side."""
    i, j = extreme(held, TOP), extreme(held, BOTTOM)
    if i != NOT_THERE and j != NOT_THERE:
        bias = (at(held.scores, i) + at(held.scores, j)) / 2
        count(held, MISTAKES, np.int64(y * (score + bias) <= 0))


@inlined
def process(held: Any, visit: Any, k: Any, rule: Any) -> Any:
    """PROCESS row k; return False if a line is wanted first, and then nothing has changed."""
    if slot_of(held, visit, k) != NOT_THERE:
        return True
    side = at(visit.side, k)
    partner = extreme(held, BOTTOM if side == 1 else TOP)
    is_seed = at(held.counts, OF_SIDE + side) == 0  # departure 2
    if partner == NOT_THERE and not is_seed:
        return True
    y = 2.0 * side - 1.0
    gradient = y - weighted_sum(held, 0, visit, k)
    if partner != NOT_THERE:
        if y * (gradient - at(held.scores, partner)) <= rule.tol and not is_seed:
            return True  # departure 1
        if not has_line(held, partner, 0):
            return False
        touch_line(held, partner)
        note_mistake(held, y, y - gradient)
    slot = new_vector(held, visit, k, at(visit.diagonal, k))
    bound = rule.C * at(visit.weight, k)
    put(held.low, slot, min(0.0, y * bound))
    put(held.high, slot, max(0.0, y * bound))
    put(held.scores, slot, gradient)
    keep_line(held, slot, visit, k)
    i, j = (slot, partner) if side == 1 else (partner, slot)
    if partner != NOT_THERE and at(held.scores, i) - at(held.scores, j) > rule.tol:
        direction_step(held, i, j)
    else:
        find_extremes(held, slot, slot, 0.0)
    return True


@inlined
def drop_blatant(held: Any) -> Any:
    """Vectors of coefficient 0 that are beyond the extremes leave (step 4 of REPROCESS)."""
    i, j = extreme(held, TOP), extreme(held, BOTTOM)
    if i == NOT_THERE or j == NOT_THERE or at(held.totals, IDLE) == 0:
        return
    n_before = at(held.counts, ACTIVE)
    most, least = at(held.scores, i), at(held.scores, j)
    for s in range(at(held.counts, SLOTS)):
        if at(held.position, s) != NOT_THERE and at(held.coef, s) == 0:
            score, side = at(held.scores, s), at(held.side, s)
            if (side == 0 and score >= most) or (side == 1 and score <= least):
                remove_vector(held, s, 1)
    if at(held.counts, ACTIVE) < n_before:
        find_extremes(held, i, j, 0.0)


@inlined
def reprocess(held: Any, tol: Any, part: Any) -> Any:
    """REPROCESS; return False if a line is wanted first, and then nothing has changed."""
    if not violates(held, tol):
        return True
    i, j = extreme(held, TOP), extreme(held, BOTTOM)
    if not (has_line(held, i, part) and has_line(held, j, part)):
        return False
    direction_step(held, i, j)
    drop_blatant(held)
    return True


@inlined
def heir_of(held: Any, slot: Any) -> Any:
    """The vector that can take over a coefficient and has the steepest gradient, or NOT_THERE."""
    amount, heir = at(held.coef, slot), np.int64(NOT_THERE)
    best = -np.inf
    for q in range(at(held.counts, ACTIVE)):
        s = np.int64(at(held.active, q))
        after, score = at(held.coef, s) + amount, at(held.scores, s)
        gain = score if amount > 0 else -score
        if s != slot and at(held.low, s) <= after <= at(held.high, s) and gain > best:
            heir, best = s, gain
    return heir


@inlined
def keep_budget(held: Any, part: Any) -> Any:
    """Remove the smallest coefficient (departure 4); return False if a line is wanted first."""
    slot, least = np.int64(at(held.active, 0)), np.inf
    for q in range(at(held.counts, ACTIVE)):
        s = np.int64(at(held.active, q))
        if abs(at(held.coef, s)) < least:
            slot, least = s, abs(at(held.coef, s))
    heir = heir_of(held, slot)
    if not has_line(held, slot, part) or (heir != NOT_THERE and not has_line(held, heir, part)):
        return False
    amount = at(held.coef, slot)
    if heir != NOT_THERE:
        shift(held, heir, slot, amount)
    else:
        add_line(held, 0, amount, touch_line(held, slot))
    remove_vector(held, slot, 1)
    find_extremes(held, slot, slot, 0.0)
    return True


@jit
def lasvm_walk(visit: Any, order: Any, held: Any, rule: Any, first: Any) -> Any:
    """Visit rows of a chunk from `order[first]` on; return how far it came.

    It comes to the end, or to where the set is full or wants a line of the cache.
    """
    rows, vectors = spans_of_visit(visit), spans_of_set(held)
    for q in range(first, order.size):
        n_done = at(vectors.counts, PART)
        if n_done == 0:
            if is_full(vectors) or not process(vectors, rows, order[q], rule):
                return q
            n_done = 1
        if at(vectors.counts, ACTIVE) > rule.budget > 0 and not keep_budget(vectors, n_done):
            return q
        for e in range(n_done, rule.n_reprocess + 1):
            if not reprocess(vectors, rule.tol, e):
                return q
        put(vectors.counts, PART, 0)
    return order.size


@jit
def lasvm_finish(held: Any, tol: Any, n_steps: Any) -> Any:
    """REPROCESS until no pair violates, or none can be moved; return whether that is so.

    It may also end after `n_steps`, or where a line of the cache is wanted. A step that rounding
    swallows would be made again for ever.
    """
    vectors = spans_of_set(held)
    for _ in range(n_steps):
        if not violates(vectors, tol):
            return True
        i, j = extreme(vectors, TOP), extreme(vectors, BOTTOM)
        before = at(vectors.coef, i), at(vectors.coef, j)
        if not reprocess(vectors, tol, 0):
            return False
        if at(vectors.coef, i) == before[0] and at(vectors.coef, j) == before[1]:
            return True
    return not violates(vectors, tol)


def new_set() -> SupportSet:
    """Return an empty set, with neither a top nor a bottom."""
    held = empty_set(1, 1)
    held.totals[[TOP, BOTTOM]] = NOT_THERE
    return held


def rule(settings: Settings) -> LaSVMRule:
    """Return what the steps follow."""
    n_reprocess, budget = int(settings.n_reprocess), int(settings.budget or 0)
    return LaSVMRule(float(settings.C), float(settings.tol), n_reprocess, budget)


def walk(rows: Stretch) -> int:
    """PROCESS and REPROCESS the rows of a chunk."""
    held, rule = rows.model.held, rows.model.rule
    reached: int = lasvm_walk(rows.visit, rows.order, held, rule, rows.first)
    return reached


def foreseen(model: KernelModel, coins: Array) -> Array:
    """Return the vectors whose gradients are next to the extremes."""
    held = model.held
    score, coef = held.scores[0], held.coef[0]
    rising = np.flatnonzero(coef < held.high)
    falling = np.flatnonzero(coef > held.low)
    ends = (
        rising[np.argsort(-score[rising])[:LINES_FETCHED_AHEAD]],
        falling[np.argsort(score[falling])[:LINES_FETCHED_AHEAD]],
    )
    return np.concatenate(ends)


def complete(training: KernelTraining, model: KernelModel, settings: Settings) -> None:
    """REPROCESS until no pair of support vectors violates by more than `tol`."""
    visit = no_visit(training)
    while not lasvm_finish(model.held, model.rule.tol, STEPS_AT_ONCE):
        if model.held.counts[WANTED] != NOT_THERE:
            bring_lines(training, model, visit, foreseen(model, NO_COINS))


def finish(model: KernelModel) -> tuple[Array, float]:
    """Return the coefficients, and b between the extreme gradients."""
    held, alone = model.held, one_sided(model)
    if alone is not None:
        return np.zeros(held.place.size), alone
    ends = [int(slot) for slot in held.totals[[TOP, BOTTOM]] if slot != NOT_THERE]
    return held.coef[0], float(np.mean(held.scores[0, ends])) if ends else 0.0


LASVM = KernelAlgorithm(
    walk=walk,
    rule=rule,
    finish=finish,
    new_set=new_set,
    foreseen=foreseen,
    complete=complete,
)


@register
class LaSVMClassifier(CachedKernelClassifier):
    """Online kernel SVM with linear slack, which after `finish` is the ordinary SVM.

    One pass over the rows and a finish come close to what an SVM solver reaches on all rows at
    once. `fit` finishes by itself; after `partial_fit` call `finish` when the stream pauses.

    See Also
    --------
    HullerClassifier : An online SVM with a hard margin or quadratic slack.
    KernelPegasosClassifier : Steps on the primal problem, without a cache.

    Notes
    -----
    The problem of two classes and its scores are::

        maximise  sum_i y_i a_i - 1/2 sum_ij a_i a_j K(x_i, x_j)
        with      sum_i a_i = 0  and  a_i between 0 and C y_i
        f(x) = sum_i a_i K(x_i, x) + b

    Each row is one PROCESS step and `n_reprocess` REPROCESS steps of [1]_.

    References
    ----------
    .. [1] A. Bordes, S. Ertekin, J. Weston and L. Bottou, "Fast kernel classifiers with online and
       active learning", JMLR 6, 2005, 1579-1619. https://www.jmlr.org/papers/v6/bordes05a.html

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import LaSVMClassifier
    >>> model = LaSVMClassifier(C=10, gamma=2, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> model.dual_coef_.shape == (1, model.support_.size)
    True
    """

    algorithm: ClassVar[KernelAlgorithm] = LASVM

    C: float = parameter(
        default=1.0,
        allowed=positive(),
        meaning="Bound of the coefficients: price of slack. Smaller is smoother.",
    )
    tol: float = parameter(
        default=1e-3,
        allowed=positive(),
        meaning="Tolerance, tau of the paper: gradients may differ by so much at the end.",
    )
    n_reprocess: int = parameter(
        default=1,
        allowed=whole(0, 1_000),
        meaning="REPROCESS steps after each row.",
    )
    finishes: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Let `fit` end with REPROCESS until no pair violates.",
    )
