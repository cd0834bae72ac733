"""Where contributions of features go: to entries, to columns, to their owners, or to two of them.

A loop calls `page_of_target` once, then `give` for each entry of a row and `take_typical` for each
plane that has a part in it.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import chosen_by_type
from polyplane.engine.tiles import at, put, span

__all__ = [
    "ToColumns",
    "ToEntries",
    "ToOwners",
    "ToPairs",
    "Typical",
    "give",
    "page_of_target",
    "take_typical",
]


class Typical(NamedTuple):
    """Mean contribution of sums to columns over some rows; no lanes where nothing is taken."""

    of_columns: Any  # [lane, column] float32
    in_all: Any  # [lane] float64


class ToEntries(NamedTuple):
    """To the entries of CSR rows."""

    values: Any  # [entry] float32


class ToColumns(NamedTuple):
    """To columns, each of which is a feature."""

    values: Any  # [row, column] float32, zero before
    typical: Any


class ToOwners(NamedTuple):
    """To columns of several features."""

    values: Any
    typical: Any
    owners: Any  # [feature] int32


class ToPairs(NamedTuple):
    """To both columns of a product, half to each."""

    values: Any
    typical: Any
    first: Any  # [feature] int32
    second: Any  # [feature] int32: the same column where it is no product of two


class EntryPage(NamedTuple):
    """The first of them as spans, for use inside a loop."""

    values: Any


class ColumnPage(NamedTuple):
    """The second."""

    values: Any
    width: Any
    typical: Any
    in_all: Any
    has_typical: Any


class OwnerPage(NamedTuple):
    """The third."""

    values: Any
    width: Any
    typical: Any
    in_all: Any
    has_typical: Any
    owners: Any


class PairPage(NamedTuple):
    """The last."""

    values: Any
    width: Any
    typical: Any
    in_all: Any
    has_typical: Any
    first: Any
    second: Any


def _entry_page(target: Any) -> Any:
    return EntryPage(span(target.values))


def _column_page(target: Any) -> Any:
    typical = target.typical
    return ColumnPage(
        span(target.values),
        target.values.shape[1],
        span(typical.of_columns),
        span(typical.in_all),
        typical.in_all.size > 0,
    )


def _owner_page(target: Any) -> Any:
    typical = target.typical
    return OwnerPage(
        span(target.values),
        target.values.shape[1],
        span(typical.of_columns),
        span(typical.in_all),
        typical.in_all.size > 0,
        span(target.owners),
    )


def _pair_page(target: Any) -> Any:
    typical = target.typical
    return PairPage(
        span(target.values),
        target.values.shape[1],
        span(typical.of_columns),
        span(typical.in_all),
        typical.in_all.size > 0,
        span(target.first),
        span(target.second),
    )


def _give_to_entry(target: Any, k: Any, j: Any, feature: Any, part: Any) -> Any:
    put(target.values, j, part)


def _give_to_column(target: Any, k: Any, j: Any, feature: Any, part: Any) -> Any:
    put(target.values, k * target.width + feature, part)


def _give_to_owner(target: Any, k: Any, j: Any, feature: Any, part: Any) -> Any:
    place = k * target.width + at(target.owners, feature)
    put(target.values, place, at(target.values, place) + part)


def _give_to_pair(target: Any, k: Any, j: Any, feature: Any, part: Any) -> Any:
    half = part * np.float32(0.5)
    place = k * target.width + at(target.first, feature)
    put(target.values, place, at(target.values, place) + half)
    place = k * target.width + at(target.second, feature)
    put(target.values, place, at(target.values, place) + half)


def _take_nothing(target: Any, lane: Any, factor: Any, k: Any) -> Any:
    return 0.0


def _take_typical(target: Any, lane: Any, factor: Any, k: Any) -> Any:
    if not target.has_typical:
        return 0.0
    line, place = lane * target.width, k * target.width
    for column in range(target.width):
        taken = factor * at(target.typical, line + column)
        put(target.values, place + column, at(target.values, place + column) - taken)
    return factor * at(target.in_all, lane)


_PAGES = {
    ToEntries: _entry_page,
    ToColumns: _column_page,
    ToOwners: _owner_page,
    ToPairs: _pair_page,
}
_GIVES = {
    EntryPage: _give_to_entry,
    ColumnPage: _give_to_column,
    OwnerPage: _give_to_owner,
    PairPage: _give_to_pair,
}
_TAKES = {
    EntryPage: _take_nothing,
    ColumnPage: _take_typical,
    OwnerPage: _take_typical,
    PairPage: _take_typical,
}


def page_of_target(target: Any) -> Any:
    """Where contributions go, as a loop sees it."""
    return _PAGES[type(target)](target)


def give(target: Any, k: Any, j: Any, feature: Any, part: Any) -> Any:
    """Let row k, by entry j of its page, have a part in what its feature does."""
    return _GIVES[type(target)](target, k, j, feature, part)


def take_typical(target: Any, lane: Any, factor: Any, k: Any) -> Any:
    """Take from the columns of row k what is typical of a plane; return how much it is in all."""
    return _TAKES[type(target)](target, lane, factor, k)


chosen_by_type(page_of_target, _PAGES)
chosen_by_type(give, _GIVES)
chosen_by_type(take_typical, _TAKES)
