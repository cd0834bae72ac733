"""Rows whose columns are mapped when a row is opened, so that a classifier can scale them itself.

Map      column j of X, with the value x, gives
         one linear feature, j: (v - shift) * factor, where v is x, or rank(x) if there are knots;
         n_hats hat features, from first_hat on: where p = rank(x) * (n_hats - 1) lies between the
         whole numbers i and i + 1, hat i is height * (i + 1 - p), hat i + 1 is height * (p - i),
         and all others are 0.
Ranks    rank(x) runs in straight lines through the points (knots, ranks), and is level beyond.
Zeros    an entry that is not stored is x = 0, mapped like any other; zeros that come out are left
         out, so that a factor of 0 gives no linear feature.
Pages    first the linear features, then the hats, both by column of X: in increasing order if
         later columns have later hats. All arithmetic is in float32.
Limits   values are finite, and rows are not wider than the table: hats come after its columns.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined
from polyplane.engine.rows.storage import (
    DenseRows,
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
    add,
    at,
    horizontal_sum,
    is_above,
    load,
    prefetch,
    put,
    span,
    splat,
)

__all__ = [
    "ColumnTable",
    "InnerKnots",
    "MappedRows",
    "find_knots",
    "inner_knots",
    "mapped_rows",
    "put_entry",
    "put_linear",
    "rank_of",
    "spread_base_row",
]


class ColumnTable(NamedTuple):
    """Map of each column of X."""

    shifts: Any  # [column] float32
    factors: Any  # [column] float32
    knot_starts: Any  # [column + 1] int32: where the knots of each column begin, and their end
    knots: Any  # float32: of each column none, or two or more, increasing
    ranks: Any  # float32: of each knot, non-decreasing within a column, from 0 to 1
    n_hats: Any  # [column] int32: 0, or two or more if the column has knots
    first_hat: Any  # [column] int32: feature of its first hat, not below the number of columns
    height: Any  # float32: of all hats


class InnerKnots(NamedTuple):
    """Knots but the first and last of a column, in whole tiles, which infinities fill up."""

    columns: Any  # [k] int32: those with knots
    starts: Any  # [k + 1] int32
    knots: Any  # float32


class MappedRows(NamedTuple):
    """Rows, their map, and room for one row before and after it."""

    base: Any
    constant: Any
    table: Any
    inner: Any
    row_value: Any
    linear: Any  # one dense row, the linear features, with the page to which it is packed


class MappedPage(NamedTuple):
    """Mapped rows as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    base: Any
    table: Any
    inner: Any
    n_ranked: Any
    row_value: Any
    linear: Any


def mapped_rows(rows: Any, table: ColumnTable) -> MappedRows:
    """Dense or CSR rows under the map."""
    scratch = _scratch(table.shifts.size)
    return MappedRows(
        rows, rows.constant, table, inner_knots(table.knot_starts, table.knots), *scratch
    )


