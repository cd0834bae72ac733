"""Deformation: rows are images sampled where their change points, in whole numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from benchmarks.deformation import (
    FIELD_DEVIATION,
    LARGEST_SIDE,
    MOST_OF_FIELD,
    N_FIELDS,
    deform_rows,
    empty_frame,
    smooth_fields,
    sources_of,
    steps_of,
)
from tests.examples import examples

pytestmark = pytest.mark.loops

STILL = steps_of(0, 0, 0, 0, 0, 0)
WILD = steps_of(100, 2, 2, 2, 100, 2)
# three parts of each coordinate are rounded down to 1/256 of a pixel; grey values to the nearest
ROUNDING = 2 * 3 / 256 * 255 + 0.5
PLUS = ndimage.generate_binary_structure(2, 1)


@pytest.fixture(autouse=True)
def _keys_may_wrap_around():
    with np.errstate(over="ignore"):
        yield


def random_images(n, side, seed):
    """Images with some blank pixels and some full ones."""
    generator = np.random.default_rng(seed)
    return np.clip(generator.integers(-200, 400, (n, side * side)), 0, 255).astype(np.uint8)


def random_fields(side, seed):
    """One field for all rows, so that a test knows which was picked."""
    generator = np.random.default_rng(seed)
    return generator.integers(-MOST_OF_FIELD, MOST_OF_FIELD + 1, (1, side * side)).astype(np.int8)


def deformed(images, steps, fields, seed=0, start=0):
    """One row of each image, and the changes that were drawn for them."""
    side = math.isqrt(images.shape[1])
    frame, out = empty_frame(side), np.empty_like(images)
    changes = []
    for k in range(len(images)):
        source = np.array([k])
        deform_rows(
            images, source, np.uint64(seed), start + k, steps, fields, frame, out[k : k + 1]
        )
        changes.append(frame.change.astype(int))
    return out, np.array(changes)


def with_strokes(image, thickness):
    """The definition: a share of the way to the largest or smallest of five neighbours."""
    extreme = ndimage.grey_dilation if thickness > 0 else ndimage.grey_erosion
    goal = extreme(image, footprint=PLUS, mode="constant", cval=0).astype(int)
    return image + np.floor((goal - image) * abs(thickness) / 128)


def sampled(strokes, change, field):
    """The definition: grey values between pixels, at the places a change points to."""
    side = len(strokes)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    x_shift, xx, xy, x_pull, y_shift, yy, yx, y_pull, _ = change
    pulled = field.reshape(side, side) / 1024
    x_place = x + x_shift / 256 + (xx * x + xy * y) / 512 + x_pull * pulled
    y_place = y + y_shift / 256 + (yy * y + yx * x) / 512 + y_pull * pulled
    places = np.stack([y_place, x_place]) + (side - 1) / 2
    return ndimage.map_coordinates(np.pad(strokes, 1), places + 1, order=1, mode="nearest")


@given(
    side=st.sampled_from([1, 2, 5, 15, 16, 17, 28]),
    seed=st.integers(0, 2**64 - 1),
    strength=st.sampled_from([0.1, 1, 10]),
)
@settings(deadline=None, max_examples=examples(15))
def test_a_row_is_its_image_sampled_where_its_change_points(side, seed, strength):
    images, fields = random_images(3, side, seed % 1000), random_fields(side, seed % 1000)
    steps = steps_of(*(strength * np.array([1, 0.1, 0.1, 0.1, 1, 0.2])))
    rows, changes = deformed(images, steps, fields, seed)
    for row, image, change in zip(rows, images, changes, strict=True):
        strokes = with_strokes(image.reshape(side, side), change[8])
        expected = sampled(strokes, change, fields[0]).ravel()
        assert np.abs(row - expected).max() <= ROUNDING


@pytest.mark.parametrize("side", [1, 16, LARGEST_SIDE])
def test_the_wildest_change_leaves_no_bounds(side):
    fields = np.full((1, side * side), MOST_OF_FIELD, np.int8)
    images = np.full((3, side * side), 255, np.uint8)
    rows, changes = deformed(images, WILD, fields)
    for row, change in zip(rows, changes, strict=True):
        strokes = with_strokes(np.full((side, side), 255), change[8])
        expected = sampled(strokes, change, fields[0]).ravel()
        assert np.abs(row - expected).max() <= ROUNDING


def test_changes_have_the_deviations_asked_for():
    images = np.zeros((600, 1), np.uint8)
    steps = steps_of(2, 0, 0.1, 0.05, 1, 0.2)
    _, changes = deformed(images, steps, np.zeros((1, 1), np.int8))
    x_shift, xx, xy, x_pull, y_shift, yy, yx, y_pull, thickness = changes.T
    for found, expected in [
        (x_shift, 2 * 256),
        (y_shift, 2 * 256),
        (xx, 0.05 * 512),
        (yy, 0.05 * 512),
        (xy, 0.1 * 512),
        (thickness, 0.2 * 128),
    ]:
        assert found.std() == pytest.approx(expected, rel=0.15)
        assert abs(found.mean()) < 0.2 * expected + 0.5  # rounded down
    for found in (x_pull, y_pull):
        assert np.abs(found).mean() == pytest.approx(32, rel=0.1)
        assert abs((found > 0).mean() - 0.5) < 0.1
    assert not yx.any()
    assert np.abs(np.corrcoef(changes[:, [0, 1, 2, 3, 4, 5, 7, 8]].T) - np.eye(8)).max() < 0.2


def test_a_rotation_turns_the_grid_and_keeps_lengths():
    _, changes = deformed(
        np.zeros((100, 1), np.uint8), steps_of(0, 0.15, 0, 0, 0, 0), np.zeros((1, 1), np.int8)
    )
    _, xx, xy, _, _, yy, yx, _, _ = changes.T / 512
    np.testing.assert_array_equal(xy, -yx)
    np.testing.assert_array_equal(xx, yy)
    np.testing.assert_allclose(np.hypot(1 + xx, yx), 1, atol=0.005)
    assert yx.std() == pytest.approx(0.15, rel=0.3)


def test_every_image_comes_at_every_place():
    met = np.zeros((5, 5), int)
    for order in sources_of(np.uint64(0), 0, 2_000, 5).reshape(-1, 5):
        met[np.arange(5), order] += 1
    assert met.min() > 40  # 80 each on average
    assert met.max() < 130


@pytest.mark.parametrize("side", [1, 8, pytest.param(28, marks=pytest.mark.compiled)])
def test_fields_are_smooth_and_of_the_deviation_they_claim(side):
    fields = smooth_fields(np.uint64(3), side)
    assert fields.shape == (N_FIELDS, side * side)
    assert fields.dtype == np.int8
    assert fields.flags.c_contiguous
    assert fields.std() == pytest.approx(FIELD_DEVIATION, rel=0.3 if side == 1 else 0.1)
    assert abs(fields.mean()) < FIELD_DEVIATION / 4
    if side == 28:
        steps_between = np.diff(fields.reshape(-1, side, side).astype(int), axis=1)
        assert steps_between.std() < FIELD_DEVIATION / 4
