"""Checks of numbers and arrays that come from a file."""

from typing import Any

import numpy as np

__all__ = [
    "LARGEST_COUNT",
    "Unsound",
    "need",
    "need_ranges_within",
    "need_starts",
    "need_within",
]

LARGEST_COUNT = 1 << 62


class Unsound(ValueError):
    """Error for the content of a file that is no model."""


def need(is_so: Any, words: str) -> None:
    """Demand something of the file."""
    if not is_so:
        raise Unsound(words)


def need_within(array: Any, low: int, high: int, words: str) -> None:
    """Integers from `low` up to, but not including, `high`."""
    is_within = array.size == 0 or (array.min() >= low and array.max() < high)
    need(is_within, f"{words} out of range")


def need_ranges_within(first: Any, count: Any, low: int, high: int, words: str) -> None:
    """Demand that `count` indices from `first` on lie in [low, high), where there are any.

    Nothing is added in the dtype of the file, in which sums can wrap around.
    """
    first, count = first.astype(np.int64), count.astype(np.int64)
    is_within = (count > 0) & (first >= low) & (first <= high - np.maximum(count, 0))
    need(bool((is_within | (count == 0)).all()), words)


def need_starts(starts: Any, size: int, words: str) -> None:
    """Demand that `starts` cut an array of `size` elements into parts that follow each other."""
    starts = starts.astype(np.int64)
    is_cut = starts.size > 0 and starts[0] == 0 and starts[-1] == size
    need(is_cut and bool((starts[1:] >= starts[:-1]).all()), words)
