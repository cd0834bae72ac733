"""Columns of a table to blocks: what rows say, as numbers, texts and dates, and their labels.

A reader or a frame gives `TableRows` Arrow columns. Rows with a flaw are met here, where the place
of a cell is still known; `rows` turns blocks into rows of X.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyplane.data.chunks import Array, BadRows, DataError
from polyplane.data.table.kinds import (
    ASIDE,
    CATEGORY,
    DATE,
    EMPTY,
    NUMBER,
    NUMERIC,
    OPEN,
    TEXT,
    counts_rows,
    identifies_rows,
    is_called_identifier,
    known_numbers,
    numbers_of_texts,
)
from polyplane.data.table.layout import ERROR, FILL, SKIP, Layout, Places, Source, TableOptions
from polyplane.data.table.moments import are_dates, as_moments, moments_of_texts, seconds_of
from polyplane.data.table.spelling import texts_of
from polyplane.data.table.texts import NONE, Texts, arrow_of, is_null
from polyplane.engine.inspection import LARGEST

__all__ = [
    "ErrorAt", "TableBlock", "TableRows", "as_dates", "as_numbers", "large_columns",
    "matrix_of", "reals_of", "scaled", "without_nan",
]  # fmt: skip

LABELLED, UNLABELLED, INFINITE = range(3)  # what is known of the label of a row
ErrorAt = Callable[[int, int, str], DataError]  # row of the block, position of the column, problem


class TableBlock(NamedTuple):
    """Some rows of a table by column, and their labels."""

    numbers: Array  # by row; NaN where there is none
    number_sources: tuple[int, ...]  # the source of each column of numbers
    others: dict[int, Any]  # texts or dates by source
    y: Array
    is_bytes: bool  # whether numbers are, but for gaps
    large: Mapping[int, Array]  # before a layout is learned: large numbers in full, by source

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)


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
        if not (self.layout.is_learned or self.layout.is_begun):
            self.layout.is_begun = True
            self._set_identifiers_aside(columns)
        numeric: dict[int, Any] = {}
        others: dict[int, Any] = {}
        for i, place in self.read_sources:
            source = self.layout.sources[i]
            cells = _cells_of(source, columns[place], self.path)
            if source.is_scaled:
                cells = arrow_of(scaled(source, reals_of(cells)))
            (numeric if source.kind in NUMERIC else others)[i] = cells
        numbers = matrix_of(list(numeric.values()), n_rows)
        large = {} if self.layout.is_learned else large_columns(numbers, numeric)
        if self.layout.is_frozen:
            _saturate(numbers, list(numeric.values()))
        is_bytes = all(_is_byte(cells.type) for cells in numeric.values())
        y, label_flaws = self.labels(columns, n_rows)
        block = TableBlock(numbers, tuple(numeric), others, y, is_bytes, large)
        return self._without_flaws(block, label_flaws, error_at)

    def _set_identifiers_aside(self, columns: Mapping[int, Any]) -> None:
        """Do not read numbers that tell rows apart and nothing else; remark those that may."""
        sources = self.layout.sources
        for i, place in self.read_sources:
            source = sources[i]
            if source.kind != NUMBER or not _may_be_identifier(columns[place].type):
                continue
            numbers = reals_of(columns[place])
            if not identifies_rows(numbers):
                continue
            is_clear = counts_rows(numbers) or is_called_identifier(source.name)
            if is_clear and len(self.read_sources) > 1:
                sources[i] = source._replace(kind=ASIDE)
            elif self.path is not None:
                words = (
                    f"column {source.name!r} holds a different whole number in every row (likely "
                    f"an identifier) and is read as a number; to leave it out, pass "
                    f"drop=({source.name!r},)"
                )
                self.layout.remark(words, self.path)

    @property
    def read_sources(self) -> list[tuple[int, int]]:
        """The sources that rows are made of, and where they stand."""
        return [
            (i, place)
            for i, (place, source) in enumerate(
                zip(self.places.sources, self.layout.sources, strict=True)
            )
            if place is not None and source.kind != ASIDE
        ]

    def _without_flaws(
        self, block: TableBlock, label_flaws: Array, error_at: ErrorAt
    ) -> TableBlock:
        """The rows that are sound."""
        numbers, others, y = block.numbers, block.others, block.y
        keep = self.sound_rows(numbers, others, label_flaws, error_at, block.number_sources)
        if keep.all():
            return block
        others = {i: _kept(cells, keep) for i, cells in others.items()}
        kept = {i: reals[keep] for i, reals in block.large.items()}
        large = {
            i: reals for i, reals in kept.items() if np.nanmax(abs(reals), initial=0) > LARGEST
        }
        y = y[keep] if y.size else y
        return block._replace(numbers=numbers[keep], others=others, y=y, large=large)

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
        is_sound = bool(np.isfinite(numbers).all())
        is_sound = is_sound or (not asks and not np.isinf(numbers).any())
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


def _cells_of_texts(source: Source, texts: Texts, path: Any) -> Any:
    """Return cells written as texts: an Arrow array of numbers or dates, or `Texts`."""
    if source.kind in NUMERIC:
        return as_numbers(source, texts, path)
    return as_dates(source, texts, path) if source.kind == DATE else texts


def _cells_of(source: Source, column: Any, path: Any) -> Any:
    """Return the cells of an Arrow array as their kind of column has them."""
    kind = column.type
    is_text = pa.types.is_dictionary(kind) or kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
    )
    if is_text or source.kind in (CATEGORY, TEXT, *OPEN):
        return _cells_of_texts(source, texts_of(column), path)
    is_moment = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if source.kind == EMPTY and is_moment:
        return pa.nulls(len(column), pa.float64())
    if source.kind == DATE:
        if is_moment or pa.types.is_null(kind):
            return as_moments(column)
        if pa.types.is_floating(kind) and pc.all(pc.is_null(column, nan_is_null=True)).as_py():
            return as_moments(pa.nulls(len(column)))
        raise _changed(source, f"{kind}", "dates", path)
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return seconds_of(column)
    if is_moment:
        raise _changed(source, "dates", "numbers", path)
    return column


def as_numbers(source: Source, texts: Texts, path: Any) -> Any:
    if source.kind == EMPTY:
        numbers = known_numbers(texts)
        return arrow_of(numbers, np.isnan(numbers))
    numbers, wrong = numbers_of_texts(texts)
    if wrong is not None:
        raise _changed(source, f"text such as {wrong!r}", "numbers", path)
    return arrow_of(numbers)


def as_dates(source: Source, texts: Texts, path: Any) -> Any:
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


# ---- numbers and labels of Arrow ---------------------------------------------------------


def _may_be_identifier(kind: Any) -> bool:
    is_small = _is_byte(kind) or pa.types.is_int8(kind)
    return not is_small and (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_byte(kind: Any) -> bool:
    return bool(pa.types.is_uint8(kind) or pa.types.is_boolean(kind))


def _plain_numbers(column: Any) -> Any:
    """Return the numbers in a type that has a NumPy twin."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        return pc.cast(column, pa.uint8())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column
    return pc.cast(column, pa.float64())


