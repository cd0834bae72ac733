"""One look at what was handed in, against plain definitions in NumPy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.inspection import (
    ColumnStatistics,
    column_facts,
    column_statistics,
    largest_magnitude,
    starts_are_sound,
)
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import csr_rows, dense_rows
from tests.engine.rows.test_storage import STORAGES, matrices
from tests.examples import examples

pytestmark = pytest.mark.loops

FLOATS = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(60))
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
@settings(deadline=None, max_examples=examples(200))
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


def by_definition(matrix):
    """Statistics of all rows of a matrix."""
    exact = matrix.astype(np.longdouble)
    return ColumnStatistics(
        n_nonzero=(matrix != 0).sum(axis=0),
        mean=exact.mean(axis=0),
        deviation=exact.std(axis=0),
        is_binary=np.isin(matrix, [0, 1]).all(axis=0),
    )


def assert_statistics(found, expected, tolerance):
    for name in ("n_nonzero", "is_binary"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    for name in ("mean", "deviation"):
        np.testing.assert_allclose(
            getattr(found, name),
            getattr(expected, name).astype(float),
            rtol=tolerance,
            atol=tolerance,
            err_msg=name,
        )


@given(matrix=matrices(), order=st.lists(st.integers(0, 4), min_size=1, max_size=7))
@settings(deadline=None, max_examples=examples(25))
def test_statistics_are_their_definitions_whatever_the_storage(matrix, order):
    matrix[1] = matrix[1] > 4
    order = np.array(order, np.int32)
    expected = by_definition(matrix[order])
    first = None
    for name in ("float32", "uint8", "CSR"):
        found = column_statistics(STORAGES[name](matrix, 1), order, matrix.shape[1])
        assert_statistics(found, expected, 1e-12)
        first = first or found
        for one, other in zip(first, found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_statistics_of_fractions_are_the_same_in_each_storage():
    matrix = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    matrix *= np.random.default_rng(1).random((50, 7)) < 0.7
    dense = column_statistics(dense_rows(matrix, 1), in_place(50), 7)
    sparse = column_statistics(csr_rows(sp.csr_array(matrix), 1), in_place(50), 7)
    assert_statistics(dense, by_definition(matrix), 1e-12)
    for one, other in zip(dense, sparse, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_zeros", [0, 1, 900])
def test_columns_far_from_zero_keep_their_deviation(n_zeros):
    generator = np.random.default_rng(0)
    matrix = np.float32(1e6) + generator.standard_normal((1000, 2)).astype(np.float32)
    matrix[:, 1] *= -1
    matrix[generator.permutation(1000)[:n_zeros]] = 0
    found = column_statistics(dense_rows(matrix, 1), in_place(1000), 2)
    expected = by_definition(matrix)
    np.testing.assert_allclose(found.mean, expected.mean.astype(float), rtol=1e-12)
    np.testing.assert_allclose(found.deviation, expected.deviation.astype(float), rtol=1e-8)


def test_columns_that_never_change_in_the_rows_of_the_order_have_no_deviation():
    matrix = np.full((999, 3), np.float32(0.1))
    matrix[:, 1] = 0
    matrix[0] = 1e9
    found = column_statistics(dense_rows(matrix, 1), in_place(999)[1:], 3)
    assert found.deviation.tolist() == [0, 0, 0]
    assert found.mean.tolist() == [np.float32(0.1), 0, np.float32(0.1)]


def test_columns_beyond_the_rows_and_stored_zeros_are_zeros():
    entries = np.array([-0.0, 1, 0, -2], np.float32), np.array([0, 1, 1, 2], np.int32)
    matrix = sp.csr_array((*entries, np.array([0, 2, 4], np.int32)), shape=(2, 3))
    found = column_statistics(csr_rows(matrix, 1), in_place(2), 4)
    assert_statistics(found, by_definition(np.array([[0, 1, 0, 0], [0, 0, -2, 0]])), 0)


@pytest.mark.parametrize("n_columns", [0, 3])
def test_statistics_of_no_rows_are_zero(n_columns):
    found = column_statistics(dense_rows(np.ones((2, 3)), 1), np.empty(0, np.int32), n_columns)
    zeros = [0.0] * n_columns
    assert [part.tolist() for part in found[:3]] == [zeros] * 3
