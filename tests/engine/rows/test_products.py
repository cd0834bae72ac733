"""The map of degree 2 formed row by row is the map written out, and trains and scores like it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit
from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import with_classes, with_planes, zero_planes
from polyplane.engine.rows.products import MOST_COLUMNS, hashed_column, n_mapped, poly2_rows
from polyplane.engine.rows.storage import count_rows, csr_rows, dense_rows, with_own_page
from polyplane.engine.steps.hinge import HingeRule, hinge_epoch
from polyplane.engine.targets import Targets
from tests.engine.rows.test_storage import STORAGES, matrices, opened, random_planes, score
from tests.examples import examples
from tests.reference.poly2 import hashed, poly2_map, poly2_pegasos, splitmix, with_constant

pytestmark = pytest.mark.loops

FACTORS = [(0.5, 1.0), (2.0, 1.0), (0.5, 4.0), (1.0, 0.0)]  # sqrt(2 gamma r) is whole
N_HASH = 97


def opened_row(rows, i):
    """Mapped columns and values of row i."""
    index, value = np.empty(n_mapped(70), np.int64), np.empty(n_mapped(70), np.float32)
    n = opened(rows, i, index, value)
    return index[:n].copy(), value[:n].copy()


def written_out(rows, n_columns):
    """The opened rows as CSR rows that hold the very same numbers in the same order."""
    parts = [opened_row(rows, i) for i in range(count_rows(rows))]
    index, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.cumsum([0, *(len(part[0]) for part in parts)]).astype(np.int32)
    shape = len(parts), n_columns
    return csr_rows(sp.csr_array((value, index.astype(np.int32), starts), shape), rows.constant)


@given(
    st.lists(st.tuples(*[st.integers(-9, 9)] * 2), min_size=1, max_size=8),
    st.sampled_from([0.125, 1.0, 3.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_the_map_is_the_kernel(pairs, gamma, r):
    x, z = np.array(pairs, np.float64).T
    phi = with_constant(poly2_map(np.array([x, z]), gamma, r), r)
    size = (gamma * np.abs(x) @ np.abs(z) + r) ** 2
    assert abs(phi[0] @ phi[1] - (gamma * x @ z + r) ** 2) <= 1e-13 * size


@pytest.mark.parametrize("name", ["uint8", "long CSR"])
@given(matrix=matrices(), factors=st.sampled_from(FACTORS))
@settings(deadline=None, max_examples=examples(12))
def test_an_opened_row_is_the_map_in_each_storage(name, matrix, factors):
    gamma, r = factors
    rows = poly2_rows(STORAGES[name](matrix, 1), gamma, r)
    plain = poly2_rows(STORAGES["CSR"](matrix, 1), gamma, r)
    is_exact = poly2_map(np.ones((1, matrix.shape[1])), gamma, r)[0] % 0.5 == 0
    for i, expected in enumerate(poly2_map(matrix, gamma, r)):
        index, value = opened_row(rows, i)
        formed = np.zeros(n_mapped(matrix.shape[1]))
        formed[index] = value
        assert (np.diff(index) > 0).all()
        np.testing.assert_array_equal(formed[is_exact], expected[is_exact])
        np.testing.assert_allclose(formed, expected, rtol=3e-7)  # sqrt(2) is rounded
        np.testing.assert_array_equal(value, opened_row(plain, i)[1])


@given(matrix=matrices(), has_constant=st.booleans(), factors=st.sampled_from(FACTORS))
@settings(deadline=None, max_examples=examples(12))
def test_scores_are_those_of_the_map_written_out(matrix, has_constant, factors):
    gamma, r = factors
    width = n_mapped(matrix.shape[1])
    rows = poly2_rows(STORAGES["CSR"](matrix, has_constant), gamma, r)
    explicit = written_out(rows, width)
    planes, sums = random_planes(3, width, 0)
    phi = with_constant(poly2_map(matrix, gamma, r), r * has_constant)
    for i in range(len(matrix)):
        norm = score(rows, i, planes)
        scores = planes.scores[:3].copy()
        assert norm == score(explicit, i, planes)
        np.testing.assert_array_equal(scores, planes.scores[:3])
        np.testing.assert_allclose(norm, phi[i] @ phi[i], rtol=1e-5)
        bound = 1e-5 * (np.abs(sums) @ np.abs(phi[i]))
        assert (np.abs(scores - sums @ phi[i]) <= bound).all()


def test_scores_are_exact_on_rows_without_mixed_products():
    matrix = np.diag([3, -1, 2, 5, 7])
    planes, sums = random_planes(3, n_mapped(5), 0)
    rows = poly2_rows(STORAGES["CSR"](matrix, 1), 0.5, 1.0)
    for i, x in enumerate(np.diag(matrix)):
        linear, square = n_mapped(i), n_mapped(i) + 1 + i
        norm = score(rows, i, planes)
        expected = sums[:, 0] + x * sums[:, 1 + linear] + x * x / 2 * sums[:, 1 + square]
        np.testing.assert_array_equal(planes.scores[:3], expected)
        assert norm == (x * x / 2 + 1) ** 2


@given(matrix=matrices(), n_new=st.integers(1, 20))
@settings(deadline=None, max_examples=examples(12))
def test_new_columns_append(matrix, n_new):
    wider = np.hstack([matrix, np.zeros((len(matrix), n_new), int)])[:, :70]
    last_only = np.zeros((1, matrix.shape[1] + 1), int)
    last_only[0, -1] = 1
    first = poly2_rows(STORAGES["CSR"](matrix, 1), 0.5, 1.0)
    second = poly2_rows(STORAGES["CSR"](wider, 1), 0.5, 1.0)
    for i in range(len(matrix)):
        np.testing.assert_array_equal(opened_row(first, i), opened_row(second, i))
    index, _ = opened_row(poly2_rows(STORAGES["CSR"](last_only, 1), 0.5, 1.0), 0)
    assert index[0] == n_mapped(matrix.shape[1])


def test_the_last_column_of_the_widest_rows_fits_an_int32():
    assert n_mapped(MOST_COLUMNS) - 1 < 2**31 <= n_mapped(MOST_COLUMNS + 1) - 1
    value, column = np.ones(1, np.float32), np.array([MOST_COLUMNS - 1], np.int32)
    widest = sp.csr_array((value, column, in_place(2)), (1, MOST_COLUMNS))
    index, _ = opened_row(poly2_rows(csr_rows(widest, 1), 0.5, 1.0), 0)
    assert index.tolist() == [n_mapped(MOST_COLUMNS - 1), n_mapped(MOST_COLUMNS) - 1]


@jit
def hash_all(columns, n_hash, found, signs):
    for k in range(columns.size):
        found[k], signs[k] = hashed_column(columns[k], n_hash)


def hashes_of(columns, n_hash):
    found, signs = np.empty(len(columns), np.int64), np.empty(len(columns), np.float32)
    hash_all(np.array(columns), n_hash, found, signs)
    return found, signs


def test_the_hash_is_the_documented_one():
    columns = [0, 1, 2, 1234567, 2**31, 2**40 + 1]
    for n_hash in (1, 97, 2**20, 2**31 - 1):
        found, signs = hashes_of(columns, n_hash)
        assert found.tolist() == [(splitmix(c) >> 31) * n_hash >> 32 for c in columns]
        assert signs.tolist() == [1 - 2 * (splitmix(c) & 1) for c in columns]


def test_hashed_columns_spread_evenly_with_even_signs():
    found, signs = hashes_of(range(10_000), 20)
    for part in (found[signs > 0], found[signs < 0]):
        counts = np.bincount(part, minlength=20)
        assert (np.abs(counts - 250) < 5 * np.sqrt(250)).all()


@given(matrix=matrices(), n_hash=st.sampled_from([1, 5, N_HASH, 5000]))
@settings(deadline=None, max_examples=examples(12))
def test_hashed_rows_add_up_the_columns_of_the_map(matrix, n_hash):
    mapped = poly2_map(matrix, 0.5, 1.0)
    dense = poly2_rows(STORAGES["uint8"](matrix, 1), 0.5, 1.0, n_hash)
    sparse = poly2_rows(STORAGES["CSR"](matrix, 1), 0.5, 1.0, n_hash)
    sizes = np.abs(mapped).sum(axis=1)
    for i, expected in enumerate(hashed(mapped, n_hash)):
        index, value = opened_row(sparse, i)
        formed = np.zeros(n_hash)
        formed[index] = value
        assert len(set(index)) == len(index)
        assert np.abs(formed - expected).max() <= 1e-6 * sizes[i]
        np.testing.assert_array_equal(opened_row(dense, i), (index, value))


def two_planes(n_columns):
    planes = with_classes(zero_planes(n_columns, keeps_average=True), 2, 0)
    return with_planes(planes, np.arange(2), np.zeros((2, 1)))


def trained(rows, labels, n_columns, alpha):
    """Planes of two classes after three passes."""
    planes = two_planes(n_columns)
    targets = Targets(labels.astype(np.int32), in_place(2), np.empty(0, np.float32))
    order = np.tile(in_place(len(labels)), 3)
    rule = HingeRule(alpha, False)
    coins, chosen = np.empty(0), np.empty(0, np.int32)
    assert hinge_epoch(rows, targets, order, planes, rule, coins, chosen, 0) == len(order)
    return planes


@pytest.fixture
def problem():
    """Rows with gaps, and classes that no plane without products can tell apart."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 9)).astype(np.float32)
    X *= generator.random(X.shape) < 0.6
    return X, (X[:, 0] * X[:, 1] + X[:, 2] ** 2 > 0.2).astype(int)


