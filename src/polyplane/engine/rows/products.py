"""Rows under the polynomial map of degree 2: products are formed when a row is opened.

Map      (gamma x z + r)^2 = phi(x) phi(z) with
         phi(x) = [r, sqrt(2 gamma r) x_j, gamma x_j^2, sqrt(2) gamma x_i x_j (i < j)]
Columns  r is the constant of the rows. Column j of X owns the mapped columns from j (j + 3) / 2
         on: its linear term, then x_i x_j for i = 0 ... j. So n columns make n (n + 3) / 2, more
         columns only append, and the products of an opened row come in increasing order.
Pages    `Poly2Rows` wraps dense or CSR rows and keeps the products of one row: m non-zeros make
         m (m + 3) / 2 of them. `HashedRows` wraps any rows and folds their columns into fewer:
         what meets in one column is added up, so that a page never names a column twice.
Hash     the mixing steps of splitmix64, modulo 2^63 so that no integer is ever negative. Its high
         32 bits, times n_hash, over 2^32 are the column; its lowest bit set turns the sign, so
         that in the mean over hashes collisions cancel (Weinberger et al., 2009).
Paper    Chang, Hsieh, Chang, Ringgaard, Lin (2010): Training and testing low-degree polynomial
         data mappings via linear SVM, https://jmlr.org/papers/v11/chang10a.html
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from polyplane.engine.jit import inlined, jit
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.storage import (
    CsrRows,
    Rows,
    count_rows,
    open_row,
    page_of,
    register_rows,
    value_at,
    with_own_page,
)
from polyplane.engine.tiles import (
    LANES,
    at,
    load,
    multiply,
    prefetch,
    primitive,
    put,
    span,
    splat,
    store,
)

__all__ = [
    "MOST_COLUMNS",
    "HashedRows",
    "Poly2Rows",
    "hashed_column",
    "hashed_rows",
    "n_mapped",
    "poly2_rows",
    "unhashed",
]

MOST_COLUMNS = 65_534  # wider rows have mapped columns beyond int32, and must be hashed
BITS_63 = (1 << 63) - 1
STEP, FIRST_FACTOR, SECOND_FACTOR = (
    number & BITS_63 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class Poly2Rows(NamedTuple):
    """Rows, the factors of their products, and room for one row and its products."""

    base: Any
    constant: Any
    linear: Any
    square: Any
    cross: Any
    row_index: Any
    row_value: Any
    page_index: Any
    page_value: Any


class Poly2Page(NamedTuple):
    """Rows of products as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    base: Any
    linear: Any
    square: Any
    cross: Any
    row_index: Any
    row_value: Any


class HashedRows(NamedTuple):
    """Rows, room for one hashed row, and a total for each hashed column, zero between rows."""

    base: Any
    constant: Any
    totals: Any
    page_index: Any
    page_value: Any


