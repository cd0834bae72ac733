"""How many cases a test tries, compiled and without the JIT."""

import pytest

from polyplane.engine.jit import jit_is_disabled

__all__ = ["examples", "with_seeds"]


def examples(n):
    """So many of Hypothesis; a quarter without the JIT, where a step takes a hundred times as long.

    That run looks for an index out of range and for lines that nothing runs, which few cases show;
    that results are right, in all cases, is what the compiled run asks.
    """
    return max(3, n // 4) if jit_is_disabled() else n


def with_seeds(n):
    """So many seeds; without the JIT, which looks for what no seed matters to, the first."""
    seeds = [0, *(pytest.param(seed, marks=pytest.mark.compiled) for seed in range(1, n))]
    return pytest.mark.parametrize("seed", seeds)
