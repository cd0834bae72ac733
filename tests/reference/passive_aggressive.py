"""Passive-Aggressive, Figure 1 and section 7 of Crammer et al. (JMLR 7, 2006), line for line.

Works on float64 arrays and on object arrays of `fractions.Fraction`.
"""


def tau_of(loss, squared_length, C, variant):
    """The step size of Eq. 8; a row of zeros changes nothing, however long its step."""
    if loss == 0 or squared_length == 0:
        return 0
    if variant == "PA-I":
        return min(C, loss / squared_length)
    return loss / (squared_length + 1 / (2 * C))


def passive_aggressive(X, sign, C, variant, order):
    """w after one step per entry of `order`, by Figure 1."""
    w = 0 * X[0]
    for i in order:
        x, y = X[i], sign[i]
        loss = max(0, 1 - y * (w @ x))
        w = w + tau_of(loss, x @ x, C, variant) * y * x
    return w


def multi_class(X, y, n_classes, C, variant, order):
    """W after each step: one vector Phi(x, r) holds x at the place of class r, zeros elsewhere.

    C may be one number, or a number for each row.
    """
    by_row = C if hasattr(C, "__len__") else [C] * len(X)
    W, seen = [0 * X[0] for _ in range(n_classes)], []
    for i in order:
        x, label = X[i], y[i]
        scores = [w @ x for w in W]
        others = [c for c in range(n_classes) if c != label]
        rival = max(others, key=lambda c: (scores[c], -c))
        loss = max(0, 1 - (scores[label] - scores[rival]))
        tau = tau_of(loss, 2 * (x @ x), by_row[i], variant)  # |Phi(x, own) - Phi(x, rival)|^2
        W = list(W)
        W[label] = W[label] + tau * x
        W[rival] = W[rival] - tau * x
        seen.append(W)
    return seen
