"""AROW: the paper, reductions, and what its confidence is for."""

import numpy as np
import pytest

from polyplane import AROWClassifier, PassiveAggressiveClassifier
from tests.exact import only_model, random_problem, sums_of
from tests.reference.arow import arow, multi_class

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "fit_intercept": False}


def drawn(n_classes, n=80, width=6):
    """Rows of real numbers, on which rivals do not tie."""
    generator = np.random.default_rng(n_classes)
    X = generator.normal(size=(n, width)).astype(np.float32)
    y = (X[:, :n_classes] + 0.5 * generator.normal(size=(n, n_classes))).argmax(axis=1)
    return X, y


def precisions_of(model):
    """The diagonal of Sigma^-1, by class."""
    planes = only_model(model).planes
    lanes = np.flatnonzero(planes.owner >= 0)
    return 1 + planes.timed_sums[1 : model.n_features_in_ + 1, lanes].T.astype(np.float64)


@pytest.mark.parametrize("r", [0.1, 1.0, 30.0])
def test_equals_the_paper_transcribed(r):
    """With two classes the planes are opposite, each half of w."""
    X, y = drawn(2)
    model = AROWClassifier(r=r, max_iter=2, **PLAIN).fit(X, y)
    order = np.tile(np.arange(len(y)), 2)
    w, precision = arow(X.astype(np.float64), 2 * y - 1, np.full(len(y), r), order)
    sums, _ = sums_of(model)
    np.testing.assert_array_equal(sums[0], -sums[1])
    np.testing.assert_allclose(2 * sums[1], w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(precisions_of(model), [precision, precision], rtol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), X @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("r", [0.1, 10.0])
def test_more_classes_equal_the_paper_transcribed(r):
    X, y = drawn(4)
    weights = np.random.default_rng(0).choice([0.25, 1.0, 3.0], len(y))
    model = AROWClassifier(r=r, max_iter=1, **PLAIN).fit(X, y, sample_weight=weights)
    W, precision = multi_class(X.astype(np.float64), y, 4, r / weights, range(len(y)))
    np.testing.assert_allclose(sums_of(model)[0], W, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(precisions_of(model), precision, rtol=1e-4)
    np.testing.assert_array_equal(model.planes_, sums_of(model)[0].astype(np.float32))


def test_with_a_large_r_a_step_is_that_of_passive_aggressive():
    """Sigma stays 1: PA-II has (1 - m) / (x x + 1 / (2 C)) for two classes."""
    X, y = drawn(2, n=30)
    r = 1e6
    model = AROWClassifier(r=r, max_iter=1, **PLAIN).fit(X, y)
    other = PassiveAggressiveClassifier(C=1 / (2 * r), max_iter=1, average=False, **PLAIN)
    np.testing.assert_allclose(model.planes_, other.fit(X, y).planes_, rtol=1e-3)


def test_a_column_that_is_new_is_learned_faster_than_one_that_is_well_known():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 400)
    X = np.zeros((400, 2), np.float32)
    X[:, 0] = np.where(generator.random(400) < 0.7, 2 * y - 1, 1 - 2 * y)
    model = AROWClassifier(fit_intercept=False).partial_fit(X, y)
    before = model.planes_
    model.partial_fit(np.ones((1, 2), np.float32), [0])
    known, new = np.abs(model.planes_ - before).max(axis=0)
    assert new > 20 * known > 0


def test_it_has_no_alpha():
    with pytest.raises(TypeError, match="alpha"):
        AROWClassifier(alpha=1.0)
    X, y = random_problem(7)
    with pytest.raises(AttributeError, match="parameter is r"):
        AROWClassifier().fit(X, y).alpha_  # noqa: B018
