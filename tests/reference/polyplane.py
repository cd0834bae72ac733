"""Softmax over planes with explicit weights and shrinking, in float64, one row at a time.

Score           of class c the sum over its units of lse(planes of the unit), planes scored by sWx:
                unit g belongs to class g // n_units, and a plane to the unit `owner`
Loss of a row   log(1 + exp(-lead)), lead = score of the own class - lse(scores of all others)
Step            W <- shrunk W, then W_k += eta (1 - p) share_k x for planes of the row's class, with
                their share in their unit, and -= for all others, with their share in their unit
                times that of their class among all others; shares below `floor` times the largest
                of their side are 0.
Rates           held for 16 steps: eta falls on a line to 0 over n steps, or as 1 / sqrt(1 + t/10^4)
                in a stream; W shrinks as exp(-alpha (eta added up)); s rises from 1 between three
                and eight tenths of the schedule.
"""

import numpy as np
from scipy.special import expit


def loss(W, owner, x, label, s=1.0, n_units=1):
    """Of one row."""
    return float(np.logaddexp(0, -lead(W, owner, x, label, s, n_units)))


def class_scores(scores, owner, n_units):
    """Sums over the units of each class, if the classes are those of the planes."""
    units = [np.logaddexp.reduce(scores[owner == unit]) for unit in range(owner.max() + 1)]
    return np.pad(units, (0, -len(units) % n_units)).reshape(-1, n_units).sum(axis=1)


def lead(W, owner, x, label, s=1.0, n_units=1):
    """The own class's score over that of all others together."""
    of_class = class_scores(s * (W @ x), owner, n_units)
    return of_class[label] - np.logaddexp.reduce(np.delete(of_class, label))


def shares(scores, floor):
    """Of planes in their log-sum-exp."""
    share = np.exp(scores - np.logaddexp.reduce(scores))
    return np.where(share > floor * share.max(), share, 0)


def direction(W, owner, x, label, s, floor, n_units=1):
    """Minus the gradient of the loss, divided by s; with the floor, most of it."""
    scores = s * (W @ x)
    of_class = class_scores(scores, owner, n_units)
    rivals = np.logaddexp.reduce(np.delete(of_class, label))
    factors = np.zeros(len(owner))
    for unit in range(owner.max() + 1):
        is_in, code = owner == unit, unit // n_units
        share = shares(scores[is_in], 0.0)
        factors[is_in] = share if code == label else -share * np.exp(of_class[code] - rivals)
    is_own = owner // n_units == label
    for side in (is_own, ~is_own):
        largest = np.abs(factors[side]).max()
        factors[side] = np.where(np.abs(factors[side]) > floor * largest, factors[side], 0)
    return expit(-lead(W, owner, x, label, s, n_units)) * np.outer(factors, x)


def rates(t, step, alpha, n_steps, sharpness):
    """eta, how much W has shrunk, and s after t steps."""
    t = t // 16 * 16
    if n_steps == 0:
        added_up = step * 2e4 * (np.sqrt(1 + t / 1e4) - 1)
        return step / np.sqrt(1 + t / 1e4), np.exp(-alpha * added_up), 1.0
    part = t / n_steps
    added_up = step * (t - t * t / (2 * n_steps))
    s = 1 + (sharpness - 1) * np.clip((part - 0.3) / 0.5, 0, 1)
    return step * max(1 - part, 0), np.exp(-alpha * added_up), s


def train(W, owner, X, y, order, *, step, alpha=0.0, n_steps=0, sharpness=1.0, enough=np.inf,
          floor=0.0, weights=None, t=0, n_units=1, to_rest=None):  # fmt: skip
    """W after visiting the rows in `order`, and W after each of them.

    Rows that lead by 1 more than is enough are not looked at in their next three turns, which
    `to_rest` counts, if there is one.
    """
    W, every_step = np.array(W, np.float64), []
    shrunk_before = rates(t - 1, step, alpha, n_steps, sharpness)[1] if t else 1.0
    for i in order:
        eta, shrunk, s = rates(t, step, alpha, n_steps, sharpness)
        W *= shrunk / shrunk_before
        shrunk_before = shrunk
        if to_rest is not None and to_rest[i] > 0:
            to_rest[i] -= 1
        else:
            ahead = lead(W, owner, X[i], y[i], s, n_units)
            if ahead < enough:
                weight = 1.0 if weights is None else weights[i]
                W += eta * weight * direction(W, owner, X[i], y[i], s, floor, n_units)
            if to_rest is not None and ahead > enough + 1:
                to_rest[i] = 3
        t += 1
        every_step.append(W.copy())
    return W, every_step


# ---- squared hinges: one plane a class, each against all others --------------------------


def squared_hinge_direction(W, x, label):
    """Minus the gradient of sum over k of max(0, 1 - y_k W_k x)^2 / 2."""
    signs = np.where(np.arange(len(W)) == label, 1.0, -1.0)
    return np.outer(signs * np.maximum(0, 1 - signs * (W @ x)), x)


def squared_hinge(X, y, n_classes, order, step, alpha, n_steps, weights):
    """W after visiting the rows in `order` from zeros, a constant 1 before them, and mistakes."""
    X = np.hstack([np.ones((len(X), 1)), np.asarray(X, np.float64)])
    W, shrunk_before, mistakes = np.zeros((n_classes, X.shape[1])), 1.0, 0
    for t, i in enumerate(order):
        eta, shrunk, _ = rates(t, step, alpha, n_steps, 1.0)
        W *= shrunk / shrunk_before
        shrunk_before = shrunk
        scores = W @ X[i]
        mistakes += scores[y[i]] <= np.delete(scores, y[i]).max()
        W += eta * weights[i] * squared_hinge_direction(W, X[i], y[i])
    return W, mistakes
