"""One look at what was handed in, before any unchecked loop reads it."""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import jit
from polyplane.engine.rows.storage import (
    Rows,
    open_row,
    packed,
    page_of,
    value_at,
    written_in_parts,
)
from polyplane.engine.tiles import at

__all__ = [
    "LARGEST",
    "ColumnStatistics",
    "column_facts",
    "column_statistics",
    "largest_magnitude",
    "starts_are_sound",
]


LARGEST = 1e10  # squares of larger values, summed over a long stream, would leave float32


class ColumnStatistics(NamedTuple):
    """Statistics of each column over some rows, zeros that are not stored included."""

    n_nonzero: Any  # [column] float64
    mean: Any  # [column] float64
    deviation: Any  # [column] float64: root of the mean squared distance from the mean
    is_binary: Any  # [column] bool: nothing but 0 and 1


_BITS_OF = {  # integers as long as a float, and the integer that is its sign alone
    size: (np.dtype(f"i{size}"), int(np.iinfo(f"i{size}").min)) for size in (2, 4, 8)
}


@jit
def _largest_bits(bits: Any, sign: Any) -> Any:
    """Bit patterns of non-negative floats are ordered like the floats; NaN comes after all."""
    largest = bits[0] & ~sign
    for k in range(1, bits.size):
        largest = max(largest, bits[k] & ~sign)
    return largest


def largest_magnitude(values: Any) -> float:
    """Return the largest absolute value; NaN if there is one, 0 for an empty array."""
    if values.size == 0:
        return 0.0
    if values.dtype == np.uint8:
        return float(values.max())
    integer, sign = _BITS_OF[values.itemsize]
    largest = _largest_bits(values.reshape(-1).view(integer), sign)
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


@jit
def _add_nonzeros(rows: Any, order: Any, origin: Any, sums: Any) -> None:
    """Add up by column: how many, how many ones, distances from the origin, and squared."""
    page = page_of(rows)
    for i in order:
        a, b, _ = open_row(page, i, i)
        for j in range(a, b):
            x = np.float64(value_at(page, j))
            if x != 0:
                column = at(page.index, j)
                distance = x - origin[column]
                sums[column, 0] += 1
                sums[column, 1] += x == 1
                sums[column, 2] += distance
                sums[column, 3] += distance * distance


def column_statistics(rows: Rows, order: Any, n_columns: int) -> ColumnStatistics:
    """Statistics of the columns over the rows of `order`; those of no rows are all 0.

    Sums run over distances from the first row: squares of values far from zero would drown what
    differs between them. Zeros are added at the end, so that storage cannot change a sum. Rows
    that are made of others are written out: the loop is compiled for no more kinds.
    """
    n_rows = max(1, order.size)
    origin, first = np.zeros(n_columns), packed(rows, order[:1])
    origin[first.columns] = first.values
    sums = np.zeros((n_columns, 4))  # a column's numbers lie side by side: one line of memory
    parts = written_in_parts(rows, order) if hasattr(rows, "base") else [(..., rows, order)]
    for _, some, places in parts:
        _add_nonzeros(some, places, origin, sums)
    n_nonzero, n_ones, total, squares = sums.T
    n_zero = n_rows - n_nonzero
    offset = (total - n_zero * origin) / n_rows
    variance = (squares + n_zero * origin * origin) / n_rows - offset * offset
    return ColumnStatistics(
        n_nonzero=n_nonzero.copy(),
        mean=origin + offset,
        deviation=np.sqrt(np.maximum(variance, 0)),
        is_binary=n_ones == n_nonzero,
    )
