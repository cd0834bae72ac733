"""Rows in three storages behind one set of words, so that a loop is written once.

`DenseRows` holds float32, float64 or uint8 (bytes stay bytes: they become floats in registers),
`CsrRows` any float values with int32 or int64 columns. Both carry `constant`, the value of a
feature that every row has besides its own (1 with an intercept, 0 without): it is feature 0 of
the planes, and column j of X is feature j + 1, so that new columns only append.

A loop calls `page_of` once and `open_row` for each row: the row is then `page.index[a:b]`,
`page.value[a:b]`, its non-zeros in increasing column order. A dense row is packed into the page,
a CSR row is read where it lies. All arithmetic below works on an opened row, which is why
storage cannot change a result. `register_rows` teaches the words another kind of rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from polyplane.engine.jit import chosen_by_type, inlined, jit
from polyplane.engine.order import in_place
from polyplane.engine.tiles import (
    LANES,
    add,
    at,
    fma,
    full_mask,
    horizontal_sum,
    load,
    lowest_bit,
    multiply,
    nonzero_mask,
    prefetch,
    put,
    span,
    splat,
    store,
    store_features,
)

__all__ = [
    "CsrRows",
    "DenseRows",
    "Rows",
    "add_to_pair",
    "add_to_tile",
    "count_rows",
    "csr_rows",
    "csr_rows_of",
    "dense_rows",
    "is_map_of_maps",
    "length_of_row",
    "matrix_of",
    "open_row",
    "packed",
    "page_of",
    "products",
    "register_rows",
    "score_planes",
    "squared_norm",
    "with_own_page",
    "written_in_parts",
]


ENTRIES_OF_ROW = 32  # room for as many, at first
WRITTEN_AT_ONCE = 2_048  # rows: their entries stay near the processor


class DenseRows(NamedTuple):
    """C-contiguous matrix of float32, float64 or uint8, and the page to which rows are packed."""

    values: Any
    constant: Any
    page_index: Any
    page_value: Any


class CsrRows(NamedTuple):
    """Compressed sparse rows, columns increasing within a row."""

    values: Any
    columns: Any
    starts: Any
    constant: Any


class Rows(Protocol):
    """Rows of any kind."""

    @property
    def constant(self) -> Any:
        """Value of feature 0 in every row."""


class DensePage(NamedTuple):
    """Dense rows as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    matrix: Any
    width: Any


