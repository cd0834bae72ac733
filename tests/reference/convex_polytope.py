"""The convex polytope machine with explicit weights and shrinking: Alg. 1 and 2 of Kantchelian,
Tschantz, Huang, Bartlett, Joseph, Tygar (NIPS 2014), for one polytope or two.

Works on float64 arrays and on object arrays of `fractions.Fraction`; entropies are floats. In
floating point the shrinking breaks exact ties by its rounding noise: compare in Fractions.

Alg. 1 starts at W = 0, where all planes tie for good under the negatives. `start` breaks the ties:
it is a constant offset of lambda t W, so after t steps the planes are W + start / (lambda t), which
vanishes like the first step of any SGD with this schedule. Before the first step the planes are
infinitely small: `start` alone ranks them, and no margin is met.
Alg. 1 shrinks W after the update; `shrinks_first` is the order of Pegasos.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import log2

ROUNDING = 1e-9  # entropies closer than this are equal
OTHER = {0: 1, 1: 0}


@dataclass
class Machine:
    """Planes by number; planes with owner c form the polytope whose positives are class c."""

    start: list
    owner: list
    W: list
    unadj: dict = field(default_factory=lambda: {0: {}, 1: {}})  # by owner: row -> plane
    mistakes: int = 0
    t: int = 0  # steps done

    def planes_of(self, label):
        """Numbers of the planes whose positives are of this class."""
        return [k for k, owner in enumerate(self.owner) if owner == label]


def entropy(assignment):
    """Bits, of the empirical distribution of planes over the rows."""
    n = len(assignment)
    return -sum(c / n * log2(c / n) for c in Counter(assignment.values()).values())


def argmax(scores, planes):
    """Of equal scores the lowest plane."""
    return max(planes, key=lambda k: (scores[k], -k))


def assign(scores, planes, x, h, unadj):
    """Alg. 2: the plane that row number x goes to; `unadj` notes the plane that won it."""
    k_unadj = argmax(scores, planes)
    if entropy({**unadj, x: k_unadj}) >= h - ROUNDING:
        k_adj = k_unadj
    else:
        h_current = entropy(unadj)
        K_inc = [k for k in planes if entropy({**unadj, x: k}) > h_current + ROUNDING]
        k_adj = argmax(scores, K_inc) if K_inc else k_unadj  # silent: K_inc may be empty
    unadj[x] = k_unadj
    return k_adj


def updates(model, scores, x, label, h):
    """Alg. 1, lines 5 to 13, for each polytope: by plane, the sign with which it gets the row."""
    is_first = model.t == 0
    out = {}
    for k in model.planes_of(OTHER[label]):  # y = -1
        if is_first or scores[k] > -1:
            out[k] = -1
    positive = model.planes_of(label)  # y = +1
    if positive and (is_first or scores[argmax(scores, positive)] < 1):
        out[assign(scores, positive, x, h, model.unadj[label])] = 1
    return out


def step(model, features, x, label, alpha, h, weight=1, shrinks_first=True):
    """One pass through the loop of Alg. 1 with row number x."""
    offset = 1 if model.t == 0 else 1 / (alpha * model.t)
    scores = [
        (W + offset * start) @ features for W, start in zip(model.W, model.start, strict=True)
    ]
    best = [max((scores[k] for k in model.planes_of(c)), default=0) for c in (0, 1)]
    model.mistakes += bool(best[label] <= best[OTHER[label]])
    changes = updates(model, scores, x, label, h)
    model.t += 1
    eta = 1 / (alpha * model.t)
    if shrinks_first:
        model.W = [(1 - eta * alpha) * W for W in model.W]
    for k, sign in changes.items():
        model.W[k] = model.W[k] + eta * sign * weight * features
    if not shrinks_first:
        model.W = [(1 - eta * alpha) * W for W in model.W]


def train(X, y, alpha, h, order, start, owner, weights=None, remembers=True, shrinks_first=True):
    """Alg. 1 over `order`; where it does not remember, a row that comes again counts as another."""
    model = Machine(start=list(start), owner=list(owner), W=[0 * plane for plane in start])
    for visit, i in enumerate(order):
        x = i if remembers else visit
        weight = 1 if weights is None else weights[i]
        step(model, X[i], x, y[i], alpha, h, weight, shrinks_first)
    return model


def sums(model, alpha):
    """lambda t (W + start / (lambda t)): by plane, signed sums of rows on top of the start."""
    return [alpha * model.t * W + start for W, start in zip(model.W, model.start, strict=True)]
