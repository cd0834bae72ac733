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
from polyplane.data.table.texts import Texts
from polyplane.engine.jit import inlined, jit

__all__ = [
    "check_something_is_left", "learn_categories", "learn_kinds", "learn_medians", "learn_origins",
    "remark_aside",
]  # fmt: skip

RARE = 20  # rows: values of a whole table that stand in no more share a pair
RARE_SHARE = 50  # of fewer rows than a thousand, one in so many
WORDS_PER_RARE = 4  # words may be rarer than categories: a text has many
ROWS_FOR_MEDIANS = 1 << 13  # where a column has no gaps, and its median is but a precaution
DIGITS = 11, 11, 10  # bits of a float32, by which numbers are told apart one after the other
SIGN, INFINITE, NO_KEY = 1 << 31, 0x7F800000, 1 << 32


def learn_kinds(others: Mapping[int, Any], layout: Layout) -> None:
    """What columns of texts are."""
    for i, cells in others.items():
        if layout.sources[i].kind in OPEN:
            is_empty = cells.n_missing == cells.codes.size
            kind = CATEGORY if is_empty and layout.grows else _kind_of(layout.sources[i], cells)
            if kind == CATEGORY and not layout.grows and _says_nothing(cells):
                kind = ASIDE
            layout.sources[i] = layout.sources[i]._replace(kind=kind)


def _kind_of(source: Source, texts: Texts) -> str:
    return kind_of_texts(texts, may_be_number=source.kind == UNDECIDED)


def _says_nothing(texts: Texts) -> bool:
    """Whether all values are rare, and one is there in every row."""
    return bool(texts.n_missing == 0 and texts.counts.max() <= _rare(texts.codes.size))


def _rare(n_rows: int) -> int:
    return min(RARE, n_rows // RARE_SHARE)


def learn_origins(others: Mapping[int, Any], layout: Layout) -> None:
    """Where dates begin."""
    for i, cells in others.items():
        if layout.sources[i].kind == DATE:
            layout.sources[i] = layout.sources[i]._replace(origin=earliest(cells))


def learn_medians(numbers: Array, lacks: Array | None, layout: Layout) -> None:
    """What a missing number is; 0 where there is none at all."""
    steps = np.full(numbers.shape[1], max(1, len(numbers) // ROWS_FOR_MEDIANS))
    if lacks is not None:
        steps[lacks.any(axis=0)] = 1
    medians = _medians(np.ascontiguousarray(numbers, np.float32), steps)
    for i, median in zip(layout.number_sources, medians.tolist(), strict=True):
        source = layout.sources[i]
        fill = float(np.floor(median)) if source.kind == FLAG else median
        layout.sources[i] = source._replace(fill=fill)


def _medians(numbers: Array, steps: Array) -> Array:
    """That of each column, of its rows at such steps, without NaN; 0 where nothing is left.

    Numbers are known by keys of 32 bits that rise with them: no order is made, and equal ones, of
    which there are many, cost no more than others.
    """
    keys: Array = np.full((2, numbers.shape[1]), SIGN, np.int64)
    some, counts = np.empty((2, len(numbers)), np.int64), np.empty(1 << max(DIGITS), np.int64)
    _find_middle(numbers.view(np.int32), steps, some, counts, keys)
    is_negative = keys < SIGN
    sizes = np.where(is_negative, SIGN - 1 - keys, keys - SIGN).astype(np.int32).view(np.float32)
    lower, upper = np.where(is_negative, -sizes, sizes)
    with np.errstate(over="ignore"):
        middle = np.where(lower == upper, lower, (lower + upper) / np.float32(2))
    return np.asarray(middle + np.float32(0))  # 0 rather than -0


@jit
def _find_middle(bits: Any, steps: Any, room: Any, counts: Any, keys: Any) -> None:
    """Write the keys of the two numbers in the middle of each column, or twice that of the one."""
    some, few = room[0], room[1]
    for column in range(bits.shape[1]):
        n = 0
        for i in range(0, bits.shape[0], steps[column]):
            some[n] = _key_of(bits[i, column])
            n += some[n] != NO_KEY
        if n > 0:
            lower = _key_of_rank(some, n, (n - 1) // 2, counts, few)
            keys[0, column], keys[1, column] = lower, _key_after(some, n, n // 2, lower)


@inlined
def _key_of(bits: Any) -> Any:
    """A whole number from 0 on that rises with the float32 of these bits."""
    size = np.int64(bits) & (SIGN - 1)
    if size > INFINITE:
        return NO_KEY
    return SIGN + size if bits >= 0 else SIGN - 1 - size


@inlined
def _key_after(keys: Any, n: Any, rank: Any, lower: Any) -> Any:
    """The key of a rank that is that of `lower`, or the next."""
    n_before, above = 0, NO_KEY
    for i in range(n):
        n_before += keys[i] <= lower
        above = min(above, keys[i] if keys[i] > lower else NO_KEY)
    return lower if n_before > rank else above


@inlined
def _key_of_rank(keys: Any, n: Any, rank: Any, counts: Any, few: Any) -> Any:
    """The key before which `rank` others stand, found digit by digit among fewer and fewer."""
    found, shift = 0, 32
    for n_bits in DIGITS:
        shift -= n_bits
        counts[:] = 0
        for i in range(n):
            counts[(keys[i] >> shift) & ((1 << n_bits) - 1)] += 1
        digit = 0
        while counts[digit] <= rank:
            rank -= counts[digit]
            digit += 1
        found, n_left = (found << n_bits) | digit, 0
        for i in range(n):  # in place after the first digit: what is read is not yet written over
            few[n_left] = keys[i]
            n_left += keys[i] >> shift == found
        keys, n = few, n_left
    return found


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
