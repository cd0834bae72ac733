"""Kernel values of many rows with a few: blocks by products of tiles.

A block is K(row, chunk row) for all rows of some set and the rows of one chunk. The chunk is
turned to features by rows, so that what a row needs of sixteen chunk rows at one feature is one
tile, as for planes; each product is one chain of multiply-adds over the row's non-zeros in column
order. Zeros add nothing and every pair is summed in the same order, so that values are symmetric
and do not depend on storage, on company, on the cut into chunks or on threads: not on one bit.

A kernel is a tuple type; `kernel_values` picks its formula. Every one adds `offset`, the value of
a constant kernel beside it, which gives machines without a bias one (0 elsewhere).
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import chosen_by_type, inlined, jit
from polyplane.engine.rows import CsrRows
from polyplane.engine.tiles import (
    LANES,
    add,
    at,
    divide,
    exponential,
    fma,
    horizontal_max,
    load,
    maximum,
    multiply,
    put,
    span,
    splat,
    store,
)

__all__ = [
    "ChunkTiles",
    "LinearKernel",
    "PolynomialKernel",
    "RbfKernel",
    "SigmoidKernel",
    "chunk_tiles",
    "desk_for",
    "fill_block",
    "padded",
    "squared_lengths",
]

GROUP = 4 * LANES  # chunk rows that one reading of a row meets: their sums stay in registers


class LinearKernel(NamedTuple):
    """x z + offset."""

    offset: Any


class PolynomialKernel(NamedTuple):
    """(gamma x z + coef0)^degree + offset."""

    gamma: Any
    coef0: Any
    degree: Any
    offset: Any


class RbfKernel(NamedTuple):
    """exp(-gamma |x - z|^2) + offset."""

    gamma: Any
    offset: Any


class SigmoidKernel(NamedTuple):
    """tanh(gamma x z + coef0) + offset."""

    gamma: Any
    coef0: Any
    offset: Any


class ChunkTiles(NamedTuple):
    """The rows of a chunk by feature: groups of GROUP rows, only columns that the chunk has."""

    values: Any  # [group, used column, GROUP] float32
    squared_lengths: Any  # [padded row] float32
    used: Any  # [column] int32: its place among the used ones, or -1
    n_rows: Any


def padded(n: int) -> int:
    """The next multiple of LANES."""
    return -(-n // LANES) * LANES


def _linear(kernel: Any, product: Any, length: Any, lengths: Any) -> Any:
    return add(product, splat(kernel.offset))


def _polynomial(kernel: Any, product: Any, length: Any, lengths: Any) -> Any:
    base = fma(splat(kernel.coef0), kernel.gamma, product)
    power = splat(np.float32(1))
    for _ in range(kernel.degree):
        power = multiply(power, base)
    return add(power, splat(kernel.offset))


def _rbf(kernel: Any, product: Any, length: Any, lengths: Any) -> Any:
    distance = fma(add(lengths, splat(length)), np.float32(-2), product)
    distance = maximum(distance, splat(np.float32(0)))
    return add(exponential(multiply(distance, splat(-kernel.gamma))), splat(kernel.offset))


def _sigmoid(kernel: Any, product: Any, length: Any, lengths: Any) -> Any:
    """tanh(u) = 1 - 2 / (e^2u + 1)."""
    doubled = multiply(fma(splat(kernel.coef0), kernel.gamma, product), splat(np.float32(2)))
    power = add(exponential(doubled), splat(np.float32(1)))
    tanh = fma(splat(np.float32(1)), np.float32(-2), divide(splat(np.float32(1)), power))
    return add(tanh, splat(kernel.offset))


_BODIES = {
    LinearKernel: _linear,
    PolynomialKernel: _polynomial,
    RbfKernel: _rbf,
    SigmoidKernel: _sigmoid,
}


def kernel_values(kernel: Any, product: Any, length: Any, lengths: Any) -> Any:
    """The kernel of a row of squared length `length` with sixteen others, from their products."""
    return _BODIES[type(kernel)](kernel, product, length, lengths)


chosen_by_type(kernel_values, _BODIES)


@jit
def squared_lengths(rows: Any, out: Any) -> None:
    """|x|^2 of each of some CSR rows, summed as products are."""
    values, starts = span(rows.values), span(rows.starts)
    for i in range(out.size):
        total = splat(np.float32(0))
        for j in range(at(starts, i), at(starts, i + 1)):
            x = at(values, j)
            total = fma(total, x, splat(x))
        out[i] = horizontal_max(total)


@jit
def _list_columns(rows: Any, used: Any) -> Any:
    """Number the columns that the rows have; return how many there are."""
    n = 0
    for column in rows.columns:
        if used[column] < 0:
            used[column] = n
            n += 1
    return n


@jit
def _turn(rows: Any, used: Any, values: Any) -> None:
    for i in range(rows.starts.size - 1):
        group, lane = i // GROUP, i % GROUP
        for j in range(rows.starts[i], rows.starts[i + 1]):
            values[group, used[rows.columns[j]], lane] = rows.values[j]


def chunk_tiles(rows: CsrRows, n_columns: int) -> ChunkTiles:
    """Packed rows of a chunk, by feature."""
    n_rows = len(rows.starts) - 1
    used = np.full(n_columns, -1, np.int32)
    n_used = _list_columns(rows, used)
    values = np.zeros((-(-n_rows // GROUP), n_used, GROUP), np.float32)
    _turn(rows, used, values)
    lengths = np.zeros(len(values) * GROUP, np.float32)
    squared_lengths(rows, lengths[:n_rows])
    return ChunkTiles(values, lengths, used, n_rows)


@inlined
def _pack(rows: Any, i: Any, used: Any, index: Any, value: Any, o: Any) -> Any:
    """The entries of row i in columns that the chunk has, from place o; return their end."""
    for j in range(at(rows.starts, i), at(rows.starts, i + 1)):
        place = at(used, at(rows.columns, j))
        put(index, o, np.int32(place * GROUP))
        put(value, o, at(rows.values, j))
        o += place >= 0
    return o


@inlined
def _products(
    index: Any, value: Any, a: Any, b: Any, tiles: Any, base: Any, out: Any, o: Any
) -> Any:
    """A packed row times the GROUP rows at `base`."""
    s0 = s1 = s2 = s3 = splat(np.float32(0))
    for j in range(a, b):
        x, k = at(value, j), base + at(index, j)
        s0 = fma(s0, x, load(tiles, k))
        s1 = fma(s1, x, load(tiles, k + LANES))
        s2 = fma(s2, x, load(tiles, k + 2 * LANES))
        s3 = fma(s3, x, load(tiles, k + 3 * LANES))
    store(out, o, s0)
    store(out, o + LANES, s1)
    store(out, o + 2 * LANES, s2)
    store(out, o + 3 * LANES, s3)


class _Spans(NamedTuple):
    values: Any
    columns: Any
    starts: Any


class Desk(NamedTuple):
    """Where one thread works: packed entries of LANES rows, and their products."""

    index: Any  # [LANES, room] int32
    value: Any  # [LANES, room] float32
    ends: Any  # [LANES] int64: of the entries of each row
    sheet: Any  # [LANES, GROUP] float32


def desk_for(rows: CsrRows) -> Desk:
    """A desk with room for the longest of some rows."""
    room = int(np.diff(rows.starts).max(initial=0)) + 1
    return Desk(
        np.zeros((LANES, room), np.int32),
        np.zeros((LANES, room), np.float32),
        np.zeros(LANES, np.int64),
        np.zeros((LANES, GROUP), np.float32),
    )


@jit
def fill_block(
    kernel: Any,
    rows: Any,
    lengths: Any,
    first: Any,
    last: Any,
    chunk: Any,
    desk: Any,
    out: Any,
    at_column: Any,
) -> None:
    """out[j, at_column + i] = K(row i, chunk row j) for rows `first` to `last`, of packed rows."""
    spans = _Spans(span(rows.values), span(rows.columns), span(rows.starts))
    used, tiles, sheet = span(chunk.used), span(chunk.values), span(desk.sheet)
    index, value, others = span(desk.index), span(desk.value), span(chunk.squared_lengths)
    room, n_groups = desk.index.shape[1], chunk.values.shape[0]
    group_size = chunk.values.shape[1] * GROUP
    for i in range(first, last, LANES):
        n = min(LANES, last - i)
        for r in range(n):
            desk.ends[r] = _pack(spans, i + r, used, index, value, r * room)
        for g in range(n_groups):
            for r in range(n):
                o = r * GROUP
                _products(index, value, r * room, desk.ends[r], tiles, g * group_size, sheet, o)
                for k in range(0, GROUP, LANES):
                    tile = kernel_values(
                        kernel, load(sheet, o + k), lengths[i + r], load(others, g * GROUP + k)
                    )
                    store(sheet, o + k, tile)
            for j in range(g * GROUP, min(chunk.n_rows, (g + 1) * GROUP)):
                for r in range(n):
                    out[j, at_column + i + r] = at(sheet, r * GROUP + j - g * GROUP)
