"""GAMM with explicit weights and shrinking: Djuric, Wang, Vucetic, Growing Adaptive
Multi-Hyperplane Machines (ICML 2020, PMLR 119:2567-2576), on top of Alg. 2 of AMM.

At an update whose plane is not the zero plane, that plane is cloned with probability p; then p is
multiplied by the decay. The original gets the update, the clone stays as it was. A class has room
for `most` planes; without room it neither clones nor has a zero plane.
Works on float64 arrays and on object arrays of `fractions.Fraction`.
"""

from dataclasses import dataclass, field

from tests.reference import amm
from tests.reference.amm import ZERO_PLANE


@dataclass
class Model(amm.Model):
    """With the number of the plane that each clone was split from."""

    parent: dict = field(default_factory=dict)


def step(model, x, label, alpha, classes, coin, p, decay, most, grow_rivals):
    """One row; returns the new p."""
    model.t += 1
    eta = 1 / (alpha * model.t)
    n_planes = {c: list(model.owner.values()).count(c) for c in classes}
    has_zero = {c: n_planes[c] < most for c in classes}
    others = [c for c in classes if c != label]
    scores = {j: w @ x for j, w in model.W.items()}
    own = best(scores, [j for j in model.W if model.owner[j] == label], has_zero[label])
    rival = best(
        scores,
        [j for j in model.W if model.owner[j] != label],
        any(has_zero[c] for c in others),
    )
    scores[ZERO_PLANE] = 0
    violates = 1 + scores[rival] - scores[own] > 0
    model.W = {j: (1 - eta * alpha) * w for j, w in model.W.items()}
    if not violates:
        return p
    if own == ZERO_PLANE:
        own = model.give_birth(label, x)
    elif has_zero[label] and coin < p:
        clone = model.give_birth(label, x)
        model.W[clone], model.parent[clone] = model.W[own], own
        p *= decay
    if rival == ZERO_PLANE and grow_rivals:
        rival = model.give_birth(next(c for c in others if has_zero[c]), x)
    model.W[own] = model.W[own] + eta * x
    if rival != ZERO_PLANE:
        model.W[rival] = model.W[rival] - eta * x
    return p


def best(scores, numbers, has_zero):
    """The oldest of the planes with the highest score; the zero plane if all are below zero."""
    top = amm.best(scores, numbers)
    if top == ZERO_PLANE and not has_zero:
        return max(numbers, key=lambda j: (scores[j], -j))
    return top


def online(X, y, alpha, order, coins, p, decay, k, c, most, grow_rivals=False):
    """All steps, with pruning every k; the sums after each of them are noted."""
    model, every_step = Model(), []
    for i, coin in zip(order, coins, strict=True):
        p = step(model, X[i], y[i], alpha, range(max(y) + 1), coin, p, decay, most, grow_rivals)
        if model.t % k == 0:
            amm.prune(model, alpha, c)
        every_step.append(amm.sums(model, alpha))
    return model, every_step
