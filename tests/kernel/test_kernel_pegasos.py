"""Kernel Pegasos: the paper, the five questions, and Pegasos itself under a linear kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import KernelPegasosClassifier, PegasosClassifier
from polyplane.engine.support.support_set import MISTAKES
from tests.exact import ALPHAS, only_model, problems
from tests.examples import with_seeds
from tests.kernel.conftest import (
    FEW_EXAMPLES,
    assert_same_bits,
    coefs_of,
    gram_of,
    halves,
    listed_rows,
    pixels,
    some_weights,
    vectors_of,
)
from tests.reference.kernel_pegasos import kernel_pegasos

pytestmark = pytest.mark.loops


@with_seeds(3)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"alpha": 0.1, "fit_intercept": False, "max_iter": 3},
        {"budget": 10},
        {"budget": 2, "max_iter": 3, "alpha": 0.1},
        {"kernel": "linear", "alpha": 0.03},
    ],
    ids=str,
)
def test_equals_the_paper_transcribed(settings_, average, seed):
    X, y = halves(seed)
    made = {"alpha": 0.01, "max_iter": 2, **settings_}
    model = KernelPegasosClassifier(shuffle=False, average=average, **made).fit(X, y)
    weights = some_weights(seed, len(y))
    for of_rows in (None, weights):
        model.fit(X, y, of_rows)
        K, order = gram_of(model, X), np.tile(np.arange(len(y)), model.max_iter)
        last, mean, support = kernel_pegasos(
            K, 2 * y - 1, model.alpha, order, of_rows, model.budget
        )
        coefs = mean if average else last
        assert sorted(listed_rows(model)) == support
        np.testing.assert_allclose(coefs_of(model, len(y)), coefs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            model.intercept_, model.fit_intercept * coefs.sum(), rtol=1e-9, atol=1e-10
        )
        scores = coefs @ K
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(model.predict(X), scores > 0)


@settings(deadline=None, max_examples=FEW_EXAMPLES)
@given(problems(most_classes=2), st.sampled_from(ALPHAS), st.booleans(), st.booleans())
def test_with_a_linear_kernel_is_pegasos(problem, alpha, fit_intercept, average):
    X, y = problem
    made = {"alpha": alpha, "fit_intercept": fit_intercept, "average": average}
    made |= {"max_iter": 3, "shuffle": False}
    linear = PegasosClassifier(**made).fit(X, y)
    kernel = KernelPegasosClassifier(kernel="linear", **made).fit(X, y)
    scores = linear.decision_function(X)
    near = 1e-5 * max(np.abs(scores).max(), 1e-6)  # of planes that add up to nothing, rounding
    np.testing.assert_allclose(kernel.decision_function(X), scores, rtol=1e-5, atol=near)
    is_clear = np.abs(scores) > near
    np.testing.assert_array_equal(kernel.predict(X)[is_clear], linear.predict(X)[is_clear])


@pytest.mark.parametrize("budget", [None, 9])
def test_the_size_of_a_pack_changes_no_bit(budget):
    X, y = pixels(1, n=30, n_classes=3)
    made = {"gamma": 0.1, "budget": budget, "max_iter": 2, "random_state": 0}
    one = KernelPegasosClassifier(pack=1, **made).fit(X, y)
    for pack in (7, 30, 256):
        assert_same_bits(one, KernelPegasosClassifier(pack=pack, **made).fit(X, y), X)


def test_it_keeps_no_kernel_values_and_needs_none():
    X, y = pixels(4, n=60)
    model = KernelPegasosClassifier(gamma=0.1).fit(X, y)
    held = only_model(model).held
    assert held.gram.size == 0
    slots, values = vectors_of(model, only_model(model))
    np.testing.assert_array_equal(held.own[slots], np.diagonal(values))
    np.testing.assert_array_equal(held.own[slots], 2)  # 1, and 1 for the intercept


def test_every_row_is_a_step_and_every_wrong_score_a_mistake():
    X, y = halves(4, n=40)
    model = KernelPegasosClassifier(alpha=0.1, average=False, gamma=0.5)
    n_wrong = 0
    for i in range(len(y)):
        if i > 0:
            n_wrong += (2 * y[i] - 1) * model.decision_function(X[i : i + 1])[0] <= 0
        else:
            n_wrong += 1  # nothing scores 0
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        assert model.n_steps_ == i + 1
    assert only_model(model).held.counts[MISTAKES] == n_wrong