class HashedPage(NamedTuple):
    """Rows of products as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    base: Any
    totals: Any
    n_hash: Any


def n_mapped(n_columns: int) -> int:
    """Mapped columns of so many columns, and products of so many non-zeros."""
    return n_columns * (n_columns + 3) // 2


@jit
def _most_nonzeros(matrix: Any) -> Any:
    most = 0
    for i in range(matrix.shape[0]):
        n = 0
        for j in range(matrix.shape[1]):
            n += matrix[i, j] != 0
        most = max(most, n)
    return most


def _longest_row(rows: Any) -> int:
    if isinstance(rows, CsrRows):
        return int(np.diff(rows.starts).max(initial=0))
    return int(_most_nonzeros(rows.values))


def poly2_rows(rows: Any, gamma: float, r: float, n_hash: int = 0) -> Poly2Rows | HashedRows:
    """Dense or CSR rows under the map, its columns hashed to `n_hash` unless that is 0."""
    longest = _longest_row(rows)
    room, row_room = n_mapped(longest) + LANES, longest + LANES  # whole tiles are stored
    index_type = np.int64 if n_hash else np.int32
    mapped = Poly2Rows(
        base=rows,
        constant=np.float32(r * rows.constant),
        linear=np.float32(math.sqrt(2 * gamma * r)),
        square=np.float32(gamma),
        cross=np.float32(math.sqrt(2) * gamma),
        row_index=np.empty(row_room, index_type),
        row_value=np.zeros(row_room, np.float32),
        page_index=np.empty(room, index_type),
        page_value=np.empty(room, np.float32),
    )
    return hashed_rows(mapped, n_mapped(longest), n_hash) if n_hash else mapped


def hashed_rows(rows: Any, longest: int, n_hash: int) -> HashedRows:
    """Rows of at most `longest` non-zeros, columns hashed to `n_hash`, which is below 2^31."""
    return HashedRows(
        base=rows,
        constant=rows.constant,
        totals=np.zeros(n_hash, np.float32),
        page_index=np.empty(longest, np.int32),
        page_value=np.empty(longest, np.float32),
    )


def _poly2_page(rows: Any) -> Any:
    return Poly2Page(
        span(rows.page_index),
        span(rows.page_value),
        rows.constant,
        page_of(rows.base),
        rows.linear,
        rows.square,
        rows.cross,
        span(rows.row_index),
        span(rows.row_value),
    )


def _hashed_page(rows: Any) -> Any:
    return HashedPage(
        span(rows.page_index),
        span(rows.page_value),
        rows.constant,
        page_of(rows.base),
        span(rows.totals),
        rows.totals.size,
    )


@inlined
def _copy_base_row(page: Any, i: Any, later: Any) -> Any:
    """Row i of the base, where whole tiles of it may be read; return its number of non-zeros."""
    a, b, ahead = open_row(page.base, i, later)
    for k in range(b - a):
        prefetch(page.base.index, a + k + ahead)
        prefetch(page.base.value, a + k + ahead)
        put(page.row_index, k, at(page.base.index, a + k))
        put(page.row_value, k, value_at(page.base, a + k))
    return b - a


def _poly2_open(page: Any, i: Any, later: Any) -> Any:
    n = 0
    for k in range(_copy_base_row(page, i, later)):
        j, x = np.int64(at(page.row_index, k)), at(page.row_value, k)
        start = j * (j + 3) // 2
        put(page.index, n, start)
        put(page.value, n, page.linear * x)
        n += 1
        factor = splat(page.cross * x)
        for o in range(0, k, LANES):
            store(page.value, n + o, multiply(factor, load(page.row_value, o)))
        for o in range(k):
            put(page.index, n + o, start + 1 + at(page.row_index, o))
        n += k
        put(page.index, n, start + 1 + j)
        put(page.value, n, page.square * x * x)
        n += 1
    return 0, n, 0


# Numba's own product tells LLVM that it never overflows
wrapping_product = primitive(
    types.int64, (types.int64, types.int64), lambda b, m, n: b.mul(m, n), lambda m, n: m * n
)


@inlined
def _mixed(column: Any) -> Any:
    """63 bits, each of which depends on every bit of the column."""
    bits = wrapping_product(int(column) + 1, STEP) & BITS_63
    bits = wrapping_product(bits ^ (bits >> 30), FIRST_FACTOR) & BITS_63
    bits = wrapping_product(bits ^ (bits >> 27), SECOND_FACTOR) & BITS_63
    return bits ^ (bits >> 31)


@inlined
def hashed_column(column: Any, n_hash: Any) -> Any:
    """Where a column goes among `n_hash`, and with which sign."""
    bits = _mixed(column)
    return (bits >> 31) * n_hash >> 32, np.float32(1 - 2 * (bits & 1))


@jit
def _unhash(sums: Any, n_hash: Any, out: Any) -> None:
    for column in range(out.shape[0] - 1):
        place, sign = hashed_column(column, n_hash)
        for lane in range(sums.shape[1]):
            out[column + 1, lane] = sign * sums[place + 1, lane]


def unhashed(sums: Any, n_columns: int, n_hash: int) -> Any:
    """Planes of hashed columns as they are for so many columns before the hash."""
    out = aligned_zeros(n_columns + 1, sums.shape[1])
    out[0] = sums[0]
    _unhash(sums, n_hash, out)
    return out


def _hashed_open(page: Any, i: Any, later: Any) -> Any:
    a, b, _ = open_row(page.base, i, later)
    for j in range(a, b):
        column, sign = hashed_column(at(page.base.index, j), page.n_hash)
        put(page.index, j - a, np.int32(column))
        put(page.totals, column, at(page.totals, column) + sign * value_at(page.base, j))
    n = 0
    for j in range(b - a):
        column = at(page.index, j)
        x = at(page.totals, column)
        put(page.index, n, column)
        put(page.value, n, x)
        n += x != 0
        put(page.totals, column, np.float32(0))  # found by the next entry of the column, too
    return 0, n, 0


def _count_base(rows: Any) -> int:
    return count_rows(rows.base)


def _poly2_with_own_page(rows: Poly2Rows) -> Rows:
    return rows._replace(
        base=with_own_page(rows.base),
        row_index=np.empty_like(rows.row_index),
        row_value=np.zeros_like(rows.row_value),
        page_index=np.empty_like(rows.page_index),
        page_value=np.empty_like(rows.page_value),
    )


def _hashed_with_own_page(rows: HashedRows) -> Rows:
    return hashed_rows(with_own_page(rows.base), rows.page_index.size, rows.totals.size)


register_rows(
    Poly2Rows,
    Poly2Page,
    page_of=_poly2_page,
    open_row=_poly2_open,
    count_rows=_count_base,
    with_own_page=_poly2_with_own_page,
)
register_rows(
    HashedRows,
    HashedPage,
    page_of=_hashed_page,
    open_row=_hashed_open,
    count_rows=_count_base,
    with_own_page=_hashed_with_own_page,
)
