"""Rows with a few more columns, each a direction through the ranks of others.

Ranks       rank(x) of a column with knots runs in straight lines through the points (knots, ranks),
            and is level beyond.
Directions  column n_columns + d of a row is the sum over the columns with knots of
            rank(x) * weights[., d]: where columns say more together than alone, such as length,
            width and depth of a thing, a map of columns can then follow curves along these sums.
Limits      values are finite, and rows are not wider than the turn. All arithmetic is in float32,
            one chain of sums by column.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined
from polyplane.engine.rows.mapped import (
    InnerKnots,
    find_knots,
    inner_knots,
    rank_of,
)
from polyplane.engine.rows.storage import (
    DenseRows,
    Rows,
    count_rows,
    dense_rows,
    open_row,
    page_of,
    register_rows,
    value_at,
    with_own_page,
)
from polyplane.engine.tiles import LANES, at, fma, load, prefetch, put, span, splat, store

__all__ = ["Turn", "TurnedRows", "n_directions", "turned_rows"]


class Turn(NamedTuple):
    """Directions through the ranks of columns."""

    knot_starts: Any  # [column + 1] int32: where the knots of each column begin, and their end
    knots: Any  # float32: of each column none, or two or more, increasing
    ranks: Any  # float32: of each knot, non-decreasing within a column
    weights: Any  # [column with knots, direction] float32


class TurnedRows(NamedTuple):
    """Rows, their turn, and room for one row."""

    base: Any
    constant: Any
    table: Turn
    tiles: Any  # [column with knots, lane] float32: the weights, filled up with zeros
    inner: Any
    rank: Any  # [column with knots] float32
    linear: Any  # one dense row with its directions, and the page to which it is packed


class TurnedPage(NamedTuple):
    """Turned rows as spans, for use inside a loop."""

    index: Any
    value: Any
    constant: Any
    base: Any
    table: Any
    tiles: Any
    n_lanes: Any
    inner: Any
    n_ranked: Any
    rank: Any
    row_value: Any
    linear: Any


def n_directions(turn: Turn | None) -> int:
    """Return the number of columns that a turn adds."""
    return 0 if turn is None else int(turn.weights.shape[1])


def turned_rows(rows: Any, turn: Turn) -> TurnedRows:
    """Dense or CSR rows, with their directions behind their columns."""
    tiles = np.zeros((len(turn.weights), -(-n_directions(turn) // LANES) * LANES), np.float32)
    tiles[:, : n_directions(turn)] = turn.weights
    inner = inner_knots(turn.knot_starts, turn.knots)
    return TurnedRows(rows, rows.constant, turn, tiles, inner, *_scratch(turn, tiles))


def _scratch(turn: Turn, tiles: Any) -> tuple[Any, DenseRows]:
    """Room for ranks, and for a row; zeros that fill up a tile are left out with all others."""
    row = np.zeros((1, turn.knot_starts.size - 1 + tiles.shape[1]), np.float32)
    return np.empty(len(tiles), np.float32), dense_rows(row, 0.0)._replace(values=row)


def _turned_page(rows: Any) -> Any:
    table, inner = rows.table, rows.inner
    return TurnedPage(
        span(rows.linear.page_index),
        span(rows.linear.page_value),
        rows.constant,
        page_of(rows.base),
        Turn(span(table.knot_starts), span(table.knots), span(table.ranks), span(table.weights)),
        span(rows.tiles),
        rows.tiles.shape[1],
        InnerKnots(span(inner.columns), span(inner.starts), span(inner.knots)),
        inner.columns.size,
        span(rows.rank),
        span(rows.linear.values),
        page_of(rows.linear),
    )


@inlined
def _spread_row(page: Any, i: Any, later: Any) -> Any:
    """Row i of the base with its zeros.

    `spread_base_row` cannot be called here: maps call it on turned rows, and a compiled function
    that is reached from itself, if only for other types, is not linked.
    """
    a, b, ahead = open_row(page.base, i, later)
    for j in range(page.linear.width):
        put(page.row_value, j, np.float32(0))
    for k in range(a, b):
        prefetch(page.base.value, k + ahead)
        put(page.row_value, at(page.base.index, k), value_at(page.base, k))


@inlined
def _put_directions(page: Any) -> Any:
    """Behind the columns of the row, a tile of directions at a time."""
    first = page.linear.width - page.n_lanes
    for o in range(0, page.n_lanes, LANES):
        sums = splat(np.float32(0))
        for k in range(page.n_ranked):
            sums = fma(sums, at(page.rank, k), load(page.tiles, k * page.n_lanes + o))
        store(page.row_value, first + o, sums)


def _turned_open(page: Any, i: Any, later: Any) -> Any:
    _spread_row(page, i, later)
    find_knots(page)
    for k in range(page.n_ranked):
        x = at(page.row_value, at(page.inner.columns, k))
        put(page.rank, k, rank_of(page.table, at(page.index, k), x))
    _put_directions(page)
    return open_row(page.linear, 0, 0)


def _count_base(rows: TurnedRows) -> int:
    return count_rows(rows.base)


def _turned_with_own_page(rows: TurnedRows) -> Rows:
    rank, linear = _scratch(rows.table, rows.tiles)
    return rows._replace(base=with_own_page(rows.base), rank=rank, linear=linear)


register_rows(
    TurnedRows,
    TurnedPage,
    page_of=_turned_page,
    open_row=_turned_open,
    count_rows=_count_base,
    with_own_page=_turned_with_own_page,
)
