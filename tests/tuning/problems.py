"""Generated problems whose answer is known."""

import numpy as np

from benchmarks.shapes import checkerboard


def columns(n, width=4, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, width)).astype(np.float32)


def flipped(y, share, seed=0):
    """Some labels are wrong."""
    return y ^ (np.random.default_rng(seed + 99).random(y.size) < share)


def linear(n, seed=0):
    X = columns(n, seed=seed)
    score = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    noise = np.random.default_rng(seed + 1).normal(scale=0.6, size=n)
    return X, (score + noise > 0).astype(np.int64)


def additive(n, seed=0):
    X = columns(n, seed=seed)
    score = np.cos(4 * X[:, 0]) + np.abs(X[:, 1]) - 0.5
    return X, flipped((score > 0).astype(np.int64), 0.03, seed)


def rings(n, seed=0):
    X = columns(n, 2, seed=seed)
    return X, (np.hypot(X[:, 0], X[:, 1]) > 0.7).astype(np.int64)


def xor(n, seed=0):
    X = columns(n, seed=seed)
    return X, flipped((X[:, 0] * X[:, 1] > 0).astype(np.int64), 0.03, seed)


def board(n, seed=0):
    X, y = checkerboard(n, seed=seed, fields=4)
    return X, y


def random_labels(n, seed=0):
    return columns(n, seed=seed), np.random.default_rng(seed + 2).integers(0, 2, n)
