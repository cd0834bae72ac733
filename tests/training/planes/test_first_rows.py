"""The first rows of a stream: which are kept, and that chunks are forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.training.planes.first_rows import FirstRows
from polyplane.training.rows import TrainingData

NOT_WEIGHTED = np.empty(0, np.float32)
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 7)).astype(np.float32) * (GENERATOR.random((40, 7)) < 0.6)
X[11] = 0
Y = GENERATOR.integers(0, 3, 40).astype(np.int32)
WEIGHTS = GENERATOR.uniform(0.5, 2, 40).astype(np.float32)


def chunk(part, stored=np.asarray, weights=NOT_WEIGHTED, constant=0.5):
    """Those rows as a chunk of their own."""
    matrix = stored(X[part])
    rows = csr_rows(matrix, constant) if sp.issparse(matrix) else dense_rows(matrix, constant)
    return TrainingData(rows, Y[part], weights[part] if weights.size else weights)


def taken(cuts, room, **options):
    """What is kept of all rows cut at `cuts`, and the rows handed back."""
    first, rest = FirstRows(room), []
    for part in np.split(np.arange(40), sorted(cuts)):
        handed_back = first.take(chunk(part, **options), np.arange(part.size))
        rest.extend(part[handed_back])
    return first, rest


def matrix_of(data):
    starts = data.rows.starts
    return sp.csr_matrix((data.rows.values, data.rows.columns, starts), (len(starts) - 1, 7))


def assert_holds(data, wanted, weights=NOT_WEIGHTED):
    """These rows, labels and weights, to the last bit."""
    np.testing.assert_array_equal(matrix_of(data).toarray(), X[wanted])
    assert data.rows.values.dtype == np.float32
    assert data.rows.constant == 0.5
    np.testing.assert_array_equal(data.labels, Y[wanted])
    np.testing.assert_array_equal(data.weights, weights)
    assert data.weights.dtype == np.float32


@settings(deadline=None, max_examples=60)
@given(
    cuts=st.lists(st.integers(0, 40), max_size=8),
    room=st.sampled_from([1, 17, 40, 100]),
    is_sparse=st.booleans(),
    is_weighted=st.booleans(),
)
def test_chunks_are_forgotten(cuts, room, is_sparse, is_weighted):
    stored = sp.csr_matrix if is_sparse else np.asarray
    weights = WEIGHTS if is_weighted else NOT_WEIGHTED
    first, rest = taken(cuts, room, stored=stored, weights=weights)
    assert_holds(first.data(), np.arange(min(room, 40)), weights[:room])
    assert rest == list(range(room, 40))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_no_more_than_there_is_room_for(sizes):
    first = FirstRows(25)
    met = 0
    assert first.n_rows == 0
    for size in sizes:
        rest = first.take(chunk(np.arange(size)), np.arange(size))
        room_left = max(25 - met, 0)
        assert rest.tolist() == list(range(min(room_left, size), size))
        met += size
        assert first.n_rows == first.data().labels.size == min(met, 25)
        assert first.is_full == (met >= 25)


def test_rows_may_be_let_go_when_there_are_enough():
    first, _ = taken([7, 13], 20)
    first.forget()
    assert first.is_full
    assert first.n_rows == 20
    assert not first.parts
    assert first.take(chunk(np.arange(3)), np.arange(3)).tolist() == [0, 1, 2]
    assert first.data().labels.size == 0


def test_only_members_are_kept_in_their_order():
    first = FirstRows(4)
    members = np.array([30, 2, 11, 5, 0, 39])
    rest = first.take(chunk(np.arange(40), weights=WEIGHTS), members)
    assert rest.tolist() == [0, 39]
    assert_holds(first.data(), [30, 2, 11, 5], WEIGHTS[[30, 2, 11, 5]])


def test_chunks_with_and_without_weights_go_together():
    first = FirstRows(6)
    first.take(chunk(np.arange(2)), np.arange(2))
    first.take(chunk(np.arange(2, 4), weights=WEIGHTS), np.arange(2))
    first.take(chunk(np.arange(4, 8)), np.arange(4))
    assert_holds(first.data(), np.arange(6), [1, 1, *WEIGHTS[2:4], 1, 1])


def test_weights_of_one_are_no_weights():
    first, _ = taken([7], 40, weights=np.ones(40, np.float32))
    assert_holds(first.data(), np.arange(40))


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_matrix])
def test_rows_of_zeros_are_rows(stored):
    first = FirstRows(3)
    first.take(chunk(np.array([11]), stored), np.arange(1))
    assert_holds(first.data(), [11])
    first.take(chunk(np.array([11, 3]), stored), np.arange(2))
    assert_holds(first.data(), [11, 11, 3])


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_rows_are_kept_as_the_planes_see_them(dtype):
    whole = np.arange(12).reshape(3, 4).astype(dtype)
    first = FirstRows(2)
    first.take(TrainingData(dense_rows(whole, 1.0), Y[:3], NOT_WEIGHTED), np.arange(3))
    data = first.data()
    assert data.rows.values.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert data.rows.columns.tolist() == [1, 2, 3, 0, 1, 2, 3]
    assert data.rows.starts.tolist() == [0, 3, 7]
    assert data.rows.constant == 1


def test_later_chunks_may_be_wider():
    first = FirstRows(10)
    for width in (2, 5, 3):
        row = np.full((1, width), width, np.float32)
        first.take(TrainingData(dense_rows(row, 1.0), Y[:1], NOT_WEIGHTED), np.arange(1))
    wide = matrix_of(first.data()).toarray()[:, :5]
    assert wide.tolist() == [[2, 2, 0, 0, 0], [5] * 5, [3, 3, 3, 0, 0]]


def test_what_is_kept_is_a_copy():
    mine = X[:5].copy()
    first = FirstRows(5)
    first.take(TrainingData(dense_rows(mine, 0.5), Y[:5], NOT_WEIGHTED), np.arange(5))
    mine[:] = 7
    assert_holds(first.data(), np.arange(5))


def test_the_first_of_what_is_kept():
    first, _ = taken([3, 4, 20], 40, weights=WEIGHTS)
    for n_rows in (1, 3, 11, 12, 40):
        assert_holds(first.data(n_rows), np.arange(n_rows), WEIGHTS[:n_rows])


def test_it_is_time_to_start_anew_at_powers_of_two_and_when_full():
    first, starts = FirstRows(11), []
    for i in range(14):
        starts.append(first.last_start())
        first.take(chunk(np.array([i])), np.arange(1))
    assert starts == [0, 1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 11, 11, 11]