def test_training_is_that_on_the_map_written_out(problem):
    X, y = problem
    width = n_mapped(9)
    rows = poly2_rows(csr_rows(sp.csr_array(X), 1), 0.3, 2.0)
    planes = trained(rows, y, width, 1e-2)
    explicit = trained(written_out(rows, width), y, width, 1e-2)
    for part in ("sums", "timed_sums", "squared_norms", "counts"):
        np.testing.assert_array_equal(getattr(planes, part), getattr(explicit, part))
    fresh = np.square(planes.sums, dtype=np.float64).sum(axis=0)
    assert fresh[:2].min() > 0
    np.testing.assert_allclose(planes.squared_norms, fresh, rtol=1e-4)


def test_training_is_pegasos_on_the_map(problem):
    X, y = problem
    gamma, r, alpha = 0.3, 2.0, 1e-2
    rows = poly2_rows(csr_rows(sp.csr_array(X), 1), gamma, r)
    planes = trained(rows, y, n_mapped(9), 2 * alpha)  # two opposite planes share w
    order = np.tile(np.arange(len(y)), 3)
    w = poly2_pegasos(X.astype(np.float64), 2 * y - 1, gamma, r, alpha, order)
    theta = alpha * len(order) * w
    np.testing.assert_allclose(planes.sums[:, 1], theta, atol=1e-4 * np.abs(theta).max())
    np.testing.assert_array_equal(planes.sums[:, 0], -planes.sums[:, 1])


