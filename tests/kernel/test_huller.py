"""The Huller: the paper, the five questions, and the SVM to which it converges."""

import numpy as np
import pytest
from sklearn.svm import SVC

from polyplane import HullerClassifier
from polyplane.engine.order import shuffle
from polyplane.engine.support.support_set import MISTAKES, REMOVED
from polyplane.kernel.huller import CROSS, SCALE, SELF
from tests.exact import only_model
from tests.examples import with_seeds
from tests.kernel.conftest import (
    MANY,
    apart,
    assert_lines_are_true,
    assert_same_bits,
    coefs_of,
    coins_of,
    gram_of,
    halves,
    in_chunks,
    listed_rows,
    some_weights,
    vectors_of,
)
from tests.reference.huller import Huller
from tests.reference.kernels import squared_length, with_slack

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "tol": 0.0, "random_state": 0, "n_sweeps": "paper"}


def transcribed(model, X, y, order, weights=None):
    """The reference after the same visits with the same coins."""
    K = gram_of(model, X)
    if model.C is not None:
        K = with_slack(K, model.C, weights)
    n_init = min(model.n_init, model.budget // 2) if model.budget else model.n_init
    paper = Huller(K, y, n_init, model.n_removal, model.budget)
    return paper.visit(order, coins_of(model, len(order), model.n_removal))


def assert_equals(model, paper, X):
    """The same support vectors in the same list, coefficients, intercept and predictions."""
    held = only_model(model).held
    assert listed_rows(model) == paper.active
    coefs, intercept = paper.coefs_and_intercept()
    np.testing.assert_allclose(coefs_of(model, len(X)), coefs, rtol=1e-9, atol=0)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-9, atol=1e-12)
    assert held.counts[REMOVED] == paper.removed
    assert held.counts[MISTAKES] == paper.mistakes
    scores = coefs @ gram_of(model, X) + intercept
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), scores > 0)


@with_seeds(4)
@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"C": 2.0},
        {"n_removal": 0, "n_init": 1},
        {"n_removal": 3, "n_init": 2, "C": 10.0},
        {"budget": 12, "C": 1.0},
        {"budget": 2, "n_init": 1},
        {"kernel": "linear", "C": 0.5},
    ],
    ids=str,
)
def test_equals_the_paper_transcribed(settings_, seed):
    X, y = halves(seed)
    model = HullerClassifier(max_iter=2, **settings_, **PLAIN).fit(X, y)
    paper = transcribed(model, X, y, np.tile(np.arange(len(y)), 2))
    assert_equals(model, paper, X)
    assert paper.removed > 0 or model.C is not None or model.n_removal == 0


@with_seeds(2)
def test_weights_divide_the_slack(seed):
    X, y = halves(seed)
    weights = some_weights(seed, len(y))
    model = HullerClassifier(max_iter=2, C=2.0, **PLAIN).fit(X, y, weights)
    paper = transcribed(model, X, y, np.tile(np.arange(len(y)), 2), weights)
    assert_equals(model, paper, X)


@with_seeds(3)
def test_a_row_may_take_the_place_of_its_whole_side(seed):
    generator = np.random.default_rng(seed)
    X = np.sort(generator.random((40, 2)).astype(np.float32), axis=0)[::-1].copy()
    X[1::2] *= -1  # each row is nearer to the other side than all before
    y = (X[:, 0] > 0).astype(np.int64)
    model = HullerClassifier(kernel="linear", n_init=3, max_iter=2, **PLAIN).fit(X, y)
    paper = transcribed(model, X, y, np.tile(np.arange(len(y)), 2))
    assert paper.replaced > 20
    assert_equals(model, paper, X)


def test_shuffled_passes_visit_every_row_in_a_new_order():
    X, y = halves(3)
    model = HullerClassifier(**PLAIN).set_params(max_iter=2, n_init=4, shuffle=True).fit(X, y)
    generator, visits = np.random.default_rng(model._training.seed), []
    for _ in range(2):
        order = np.arange(len(y))
        shuffle(order, generator)
        visits += order.tolist()
    assert_equals(model, transcribed(model, X, y, visits), X)


