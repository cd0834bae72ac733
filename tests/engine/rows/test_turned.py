"""Directions through the ranks of columns stand behind them, whatever the storage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.inspection import column_statistics
from polyplane.engine.order import in_place
from polyplane.engine.rows import storage
from polyplane.engine.rows.leveled import leveled_rows
from polyplane.engine.rows.storage import (
    count_rows,
    dense_rows,
    packed,
    with_own_page,
    written_in_parts,
)
from polyplane.engine.rows.turned import Turn, n_directions, turned_rows
from tests.engine.rows.test_leveled import matrix_of, opened_rows, random_table
from tests.engine.rows.test_storage import STORAGES, matrices

pytestmark = pytest.mark.loops

NUMBERS_OF_KNOTS = [0, 2, 3, 18, 19]


def random_turn(n_columns, generator, n_wanted=None):
    """Columns with and without knots, and up to two tiles of directions."""
    n_knots = generator.choice(NUMBERS_OF_KNOTS, n_columns)
    knots = [np.sort(generator.choice(np.linspace(-4, 14, 999), n, replace=False)) for n in n_knots]
    ranks = [np.sort(generator.standard_normal(n)) for n in n_knots]
    shape = (n_knots > 0).sum(), n_wanted or generator.integers(1, 20)
    return Turn(
        np.cumsum([0, *n_knots]).astype(np.int32),
        np.concatenate([*knots, []]).astype(np.float32),
        np.concatenate([*ranks, []]).astype(np.float32),
        generator.standard_normal(shape).astype(np.float32),
    )


def by_definition(matrix, turn):
    """Columns and directions, in float64."""
    directions, k = np.zeros((len(matrix), n_directions(turn))), 0
    for j in range(matrix.shape[1]):
        part = slice(turn.knot_starts[j], turn.knot_starts[j + 1])
        if part.start < part.stop:
            ranks = np.interp(matrix[:, j], turn.knots[part], turn.ranks[part])
            directions += np.outer(ranks, turn.weights[k])
            k += 1
    return np.hstack([matrix, directions])


@given(matrix=matrices(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=25)
def test_an_opened_row_has_its_directions_whatever_the_storage(matrix, seed):
    turn = random_turn(matrix.shape[1], np.random.default_rng(seed))
    wanted = by_definition(matrix.astype(np.float64), turn)
    first = None
    for name in ("float32", "uint8", "CSR"):
        found = list(opened_rows(turned_rows(STORAGES[name](matrix, 1), turn), 99))
        first = first or found
        for (index, value), plain, expected in zip(found, first, wanted, strict=True):
            assert (np.diff(index) > 0).all()
            assert (value != 0).all()
            dense = np.zeros(len(expected))
            dense[index] = value
            np.testing.assert_allclose(dense, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(index, plain[0])
            np.testing.assert_array_equal(value, plain[1])


def test_maps_of_columns_see_directions_as_columns():
    generator = np.random.default_rng(0)
    X = generator.uniform(-5, 15, (30, 4)).astype(np.float32)
    turn = random_turn(4, generator, n_wanted=3)
    turned = turned_rows(dense_rows(X, 1), turn)
    table = random_table(4 + 3, generator)
    n_features = 7 + int(table.n_hats.sum())
    found = matrix_of(leveled_rows(turned, table), n_features)
    wide = np.zeros((30, 7), np.float32)
    written = packed(turned, in_place(30))
    for i in range(30):
        part = slice(written.starts[i], written.starts[i + 1])
        wide[i, written.columns[part]] = written.values[part]
    np.testing.assert_array_equal(
        found, matrix_of(leveled_rows(dense_rows(wide, 1), table), n_features)
    )


def maps_of_maps(n_rows):
    """Directions under a map of columns, and how many features there are."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-5, 15, (n_rows, 4)).astype(np.float32)
    turned = turned_rows(dense_rows(X, 1), random_turn(4, generator, n_wanted=3))
    table = random_table(4 + 3, generator)
    return leveled_rows(turned, table), 7 + int(table.n_hats.sum())


@pytest.mark.parametrize("n_rows", [0, 1, 9, 30])
def test_maps_of_maps_are_written_out_in_parts_as_they_are_opened(n_rows, monkeypatch):
    monkeypatch.setattr(storage, "WRITTEN_AT_ONCE", 9)
    rows, n_features = maps_of_maps(30)
    order = np.random.default_rng(1).permutation(30)[:n_rows].astype(np.int32)
    wanted = matrix_of(rows, n_features)[order]
    np.testing.assert_array_equal(matrix_of(packed(rows, order), n_features), wanted)
    parts = list(written_in_parts(rows.base, order))
    assert len(parts) == max(1, -(-n_rows // 9))
    for part, base, places in parts:
        some = rows._replace(base=base)
        np.testing.assert_array_equal(matrix_of(some, n_features)[places], wanted[part])


def test_statistics_of_directions_are_those_of_what_is_written_out(monkeypatch):
    rows, _ = maps_of_maps(30)
    wanted = column_statistics(packed(rows.base, in_place(30)), in_place(30), 7)
    monkeypatch.setattr(storage, "WRITTEN_AT_ONCE", 9)
    for found, expected in zip(column_statistics(rows.base, in_place(30), 7), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_each_thread_has_a_page_of_its_own():
    X = np.random.default_rng(0).uniform(-5, 15, (6, 3)).astype(np.float32)
    rows = turned_rows(dense_rows(X, 1), random_turn(3, np.random.default_rng(1)))
    other = with_own_page(rows)
    assert count_rows(other) == 6
    pairs = [(rows.rank, other.rank), (rows.linear.values, other.linear.values),
             (rows.linear.page_value, other.linear.page_value),
             (rows.base.page_value, other.base.page_value)]  # fmt: skip
    assert not any(np.shares_memory(one, another) for one, another in pairs)
