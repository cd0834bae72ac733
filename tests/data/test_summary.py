"""What is told of rows is what is in them, dense or sparse, in chunks of any size."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.data.chunks import Chunk
from polyplane.data.summary import RowSummary

X = np.array([[0, 1, -2, 0], [3, 1, 0, 0], [0, 2, -1, 0]], np.float32)
Y = np.array(["a", "b", "a"])


def summary_of(chunks):
    summary = RowSummary()
    for chunk in chunks:
        summary.add(chunk)
    return summary


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_counts_and_ranges(form, size):
    parts = [slice(start, start + size) for start in range(0, 3, size)]
    found = summary_of(Chunk(form(X[part]), Y[part]) for part in parts)
    assert (found.n_rows, found.n_features) == (3, 4)
    assert found.classes == {"a": 2, "b": 1}
    assert found.density == np.count_nonzero(X) / 12
    lows, highs = found.ranges()
    assert lows.tolist() == X.min(axis=0).tolist()
    assert highs.tolist() == X.max(axis=0).tolist()
    assert found.reaches().tolist() == [3, 2, 2]


def test_zeros_that_are_not_stored_belong_to_the_range():
    found = summary_of([Chunk(sp.csr_matrix(np.array([[5.0], [0.0]], np.float32)), Y[:2])])
    assert [one.tolist() for one in found.ranges()] == [[0.0], [5.0]]


def test_rows_that_grow_wider():
    chunks = [Chunk(sp.csr_matrix(X[:, :2]), Y), Chunk(sp.csr_matrix(X), Y)]
    found = summary_of(chunks)
    assert found.n_features == 4
    assert found.ranges()[0].tolist() == [0, 1, -2, 0]


@pytest.mark.parametrize(
    ("rows", "is_wanted"),
    [
        ([[1, -1]], False),
        ([[1, 3]], False),
        ([[1, 5000]], True),
        ([[0.001, 1]], True),
        ([[0, 0]], False),
    ],
)
def test_scaling_is_wanted_where_columns_are_large_or_uneven(rows, is_wanted):
    found = summary_of([Chunk(np.array(rows, np.float32), Y[:1])])
    assert found.wants_scaling == is_wanted
