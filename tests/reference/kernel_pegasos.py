"""Pegasos on w = sum_i a_i phi(x_i): Fig. 1 of Shalev-Shwartz et al. (2011), with kernels.

Departures are numbered as in `polyplane/kernel/kernel_pegasos.py`. The shrinking is done, step by
step, where the library keeps alpha t w.
"""

import numpy as np


def kernel_pegasos(K, y, alpha, order, weights=None, budget=None):
    """Coefficients of w after the last step, of the average, and the support vectors."""
    weights = np.ones(len(y)) if weights is None else weights
    a, total = np.zeros(len(y)), np.zeros(len(y))
    support = set()
    for t, k in enumerate(order, start=1):  # departure 1
        eta = 1 / (alpha * t)
        violates = y[k] * (a @ K[:, k]) < 1
        a = (1 - eta * alpha) * a
        if violates:
            a[k] += eta * y[k] * weights[k]
            support.add(int(k))
            if budget and len(support) > budget:  # departure 4
                sizes = np.round(alpha * t * np.abs(a) * np.sqrt(np.diagonal(K)), 9)
                least = min(support, key=lambda i: (sizes[i], i))
                support.remove(least)
                a[least] = total[least] = 0
        total += t * (alpha * t * a)  # departure 3: of alpha t w, step t weighing t
    n = len(order)
    mean = total / (n * (n + 1) / 2)
    return a, mean / (alpha * n), sorted(support)