@pytest.mark.parametrize("n_hash", [0, N_HASH])
@pytest.mark.parametrize("name", ["uint8", "CSR"])
def test_another_thread_gets_scratch_of_its_own(name, n_hash):
    base = STORAGES[name](np.ones((3, 2)), 1)
    rows = poly2_rows(base, 0.5, 1.0, n_hash)
    other = with_own_page(rows)
    assert count_rows(other) == count_rows(rows) == 3
    data = {id(array) for array in base if isinstance(array, np.ndarray)} - {
        id(getattr(base, scratch, None)) for scratch in ("page_index", "page_value")
    }
    assert {id(array) for array in arrays_in(rows)} & {id(a) for a in arrays_in(other)} == data
    assert [a.shape for a in arrays_in(other)] == [a.shape for a in arrays_in(rows)]


def arrays_in(rows):
    """All arrays of rows and of those they wrap."""
    for part in rows:
        if isinstance(part, tuple):
            yield from arrays_in(part)
        elif isinstance(part, np.ndarray):
            yield part


@pytest.mark.parametrize("n_hash", [0, N_HASH])
def test_rows_without_columns_or_entries_have_their_constant_only(n_hash):
    for shape in ((2, 0), (2, 4)):
        rows = poly2_rows(dense_rows(np.zeros(shape, np.uint8), 1), 0.5, 3.0, n_hash)
        assert rows.constant == 3
        assert opened_row(rows, 1)[0].size == 0
    assert count_rows(poly2_rows(dense_rows(np.zeros((0, 4), np.uint8), 1), 0.5, 3.0, n_hash)) == 0
