"""Chunks of one size: no row is lost, however the pieces come."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Chunk

pytestmark = pytest.mark.loops


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12), st.booleans())
def test_chunks_have_one_size_and_keep_all_rows(sizes, chunk_rows, is_sparse):
    n_rows = sum(sizes)
    y = np.arange(n_rows)
    X = np.column_stack([y, y % 3]).astype(np.float32)
    ends = np.cumsum(sizes)
    pieces = [
        Chunk(
            sp.csr_matrix(X[end - size : end]) if is_sparse else X[end - size : end],
            y[end - size : end],
        )
        for size, end in zip(sizes, ends, strict=True)
    ]
    got = list(rechunked(iter(pieces), chunk_rows))
    lengths = [chunk.X.shape[0] for chunk in got]
    assert lengths[:-1] == [chunk_rows] * (len(got) - 1)
    assert sum(lengths) == n_rows
    assert all(0 < length <= chunk_rows for length in lengths)
    if got:
        rows = [chunk.X.toarray() if is_sparse else chunk.X for chunk in got]
        np.testing.assert_array_equal(np.concatenate(rows), X)
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in got]), y)


def test_sparse_chunks_that_grew_wider_are_joined():
    pieces = [
        Chunk(sp.csr_matrix(np.ones((1, width), np.float32)), np.zeros(1)) for width in (1, 3, 2)
    ]
    (chunk,) = rechunked(pieces, 5)
    np.testing.assert_array_equal(chunk.X.toarray(), [[1, 0, 0], [1, 1, 1], [1, 1, 0]])
