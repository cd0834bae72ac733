"""Smallest change of one column of a row that gives the row another label.

Values    those that stand in the column in other rows, up to 64: of numbers and dates spread evenly
          over the rows, of categories the most frequent ones. Free texts stay as they are.
Size      of a change: the share of these rows that lie between the old value and the new one; of
          categories, and of values that were missing, the share that has another one than the new.
Exact     each changed row is predicted anew. Nothing is derived from contributions, which are about
          the planes that decide now; after a change others may.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from polyplane.arrays import Array
from polyplane.data.table.frames import Frame, frame_of, has_texts, is_frame
from polyplane.data.table.kinds import ASIDE, DATE, NUMERIC, TEXT, UNDECIDED, kind_of_type
from polyplane.data.table.layout import Layout
from polyplane.data.table.texts import MISSING_TEXTS
from polyplane.model.explanation import Change

__all__ = ["WhatIf"]

MOST_VALUES = 64  # of a column
MOST_ROWS = 1 << 16  # that are predicted at once
MOST_COLUMNS = 4_096  # of sparse rows, which are made dense
ORDERED = *NUMERIC, DATE
NOTHING = np.empty(0)


class WhatIf(NamedTuple):
    """A model, and rows that it has labelled."""

    predict: Callable[[Any], Array]
    layout: Layout | None  # of the tables that it takes
    X: Any
    reference: Any  # rows with values to try; None: those of X

    def smallest_changes(self, wanted: Array) -> list[Change | None]:
        """Return for each row the smallest change of one column that gives it the wanted label."""
        table = _table_of(self.X, self.layout)
        others = table if self.reference is None else _table_of(self.reference, self.layout)
        best: list[Change | None] = [None] * wanted.size
        for place, column in enumerate(table.changeable()):
            if column is None:
                continue
            if others.places[place] is None:
                continue
            values = _values_of(others.cells(others.places[place]), table.is_ordered(place))
            for rows in _parts(wanted.size, len(values.cells)):
                sizes = _sizes(table.cells(column).take(pa.array(rows)), values)
                found = self.predict(table.with_values(rows, column, values.cells))
                is_wanted = found.reshape(rows.size, -1) == wanted[rows, None]
                self._keep_smaller(
                    best, rows, np.where(is_wanted, sizes, np.inf), place, values, table
                )
        return best

    def _keep_smaller(
        self,
        best: list[Change | None],
        rows: Array,
        sizes: Array,
        place: int,
        values: "_Values",
        table: "_Table",
    ) -> None:
        choice = sizes.argmin(axis=1)
        for row, k, size in zip(rows.tolist(), choice.tolist(), sizes.min(axis=1), strict=True):
            known = best[row]
            if np.isfinite(size) and (known is None or size < known.size):
                old = table.cells(table.places[place])[row].as_py()
                old = None if old != old else old  # NaN
                new = values.cells[k].as_py()
                best[row] = Change(place, table.names[place], old, new, float(size))


# ---- rows to change ----------------------------------------------------------------------


class _Table(NamedTuple):
    """Rows by column, whatever they came as; columns in the order in which they are explained."""

    frame: Frame
    places: list[int | None]  # in the frame, of each column that is explained
    names: list[str | None]
    kinds: list[str] | None  # of the layout; None: all are numbers
    is_array: bool

    def cells(self, place: int | None) -> Any:
        """A column, as Arrow holds it."""
        assert place is not None
        return self.frame.columns[place]

    def changeable(self) -> Iterator[int | None]:
        """The place of each column that can be changed, else None."""
        for k, place in enumerate(self.places):
            is_fixed = self.kinds is not None and self.kinds[k] in (ASIDE, TEXT)
            yield None if is_fixed else place

    def is_ordered(self, k: int) -> bool:
        """Return True if values of a column that is explained can be near to each other."""
        return self.kinds is None or self.kinds[k] in ORDERED

    def with_values(self, rows: Array, place: int, values: Any) -> Any:
        """Each of the rows once with each of the values in one column."""
        repeated = pa.array(np.repeat(rows, len(values)))
        tried = values.take(pa.array(np.tile(np.arange(len(values)), rows.size)))
        columns = [
            tried if k == place else column.take(repeated)
            for k, column in enumerate(self.frame.columns)
        ]
        if self.is_array:
            return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
        return pa.table(columns, names=[str(name) for name in self.frame.names])


def _table_of(X: Any, layout: Layout | None) -> _Table:
    """Rows as they came, to be changed."""
    if layout is None:
        matrix = _dense(X)
        columns = [pa.array(np.ascontiguousarray(column)) for column in matrix.T]
        numbers = list(range(len(columns)))
        names = getattr(X, "columns", [None] * len(columns))
        return _Table(Frame(numbers, columns, len(matrix)), [*numbers], list(names), None, True)
    is_table = is_frame(X) or has_texts(X)
    if not is_table and getattr(X, "shape", ())[1:] != (len(layout.sources),):
        raise ValueError(
            "X was laid out before: give the table itself, to see what would have to change in it."
        )
    frame = frame_of(X if is_table else np.asarray(X))
    frame = frame._replace(columns=[_decoded(column) for column in frame.columns])
    sources = [source.name for source in layout.sources]
    places: list[int | None] = list(range(len(sources)))
    if layout.has_names and frame.texts is not None:
        places = [frame.names.index(name) if name in frame.names else None for name in sources]
    elif layout.has_names:
        frame = frame._replace(names=sources)
    kinds = [source.kind for source in layout.sources]
    return _Table(frame, places, [*sources], kinds, False)


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _dense(X: Any) -> Array:
    is_sparse: bool = sp.issparse(X)
    if not is_sparse:
        matrix: Array = np.asarray(X)
        return matrix.view(np.uint8) if matrix.dtype == np.bool_ else matrix
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"X has {X.shape[1]:,} sparse columns, too many to try changes of each: choose at most "
            f"{MOST_COLUMNS:,} of them before training."
        )
    return np.asarray(X.toarray())


# ---- values to try -----------------------------------------------------------------------


class _Values(NamedTuple):
    """Different values of a column, and how many rows have them."""

    cells: Any  # an Arrow array without gaps
    counts: Array
    n_rows: int
    numbers: Array | None = None  # the same, rising, where they have an order
    seen: Array = NOTHING  # all numbers, of which some are tried
    below: Array = NOTHING  # rows with a lower one, and last of all rows


def _values_of(column: Any, is_ordered: bool) -> _Values:
    """The values of a column that are tried."""
    column = column.filter(pc.is_valid(column))
    if kind_of_type(column.type) == UNDECIDED:
        trimmed = pc.utf8_trim_whitespace(column)
        column = column.filter(pc.invert(pc.is_in(trimmed, pa.array(MISSING_TEXTS, column.type))))
    counted = pc.value_counts(column)
    cells, counts = counted.field(0), counted.field(1).to_numpy(zero_copy_only=False)
    n_rows = max(1, int(counts.sum()))
    if not is_ordered or kind_of_type(column.type) not in ORDERED:
        order = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        return _Values(cells.take(pa.array(order)), counts[order], n_rows)
    numbers = _numbers(cells)
    order = np.argsort(numbers, kind="stable")
    order = order[np.isfinite(numbers[order])]
    seen, below = numbers[order], np.append(0, np.cumsum(counts[order]))
    if order.size > MOST_VALUES:
        evenly = np.linspace(0, below[-1] - 1, MOST_VALUES)
        order = order[np.unique(np.searchsorted(below, evenly, side="right") - 1)]
    kept = cells.take(pa.array(order))
    return _Values(kept, counts[order], n_rows, numbers[order], seen, below)


def _numbers(cells: Any) -> Array:
    """Numbers, dates and durations as numbers with the same order, NaN where there is none."""
    plain = cells
    if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
        if pa.types.is_boolean(cells.type):
            plain = pc.cast(cells, pa.uint8())
        elif pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type):
            plain = pc.cast(cells, pa.int32())
        elif not pa.types.is_decimal(cells.type):
            plain = pc.cast(cells, pa.int64())
    wide = pc.cast(plain, pa.float64(), safe=False)
    numbers: Array = wide.to_numpy(zero_copy_only=False)
    return numbers


def _sizes(old: Any, values: _Values) -> Array:
    """Rows by values: how large each change is; a value that is there already is no change."""
    others = 1 - values.counts / values.n_rows
    sizes = np.tile(others, (len(old), 1))
    if values.numbers is None:
        same = pc.index_in(old, value_set=values.cells).to_numpy(zero_copy_only=False)
        is_same = np.arange(len(values.cells)) == same[:, None]
        return np.where(is_same, np.inf, sizes)
    numbers = _numbers(old)[:, None]
    at, new = (
        values.below[np.searchsorted(values.seen, some)] for some in (numbers, values.numbers)
    )
    between = np.abs(new - at) / values.n_rows
    sizes = np.where(np.isnan(numbers), sizes, between)
    return np.where(numbers == values.numbers, np.inf, sizes)


def _parts(n_rows: int, n_values: int) -> Iterator[Array]:
    """Some rows after the other, so that not too many are predicted at once."""
    step = max(1, MOST_ROWS // max(1, n_values))
    for first in range(0, n_rows if n_values else 0, step):
        yield np.arange(first, min(first + step, n_rows))
