"""LaSVM: the paper, the five questions, and the SVM that it is in the end."""

import numpy as np
import pytest
from sklearn.svm import SVC

from polyplane import LaSVMClassifier
from polyplane.engine.support.support_set import REMOVED
from tests.exact import only_model
from tests.examples import with_seeds
from tests.kernel.conftest import (
    MANY,
    assert_lines_are_true,
    assert_same_bits,
    coefs_of,
    gram_of,
    halves,
    in_chunks,
    listed_rows,
    some_weights,
    vectors_of,
)
from tests.reference.kernels import svm_dual
from tests.reference.lasvm import LaSVM

pytestmark = pytest.mark.loops


def transcribed(model, X, y, n_passes, weights=None):
    """The reference after the same visits."""
    paper = LaSVM(
        gram_of(model, X), y, model.C, model.tol, model.n_reprocess, model.budget, weights
    )
    paper.visit(np.tile(np.arange(len(y)), n_passes))
    return paper.finish() if model.finishes else paper


def assert_equals(model, paper, X):
    """The same support vectors in the same list, coefficients, intercept and predictions."""
    assert listed_rows(model) == paper.active
    np.testing.assert_allclose(coefs_of(model, len(X)), paper.a, rtol=1e-9, atol=0)
    np.testing.assert_allclose(model.intercept_, paper.bias(), rtol=1e-9, atol=1e-12)
    assert only_model(model).held.counts[REMOVED] == paper.removed
    scores = paper.a @ gram_of(model, X) + paper.bias()
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


@with_seeds(4)
@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"C": 0.2, "finishes": False},
        {"C": 100.0, "max_iter": 2},
        {"n_reprocess": 0},
        {"n_reprocess": 3, "finishes": False, "max_iter": 2},
        {"budget": 12, "finishes": False},
        {"budget": 2, "C": 5.0},
        {"kernel": "linear", "C": 0.5},
    ],
    ids=str,
)
def test_equals_the_paper_transcribed(settings_, seed):
    X, y = halves(seed)
    model = LaSVMClassifier(shuffle=False, **settings_).fit(X, y)
    paper = transcribed(model, X, y, model.max_iter)
    assert_equals(model, paper, X)
    assert paper.removed > 0 or not model.finishes


@with_seeds(2)
def test_weights_are_factors_of_the_bounds(seed):
    X, y = halves(seed)
    weights = some_weights(seed, len(y))
    model = LaSVMClassifier(shuffle=False, max_iter=2).fit(X, y, weights)
    paper = transcribed(model, X, y, 2, weights)
    assert_equals(model, paper, X)
    assert np.unique(np.abs(paper.a)[np.abs(paper.a) > 0.49]).size > 1


def test_rows_are_passed_by_until_both_classes_are_there():
    X, y = halves(1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = LaSVMClassifier(shuffle=False, n_reprocess=0, finishes=False).fit(X, y)
    rows = listed_rows(model)
    assert rows[:2] == [0, np.argmax(y)]
    assert_equals(model, transcribed(model, X, y, 1), X)


def assert_kept_is_true(model, y, C):
    """Coefficients are within bounds and sum to 0; gradients are theirs, recomputed."""
    for one in model._training.models:
        held = one.held
        slots, values = vectors_of(model, one)
        a, sign = held.coef[0, slots], 2 * held.side[slots] - 1
        np.testing.assert_allclose(a.sum(), 0, atol=1e-9 * C * a.size)
        assert (sign * a >= 0).all()
        assert (sign * a <= C).all()
        assert np.count_nonzero(held.coef) == np.count_nonzero(a)  # freed slots are clean
        gradients = sign - values.astype(np.float64) @ a
        np.testing.assert_allclose(held.scores[0, slots], gradients, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("settings_", [{}, {"C": 30.0}, {"n_reprocess": 0}], ids=str)
def test_gradients_kept_by_increments_equal_their_definition(settings_):
    X, y = halves(5, n=MANY)
    model = LaSVMClassifier(gamma=0.5, **settings_)
    for _ in range(3):
        in_chunks(model, X, y, 37)
        assert_kept_is_true(model, y, model.C)
        model.finish()
        assert_kept_is_true(model, y, model.C)
        assert_lines_are_true(model)
    assert only_model(model).held.counts[REMOVED] > 0


def test_gradients_stay_true_where_a_budget_drops_coefficients():
    X, y = halves(5, n=MANY)
    model = LaSVMClassifier(gamma=0.5, budget=9)
    for _ in range(2):
        in_chunks(model, X, y, 37)
        [one] = model._training.models
        slots, values = vectors_of(model, one)
        assert slots.size <= 9
        a, sign = one.held.coef[0, slots], 2 * one.held.side[slots] - 1
        gradients = sign - values.astype(np.float64) @ a
        np.testing.assert_allclose(one.held.scores[0, slots], gradients, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-8])
def test_after_finish_no_pair_of_support_vectors_violates(tol):
    X, y = halves(6)
    model = LaSVMClassifier(tol=tol, C=2.0, random_state=0).fit(X, y)
    a = coefs_of(model, len(y))[model.support_]
    sign = 2 * y[model.support_] - 1
    gradients = sign - (gram_of(model, X) @ coefs_of(model, len(y)))[model.support_]
    may_rise = a < np.where(sign > 0, model.C, 0)
    may_fall = a > np.where(sign > 0, 0, -model.C)
    assert gradients[may_rise].max() - gradients[may_fall].min() <= tol + 1e-12
    margin = sign * (gradients - model.intercept_)  # 1 - y f
    assert margin[(a != 0) & may_rise & may_fall] == pytest.approx(0, abs=tol)


def assert_is_the_svm(model, svm, X, y):
    """The same dual objective and predictions."""
    K, sign = gram_of(model, X), 2 * y - 1
    theirs = np.zeros(len(y))
    theirs[svm.support_] = svm.dual_coef_[0]
    ours = coefs_of(model, len(y))
    np.testing.assert_allclose(svm_dual(K, sign, ours), svm_dual(K, sign, theirs), rtol=1e-6)
    scores = theirs @ K + svm.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


@with_seeds(3)
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_several_passes_reach_the_svm(seed, C):
    X, y = halves(seed)
    model = LaSVMClassifier(C=C, tol=1e-6, max_iter=20, random_state=0).fit(X, y)
    svm = SVC(kernel="precomputed", C=C, tol=1e-8).fit(gram_of(model, X), y)
    assert_is_the_svm(model, svm, X, y)


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5}, "balanced"])
def test_weights_mean_what_they_mean_to_the_svm(class_weight):
    X, y = halves(7)
    weights = some_weights(7, len(y))
    model = LaSVMClassifier(tol=1e-6, max_iter=20, class_weight=class_weight, random_state=0)
    model.fit(X, y, weights)
    svm = SVC(kernel="precomputed", tol=1e-8, class_weight=class_weight)
    svm.fit(gram_of(model, X), y, weights)
    assert_is_the_svm(model, svm, X, y)


def test_finish_needs_a_model_and_ends_where_nothing_violates():
    X, y = halves(8)
    model = LaSVMClassifier(shuffle=False).fit(X, y)
    again = LaSVMClassifier(shuffle=False).fit(X, y).finish()
    assert_same_bits(model, again, X)
    one_class = LaSVMClassifier().partial_fit(X[:1], y[:1]).finish()
    np.testing.assert_array_equal(one_class.predict(X[:3]), y[[0, 0, 0]])
