"""Endless digits: every row is a function of seed and number, and is like its source."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.infinite_digits import FEWEST_A_THREAD, Deformation, infinite_digits

STILL = Deformation(0, 0, 0, 0, 0, 0)


def small_source(n=7, side=5):
    """Random images, each with a label of its own beside its class."""
    X = np.random.default_rng(0).integers(0, 256, (n, side * side)).astype(np.uint8)
    return X, np.arange(n) % 3


SOURCE = small_source()


@given(start=st.integers(0, 40), n=st.integers(0, 25), seed=st.sampled_from([0, 1, 2**64 - 1]))
@settings(deadline=None, max_examples=15)
def test_a_slice_is_the_same_rows_of_the_whole(start, n, seed):
    X, y = infinite_digits(65, 0, seed, source=SOURCE)
    X_part, y_part = infinite_digits(n, start, seed, source=SOURCE)
    np.testing.assert_array_equal(X_part, X[start : start + n])
    np.testing.assert_array_equal(y_part, y[start : start + n])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    n, source = 3 * FEWEST_A_THREAD + 5, small_source(side=2)
    alone, together = (infinite_digits(n, 3, 1, source=source, n_jobs=k) for k in (None, n_jobs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_have_the_bits_they_have_on_every_machine():
    X = (np.arange(4 * 17 * 17) * 37 % 256).astype(np.uint8).reshape(4, -1)
    X, y = infinite_digits(20, 10**12, 5, source=(X, range(4)), deformation=Deformation())
    digest = hashlib.sha256(X.tobytes() + y.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "a2e8ded6b6207618"


def test_every_turn_shows_each_source_digit_once_with_its_label():
    for start in (0, 7, 7 * 10**9):
        X, y = infinite_digits(7, start, source=SOURCE, deformation=STILL)
        order = [int(np.flatnonzero((SOURCE[0] == row).all(axis=1))[0]) for row in X]
        assert sorted(order) == list(range(7))
        np.testing.assert_array_equal(y, SOURCE[1][order])


def test_rows_far_out_exist():
    X, _ = infinite_digits(2, 2**62 - 1, source=SOURCE)
    np.testing.assert_array_equal(X[1:], infinite_digits(1, 2**62, source=SOURCE)[0])
