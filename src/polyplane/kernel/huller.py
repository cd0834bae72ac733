"""The Huller: an online kernel SVM that moves two points of two convex hulls together.

Problem     minimise |X_P - X_N|^2 over points of the hulls of both classes (Eq. 1-2): the hard
            margin SVM; with C, K(x_i, x_j) + delta_ij / C in training: quadratic slack
Algorithm   Figures 3 and 4. Each row is offered for insertion once a pass; after each offer random
            support vectors are offered for removal, by the same UPDATE.
Symbols     X_P = scale_1 sum_i coef_i x_i over side 1, X_N the same over side 0. A step multiplies
            its side's coefficients by 1 - lambda: only the scale is touched.
            scores: X_N x_i and X_P x_i of every support vector, over the scales
            totals: X_N X_N, X_P X_P, X_N X_P
Departures  (1) "a few points" are the first `n_init` rows of each class, averaged as they come;
            until both classes are there, other rows are passed by;
            (2) `n_removal` support vectors instead of one are offered for removal;
            (3) with a `budget`, the smallest coefficient gives way to a vector above it;
            (4) a row that already is a support vector is passed by, removal included;
            (5) when `fit` ends, all support vectors are offered for removal `n_sweeps` times;
            n_sweeps="paper" leaves that out.
Scores      2 f(x) / |X_P - X_N|^2 with f of Eq. 3: +1 and -1 at the margins, as an SVM's are.
Paper       Bordes, Bottou (ECML 2005), doi:10.1007/11564096_48
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
    active_slots,
    count,
    empty_set,
    is_full,
    likely_pick,
    new_vector,
    picked,
    remove_vector,
    slot_of,
    spans_of_set,
    spans_of_visit,
    weighted_sum,
)
from polyplane.engine.tiles import at, put
from polyplane.estimator.kernel_classifier import CachedKernelClassifier
from polyplane.estimator.parameters import (
    at_least,
    either,
    one_of,
    parameter,
    positive,
    register,
    whole,
)
from polyplane.training.job import Settings
from polyplane.training.kernels.algorithm import KernelAlgorithm, Stretch
from polyplane.training.kernels.lines import bring_lines, no_visit
from polyplane.training.kernels.state import KernelModel, KernelTraining, one_sided

__all__ = ["HULLER", "HullerClassifier", "huller_walk"]

SELF, CROSS, SCALE, LARGEST_MOVE, AVERAGED = 0, 2, 3, 5, 6  # of the totals; some by side
LEAST_SCALE, MOST_SCALE = 1e-6, 1e6
MIN_RELATIVE_DISTANCE = 1e-10  # of K(x, x): a row so near to X is X
N_COEFS = 2


class HullerRule(NamedTuple):
    """Settings of the steps."""

    n_init: Any
    n_removal: Any
    budget: Any  # 0: none
    slack: Any  # 1 / C, or 0


@inlined
def total(held: Any, which: Any) -> Any:
    """One of the totals."""
    return at(held.totals, which)


@inlined
def update(
    held: Any, slot: Any, side: Any, step: Any, x_own: Any, x_other: Any, own: Any, start: Any
) -> Any:
    """X <- (1 - lambda) X + lambda x of one side, with all that is kept up to date (Fig. 3)."""
    rest = 1.0 - step
    put(
        held.totals,
        SELF + side,
        rest * rest * total(held, SELF + side) + 2 * step * rest * x_own + step * step * own,
    )  # Eq. 7-8
    put(held.totals, CROSS, rest * total(held, CROSS) + step * x_other)
    put(held.totals, LARGEST_MOVE, max(total(held, LARGEST_MOVE), abs(step)))
    o = side * held.room
    if step == 1.0:  # x takes the place of its whole side
        for i in range(at(held.counts, SLOTS)):
            put(held.scores, o + i, np.float64(at(held.gram, start + i)))
        for q in range(at(held.counts, ACTIVE) - 1, -1, -1):
            other = at(held.active, q)
            if at(held.side, other) == side and other != slot:
                remove_vector(held, other, N_COEFS)
        put(held.totals, SCALE + side, 1.0)
        put(held.coef, o + slot, 1.0)
        return
    scale = rest * total(held, SCALE + side)
    put(held.totals, SCALE + side, scale)
    put(held.coef, o + slot, at(held.coef, o + slot) + step / scale)
    add_line(held, side, step / scale, start)
    if not LEAST_SCALE < scale < MOST_SCALE:
        for i in range(at(held.counts, SLOTS)):
            put(held.coef, o + i, at(held.coef, o + i) * scale)
            put(held.scores, o + i, at(held.scores, o + i) * scale)
        put(held.totals, SCALE + side, 1.0)


@inlined
def best_step(held: Any, side: Any, x_own: Any, x_other: Any, own: Any) -> Any:
    """lambda_u: where the segment from X to x is nearest to the other side (Eq. 4 and 5)."""
    product = total(held, SELF + side)
    distance = product + own - 2 * x_own
    if distance <= MIN_RELATIVE_DISTANCE * abs(own):
        return 0.0
    return (product - total(held, CROSS) - x_own + x_other) / distance


@inlined
def insert(held: Any, visit: Any, j: Any, rule: Any) -> Any:
    """Offer row j for insertion; return whether removals are to follow."""
    side = at(visit.side, j)
    n_own, n_other = at(held.counts, OF_SIDE + side), at(held.counts, OF_SIDE + 1 - side)
    n_averaged = total(held, AVERAGED + side)
    starts = n_averaged < rule.n_init
    if slot_of(held, visit, j) != NOT_THERE or (n_other == 0 and not starts):
        return False  # departures 4 and 1
    sum_own = weighted_sum(held, side, visit, j)
    sum_other = weighted_sum(held, 1 - side, visit, j)
    x_own = total(held, SCALE + side) * sum_own
    x_other = total(held, SCALE + 1 - side) * sum_other
    own = np.float64(np.float32(at(visit.diagonal, j) + rule.slack / at(visit.weight, j)))
    if n_own > 0 and n_other > 0:
        half = (total(held, SELF + side) - total(held, SELF + 1 - side)) / 2
        count(held, MISTAKES, np.int64(x_own - x_other <= half))  # Eq. 3
    step = min(1.0, best_step(held, side, x_own, x_other, own))
    if starts:
        step = 1.0 / (n_averaged + 1)
        put(held.totals, AVERAGED + side, n_averaged + 1)
    if step > 0:
        slot = new_vector(held, visit, j, own)
        put(held.scores, side * held.room + slot, sum_own)
        put(held.scores, (1 - side) * held.room + slot, sum_other)
        start = keep_line(held, slot, visit, j)
        update(held, slot, side, step, x_own, x_other, own, start)
    return n_other > 0


@inlined
def share(held: Any, slot: Any) -> Any:
    """alpha of a support vector."""
    side = at(held.side, slot)
    return total(held, SCALE + side) * at(held.coef, side * held.room + slot)


@inlined
def offer_removal(held: Any, slot: Any, is_forced: Any) -> Any:
    """UPDATE(r): move a support vector's coefficient, down to 0 or to 0 at once if forced."""
    side, alpha = at(held.side, slot), share(held, slot)
    if alpha >= 1.0:
        return  # the only one of its side
    x_own = total(held, SCALE + side) * at(held.scores, side * held.room + slot)
    x_other = total(held, SCALE + 1 - side) * at(held.scores, (1 - side) * held.room + slot)
    own, lowest = at(held.own, slot), -alpha / (1.0 - alpha)
    step = lowest if is_forced else best_step(held, side, x_own, x_other, own)
    is_over = step <= lowest
    step = min(1.0, max(lowest, step))  # Eq. 6
    if step != 0:
        update(held, slot, side, step, x_own, x_other, own, touch_line(held, slot))
    if is_over:
        remove_vector(held, slot, N_COEFS)


