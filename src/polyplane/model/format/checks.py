"""What is demanded of numbers and arrays that come from a file."""

from typing import Any

__all__ = ["LARGEST_COUNT", "Unsound", "need", "need_within"]

LARGEST_COUNT = 1 << 62


class Unsound(ValueError):
    """What a file holds is no model."""


def need(is_so: Any, words: str) -> None:
    """Demand something of the file."""
    if not is_so:
        raise Unsound(words)


def need_within(array: Any, low: int, high: int, words: str) -> None:
    """Integers from `low` up to, but not including, `high`."""
    is_within = array.size == 0 or (array.min() >= low and array.max() < high)
    need(is_within, f"{words} out of range")
