"""Errors on real data, in bands wide enough for noise and too narrow for a broken update."""

import numpy as np
import pytest

from polyplane import AMMClassifier, MMClassifier, PegasosClassifier
from tests.real_data import a9a, mnist, mnist_bytes

pytestmark = pytest.mark.compiled


def error(model, data):
    X, y, X_test, y_test = data
    return 100 * np.mean(model.fit(X, y).predict(X_test) != y_test)


@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        (PegasosClassifier(alpha=1e-4, max_iter=5, random_state=0), 14.8, 15.4),
        (AMMClassifier(alpha=1e-3, max_iter=5, random_state=0), 14.7, 15.5),
        (AMMClassifier(alpha=1e-3, max_iter=6, mode="batch", random_state=0), 14.6, 15.4),
        (MMClassifier(alpha=1e-3, max_iter=5, random_state=0), 14.7, 15.6),
    ],
    ids=["pegasos", "amm", "amm-batch", "mm"],
)
def test_a9a(model, low, high):
    assert low < error(model, a9a()) < high


@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        (PegasosClassifier(alpha=1e-4, max_iter=3, random_state=0), 6.5, 9.0),
        (AMMClassifier(alpha=1e-4, max_iter=5, random_state=0), 3.5, 4.8),
    ],
    ids=["multi-class-svm", "amm"],
)
def test_mnist_ten_digits(model, low, high):
    assert low < error(model, mnist()) < high


def test_mnist_two_against_the_rest():
    X, y, X_test, y_test = mnist()
    model = AMMClassifier(alpha=1e-4, max_iter=5, random_state=0)
    assert 0.5 < error(model, (X, y == 2, X_test, y_test == 2)) < 0.95


def test_bytes_equal_the_same_pixels_as_csr():
    """Pixels 0 to 255: alpha and budget scale with them; the storages take the same steps."""
    X, y, X_test, y_test = mnist_bytes()
    model = AMMClassifier(
        alpha=6.5, prune_budget=2_550.0, max_iter=1, random_state=0, fit_intercept=False
    )
    found = model.fit(X[:20_000], y[:20_000] == 2).score(X_test, y_test == 2)
    dense = model.fit(X[:20_000].astype(np.float32), y[:20_000] == 2)
    assert found == dense.score(X_test, y_test == 2)
