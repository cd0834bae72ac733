"""What is demanded of numbers and arrays that come from a file."""

from typing import Any

import numpy as np

from polyplane.engine.inspection import largest_magnitude

__all__ = [
    "LARGEST_COUNT", "Unsound", "need", "need_array", "need_count", "need_finite", "need_numbers",
    "need_within",
]  # fmt: skip

LARGEST_COUNT = 1 << 62


class Unsound(ValueError):
    """What a file holds is no model."""


def need(is_so: Any, words: str) -> None:
    """Demand something of the file."""
    if not is_so:
        raise Unsound(words)


def need_array(array: Any, dtype: Any, *shape: int | None) -> None:
    """An array of this kind and shape, None being any length."""
    is_array = isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == len(shape)
    need(is_array, f"an array is not of {len(shape)} dimensions and {np.dtype(dtype).name}")
    for n, expected in zip(array.shape, shape, strict=True):
        need(expected is None or n == expected, f"an array has length {n} instead of {expected}")


def need_finite(*arrays: Any) -> None:
    """No NaN and no infinity."""
    for array in arrays:
        need(np.isfinite(largest_magnitude(array)), "an array holds NaN or infinity")


def need_within(array: Any, low: int, high: int, words: str) -> None:
    """Integers from `low` up to, but not including, `high`."""
    is_within = array.size == 0 or (array.min() >= low and array.max() < high)
    need(is_within, f"{words} out of range")


def need_count(*numbers: Any) -> None:
    """Whole numbers of at least 0."""
    for number in numbers:
        is_count = isinstance(number, int | np.integer) and not isinstance(number, bool)
        need(is_count and 0 <= number < LARGEST_COUNT, f"a count is {number!r}")


def need_numbers(*numbers: Any) -> None:
    """Numbers that are finite."""
    for number in numbers:
        is_number = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        need(is_number and np.isfinite(number), f"a number is {number!r}")
