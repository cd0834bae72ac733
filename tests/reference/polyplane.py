"""Softmax over planes with explicit weights and shrinking, in float64, one row at a time.

Loss of a row   log(1 + exp(-lead)), lead = lse(own planes) - lse(all other planes), planes scored
                by s W x
Step            W <- shrunk W, then W_k += eta (1 - p) share_k x for planes of the row's class and
                -= for all others; shares below `floor` times the largest of their side are 0.
Rates           held for 16 steps: eta falls on a line to 0 over n steps, or as 1 / sqrt(1 + t/10^4)
                in a stream; W shrinks as exp(-alpha (eta added up)); s rises from 1 between three
                and eight tenths of the schedule.
"""

import numpy as np
from scipy.special import expit


def loss(W, owner, x, label, s=1.0):
    """Of one row."""
    return float(np.logaddexp(0, -lead(W, owner, x, label, s)))


def lead(W, owner, x, label, s=1.0):
    """The own class's score over that of all others together."""
    scores = s * (W @ x)
    return np.logaddexp.reduce(scores[owner == label]) - np.logaddexp.reduce(scores[owner != label])


def shares(scores, floor):
    """Of the planes of one side in its log-sum-exp."""
    share = np.exp(scores - np.logaddexp.reduce(scores))
    return np.where(share > floor * share.max(), share, 0)


def direction(W, owner, x, label, s, floor):
    """Minus the gradient of the loss, divided by s; with the floor, most of it."""
    is_own = owner == label
    scores = s * (W @ x)
    factors = np.zeros(len(owner))
    factors[is_own] = shares(scores[is_own], floor)
    factors[~is_own] = -shares(scores[~is_own], floor)
    return expit(-lead(W, owner, x, label, s)) * np.outer(factors, x)


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
          floor=0.0, weights=None, t=0):  # fmt: skip
    """W after visiting the rows in `order`, and W after each of them."""
    W, every_step = np.array(W, np.float64), []
    shrunk_before = rates(t - 1, step, alpha, n_steps, sharpness)[1] if t else 1.0
    for i in order:
        eta, shrunk, s = rates(t, step, alpha, n_steps, sharpness)
        W *= shrunk / shrunk_before
        shrunk_before = shrunk
        if lead(W, owner, X[i], y[i], s) < enough:
            weight = 1.0 if weights is None else weights[i]
            W += eta * weight * direction(W, owner, X[i], y[i], s, floor)
        t += 1
        every_step.append(W.copy())
    return W, every_step
