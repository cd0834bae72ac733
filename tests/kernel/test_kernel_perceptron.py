"""The averaged kernel perceptron: the paper and the five questions."""

import numpy as np
import pytest

from polyplane import KernelPerceptronClassifier
from polyplane.engine.support.support_set import INSERTED, MISTAKES, REMOVED
from tests.exact import only_model
from tests.examples import with_seeds
from tests.kernel.conftest import (
    apart,
    coefs_of,
    gram_of,
    halves,
    in_chunks,
    listed_rows,
    some_weights,
)
from tests.reference.kernel_perceptron import kernel_perceptron

pytestmark = pytest.mark.loops


@with_seeds(3)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"fit_intercept": True, "max_iter": 4},
        {"budget": 8},
        {"budget": 2, "fit_intercept": True},
        {"kernel": "linear"},
    ],
    ids=str,
)
def test_equals_the_paper_transcribed(settings_, average, seed):
    X, y = halves(seed)
    made = {"max_iter": 2, **settings_}
    model = KernelPerceptronClassifier(shuffle=False, average=average, **made)
    for weights in (None, some_weights(seed, len(y))):
        model.fit(X, y, weights)
        K, order = gram_of(model, X), np.tile(np.arange(len(y)), model.max_iter)
        last, mean, support = kernel_perceptron(K, 2 * y - 1, order, weights, model.budget)
        coefs = mean if average else last
        assert sorted(listed_rows(model)) == support
        np.testing.assert_allclose(coefs_of(model, len(y)), coefs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            model.intercept_, model.fit_intercept * coefs.sum(), rtol=1e-9, atol=1e-12
        )
        scores = coefs @ K
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(model.predict(X), scores > 0)


def test_a_pass_without_mistakes_changes_nothing_but_the_average():
    X, y = apart(0, n=40, gap=2.0)
    model = KernelPerceptronClassifier(kernel="linear", average=False, fit_intercept=True)
    in_chunks(model, X, y, 7)
    counts = only_model(model).held.counts.copy()
    before = [model.support_, model.dual_coef_, model.intercept_]
    assert (model.predict(X) == y).all()
    in_chunks(model, X, y, 7)
    assert only_model(model).held.counts[[INSERTED, REMOVED, MISTAKES]].tolist() == (
        counts[[INSERTED, REMOVED, MISTAKES]].tolist()
    )
    for old, new in zip(before, [model.support_, model.dual_coef_, model.intercept_], strict=True):
        np.testing.assert_array_equal(old, new)
    assert model.n_steps_ == 80


def test_every_mistake_adds_its_row_and_nothing_else_does():
    X, y = halves(2)
    model = KernelPerceptronClassifier(average=False, max_iter=3, random_state=0).fit(X, y)
    counts = only_model(model).held.counts
    assert counts[MISTAKES] == np.abs(model.dual_coef_).sum()  # no row was wrong both ways
    assert counts[INSERTED] == model.support_.size
