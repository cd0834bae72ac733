"""Record batches of Arrow to rows: scalar columns, lists as rows, or lists of non-zeros."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from polyplane.data.chunks import Array, BadRows, Chunk, DataError
from polyplane.data.table.blocks import ErrorAt, TableBlock, TableRows, without_nan
from polyplane.data.table.kinds import (
    CATEGORY,
    FLAG,
    KINDS,
    LIST,
    NUMBER,
    UNDECIDED,
    UNKNOWN,
    kind_of_type,
)
from polyplane.data.table.layout import (
    AUTO,
    Layout,
    Places,
    TableOptions,
    label_by_name,
    places_in,
)

__all__ = ["HAS_LABELS", "N_FEATURES", "BatchRows"]

SPARSE = ["indices", "values"]
N_FEATURES, HAS_LABELS = b"polyplane.n_features", b"polyplane.has_labels"
LARGEST_INDEX = (1 << 31) - 2  # the number of features must fit int32 too


@dataclass
class BatchRows:
    """Turns the batches of one file into rows; `names_read` comes first."""

    path: Any
    options: TableOptions
    bad: BadRows
    layout: Layout
    n_rows: int = 0  # read so far
    width: int = 0  # of rows made of lists, as far as it is known

    def names_read(self, schema: Any, metadata: Mapping[bytes, bytes]) -> list[str]:
        """Decide what each column is for; return the names of those that are read."""
        names, kinds = schema.names, [kind_of_type(kind) for kind in schema.types]
        options = self.options
        ends_with_list = kinds[-1:] == [LIST] and label_by_name(names) is None
        if options.label == AUTO and (ends_with_list or metadata.get(HAS_LABELS) == b"0"):
            options = replace(options, label=None)
        places = places_in(self.layout, names, kinds, options, self.path)
        self.table = TableRows(places, self.layout, options, self.bad, self.path)
        self.width = _width_stated(metadata.get(N_FEATURES, b""))
        self.form = self._form_of(names, kinds, places)
        self._check_kinds(schema, kinds, places)
        used = {*places.numbers, *places.texts, places.label}
        return [name for place, name in enumerate(names) if place in used]

    def _form_of(
        self, names: Sequence[str], kinds: Sequence[str], places: Places
    ) -> Callable[[Any, ErrorAt], Chunk | TableBlock]:
        numbers = sorted(names[place] for place in places.numbers)
        are_lists = not places.texts and all(kinds[place] == LIST for place in places.numbers)
        if are_lists and numbers == SPARSE:
            return self._sparse_rows
        return self._list_rows if are_lists and len(numbers) == 1 else self._table_rows

    def _check_kinds(self, schema: Any, kinds: Sequence[str], places: Places) -> None:
        """A column of another kind than its use asks for is an error."""
        is_table = self.form == self._table_rows
        expected: dict[int, tuple[str, ...]] = {
            place: (LIST, UNKNOWN) if is_table else (UNKNOWN,) for place in places.numbers
        }
        expected |= dict.fromkeys(places.texts, (LIST, UNKNOWN))
        if places.label is not None:
            is_known = (
                {UNDECIDED, CATEGORY, NUMBER, FLAG}
                if self.layout.label_is_text
                else ({NUMBER, FLAG})
            )
            expected[places.label] = tuple({*KINDS, LIST, UNKNOWN, UNDECIDED} - is_known)
        for place, refused in expected.items():
            name = schema.names[place]
            if kinds[place] in refused:
                words = "text or number" if place in places.texts else "number"
                raise DataError(
                    f"found {schema.types[place]} in column {name!r}, expected {words}; "
                    f"drop=({name!r},) leaves it out",
                    self.path,
                    column=place + 1,
                )
            if schema.names.count(name) > 1:
                raise DataError(f"found two columns called {name!r}, expected one", self.path)

    def rows(self, batch: Any) -> Chunk | TableBlock:
        """Rows and labels of a batch that holds at least the columns read."""
        first_row = self.n_rows + 1
        self.n_rows += batch.num_rows

        def error_at(row: int, position: int, problem: str) -> DataError:
            return DataError(f"row {first_row + row}: {problem}", self.path, column=position + 1)

        return self.form(batch, error_at)

    def _column(self, batch: Any, place: int) -> Any:
        return batch.column(self._name(place))

    def _name(self, place: int) -> str:
        assert self.table.places.names is not None
        return self.table.places.names[place]

    def _labels(self, batch: Any) -> tuple[Array, Array]:
        label = self.table.places.label
        columns = {} if label is None else {label: self._column(batch, label)}
        return self.table.labels(columns, batch.num_rows)

    def _table_rows(self, batch: Any, error_at: ErrorAt) -> TableBlock:
        places = self.table.places
        used = [*places.numbers, *places.texts, *([] if places.label is None else [places.label])]
        return self.table.block({place: self._column(batch, place) for place in used}, error_at)

    def _list_rows(self, batch: Any, error_at: ErrorAt) -> Chunk:
        """Lists of one length, the one that the file states or the longest of the first batch."""
        (place,) = self.table.places.numbers
        lists = self._column(batch, place)
        lengths = _lengths(lists)
        if self.width == 0:
            self.width = int(lengths.max(initial=0))
        is_whole = lengths == self.width
        for row in np.flatnonzero(~is_whole).tolist():
            found = "no list" if lengths[row] < 0 else f"{lengths[row]} values"
            self.bad.meet(error_at(row, place, f"found {found}, expected {self.width} values"))
        flat = _floats(lists.filter(pa.array(is_whole)).flatten())
        numbers = flat.reshape(-1, self.width) if self.width else flat.reshape(is_whole.sum(), 0)
        y, label_flaws = self._labels(batch)
        rows = np.flatnonzero(is_whole)
        keep = self._kept(numbers, [place] * self.width, label_flaws[is_whole], rows, error_at)
        is_bytes = pa.types.is_uint8(lists.type.value_type)
        X = without_nan(numbers[keep]).astype(np.uint8 if is_bytes else np.float32, copy=False)
        return Chunk(X, y[rows[keep]] if y.size else y)

    def _sparse_rows(self, batch: Any, error_at: ErrorAt) -> Chunk:
        """Lists of increasing columns, and lists of their values."""
        at, place = sorted(self.table.places.numbers, key=self._name)
        indices, values = self._column(batch, at), self._column(batch, place)
        lengths, others = _lengths(indices), _lengths(values)
        is_whole = (lengths == others) & (lengths >= 0)
        for row in np.flatnonzero(~is_whole).tolist():
            found = f"lists of {max(lengths[row], 0)} indices and {max(others[row], 0)} values"
            self.bad.meet(error_at(row, at, f"found {found}, expected as many of both"))
        rows = np.flatnonzero(is_whole)
        columns = _whole_numbers(indices.filter(pa.array(is_whole)).flatten())
        entries = _floats(values.filter(pa.array(is_whole)).flatten())
        starts = np.concatenate([[0], np.cumsum(lengths[rows])])
        is_sound = self._with_sound_columns(columns, starts, rows, at, error_at)
        row_of = np.repeat(np.arange(len(rows)), lengths[rows])
        summary = np.zeros((len(rows), 1), np.float32)  # what its entries say about each row
        flawed = ~np.isfinite(entries)
        summary[row_of[flawed], 0] = entries[flawed]
        y, label_flaws = self._labels(batch)
        keep = self._kept(summary, [place], label_flaws[rows], rows, error_at) & is_sound
        self.width = max(self.width, int(columns.max(initial=-1)) + 1)
        shape = len(rows), self.width
        X = sp.csr_matrix((without_nan(entries), columns.astype(np.int32), starts), shape=shape)
        X = X if keep.all() else X[keep]
        X.sum_duplicates()
        return Chunk(X, y[rows[keep]] if y.size else y)

    def _with_sound_columns(
        self, columns: Array, starts: Array, rows: Array, place: int, error_at: ErrorAt
    ) -> Array:
        """True for rows whose columns can be; others become 0, and are met by `bad`."""
        is_wrong = (columns < 0) | (columns > LARGEST_INDEX)
        is_sound = np.ones(len(rows), np.bool_)
        is_sound[np.searchsorted(starts, np.flatnonzero(is_wrong), "right") - 1] = False
        for row in rows[~is_sound].tolist():
            problem = f"found an index that is missing, below 0 or above {LARGEST_INDEX}"
            self.bad.meet(error_at(row, place, problem + ", expected the number of a feature"))
        columns[is_wrong] = 0
        return is_sound

    def _kept(
        self, numbers: Array, cells: list[int], label_flaws: Array, rows: Array, error_at: ErrorAt
    ) -> Array:
        """True where a row is sound; `cells` are the positions of its numbers in the file."""
        table = replace(self.table, places=self.table.places._replace(sources=list(cells)))
        return table.sound_rows(
            numbers,
            {},
            label_flaws,
            lambda row, *problem: error_at(int(rows[row]), *problem),
            range(len(cells)),
            may_fill=False,
        )


def _width_stated(text: bytes) -> int:
    """The number of features that a file states; 0 if it states none that can be."""
    return int(text) if text.isdigit() and len(text) < 11 and int(text) <= LARGEST_INDEX else 0


def _lengths(lists: Any) -> Array:
    """Return the length of each list; -1 where there is none."""
    lengths: Array = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), -1).to_numpy()
    return lengths


def _floats(values: Any) -> Array:
    """A copy as float32, NaN where there is none."""
    plain = pc.cast(values, pa.float32(), safe=False)
    return np.array(plain.to_numpy(zero_copy_only=False), np.float32)


def _whole_numbers(values: Any) -> Array:
    """A copy as int64, -1 where there is none."""
    plain = pc.cast(values, pa.int64(), safe=False)
    return np.array(pc.fill_null(plain, -1).to_numpy(), np.int64)
