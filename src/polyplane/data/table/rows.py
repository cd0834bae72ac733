"""Blocks of a table to rows of X: filled and written by the layout.

`laid_out` lets the layout learn from blocks what it leaves open (`learning`), and turns them into
chunks. What is learned and what is applied are one code: rows that were learned from become the
same rows of X again.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from polyplane.data.chunks import Array, Chunk
from polyplane.data.table.blocks import (
    TableBlock,
    as_dates,
    as_numbers,
    large_columns,
    matrix_of,
    scaled,
)
from polyplane.data.table.categories import MISSING, VALUE, Facet, WordFacet, word_facet
from polyplane.data.table.kinds import ASIDE, CATEGORY, DATE, NUMBER, NUMERIC, TEXT
from polyplane.data.table.layout import FILL, Layout, Source
from polyplane.data.table.learning import (
    check_something_is_left,
    learn_categories,
    learn_empty,
    learn_kinds,
    learn_medians,
    learn_origins,
    learn_scales,
    remark_aside,
)
from polyplane.data.table.moments import PARTS, days_of, part_of
from polyplane.data.table.spelling import respelled
from polyplane.data.table.statistics import (
    Key,
    KeyedRows,
    entries_with_columns,
    keyed_rows,
    keys_of,
    one_after_the_other,
)
from polyplane.data.table.texts import NONE, Texts, merged, strings_of
from polyplane.engine.inspection import LARGEST, largest_magnitude
from polyplane.engine.jit import jit
from polyplane.engine.tiles import at, lowest_bit, put, span

__all__ = ["laid_out"]

MARKS = 63  # bits of a word, all but the sign
MOST_MARKS = 16 * MARKS  # columns of pairs that are put in order as bits


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
        first = blocks[0].number_sources
        large = {
            i: np.concatenate([_in_full(block, i) for block in blocks])
            for i in sorted({i for block in blocks for i in block.large})
        }
        blocks.clear()
        yield TableBlock(numbers, first, others, y, is_bytes, large)


def _in_full(block: TableBlock, source: int) -> Array:
    """The numbers of a source in double precision, as exact as they are known."""
    known = block.large.get(source)
    column = block.numbers[:, block.number_sources.index(source)]
    return column.astype(np.float64) if known is None else known


def _joined(parts: Sequence[Any]) -> Any:
    return merged(parts) if isinstance(parts[0], Texts) else pa.concat_arrays(parts)


def _matrix(block: TableBlock, layout: Layout, path: Any) -> Any:
    """The rows of X; a layout that is open is learned from them, or grows."""
    learns = not layout.is_learned
    if learns:
        learn_kinds(block.others, layout)
    block = _settled(block, layout, path)
    if learns:
        learn_origins(block.others, layout)
        learn_scales(block.large, layout)
    numbers = _with_days(block, layout)
    for i, reals in block.large.items():
        numbers[:, layout.number_sources.index(i)] = scaled(layout.sources[i], reals)
    lacks = _gaps_of(block, numbers)
    lacking = np.zeros(numbers.shape[1], np.int64)
    if lacks is not None:
        _count_true(lacks, lacking)
    if learns:
        learn_medians(numbers, lacking > 0, layout)
        if not layout.grows:
            learn_empty(lacking, len(numbers), layout)
    if learns or path is not None:  # prediction of frames changes nothing
        _count_gaps(block, lacking, layout)
    facets = _facets(block, lacks, layout, learns)
    if learns and not layout.grows:
        learn_categories(facets, layout)
    elif layout.grows:
        layout.categories.meet(facets)
    if learns:
        layout.is_learned = True
        check_something_is_left(layout, path)
        remark_aside(layout, path)
    keyed = _keyed(block, numbers, layout)
    numbers = _filled(numbers, lacks, layout, block.is_bytes and layout.is_dense)
    if layout.is_frozen and not learns and largest_magnitude(numbers) > LARGEST:
        numbers = np.clip(numbers, np.float32(-LARGEST), np.float32(LARGEST))
    tables = [layout.categories.table_of(facet) for facet in facets]
    rows = _written(numbers, facets, tables, layout)
    if layout.statistics is not None and keyed is not None:
        behind = layout.statistics.columns(keyed)
        entries = entries_with_columns(rows.data, rows.indices, rows.indptr, behind, rows.shape[1])
        rows = sp.csr_matrix(entries, shape=(len(behind), layout.width))
    return rows


def _keyed(block: TableBlock, numbers: Array, layout: Layout) -> KeyedRows | None:
    """Return the keys of rows where target statistics need them; a training keeps them apart."""
    if not layout.keeps_keys:
        keys = None if layout.statistics is None else layout.statistics.keys
        return None if keys is None else _with_keys(block, numbers, layout, keys)
    if layout.keys is None:
        kinds = [source.kind for source in layout.sources]
        categories = {i: cells for i, cells in block.others.items() if kinds[i] == CATEGORY}
        columns = {
            i: numbers[:, k].astype(np.float32)
            for k, i in enumerate(layout.number_sources)
            if kinds[i] == NUMBER and not layout.sources[i].is_scaled
        }
        layout.keys = keys_of(categories, columns)
    keyed = _with_keys(block, numbers, layout, layout.keys)
    layout.keyed = one_after_the_other(layout.keyed, keyed)
    return None


def _with_keys(block: TableBlock, numbers: Array, layout: Layout, keys: Sequence[Key]) -> KeyedRows:
    """Return the values of these keys, which are texts or numbers."""
    columns = {i: k for k, i in enumerate(layout.number_sources)}
    cells = [
        block.others[key.place]
        if key.place in block.others
        else numbers[:, columns[key.place]].astype(np.float32)
        for key in keys
    ]
    return keyed_rows(keys, cells, len(numbers))


def _gaps_of(block: TableBlock, numbers: Array) -> Array | None:
    """True where a number is missing; None if none is."""
    if numbers.dtype.kind != "f":
        return None
    lacks: Array = np.isnan(numbers)
    return lacks if lacks.any() else None


@jit
def _count_true(flags: Any, counts: Any) -> None:
    """Count those of each column, in a sixth of the time that NumPy takes."""
    for i in range(flags.shape[0]):
        for j in range(flags.shape[1]):
            counts[j] += flags[i, j]


def _count_gaps(block: TableBlock, lacking: Array, layout: Layout) -> None:
    """Add the number of missing values of each source to the layout."""
    both = zip(layout.number_sources, lacking.tolist(), strict=True)
    found = {layout.sources[i].name: n for i, n in both}
    for i, cells in block.others.items():
        if isinstance(cells, Texts):
            found[layout.sources[i].name] = cells.n_missing
    for name, n in found.items():
        if n:
            layout.gaps[name] = layout.gaps.get(name, 0) + n


def _settled(block: TableBlock, layout: Layout, path: Any) -> TableBlock:
    """Return the block with texts that write out numbers and dates as such."""
    numeric: dict[int, Any] = {}
    others: dict[int, Any] = {}
    for i, cells in block.others.items():
        source = layout.sources[i]
        if source.kind in NUMERIC:
            numeric[i] = as_numbers(source, cells, path)
        elif source.kind == DATE and isinstance(cells, Texts):
            others[i] = as_dates(source, cells, path)
        elif source.kind == CATEGORY:
            others[i] = respelled(cells)
        elif source.kind != ASIDE:
            others[i] = cells
    if not numeric:
        return block._replace(others=others)
    columns = dict(zip(block.number_sources, range(len(block.number_sources)), strict=True))
    merged_sources = tuple(sorted({*columns, *numeric}))
    numbers = np.empty((block.n_rows, len(merged_sources)), np.float32)
    extra = matrix_of(list(numeric.values()), block.n_rows)
    places = dict(zip(numeric, range(len(numeric)), strict=True))
    for k, i in enumerate(merged_sources):
        numbers[:, k] = extra[:, places[i]] if i in places else block.numbers[:, columns[i]]
    large = {**block.large, **large_columns(extra, numeric)}
    return TableBlock(numbers, merged_sources, others, block.y, False, large)


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


def _facets(
    block: TableBlock, lacks: Array | None, layout: Layout, learns: bool
) -> list[Facet | WordFacet]:
    """Return the categories of rows, from left to right."""
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
    """Return a category for missing values, if training met them."""
    known = layout.categories.known.get((source.name, MISSING))
    is_hashed = layout.categories.n_hash > 0
    if not (known or ((learns or is_hashed) and lacks.any())):
        return []
    codes = np.where(lacks, np.int32(0), np.int32(NONE))
    return [Facet(source.name, MISSING, Texts(_no_text(), codes))]


@functools.cache
def _no_text() -> Any:
    return strings_of([""])


def _parts(source: Source, moments: Any, layout: Layout, learns: bool) -> list[Facet]:
    """The parts of a date that varied in training."""
    found = []
    for part in PARTS:
        is_known = (source.name, part) in layout.categories.known
        if learns or is_known or layout.categories.n_hash:
            texts = part_of(moments, part)
            if not learns or texts.used.size > 1:
                found.append(Facet(source.name, part, texts))
    return found


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


def _written(
    numbers: Array, facets: Sequence[Facet | WordFacet], tables: Sequence[Array], layout: Layout
) -> Any:
    """Numbers, and the columns of pairs behind them."""
    categories = layout.categories
    if layout.is_dense:
        return _with_indicators(
            numbers, _columns_of(facets, tables, len(numbers)), categories.width
        )
    names = {source.name for source in layout.sources}
    is_narrow = len(names) == len(layout.sources) and 0 < categories.width <= MOST_MARKS
    single = [facet for facet in facets if isinstance(facet, Facet)]
    if is_narrow and not categories.n_hash and 0 < len(single) == len(facets):
        entries = _marked_entries(numbers, single, tables, categories.width)
    else:
        entries = _sorted_entries(numbers, facets, tables)
    return sp.csr_matrix(entries, shape=(len(numbers), numbers.shape[1] + categories.width))


def _columns_of(facets: Sequence[Facet | WordFacet], tables: Sequence[Array], n_rows: int) -> Array:
    """The column that each row has of each facet that says one thing."""
    both = zip(facets, tables, strict=True)
    single = [table[facet.texts.codes] for facet, table in both if isinstance(facet, Facet)]
    return np.stack(single, axis=1) if single else np.empty((n_rows, 0), np.int32)


def _room_for(n_rows: int, n_entries: int) -> tuple[Array, Array, Array]:
    """Starts of rows, columns and values of so many entries."""
    starts = np.zeros(n_rows + 1, np.int64 if n_entries > np.iinfo(np.int32).max else np.int32)
    return starts, np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)


def _sorted_entries(
    numbers: Array, facets: Sequence[Facet | WordFacet], tables: Sequence[Array]
) -> tuple[Array, Array, Array]:
    """Values, columns and starts of rows, whatever they hold."""
    n_rows = len(numbers)
    columns = _columns_of(facets, tables, n_rows)
    both = zip(facets, tables, strict=True)
    words = [facet.entries(table) for facet, table in both if isinstance(facet, WordFacet)]
    word_starts, word_columns = _side_by_side(words, n_rows)
    n_entries = n_rows * (numbers.shape[1] + columns.shape[1]) + word_columns.size
    starts, indices, values = _room_for(n_rows, n_entries)
    n = _write_entries(numbers, columns, word_starts, word_columns, starts, indices, values)
    return values[:n], indices[:n], starts


def _marked_entries(
    numbers: Array, facets: Sequence[Facet], tables: Sequence[Array], width: int
) -> tuple[Array, Array, Array]:
    """Return entries where no two pairs of a row share a column, and columns are not too many."""
    numbers = np.ascontiguousarray(numbers)
    codes = np.stack([facet.texts.codes for facet in facets]).astype(np.int32, copy=False)
    no_value_first = (part for table in tables for part in (table[-1:], table[:-1]))
    columns = np.concatenate(list(no_value_first))
    firsts = np.cumsum([1, *map(len, tables)])[:-1]
    marks = np.where(columns == NONE, 0, np.int64(1) << (columns % MARKS).astype(np.int64))
    words = np.where(columns == NONE, 0, columns // MARKS).astype(np.int64)
    row = np.zeros(-(-width // MARKS), np.int64)
    starts, indices, values = _room_for(
        len(numbers), len(numbers) * (numbers.shape[1] + len(codes))
    )
    n = _write_marked(numbers, codes, Marks(firsts, words, marks), row, starts, indices, values)
    return values[:n], indices[:n], starts


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


class Marks(NamedTuple):
    """Columns of pairs as bits of words: those of facet j are from `firsts[j]` on."""

    firsts: Array
    words: Array
    bits: Array  # 0 for what has no column


@jit
def _write_marked(
    numbers: Any, codes: Any, marks: Any, row: Any, starts: Any, indices: Any, values: Any
) -> Any:
    """Write numbers that are not 0, and a 1 for each pair behind them; return how many.

    Pairs of a row are marked as bits, which then stand in order.
    """
    source, of_rows, out, columns = span(numbers), span(codes), span(values), span(indices)
    words, bits, marked = span(marks.words), span(marks.bits), span(row)
    (n_rows, n_numbers), n = numbers.shape, 0
    for i in range(n_rows):
        for j in range(n_numbers):
            number = at(source, i * n_numbers + j)
            put(columns, n, np.int32(j))
            put(out, n, number)
            n += number != 0
        for j in range(codes.shape[0]):
            k = marks.firsts[j] + at(of_rows, j * n_rows + i)
            word = at(words, k)
            put(marked, word, at(marked, word) | at(bits, k))
        for k in range(row.size):
            word = at(marked, k)
            put(marked, k, 0)
            first = n_numbers + k * MARKS
            while word:
                put(columns, n, np.int32(first + lowest_bit(word)))
                put(out, n, np.float32(1))
                word &= word - 1
                n += 1
        starts[i + 1] = n
    return n


@jit
def _write_entries(
    numbers: Any,
    columns: Any,
    word_starts: Any,
    word_columns: Any,
    starts: Any,
    indices: Any,
    values: Any,
) -> Any:
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
