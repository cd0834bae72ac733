"""Rows whose columns are spread over functions of several resolutions when a row is opened.

Map      column j of X, with the value x, gives
         one linear feature, j: (x - shift) * factor, where x is cut to the range of its knots;
         on each level where it has hats, a place p(x), which runs in straight lines through the
         points (knots, places of the level) and is level beyond. With one hat the feature is
         height * p; with n hats and p between the whole numbers i and i + 1, hat i is
         height * (i + 1 - p), hat i + 1 is height * (p - i), and all others are 0.
Folding  all of these are straight between two knots: what a plane makes of a column is one
         piecewise linear function, known from its values at the knots. Finished planes are those
         values, and `mapped.py` is the map that they need (`model/input/column_maps.py` folds).
Zeros    an entry that is not stored is x = 0, mapped like any other; zeros that come out are left
         out, so that a factor of 0 gives no linear feature.
Pages    the linear features, then the levels, each by column of X. All arithmetic is in float32.
Limits   values are finite, and rows are not wider than the table: hats come after its columns.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined
from polyplane.engine.rows.mapped import (
    InnerKnots,
    find_knots,
    inner_knots,
    put_entry,
    put_linear,
    spread_base_row,
)
from polyplane.engine.rows.storage import (
    DenseRows,
    Rows,
    count_rows,
    page_of,
    register_rows,
    with_own_page,
)
from polyplane.engine.tiles import LANES, at, put, span

__all__ = ["LevelTable", "LeveledRows", "leveled_rows"]


class LevelTable(NamedTuple):
    """Map of each column of X, at several resolutions."""

    shifts: Any  # [column] float32
    factors: Any  # [column] float32
    knot_starts: Any  # [column + 1] int32: where the knots of each column begin, and their end
    knots: Any  # float32: of each column none, or two or more, increasing
    places: Any  # [level, knot] float32, increasing within a column
    n_hats: Any  # [level, column] int32: 0, or as many as the last place plus 1; 1 is p itself
    first_hat: Any  # [level, column] int32: feature of its first hat
    heights: Any  # [level, column] float32


class LeveledRows(NamedTuple):
    """Rows, their map, and room for one row before and after it."""

    base: Any
    constant: Any
    table: Any
    inner: Any
    row_value: Any
    knot: Any  # [k] int32: where the line of the value of a column with knots begins
    share: Any  # [k] float32: how far along the line the value is
    linear: Any  # one dense row, the linear features, with the page to which it is packed


class LeveledPage(NamedTuple):
    """Leveled rows as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    base: Any
    table: Any
    inner: Any
    n_ranked: Any
    n_levels: Any
    n_knots: Any
    row_value: Any
    knot: Any
    share: Any
    linear: Any


def leveled_rows(rows: Any, table: LevelTable) -> LeveledRows:
    """Dense or CSR rows under the map."""
    inner = inner_knots(table.knot_starts, table.knots)
    return LeveledRows(rows, rows.constant, table, inner, *_scratch(table, inner))


def _scratch(table: LevelTable, inner: InnerKnots) -> tuple[Any, Any, Any, DenseRows]:
    n_columns, n_ranked = table.shifts.size, inner.columns.size
    room = n_columns + 2 * len(table.n_hats) * n_ranked + n_ranked + LANES  # whole tiles are stored
    page = np.empty(room, np.int32), np.empty(room, np.float32)
    linear = DenseRows(np.empty((1, n_columns), np.float32), np.float32(0), *page)
    row_value = np.empty(n_columns, np.float32)
    return row_value, np.empty(n_ranked, np.int32), np.empty(n_ranked, np.float32), linear


def _leveled_page(rows: Any) -> Any:
    table, inner = rows.table, rows.inner
    return LeveledPage(
        span(rows.linear.page_index),
        span(rows.linear.page_value),
        rows.constant,
        page_of(rows.base),
        LevelTable(
            span(table.shifts),
            span(table.factors),
            span(table.knot_starts),
            span(table.knots),
            span(table.places),
            span(table.n_hats),
            span(table.first_hat),
            span(table.heights),
        ),
        InnerKnots(span(inner.columns), span(inner.starts), span(inner.knots)),
        inner.columns.size,
        table.n_hats.shape[0],
        table.knots.size,
        span(rows.row_value),
        span(rows.knot),
        span(rows.share),
        page_of(rows.linear),
    )


@inlined
def _find_shares(page: Any) -> Any:
    """Where values lie between their knots; values beyond all knots are cut."""
    find_knots(page)
    knots = page.table.knots
    for k in range(page.n_ranked):
        j, knot = at(page.inner.columns, k), at(page.index, k)
        x, left = at(page.row_value, j), at(knots, knot)
        share = (x - left) / (at(knots, knot + 1) - left)
        put(page.knot, k, knot)
        put(page.share, k, min(max(share, np.float32(0)), np.float32(1)))
        start, end = at(page.table.knot_starts, j), at(page.table.knot_starts, j + 1)
        put(page.row_value, j, min(max(x, at(knots, start)), at(knots, end - 1)))


@inlined
def _put_level(page: Any, level: Any, n: Any) -> Any:
    """After n entries, the hats of a level; return how many there are."""
    table = page.table
    for k in range(page.n_ranked):
        column = level * page.linear.width + at(page.inner.columns, k)
        n_hats, height = at(table.n_hats, column), at(table.heights, column)
        if n_hats > 0:
            knot = level * page.n_knots + at(page.knot, k)
            left = at(table.places, knot)
            place = left + at(page.share, k) * (at(table.places, knot + 1) - left)
            hat = at(table.first_hat, column)
            if n_hats == 1:
                n = put_entry(page, n, hat, height * place)
            else:
                i = min(int(place), n_hats - 2)
                share = place - np.float32(i)
                n = put_entry(page, n, hat + i, height * (np.float32(1) - share))
                n = put_entry(page, n, hat + i + 1, height * share)
    return n


def _leveled_open(page: Any, i: Any, later: Any) -> Any:
    spread_base_row(page, i, later)
    _find_shares(page)
    n = put_linear(page)
    for level in range(page.n_levels):
        n = _put_level(page, level, n)
    return 0, n, 0


def _count_base(rows: LeveledRows) -> int:
    return count_rows(rows.base)


def _with_own_page(rows: LeveledRows) -> Rows:
    row_value, knot, share, linear = _scratch(rows.table, rows.inner)
    return rows._replace(
        base=with_own_page(rows.base), row_value=row_value, knot=knot, share=share, linear=linear
    )


register_rows(
    LeveledRows,
    LeveledPage,
    page_of=_leveled_page,
    open_row=_leveled_open,
    count_rows=_count_base,
    with_own_page=_with_own_page,
)
