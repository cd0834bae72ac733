"""Every data set with at least 2,000 rows, by name: X, y, X_test, y_test.

Dense where a set is dense, CSR where it is sparse, bytes where it is bytes: as users hold it.
"""

import functools

import numpy as np

from tests.real_data import libsvm_set, mnist_bytes

DENSE = [
    "ijcnn1", "magic04", "skin_nonskin", "satimage", "shuttle", "pendigits", "optdigits",
    "spambase", "splice", "svmguide1",
]  # fmt: skip
SPARSE = ["a9a", "w7a", "w8a", "dna", "mushrooms", "reuters-lasvm", "reuters-acq", "farm-ads",
          "sector"]  # fmt: skip
TWO_CLASSES = {"MNIST, 2 or not": ("MNIST", 2), "covtype, 2 or not": ("covtype", 2)}
NAMES = ["checkerboard", *DENSE, "covtype", *SPARSE, *reversed(TWO_CLASSES), "MNIST"]


def checkerboard(n=20_000, seed=5):
    """Fields of a 4 x 4 board, a quarter of the rows to test."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2)).astype(np.float32)
    y = np.floor(2 * (X + 1)).astype(int).sum(axis=1) % 2
    n_train = n * 3 // 4
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def _dense(name):
    X, y, X_test, y_test = libsvm_set(name)
    return X.toarray(), y, X_test.toarray(), y_test


@functools.cache
def load(name):
    """X, y, X_test, y_test."""
    if name in TWO_CLASSES:
        of, label = TWO_CLASSES[name]
        X, y, X_test, y_test = load(of)
        return X, (y == label).astype(int), X_test, (y_test == label).astype(int)
    if name == "MNIST":
        return mnist_bytes()
    if name == "checkerboard":
        return checkerboard()
    if name in SPARSE:
        return libsvm_set(name)
    return _dense("covtype-20k" if name == "covtype" else name)
