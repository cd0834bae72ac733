"""One look at what was handed in, before any unchecked loop reads it."""

from typing import Any

import numpy as np

from polyplane.engine.jit import jit

__all__ = ["column_facts", "largest_magnitude", "starts_are_sound"]


@jit
def _largest_bits(bits: Any, sign: Any) -> Any:
    """Bit patterns of non-negative floats are ordered like the floats; NaN comes after all."""
    largest = bits[0] & ~sign
    for k in range(1, bits.size):
        largest = max(largest, bits[k] & ~sign)
    return largest


def largest_magnitude(values: Any) -> float:
    """Largest absolute value in a contiguous array; NaN if there is one, 0 for an empty array."""
    if values.size == 0:
        return 0.0
    if values.dtype == np.uint8:
        return float(values.max())
    integer = np.dtype(f"i{values.itemsize}")
    largest = _largest_bits(values.reshape(-1).view(integer), np.iinfo(integer).min)
    return float(np.array([largest], integer).view(values.dtype)[0])


@jit
def starts_are_sound(starts: Any, n_entries: Any) -> Any:
    """Row boundaries rise from zero and stay inside the arrays."""
    sound = starts[0] == 0 and starts[-1] <= n_entries
    for i in range(starts.size - 1):
        sound &= starts[i] <= starts[i + 1]
    return sound


@jit
def _range_and_descents(columns: Any) -> Any:
    lowest = highest = columns[0]
    descents = 0
    for k in range(1, columns.size):
        lowest, highest = min(lowest, columns[k]), max(highest, columns[k])
        descents += columns[k - 1] >= columns[k]
    return lowest, highest, descents


@jit
def _descents_between_rows(columns: Any, starts: Any) -> Any:
    descents = 0
    for i in range(starts.size - 1):
        k = starts[i]
        if 0 < k < starts[i + 1]:
            descents += columns[k - 1] >= columns[k]
    return descents


def column_facts(columns: Any, starts: Any) -> tuple[int, int, bool]:
    """Lowest and highest column, and whether columns increase within each row.

    Columns may fall only where a row begins, so two flat counts do, at memory speed.
    """
    if columns.size == 0:
        return 0, 0, True
    lowest, highest, descents = _range_and_descents(columns)
    return int(lowest), int(highest), descents == _descents_between_rows(columns, starts)
