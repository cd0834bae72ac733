"""Importance of columns, and the lengths that a fit gives them by it."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import SoftPlanesClassifier
from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import with_planes, zero_planes
from polyplane.engine.rows.storage import csr_rows, dense_rows, matrix_of, packed
from polyplane.model.input.column_maps import column_map
from polyplane.training.soft_planes.column_weights import (
    LEAST,
    Importance,
    importance_of,
    weights_of,
)
from tests.examples import examples

QUICK = {
    "n_planes": 4, "units": 1, "max_iter": 3, "random_state": 0,
}  # fmt: skip


def ring_and_noise(n=500, n_noise=8, seed=0):
    """Inside a ring or outside: two columns tell, the others do not."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, 2 + n_noise)).astype(np.float32)
    X[:, -1] = X[:, -1] > 1.5  # a rare flag
    return X, (np.square(X[:, :2]).sum(axis=1) > 1.4).astype(int)


def model_of(planes):
    """As much of a model as has planes, [plane, 1 + feature]."""
    owner = np.zeros(len(planes), np.int32)
    none = zero_planes(planes.shape[1] - 1, False)
    return SimpleNamespace(planes=with_planes(none, owner, planes))


def features_of_column(columns, j):
    """By the table: the linear feature, then the hats of each level."""
    table = columns.table
    hats = [
        np.arange(first, first + n)
        for n, first in zip(table.n_hats[:, j], table.first_hat[:, j], strict=True)
    ]
    return np.concatenate([[j], *hats]).astype(int)


@pytest.mark.parametrize("kind", ["plain", "rank", "knots", "fine"])
@pytest.mark.parametrize("turns", [False, True])
@settings(deadline=None, max_examples=examples(4))
@given(seed=st.integers(0, 1000), scales=st.tuples(st.floats(0.1, 4), st.floats(0.1, 4)))
def test_importance_is_how_far_planes_differ_along_a_column(kind, turns, seed, scales):
    X, _ = ring_and_noise(seed=seed)
    rows = dense_rows(X, 1)
    columns = column_map(rows, in_place(len(X)), X.shape[1], kind, turns=turns)
    seen = columns.for_training(rows)
    generator = np.random.default_rng(seed)
    planes = [
        generator.standard_normal((n, 1 + columns.n_features)).astype(np.float32) for n in (5, 3)
    ]
    members = generator.permutation(len(X))[:100]
    found = importance_of([model_of(one) for one in planes], scales, columns, seen, members)
    entries = matrix_of(packed(seen, members), columns.n_features).toarray().astype(float)
    squares = np.square(entries).mean(axis=0)
    spread = sum(
        np.square(scale) * one[:, 1:].astype(float).var(axis=0)
        for one, scale in zip(planes, scales, strict=True)
    )
    worth, squared = [], []
    for j in range(columns.n_mapped):
        own = features_of_column(columns, j)
        squared.append(squares[own].sum())
        worth.append(np.sqrt((squares[own] * spread[own]).sum() / (squared[-1] or 1)))
    worth, squared = np.array(worth), np.array(squared)
    worth /= np.sqrt((squared * worth**2).sum() / squared.sum())
    np.testing.assert_allclose(found.squared, squared, rtol=1e-5)
    np.testing.assert_allclose(found.importance, worth, rtol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "rank", "knots", "fine"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_rows_stay_as_long_as_they_were(kind, power):
    X, _ = ring_and_noise()
    rows = dense_rows(X, 1)
    columns = column_map(rows, in_place(len(X)), X.shape[1], kind)

    def entries(columns):
        seen = packed(columns.for_training(rows), in_place(len(X)))
        return matrix_of(seen, columns.n_features).toarray().astype(float)

    before = entries(columns)
    owner = columns.columns_of_features()
    squared = np.bincount(owner, np.square(before).mean(axis=0), columns.n_mapped)
    worth = Importance(np.random.default_rng(0).uniform(0, 3, columns.n_mapped), squared)
    weights = weights_of(worth, power, columns.n_mapped)
    after = entries(columns.weighed(weights))
    np.testing.assert_allclose(after, before * weights[owner], rtol=2e-6)
    np.testing.assert_allclose(np.square(after).sum(), np.square(before).sum(), rtol=1e-5)
    ratios = weights / weights.max()
    expected = np.maximum(worth.importance, LEAST) ** power
    np.testing.assert_allclose(ratios, expected / expected.max(), rtol=1e-12)


def test_directions_that_were_not_measured_count_alike():
    worth = Importance(np.array([2.0, 0.5]), np.ones(2))
    two, four, one = (weights_of(worth, 1.0, n) for n in (2, 4, 1))
    np.testing.assert_array_equal(four, [*two, 1, 1])
    np.testing.assert_array_equal(one, two[:1])


def test_columns_that_nothing_tells_apart_count_alike():
    nothing = Importance(np.ones(3), np.ones(3))
    np.testing.assert_array_equal(weights_of(nothing, 2.0, 3), np.ones(3))
    no_rows = Importance(np.ones(3), np.zeros(3))
    assert np.isfinite(weights_of(no_rows, 2.0, 3)).all()


def test_columns_that_tell_become_longer_than_those_that_do_not():
    X, y = ring_and_noise()
    even = SoftPlanesClassifier(relevance=0.0, columns="knots", **QUICK).fit(X, y)
    weighed = SoftPlanesClassifier(relevance=1.0, columns="knots", **QUICK).fit(X, y)
    before, after = (one._training.columns.map.table for one in (even, weighed))
    factors = after.factors / before.factors
    assert factors[:2].min() > factors[2:-1].max()
    np.testing.assert_allclose(after.heights, before.heights * factors, rtol=1e-5)


def test_dense_and_sparse_rows_are_weighed_alike():
    X, y = ring_and_noise(n=300)
    X[np.abs(X) < 0.5] = 0
    dense, sparse = (
        SoftPlanesClassifier(relevance=2.0, columns="fine", **QUICK).fit(rows, y)
        for rows in (X, sp.csr_matrix(X))
    )
    np.testing.assert_array_equal(dense.decision_function(X), sparse.decision_function(X))


def test_images_texts_and_streams_are_left_alone():
    generator = np.random.default_rng(0)
    words = sp.random(200, 500, 0.05, format="csr", random_state=0, dtype=np.float32)
    y = generator.integers(0, 2, 200)
    fits = [
        SoftPlanesClassifier(relevance=one, **QUICK).fit(words, y).decision_function(words)
        for one in (0.0, 2.0)
    ]
    np.testing.assert_array_equal(*fits)
    X, y = ring_and_noise()
    streams = [
        SoftPlanesClassifier(relevance=one, random_state=0).partial_fit(X, y).decision_function(X)
        for one in (0.0, 2.0)
    ]
    np.testing.assert_array_equal(*streams)


def test_importance_does_not_depend_on_the_storage_of_rows():
    X, y = ring_and_noise(n=200)
    model = SoftPlanesClassifier(columns="knots", relevance=0.0, **QUICK).fit(X, y)
    training = model._training
    columns = training.columns.map
    found = [
        importance_of(
            training.models,
            [1.0] * len(training.models),
            columns,
            columns.for_training(rows),
            in_place(len(X)),
        )
        for rows in (dense_rows(X, 1), csr_rows(sp.csr_matrix(X), 1))
    ]
    np.testing.assert_array_equal(found[0].importance, found[1].importance)
