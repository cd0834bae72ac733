"""Labels, scores and deciding planes tell the same story, also where scores tie."""

import itertools

import numpy as np
import pytest

from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import NO_PLANE, live_lanes
from tests.contract.sameness import has_planes, set_where_there
from tests.definition import (
    class_scores,
    is_one_model,
    multiplies,
    rows_of_planes,
    sides,
)

pytestmark = pytest.mark.loops

ROUNDING = np.finfo(np.float32).eps
ALL_BITS = np.array(list(itertools.product([0, 1], repeat=5)), np.float32)


def winners(model, X):
    """The labels that the scores stand for: the first of the best, the second if it leads."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return model.classes_[(scores > 0).astype(int)]
    return model.classes_[scores.argmax(axis=1)]


def assert_one_story(model, X):
    """Prediction is what scores say, and so are the deciding planes, where there are planes."""
    np.testing.assert_array_equal(winners(model, X), model.predict(X))
    if has_planes(model):
        assert_planes_tell_it(model, X)


def assert_planes_tell_it(model, X):
    """The deciding plane is the first of the best planes that speak for the predicted class."""
    predicted, deciding, by_plane = model.predict(X), model.assign(X), model.plane_scores(X)
    for label in np.unique(predicted):
        speak = np.flatnonzero((model.plane_classes_ == label) & (model.plane_signs_ == 1))
        of_label = predicted == label
        scores = by_plane[np.ix_(of_label, speak)]
        best = speak[scores.argmax(axis=1)] if speak.size else NO_PLANE
        np.testing.assert_array_equal(deciding[of_label], best)
    if is_one_model(model):
        np.testing.assert_array_equal(by_plane.argmax(axis=1), deciding)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_prediction_is_the_first_best_score(estimator, X, y, n_classes):
    X, y = X[y < n_classes], y[y < n_classes]
    model = estimator.fit(X, y)
    assert model.decision_function(X).shape == (y.size,) if n_classes == 2 else (y.size, 3)
    assert_one_story(model, X)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_ties_of_rows_of_bits_go_to_the_lowest_class(estimator, n_classes):
    y = np.arange(len(ALL_BITS)) % n_classes
    model = estimator.set_params(shuffle=False, max_iter=2).fit(ALL_BITS, y)
    assert_one_story(model, ALL_BITS)


def test_rows_of_zeros_go_to_the_same_class(estimator, X, y):
    model = estimator.fit(X, y)
    assert_one_story(model, np.zeros((3, 5), np.float32))


@pytest.mark.compiled  # it is about rounding, of which plain Python has another kind
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_labels_agree_however_close_the_race(estimator, X, y, n_classes):
    X, y = X[y < n_classes], y[y < n_classes]
    model = set_where_there(estimator, alpha=0.0013).fit(X, y)
    here, there = X[:16], X[1:17]
    labels = model.predict(here)
    for _ in range(30):  # rows on both sides of a boundary move towards each other
        middle = (here + there) / 2
        assert_one_story(model, middle)
        stays = (model.predict(middle) == labels)[:, None]
        here, there = np.where(stays, middle, here), np.where(stays, there, middle)


@pytest.mark.parametrize("scale", [1, 1e9])
@pytest.mark.parametrize("seen", [[0, 1, 2], [1, 2], [2]])
def test_a_class_named_but_never_seen_does_not_contradict_itself(streaming, X, y, seen, scale):
    if scale > 1 and multiplies(streaming):
        pytest.skip("products of such rows are refused")
    rows = np.isin(y, seen)
    X = X * np.float32(scale)
    model = streaming.partial_fit(X[rows], y[rows], classes=[-1, 0, 1, 2, 7])
    assert_one_story(model, X)
    assert_one_story(model, np.zeros((1, 5), np.float32))


@pytest.mark.parametrize("scale", [1, 1e9])
@pytest.mark.parametrize("seen", [0, 1])
def test_one_of_two_named_classes_seen_does_not_contradict_itself(streaming, X, y, seen, scale):
    if scale > 1 and multiplies(streaming):
        pytest.skip("products of such rows are refused")
    X = X * np.float32(scale)
    model = streaming.partial_fit(X[y == seen], y[y == seen], classes=[0, 1])
    assert_one_story(model, X)
    assert_one_story(model, -X)


def test_plane_scores_are_the_planes_times_the_rows(hyperplanes, X, y):
    model = hyperplanes.fit(X, y)
    planes, intercepts = model.planes_.astype(np.float64), model.intercepts_.astype(np.float64)
    rows = rows_of_planes(model, X.astype(np.float64))
    expected = rows @ planes.T + intercepts
    n_roundings = rows.shape[1] + 5  # of products and sums, scale, stored planes and mapped rows
    bound = n_roundings * ROUNDING * (np.abs(rows) @ np.abs(planes).T + np.abs(intercepts))
    assert (np.abs(model.plane_scores(X) - expected) <= bound).all()


def test_class_scores_are_the_best_of_their_planes(hyperplanes, X, y):
    model = hyperplanes.fit(X, y)
    if not is_one_model(model):
        pytest.skip("several models side by side: the next test")
    by_plane = model.plane_scores(X)
    for label in np.unique(model.plane_classes_):
        c = model.classes_.tolist().index(label)
        best = by_plane[:, model.plane_classes_ == label].max(axis=1)
        np.testing.assert_array_equal(model.decision_function(X)[:, c], best)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_scores_follow_from_plane_scores_by_definition(hyperplanes, X, y, n_classes):
    X, y = X[y < n_classes], y[y < n_classes]
    model = hyperplanes.fit(X, y)
    expected = np.array([class_scores(model, by_plane) for by_plane in model.plane_scores(X)])
    if n_classes == 2:
        expected = expected[:, 1] - expected[:, 0]
    if model._record().is_soft:  # whose exponentials are rounded
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_array_equal(model.decision_function(X), expected)


def test_planes_of_one_class_stand_together(hyperplanes, X, y):
    model = hyperplanes.fit(X, y)
    assert model.n_planes_ == len(model.planes_) == len(model.intercepts_)
    assert model.n_features_in_ == 5
    assert model.planes_.shape[1] == len(model._record().sums) - 1
    expected = [
        (model.classes_[rank], sign)
        for _, of_sides in sides(model)
        for rank, sign, planes in of_sides
        for _ in planes
    ]
    found = list(zip(model.plane_classes_, model.plane_signs_, strict=True))
    assert found == expected
    counts = [sum(label == c and sign == 1 for label, sign in expected) for c in model.classes_]
    assert model.planes_per_class_.tolist() == counts
    if is_one_model(model):
        assert (np.diff(model.plane_classes_) >= 0).all()


def test_planes_are_those_of_training_oldest_first(hyperplanes, X, y):
    if getattr(hyperplanes, "mu", 0) + getattr(hyperplanes, "l1", 0) > 0:
        pytest.skip("planes are shrunk: tests/hyperplane/test_sparse_amm.py")
    if hyperplanes.algorithm.is_soft:
        pytest.skip("columns are scaled: tests/hyperplane/test_soft_planes.py")
    if hasattr(hyperplanes, "r"):
        pytest.skip("its sums are not averaged: tests/hyperplane/test_arow.py")
    model = hyperplanes.set_params(random_state=3).fit(X[::-1], y[::-1])
    is_sum = "alpha" not in model.get_params()
    for part, of_sides in sides(model):
        sums, lanes = mean_sums(part.planes, part.n_steps), live_lanes(part.planes)
        alpha = 1 / part.n_steps if is_sum else model.algorithm.step_alpha(part)
        scale = np.float32(1 / (alpha * part.n_steps))
        for code, (_, _, planes) in enumerate(of_sides):
            of_class = lanes[part.planes.owner[lanes] == code]
            expected = sums[1 : part.n_features + 1, of_class].T * scale
            np.testing.assert_array_equal(model.planes_[planes], expected)


def test_the_intercept_of_a_plane_is_its_score_on_a_row_of_zeros(hyperplanes, X, y):
    model = hyperplanes.fit(X, y)
    if model._record().is_soft and model._training.columns.map.has_knots:
        pytest.skip("the rank of a zero is not zero")
    [scores] = model.plane_scores(np.zeros((1, 5), np.float32))
    np.testing.assert_allclose(model.intercepts_, scores, rtol=1e-6)


def test_without_an_intercept_planes_go_through_the_origin(hyperplanes, X, y):
    if hyperplanes.algorithm.is_soft:
        pytest.skip("they go through the mean of the scaled rows")
    model = hyperplanes.set_params(fit_intercept=False).fit(X, y)
    assert not model.intercepts_.any()


def test_a_row_alone_is_scored_like_among_others(estimator, X, y):
    model = estimator.fit(X, y)
    alone = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(y.size)])
    np.testing.assert_array_equal(alone, model.decision_function(X))
