"""The order in which rows are visited, and the coins tossed along the way."""

from typing import Any

import numpy as np

from polyplane.engine.jit import jit

__all__ = ["coins_at", "in_place", "shuffle"]

COINS = 1  # beside the seed of a model, parts its coins from all else that is drawn with it
BLOCK = 4_096  # coins drawn at a time


def in_place(n_rows: int) -> Any:
    """Every row where it stands."""
    return np.arange(n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)


@jit
def _swap_by(draws: Any, order: Any) -> None:
    for k in range(order.size - 1, 0, -1):
        j = (np.int64(draws[k]) * (k + 1)) >> 32
        order[k], order[j] = order[j], order[k]


def shuffle(order: Any, generator: np.random.Generator) -> None:
    """Fisher and Yates in place, three times as fast as `Generator.permutation`."""
    _swap_by(generator.integers(0, 2**32, order.size, np.uint32), order)


def coins_at(seed: int, t: int, n: int) -> Any:
    """A uniform number for each of the steps t ... t + n - 1: that of a step depends on no cut."""
    first = t // BLOCK
    blocks = [
        np.random.default_rng([seed, COINS, block]).random(BLOCK, np.float32)
        for block in range(first, (t + n) // BLOCK + 1)
    ]
    return np.concatenate(blocks)[t - first * BLOCK :][:n]
