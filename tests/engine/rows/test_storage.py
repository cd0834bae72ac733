"""Rows: whatever the storage, an opened row is its non-zeros in order, and sums are the same."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit
from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import spans_of, tiles_used, with_planes, zero_planes
from polyplane.engine.rows.storage import (
    add_to_pair,
    count_rows,
    csr_rows,
    dense_rows,
    length_of_row,
    open_row,
    packed,
    page_of,
    score_planes,
    squared_norm,
    with_own_page,
)
from polyplane.engine.tiles import at
from tests.examples import examples

pytestmark = pytest.mark.loops


@jit
def opened(rows, i, index, value):
    """Copy the opened row to `index` and `value`; return its length."""
    page = page_of(rows)
    a, b, _ = open_row(page, i, 0)
    for j in range(a, b):
        index[j - a] = at(page.index, j)
        value[j - a] = at(page.value, j)
    return b - a


@jit
def score(rows, i, planes):
    """Leave the scores of all planes in `planes.scores`; return the squared norm of the row."""
    page = page_of(rows)
    spans = spans_of(planes)
    a, b, ahead = open_row(page, i, 0)
    score_planes(page, a, b, ahead, spans, tiles_used(spans))
    return squared_norm(page, a, b)


@jit
def add(rows, i, planes, plus, minus, factor):
    """Add a multiple of row i to one plane and take it from another."""
    page = page_of(rows)
    spans = spans_of(planes)
    a, b, _ahead = open_row(page, i, 0)
    add_to_pair(page, a, b, spans.sums, spans.stride, plus, minus, factor)


def as_long(matrix):
    csr = sp.csr_array(matrix.astype(np.float64))
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


STORAGES = {
    "float32": lambda matrix, constant: dense_rows(matrix.astype(np.float32), constant),
    "float64": lambda matrix, constant: dense_rows(matrix.astype(np.float64), constant),
    "uint8": lambda matrix, constant: dense_rows(matrix.astype(np.uint8), constant),
    "CSR": lambda matrix, constant: csr_rows(sp.csr_array(matrix.astype(np.float32)), constant),
    "long CSR": lambda matrix, constant: csr_rows(as_long(matrix), constant),
}
with_every_storage = pytest.mark.parametrize("stored", STORAGES.values(), ids=STORAGES.keys())


@st.composite
def matrices(draw):
    """Small whole numbers, 0 to 70 columns wide: mixed rows, a full row and an empty one."""
    width = draw(st.integers(0, 70))
    share = draw(st.sampled_from([0.1, 0.5, 0.95, 1.0]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    mixed = generator.integers(1, 10, (3, width)) * (generator.random((3, width)) < share)
    return np.vstack([mixed, np.full((1, width), 7), np.zeros((1, width), int)])


def random_planes(n_planes, n_columns, seed):
    """Planes whose sums are small whole numbers, and these numbers as [plane, feature]."""
    generator = np.random.default_rng(seed)
    sums = generator.integers(-9, 10, (n_planes, n_columns + 1))
    planes = with_planes(zero_planes(n_columns, keeps_average=False), np.zeros(n_planes), sums)
    return planes, sums


@with_every_storage
@given(matrix=matrices())
@settings(deadline=None, max_examples=examples(40))
def test_an_opened_row_is_its_non_zeros_in_order(stored, matrix):
    rows = stored(matrix, 1)
    index, value = np.empty(70, np.int64), np.empty(70, np.float32)
    for i, expected in enumerate(matrix):
        n = opened(rows, i, index, value)
        np.testing.assert_array_equal(index[:n], np.flatnonzero(expected))
        np.testing.assert_array_equal(value[:n], expected[expected != 0])


@with_every_storage
@given(
    matrix=matrices(),
    constant=st.sampled_from([0, 1]),
    n_planes=st.sampled_from([1, 15, 16, 17, 33, 48]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=examples(30))
def test_scores_and_norms_are_exact_on_whole_numbers(stored, matrix, constant, n_planes, seed):
    rows = stored(matrix, constant)
    planes, sums = random_planes(n_planes, matrix.shape[1], seed)
    for i, row in enumerate(matrix):
        norm = score(rows, i, planes)
        np.testing.assert_array_equal(
            planes.scores[:n_planes], sums[:, 1:] @ row + constant * sums[:, 0]
        )
        assert norm == row @ row + constant


@with_every_storage
def test_idle_lanes_score_minus_infinity(stored):
    planes, _ = random_planes(5, 20, 0)
    planes.idle[3] = -np.inf
    score(stored(np.full((1, 20), 7), 1), 0, planes)
    assert np.isneginf(planes.scores[:16]).tolist() == [False] * 3 + [True, False] + [True] * 11


@with_every_storage
@given(
    matrix=matrices(),
    constant=st.sampled_from([0, 1]),
    pair=st.permutations(range(20)).map(lambda lanes: lanes[:2]),
    has_minus=st.booleans(),
    factor=st.sampled_from([1, 3]),
)
@settings(deadline=None, max_examples=examples(20))
def test_a_row_is_added_to_one_plane_and_taken_from_another(
    stored, matrix, constant, pair, has_minus, factor
):
    rows = stored(matrix, constant)
    planes, expected = random_planes(20, matrix.shape[1], 0)
    plus, minus = pair[0], pair[1] if has_minus else -1
    for i, row in enumerate(matrix):
        add(rows, i, planes, plus, minus, np.float32(factor))
        change = factor * np.array([constant, *row])
        expected[plus] += change
        if has_minus:
            expected[minus] -= change
    np.testing.assert_array_equal(planes.sums[:, :20].T, expected)


@with_every_storage
def test_length_counts_the_constant(stored):
    matrix = np.array([[2, 0, 3, 6], [0, 0, 0, 0]])
    assert length_of_row(stored(matrix, 0), 0) == 7
    assert length_of_row(stored(matrix, 1), 1) == 1


@with_every_storage
def test_rows_are_counted(stored):
    assert count_rows(stored(np.ones((3, 2)), 1)) == 3


def test_another_thread_gets_a_page_of_its_own():
    rows = dense_rows(np.ones((3, 2), np.float32), 1)
    other = with_own_page(rows)
    assert other.values is rows.values
    assert other.constant == rows.constant
    assert not np.shares_memory(other.page_value, rows.page_value)
    assert not np.shares_memory(other.page_index, rows.page_index)


def test_negative_and_tiny_values_keep_their_sign_and_place():
    matrix = np.array([[-3, 0, -0.0, 1e-40, *[0] * 16, -1e-45]], np.float32)
    index, value = np.empty(70, np.int64), np.empty(70, np.float32)
    n = opened(dense_rows(matrix, 1), 0, index, value)
    assert index[:n].tolist() == [0, 3, 20]
    np.testing.assert_array_equal(value[:n], matrix[0, [0, 3, 20]])


def test_scores_of_fractions_agree_to_rounding():
    generator = np.random.default_rng(0)
    matrix = generator.standard_normal((1, 53)).astype(np.float32)
    sums = generator.standard_normal((33, 54)).astype(np.float32)
    planes = with_planes(zero_planes(53, keeps_average=False), np.zeros(33), sums)
    score(dense_rows(matrix, 1), 0, planes)
    row = np.array([1, *matrix[0]], np.float64)
    bound = 54 * np.finfo(np.float32).eps * (np.abs(sums) @ np.abs(row))
    assert (np.abs(planes.scores[:33] - sums @ row) <= bound).all()


@with_every_storage
@given(
    matrix=matrices(),
    constant=st.sampled_from([0, 1]),
    order=st.lists(st.integers(0, 4), max_size=7),
)
@settings(deadline=None, max_examples=examples(20))
def test_packed_rows_are_the_opened_rows_in_their_order(stored, matrix, constant, order):
    order = np.array(order, np.int32)
    found = packed(stored(matrix, constant), order)
    wanted = sp.csr_array(matrix[order])
    assert found.constant == constant
    assert [a.dtype for a in found[:3]] == [np.float32, np.int32, np.int64]
    np.testing.assert_array_equal(found.values, wanted.data)
    np.testing.assert_array_equal(found.columns, wanted.indices)
    np.testing.assert_array_equal(found.starts, wanted.indptr)


@pytest.mark.parametrize("name", ["float64", "long CSR"])
def test_packed_rows_give_the_same_sums_to_the_last_bit(name):
    generator = np.random.default_rng(0)
    matrix = generator.standard_normal((6, 53)) * (generator.random((6, 53)) < 0.8)
    sums = generator.standard_normal((33, 54)).astype(np.float32)
    results = []
    rows = STORAGES[name](matrix, 0.3)
    for storage in (rows, packed(rows, in_place(6))):
        planes = with_planes(zero_planes(53, keeps_average=False), np.zeros(33), sums)
        for i in range(6):
            results.append([score(storage, i, planes), *planes.scores[:33]])
            add(storage, i, planes, 2, 20, np.float32(0.7))
        results.append(planes.sums.ravel())
    for original, copy in zip(results[:7], results[7:], strict=True):
        np.testing.assert_array_equal(original, copy)


def test_entries_too_small_for_a_float32_stay_entries():
    found = packed(STORAGES["long CSR"](np.array([[1e-60, 2.0]]), 1), in_place(1))
    assert found.values.tolist() == [0, 2]
    assert found.columns.tolist() == [0, 1]
