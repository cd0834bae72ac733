"""Columns mapped as a row is opened are the map by definition, in every storage."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.rows.mapped import ColumnTable, mapped_rows
from polyplane.engine.rows.storage import count_rows, csr_rows, dense_rows, packed, with_own_page
from tests.engine.rows.test_products import arrays_in
from tests.engine.rows.test_storage import STORAGES, matrices, opened, random_planes, score
from tests.examples import examples

pytestmark = pytest.mark.loops

NUMBERS_OF_KNOTS = [0, 0, 2, 3, 17, 18, 19, 34, 35, 64]  # inner knots fill tiles of 16


def table_of(columns, height=1.0):
    """A table of columns given as (shift, factor, knots, ranks, n_hats)."""
    shifts, factors, knots, ranks, n_hats = zip(*columns, strict=True) if columns else [()] * 5
    n_hats = np.array(n_hats, np.int32)
    return ColumnTable(
        shifts=np.array(shifts, np.float32),
        factors=np.array(factors, np.float32),
        knot_starts=np.cumsum([0, *map(len, knots)]).astype(np.int32),
        knots=np.array([x for column in knots for x in column], np.float32),
        ranks=np.array([x for column in ranks for x in column], np.float32),
        n_hats=n_hats,
        first_hat=(len(columns) + np.cumsum(n_hats) - n_hats).astype(np.int32),
        height=np.float32(height),
    )


def by_definition(matrix, table):
    """Mapped rows with their zeros, in float64."""
    n_columns = table.shifts.size
    mapped = np.zeros((len(matrix), n_columns + table.n_hats.sum()))
    for j in range(n_columns):
        part = slice(table.knot_starts[j], table.knot_starts[j + 1])
        knots, ranks = (a[part].astype(np.float64) for a in (table.knots, table.ranks))
        for row, x in enumerate(matrix[:, j].astype(np.float64)):
            v = np.interp(x, knots, ranks) if knots.size else x
            mapped[row, j] = (v - table.shifts[j]) * table.factors[j]
            if table.n_hats[j]:
                p = v * (table.n_hats[j] - 1.0)
                i = int(min(np.floor(p), table.n_hats[j] - 2))
                mapped[row, table.first_hat[j] + i] = table.height * (1 - (p - i))
                mapped[row, table.first_hat[j] + i + 1] = table.height * (p - i)
    return mapped


def random_table(n_columns, generator):
    """Columns with and without knots, hats and linear features; knots lie from -4 to 14."""
    columns = []
    for _ in range(n_columns):
        m = generator.choice(NUMBERS_OF_KNOTS)
        knots = np.sort(generator.choice(np.linspace(-4, 14, 1000), m, replace=False))
        ranks = np.sort(generator.random(m))
        n_hats = generator.choice([0, 2, 3, 8]) if m else 0
        shift, factor = generator.standard_normal(2) * generator.integers(0, 2, 2)
        columns.append((shift, factor, knots, ranks, n_hats))
    return table_of(columns, generator.random())


def opened_rows(rows, n_columns):
    """Features and values of each row."""
    index, value = np.empty(3 * n_columns, np.int64), np.empty(3 * n_columns, np.float32)
    for i in range(count_rows(rows)):
        n = opened(rows, i, index, value)
        yield index[:n].copy(), value[:n].copy()


def matrix_of(rows, n_columns, n_features):
    """Opened rows with their zeros."""
    matrix = np.zeros((count_rows(rows), n_features), np.float32)
    for i, (index, value) in enumerate(opened_rows(rows, n_columns)):
        matrix[i, index] = value
    return matrix


@given(matrix=matrices(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=examples(25))
def test_an_opened_row_is_the_map_whatever_the_storage(matrix, seed):
    n_columns = matrix.shape[1]
    table = random_table(n_columns, np.random.default_rng(seed))
    wanted = by_definition(matrix, table)
    first = None
    for name in ("float32", "uint8", "CSR"):
        rows = mapped_rows(STORAGES[name](matrix, 1), table)
        found = list(opened_rows(rows, n_columns))
        first = first or found
        for (index, value), plain, expected in zip(found, first, wanted, strict=True):
            assert (np.diff(index) > 0).all()
            assert (value != 0).all()
            dense = np.zeros(wanted.shape[1])
            dense[index] = value
            np.testing.assert_allclose(dense, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(index, plain[0])
            np.testing.assert_array_equal(value, plain[1])


@given(st.lists(st.floats(-9, 40, width=32), min_size=1, max_size=9))
@settings(deadline=None, max_examples=examples(50))
def test_ranks_are_level_beyond_the_knots_and_linear_between_them(values):
    columns = [(0, 1, np.sort(np.random.default_rng(m).random(m)) * 30, np.arange(m) / m, 0)
               for m in NUMBERS_OF_KNOTS[2:]]  # fmt: skip
    table = table_of(columns)
    matrix = np.repeat(np.array(values, np.float32)[:, None], len(columns), axis=1)
    found = matrix_of(mapped_rows(dense_rows(matrix, 1), table), len(columns), len(columns))
    np.testing.assert_allclose(found, by_definition(matrix, table), rtol=1e-5, atol=1e-6)


def test_the_map_is_exact_where_float32_is():
    knots, ranks = 4 * np.arange(9), np.arange(9) / 8
    columns = [(0.5, 2, knots, ranks, 9), (3, 0.25, (), (), 0), (0, 0, knots, ranks, 5)]
    table = table_of(columns, 0.5)
    matrix = np.repeat(np.arange(40)[:, None], 3, axis=1)
    found = matrix_of(mapped_rows(dense_rows(matrix.astype(np.uint8), 1), table), 3, 17)
    np.testing.assert_array_equal(found, by_definition(matrix, table))


def test_every_value_on_a_knot_has_the_rank_of_the_knot():
    for m in NUMBERS_OF_KNOTS[2:]:
        knots = np.sort(np.random.default_rng(m).standard_normal(m)).astype(np.float32)
        ranks = np.linspace(0.25, 1, m).astype(np.float32)
        rows = mapped_rows(dense_rows(knots[:, None], 1), table_of([(0, 1, knots, ranks, 0)]))
        np.testing.assert_array_equal(matrix_of(rows, 1, 1)[:, 0], ranks)


def test_a_category_has_one_hat_and_nothing_else():
    for m in range(3, 9):
        values = np.arange(m) + 7
        table = table_of([(0, 0, values, np.arange(m) / (m - 1), m)], 0.3)
        rows = mapped_rows(dense_rows(values[:, None].astype(np.uint8), 1), table)
        for k, (index, value) in enumerate(opened_rows(rows, 1)):
            assert index.tolist() == [1 + k]
            assert value.tolist() == [np.float32(0.3)]


def test_columns_that_rows_do_not_have_are_zero():
    columns = [(1, 2, (), (), 0)] * 2 + [(0, 1, (-1, 1), (0.25, 0.75), 0)] * 2
    table = table_of(columns)
    narrow = np.array([[3, 0, 1]], np.float32)
    for rows in (dense_rows(narrow, 1), csr_rows(sp.csr_array(narrow), 1)):
        found = matrix_of(mapped_rows(rows, table), 4, 4)
        assert found.tolist() == [[4, -2, 0.75, 0.5]]


def test_rows_keep_their_constant():
    rows, table = dense_rows(np.ones((2, 1), np.float32), 0.5), table_of([(0, 1, (), (), 0)])
    mapped = mapped_rows(rows, table)
    assert mapped.constant == with_own_page(mapped).constant == np.float32(0.5)
    planes, sums = random_planes(3, 1, 0)
    score(mapped, 0, planes)
    np.testing.assert_array_equal(planes.scores[:3], sums @ [0.5, 1])


def test_packed_mapped_rows_give_the_same_scores_to_the_last_bit():
    generator = np.random.default_rng(0)
    table = random_table(30, generator)
    n_features = 30 + int(table.n_hats.sum())
    rows = mapped_rows(dense_rows(generator.normal(4, 5, (6, 30)).astype(np.float32), 1), table)
    order = in_place(6)[::-1].copy()
    copy = packed(rows, order)
    planes, _ = random_planes(20, n_features, 0)
    for place, i in enumerate(order):
        norm = score(rows, i, planes)
        scores = planes.scores[:20].copy()
        assert score(copy, place, planes) == norm > 0
        np.testing.assert_array_equal(planes.scores[:20], scores)


@pytest.mark.parametrize("name", ["uint8", "CSR"])
def test_another_thread_gets_scratch_of_its_own(name):
    rows = mapped_rows(
        STORAGES[name](np.ones((3, 2)), 1), table_of([(0, 1, (0, 1, 2), (0, 0.5, 1), 2)] * 2)
    )
    other = with_own_page(rows)
    assert count_rows(other) == count_rows(rows) == 3
    shared = {id(a) for a in arrays_in(rows)} & {id(a) for a in arrays_in(other)}
    kept = [*arrays_in(rows.table), *arrays_in(rows.inner)]
    kept += [a for a in arrays_in(rows.base) if name == "CSR" or a is rows.base.values]
    assert shared == {id(a) for a in kept}
    assert [a.shape for a in arrays_in(other)] == [a.shape for a in arrays_in(rows)]


def test_rows_may_have_no_columns():
    rows = mapped_rows(dense_rows(np.empty((2, 0), np.float32), 1), table_of([]))
    assert count_rows(rows) == 2
    assert opened(rows, 1, np.empty(1, np.int64), np.empty(1, np.float32)) == 0
