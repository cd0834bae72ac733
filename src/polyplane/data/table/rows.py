"""Columns of a table to rows of X: looked at, learned from, filled and written.

A reader or a frame gives `TableRows` blocks of Arrow columns. A block holds what rows say, as
numbers, texts and dates; `laid_out` learns from blocks what the layout leaves open, and turns them
into chunks. What is learned and what is applied are one code: rows that were learned from become
the same rows of X again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.table.categories import (
    MISSING,
    VALUE,
    Facet,
    WordFacet,
    common,
    word_facet,
)
from polyplane.data.table.kinds import (
    ASIDE,
    CATEGORY,
    DATE,
    FLAG,
    NUMERIC,
    OPEN,
    TEXT,
    UNDECIDED,
    kind_of_texts,
    numbers_of_texts,
)
from polyplane.data.table.layout import (
    ERROR,
    FILL,
    SKIP,
    Layout,
    Places,
    Source,
    TableOptions,
)
from polyplane.data.table.moments import (
    PARTS,
    are_dates,
    as_moments,
    days_of,
    earliest,
    moments_of_texts,
    part_of,
    seconds_of,
)
from polyplane.data.table.texts import NONE, Texts, arrow_of, is_null, merged, strings_of, texts_of
from polyplane.engine.jit import jit

__all__ = ["ErrorAt", "TableBlock", "TableRows", "laid_out", "without_nan"]

LABELLED, UNLABELLED, INFINITE = range(3)  # what is known of the label of a row
RARE = 20  # rows: values of a whole table that stand in no more share a pair
RARE_SHARE = 50  # of fewer rows than a thousand, one in so many
WORDS_PER_RARE = 4  # words may be rarer than categories: a text has many
ROWS_FOR_MEDIANS = 1 << 13  # where a column has no gaps, and its median is but a precaution
ErrorAt = Callable[[int, int, str], DataError]  # row of the block, position of the column, problem


class TableBlock(NamedTuple):
    """Some rows of a table by column, and their labels."""

    numbers: Array  # by row; NaN where there is none
    number_sources: tuple[int, ...]  # the source of each column of numbers
    others: dict[int, Any]  # texts or dates by source
    y: Array
    is_bytes: bool  # whether numbers are, but for gaps
    is_whole: bool = False  # it is known that no number is missing

    @property
    def n_rows(self) -> int:
        """How many."""
        return len(self.numbers)


# ---- columns to blocks -------------------------------------------------------------------


@dataclass
class TableRows:
    """Turns columns into blocks of rows; those with a flaw are met by `bad`."""

    places: Places
    layout: Layout
    options: TableOptions
    bad: BadRows
    path: Any

    def block(self, columns: Mapping[int, Any], error_at: ErrorAt) -> TableBlock:
        """Rows and labels of Arrow arrays by position."""
        n_rows = len(next(iter(columns.values())))
        numeric: dict[int, Any] = {}
        others: dict[int, Any] = {}
        for i, place in enumerate(self.places.sources):
            source = self.layout.sources[i]
            if place is None or source.kind == ASIDE:
                continue
            cells = _cells_of(source, columns[place], self.path)
            (numeric if source.kind in NUMERIC else others)[i] = cells
        numbers = _matrix_of(list(numeric.values()), n_rows)
        y, label_flaws = self.labels(columns, n_rows)
        keep = self.sound_rows(numbers, others, label_flaws, error_at, tuple(numeric))
        if not keep.all():
            numbers = numbers[keep]
            others = {i: _kept(cells, keep) for i, cells in others.items()}
            y = y[keep] if y.size else y
        is_bytes = all(_is_byte(cells.type) for cells in numeric.values())
        return TableBlock(numbers, tuple(numeric), others, y, is_bytes)

    def numbers_block(self, numbers: Array, y: Array) -> TableBlock:
        """A block of rows that have been read as numbers, all of them there."""
        sources = tuple(range(len(self.layout.sources)))
        return TableBlock(numbers, sources, {}, y, False, is_whole=True)

    def labels(self, columns: Mapping[int, Any], n_rows: int) -> tuple[Array, Array]:
        """Labels, and where they are flawed; empty if there is no label column."""
        if self.places.label is None:
            return np.empty(0), np.full(n_rows, LABELLED)
        return _labels_of(columns[self.places.label], self.layout.label_is_text)

    def sound_rows(
        self,
        numbers: Array,
        others: Mapping[int, Any],
        label_flaws: Array,
        error_at: ErrorAt,
        number_sources: Sequence[int],
        may_fill: bool = True,
    ) -> Array:
        """True where a row is kept: its numbers are finite, and missing values are allowed."""
        policy = self.layout.missing
        policy = ERROR if policy == FILL and not may_fill else policy
        asks = policy in (ERROR, SKIP)
        lacks = [_lacks(cells) for cells in others.values()] if asks else []
        is_finite = np.isfinite(numbers)
        is_sound = is_finite.all() or (not asks and not np.isinf(numbers).any())
        if is_sound and not any(map(np.any, [*lacks, label_flaws])):
            return np.ones(len(numbers), np.bool_)
        no_value = np.column_stack([np.isnan(numbers) & asks, *lacks])
        left_out = np.zeros(len(numbers), np.bool_)
        if policy == SKIP:
            left_out = no_value.any(axis=1) | (label_flaws == UNLABELLED)
            self.layout.n_left_out += int(left_out.sum())
        flaws = np.column_stack([no_value & (policy == ERROR), label_flaws != LABELLED])
        flaws[:, : numbers.shape[1]] |= np.isinf(numbers)
        read = [*number_sources, *(others if asks else [])]
        positions = [self._position(i) for i in read] + [self.places.label or 0]
        is_bad = flaws.any(axis=1) & ~left_out
        for row in np.flatnonzero(is_bad).tolist():
            cell = min(np.flatnonzero(flaws[row]).tolist(), key=positions.__getitem__)
            is_number, is_label = cell < numbers.shape[1], cell == flaws.shape[1] - 1
            is_infinite = label_flaws[row] == INFINITE if is_label else False
            is_infinite = bool(np.isinf(numbers[row, cell])) if is_number else is_infinite
            words = self._words(positions[cell], is_number, is_label, bool(is_infinite))
            self.bad.meet(error_at(row, positions[cell], words))
        return ~(is_bad | left_out)

    def _position(self, source: int) -> int:
        """Where a source stands; lists that are rows have many columns at one place."""
        place = self.places.sources[source] if source < len(self.places.sources) else None
        return source if place is None else place

    def _words(self, position: int, is_number: bool, is_label: bool, is_infinite: bool) -> str:
        within = self.places.within(position)
        if is_infinite and is_label:
            return (
                f"found an infinite label{within}, expected a finite number; if labels are text, "
                "name their column in text_columns"
            )
        if is_infinite:
            return f"found an infinite value{within}, expected a number below 3.4e38"
        if is_label:
            return f"found no label{within}, expected one; missing='skip' leaves the row out"
        expected = "a number" if is_number else "a text"
        return (
            f"found no value{within}, expected {expected}; missing='fill' learns from it, "
            "missing='zero' reads it as 0, missing='skip' leaves the row out"
        )


def _cells_of(source: Source, column: Any, path: Any) -> Any:
    """What the rows of a source say: an Arrow array of numbers or dates, or `Texts`."""
    kind = column.type
    is_text = pa.types.is_dictionary(kind) or kind in (
        pa.string(), pa.large_string(), pa.string_view(),
    )  # fmt: skip
    if source.kind in (CATEGORY, TEXT, *OPEN):
        return texts_of(column)
    if source.kind == DATE:
        if is_text:
            return _as_dates(source, texts_of(column), path)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind):
            return as_moments(column)
        raise _changed(source, f"{kind}", "dates", path)
    if is_text:
        return _as_numbers(source, texts_of(column), path)
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return seconds_of(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        raise _changed(source, "dates", "numbers", path)
    return column


def _as_numbers(source: Source, texts: Texts, path: Any) -> Any:
    numbers, wrong = numbers_of_texts(texts)
    if wrong is not None:
        raise _changed(source, f"text such as {wrong!r}", "numbers", path)
    return arrow_of(numbers)


def _as_dates(source: Source, texts: Texts, path: Any) -> Any:
    used = texts.present()
    if len(used) and not are_dates(used):
        wrong = next(text for text in used.to_pylist() if not are_dates(pa.array([text])))
        raise _changed(source, f"text such as {wrong!r}", "dates", path)
    return moments_of_texts(texts)


def _changed(source: Source, found: str, expected: str, path: Any) -> DataError:
    return DataError(
        f"found {found} in column {source.name!r}, expected {expected} as in training", path
    )


def _lacks(cells: Any) -> Array:
    """True where a row has no value."""
    return cells.codes == NONE if isinstance(cells, Texts) else is_null(cells)


def _kept(cells: Any, keep: Array) -> Any:
    return (
        cells.kept(keep) if isinstance(cells, Texts) else cells.take(arrow_of(np.flatnonzero(keep)))
    )


# ---- learning ----------------------------------------------------------------------------


def laid_out(pieces: Iterable[TableBlock | Chunk], layout: Layout, path: Any) -> Iterator[Chunk]:
    """Chunks of blocks; a layout that is to be learned from a whole table waits for all."""
    if not layout.grows and not layout.is_learned:
        pieces = _as_one(pieces)
    for piece in pieces:
        if isinstance(piece, Chunk):
            yield piece
        elif piece.n_rows or layout.is_learned:
            yield Chunk(_matrix(piece, layout, path), piece.y)


def _as_one(pieces: Iterable[TableBlock | Chunk]) -> Iterator[TableBlock | Chunk]:
    """All blocks as one; rows that are no columns of a table stay as they are."""
    blocks: list[TableBlock] = []
    for piece in pieces:
        if isinstance(piece, Chunk):
            yield piece
        elif piece.n_rows:
            blocks.append(piece)
    if len(blocks) == 1:
        yield blocks[0]
    elif blocks:
        numbers = np.concatenate([block.numbers for block in blocks])
        y = np.concatenate([block.y for block in blocks])
        others = {i: _joined([block.others[i] for block in blocks]) for i in blocks[0].others}
        is_bytes = all(block.is_bytes for block in blocks)
        is_whole = all(block.is_whole for block in blocks)
        first = blocks[0].number_sources
        blocks.clear()
        yield TableBlock(numbers, first, others, y, is_bytes, is_whole)


def _joined(parts: Sequence[Any]) -> Any:
    return merged(parts) if isinstance(parts[0], Texts) else pa.concat_arrays(parts)


def _matrix(block: TableBlock, layout: Layout, path: Any) -> Any:
    """The rows of X; a layout that is open is learned from them, or grows."""
    learns = not layout.is_learned
    if not learns and block.is_whole and not layout.categories.width:
        return block.numbers
    if learns:
        _learn_kinds(block, layout)
    block = _settled(block, layout, path)
    if learns:
        _learn_numbers(block, layout)
    numbers = _with_days(block, layout)
    lacks = _gaps_of(block, numbers)
    if learns:
        _learn_medians(numbers, lacks, layout)
    if learns or path is not None:  # prediction of frames changes nothing
        _count_gaps(block, lacks, layout)
    facets = _facets(block, lacks, layout, learns)
    if learns and not layout.grows:
        _learn_categories(facets, layout)
    elif layout.grows:
        layout.categories.meet(facets)
    if learns:
        layout.is_learned = True
        _check_something_is_left(layout, path)
        _remark_aside(layout, path)
    numbers = _filled(numbers, lacks, layout, block.is_bytes and layout.is_dense)
    return _written(numbers, facets, layout)


def _check_something_is_left(layout: Layout, path: Any) -> None:
    if layout.width == 0 and layout.set_aside:  # else values may still come
        aside = ", ".join(map(repr, layout.set_aside))
        raise DataError(
            f"found no column to learn from: nearly every value of {aside} is another; name those "
            "that are categories in text_columns",
            path,
        )


def _remark_aside(layout: Layout, path: Any) -> None:
    """Say of a file which columns are not read; of a frame the estimator does."""
    if layout.set_aside and path is not None:
        layout.remark(
            f"nearly every value of {', '.join(map(repr, layout.set_aside))} is another, as of an "
            "id or a name, and says nothing of other rows: set aside; text_columns names columns "
            "that are categories all the same",
            path,
        )


def _gaps_of(block: TableBlock, numbers: Array) -> Array | None:
    """True where a number is missing; None if none is."""
    if numbers.dtype.kind != "f" or (block.is_whole and not block.others):
        return None
    lacks: Array = np.isnan(numbers)
    return lacks if lacks.any() else None


def _count_gaps(block: TableBlock, lacks: Array | None, layout: Layout) -> None:
    """How many values of each source are missing."""
    lacking = [] if lacks is None else lacks.sum(axis=0).tolist()
    found = {
        layout.sources[i].name: int(n) for i, n in zip(layout.number_sources, lacking, strict=False)
    }
    for i, cells in block.others.items():
        if isinstance(cells, Texts):
            found[layout.sources[i].name] = int((cells.codes == NONE).sum())
    for name, n in found.items():
        if n:
            layout.gaps[name] = layout.gaps.get(name, 0) + n


def _learn_kinds(block: TableBlock, layout: Layout) -> None:
    """What columns of texts are."""
    for i, cells in block.others.items():
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


def _settled(block: TableBlock, layout: Layout, path: Any) -> TableBlock:
    """The same block, where texts that write out numbers and dates are such."""
    numeric: dict[int, Any] = {}
    others: dict[int, Any] = {}
    for i, cells in block.others.items():
        source = layout.sources[i]
        if source.kind in NUMERIC:
            numeric[i] = _as_numbers(source, cells, path)
        elif source.kind == DATE and isinstance(cells, Texts):
            others[i] = _as_dates(source, cells, path)
        elif source.kind != ASIDE:
            others[i] = cells
    if not numeric:
        return block._replace(others=others)
    columns = dict(zip(block.number_sources, range(len(block.number_sources)), strict=True))
    merged_sources = tuple(sorted({*columns, *numeric}))
    numbers = np.empty((block.n_rows, len(merged_sources)), np.float32)
    extra = _matrix_of(list(numeric.values()), block.n_rows)
    places = dict(zip(numeric, range(len(numeric)), strict=True))
    for k, i in enumerate(merged_sources):
        numbers[:, k] = extra[:, places[i]] if i in places else block.numbers[:, columns[i]]
    return TableBlock(numbers, merged_sources, others, block.y, False)


def _learn_numbers(block: TableBlock, layout: Layout) -> None:
    """Where dates begin."""
    for i, cells in block.others.items():
        if layout.sources[i].kind == DATE:
            layout.sources[i] = layout.sources[i]._replace(origin=earliest(cells))


def _with_days(block: TableBlock, layout: Layout) -> Array:
    """All numbers of X, in the order of their sources: dates as days."""
    wanted = layout.number_sources
    if wanted == list(block.number_sources):
        return block.numbers
    numbers = np.empty((block.n_rows, len(wanted)), np.float32)
    columns = {i: k for k, i in enumerate(block.number_sources)}
    for k, i in enumerate(wanted):
        if i in columns:
            numbers[:, k] = block.numbers[:, columns[i]]
        else:
            numbers[:, k] = days_of(block.others[i], layout.sources[i].origin)
    return numbers


def _learn_medians(numbers: Array, lacks: Array | None, layout: Layout) -> None:
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


def _facets(
    block: TableBlock, lacks: Array | None, layout: Layout, learns: bool
) -> list[Facet | WordFacet]:
    """What rows say besides numbers, from left to right."""
    columns = {i: k for k, i in enumerate(layout.number_sources)}
    fills = layout.missing == FILL
    facets: list[Facet | WordFacet] = []
    for i, source in enumerate(layout.sources):
        if i in columns and fills and lacks is not None:
            facets += _gaps(source, lacks[:, columns[i]], layout, learns)
        if source.kind == DATE:
            facets += _parts(source, block.others[i], layout, learns)
        elif source.kind == CATEGORY:
            facets.append(Facet(source.name, VALUE, block.others[i], fills))
        elif source.kind == TEXT:
            texts = block.others[i]
            facets.append(word_facet(source.name, texts))
            facets += _gaps(source, texts.codes == NONE, layout, learns) if fills else []
    return facets


def _gaps(source: Source, lacks: Array, layout: Layout, learns: bool) -> list[Facet]:
    """That a value is missing, if that was met in training."""
    known = layout.categories.known.get((source.name, MISSING))
    is_hashed = layout.categories.n_hash > 0
    if not (known or ((learns or is_hashed) and lacks.any())):
        return []
    codes = np.where(lacks, np.int32(0), np.int32(NONE))
    return [Facet(source.name, MISSING, Texts(strings_of([""]), codes))]


def _parts(source: Source, moments: Any, layout: Layout, learns: bool) -> list[Facet]:
    """The parts of a date that varied in training."""
    found = []
    for part in PARTS:
        is_known = (source.name, part) in layout.categories.known
        if learns or is_known or layout.categories.n_hash:
            texts = part_of(moments, part)
            if not learns or np.count_nonzero(texts.counts()) > 1:
                found.append(Facet(source.name, part, texts))
    return found


def _learn_categories(facets: Sequence[Facet | WordFacet], layout: Layout) -> None:
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


# ---- rows of X ---------------------------------------------------------------------------


def _filled(numbers: Array, lacks: Array | None, layout: Layout, is_bytes: bool) -> Array:
    """Numbers without gaps."""
    if lacks is not None:
        fills = np.zeros(numbers.shape[1], np.float32)
        if layout.missing == FILL:
            fills[:] = [layout.sources[i].fill for i in layout.number_sources]
        numbers = np.where(lacks, fills, numbers)
    if is_bytes and not (numbers.dtype.kind == "f" and (numbers != np.floor(numbers)).any()):
        return numbers.astype(np.uint8, copy=False)
    return numbers.astype(np.float32, copy=False)


def _written(numbers: Array, facets: Sequence[Facet | WordFacet], layout: Layout) -> Any:
    """Numbers, and the columns of pairs behind them."""
    categories, (n_rows, n_numbers) = layout.categories, numbers.shape
    tables = [categories.table_of(facet) for facet in facets]
    both = list(zip(facets, tables, strict=True))
    single = [table[f.texts.codes] for f, table in both if isinstance(f, Facet)]
    columns = np.stack(single, axis=1) if single else np.empty((n_rows, 0), np.int32)
    if layout.is_dense:
        return _with_indicators(numbers, columns, categories.width)
    words = [facet.entries(table) for facet, table in both if isinstance(facet, WordFacet)]
    word_starts, word_columns = _side_by_side(words, n_rows)
    room = n_rows * (n_numbers + columns.shape[1]) + word_columns.size
    starts = np.zeros(n_rows + 1, np.int64 if room > np.iinfo(np.int32).max else np.int32)
    indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
    n = _write_entries(numbers, columns, word_starts, word_columns, starts, indices, values)
    shape = n_rows, n_numbers + categories.width
    return sp.csr_matrix((values[:n], indices[:n], starts), shape=shape)


def _with_indicators(numbers: Array, columns: Array, width: int) -> Array:
    """Dense rows; a column for each source that had gaps in training."""
    if width == 0:
        return numbers
    found = np.zeros((len(numbers), numbers.shape[1] + width), numbers.dtype)
    found[:, : numbers.shape[1]] = numbers
    rows, facets = np.nonzero(columns != NONE)
    found[rows, numbers.shape[1] + columns[rows, facets]] = 1
    return found


def _side_by_side(words: Sequence[tuple[Array, Array]], n_rows: int) -> tuple[Array, Array]:
    """The entries of several columns of words, row by row."""
    if not words:
        return np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32)
    if len(words) == 1:
        return words[0]
    lengths = [np.diff(starts) for starts, _ in words]
    rows = np.concatenate([np.repeat(np.arange(n_rows), length) for length in lengths])
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.sum(lengths, axis=0))])
    return starts, np.concatenate([columns for _, columns in words])[order]


@jit
def _write_entries(
    numbers: Any, columns: Any, word_starts: Any, word_columns: Any, starts: Any, indices: Any,
    values: Any,
) -> Any:  # fmt: skip
    """Write numbers that are not 0, and a 1 for each pair behind them, rising; return how many.

    Hashed pairs may meet in a column, where they add up; a word counts once.
    """
    n_numbers, n = numbers.shape[1], 0
    for i in range(numbers.shape[0]):
        for j in range(n_numbers):
            if numbers[i, j] != 0:
                indices[n], values[n] = j, numbers[i, j]
                n += 1
        first = n
        for j in range(columns.shape[1]):
            if columns[i, j] != NONE:
                n = _put_pair(indices, values, first, n, n_numbers + columns[i, j], 1)
        for j in range(word_starts[i], word_starts[i + 1]):
            if word_columns[j] != NONE:
                n = _put_pair(indices, values, first, n, n_numbers + word_columns[j], 0)
        starts[i + 1] = n
    return n


@jit
def _put_pair(indices: Any, values: Any, first: Any, n: Any, column: Any, more: Any) -> Any:
    """Put a 1 where it belongs among the entries of a row, or add `more` where there is one."""
    place = n
    while place > first and indices[place - 1] > column:
        place -= 1
    if place > first and indices[place - 1] == column:
        values[place - 1] += more
        return n
    for k in range(n, place, -1):
        indices[k], values[k] = indices[k - 1], values[k - 1]
    indices[place], values[place] = column, 1
    return n + 1


def without_nan(numbers: Array) -> Array:
    """The same array with 0 in place of NaN."""
    is_absent = np.isnan(numbers)
    if is_absent.any():
        numbers[is_absent] = 0
    return numbers


# ---- numbers and labels of Arrow ---------------------------------------------------------


def _is_byte(kind: Any) -> bool:
    return bool(pa.types.is_uint8(kind) or pa.types.is_boolean(kind))


def _plain_numbers(column: Any) -> Any:
    """The same numbers in a type that has a NumPy twin."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        return pc.cast(column, pa.uint8())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column
    return pc.cast(column, pa.float64())


