"""Labels, scores and deciding planes tell the same story, also where scores tie."""

import itertools

import numpy as np
import pytest

from polyplane.engine.planes import live_lanes, mean_sums

ROUNDING = np.finfo(np.float32).eps
ALL_BITS = np.array(list(itertools.product([0, 1], repeat=5)), np.float32)


def winners(model, X):
    """The labels that the scores stand for: the first of the best, the second if it leads."""
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return model.classes_[(scores > 0).astype(int)]
    return model.classes_[scores.argmax(axis=1)]


def assert_one_story(model, X):
    predicted = model.predict(X)
    np.testing.assert_array_equal(winners(model, X), predicted)
    np.testing.assert_array_equal(model.plane_classes_[model.assign(X)], predicted)
    np.testing.assert_array_equal(model.plane_scores(X).argmax(axis=1), model.assign(X))


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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_labels_agree_however_close_the_race(estimator, X, y, n_classes):
    X, y = X[y < n_classes], y[y < n_classes]
    model = estimator.set_params(alpha=0.0013).fit(X, y)
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
    rows = np.isin(y, seen)
    X = X * np.float32(scale)
    model = streaming.partial_fit(X[rows], y[rows], classes=[-1, 0, 1, 2, 7])
    assert_one_story(model, X)
    assert_one_story(model, np.zeros((1, 5), np.float32))


@pytest.mark.parametrize("scale", [1, 1e9])
@pytest.mark.parametrize("seen", [0, 1])
def test_one_of_two_named_classes_seen_does_not_contradict_itself(streaming, X, y, seen, scale):
    X = X * np.float32(scale)
    model = streaming.partial_fit(X[y == seen], y[y == seen], classes=[0, 1])
    assert_one_story(model, X)
    assert_one_story(model, -X)


def test_plane_scores_are_the_planes_times_the_rows(estimator, X, y):
    model = estimator.fit(X, y)
    planes, intercepts = model.planes_.astype(np.float64), model.intercepts_.astype(np.float64)
    expected = X @ planes.T + intercepts
    n_roundings = X.shape[1] + 3  # of each product and sum, the scale and the stored planes
    bound = n_roundings * ROUNDING * (np.abs(X) @ np.abs(planes).T + np.abs(intercepts))
    assert (np.abs(model.plane_scores(X) - expected) <= bound).all()


def test_class_scores_are_the_best_of_their_planes(estimator, X, y):
    model = estimator.fit(X, y)
    by_plane = model.plane_scores(X)
    for label in np.unique(model.plane_classes_):
        c = model.classes_.tolist().index(label)
        best = by_plane[:, model.plane_classes_ == label].max(axis=1)
        np.testing.assert_array_equal(model.decision_function(X)[:, c], best)


def test_planes_of_one_class_stand_together(estimator, X, y):
    model = estimator.fit(X, y)
    assert model.n_planes_ == len(model.planes_) == len(model.intercepts_)
    assert model.planes_.shape[1] == model.n_features_in_ == 5
    assert (np.diff(model.plane_classes_) >= 0).all()


def test_planes_are_those_of_training_oldest_first(estimator, X, y):
    model = estimator.set_params(random_state=3).fit(X[::-1], y[::-1])
    training = model._training
    sums, lanes = mean_sums(training.planes, training.n_steps), live_lanes(training.planes)
    scale = np.float32(1 / (model._alpha_of_planes(training) * training.n_steps))
    for label in model.classes_:
        of_class = lanes[training.labels[training.planes.owner[lanes]] == label]
        planes = model.planes_[model.plane_classes_ == label]
        np.testing.assert_array_equal(planes, sums[1:6, of_class].T * scale)


def test_without_an_intercept_planes_go_through_the_origin(estimator, X, y):
    model = estimator.set_params(fit_intercept=False).fit(X, y)
    assert not model.intercepts_.any()


def test_a_row_alone_is_scored_like_among_others(estimator, X, y):
    model = estimator.fit(X, y)
    alone = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(y.size)])
    np.testing.assert_array_equal(alone, model.decision_function(X))