def test_rows_are_passed_by_until_both_classes_are_there():
    X, y = halves(1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = HullerClassifier(max_iter=1, n_init=3, n_removal=0, **PLAIN).fit(X, y)
    rows = listed_rows(model)
    assert rows[:3] == [0, 1, 2]
    assert min(rows[3:]) == np.argmax(y)
    assert_equals(model, transcribed(model, X, y, np.arange(len(y))), X)


def assert_kept_is_true(model):
    """Coefficients are those of points of hulls; products and scores are theirs, recomputed."""
    for one in model._training.models:
        held = one.held
        slots, values = vectors_of(model, one)
        alphas = held.totals[SCALE : SCALE + 2, None] * held.coef[:, slots]
        np.testing.assert_allclose(alphas.sum(axis=1), 1, rtol=1e-9)  # Eq. 1
        assert (alphas >= 0).all()
        np.testing.assert_array_equal(alphas[1 - held.side[slots], np.arange(slots.size)], 0)
        assert np.count_nonzero(held.coef) == np.count_nonzero(alphas)  # freed slots are clean
        K = values.astype(np.float64)
        products = alphas @ K @ alphas.T
        kept = [held.totals[SELF], held.totals[CROSS], held.totals[SELF + 1]]
        np.testing.assert_allclose(kept, products[[0, 0, 1], [0, 1, 1]], rtol=1e-9)
        scores = held.totals[SCALE : SCALE + 2, None] * held.scores[:, slots]
        np.testing.assert_allclose(scores, alphas @ K, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("settings_", [{}, {"C": 1.0}, {"budget": 15, "C": 1.0}], ids=str)
def test_what_is_kept_by_increments_equals_its_definition(settings_):
    X, y = halves(5, n=MANY)
    model = HullerClassifier(gamma=0.5, random_state=0, n_removal=2, **settings_)
    for _ in range(3):
        in_chunks(model, X, y, 37)
        assert_kept_is_true(model)
        assert_lines_are_true(model)
    assert only_model(model).held.counts[REMOVED] > 0


def test_scales_that_leave_the_range_are_folded_into_the_coefficients():
    """X_N is the origin; each row is square to X_P and a tenth as long: lambda = 100 / 101."""
    rows = [np.zeros(2), np.array([1.0, 0.0])]
    point = rows[1]
    for _ in range(7):
        rows.append(np.array([-point[1], point[0]]) / 10)
        point = (point + 100 * rows[-1]) / 101
    X, y = np.array(rows, np.float32), np.array([0] + [1] * 8)
    model = HullerClassifier(kernel="linear", n_init=1, n_removal=0, max_iter=1, **PLAIN).fit(X, y)
    paper = transcribed(model, X, y, np.arange(len(y)))
    assert paper.replaced == 0
    assert 0 < paper.alpha[1] < 1e-13
    assert_equals(model, paper, X)
    assert 1e-6 < only_model(model).held.totals[SCALE + 1] < 1


@with_seeds(3)
@pytest.mark.parametrize("C", [None, 3.0])
def test_converges_to_the_svm(seed, C):
    X, y = apart(seed, n=40)
    model = HullerClassifier(
        kernel="linear", C=C, max_iter=3000, tol=1e-13, n_removal=4, random_state=seed
    ).fit(X, y)
    K = gram_of(model, X)
    trained = K if C is None else with_slack(K, C)
    svm = SVC(kernel="precomputed", C=1e6, tol=1e-8).fit(trained, y)
    theirs = np.zeros(len(y))
    theirs[svm.support_] = svm.dual_coef_[0]
    assert model.n_iter_ < 3000
    ours = coefs_of(model, len(y))
    np.testing.assert_allclose(
        squared_length(trained, ours), squared_length(trained, theirs), rtol=1e-6
    )
    np.testing.assert_allclose(
        model.decision_function(X), theirs @ K + svm.intercept_, rtol=0, atol=1e-4
    )
    np.testing.assert_array_equal(model.predict(X), theirs @ K + svm.intercept_ > 0)


@pytest.mark.parametrize(
    ("kernel", "rows", "y"),
    [
        ("rbf", [[1, 2]] * 6, [0, 1] * 3),
        ("linear", [[1, 2]] * 6, [0, 1] * 3),
        ("poly", [[1, 2]] * 6, [0, 1] * 3),
        ("linear", [[0, 0]] * 6, [0, 1] * 3),
        ("linear", [[3, 4]] * 3 + [[4, 3]] * 3, [0, 0, 0, 1, 1, 1]),
        ("linear", [[0, 0], [1, 0], [0, 0], [1, 0], [0, 0], [0, 0]], [0, 1, 0, 1, 1, 0]),
    ],
)
def test_a_hard_margin_of_odd_rows_stays_finite(kernel, rows, y):
    model = HullerClassifier(kernel=kernel, max_iter=4, random_state=0).fit(rows, y)
    assert np.isfinite(model.decision_function([*rows, [2, 9]])).all()
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.intercept_).all()


def test_the_budget_is_kept_where_more_rows_are_averaged():
    X, y = halves(0)
    order = np.argsort(y, kind="stable")
    model = HullerClassifier(budget=4, n_init=6, C=1.0, **PLAIN).fit(X[order], y[order])
    assert model.support_.size <= 4


def test_rows_that_come_and_go_within_a_chunk_leave_no_trace():
    """Each row moves X_P by so little that it is itself the smallest above the budget."""
    across = np.random.default_rng(0).uniform(8, 12, 41)
    X = np.vstack([[[1, 0], [-1, 0]], np.column_stack([np.full(41, 0.9), across])])
    y = np.array([1, 0] + [1] * 41)
    made = {"kernel": "linear", "budget": 2, "n_init": 1, "n_removal": 0, "random_state": 0}
    made["n_sweeps"] = "paper"
    model = HullerClassifier(**made)
    for start, stop in ((0, 2), (2, 42), (42, 43)):
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        held = only_model(model).held
        assert not held.place[held.position < 0].any()
    assert held.counts[REMOVED] == 41
    whole = HullerClassifier(max_iter=1, shuffle=False, **made).fit(X, y)
    assert_same_bits(whole, model, X)


@with_seeds(3)
def test_sweeps_offer_every_vector_for_removal_in_a_random_order(seed):
    X, y = halves(seed, n=80)  # of fewer rows none may have to go
    model = HullerClassifier(C=4.0, max_iter=1, **(PLAIN | {"n_sweeps": 3})).fit(X, y)
    paper = transcribed(model, X, y, np.arange(len(y)))
    generator = np.random.default_rng(only_model(model).seed)
    generator.random((len(y), model.n_removal))  # the coins of the pass
    n_before = paper.removed
    for _ in range(model.n_sweeps):
        paper.sweep(generator)
    assert paper.removed > n_before
    assert_equals(model, paper, X)


def test_the_rule_of_the_paper_has_no_sweeps_and_goes_by_its_name():
    X, y = halves(0, n=80)
    made = {"C": 4.0, "random_state": 0}
    paper = HullerClassifier(n_sweeps="paper", **made).fit(X, y)
    assert_same_bits(paper, HullerClassifier(n_sweeps=0, **made).fit(X, y), X)
    paper.set_params(n_sweeps=10).finish()
    assert_same_bits(HullerClassifier(**made).fit(X, y), paper, X)


@pytest.mark.compiled
def test_problems_end_a_fit_with_the_whole_cache_and_share_it_afterwards():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(900, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) + (generator.random(900) < 0.5)
    options = {"gamma": 1.0, "multi_class": "ovr", "n_sweeps": 3, "random_state": 0}
    roomy = HullerClassifier(cache_mb=64, **options).fit(X, y)
    tight = HullerClassifier(cache_mb=1, **options).fit(X, y)
    np.testing.assert_array_equal(tight.decision_function(X), roomy.decision_function(X))
    n_bytes = sum(model.held.gram.nbytes for model in tight._training.models)
    assert n_bytes <= 2**20
    assert all(model.held.owner.size > 8 for model in tight._training.models)
