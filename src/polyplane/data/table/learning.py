"""What a layout learns from rows: kinds of texts, where dates begin, medians, and categories.

Each function fills in what the layout leaves open, from a whole table or from its first chunk.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyplane.data.chunks import Array, DataError
from polyplane.data.table.categories import VALUE, Facet, WordFacet, common
from polyplane.data.table.kinds import ASIDE, CATEGORY, DATE, FLAG, OPEN, UNDECIDED, kind_of_texts
from polyplane.data.table.layout import Layout, Source
from polyplane.data.table.moments import earliest
from polyplane.data.table.texts import NONE, Texts

__all__ = [
    "check_something_is_left", "learn_categories", "learn_kinds", "learn_medians", "learn_origins",
    "remark_aside",
]  # fmt: skip

RARE = 20  # rows: values of a whole table that stand in no more share a pair
RARE_SHARE = 50  # of fewer rows than a thousand, one in so many
WORDS_PER_RARE = 4  # words may be rarer than categories: a text has many
ROWS_FOR_MEDIANS = 1 << 13  # where a column has no gaps, and its median is but a precaution


def learn_kinds(others: Mapping[int, Any], layout: Layout) -> None:
    """What columns of texts are."""
    for i, cells in others.items():
        if layout.sources[i].kind in OPEN:
            is_empty = not (cells.codes != NONE).any()
            kind = CATEGORY if is_empty and layout.grows else _kind_of(layout.sources[i], cells)
            if kind == CATEGORY and not layout.grows and _says_nothing(cells):
                kind = ASIDE
            layout.sources[i] = layout.sources[i]._replace(kind=kind)


def _kind_of(source: Source, texts: Texts) -> str:
    return kind_of_texts(texts, may_be_number=source.kind == UNDECIDED)


def _says_nothing(texts: Texts) -> bool:
    """Whether all values are rare, and one is there in every row."""
    counts = texts.counts()
    return bool(counts.sum() == texts.codes.size and counts.max() <= _rare(texts.codes.size))


def _rare(n_rows: int) -> int:
    return min(RARE, n_rows // RARE_SHARE)


def learn_origins(others: Mapping[int, Any], layout: Layout) -> None:
    """Where dates begin."""
    for i, cells in others.items():
        if layout.sources[i].kind == DATE:
            layout.sources[i] = layout.sources[i]._replace(origin=earliest(cells))


def learn_medians(numbers: Array, lacks: Array | None, layout: Layout) -> None:
    """What a missing number is; 0 where there is none at all."""
    some = numbers[:: max(1, len(numbers) // ROWS_FOR_MEDIANS)]
    has_gaps: Array = np.zeros(numbers.shape[1], np.bool_)
    if lacks is not None:
        has_gaps = np.asarray(lacks.any(axis=0))
    medians = np.zeros(numbers.shape[1])
    if len(some):
        medians[~has_gaps] = np.median(some[:, ~has_gaps], axis=0)
    for k in np.flatnonzero(has_gaps).tolist():
        present = numbers[:, k][~np.isnan(numbers[:, k])]
        medians[k] = np.median(present) if present.size else 0.0
    for i, median in zip(layout.number_sources, medians.tolist(), strict=True):
        source = layout.sources[i]
        fill = float(np.floor(median)) if source.kind == FLAG else median
        layout.sources[i] = source._replace(fill=fill)


def learn_categories(facets: Sequence[Facet | WordFacet], layout: Layout) -> None:
    """Number the pairs of a whole table."""
    are_common: list[Array | None] = []
    for facet in facets:
        rare, is_common = _rare(facet.n_rows), None
        if isinstance(facet, WordFacet):
            is_common = common(facet, rare // WORDS_PER_RARE)
        elif facet.what == VALUE:
            is_common = common(facet, rare)
        are_common.append(is_common)
    layout.categories.meet(facets, are_common)
    layout.categories.is_frozen = True


def check_something_is_left(layout: Layout, path: Any) -> None:
    if layout.width == 0 and layout.set_aside:  # else values may still come
        aside = ", ".join(map(repr, layout.set_aside))
        raise DataError(
            f"found no column to learn from: nearly every value of {aside} is another; name those "
            "that are categories in text_columns",
            path,
        )


def remark_aside(layout: Layout, path: Any) -> None:
    """Say of a file which columns are not read; of a frame the estimator does."""
    if layout.set_aside and path is not None:
        layout.remark(
            f"nearly every value of {', '.join(map(repr, layout.set_aside))} is another, as of an "
            "id or a name, and says nothing of other rows: set aside; text_columns names columns "
            "that are categories all the same",
            path,
        )
