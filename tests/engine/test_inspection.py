"""One look at what was handed in, against plain definitions in NumPy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.inspection import column_facts, largest_magnitude, starts_are_sound

FLOATS = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_the_largest_magnitude_is_that_of_numpy(dtype, data):
    width = np.dtype(dtype).itemsize * 8
    values = np.array(data.draw(st.lists(st.floats(width=width), min_size=1)), dtype)
    np.testing.assert_equal(largest_magnitude(values), float(np.abs(values).max()))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("values", "largest"),
    [
        ([], 0.0),
        ([0.0], 0.0),
        ([-0.0], 0.0),
        ([-0.0, 1.0, -2.0], 2.0),
        ([np.inf, 1], np.inf),
        ([1, -np.inf], np.inf),
        ([np.nan, np.inf, 3], np.nan),
        ([1, -np.nan], np.nan),
    ],
)
def test_special_values_are_seen(dtype, values, largest):
    found = largest_magnitude(np.array(values, dtype))
    np.testing.assert_equal(found, largest)
    assert not np.signbit(found)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pattern_of_nan_is_seen(dtype):
    integer = np.dtype(f"i{np.dtype(dtype).itemsize}")
    first_nan = np.array([np.inf], dtype).view(integer) + 1
    for bits in (first_nan, first_nan | np.iinfo(integer).min):
        assert np.isnan(largest_magnitude(np.append(bits.view(dtype), dtype(1))))


def test_matrices_and_bytes_are_looked_at_whole():
    assert largest_magnitude(np.array([[1, 2], [-7, 3]], np.float32)) == 7
    assert largest_magnitude(np.array([[1, 255], [0, 3]], np.uint8)) == 255
    assert largest_magnitude(np.empty((0, 3), np.uint8)) == 0


@given(starts=st.lists(st.integers(-2, 9), min_size=1, max_size=8), n_entries=st.integers(0, 9))
@settings(deadline=None)
def test_boundaries_are_sound_if_they_rise_from_zero_and_stay_inside(starts, n_entries):
    rises = starts[0] == 0 and sorted(starts) == starts and starts[-1] <= n_entries
    assert starts_are_sound(np.array(starts, np.int32), n_entries) == rises


def facts_of(rows):
    """`column_facts` of rows given as lists of columns."""
    columns = np.array([column for row in rows for column in row], np.int32)
    starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int32)
    return column_facts(columns, starts)


@given(st.lists(st.lists(st.integers(-3, 12), max_size=4), min_size=1, max_size=6))
@settings(deadline=None, max_examples=200)
def test_column_facts_are_their_definitions(rows):
    every = [column for row in rows for column in row] or [0]
    increases = all(a < b for row in rows for a, b in itertools.pairwise(row))
    assert facts_of(rows) == (min(every), max(every), increases)


@given(st.lists(st.sets(st.integers(0, 12)).map(sorted), min_size=1, max_size=6))
@settings(deadline=None)
def test_sorted_rows_are_canonical(rows):
    assert facts_of(rows)[2]


def test_scipy_agrees_on_what_is_canonical():
    matrix = sp.csr_array(np.random.default_rng(0).integers(-8, 2, (30, 20)).clip(0))
    assert column_facts(matrix.indices, matrix.indptr)[2]
    backwards = matrix.indices[::-1].copy()
    shuffled = sp.csr_array((matrix.data, backwards, matrix.indptr), shape=matrix.shape)
    assert not shuffled.has_canonical_format
    assert not column_facts(shuffled.indices, shuffled.indptr)[2]
