"""Nyström features in plain NumPy, and the linear machines on them, line for line.

Williams, Seeger (NIPS 2000); Pegasos and Passive-Aggressive are those of their own references.
"""

import numpy as np

from tests.reference.passive_aggressive import passive_aggressive
from tests.reference.pegasos import pegasos


def features(gram_of_landmarks, values, least=1e-6):
    """z(x) = K_mm^(-1/2) k(x) for each row of `values`, which holds k(x)."""
    eigenvalues, vectors = np.linalg.eigh(gram_of_landmarks)
    kept = eigenvalues > least * eigenvalues[-1]
    return values @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))


def nystrom(gram_of_landmarks, values, y, order, machine, strength):
    """f of each row of `values` after one step per entry of `order` on the features of `values`.

    `strength` is alpha of Pegasos and C of Passive-Aggressive.
    """
    Z = features(gram_of_landmarks, values)
    if machine == "pegasos":
        return Z @ pegasos(Z, 2 * y - 1, strength, order)
    return Z @ passive_aggressive(Z, 2 * y - 1, strength, machine, order)