@inlined
def smallest(held: Any) -> Any:
    """The support vector with the smallest coefficient."""
    found, least = at(held.active, 0), 2.0
    for q in range(at(held.counts, ACTIVE)):
        alpha = share(held, at(held.active, q))
        if alpha < least:
            found, least = at(held.active, q), alpha
    return found


@jit
def huller_walk(visit: Any, order: Any, coins: Any, held: Any, rule: Any, first: Any) -> Any:
    """Visit rows of a chunk from `order[first]` on (Fig. 4); return how far it came.

    It comes to the end, or to where the set is full or wants a line of the cache.
    """
    rows, vectors = spans_of_visit(visit), spans_of_set(held)
    for q in range(first, order.size):
        n_done = at(vectors.counts, PART)
        if n_done == 0:
            if is_full(vectors):
                return q
            if not insert(vectors, rows, order[q], rule):
                continue
            n_done = 1
        if at(vectors.counts, ACTIVE) > rule.budget > 0:  # departure 3
            slot = smallest(vectors)
            if not has_line(vectors, slot, n_done):
                return q
            offer_removal(vectors, slot, True)
        for e in range(n_done - 1, rule.n_removal):
            slot = at(vectors.active, picked(coins[q, e], at(vectors.counts, ACTIVE)))
            if not has_line(vectors, slot, e + 1):
                return q
            offer_removal(vectors, slot, False)
        put(vectors.counts, PART, 0)
    return order.size


@jit
def huller_sweep(held: Any, slots: Any, first: Any) -> Any:
    """Offer vectors for removal from `slots[first]` on; return how far it came."""
    vectors = spans_of_set(held)
    for q in range(first, slots.size):
        if at(vectors.position, slots[q]) == NOT_THERE:
            continue
        if not has_line(vectors, slots[q], 0):
            return q
        offer_removal(vectors, slots[q], False)
    return slots.size


def new_set() -> SupportSet:
    """Return an empty set, whose hulls have the scale 1."""
    held = empty_set(N_COEFS, 2)
    held.totals[SCALE : SCALE + 2] = 1.0
    return held


