"""AROW, Figure 1 of Crammer, Kulesza, Dredze (NIPS 2009) with a diagonal Sigma, line for line."""

import numpy as np


def arow(X, sign, r, order):
    """w and the diagonal of Sigma^-1 after one step per entry of `order`; r of each row."""
    w, precision = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for i in order:
        x, y = X[i], sign[i]
        m = y * (w @ x)
        if m < 1:
            sigma = 1 / precision
            beta = 1 / (x @ (sigma * x) + r[i])
            alpha = max(0, 1 - m) * beta
            w = w + alpha * sigma * y * x
            precision = precision + x * x / r[i]
    return w, precision


def multi_class(X, y, n_classes, r, order):
    """W by class, the pair of the row's class and its best rival taking the step."""
    W, precision = np.zeros((n_classes, X.shape[1])), np.ones((n_classes, X.shape[1]))
    for i in order:
        x, label = X[i], y[i]
        scores = W @ x
        others = [c for c in range(n_classes) if c != label]
        rival = max(others, key=lambda c: (scores[c], -c))
        m = scores[label] - scores[rival]
        if m < 1:
            spread = sum(x @ (x / precision[c]) for c in (label, rival))
            alpha = (1 - m) / (spread + r[i])
            for c, side in ((label, 1), (rival, -1)):
                W[c] = W[c] + side * alpha * x / precision[c]
                precision[c] = precision[c] + x * x / r[i]
    return W, precision