class CsrPage(NamedTuple):
    """CSR rows as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    starts: Any


def dense_rows(values: Any, constant: float) -> DenseRows:
    """Rows of a matrix, with a page of their own: one loop at a time may use them."""
    room = values.shape[1] + LANES  # whole tiles are stored
    page = np.empty(room, np.int32), np.empty(room, np.float32)
    return DenseRows(_only_read(values), np.float32(constant), *page)


def csr_rows(matrix: Any, constant: float) -> CsrRows:
    """Rows of a canonical scipy CSR matrix or array."""
    return csr_rows_of(matrix.data, matrix.indices, matrix.indptr, constant)


def csr_rows_of(values: Any, columns: Any, starts: Any, constant: float) -> CsrRows:
    """CSR rows of these parts; starts of one width, so that loops are compiled for no other."""
    wide = starts.astype(np.int64, copy=False)
    return CsrRows(_only_read(values), _only_read(columns), _only_read(wide), np.float32(constant))


def _only_read(array: Any) -> Any:
    """Return a view of the same memory that cannot be written to.

    Numba tells arrays by that: of rows that users may or may not write to each loop would be
    compiled twice.
    """
    if not array.flags.writeable:
        return array
    seen = array.view()
    seen.flags.writeable = False
    return seen


def _dense_page(rows: Any) -> Any:
    return DensePage(
        span(rows.page_index),
        span(rows.page_value),
        rows.constant,
        span(rows.values),
        rows.values.shape[1],
    )


def _csr_page(rows: Any) -> Any:
    return CsrPage(span(rows.columns), span(rows.values), rows.constant, span(rows.starts))


def _dense_open(page: Any, i: Any, later: Any) -> Any:
    base = i * page.width
    ahead = (later - i) * page.width
    whole = page.width // LANES * LANES
    n = 0
    for f in range(0, whole, LANES):
        prefetch(page.matrix, base + f + ahead)
        bits = nonzero_mask(page.matrix, base + f)
        if bits == full_mask:
            store(page.value, n, load(page.matrix, base + f))
            store_features(page.index, n, f)
            n += LANES
        else:
            while bits != 0:
                lane = f + lowest_bit(bits)
                put(page.index, n, np.int32(lane))
                put(page.value, n, np.float32(at(page.matrix, base + lane)))
                n += 1
                bits &= bits - 1
    for f in range(whole, page.width):
        x = np.float32(at(page.matrix, base + f))
        if x != 0:
            put(page.index, n, np.int32(f))
            put(page.value, n, x)
            n += 1
    return 0, n, 0


def _csr_open(page: Any, i: Any, later: Any) -> Any:
    a, b = np.int64(at(page.starts, i)), np.int64(at(page.starts, i + 1))
    return a, b, np.int64(at(page.starts, later)) - a


_BODIES: dict[str, dict[type, Any]] = {
    "page_of": {DenseRows: _dense_page, CsrRows: _csr_page},
    "open_row": {DensePage: _dense_open, CsrPage: _csr_open},
    "count_rows": {
        DenseRows: lambda rows: len(rows.values),
        CsrRows: lambda rows: len(rows.starts) - 1,
    },
    "with_own_page": {
        DenseRows: lambda rows: dense_rows(rows.values, rows.constant),
        CsrRows: lambda rows: rows,
    },
}


def register_rows(kind: type, page_kind: type, **bodies: Any) -> None:
    """Another kind of rows: a body for each of the four words, by its name."""
    for word, body in bodies.items():
        _BODIES[word][page_kind if word == "open_row" else kind] = body


def count_rows(rows: Rows) -> int:
    """Return the number of rows."""
    n_rows: int = _BODIES["count_rows"][type(rows)](rows)
    return n_rows


def with_own_page(rows: Rows) -> Any:
    """Return the same rows with a page of their own, for another thread."""
    return _BODIES["with_own_page"][type(rows)](rows)


def page_of(rows: Any) -> Any:
    """The page on which rows are opened; taken once per loop."""
    return _BODIES["page_of"][type(rows)](rows)


def open_row(page: Any, i: Any, later: Any) -> Any:
    """Bring row i to the page: return a, b, ahead; it is `page.index[a:b]`, `page.value[a:b]`.

    Row `later` is wanted soon. In random order that would mean waiting for memory, so it is asked
    for along the way, a line at a time: dense rows here, CSR rows `ahead` of the scored elements.
    Asked for all at once, the lines would keep those of the planes waiting.
    """
    return _BODIES["open_row"][type(page)](page, i, later)


for _word in (page_of, open_row):
    chosen_by_type(_word, _BODIES[_word.__name__])


@inlined
def value_at(page: Any, j: Any) -> Any:
    """Value number j of the page, as the planes see it."""
    return np.float32(at(page.value, j))


@inlined
def _score_tile(page: Any, a: Any, b: Any, ahead: Any, planes: Any, o: Any) -> Any:
    """Sixteen scores: four chains hide the latency of the sums, always in the same order."""
    sums, stride = planes.sums, planes.stride
    base = stride + o  # feature 0 is the constant
    s0 = fma(load(planes.idle, o), page.constant, load(sums, o))
    s1 = s2 = s3 = splat(np.float32(0))
    j = a
    while j + 4 <= b:
        prefetch(page.index, j + ahead)
        prefetch(page.value, j + ahead)
        s0 = fma(s0, value_at(page, j), load(sums, at(page.index, j) * stride + base))
        s1 = fma(s1, value_at(page, j + 1), load(sums, at(page.index, j + 1) * stride + base))
        s2 = fma(s2, value_at(page, j + 2), load(sums, at(page.index, j + 2) * stride + base))
        s3 = fma(s3, value_at(page, j + 3), load(sums, at(page.index, j + 3) * stride + base))
        j += 4
    while j < b:
        s0 = fma(s0, value_at(page, j), load(sums, at(page.index, j) * stride + base))
        j += 1
    store(planes.scores, o, add(add(s0, s1), add(s2, s3)))


@inlined
def _score_two_tiles(page: Any, a: Any, b: Any, ahead: Any, planes: Any, o: Any) -> Any:
    """Score two tiles at one reading of the row, about a tenth faster."""
    sums, stride = planes.sums, planes.stride
    base, p = stride + o, o + LANES
    s0 = fma(load(planes.idle, o), page.constant, load(sums, o))
    r0 = fma(load(planes.idle, p), page.constant, load(sums, p))
    s1 = s2 = s3 = r1 = r2 = r3 = splat(np.float32(0))
    j = a
    while j + 4 <= b:
        prefetch(page.index, j + ahead)
        prefetch(page.value, j + ahead)
        x, k = value_at(page, j), at(page.index, j) * stride + base
        s0, r0 = fma(s0, x, load(sums, k)), fma(r0, x, load(sums, k + LANES))
        x, k = value_at(page, j + 1), at(page.index, j + 1) * stride + base
        s1, r1 = fma(s1, x, load(sums, k)), fma(r1, x, load(sums, k + LANES))
        x, k = value_at(page, j + 2), at(page.index, j + 2) * stride + base
        s2, r2 = fma(s2, x, load(sums, k)), fma(r2, x, load(sums, k + LANES))
        x, k = value_at(page, j + 3), at(page.index, j + 3) * stride + base
        s3, r3 = fma(s3, x, load(sums, k)), fma(r3, x, load(sums, k + LANES))
        j += 4
    while j < b:
        x, k = value_at(page, j), at(page.index, j) * stride + base
        s0, r0 = fma(s0, x, load(sums, k)), fma(r0, x, load(sums, k + LANES))
        j += 1
    store(planes.scores, o, add(add(s0, s1), add(s2, s3)))
    store(planes.scores, p, add(add(r0, r1), add(r2, r3)))


@inlined
def score_planes(page: Any, a: Any, b: Any, ahead: Any, planes: Any, n_tiles: Any) -> Any:
    """`planes.scores[k]` = plane k times the opened row, minus infinity where lane k is idle."""
    o, end = np.int64(0), n_tiles * LANES  # 0 alone would be one more type to compile for
    while o + LANES < end:
        _score_two_tiles(page, a, b, ahead, planes, o)
        o += 2 * LANES
    if o < end:
        _score_tile(page, a, b, ahead, planes, o)


@inlined
def add_to_pair(
    page: Any, a: Any, b: Any, sums: Any, stride: Any, plus: Any, minus: Any, factor: Any
) -> Any:
    """Add `factor` times the opened row to plane `plus`, take it from `minus` unless negative."""
    put(sums, plus, at(sums, plus) + factor * page.constant)
    if minus >= 0:
        put(sums, minus, at(sums, minus) - factor * page.constant)
    for j in range(a, b):
        k = (at(page.index, j) + 1) * stride
        change = factor * value_at(page, j)
        put(sums, k + plus, at(sums, k + plus) + change)
        if minus >= 0:
            put(sums, k + minus, at(sums, k + minus) - change)


@inlined
def add_to_tile(page: Any, a: Any, b: Any, sums: Any, stride: Any, o: Any, factors: Any) -> Any:
    """Add the opened row to the planes of the tile at lane o, each times its lane of `factors`."""
    store(sums, o, fma(load(sums, o), page.constant, factors))
    for j in range(a, b):
        k = (at(page.index, j) + 1) * stride + o
        store(sums, k, fma(load(sums, k), value_at(page, j), factors))


@inlined
def squared_norm(page: Any, a: Any, b: Any) -> Any:
    """The opened row times itself."""
    whole = splat(np.float32(0))
    j = a
    while j + LANES <= b:
        tile = load(page.value, j)
        whole = add(whole, multiply(tile, tile))
        j += LANES
    rest = page.constant * page.constant
    while j < b:
        rest += value_at(page, j) * value_at(page, j)
        j += 1
    return horizontal_sum(whole) + rest


@jit
def length_of_row(rows: Any, i: Any) -> Any:
    """Euclidean length of row i, with its constant."""
    page = page_of(rows)
    a, b, _ = open_row(page, i, i)
    return np.sqrt(squared_norm(page, a, b))


@jit
def _write_down(rows: Any, order: Any, k: Any, starts: Any, columns: Any, values: Any) -> Any:
    """Write out rows from entry k of `order` on; return up to where there was room."""
    page = page_of(rows)
    while k < order.size:
        a, b, _ = open_row(page, order[k], order[k])
        if starts[k] + b - a > columns.size:
            return k
        for j in range(b - a):
            columns[starts[k] + j] = at(page.index, a + j)
            values[starts[k] + j] = value_at(page, a + j)
        starts[k + 1] = starts[k] + b - a
        k += 1
    return k


def _with_room(part: Any, used: Any, size: int) -> Any:
    """A longer array that begins with what is used of this one."""
    longer = np.empty(size, part.dtype)
    longer[:used] = part[:used]
    return longer


def packed(rows: Rows, order: Any) -> CsrRows:
    """The rows of `order` as a loop sees them, written out: the same entries in the same order."""
    if is_map_of_maps(rows):
        rows, order = rows._replace(base=packed(rows.base, order)), in_place(order.size)  # type: ignore[attr-defined]
    order = order.astype(np.int64, copy=False)  # of one type: each loop is compiled once
    starts, k = np.zeros(order.size + 1, np.int64), np.int64(0)
    room = ENTRIES_OF_ROW * order.size
    if isinstance(rows, CsrRows):
        room = int((rows.starts[order + 1] - rows.starts[order]).sum())
    columns, values = np.empty(room, np.int32), np.empty(room, np.float32)
    while (k := _write_down(rows, order, k, starts, columns, values)) < order.size:
        more, used = 2 * columns.size + ENTRIES_OF_ROW, starts[k]
        columns, values = (_with_room(part, used, more) for part in (columns, values))
    if starts[-1] < columns.size:
        columns, values = columns[: starts[-1]].copy(), values[: starts[-1]].copy()
    return csr_rows_of(columns=columns, values=values, starts=starts, constant=rows.constant)


def is_map_of_maps(rows: Any) -> bool:
    """Return True if rows are made of others that are themselves made of others."""
    return hasattr(getattr(rows, "base", None), "base")


def written_in_parts(rows: Any, order: Any) -> Iterator[tuple[slice, CsrRows, Any]]:
    """The rows of `order`, written out: parts of it, their rows, and these in their order."""
    for start in range(0, max(1, order.size), WRITTEN_AT_ONCE):
        part = slice(start, min(order.size, start + WRITTEN_AT_ONCE))
        yield part, packed(rows, order[part]), in_place(part.stop - start)


def matrix_of(rows: Any, n_columns: int) -> sp.csr_matrix:
    """CSR rows as scipy knows them; scikit-learn refuses what it cannot write to."""
    entries = (np.require(part, requirements="W") for part in rows[:3])
    return sp.csr_matrix(tuple(entries), shape=(len(rows.starts) - 1, n_columns))


def products(rows: Rows, order: Any, planes: Any) -> Any:
    """The rows of `order` times planes by feature, feature 0 being the constant, for few rows."""
    some = packed(rows, order)
    return matrix_of(some, len(planes) - 1) @ planes[1:] + some.constant * planes[0]