def _matrix_of(columns: Sequence[Any], n_rows: int) -> Array:
    """Numbers by row: float32 with NaN where there is none, or uint8 if all are and none lacks."""
    if not columns:
        return np.empty((n_rows, 0), np.float32)
    plain = [_plain_numbers(column) for column in columns]
    lacks = any(column.null_count for column in plain)
    types = {column.type for column in plain}
    if not types <= {pa.float64()} and (lacks or not types <= {pa.uint8()}):
        plain = [pc.cast(column, pa.float32(), safe=False) for column in plain]
    batch = pa.RecordBatch.from_arrays(plain, names=[""] * len(plain))
    matrix = batch.to_tensor(null_to_nan=lacks).to_numpy()
    with np.errstate(over="ignore"):
        return np.array(matrix, np.uint8 if matrix.dtype == np.uint8 else np.float32, copy=None)


def _labels_of(column: Any, is_text: bool) -> tuple[Array, Array]:
    """Labels, and where they are flawed."""
    if is_text:
        texts = texts_of(column)
        names = np.array([*texts.values.to_pylist(), ""])
        return names[texts.codes], np.where(texts.codes == NONE, UNLABELLED, LABELLED)
    plain = _plain_numbers(column)
    lacks = plain.is_null().to_numpy(zero_copy_only=False)
    y = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(column.type):
        return y.astype(np.bool_), np.where(lacks, UNLABELLED, LABELLED)
    return y, np.select([lacks | np.isnan(y), np.isinf(y)], [UNLABELLED, INFINITE], LABELLED)
