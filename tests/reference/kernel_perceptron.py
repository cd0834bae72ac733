"""The voted perceptron's prediction vectors on a Gram matrix: Fig. 1 of Freund, Schapire (1999).

Departures are numbered as in `polyplane/kernel/kernel_perceptron.py`. A vector is its coefficients
by training row.
"""

import numpy as np


def kernel_perceptron(K, y, order, weights=None, budget=None):
    """The last vector, the average of all by their counts, and the support vectors."""
    weights = np.ones(len(y)) if weights is None else weights
    vectors, counts = [np.zeros(len(y))], [0]
    support = set()
    for i in order:
        if y[i] * (vectors[-1] @ K[:, i]) > 0:
            counts[-1] += 1
            continue
        vectors.append(vectors[-1].copy())
        vectors[-1][i] += y[i] * weights[i]  # departure 1
        counts.append(1)
        support.add(int(i))
        if budget and len(support) > budget:  # departure 2
            sizes = {k: vectors[-1][k] ** 2 * K[k, k] for k in support}
            least = min(support, key=lambda k: (sizes[k], k))
            support.remove(least)
            for vector in vectors:
                vector[least] = 0
    return vectors[-1], np.average(vectors, axis=0, weights=counts), sorted(support)
