"""The columns that a user knows, and where they are in the rows that algorithms see.

A column of a table may be several of X: a number, and a column for each value of a category. What
a report says is about the user's columns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.arrays import Array

__all__ = [
    "Columns",
    "Table",
    "dense",
    "has_differences",
    "is_sparse",
    "number_text",
    "typical_row",
    "varied",
]

MAX_CELL_LETTERS = 80  # letters of a cell
OF_A_DAY, OF_A_MINUTE = 24 * 3600 * 1e6, 60 * 1e6  # microseconds


@dataclass(frozen=True)
class Columns:
    """Names of columns, and which columns of X belong to each."""

    names: Sequence[str]
    source_of: Array | None = None  # [column of X]: place in `names`; None where they are the same
    values: Sequence[str] = ()  # [column of X]: what a 1 there says; empty for a number
    origins: Mapping[int, float] = field(default_factory=dict)  # of dates, whose numbers are days:
    # the first one, in microseconds since 1970, by place in `names`

    def members(self, source: int) -> Array:
        """Columns of X that are made of it."""
        if self.source_of is None:
            return np.array([source])
        return np.flatnonzero(self.source_of == source)

    def number(self, source: int) -> int | None:
        """The column of X that is the number itself, if it is one."""
        if self.source_of is None:
            return source
        return next((int(j) for j in self.members(source) if not self.values[j]), None)

    def choices(self, source: int) -> Array:
        """Columns of X that stand for one of its values each."""
        if self.source_of is None:
            return np.empty(0, np.int64)
        return np.array([j for j in self.members(source) if self.values[j]], np.int64)

    def without(self, sources: Sequence[int]) -> tuple["Columns", Array]:
        """The columns but some, and which columns of X are left."""
        kept = [k for k in range(len(self.names)) if k not in set(sources)]
        names = [self.names[k] for k in kept]
        origins = {k: self.origins[old] for k, old in enumerate(kept) if old in self.origins}
        if self.source_of is None:
            return Columns(names, origins=origins), np.array(kept, np.int64)
        left = np.flatnonzero(np.isin(self.source_of, kept))
        source_of = np.searchsorted(kept, self.source_of[left])
        values = [self.values[j] for j in left.tolist()] if self.values else ()
        return Columns(names, source_of, values, origins), left

    def told(self, source: int, value: float) -> str:
        """A number of a column as people write it; of a date the day, and the time if there is."""
        if source not in self.origins or not math.isfinite(value):
            return number_text(value)
        minutes = round((self.origins[source] + value * OF_A_DAY) / OF_A_MINUTE)
        day, time = str(np.datetime64(minutes, "m")).split("T")
        return day if time == "00:00" else f"{day} {time}"

    def same_as(self, other: "Columns") -> bool:
        """Return True if the columns of X are the same ones."""
        own, its = ([*one.names, *one.values] for one in (self, other))
        return own == its and np.array_equal(self._sources, other._sources)

    @property
    def _sources(self) -> Array:
        return np.arange(len(self.names)) if self.source_of is None else self.source_of

    def gathered(self, parts: Any) -> Array:
        """[row, column of X] added up to [row, column]."""
        if self.source_of is None:
            return dense(parts)
        n_columns = self.source_of.size
        into = (np.ones(n_columns, np.float32), (np.arange(n_columns), self.source_of))
        sums = parts @ sp.csr_matrix(into, shape=(n_columns, len(self.names)))
        return dense(sums)


@dataclass(frozen=True)
class Table:
    """Rows with their labels and what their columns are called."""

    X: Any
    y: Array
    columns: Columns

    @cached_property
    def _by_column(self) -> Any:
        return self.X.tocsc() if is_sparse(self.X) else self.X

    def column(self, j: int) -> Array:
        """A column of X."""
        found = self._by_column[:, [j]]
        return dense(found).ravel()

    def codes(self, source: int) -> Array:
        """Return a number for each row's value in a column: the value itself, or its place."""
        number = self.columns.number(source)
        if number is not None:
            return self.column(number)
        part = self._by_column[:, self.columns.choices(source)]
        if part.shape[1] == 0:
            return np.zeros(part.shape[0])
        largest: Array = np.asarray(part.argmax(axis=1)).ravel().astype(np.float64)
        is_said = dense(abs(part).max(axis=1)).ravel() > 0
        return np.where(is_said, largest, -1.0)

    def cell(self, row: int, source: int) -> str:
        """A cell in words."""
        number = self.columns.number(source)
        if number is not None:
            return self.columns.told(source, float(self.X[row, number]))
        choices = self.columns.choices(source)
        line = self.X[[row]][:, choices]
        said = np.flatnonzero(dense(line).ravel())
        text = ", ".join(str(self.columns.values[choices[k]]) for k in said[:5])
        return text[:MAX_CELL_LETTERS] or "–"

    def part(self, rows: Array) -> "Table":
        """Some of the rows."""
        return Table(self.X[rows], self.y[rows], self.columns)


def number_text(value: float) -> str:
    """A number in a cell; thousands as people write them, not as powers."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def is_sparse(X: Any) -> bool:
    """Return True if rows are of scipy's sparse kind."""
    return bool(sp.issparse(X))


def dense(X: Any) -> Array:
    """Rows with all their zeros."""
    return np.asarray(X.todense() if is_sparse(X) else X)


def has_differences(X: Any) -> bool:
    """Return True if any row is not like the first; a few tell it as a rule."""
    for part in (X[:100], X):
        if is_sparse(part):
            least, most = (dense(end).ravel() for end in (part.min(axis=0), part.max(axis=0)))
            differs = bool((least != most).any())
        else:
            first = np.broadcast_to(part[:1], part.shape)
            differs = not np.array_equal(first, part, equal_nan=True)
        if differs:
            return True
    return False


def typical_row(table: Table) -> Array:
    """Medians of numbers, and the most frequent value of each category."""
    X, columns = table.X, table.columns
    if is_sparse(X):
        typical = np.zeros(X.shape[1])
        for j in np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) * 2 > X.shape[0]):
            typical[j] = np.median(table.column(int(j)))
    else:
        typical = np.median(X, axis=0).astype(np.float64)
    if columns.source_of is not None:
        counts = np.asarray((X != 0).sum(axis=0)).ravel()
        for source in range(len(columns.names)):
            choices = columns.choices(source)
            typical[choices] = 0
            if columns.number(source) is None and choices.size:
                typical[choices[np.argmax(counts[choices])]] = 1
    return typical


def varied(typical: Array, places: Array, values: Array, as_sparse: bool) -> Any:
    """Rows like the typical one but in some columns: `values` are rows by these columns."""
    n_rows = len(values)
    if not as_sparse:
        rows = np.repeat(typical[None].astype(np.float32), n_rows, axis=0)
        rows[:, places] = values
        return rows
    base = typical.copy()
    base[places] = 0
    alike = sp.csr_matrix(np.ones((n_rows, 1), np.float32)) @ sp.csr_matrix(
        base[None].astype(np.float32)
    )
    at = np.tile(places, n_rows), np.arange(0, values.size + 1, len(places))
    own = sp.csr_matrix((values.astype(np.float32).ravel(), *at), shape=alike.shape)
    total = sp.csr_matrix(alike + own)
    total.eliminate_zeros()
    total.sort_indices()
    return total
