"""Kernel blocks: true to rounding, symmetric, and to the last bit the same in any company."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit_is_disabled
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import csr_rows, dense_rows, packed
from polyplane.engine.support.gram import (
    LinearKernel,
    PolynomialKernel,
    RbfKernel,
    SigmoidKernel,
    chunk_tiles,
    desk_for,
    fill_block,
    padded,
    squared_lengths,
)
from tests.reference.kernels import linear, poly, rbf, sigmoid

pytestmark = pytest.mark.loops

F = np.float32
EPS = float(np.finfo(np.float32).eps)
N_EXAMPLES = 3 if jit_is_disabled() else 20
KERNELS = {
    "linear": LinearKernel(F(0)),
    "linear + 1": LinearKernel(F(1)),
    "poly": PolynomialKernel(F(0.25), F(1), 3, F(0)),
    "poly + 1": PolynomialKernel(F(0.5), F(-1), 1, F(1)),
    "rbf": RbfKernel(F(0.1), F(0)),
    "rbf + 1": RbfKernel(F(0.02), F(1)),
    "sigmoid": SigmoidKernel(F(0.05), F(-0.5), F(0)),
    "sigmoid + 1": SigmoidKernel(F(0.5), F(0.5), F(1)),
}
with_every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def block(kernel, X, Z, first=0, last=None, at_column=0):
    """K(z_j, x_i) by rows of Z, for rows `first` to `last` of X."""
    ours, theirs = (packed(dense_rows(M, 0.0), in_place(len(M))) for M in (X, Z))
    lengths = squared_lengths(ours)
    out = np.full((len(Z), at_column + len(X)), np.nan, np.float32)
    last = len(X) if last is None else last
    tiles = chunk_tiles(theirs, squared_lengths(theirs), X.shape[1])
    fill_block(kernel, ours, lengths, first, last, tiles, desk_for(ours), out, at_column)
    return out


def definition(kernel, X, Z):
    """The same in float64, and a bound for what rounding to float32 may do to it."""
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    sizes = np.abs(Z) @ np.abs(X).T
    of_product = (X.shape[1] + 2) * EPS * sizes
    offset = float(kernel.offset)
    if isinstance(kernel, LinearKernel):
        values, bound = linear(Z, X), of_product
    elif isinstance(kernel, PolynomialKernel):
        gamma, coef0, degree = float(kernel.gamma), float(kernel.coef0), kernel.degree
        values = poly(Z, X, gamma, coef0, degree)
        base = gamma * sizes + abs(coef0)
        bound = (gamma * of_product + 2 * EPS * base) * degree * base ** (degree - 1)
        bound = bound + 2 * degree * EPS * base**degree
    elif isinstance(kernel, RbfKernel):
        values = rbf(Z, X, float(kernel.gamma))
        squares = np.square(Z).sum(axis=1)[:, None] + np.square(X).sum(axis=1)[None, :]
        of_distance = (X.shape[1] + 4) * EPS * (squares + 2 * sizes)
        bound = float(kernel.gamma) * of_distance + 4 * EPS
    else:
        gamma, coef0 = float(kernel.gamma), float(kernel.coef0)
        values = sigmoid(Z, X, gamma, coef0)
        bound = gamma * of_product + 4 * EPS * (gamma * sizes + abs(coef0)) + 8 * EPS
    return values + offset, bound + 2 * EPS * (np.abs(values) + offset)


@st.composite
def row_pairs(draw):
    """Two sets of rows with gaps, a row of zeros in each, and columns that only one of them has."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    width = draw(st.sampled_from([1, 3, 16, 37]))
    sizes = draw(st.sampled_from([(1, 1), (3, 17), (16, 64), (17, 65), (33, 5), (70, 130)]))
    if jit_is_disabled():
        sizes = (min(sizes[0], 18), min(sizes[1], 66))
    share = draw(st.sampled_from([0.1, 0.6, 1.0]))
    sets = []
    for n in sizes:
        rows = generator.standard_normal((n, width)).astype(np.float32)
        rows *= generator.random((n, width)) < share
        rows[n // 2] = 0
        sets.append(rows)
    sets[1][:, :: draw(st.integers(2, 4))] = 0
    return sets


@with_every_kernel
@given(pair=row_pairs())
@settings(deadline=None, max_examples=N_EXAMPLES)
def test_a_block_is_its_definition_to_rounding(kernel, pair):
    X, Z = pair
    values, bound = definition(kernel, X, Z)
    assert (np.abs(block(kernel, X, Z) - values) <= bound).all()


@with_every_kernel
@given(pair=row_pairs())
@settings(deadline=None, max_examples=N_EXAMPLES)
def test_a_block_is_symmetric_to_the_last_bit(kernel, pair):
    X, Z = pair
    np.testing.assert_array_equal(block(kernel, X, Z), block(kernel, Z, X).T)


@with_every_kernel
@given(pair=row_pairs(), data=st.data())
@settings(deadline=None, max_examples=N_EXAMPLES)
def test_values_do_not_depend_on_company_or_cut(kernel, pair, data):
    X, Z = pair
    whole = block(kernel, X, Z)
    i, j = data.draw(st.integers(0, len(X) - 1)), data.draw(st.integers(0, len(Z) - 1))
    assert block(kernel, X[i : i + 1], Z[j : j + 1])[0, 0] == whole[j, i]
    order = np.random.default_rng(0).permutation(len(Z))
    np.testing.assert_array_equal(block(kernel, X, Z[order]), whole[order])
    cut = data.draw(st.integers(0, len(X)))
    column = data.draw(st.sampled_from([0, 16, 48]))
    for first, last in ((0, cut), (cut, len(X))):
        out = block(kernel, X, Z, first, last, column)
        filled = slice(column + first, column + last)
        np.testing.assert_array_equal(out[:, filled], whole[:, first:last])
        assert np.isnan(np.delete(out, filled, axis=1)).all()  # nothing else is touched


def test_a_row_is_at_no_distance_from_itself():
    X = 100 * np.random.default_rng(0).standard_normal((20, 33)).astype(np.float32)
    np.testing.assert_array_equal(np.diagonal(block(RbfKernel(F(3), F(0)), X, X)), 1)


@pytest.mark.parametrize("gamma", [1e-30, 1.0, 1e30])
def test_rbf_stays_within_0_and_1_at_any_scale(gamma):
    X = np.array([[1e9, -1e9], [1e-9, 0], [0, 0], [3, 4]], np.float32)
    values = block(RbfKernel(F(gamma), F(0)), X, X)
    assert ((values >= 0) & (values <= 1)).all()
    np.testing.assert_array_equal(np.diagonal(values), 1)


def test_tanh_of_large_numbers_is_1():
    X = np.array([[100.0], [-100.0]], np.float32)
    expected = [[1, -1], [-1, 1]]
    np.testing.assert_array_equal(block(SigmoidKernel(F(1), F(0), F(0)), X, X), expected)


@pytest.mark.parametrize("stored", ["dense", "CSR"])
def test_stored_zeros_add_nothing(stored):
    X = np.array([[1, 0, 2], [0, 0, 0], [3, 0, 0]], np.float32)
    matrix = sp.csr_array(np.ones((3, 3), np.float32))
    matrix.data[:] = X.ravel()  # zeros are entries
    rows = dense_rows(X, 0.0) if stored == "dense" else csr_rows(matrix, 0.0)
    ours = packed(rows, in_place(3))
    lengths, out = squared_lengths(ours), np.empty((3, 3), np.float32)
    tiles = chunk_tiles(ours, lengths, 3)
    fill_block(LinearKernel(F(0)), ours, lengths, 0, 3, tiles, desk_for(ours), out, 0)
    assert lengths.tolist() == [5, 0, 9]
    np.testing.assert_array_equal(out, X @ X.T)


def test_only_columns_of_the_chunk_take_room():
    X = np.zeros((70, 1000), np.float32)
    X[:, [3, 999]] = 1
    rows = packed(dense_rows(X, 0.0), in_place(70))
    tiles = chunk_tiles(rows, squared_lengths(rows), 1000)
    assert tiles.values.shape == (2, 2, 64)
    assert np.flatnonzero(tiles.used >= 0).tolist() == [3, 999]
    assert tiles.n_rows == 70


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 16), (16, 16), (17, 32)])
def test_padded_is_the_next_multiple_of_16(n, expected):
    assert padded(n) == expected