def matrix_of(columns: Sequence[Any], n_rows: int) -> Array:
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


def reals_of(column: Any) -> Array:
    """Numbers of an Arrow array in double precision, NaN where there is none."""
    reals = pc.cast(_plain_numbers(column), pa.float64(), safe=False)
    batch = pa.RecordBatch.from_arrays([reals], names=[""])  # whose tensor does not load pandas
    return np.asarray(batch.to_tensor(null_to_nan=reals.null_count > 0).to_numpy().ravel())


def scaled(source: Source, reals: Array) -> Array:
    """Numbers on the scale of their column, none beyond what products bear; infinity stays."""
    with np.errstate(invalid="ignore"):
        found = (reals - source.origin) / source.unit
    return np.where(np.isinf(reals), reals, np.clip(found, -LARGEST, LARGEST))


def large_columns(numbers: Array, columns: Mapping[int, Any]) -> dict[int, Array]:
    """The columns of a matrix in which some numbers are beyond what products bear, by source."""
    if numbers.dtype == np.uint8 or not len(numbers):
        return {}
    peaks = np.where(np.isfinite(numbers), np.abs(numbers), 0).max(axis=0)
    both = zip(columns.items(), peaks.tolist(), strict=True)
    return {i: reals_of(cells) for (i, cells), peak in both if peak > LARGEST}


def _saturate(numbers: Array, columns: Sequence[Any]) -> None:
    """Write what products bear in place of finite numbers that have no float32."""
    if numbers.dtype == np.uint8 or not np.isinf(numbers).any():
        return
    for k in np.flatnonzero(np.isinf(numbers).any(axis=0)).tolist():
        is_finite = np.isfinite(reals_of(columns[k])) & np.isinf(numbers[:, k])
        numbers[is_finite, k] = np.copysign(LARGEST, numbers[is_finite, k])


def _labels_of(column: Any, is_text: bool) -> tuple[Array, Array]:
    """Labels, and where they are flawed."""
    if is_text:
        return _text_labels(texts_of(column))
    plain = _plain_numbers(column)
    lacks = is_null(plain)
    values = [None, plain.buffers()[1]]  # without marks of those that lack
    bare = pa.Array.from_buffers(plain.type, len(plain), values, offset=plain.offset)
    y = pa.RecordBatch.from_arrays([bare], names=[""]).to_tensor().to_numpy().ravel()
    y = np.where(lacks, y.dtype.type(0), y)
    if pa.types.is_boolean(column.type):
        return y.astype(np.bool_), np.where(lacks, UNLABELLED, LABELLED)
    return y, _flaws(y, lacks | np.isnan(y))


def _text_labels(texts: Texts) -> tuple[Array, Array]:
    present = np.array([*texts.present().to_pylist(), ""])
    names = np.empty(len(texts.values) + 1, present.dtype)  # NONE reads the last
    names[texts.used], names[-1] = present[:-1], ""
    if texts.n_missing == 0:
        return names.take(texts.codes), np.full(texts.codes.size, LABELLED)
    return names[texts.codes], np.where(texts.codes == NONE, UNLABELLED, LABELLED)


def _flaws(y: Array, lacks: Array) -> Array:
    if np.isfinite(y).all() and not lacks.any():
        return np.full(y.size, LABELLED)
    return np.select([lacks, np.isinf(y)], [UNLABELLED, INFINITE], LABELLED)


def without_nan(numbers: Array) -> Array:
    """Return the array with 0 in place of NaN."""
    is_absent = np.isnan(numbers)
    if is_absent.any():
        numbers[is_absent] = 0
    return numbers
