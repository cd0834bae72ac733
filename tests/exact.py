"""Small problems of whole numbers, on which floating point is exact and ties are real."""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

ALPHAS = [2.0**-k for k in (0, 2, 4, 7)]  # powers of two: alpha t is exact


@st.composite
def problems(draw, most_classes=3):
    """X of small whole numbers, and y with at least two classes."""
    n = draw(st.integers(4, 24))
    width = draw(st.integers(1, 5))
    n_classes = draw(st.integers(2, most_classes))
    cells = st.lists(st.integers(-2, 3), min_size=n * width, max_size=n * width)
    X = np.array(draw(cells), np.float64).reshape(n, width)
    rest = st.lists(st.integers(0, n_classes - 1), min_size=n - n_classes, max_size=n - n_classes)
    y = np.array(list(range(n_classes)) + draw(rest))
    return X, y[draw(st.permutations(range(n)))]


def random_problem(seed, n=60, width=6, n_classes=3, low=0, high=3):
    """A fixed problem of whole numbers."""
    generator = np.random.default_rng(seed)
    X = generator.integers(low, high, (n, width)).astype(np.float64)
    y = generator.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def as_fractions(X):
    """The same numbers as exact rationals."""
    return np.array([[Fraction(float(v)) for v in row] for row in X], dtype=object)


def storages(X):
    """The same matrix in every storage that can hold it."""
    out = {
        "float64": X,
        "float32": X.astype(np.float32),
        "csr32": sp.csr_matrix(X.astype(np.float32)),
        "csr64": _wide(sp.csr_matrix(X)),
    }
    if X.min() >= 0:
        out["bytes"] = X.astype(np.uint8)
    return out


def _wide(matrix):
    matrix.indices, matrix.indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    return matrix


def only_model(estimator):
    """The model in training of a fitted estimator that is not several side by side."""
    [model] = estimator._training.models
    return model


def sums_of(model):
    """Theta of a fitted estimator, planes by features, in order of birth; and their classes."""
    planes = only_model(model).planes
    lanes = np.flatnonzero(planes.owner >= 0)
    n_columns = model.n_features_in_
    return planes.sums[1 : n_columns + 1, lanes].T.astype(np.float64), planes.owner[lanes]


def squared_norms_recomputed(model):
    """Kept by increments, and from the definition."""
    planes = only_model(model).planes
    lanes = np.flatnonzero(planes.owner >= 0)
    fresh = np.square(planes.sums[:, lanes], dtype=np.float64).sum(axis=0)
    return planes.squared_norms[lanes], fresh
