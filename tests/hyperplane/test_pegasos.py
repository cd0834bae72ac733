"""Pegasos and the multi-class SVM: the paper, reductions, and Theorem 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import MMClassifier, PegasosClassifier
from tests.exact import (
    ALPHAS,
    as_fractions,
    problems,
    random_problem,
    sums_of,
)
from tests.examples import examples
from tests.reference.multi_hyperplane import multi_class_svm
from tests.reference.pegasos import pegasos

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "average": False, "fit_intercept": False}


@settings(deadline=None, max_examples=examples(60))
@given(problems(most_classes=2), st.sampled_from(ALPHAS), st.integers(1, 3))
def test_equals_the_paper_transcribed(problem, alpha, n_epochs):
    X, y = problem
    model = PegasosClassifier(alpha=alpha, max_iter=n_epochs, **PLAIN).fit(X, y)
    order = np.tile(np.arange(len(y)), n_epochs)
    exact = as_fractions(X)
    w = pegasos(exact, 2 * y - 1, as_fractions([[alpha]])[0, 0], order)
    sums, owner = sums_of(model)
    assert owner.tolist() == [0, 1]
    t = len(order)
    assert sums[1].tolist() == [float(v * t) * alpha for v in w]  # Theta = alpha t w
    assert sums[0].tolist() == (-sums[1]).tolist()
    expected = [float(x @ w) for x in exact]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-6)


@settings(deadline=None, max_examples=examples(60))
@given(problems(most_classes=4), st.sampled_from(ALPHAS), st.integers(1, 2))
def test_more_classes_equal_the_multi_class_svm_transcribed(problem, alpha, n_epochs):
    X, y = problem
    if y.max() == 1:
        return
    model = PegasosClassifier(alpha=alpha, max_iter=n_epochs, **PLAIN).fit(X, y)
    order = np.tile(np.arange(len(y)), n_epochs)
    exact = as_fractions(X)
    W = multi_class_svm(exact, y, y.max() + 1, as_fractions([[alpha]])[0, 0], order)
    expected = [[float(v * len(order)) * alpha for v in w] for w in W]
    sums, _ = sums_of(model)
    assert sums.tolist() == expected
    winners = np.argmax([[float(w @ x) for w in W] for x in exact], axis=1)
    assert model.predict(X).tolist() == winners.tolist()


def test_is_the_multi_hyperplane_machine_with_one_plane():
    X, y = random_problem(2)
    pegasos_model = PegasosClassifier(random_state=0).fit(X, y)
    machine = MMClassifier(n_planes=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(pegasos_model.planes_, machine.planes_)
    np.testing.assert_array_equal(pegasos_model.intercepts_, machine.intercepts_)


def test_two_classes_need_not_be_announced():
    X, y = random_problem(5, n_classes=2)
    y[:20] = 1
    whole = PegasosClassifier(max_iter=1, shuffle=False).fit(X, y)
    parts = PegasosClassifier()
    for start in range(0, len(y), 7):
        parts.partial_fit(X[start : start + 7], y[start : start + 7])
    np.testing.assert_array_equal(parts.planes_, whole.planes_)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_1_bounds_the_regret_against_any_comparator(seed):
    """Thm 1 holds against any W with |W| <= 2/lambda, the minimiser among them."""
    X, y = random_problem(seed, n=50, width=4, low=-3)
    X /= np.linalg.norm(X, axis=1).max()  # |x| <= 1
    alpha = 0.05
    model = PegasosClassifier(alpha=alpha, average=False, fit_intercept=False)
    seen = [np.zeros((3, 4))]
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
        seen.append(model.planes_)

    def loss(W, i):
        scores = X[i] @ W.T
        rival = np.delete(scores, y[i]).max()
        return alpha / 2 * (W**2).sum() + max(0, 1 + rival - scores[y[i]])

    n = len(y)
    own = np.mean([loss(seen[i], i) for i in range(n)])
    bound = 8 * (np.log(n) + 1) / (alpha * n)
    generator = np.random.default_rng(seed)
    comparators = [seen[0], seen[-1], np.mean(seen, axis=0), generator.normal(size=(3, 4))]
    for W in comparators:
        assert own - np.mean([loss(W, i) for i in range(n)]) <= bound
