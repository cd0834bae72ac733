"""The polynomial map of degree 2 of Chang et al. (JMLR 2010), written out, and Pegasos on it."""

import math

import numpy as np

from tests.reference.pegasos import pegasos


def poly2_map(X, gamma, r):
    """phi without its constant r, in the order of `polyplane.engine.rows.products`."""
    columns = []
    for j, right in enumerate(X.T):
        columns.append(math.sqrt(2 * gamma * r) * right)
        for i, left in enumerate(X.T[: j + 1]):
            columns.append((gamma if i == j else math.sqrt(2) * gamma) * left * right)
    return np.array(columns).reshape(len(columns), len(X)).T


def with_constant(mapped, r):
    """phi: its constant, then the other columns."""
    return np.hstack([np.full((len(mapped), 1), r), mapped])


def splitmix(column):
    """Number `column` of the splitmix64 sequence from 0, but modulo 2^63 throughout."""
    modulus = 2**63
    z = (column + 1) * 0x9E3779B97F4A7C15 % modulus
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % modulus
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % modulus
    return z ^ (z >> 31)


def hashed(mapped, n_hash):
    """Columns of the map added up by their hash, each with its sign."""
    out = np.zeros((len(mapped), n_hash))
    for column, values in enumerate(mapped.T):
        z = splitmix(column)
        out[:, z // 2**31 * n_hash // 2**32] += values if z % 2 == 0 else -values
    return out


def poly2_pegasos(X, sign, gamma, r, alpha, order):
    """w of Pegasos under the map, its first component that of the constant."""
    return pegasos(with_constant(poly2_map(X, gamma, r), r), sign, alpha, order)
