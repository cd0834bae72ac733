"""Columns of a table, from CSV text, Parquet or Arrow, to rows of numbers and labels.

Label     a column by name or by position (0 is the first, -1 the last), None for no label, which
          makes `y` empty; "auto" is the label of the files before, if it is there, and in the
          first file a column called label, class, target or y, else the last.
Numbers   come first in X, in the order of the file. Dense float32, or uint8 if every one is.
Text      becomes categories (see `categories`) after the numbers, and X is then CSR: always, so
          that all chunks of a file and of its test part are stored alike.
Missing   no value, NaN, or a text such as ? and NA: an error in its row, or read as 0 (a text
          sets no column then), or the row is left out. A row without a label is never read as 0.
          An infinite number is not missing: it is an error in its row.
Layout    what has been learned about columns. Handed from file to file it keeps columns in place:
          they are found by name, or in order where a file has no names; other columns of the
          new file are not read. Frozen, it gives no column to new categories.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from polyplane.data.chunks import Array, BadRows, Chunk, DataError, placed
from polyplane.data.table.categories import NONE, Categories, Texts, texts_of
from polyplane.engine.jit import jit

__all__ = [
    "AUTO",
    "ErrorAt",
    "Layout",
    "Places",
    "TableOptions",
    "TableRows",
    "label_by_name",
    "places_in",
    "without_nan",
]

AUTO = "auto"
LABEL_NAMES = "label", "class", "target", "y"  # in any case of letters
CHOICES = {"missing": ("error", "zero", "skip"), "categories": ("onehot", "hash")}
LABELLED, UNLABELLED, INFINITE = range(3)  # what is known of the label of a row
log = logging.getLogger("polyplane")
ErrorAt = Callable[[int, int, str], DataError]  # row of the block, position of the column, problem


@dataclass(frozen=True)
class TableOptions:
    """How the columns of a table are read; columns are named, or given by position from 0."""

    label: str | int | None = AUTO
    drop: Sequence[str | int] = ()  # columns that are not read
    text_columns: Sequence[str | int] = ()  # categories, or a label, even if they look like numbers
    missing: str = "error"
    categories: str = "onehot"
    n_hash: int = 4096

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {known}.")
        if not 1 <= self.n_hash < 1 << 31:
            raise ValueError(f"n_hash is {self.n_hash}, expected 1 to 2147483647.")


class Source(NamedTuple):
    """A column of the file that rows are made of."""

    name: str
    is_text: bool


@dataclass
class Layout:
    """Which columns rows are made of, and those of text values; empty until a file is read."""

    sources: list[Source] = field(default_factory=list)
    label: str | None = None  # its name, where columns have names
    label_position: int | None = None
    label_is_text: bool = False
    categories: Categories = field(default_factory=Categories)
    n_left_out: int = 0  # rows without a value, under missing="skip"
    remarks: set[str] = field(default_factory=set, repr=False, compare=False)  # that were made

    def remark(self, words: str, path: Any, line: int | None = None) -> None:
        """Tell the user something about a file, once in all passes over it."""
        remark = placed(words, path, line)
        if remark not in self.remarks:
            self.remarks.add(remark)
            log.warning(remark)

    @property
    def feature_names(self) -> list[str]:
        """What the columns of X mean, as far as they are known; hashed ones are numbered."""
        numbers = [source.name for source in self.sources if not source.is_text]
        pairs = [f"{source}={value}" for source, value in self.categories.numbers]
        return numbers + pairs + [f"hash {k}" for k in range(self.categories.n_hash)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        return {
            "sources": [list(source) for source in self.sources],
            "label": self.label,
            "label_position": self.label_position,
            "label_is_text": self.label_is_text,
            "n_hash": self.categories.n_hash,
            "categories": [list(pair) for pair in self.categories.numbers],
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any], is_frozen: bool) -> "Layout":
        """The layout again, to read other files with the same columns."""
        pairs = [(str(source), str(value)) for source, value in plain["categories"]]
        numbers = {pair: number for number, pair in enumerate(pairs)}
        sources = [Source(str(name), bool(is_text)) for name, is_text in plain["sources"]]
        categories = Categories(int(plain["n_hash"]), is_frozen, numbers)
        label = plain["label"], plain["label_position"], bool(plain["label_is_text"])
        return Layout(sources, *label, categories)


class Places(NamedTuple):
    """Where the columns of the layout stand in one file, and how errors call its columns."""

    numbers: list[int]
    texts: list[int]
    label: int | None
    names: list[str] | None

    def within(self, position: int) -> str:
        """Words for the column where it has a name; its position is part of every error."""
        return f" in column {self.names[position]!r}" if self.names else ""


def places_in(
    layout: Layout,
    names: list[str] | None,
    looks_like_text: Sequence[bool],
    options: TableOptions,
    path: Any,
) -> Places:
    """The columns of a file by what they are for; an empty layout is filled by this file."""
    width = len(looks_like_text)
    label = _label_position(layout, names, width, options.label, path)
    forced = {_position(names, width, column, path) for column in options.text_columns}
    left_out = {_position(names, width, column, path) for column in options.drop} | {label}
    present = [position for position in range(width) if position not in left_out]
    found = [
        Source(names[p] if names else str(p + 1), looks_like_text[p] or p in forced)
        for p in present
    ]
    if not found:
        raise DataError(
            f"found {width} column{'s' * (width != 1)}, expected at least one besides the label; "
            "check the delimiter, or say label=None if there is no label",
            path,
        )
    if not layout.sources:
        layout.sources = found
        layout.label_position = label
        if label is not None:
            layout.label = names[label] if names else None
            layout.label_is_text = looks_like_text[label] or label in forced
        layout.categories.n_hash = _hashed_width(found, options)
    at = list(zip(layout.sources, _matched(layout, names, found, present, path), strict=True))
    numbers = [place for source, place in at if not source.is_text]
    return Places(numbers, [place for source, place in at if source.is_text], label, names)


def _hashed_width(sources: Iterable[Source], options: TableOptions) -> int:
    has_text = any(source.is_text for source in sources)
    return options.n_hash if has_text and options.categories == "hash" else 0


def _matched(
    layout: Layout, names: list[str] | None, found: list[Source], present: list[int], path: Any
) -> list[int]:
    """The position in this file of each source of the layout."""
    wanted = [source.name for source in layout.sources]
    if names is None or wanted == [source.name for source in found]:
        if len(present) != len(wanted):
            raise DataError(
                f"found {len(present)} columns besides the label, expected {len(wanted)} as in "
                "the file before",
                path,
            )
        return present
    return [_position(names, len(names), name, path) for name in wanted]


def _label_position(
    layout: Layout, names: list[str] | None, width: int, label: str | int | None, path: Any
) -> int | None:
    if label is None:
        return None
    if label != AUTO:
        return _position(names, width, label, path)
    if not layout.sources:
        by_name = label_by_name(names or [])
        return width - 1 if by_name is None else by_name
    if names and layout.label is not None:
        return names.index(layout.label) if layout.label in names else None
    return layout.label_position if width > len(layout.sources) else None


def label_by_name(names: Sequence[str]) -> int | None:
    """The column whose name says that it is the label, if any."""
    lower = [name.strip().lower() for name in names]
    return next((lower.index(name) for name in LABEL_NAMES if name in lower), None)


def _position(names: list[str] | None, width: int, column: str | int, path: Any) -> int:
    """Where a column stands that was asked for by name or position."""
    if isinstance(column, int):
        if not -width <= column < width:
            raise DataError(f"found {width} columns, expected one at position {column}", path)
        return column % width
    count = (names or []).count(column)
    if names is None or count != 1:
        found = "no names of columns" if names is None else f"{count} columns of that name"
        known = f"; the names are {', '.join(map(repr, names[:20]))}" if names else ""
        raise DataError(f"expected one column called {column!r}, found {found}{known}", path)
    return names.index(column)


@dataclass
class TableRows:
    """Turns blocks of columns into rows; those with a flaw are met by `bad`."""

    places: Places
    layout: Layout
    options: TableOptions
    bad: BadRows
    path: Any

    def rows(self, columns: Mapping[int, Any], error_at: ErrorAt) -> Chunk:
        """Rows and labels of Arrow arrays by position."""
        n_rows = len(next(iter(columns.values())))
        numbers = _matrix_of([columns[place] for place in self.places.numbers], n_rows)
        texts = [texts_of(columns[place]) for place in self.places.texts]
        y, label_flaws = self.labels(columns, n_rows)
        keep = self.sound_rows(numbers, texts, label_flaws, error_at)
        if not keep.all():
            numbers, texts = numbers[keep], [column.kept(keep) for column in texts]
            y = y[keep] if y.size else y
        if texts:
            return Chunk(self._with_categories(without_nan(numbers), texts), y)
        is_bytes = all(_is_byte(columns[place].type) for place in self.places.numbers)
        dtype = np.uint8 if is_bytes else np.float32
        return Chunk(without_nan(numbers).astype(dtype, copy=False), y)

    def labels(self, columns: Mapping[int, Any], n_rows: int) -> tuple[Array, Array]:
        """Labels, and where they are flawed; empty if there is no label column."""
        if self.places.label is None:
            return np.empty(0), np.full(n_rows, LABELLED)
        return _labels_of(columns[self.places.label], self.layout.label_is_text)

    def sound_rows(
        self, numbers: Array, texts: Sequence[Texts], label_flaws: Array, error_at: ErrorAt
    ) -> Array:
        """True where a row is kept: all its values are there and finite, or missing ones are 0."""
        no_texts = [column.codes == NONE for column in texts]
        if np.isfinite(numbers).all() and not any(map(np.any, [*no_texts, label_flaws])):
            return np.ones(len(numbers), np.bool_)
        no_value = np.column_stack([np.isnan(numbers), *no_texts])
        left_out = np.zeros(len(numbers), np.bool_)
        if self.options.missing == "skip":
            left_out = no_value.any(axis=1) | (label_flaws == UNLABELLED)
            self.layout.n_left_out += int(left_out.sum())
        is_an_error = self.options.missing == "error"
        flaws = np.column_stack([no_value & is_an_error, label_flaws != LABELLED])
        flaws[:, : numbers.shape[1]] |= np.isinf(numbers)
        positions = [*self.places.numbers, *self.places.texts, self.places.label or 0]
        is_bad = flaws.any(axis=1) & ~left_out
        for row in np.flatnonzero(is_bad).tolist():
            cell = min(np.flatnonzero(flaws[row]).tolist(), key=positions.__getitem__)
            is_number, is_label = cell < numbers.shape[1], cell == flaws.shape[1] - 1
            is_infinite = label_flaws[row] == INFINITE if is_label else False
            is_infinite = bool(np.isinf(numbers[row, cell])) if is_number else is_infinite
            words = self._words(cell, positions[cell], bool(is_infinite))
            self.bad.meet(error_at(row, positions[cell], words))
        return ~(is_bad | left_out)

    def _words(self, cell: int, position: int, is_infinite: bool) -> str:
        within = self.places.within(position)
        n_numbers, n_texts = len(self.places.numbers), len(self.places.texts)
        is_label = cell == n_numbers + n_texts
        if is_infinite and is_label:
            return (
                f"found an infinite label{within}, expected a finite number; if labels are text, "
                "name their column in text_columns"
            )
        if is_infinite:
            return f"found an infinite value{within}, expected a number below 3.4e38"
        if is_label:
            return f"found no label{within}, expected one; missing='skip' leaves the row out"
        expected = "a number" if cell < n_numbers else "a text"
        return (
            f"found no value{within}, expected {expected}; missing='zero' reads it as 0, "
            "missing='skip' leaves the row out"
        )

    def _with_categories(self, numbers: Array, texts: Sequence[Texts]) -> sp.csr_matrix:
        """Numbers, and the columns of their texts behind them."""
        sources = [source.name for source in self.layout.sources if source.is_text]
        categories = self.layout.categories
        columns = np.sort(categories.columns_of(sources, texts, self.path), axis=1)
        n_rows, n_numbers = numbers.shape
        starts = np.zeros(n_rows + 1, np.int32)
        room = n_rows * (n_numbers + columns.shape[1])
        indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
        n = _write_entries(numbers, columns, starts, indices, values)
        shape = n_rows, n_numbers + categories.width
        return sp.csr_matrix((values[:n], indices[:n], starts), shape=shape)


@jit
def _write_entries(numbers: Any, columns: Any, starts: Any, indices: Any, values: Any) -> Any:
    """Write numbers that are not 0, and a 1 for each category behind them; return how many.

    Categories of a row increase; hashed ones may meet in a column, where they add up.
    """
    n_numbers, n = numbers.shape[1], 0
    for i in range(numbers.shape[0]):
        for j in range(n_numbers):
            if numbers[i, j] != 0:
                indices[n], values[n] = j, numbers[i, j]
                n += 1
        last = NONE
        for j in range(columns.shape[1]):
            if columns[i, j] == last and last != NONE:
                values[n - 1] += 1
            elif columns[i, j] != NONE:
                last = columns[i, j]
                indices[n], values[n] = n_numbers + last, 1
                n += 1
        starts[i + 1] = n
    return n


def without_nan(numbers: Array) -> Array:
    """The same array with 0 in place of NaN."""
    is_absent = np.isnan(numbers)
    if is_absent.any():
        numbers[is_absent] = 0
    return numbers


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
        names = np.array([value or "" for value in texts.values] + [""])
        return names[texts.codes], np.where(texts.codes == NONE, UNLABELLED, LABELLED)
    plain = _plain_numbers(column)
    is_null = plain.is_null().to_numpy(zero_copy_only=False)
    y = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(column.type):
        return y.astype(np.bool_), np.where(is_null, UNLABELLED, LABELLED)
    return y, np.select([is_null | np.isnan(y), np.isinf(y)], [UNLABELLED, INFINITE], LABELLED)
