"""Work on many rows, shared out among threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

__all__ = ["shared_out"]


def shared_out(
    work: Callable[[int, int], None], size: int, n_threads: int, worth_a_thread: int, unit: int = 1
) -> None:
    """Call `work(first, last)` for parts of `range(size)` that begin at multiples of `unit`.

    There are as many parts as threads, but none of fewer than `worth_a_thread`, which would be
    done before a thread has started.
    """
    n_parts = max(1, min(n_threads, size // worth_a_thread))
    if n_parts == 1:
        work(0, size)
        return
    bounds = np.linspace(0, -(-size // unit), n_parts + 1).astype(int) * unit
    firsts, lasts = bounds[:-1].tolist(), [*bounds[1:-1].tolist(), size]
    with ThreadPoolExecutor(n_parts) as pool:
        list(pool.map(work, firsts, lasts))
