"""A sample holds each row with the same chance, whatever the chunks are."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.data.chunks import Chunk
from polyplane.data.sample import sample

X = np.arange(100, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
Y = np.arange(100)


def chunks(size, is_sparse=False):
    for start in range(0, 100, size):
        rows = X[start : start + size]
        yield Chunk(sp.csr_matrix(rows) if is_sparse else rows, Y[start : start + size])


@pytest.mark.parametrize("size", [1, 7, 30, 100])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_keep_their_labels_and_order(size, is_sparse):
    found, n_met = sample(chunks(size, is_sparse), 20, seed=3)
    assert n_met == 100
    rows = found.X.toarray() if is_sparse else found.X
    assert rows[:, 0].tolist() == found.y.tolist() == sorted(set(found.y.tolist()))
    assert len(found.y) == 20


def test_chunks_do_not_matter():
    samples = [sample(chunks(size), 20, seed=3)[0].y.tolist() for size in (1, 7, 30, 100)]
    assert all(one == samples[0] for one in samples)


def test_every_row_has_the_same_chance():
    counts = np.zeros(100)
    for seed in range(2000):
        counts[sample(chunks(10), 10, seed)[0].y] += 1
    deviation = np.sqrt(2000 * 0.1 * 0.9)
    assert np.abs(counts - 200).max() < 5 * deviation


def test_few_rows_are_all_taken():
    found, n_met = sample(chunks(30), 500, seed=0)
    assert n_met == 100
    assert found.y.tolist() == Y.tolist()


def test_rows_that_grow_wider_are_padded():
    pieces = [Chunk(sp.csr_matrix(np.eye(k, dtype=np.float32)), np.arange(k)) for k in (2, 5, 3)]
    found, _ = sample(pieces, 4, seed=0)
    assert found.X.shape == (4, 5)


def test_unlabelled_rows_stay_unlabelled():
    found, _ = sample([Chunk(X, np.empty(0))], 10, seed=0)
    assert found.X.shape == (10, 2)
    assert found.y.size == 0
