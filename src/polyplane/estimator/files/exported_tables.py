"""Layouts of tables for programs without Python: which column of X each value sets."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyplane.data.table.categories import MISSING, REST, VALUE, WORD, Pair
from polyplane.data.table.kinds import ASIDE, CATEGORY, DATE, NUMERIC, TEXT
from polyplane.data.table.layout import FILL, Layout, Source
from polyplane.data.table.moments import PARTS
from polyplane.data.table.spelling import other_spellings
from polyplane.data.table.statistics import Key
from polyplane.data.table.texts import MISSING_TEXTS
from polyplane.engine.inspection import LARGEST
from polyplane.model.export import table_input
from polyplane.model.export.table_input import (
    NONE,
    TableColumn,
    TableInput,
    TableKey,
    TableStatistic,
)
from polyplane.model.format.model_file import ModelError

__all__ = ["exported_table"]


def exported_table(
    layout: Layout | None, width: int, names: Sequence[str] | None = None
) -> TableInput | None:
    """The columns of a table that a model of `width` columns reads; None if it was no table.

    Names are those of the layout, unless others are given, one for each column that is read.
    """
    if layout is None or not layout.is_learned:
        return None
    sources = [source for source in layout.sources if source.kind != ASIDE]
    columns = [_column(layout, source, width) for source in sources]
    if names is None:
        names = [
            source.name if layout.has_names else f"column_{place + 1}"
            for place, source in enumerate(layout.sources)
            if source.kind != ASIDE
        ]
    if len(names) != len(columns):
        raise ModelError(
            f"{len(names)} column names are given for {len(columns)} columns: give one for each"
        )
    named = [replace(column, name=str(name)) for column, name in zip(columns, names, strict=True)]
    numbered = iter(range(len(named)))
    placed = [
        replace(column, number=next(numbered)) if _has_number(column) else column
        for column in named
    ]
    return TableInput(placed, width, MISSING_TEXTS, LARGEST, *_statistics(layout))


def _statistics(layout: Layout) -> tuple[list[TableKey], list[TableStatistic]]:
    """Return the keys of target statistics by the columns that are read, and the statistics."""
    if layout.statistics is None:
        return [], []
    read = [place for place, source in enumerate(layout.sources) if source.kind != ASIDE]
    keys = [_key(key, read.index(key.place)) for key in layout.statistics.keys]
    found = [
        TableStatistic(one.keys, one.codes, one.values, one.rest)
        for one in layout.statistics.statistics
    ]
    return keys, found


def _key(key: Key, column: int) -> TableKey:
    if isinstance(key.values, np.ndarray):
        return TableKey(column, {}, key.values, len(key.values))
    codes = {value: code for code, value in enumerate(key.values.to_pylist())}
    others = {other: code for value, code in codes.items() for other in other_spellings(value)}
    return TableKey(column, others | codes, np.empty(0, np.float32), len(codes))


def _has_number(column: TableColumn) -> bool:
    return column.kind in (table_input.NUMBER, table_input.DATE)


def _column(layout: Layout, source: Source, width: int) -> TableColumn:
    """Return a source as exports describe it; a missing value is filled as in training."""
    fills = layout.missing == FILL
    missing = _place(layout, width, Pair(source.name, MISSING)) if fills else NONE
    if source.kind in NUMERIC:
        fill = source.fill if fills else 0.0
        return TableColumn(
            source.name,
            table_input.NUMBER,
            fill=fill,
            missing=missing,
            origin=source.origin,
            unit=source.unit,
        )
    if source.kind == DATE:
        return TableColumn(
            source.name,
            table_input.DATE,
            fill=source.fill if fills else 0.0,
            missing=missing,
            origin=source.origin,
            parts={part: _places_of_part(layout, source, width, part) for part in PARTS},
        )
    if source.kind not in (CATEGORY, TEXT):
        raise ModelError(f"column {source.name!r} is of a kind that cannot be exported")
    if layout.categories.n_hash:
        raise ModelError(
            f"the values of column {source.name!r} are hashed, which is not for export: train with "
            "categories='onehot' (--categories onehot)"
        )
    what = VALUE if source.kind == CATEGORY else WORD
    kind = table_input.CATEGORY if source.kind == CATEGORY else table_input.WORDS
    known = layout.categories.known.get((source.name, what), {})
    first = len(layout.number_sources)
    values = {value: first + number for value, number in known.items() if first + number < width}
    rest = NONE
    if source.kind == CATEGORY:
        others = {
            other: place for value, place in values.items() for other in other_spellings(value)
        }
        values = others | values
        rest = _place(layout, width, Pair(source.name, REST))
    return TableColumn(source.name, kind, missing=missing, values=values, rest=rest)


def _places_of_part(layout: Layout, source: Source, width: int, part: str) -> list[int]:
    _, numbers = PARTS[part]
    return [_place(layout, width, Pair(source.name, part, str(number))) for number in numbers]


def _place(layout: Layout, width: int, pair: Pair) -> int:
    """The column of X that a pair sets, if the model has it."""
    number = layout.categories.number_of(pair)
    place = len(layout.number_sources) + number
    return place if number != NONE and place < width else NONE
