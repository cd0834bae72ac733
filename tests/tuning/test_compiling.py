"""Compilation is kept apart from what machines take."""

import time

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.tuning.compiling import made_up_rows, watched

pytestmark = pytest.mark.compiled


def test_a_clock_stands_still_while_loops_are_compiled():
    @numba.njit
    def fresh(x):
        return np.sort(x)[::-1] + 1

    with watched() as compilation:
        assert compilation.seconds == 0
        before, start = compilation.clock(), time.perf_counter()
        fresh(np.zeros(3))
        passed, whole = compilation.clock() - before, time.perf_counter() - start
        assert compilation.seconds > 0
        assert passed == pytest.approx(whole - compilation.seconds, abs=0.01)
        known = compilation.seconds
        fresh(np.zeros(3))
        assert compilation.seconds == known


@pytest.mark.parametrize(("n_classes", "n_made"), [(2, 2), (3, 3), (105, 3)])
def test_made_up_rows_have_the_same_storage_and_two_or_more_classes(n_classes, n_made):
    for is_sparse in (False, True):
        X, y = made_up_rows(is_sparse, n_classes)
        assert sp.issparse(X) == is_sparse
        assert X.dtype == np.float32
        assert np.unique(y).size == n_made
