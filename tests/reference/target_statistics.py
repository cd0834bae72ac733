"""Target statistics written down row by row: log-odds of each class, and the logarithm of rows.

A row with a weight is counted for rows of all other parts, and for rows without a weight.
"""

import math

import numpy as np

PRIOR_ROWS = 10.0
LEAST_SHARE = 1e-4


def statistics_of_row(i, values, ranks, weights, n_classes, parts, least):
    """Return the numbers of row i; `values` are tuples, None where a value was not met."""

    def counts(j):
        is_own_part = weights[i] > 0 and parts[i] == parts[j]
        return weights[j] > 0 and not is_own_part

    others = [j for j in range(len(values)) if counts(j)]
    shares = [sum(weights[j] for j in others if ranks[j] == k) for k in range(n_classes)]
    shares = [share / sum(shares) for share in shares]
    alike = [j for j in others if values[j] == values[i]]
    if len(alike) < least:
        alike = []
    n = sum(weights[j] for j in alike)
    numbers = []
    for k in range(n_classes) if n_classes > 2 else (1,):
        own = sum(weights[j] for j in alike if ranks[j] == k)
        part = (own + PRIOR_ROWS * shares[k]) / (n + PRIOR_ROWS)
        part = min(max(part, LEAST_SHARE), 1 - LEAST_SHARE)
        numbers.append(math.log(part / (1 - part)))
    return np.array([*numbers, math.log1p(n)])
