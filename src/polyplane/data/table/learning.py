"""What a layout learns from rows: kinds of texts, where dates begin, medians, and categories.

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
from polyplane.engine.jit import inlined, jit

__all__ = [
    "check_something_is_left", "learn_categories", "learn_empty", "learn_kinds", "learn_medians",
    "learn_origins", "learn_scales", "remark_aside",
]  # fmt: skip

RARE = 20  # rows: values of a whole table that stand in no more share a pair
RARE_SHARE = 50  # of fewer rows than a thousand, one in so many
WORDS_PER_RARE = 4  # words may be rarer than categories: a text has many
ROWS_FOR_MEDIANS = 1 << 13  # where a column has no gaps, and its median is but a precaution
DIGITS = 11, 11, 10  # bits of a float32, by which numbers are told apart one after the other
FIRST_SHIFT = 32 - DIGITS[0]
SIGN, INFINITE, NO_KEY = 1 << 31, 0x7F800000, 1 << 32


def learn_kinds(others: Mapping[int, Any], layout: Layout) -> None:
    """What columns of texts are."""
    open_ones = {i: cells for i, cells in others.items() if layout.sources[i].kind in OPEN}
    tally_together(list(open_ones.values()))
    for i, cells in open_ones.items():
        is_empty = cells.n_missing == cells.codes.size
        kind = CATEGORY if is_empty and layout.grows else _kind_of(layout.sources[i], cells)
        if kind == CATEGORY and not layout.grows and _says_nothing(cells):
            kind = ASIDE
        layout.sources[i] = layout.sources[i]._replace(kind=kind)


def _kind_of(source: Source, texts: Texts) -> str:
    return kind_of_texts(texts, may_be_number=source.kind == UNDECIDED)


def _says_nothing(texts: Texts) -> bool:
    """Whether all values are rare, and one is there in every row."""
    return texts.n_missing == 0 and texts.tally.most <= _rare(texts.codes.size)


def _rare(n_rows: int) -> int:
    return min(RARE, n_rows // RARE_SHARE)


def learn_origins(others: Mapping[int, Any], layout: Layout) -> None:
    """Where dates begin."""
    for i, cells in others.items():
        if layout.sources[i].kind == DATE:
            layout.sources[i] = layout.sources[i]._replace(origin=earliest(cells))


def learn_scales(large: Mapping[int, Array], layout: Layout) -> None:
    """How numbers of large columns are scaled."""
    for i, reals in large.items():
        present = reals[~np.isnan(reals)]
        origin = float(np.median(present))
        unit = float(np.abs(present - origin).mean())
        layout.sources[i] = layout.sources[i]._replace(origin=origin, unit=unit or 1.0)


def learn_medians(numbers: Array, has_gaps: Array, layout: Layout) -> None:
    """What a missing number is, by column; 0 where there is none at all."""
    steps = np.where(has_gaps, 1, max(1, len(numbers) // ROWS_FOR_MEDIANS))
    medians = _medians(np.ascontiguousarray(numbers, np.float32), steps)
    for i, median in zip(layout.number_sources, medians.tolist(), strict=True):
        source = layout.sources[i]
        fill = float(np.floor(median)) if source.kind == FLAG else median
        layout.sources[i] = source._replace(fill=fill)


def learn_empty(n_missing: Array, n_rows: int, layout: Layout) -> None:
    """Which columns of numbers have no value in any row of a whole table."""
    for i, n in zip(layout.number_sources, n_missing.tolist(), strict=True):
        if n == n_rows and layout.sources[i].kind == NUMBER:
            layout.sources[i] = layout.sources[i]._replace(kind=EMPTY)


def _medians(numbers: Array, steps: Array) -> Array:
    """That of each column, of its rows at such steps, without NaN; 0 where nothing is left.

    Numbers are known by keys of 32 bits that rise with them: no order is made, and equal ones, of
    which there are many, cost no more than others.
    """
    bits = np.zeros((2, numbers.shape[1]), np.int32)
    some, counts = np.empty((2, len(numbers)), np.int64), np.empty((1 << max(DIGITS)) + 1, np.int64)
    _find_middle(numbers.view(np.int32), steps, some, counts, bits)
    lower, upper = bits.view(np.float32)
    with np.errstate(over="ignore"):
        middle = np.where(lower == upper, lower, (lower + upper) / np.float32(2))
    return np.asarray(middle + np.float32(0))  # 0 rather than -0


@jit
def _find_middle(bits: Any, steps: Any, room: Any, counts: Any, middle: Any) -> None:
    """Write the bits of the two numbers in the middle of each column, or twice those of the one."""
    some, few = room[0], room[1]
    for column in range(bits.shape[1]):
        n = 0
        counts[:] = 0
        for i in range(0, bits.shape[0], steps[column]):
            some[n] = _key_of(bits[i, column])
            counts[some[n] >> FIRST_SHIFT] += 1  # what is no number has the last
            n += some[n] != NO_KEY
        if n > 0:
            lower, n_equal = _key_of_rank(some, n, (n - 1) // 2, counts, few)
            upper = lower if n % 2 or n_equal else _key_above(some, n, lower)
            middle[0, column], middle[1, column] = _bits_of(lower), _bits_of(upper)


@inlined
def _key_of(bits: Any) -> Any:
    """A whole number from 0 on that rises with the float32 of these bits."""
    size = np.int64(bits) & (SIGN - 1)
    if size > INFINITE:
        return NO_KEY
    return SIGN + size if bits >= 0 else SIGN - 1 - size


@inlined
def _bits_of(key: Any) -> Any:
    """The bits again."""
    return np.int32(key - SIGN if key >= SIGN else -1 - key)


@inlined
def _key_above(keys: Any, n: Any, lower: Any) -> Any:
    """The least key above `lower`."""
    above = NO_KEY
    for i in range(n):
        above = min(above, keys[i] if keys[i] > lower else NO_KEY)
    return above


@inlined
def _key_of_rank(keys: Any, n: Any, rank: Any, counts: Any, few: Any) -> Any:
    """The key before which `rank` others stand, and how many that are equal stand behind it.

    It is found digit by digit among fewer and fewer; those of the first are counted.
    """
    found, shift = 0, 32
    for n_bits in DIGITS:
        shift -= n_bits
        if shift < FIRST_SHIFT:
            counts[: 1 << n_bits] = 0
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
    return found, n - 1 - rank


def learn_categories(facets: Sequence[Facet | WordFacet], layout: Layout) -> list[Array] | None:
    """Number the pairs of a whole table; the tables of facets, where they are by-products."""
    rare = [_rare_of(facet) for facet in facets]
    tables = layout.categories.number_all(facets, rare)
    if tables is None:
        both = zip(facets, rare, strict=True)
        asks = [isinstance(facet, WordFacet) or facet.what == VALUE for facet in facets]
        are_common = [common(*one) if ask else None for one, ask in zip(both, asks, strict=True)]
        layout.categories.meet(facets, are_common)
    layout.categories.is_frozen = True
    return tables


def _rare_of(facet: Facet | WordFacet) -> int:
    rare = _rare(facet.n_rows)
    return rare // WORDS_PER_RARE if isinstance(facet, WordFacet) else rare


def check_something_is_left(layout: Layout, path: Any) -> None:
    if layout.width == 0 and layout.set_aside:  # else values may still come
        aside = ", ".join(map(repr, layout.set_aside))
        option = "categorical_features" if path is None else "text_columns"  # frames, and files
        raise DataError(
            f"found no column to learn from: nearly every value of {aside} is another; name those "
            f"that are categories in {option}",
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
