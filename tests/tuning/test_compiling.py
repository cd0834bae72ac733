"""Compilation is kept apart from what fits take."""

import time

import numba
import numpy as np
import pytest

from polyplane.tuning.compiling import watched

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
