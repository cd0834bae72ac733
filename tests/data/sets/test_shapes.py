"""Shapes: rows get the class of the place they were drawn at, and short draws begin long ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from polyplane.data.sets.shapes import blobs, checkerboard, polygons, spirals

SHAPES = [checkerboard, polygons, spirals, blobs]
every_shape = pytest.mark.parametrize("shape", SHAPES)


@every_shape
@given(n=st.integers(0, 50), noise=st.sampled_from([0, 0.1]), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=10)
def test_a_short_draw_is_the_beginning_of_a_long_one(shape, n, noise, seed):
    X, y = shape(50, noise, seed)
    X_short, y_short = shape(n, noise, seed)
    np.testing.assert_array_equal(X_short, X[:n])
    np.testing.assert_array_equal(y_short, y[:n])
    assert X_short.dtype == np.float32
    assert X_short.shape == (n, 2)
    assert y_short.dtype == np.int64


@every_shape
def test_seeds_give_other_rows_and_noise_moves_them_by_its_deviation(shape):
    X, y = shape(1_000)
    assert not np.array_equal(shape(1_000, seed=1)[0], X)
    moved, same = shape(1_000, noise=0.3)
    np.testing.assert_array_equal(same, y)
    if shape is not blobs:  # whose own deviation and the noise are one
        assert (moved - X).std() == pytest.approx(0.3, rel=0.1)


@every_shape
def test_both_classes_are_common_and_rows_fill_the_picture(shape):
    X, y = shape(2_000)
    assert 0.3 < y.mean() < 0.7
    assert set(y) == {0, 1}
    assert (np.abs(X).max(axis=0) > 0.7).all()


@given(fields=st.integers(1, 9))
@settings(deadline=None, max_examples=9)
def test_neighbouring_fields_of_a_board_are_of_different_classes(fields):
    X, y = checkerboard(300, fields=fields)
    column, line = np.floor((X.astype(float) + 1) / 2 * fields).astype(int).T
    is_inside = (np.abs((X + 1) / 2 * fields % 1 - 0.5) < 0.499).all(axis=1)  # float32 rounds
    np.testing.assert_array_equal(y[is_inside], ((column + line) % 2)[is_inside])


@pytest.mark.parametrize("corners", [3, 5, 8])
def test_a_polygon_is_convex_and_grows_to_its_circle(corners):
    X, y = polygons(1_500, corners=corners)
    inside, outside = X[y == 1].astype(float), X[y == 0].astype(float)
    assert np.hypot(*inside.T).max() <= 0.9 + 1e-6
    assert (Delaunay(inside).find_simplex(outside) < 0).all()


def test_more_polygons_lie_side_by_side():
    X, y = polygons(3_000, n_polygons=4, corners=6)
    for quadrant in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        assert 0.1 < y[(np.sign(X) == quadrant).all(axis=1)].mean() < 0.9


@pytest.mark.parametrize("arms", [1, 2, 5])
def test_an_arm_turned_by_its_share_of_a_circle_is_the_next(arms):
    X, y = spirals(2_000, turns=0.75, arms=arms)
    radius = np.hypot(*X.T.astype(float))
    turns = np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) - 0.75 * radius / 0.9
    difference = (turns - y / arms + 0.5) % 1 - 0.5
    assert np.abs(difference[radius > 0.01]).max() < 1e-4
    assert np.bincount(y).tolist() == pytest.approx([2_000 / arms] * arms, rel=0.2)


def test_blobs_are_as_many_and_as_wide_as_asked_for():
    X, y = blobs(4_000, n_classes=3, per_class=2, deviation=0.001)
    centres = np.unique(np.column_stack([np.round(X, 1), y]), axis=0)
    assert set(y) == {0, 1, 2}
    assert 6 <= len(centres) <= 24  # a blob on the border of rounding is met up to four times
    apart = np.abs(X[:, None] - X[None, :200]).max(axis=2)
    assert ((apart < 0.02) | (apart > 0.1)).all()
    same = apart < 0.02
    assert (y[:, None] == y[None, :200])[same].all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: checkerboard(-1), "n is -1"),
        (lambda: spirals(5, noise=-0.1), "noise is -0.1"),
        (lambda: blobs(5, noise=float("nan")), "noise is nan"),
        (lambda: polygons(5, corners=2), "corners is 2, but must be 3"),
        (lambda: checkerboard(5, fields=0), "fields is 0"),
        (lambda: spirals(5, arms=0), "arms is 0"),
        (lambda: blobs(5, per_class=0), "per_class is 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
