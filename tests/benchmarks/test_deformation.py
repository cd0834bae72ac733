"""Deformation: rows are images sampled where their change points, in whole numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from benchmarks.deformation import (
    LARGEST_SIDE,
    MOST_OF_FIELD,
    deform_rows,
    empty_frame,
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
