"""Nyström: the five questions, and where its landmarks come from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from polyplane import (
    KernelPegasosClassifier,
    NystromClassifier,
    PassiveAggressiveClassifier,
    PegasosClassifier,
)
from polyplane.kernel.nystrom import inverse_of
from tests.exact import only_model
from tests.examples import with_seeds
from tests.kernel.conftest import (
    FEW,
    FEW_EXAMPLES,
    MANY,
    assert_same_bits,
    halves,
    in_chunks,
    pixels,
)
from tests.reference.nystrom import nystrom

pytestmark = pytest.mark.loops

MACHINES = {"pegasos": {"alpha": 0.02}, "PA-I": {"C": 0.2}, "PA-II": {"C": 0.5}}
PLAIN = {"shuffle": False, "average": False, "fit_intercept": False}
with_every_machine = pytest.mark.parametrize("machine", MACHINES)


def made(machine, **parameters):
    """Few landmarks, seeded, with the strength that the tests give to a machine."""
    defaults = {"n_landmarks": 8, "gamma": 0.25, "random_state": 0, "max_iter": 2}
    return NystromClassifier(machine=machine, **(defaults | MACHINES[machine] | parameters))


@with_every_machine
@with_seeds(3)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_equals_the_papers_transcribed(machine, seed, fit_intercept):
    """On rows that are not whole numbers margins do not tie, and rounding does not decide."""
    X, y = halves(seed, n=FEW)
    model = made(machine, **PLAIN | {"fit_intercept": fit_intercept}).fit(X, y)
    marks = X[model.support_].astype(np.float64)
    gram, values = (rbf_kernel(A, marks, gamma=0.25) + fit_intercept for A in (marks, X))
    [strength] = MACHINES[machine].values()
    order = np.tile(np.arange(len(y)), 2)
    expected = nystrom(gram, values, y, order, machine, strength)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-3, atol=1e-3)


@with_every_machine
def test_with_all_rows_as_landmarks_the_features_are_those_of_the_kernel(machine):
    """z(x) z(x') = K(x, x'), so that the steps are those of the machine with the kernel itself."""
    X, y = halves(3, n=FEW)
    model = made(machine, n_landmarks=FEW, max_iter=1, **PLAIN).fit(X, y)
    if machine == "pegasos":
        exact = KernelPegasosClassifier(gamma=0.25, max_iter=1, **MACHINES[machine], **PLAIN)
        expected = exact.fit(X, y).decision_function(X)
    else:
        K = rbf_kernel(X.astype(np.float64), gamma=0.25)
        expected = by_kernel(K, y, machine, MACHINES[machine]["C"])
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=2e-2, atol=2e-2)


def by_kernel(K, y, variant, C):
    """Passive-Aggressive with a kernel: f after one pass."""
    coef, sign = np.zeros(len(y)), 2 * y - 1
    for i in range(len(y)):
        loss = max(0, 1 - sign[i] * (coef @ K[i]))
        step = min(C, loss / K[i, i]) if variant == "PA-I" else loss / (K[i, i] + 1 / (2 * C))
        coef[i] += step * sign[i]
    return K @ coef


@with_every_machine
def test_with_a_linear_kernel_it_is_the_linear_machine(machine):
    """As many landmarks as columns span all rows, and z is a rotation of x."""
    X, y = halves(4, n=FEW, width=3)
    model = made(machine, kernel="linear", landmarks="uniform", max_iter=3, **PLAIN).fit(X, y)
    linear = (
        PegasosClassifier(alpha=0.02, max_iter=3, **PLAIN)
        if machine == "pegasos"
        else PassiveAggressiveClassifier(variant=machine, max_iter=3, **MACHINES[machine], **PLAIN)
    )
    expected = linear.fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-3, atol=1e-3)


@settings(deadline=None, max_examples=FEW_EXAMPLES)
@given(st.integers(1, 50), st.sampled_from(sorted(MACHINES)), st.sampled_from([1, 5, 16, 400]))
def test_partial_fit_over_any_chunks_gives_the_same_bits(size, machine, n_landmarks):
    X, y = pixels(5, n=FEW, n_classes=3)
    model = made(machine, gamma=0.05, n_landmarks=n_landmarks)
    whole = clone(model).partial_fit(X, y)
    assert_same_bits(whole, in_chunks(model, X, y, size), X)
    np.testing.assert_array_equal(whole.support_, np.arange(min(n_landmarks, len(y))))


@with_every_machine
def test_fit_on_the_rows_that_a_stream_starts_with_is_that_stream(machine):
    """With one landmark there is nothing to wait for: the second pass of both is the same."""
    X, y = halves(6, n=FEW)
    streamed = made(machine, n_landmarks=1).partial_fit(X[:1], y[:1], classes=[0, 1])
    streamed.partial_fit(X[1:], y[1:])
    assert streamed.support_.tolist() == [0]
    again = made(machine, n_landmarks=1).partial_fit(X, y)
    assert_same_bits(streamed, again, X)


def test_the_inverse_is_that_of_the_kernel_among_landmarks():
    X, y = halves(7, n=MANY)
    model = made("pegasos", gamma=2.0).fit(X, y)
    marks = X[model.support_].astype(np.float64)
    gram = rbf_kernel(marks, gamma=2.0) + 1  # with the constant of the intercept
    np.testing.assert_allclose(inverse_of(model._training) @ gram, np.eye(8), atol=1e-4)


@with_every_machine
def test_the_average_kept_by_increments_equals_its_definition(machine):
    X, y = halves(8, n=FEW)
    seen, sums = made(machine, n_landmarks=1, **PLAIN), []
    for i in range(len(y)):
        seen.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        sums.append(only_model(seen).held.coef[0, :1].copy())
    steps = np.arange(1, len(y) + 1)
    mean = np.average(sums, axis=0, weights=steps)
    averaged = made(machine, n_landmarks=1, **PLAIN | {"average": True}).partial_fit(X, y)
    scale = 1.0 if machine != "pegasos" else 0.02 * len(y)
    np.testing.assert_allclose(averaged.dual_coef_[0], mean / scale, rtol=1e-6)


@pytest.mark.parametrize("landmarks", ["kmeans", "uniform"])
def test_landmarks_are_different_rows_and_as_many_as_asked_for(landmarks):
    X, y = pixels(9, n=MANY, width=3)  # of which many are equal
    model = made("pegasos", landmarks=landmarks, n_landmarks=30, max_iter=1).fit(X, y)
    assert model.support_.size == np.unique(model.support_).size == 30
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_k_means_reaches_clusters_that_rows_drawn_at_random_miss():
    generator = np.random.default_rng(0)
    centres = 40 * np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
    which = np.r_[np.arange(6), generator.choice(6, 300, p=[0.9, *[0.02] * 5])]
    X = centres[which] + generator.normal(0, 0.1, (which.size, 2))
    reached = {}
    for landmarks in ("kmeans", "uniform"):
        model = made("pegasos", landmarks=landmarks, n_landmarks=6, max_iter=1).fit(X, which % 2)
        reached[landmarks] = set(which[model.support_])
    assert len(reached["kmeans"]) >= 5 > len(reached["uniform"])


def test_fewer_rows_than_landmarks_are_all_landmarks():
    X, y = halves(10, n=20)
    model = made("pegasos", n_landmarks=64).fit(X, y)
    assert model.support_.tolist() == list(range(20))
    model.partial_fit(X[:3] + 1, y[:3])  # fit has settled what they are
    assert model.support_.tolist() == list(range(20))


def test_a_class_that_comes_later_shares_the_landmarks():
    X, y = pixels(11, n=FEW, n_classes=3)
    model = made("pegasos", gamma=0.05)
    model.partial_fit(X[y < 2], y[y < 2]).partial_fit(X[y == 2], y[y == 2])
    assert model.dual_coef_.shape == (3, 8)
    assert (np.abs(model.dual_coef_).sum(axis=1) > 0).all()


def test_rows_of_zeros_and_equal_rows_do_no_harm():
    X, y = np.zeros((12, 3)), np.arange(12) % 2
    for kernel in ("linear", "rbf"):
        scores = made("PA-I", kernel=kernel, **PLAIN).fit(X, y).decision_function(X)
        assert np.isfinite(scores).all()
