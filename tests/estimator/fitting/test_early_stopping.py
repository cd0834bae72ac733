"""Early stopping: watches held-out rows, ends in time, and returns the best model met."""

import numpy as np
import pytest
from sklearn.base import clone

from polyplane import (
    AMMClassifier,
    CPMClassifier,
    GAMMClassifier,
    MMClassifier,
    PegasosClassifier,
    SAMMClassifier,
    SoftPlanesClassifier,
)
from polyplane.estimator import shell
from polyplane.estimator.fitting.pass_watch import PassWatch
from tests.definition import visits

GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(0, 4, (40, 5)).astype(np.float32)
Y = np.arange(40) % 3
EASY = X.copy()
EASY[np.arange(40), Y] += 20  # class k is far out in column k
X_VAL, Y_VAL = X[:12] + 1, Y[:12]
ONLINE = [
    PegasosClassifier(),
    MMClassifier(),
    AMMClassifier(),
    AMMClassifier(multi_class="ovr", n_estimators=2),
    CPMClassifier(n_planes=3),
    GAMMClassifier(clone_probability=0.5),
    SAMMClassifier(mu=0.01),
]


@pytest.fixture(params=[*ONLINE, AMMClassifier(mode="batch")], ids=repr)
def estimator(request):
    return clone(request.param).set_params(random_state=0, early_stopping=True)


@pytest.fixture(params=ONLINE, ids=repr)
def online(request):
    """Batch training ends for another reason, too: when no row changes its plane."""
    return clone(request.param).set_params(random_state=0, early_stopping=True)


def scripted(monkeypatch, estimator, errors):
    """Let the error after each pass be the next of `errors`."""
    script = iter(errors)
    monkeypatch.setattr(PassWatch, "error", lambda *_: next(script))


def watched(monkeypatch, estimator):
    """What the error is taken of: pairs of rows and labels, and the error found."""
    seen, true_error = [], shell.error_of

    def error(model, data, order):
        found, labels = true_error(model, data, order), model._training.labels
        seen.append((data.rows.values[order], labels[data.labels[order]], found))
        return found

    monkeypatch.setattr(shell, "error_of", error)
    return seen


def test_an_easy_problem_ends_early(estimator):
    model = estimator.set_params(max_iter=50, alpha=0.01).fit(EASY, Y)
    assert model.n_iter_ < 50
    assert model.score(EASY, Y) == 1


def test_the_best_model_met_is_kept(online, monkeypatch):
    best = clone(online).set_params(early_stopping=False, max_iter=2).fit(X, Y)
    scripted(monkeypatch, online, [0.5, 0.2, 0.3, 0.2, 0.4, 0.0])
    model = online.set_params(max_iter=20).fit(X, Y, eval_set=(X_VAL, Y_VAL))
    assert model.n_iter_ == 5  # three passes without a better error
    assert model.n_steps_ == 2 * visits(model, Y)
    np.testing.assert_array_equal(model.planes_, best.planes_)
    np.testing.assert_array_equal(model.history_, best.history_)


def test_the_best_model_is_kept_when_passes_run_out(online, monkeypatch):
    scripted(monkeypatch, online, [0.1, 0.2, 0.2])
    model = online.set_params(max_iter=3).fit(X, Y, eval_set=(X_VAL, Y_VAL))
    assert model.n_iter_ == 3
    assert model.n_steps_ == visits(model, Y)


def test_the_best_model_goes_on_like_any_other(online, monkeypatch):
    best = clone(online).set_params(early_stopping=False, max_iter=1).fit(X, Y)
    with monkeypatch.context() as patch:
        scripted(patch, online, [0.1, 0.2, 0.2])
        model = online.set_params(max_iter=3).fit(X, Y, eval_set=(X_VAL, Y_VAL))
    np.testing.assert_array_equal(model.partial_fit(X, Y).planes_, best.partial_fit(X, Y).planes_)
    np.testing.assert_array_equal(model.history_, best.history_)


@pytest.mark.parametrize(
    ("tol", "n_iter"), [(0.0, 8), (0.05, 4)], ids=["any gain counts", "small gains do not"]
)
def test_a_gain_must_exceed_tol(online, monkeypatch, tol, n_iter):
    scripted(monkeypatch, online, [0.5, 0.4, 0.39, 0.38, 0.37, 0.37, 0.37, 0.37, 0.37])
    online.set_params(max_iter=9, tol=tol, n_iter_no_change=3 if tol == 0 else 2)
    assert online.fit(X, Y, eval_set=(X_VAL, Y_VAL)).n_iter_ == n_iter


def test_otherwise_a_share_of_each_class_is_held_out(estimator, monkeypatch):
    seen = watched(monkeypatch, estimator)
    model = estimator.set_params(max_iter=1, validation_fraction=0.3).fit(X, Y)
    [(_, labels, _)] = seen
    assert np.bincount(labels).tolist() == [4, 4, 4]
    assert model.n_steps_ == visits(model, Y) - visits(model, labels)


def test_rows_of_weight_0_are_not_held_out(estimator, monkeypatch):
    seen = watched(monkeypatch, estimator)
    weights = (np.arange(len(X)) >= 20).astype(float)
    marked = X + 100 * (weights == 0)[:, None].astype(np.float32)
    model = estimator.set_params(max_iter=1, validation_fraction=0.5)
    model.fit(marked, Y, sample_weight=weights)
    [(rows, _, _)] = seen
    assert len(rows) == 10
    assert rows.max() < 100


def test_classes_too_small_to_share_are_no_obstacle(estimator):
    labels = np.array([0] * 20 + [1] * 19 + [2])
    assert estimator.fit(X, labels).classes_.tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("parameters", [{}, {"alpha": "auto"}], ids=str)
def test_rows_too_few_to_share_are_no_obstacle(estimator, parameters):
    model = estimator.set_params(**parameters).fit(X[:4], Y[:4])
    assert model.n_steps_ > 0


def test_a_label_of_validation_keeps_its_meaning_when_labels_came_in_disorder():
    model = PegasosClassifier(early_stopping=True, warm_start=True, max_iter=1, random_state=0)
    model.partial_fit(X[:2], [2, 1])
    model.fit(X, Y, eval_set=(X_VAL, Y_VAL))
    [error] = model.evals_result_["valid_0"]["error"]
    assert error == np.mean(model.predict(X_VAL) != Y_VAL)


def test_chunks_are_visited_whole(online):
    assert online.partial_fit(X, Y).n_steps_ == visits(online, Y)


@pytest.mark.parametrize("columns", ["plain", "knots"])
def test_held_out_rows_are_seen_as_predictions_see_them(columns, monkeypatch):
    """Not as steps do, whose columns are mapped already."""
    far = np.hstack([100 + 10 * X, GENERATOR.normal(size=(40, 2)).astype(np.float32)])
    model = SoftPlanesClassifier(
        n_planes=2, columns=columns, max_iter=1, compress=False, early_stopping=True,
        validation_fraction=0.5, random_state=0,
    )  # fmt: skip
    seen, true_error = [], shell.error_of

    def error(estimator, data, order):
        found = true_error(estimator, data, order)
        seen.append((order, found))
        return found

    monkeypatch.setattr(shell, "error_of", error)
    model.fit(far, Y)
    ((order, found),) = seen
    assert found == np.mean(model.predict(far[order]) != Y[order])
