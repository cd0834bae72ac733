"""Rows of whole numbers for clusters, and a machine that learns them in a moment."""

import dask.array as da
import numpy as np

import polyplane as pp


def rows(n=600, seed=0):
    """Whole numbers: sums of them are exact."""
    X = np.random.default_rng(seed).integers(0, 5, (n, 6)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + X[:, 2]).astype(int) // 4 % 3


def machine(**settings):
    return pp.AMMClassifier(**{"random_state": 1, "max_iter": 3, "prune_interval": 200} | settings)


def arrays(X, y, n_partitions):
    chunk = -(-len(y) // n_partitions)
    return da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)


def same(one, other):
    np.testing.assert_array_equal(one.planes_, other.planes_)
    np.testing.assert_array_equal(one.intercepts_, other.intercepts_)
    assert (one.n_steps_, one.n_iter_) == (other.n_steps_, other.n_iter_)
