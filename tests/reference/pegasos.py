"""Pegasos, Figure 1 of Shalev-Shwartz, Singer, Srebro, Cotter (2011), line for line.

Works on float64 arrays and on object arrays of `fractions.Fraction`.
"""


def pegasos(X, sign, alpha, order):
    """w after one step per entry of `order`; no bias, no projection."""
    w = 0 * X[0]
    for t, i in enumerate(order, start=1):
        eta = 1 / (alpha * t)
        violates = sign[i] * (w @ X[i]) < 1
        w = (1 - eta * alpha) * w
        if violates:
            w = w + eta * sign[i] * X[i]
    return w
