"""How many cases a test tries: compiled, without the JIT, and by night."""

import os

import pytest

from polyplane.engine.jit import jit_is_disabled

__all__ = ["IS_NIGHT", "examples", "with_seeds"]

IS_NIGHT = os.environ.get("POLYPLANE_NIGHTLY") == "1"  # as `make nightly` sets it


def examples(n):
    """So many of Hypothesis by night, half of them by day, a quarter without the JIT.

    Without the JIT, where a step takes a hundred times as long, a run looks for an index out of
    range and for lines that nothing runs, which few cases show; that results are right, in all
    cases, is what the compiled run asks.
    """
    if jit_is_disabled():
        return max(3, n // 4)
    return n if IS_NIGHT else max(3, n // 2)


def with_seeds(n):
    """So many seeds; without the JIT, which looks for what no seed matters to, the first."""
    seeds = [0, *(pytest.param(seed, marks=pytest.mark.compiled) for seed in range(1, n))]
    return pytest.mark.parametrize("seed", seeds)
