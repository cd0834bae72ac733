"""Columns spread over several levels as a row is opened are the map by definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.rows.leveled import LevelTable, leveled_rows
from polyplane.engine.rows.mapped import ColumnTable, mapped_rows
from polyplane.engine.rows.storage import count_rows, dense_rows, packed, with_own_page
from tests.engine.rows.test_products import arrays_in
from tests.engine.rows.test_storage import STORAGES, matrices, opened, random_planes, score

pytestmark = pytest.mark.loops

NUMBERS_OF_KNOTS = [0, 0, 2, 3, 17, 18, 19, 34, 128]  # inner knots fill tiles of 16


def table_of(columns, n_levels):
    """A table of columns given as (shift, factor, knots, levels), levels as (places, n, height)."""
    starts = np.cumsum([0, *(len(knots) for _, _, knots, _ in columns)])
    places = np.zeros((n_levels, starts[-1]), np.float32)
    n_hats = np.zeros((n_levels, len(columns)), np.int32)
    heights = np.zeros((n_levels, len(columns)), np.float32)
    for j, (_, _, _, levels) in enumerate(columns):
        for k, (of_knots, n, height) in enumerate(levels):
            places[k, starts[j] : starts[j + 1]] = of_knots
            n_hats[k, j], heights[k, j] = n, height
    first = len(columns) + n_hats.ravel().cumsum() - n_hats.ravel()
    return LevelTable(
        shifts=np.array([column[0] for column in columns], np.float32),
        factors=np.array([column[1] for column in columns], np.float32),
        knot_starts=starts.astype(np.int32),
        knots=np.array([x for column in columns for x in column[2]], np.float32),
        places=places,
        n_hats=n_hats,
        first_hat=first.reshape(n_hats.shape).astype(np.int32),
        heights=heights,
    )


def by_definition(matrix, table):
    """Mapped rows with their zeros, in float64."""
    n_columns = table.shifts.size
    mapped = np.zeros((len(matrix), n_columns + table.n_hats.sum()))
    for j in range(n_columns):
        part = slice(table.knot_starts[j], table.knot_starts[j + 1])
        knots = table.knots[part].astype(np.float64)
        for row, x in enumerate(matrix[:, j].astype(np.float64)):
            cut = np.clip(x, knots[0], knots[-1]) if knots.size else x
            mapped[row, j] = (cut - table.shifts[j]) * np.float64(table.factors[j])
            for level, n in enumerate(table.n_hats[:, j]):
                if n == 0:
                    continue
                p = np.interp(x, knots, table.places[level, part].astype(np.float64))
                height, hat = table.heights[level, j], table.first_hat[level, j]
                if n == 1:
                    mapped[row, hat] = height * p
                else:
                    hats = np.maximum(0, 1 - np.abs(p - np.arange(n)))
                    mapped[row, hat : hat + n] = height * hats
    return mapped


def random_table(n_columns, generator, n_levels=3):
    """Columns with and without knots and linear features, and levels of all kinds."""
    columns = []
    for _ in range(n_columns):
        m = int(generator.choice(NUMBERS_OF_KNOTS))
        knots = np.sort(generator.choice(np.linspace(-4, 14, 1000), m, replace=False))
        levels = [random_level(m, generator) for _ in range(n_levels if m else 0)]
        shift, factor = generator.standard_normal(2) * generator.integers(0, 2, 2)
        columns.append((shift, factor, knots, levels))
    return table_of(columns, n_levels)


def random_level(m, generator):
    """Hats at some of the knots, or a curve through all of them, or nothing."""
    n = int(generator.choice([0, 1, 2, min(3, m), m]))
    if n < 2:
        return np.sort(generator.standard_normal(m)) * n, n, generator.random()
    at = np.sort(generator.choice(np.arange(1, m - 1), n - 2, replace=False))
    return np.interp(np.arange(m), [0, *at, m - 1], np.arange(n)), n, generator.random()


def opened_rows(rows, room):
    index, value = np.empty(room, np.int64), np.empty(room, np.float32)
    for i in range(count_rows(rows)):
        n = opened(rows, i, index, value)
        yield index[:n].copy(), value[:n].copy()


def matrix_of(rows, n_features):
    """Opened rows with their zeros."""
    matrix = np.zeros((count_rows(rows), n_features), np.float32)
    for i, (index, value) in enumerate(opened_rows(rows, 3 * n_features + 16)):
        matrix[i, index] = value
    return matrix


@given(matrix=matrices(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=25)
def test_an_opened_row_is_the_map_whatever_the_storage(matrix, seed):
    table = random_table(matrix.shape[1], np.random.default_rng(seed))
    wanted = by_definition(matrix, table)
    first = None
    for name in ("float32", "uint8", "CSR"):
        rows = leveled_rows(STORAGES[name](matrix, 1), table)
        found = list(opened_rows(rows, 7 * matrix.shape[1] + 16))
        first = first or found
        for (index, value), plain, expected in zip(found, first, wanted, strict=True):
            assert (np.diff(index) > 0).all()
            assert (value != 0).all()
            dense = np.zeros(wanted.shape[1])
            dense[index] = value
            np.testing.assert_allclose(dense, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(index, plain[0])
            np.testing.assert_array_equal(value, plain[1])


def test_the_map_is_exact_where_float32_is():
    knots = 4 * np.arange(9)
    fine, coarse = np.arange(9), np.arange(9) / 4
    levels = [(fine - 4.0, 1, 0.5), (fine, 9, 2.0), (coarse, 3, 0.25)]
    columns = [(0.5, 2, knots, levels), (3, 0.25, (), []), (0, 0, knots, levels[:2])]
    table = table_of(columns, 3)
    matrix = np.repeat(np.arange(40)[:, None], 3, axis=1)
    n_features = 3 + int(table.n_hats.sum())
    found = matrix_of(leveled_rows(dense_rows(matrix.astype(np.uint8), 1), table), n_features)
    np.testing.assert_array_equal(found, by_definition(matrix, table))


def test_hats_at_all_knots_are_the_map_of_prediction():
    generator = np.random.default_rng(3)
    knots = np.sort(generator.standard_normal(20)).astype(np.float32)
    X = generator.standard_normal((200, 1)).astype(np.float32)
    leveled = leveled_rows(dense_rows(X, 1), table_of([(0, 0, knots, [(np.arange(20), 20, 1)])], 1))
    table = ColumnTable(
        np.zeros(1, np.float32), np.zeros(1, np.float32), np.array([0, 20], np.int32), knots,
        (np.arange(20) / 19).astype(np.float32), np.array([20], np.int32), np.ones(1, np.int32),
        np.float32(1),
    )  # fmt: skip
    found, expected = matrix_of(leveled, 21), matrix_of(mapped_rows(dense_rows(X, 1), table), 21)
    np.testing.assert_allclose(found, expected, atol=4e-6)


def test_packed_rows_give_the_same_scores_to_the_last_bit():
    generator = np.random.default_rng(0)
    table = random_table(30, generator)
    rows = leveled_rows(dense_rows(generator.normal(4, 5, (6, 30)).astype(np.float32), 1), table)
    order = in_place(6)[::-1].copy()
    copy = packed(rows, order)
    planes, _ = random_planes(20, 30 + int(table.n_hats.sum()), 0)
    for place, i in enumerate(order):
        norm = score(rows, i, planes)
        scores = planes.scores[:20].copy()
        assert score(copy, place, planes) == norm > 0
        np.testing.assert_array_equal(planes.scores[:20], scores)


def test_another_thread_gets_scratch_of_its_own():
    generator = np.random.default_rng(0)
    rows = leveled_rows(STORAGES["CSR"](np.ones((3, 4)), 1), random_table(4, generator))
    other = with_own_page(rows)
    shared = {id(a) for a in arrays_in(rows)} & {id(a) for a in arrays_in(other)}
    kept = [*arrays_in(rows.table), *arrays_in(rows.inner), *arrays_in(rows.base)]
    assert shared == {id(a) for a in kept}
    assert [a.shape for a in arrays_in(other)] == [a.shape for a in arrays_in(rows)]
    assert rows.constant == other.constant


def test_rows_may_have_no_columns():
    rows = leveled_rows(dense_rows(np.empty((2, 0), np.float32), 1), table_of([], 0))
    assert count_rows(rows) == 2
    assert opened(rows, 1, np.empty(1, np.int64), np.empty(1, np.float32)) == 0
