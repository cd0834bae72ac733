"""What is wrong with rows is said, and nothing of rows that are fine."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyplane.report.columns import Columns, Table
from polyplane.report.suspicions import suspicions

N = 900


def rows(seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N, 3)).astype(np.float32)
    return X, (X[:, 0] + generator.normal(size=N) > 0).astype(np.int64)


def said(X, y, places=None, columns=None):
    table = Table(X, y, columns or Columns(["a", "b", "c"]))
    found = suspicions(table, np.arange(N) if places is None else places, N)
    return {one.kind: one for one in found}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_said_of_rows_that_are_fine(seed):
    assert said(*rows(seed)) == {}


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_a_column_that_decides_alone(store):
    X, y = rows()
    X[:, 2] = np.where(np.arange(N) % 50 == 0, 1 - y, y) * 3 + 0.1 * X[:, 2]
    assert said(store(X), y)["leak"].columns == ("c",)


def test_values_of_a_category_that_decide():
    X, y = rows()
    category = np.eye(4, dtype=np.float32)[2 * y + np.arange(N) // 2 % 2]
    wide = sp.csr_matrix(np.hstack([X[:, :2], category]))
    columns = Columns(["a", "b", "status"], np.array([0, 1, 2, 2, 2, 2]), ["", "", *"wxyz"])
    assert said(wide, y, columns=columns)["leak"].columns == ("status",)


@pytest.mark.parametrize("numbers", [np.arange(N) * 7, np.random.default_rng(0).permutation(N)])
def test_ids(numbers):
    X, y = rows()
    X[:, 1] = numbers
    found = said(X, y)
    assert found["id"].columns == ("b",)
    assert "drift" not in found


def test_equal_rows_with_other_labels():
    X, y = rows()
    X[450:] = X[:450]
    y[450:] = np.where(np.arange(450) < 90, 1 - y[:450], y[:450])
    found = said(X, y)
    assert "180 rows (20.0%)" in found["contradiction"].sentence
    assert "less than 10.0%" in found["contradiction"].sentence
    assert "360 rows" in found["copies"].sentence


def test_zeros_of_either_sign_and_stored_zeros_are_equal():
    y = np.arange(30) % 2
    signed = np.ones((30, 2), np.float32)
    signed[:, 0] = np.where(y, -0.0, 0.0)
    stored = sp.csr_matrix((signed.ravel(), np.tile([0, 1], 30), np.arange(0, 61, 2)), (30, 2))
    assert stored.nnz == 60
    for matrix in (signed, stored):
        (found,) = suspicions(Table(matrix, y, Columns(["a", "b"])), np.arange(30), 30)
        assert "30 rows (100.0%)" in found.sentence


def test_drift_of_a_column_and_of_labels():
    X, y = rows()
    X[:, 1] += np.linspace(0, 2, N)
    order = np.random.default_rng(0).permutation(N)
    assert said(X[order], y[order], places=order)["drift"].columns == ("b",)
    labels = (np.arange(N) > 500).astype(np.int64)
    assert "Labels are not the same" in said(rows()[0], labels)["drift"].sentence


def as_category(codes):
    """A table of two numbers and a category with such values, numbered as they were met."""
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    met = np.argsort(np.argsort(first))[places]
    choices = sp.csr_matrix((np.ones(N, np.float32), met, np.arange(N + 1)))
    n = choices.shape[1]
    columns = Columns([*"abc"], np.array([0, 1, *[2] * n]), ["", "", *map(str, range(n))])
    return sp.csr_matrix(sp.hstack([rows()[0][:, :2], choices])), columns


@pytest.mark.parametrize("n_kinds", [2, 30, 800])
def test_values_of_a_category_do_not_drift_for_being_numbered_as_they_were_met(n_kinds):
    wide, columns = as_category(np.random.default_rng(1).integers(0, n_kinds, N))
    assert "drift" not in said(wide, rows()[1], columns=columns)


def test_drift_of_a_category():
    kinds = np.random.default_rng(1).integers(0, 2, N)
    wide, columns = as_category(kinds + 2 * (np.arange(N) > 600))
    assert said(wide, rows()[1], columns=columns)["drift"].columns == ("c",)


def test_a_hundred_labels_in_any_order_do_not_drift():
    X, _ = rows()
    assert "drift" not in said(X, np.random.default_rng(1).integers(0, 100, N))


@given(st.integers(0, 40), st.integers(0, 3))
def test_any_few_rows_are_taken(n_rows, seed):
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 2, (n_rows + 1, 2)).astype(np.float32)
    y = generator.integers(0, 2, n_rows + 1)
    for store in (np.asarray, sp.csr_matrix):
        suspicions(Table(store(X), y, Columns(["a", "b"])), np.arange(n_rows + 1), n_rows + 1)