def rule(settings: Settings) -> HullerRule:
    """Return what the steps follow."""
    C, budget = settings.C, settings.budget
    return HullerRule(
        n_init=int(min(settings.n_init, budget // 2) if budget else settings.n_init),
        n_removal=int(settings.n_removal),
        budget=int(budget or 0),
        slack=0.0 if C is None else float(1.0 / C),
    )


def coins(model: KernelModel, n_rows: int) -> Array:
    """Return a coin for each vector that is offered for removal."""
    return model.generator.random((n_rows, model.rule.n_removal))


def walk(rows: Stretch) -> int:
    """Visit rows of a chunk (Fig. 4)."""
    held, rule = rows.model.held, rows.model.rule
    reached: int = huller_walk(rows.visit, rows.order, rows.coins, held, rule, rows.first)
    return reached


def foreseen(model: KernelModel, coins: Array) -> Array:
    """Return the vectors that the coins are likely to pick."""
    n = int(model.held.counts[ACTIVE])
    likely: Array = model.held.active[[likely_pick(coin, n) for coin in coins.ravel()]]
    return likely


def end_pass(model: KernelModel, settings: Settings) -> bool:
    """Return True if no step of the pass has moved a coefficient by much."""
    largest = model.held.totals[LARGEST_MOVE]
    model.held.totals[LARGEST_MOVE] = 0.0
    return bool(largest <= settings.tol)


def complete(training: KernelTraining, model: KernelModel, settings: Settings) -> None:
    """Sweep over the support vectors (departure 5)."""
    visit = no_visit(training)
    for _ in range(0 if settings.n_sweeps == "paper" else int(settings.n_sweeps)):
        slots, done = active_slots(model.held).copy(), 0
        model.generator.shuffle(slots)
        while done < slots.size:
            done = huller_sweep(model.held, slots, done)
            if model.held.counts[WANTED] != NOT_THERE:
                bring_lines(training, model, visit, slots[done:])


def finish(model: KernelModel) -> tuple[Array, float]:
    """Return f of Eq. 3, on the scale on which margins are 1."""
    held, alone = model.held, one_sided(model)
    if alone is not None:
        return np.zeros(held.place.size), alone
    negative, positive_ = held.totals[SELF : SELF + 2]
    gap = negative + positive_ - 2 * held.totals[CROSS]
    least = MIN_RELATIVE_DISTANCE * (abs(negative) + abs(positive_))  # hulls that meet have no gap
    factor = 2.0 / max(gap, least) if least > 0 else 0.0
    scales = held.totals[SCALE : SCALE + 2]
    coefs = scales[1] * held.coef[1] - scales[0] * held.coef[0]
    return factor * coefs, float(factor * (negative - positive_) / 2)  # Eq. 3


HULLER = KernelAlgorithm(
    walk=walk,
    rule=rule,
    finish=finish,
    new_set=new_set,
    coins=coins,
    foreseen=foreseen,
    end_pass=end_pass,
    complete=complete,
)


@register
class HullerClassifier(CachedKernelClassifier):
    """Online kernel SVM with a hard margin or quadratic slack, by the Huller.

    One pass comes close to the SVM, two match it; with `max_iter` large it goes on until no
    coefficient moves by more than `tol`, which is the SVM itself.

    See Also
    --------
    LaSVMClassifier : An online SVM with linear slack.

    Notes
    -----
    Training moves two points of the convex hulls of both classes towards each other::

        X_P = sum_{y_i = 1} a_i phi(x_i),   X_N = sum_{y_i = -1} a_i phi(x_i),   each a sums to 1
        minimise  |X_P - X_N|^2
        f(x) = 2 ((X_P - X_N) phi(x) + (|X_N|^2 - |X_P|^2) / 2) / |X_P - X_N|^2

    With `C`, 1 / C is added to K(x_i, x_i) in training [1]_.

    References
    ----------
    .. [1] A. Bordes and L. Bottou, "The Huller: a simple and efficient online SVM", ECML 2005.
       doi:10.1007/11564096_48

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import HullerClassifier
    >>> model = HullerClassifier(C=10, gamma=2, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    """

    algorithm: ClassVar[KernelAlgorithm] = HULLER

    C: float | None = parameter(
        default=None,
        allowed=either(positive(), one_of(None)),
        meaning=(
            "Price of squared slack: smaller is smoother, for noisy data. None is a hard margin."
        ),
    )
    max_iter: int = parameter(default=2, allowed=at_least(1), meaning="Passes over the rows.")
    n_removal: int = parameter(
        default=1,
        allowed=whole(0, 1_000),
        meaning=(
            "Random support vectors offered for removal after each row. The paper has one; four "
            "cost little and leave fewer vectors."
        ),
    )
    n_sweeps: int | str = parameter(
        default=10,
        allowed=either(at_least(0), one_of("paper")),
        meaning=(
            "Sweeps over the support vectors, each offered for removal, when `fit` ends. They cost "
            "next to nothing, since they need no new kernel values. 'paper' is its rule: none."
        ),
    )
    n_init: int = parameter(
        default=5,
        allowed=at_least(1),
        meaning=(
            "The first rows of each class whose mean is where it starts; at most half the budget."
        ),
    )
    tol: float = parameter(
        default=1e-4,
        allowed=at_least(0, whole=False),
        meaning="Passes end early once none of their steps moves a coefficient by more.",
    )