def inner_knots(knot_starts: Any, all_knots: Any) -> InnerKnots:
    """The knots between the first and the last of each column."""
    n_knots = np.diff(knot_starts)
    columns = np.flatnonzero(n_knots).astype(np.int32)
    n_tiles = -(-(n_knots[columns] - 2) // LANES)
    starts = np.append(0, n_tiles.cumsum() * LANES).astype(np.int32)
    owner = np.repeat(np.arange(columns.size), n_knots[columns])
    place = np.arange(owner.size) - knot_starts[columns][owner]
    is_inner = (place > 0) & (place < n_knots[columns][owner] - 1)
    knots = np.full(starts[-1], np.inf, np.float32)
    knots[(starts[owner] + place - 1)[is_inner]] = all_knots[is_inner]
    return InnerKnots(columns, starts, knots)


def _scratch(n_columns: int) -> tuple[Any, DenseRows]:
    """Room for a row before the map, and for its linear features and the page."""
    room = 3 * n_columns + LANES  # a linear feature and two hats a column; whole tiles are stored
    page = np.empty(room, np.int32), np.empty(room, np.float32)
    linear = DenseRows(np.empty((1, n_columns), np.float32), np.float32(0), *page)
    return np.empty(n_columns, np.float32), linear


def _mapped_page(rows: Any) -> Any:
    table, inner = rows.table, rows.inner
    return MappedPage(
        span(rows.linear.page_index),
        span(rows.linear.page_value),
        rows.constant,
        page_of(rows.base),
        ColumnTable(
            span(table.shifts),
            span(table.factors),
            span(table.knot_starts),
            span(table.knots),
            span(table.ranks),
            span(table.n_hats),
            span(table.first_hat),
            table.height,
        ),
        InnerKnots(span(inner.columns), span(inner.starts), span(inner.knots)),
        inner.columns.size,
        span(rows.row_value),
        page_of(rows.linear),
    )


@inlined
def spread_base_row(page: Any, i: Any, later: Any) -> Any:
    """Row i of the base with its zeros."""
    a, b, ahead = open_row(page.base, i, later)
    for j in range(page.linear.width):
        put(page.row_value, j, np.float32(0))
    for k in range(a, b):
        prefetch(page.base.index, k + ahead)
        prefetch(page.base.value, k + ahead)
        put(page.row_value, at(page.base.index, k), value_at(page.base, k))


@inlined
def find_knots(page: Any) -> Any:
    """For each column with knots, at its place in the page: the knot where the line of x begins.

    Inner knots above x are counted, all of them, a tile at a time: in a search by halves every
    other branch would be guessed wrong, and 64 knots took more than five times as long.
    """
    inner = page.inner
    for k in range(page.n_ranked):
        j = at(inner.columns, k)
        x, n_above = at(page.row_value, j), splat(np.float32(0))
        start, end = np.int64(at(inner.starts, k)), np.int64(at(inner.starts, k + 1))
        o = start
        while o < end:
            n_above = add(n_above, is_above(load(inner.knots, o), x))
            o += LANES
        n_below = end - start - int(horizontal_sum(n_above))
        put(page.index, k, np.int32(at(page.table.knot_starts, j) + n_below))


@inlined
def rank_of(table: Any, knot: Any, x: Any) -> Any:
    """Value at x of the line from this knot to the next, level beyond both."""
    left, lower = at(table.knots, knot), at(table.ranks, knot)
    share = (x - left) / (at(table.knots, knot + 1) - left)
    share = min(max(share, np.float32(0)), np.float32(1))
    return lower + share * (at(table.ranks, knot + 1) - lower)


@inlined
def _rank_columns(page: Any) -> Any:
    """Ranks take the place of values in columns with knots.

    All knots are found before the first is used: one loop for both would keep more waiting.
    """
    find_knots(page)
    for k in range(page.n_ranked):
        j = at(page.inner.columns, k)
        put(page.row_value, j, rank_of(page.table, at(page.index, k), at(page.row_value, j)))


@inlined
def put_linear(page: Any) -> Any:
    """The linear features, packed like any dense row; return how many are not zero."""
    table = page.table
    for j in range(page.linear.width):
        distance = at(page.row_value, j) - at(table.shifts, j)
        put(page.linear.matrix, j, distance * at(table.factors, j))
    _, n, _ = open_row(page.linear, 0, 0)
    return n


@inlined
def put_entry(page: Any, n: Any, feature: Any, x: Any) -> Any:
    """Entry n of the page, which the next overwrites if it is zero; return how many there are."""
    put(page.index, n, np.int32(feature))
    put(page.value, n, x)
    return n + (x != 0)


@inlined
def _put_hats(page: Any, n: Any) -> Any:
    """After n entries, the two hats of each column beside its rank; return how many there are."""
    table = page.table
    for j in range(page.linear.width):
        n_gaps = at(table.n_hats, j) - 1
        if n_gaps > 0:
            place = at(page.row_value, j) * np.float32(n_gaps)
            i = min(int(place), n_gaps - 1)
            share = place - np.float32(i)
            hat = at(table.first_hat, j) + i
            n = put_entry(page, n, hat, table.height * (np.float32(1) - share))
            n = put_entry(page, n, hat + 1, table.height * share)
    return n


def _mapped_open(page: Any, i: Any, later: Any) -> Any:
    spread_base_row(page, i, later)
    _rank_columns(page)
    return 0, _put_hats(page, put_linear(page)), 0


def _count_base(rows: MappedRows) -> int:
    return count_rows(rows.base)


def _mapped_with_own_page(rows: MappedRows) -> Rows:
    row_value, linear = _scratch(rows.table.shifts.size)
    return rows._replace(base=with_own_page(rows.base), row_value=row_value, linear=linear)


register_rows(
    MappedRows,
    MappedPage,
    page_of=_mapped_page,
    open_row=_mapped_open,
    count_rows=_count_base,
    with_own_page=_mapped_with_own_page,
)
