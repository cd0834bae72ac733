"""Learning of a layout from rows: kinds of texts, origins of dates, medians, and categories.

Each function fills in what the layout leaves open, from a whole table or from its first chunk.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyplane.data.chunks import Array, DataError
from polyplane.data.table.categories import VALUE, Facet, WordFacet, common
from polyplane.data.table.kinds import (
    ASIDE,
    CATEGORY,
    DATE,
    EMPTY,
    FLAG,
    NUMBER,
    OPEN,
    UNDECIDED,
    kind_of_texts,
)
from polyplane.data.table.layout import Layout, Source
from polyplane.data.table.moments import earliest
from polyplane.data.table.texts import Texts, tally_together

__all__ = [
    "check_something_is_left", "ignored_columns", "learn_categories", "learn_empty", "learn_kinds",
    "learn_medians", "learn_origins", "learn_scales", "remark_aside",
]  # fmt: skip

MAX_ROWS_OF_RARE_VALUE = 20  # rows: values of a whole table that stand in no more share a pair
ROWS_PER_RARE_ROW = 50  # of fewer rows than a thousand, one in so many
WORDS_PER_RARE = 4  # words may be rarer than categories: a text has many
ROWS_FOR_MEDIANS = 1 << 13  # where a column has no gaps, and its median is but a precaution


def learn_kinds(others: Mapping[int, Any], layout: Layout) -> None:
    """Set the kinds of columns of texts."""
    open_ones = {i: cells for i, cells in others.items() if layout.sources[i].kind in OPEN}
    tally_together(list(open_ones.values()))
    for i, cells in open_ones.items():
        is_empty = cells.n_missing == cells.codes.size
        kind = CATEGORY if is_empty and layout.grows else _kind_of(layout.sources[i], cells)
        is_whole = not layout.grows and not layout.keeps_keys  # statistics know rare values, too
        if kind == CATEGORY and is_whole and _says_nothing(cells):
            kind = ASIDE
        layout.sources[i] = layout.sources[i]._replace(kind=kind)


def _kind_of(source: Source, texts: Texts) -> str:
    return kind_of_texts(texts, may_be_number=source.kind == UNDECIDED)


def _says_nothing(texts: Texts) -> bool:
    """Return True if all values are rare and every row has one."""
    return texts.n_missing == 0 and texts.tally.most <= _rare(texts.codes.size)


def _rare(n_rows: int) -> int:
    return min(MAX_ROWS_OF_RARE_VALUE, n_rows // ROWS_PER_RARE_ROW)


def learn_origins(others: Mapping[int, Any], layout: Layout) -> None:
    """Where dates begin."""
    for i, cells in others.items():
        if layout.sources[i].kind == DATE:
            layout.sources[i] = layout.sources[i]._replace(origin=earliest(cells))


def learn_scales(large: Mapping[int, Array], layout: Layout) -> None:
    """Set origin and unit by which numbers of large columns are scaled."""
    for i, reals in large.items():
        present = reals[~np.isnan(reals)]
        origin = float(np.median(present))
        unit = float(np.abs(present - origin).mean())
        layout.sources[i] = layout.sources[i]._replace(origin=origin, unit=unit or 1.0)


def learn_medians(numbers: Array, has_gaps: Array, layout: Layout) -> None:
    """Set the value that stands for a missing number of each column; 0 where there is none."""
    steps = np.where(has_gaps, 1, max(1, len(numbers) // ROWS_FOR_MEDIANS))
    medians = _medians(np.ascontiguousarray(numbers, np.float32), steps)
    for i, median in zip(layout.number_sources, medians.tolist(), strict=True):
        source = layout.sources[i]
        fill = float(np.floor(median)) if source.kind == FLAG else median
        layout.sources[i] = source._replace(fill=fill)


def learn_empty(n_missing: Array, n_rows: int, layout: Layout) -> None:
    """Mark columns of numbers that have no value in any row of a whole table."""
    for i, n in zip(layout.number_sources, n_missing.tolist(), strict=True):
        if n == n_rows and layout.sources[i].kind == NUMBER:
            layout.sources[i] = layout.sources[i]._replace(kind=EMPTY)


def _medians(numbers: Array, steps: Array) -> Array:
    """Return the median of each column over every n-th row, without NaN; 0 where none is left."""
    middle = np.zeros((2, numbers.shape[1]), np.float32)
    for column, step in enumerate(steps.tolist()):
        some = numbers[::step, column]
        some = some[~np.isnan(some)]
        if some.size:
            places = (some.size - 1) // 2, some.size // 2
            middle[:, column] = np.partition(some, places)[[*places]]
    lower, upper = middle
    with np.errstate(over="ignore"):
        middle = np.where(lower == upper, lower, (lower + upper) / np.float32(2))
    return np.asarray(middle + np.float32(0))  # 0 rather than -0


def learn_categories(facets: Sequence[Facet | WordFacet], layout: Layout) -> None:
    """Number the pairs of a whole table."""
    are_common = [
        common(facet, _rare_of(facet))
        if isinstance(facet, WordFacet) or facet.what == VALUE
        else None
        for facet in facets
    ]
    layout.categories.meet(facets, are_common)
    layout.categories.is_frozen = True


def _rare_of(facet: Facet | WordFacet) -> int:
    rare = _rare(facet.n_rows)
    return rare // WORDS_PER_RARE if isinstance(facet, WordFacet) else rare


def check_something_is_left(layout: Layout, path: Any) -> None:
    if layout.width == 0 and layout.set_aside:  # else values may still come
        option = "categorical_features" if path is None else "text_columns"  # frames, and files
        words = ignored_columns(layout.set_aside, option)
        raise DataError(f"found no column to learn from: {words}", path)


def remark_aside(layout: Layout, path: Any) -> None:
    """Report the columns of a file that are ignored; the estimator reports those of a frame."""
    if layout.set_aside and path is not None:
        layout.remark(ignored_columns(layout.set_aside, "text_columns"), path)


def ignored_columns(names: Sequence[str], option: str) -> str:
    """Return a sentence on columns that are almost unique per row, and the option to keep them."""
    listed = ", ".join(map(repr, names))
    if len(names) == 1:
        found = f"column {listed} is almost unique per row and was ignored (likely an identifier)"
        return f"{found}; to keep it, pass {option}=[{listed}]"
    found = f"columns {listed} are almost unique per row and were ignored (likely identifiers)"
    return f"{found}; to keep them, pass {option}=[{listed}]"
