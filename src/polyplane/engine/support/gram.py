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
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.tiles import (
    LANES,
    add,
    at,
    divide,
    exponential,
    fma,
    fma_tiles,
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
DESK_ROWS = 64  # rows that meet a group together
COLUMNS_AT_ONCE = 128  # of a group: what the rows on the desk need of them stays near
ENTRIES_AT_ONCE = 8  # fewer of a row are not worth fetching its sums: more columns then


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
def _sum_squares(rows: Any, page: Any, out: Any) -> None:
    """Sixteen rows at a time, a lane each: entry k of row r is page[k, r]."""
    entries = span(page)
    for i in range(0, out.size - LANES + 1, LANES):
        longest = 0
        for r in range(LANES):
            longest = max(longest, rows.starts[i + r + 1] - rows.starts[i + r])
        page[:longest] = 0
        for r in range(LANES):
            a = rows.starts[i + r]
            for k in range(rows.starts[i + r + 1] - a):
                page[k, r] = rows.values[a + k]
        total = splat(np.float32(0))
        for k in range(longest):
            tile = load(entries, k * LANES)
            total = fma_tiles(total, tile, tile)
        store(span(out), i, total)


def squared_lengths(rows: CsrRows) -> Any:
    """|x|^2 of packed rows, each one chain of sums as products are: K(x, x) of rbf is 1."""
    n_rows = len(rows.starts) - 1
    n_more = -n_rows % LANES
    padded_rows = rows._replace(
        starts=np.concatenate([rows.starts, np.full(n_more, rows.starts[-1])])
    )
    longest = int(np.diff(rows.starts).max(initial=0))
    out = np.zeros(n_rows + n_more, np.float32)
    _sum_squares(padded_rows, np.zeros((longest + 1, LANES), np.float32), out)
    return out[:n_rows]


@jit
def _list_columns(rows: Any, used: Any) -> Any:
    """Number the columns that the rows have, from left to right; return how many there are."""
    for column in rows.columns:
        used[column] = 0
    n = 0
    for column in range(used.size):
        if used[column] == 0:
            used[column] = n
            n += 1
    return n


@jit
def _turn(rows: Any, used: Any, values: Any) -> None:
    for i in range(rows.starts.size - 1):
        group, lane = i // GROUP, i % GROUP
        for j in range(rows.starts[i], rows.starts[i + 1]):
            values[group, used[rows.columns[j]], lane] = rows.values[j]


def chunk_tiles(rows: CsrRows, lengths: Any, n_columns: int) -> ChunkTiles:
    """Packed rows of a chunk, of squared lengths `lengths`, by feature."""
    n_rows = len(rows.starts) - 1
    used = np.full(n_columns, -1, np.int32)
    n_used = _list_columns(rows, used)
    n_groups = -(-n_rows // GROUP)
    values = aligned_zeros(n_groups * n_used, GROUP).reshape(n_groups, n_used, GROUP)
    _turn(rows, used, values)
    of_lanes = np.zeros(n_groups * GROUP, np.float32)
    of_lanes[:n_rows] = lengths
    return ChunkTiles(values, of_lanes, used, n_rows)


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
def _add_products(index: Any, value: Any, a: Any, b: Any, tiles: Any, out: Any, o: Any) -> Any:
    """out[o:] += a packed row's entries a to b times the GROUP rows of `tiles`."""
    s0, s1 = load(out, o), load(out, o + LANES)
    s2, s3 = load(out, o + 2 * LANES), load(out, o + 3 * LANES)
    for j in range(a, b):
        x, k = at(value, j), tiles.base + at(index, j)
        s0 = fma(s0, x, load(tiles.values, k))
        s1 = fma(s1, x, load(tiles.values, k + LANES))
        s2 = fma(s2, x, load(tiles.values, k + 2 * LANES))
        s3 = fma(s3, x, load(tiles.values, k + 3 * LANES))
    store(out, o, s0)
    store(out, o + LANES, s1)
    store(out, o + 2 * LANES, s2)
    store(out, o + 3 * LANES, s3)


class _Group(NamedTuple):
    values: Any
    base: Any


class _Spans(NamedTuple):
    values: Any
    columns: Any
    starts: Any


class Desk(NamedTuple):
    """Where one thread works: packed entries of some rows, and their products."""

    index: Any  # [row, room] int32
    value: Any  # [row, room] float32
    ends: Any  # [row] int64: of the entries of each row
    reached: Any  # [row] int64: entries up to here are in the products
    sheet: Any  # [row, GROUP] float32: products


def desk_for(rows: CsrRows) -> Desk:
    """A desk with room for the longest of some rows."""
    room = int(np.diff(rows.starts).max(initial=0)) + 1
    return Desk(
        np.zeros((DESK_ROWS, room), np.int32),
        np.zeros((DESK_ROWS, room), np.float32),
        np.zeros(DESK_ROWS, np.int64),
        np.zeros(DESK_ROWS, np.int64),
        aligned_zeros(DESK_ROWS, GROUP),
    )


@inlined
def _fill_sheet(desk: Any, n: Any, group: Any, n_used: Any, width: Any) -> Any:
    """Products of the packed rows with one group, some columns at a time: these stay in L1."""
    index, value, sheet = span(desk.index), span(desk.value), span(desk.sheet)
    room, nothing = desk.index.shape[1], splat(np.float32(0))
    for r in range(n):
        desk.reached[r] = r * room
        for k in range(0, GROUP, LANES):
            store(sheet, r * GROUP + k, nothing)
    for column in range(0, n_used, width):
        limit = (column + width) * GROUP
        for r in range(n):
            a = desk.reached[r]
            b, end = a, desk.ends[r]
            while b < end and at(index, b) < limit:
                b += 1
            if b > a:
                _add_products(index, value, a, b, group, sheet, r * GROUP)
                desk.reached[r] = b


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
    others, room = span(chunk.squared_lengths), desk.index.shape[1]
    n_groups, n_used = chunk.values.shape[0], chunk.values.shape[1]
    width = max(COLUMNS_AT_ONCE, n_used * ENTRIES_AT_ONCE * lengths.size // (rows.values.size + 1))
    for i in range(first, last, DESK_ROWS):
        n = min(DESK_ROWS, last - i)
        for r in range(n):
            desk.ends[r] = _pack(spans, i + r, used, span(desk.index), span(desk.value), r * room)
        for g in range(n_groups):
            _fill_sheet(desk, n, _Group(tiles, g * n_used * GROUP), n_used, width)
            for r in range(n):
                for k in range(0, GROUP, LANES):
                    o, lane = r * GROUP + k, g * GROUP + k
                    values = kernel_values(
                        kernel, load(sheet, o), lengths[i + r], load(others, lane)
                    )
                    store(sheet, o, values)
            for j in range(g * GROUP, min(chunk.n_rows, (g + 1) * GROUP)):
                for r in range(n):
                    out[j, at_column + i + r] = at(sheet, r * GROUP + j - g * GROUP)
