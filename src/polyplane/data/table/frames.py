"""Frames of pandas, polars, Arrow and their like, and arrays with text in them, to rows of X.

A frame is anything with columns of their own types: what has `__arrow_c_stream__` or the
dataframe interchange protocol. Its columns become Arrow arrays, one by one, so that errors can name
the column; what they are and what becomes of them is settled by `layout`, `learning` and `rows`,
as for files.
"""

import decimal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.interchange

from polyplane.data.chunks import Array, BadRows, DataError
from polyplane.data.table.blocks import TableRows
from polyplane.data.table.categories import REST, VALUE
from polyplane.data.table.kinds import CATEGORY, DATE, LIST, NUMERIC, UNKNOWN, is_word, kind_of_type
from polyplane.data.table.layout import ERROR, SKIP, Layout, TableOptions, places_in
from polyplane.data.table.moments import moments_of_objects
from polyplane.data.table.rows import laid_out
from polyplane.data.table.spelling import BYTES, DATES, families_of, spelled_objects, texts_of
from polyplane.data.table.texts import arrow_of

__all__ = ["Frame", "frame_of", "has_texts", "is_frame", "rows_of"]


class Frame(NamedTuple):
    """Columns and what they are called."""

    names: list[Any]
    columns: list[Any]  # Arrow arrays
    n_rows: int

    @property
    def texts(self) -> list[str] | None:
        """The names, if all are text; else columns are known by their order."""
        is_text = bool(self.names) and all(isinstance(name, str) for name in self.names)
        return [str(name) for name in self.names] if is_text else None

    def kinds(self) -> list[str]:
        """Return the kind of each column by its type."""
        return [kind_of_type(column.type) for column in self.columns]

    def first_of_no_numbers(self) -> str | None:
        """Words for the first column that holds no numbers."""
        for name, column, kind in zip(self.names, self.columns, self.kinds(), strict=True):
            if kind not in NUMERIC:
                return f"column {name!r} holds {column.type}"
        return None


def is_frame(X: Any) -> bool:
    """Return True if X has columns of their own types; a series is none."""
    if isinstance(X, np.ndarray | pa.ChunkedArray):
        return False
    is_arrow = isinstance(X, pa.Table | pa.RecordBatch | pa.RecordBatchReader)
    is_series = hasattr(type(X), "dtype")
    speaks = hasattr(X, "__dataframe__") or (hasattr(X, "__arrow_c_stream__") and not is_series)
    return is_arrow or speaks or _is_pandas(X)


def has_texts(X: Any) -> bool:
    """Return True if X is an array in which texts stand."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OUT":
        return False
    if X.dtype.kind != "O":
        return True
    return any(isinstance(value, str) for value in X.ravel().tolist())


def frame_of(X: Any) -> Frame:
    """Named Arrow columns of a frame, or of an array in which texts stand."""
    if isinstance(X, np.ndarray):
        columns = [_array_of(X[:, k], k) for k in range(X.shape[1])]
        return Frame(list(range(X.shape[1])), columns, len(X))
    if _is_pandas(X):
        columns = [_array_of_series(series, name) for name, series in X.items()]
        return Frame(list(X.columns), columns, len(X))
    if isinstance(X, pa.RecordBatch):
        table = pa.Table.from_batches([X])
    elif isinstance(X, pa.RecordBatchReader):
        table = X.read_all()
    elif hasattr(X, "__arrow_c_stream__"):
        table = pa.table(X)
    else:
        table = pyarrow.interchange.from_dataframe(X)
    columns = [_combined(column) for column in table.columns]
    return Frame(list(table.column_names), columns, table.num_rows)


def _is_pandas(X: Any) -> bool:
    """By its methods: pandas itself need not be there."""
    return all(hasattr(type(X), name) for name in ("iloc", "dtypes", "columns"))


def _combined(column: Any) -> Any:
    """One array of the chunks of a column."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _array_of_series(series: Any, name: Any) -> Any:
    """A column of pandas."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds it.")
    if dtype == np.longdouble:
        series = series.astype(np.float64)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return pa.array(np.ascontiguousarray(series.to_numpy()))
    if type(dtype).__name__ == "SparseDtype":  # asking for `series.sparse` takes much longer
        return _array_of_series(series.sparse.to_dense(), name)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _array_of(series.to_numpy(), name)
    if hasattr(dtype, "categories") and dtype.categories.dtype.kind == "O":
        values = _array_of(dtype.categories.to_numpy(), name)
        codes = series.cat.codes.to_numpy().astype(np.int32)
        return pa.DictionaryArray.from_arrays(arrow_of(codes, codes < 0), values)
    try:
        found = _combined(pa.Array.from_pandas(series))
    except (pa.ArrowException, TypeError, ValueError):
        return _array_of(series.astype(object).to_numpy(), name)
    return found.cast(pa.string()) if isinstance(found.type, pa.ExtensionType) else found


def _array_of(values: Array, name: Any) -> Any:
    """Return an array of any values as one of Arrow; values of several families become text."""
    listed = values.tolist()
    others = [value for value in listed if type(value) is not str and not _is_missing(value)]
    kinds = set(map(type, others)) | ({str} & set(map(type, listed)))
    families = families_of(kinds)
    if None in families:
        wrong = next(value for value in others if None in families_of({type(value)}))
        raise TypeError(
            f"column {name!r} holds {wrong!r}: argument must be a string or a real number."
        )
    if families == {DATES}:
        return _with_gaps(listed, moments_of_objects)
    if len(families) <= 1 and not families & {BYTES} and not _widens(kinds):
        try:
            return pa.Array.from_pandas(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    return _with_gaps(listed, lambda present: _strings(spelled_objects(present), listed, name))


def _widens(kinds: set[type]) -> bool:
    """Return True if Arrow gives some of the numbers more digits than they have alone."""
    return len(kinds) > 1 and any(
        issubclass(kind, np.floating) and kind is not np.float64 for kind in kinds
    )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    has_nan = isinstance(
        value, float | np.inexact | decimal.Decimal | np.datetime64 | np.timedelta64
    )
    return has_nan and bool(value != value)


def _with_gaps(values: list[Any], array_of: Callable[[list[Any]], Any]) -> Any:
    """Return what becomes of the values that are not missing, with nulls in between."""
    lacks = np.array([_is_missing(value) for value in values], np.bool_)
    present = array_of([value for value, lack in zip(values, lacks, strict=True) if not lack])
    places = np.where(lacks, 0, np.cumsum(~lacks) - 1)
    return present.take(arrow_of(places, lacks))


def _strings(texts: list[str], values: list[Any], name: Any) -> Any:
    """Return texts as an Arrow array."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        row = next(row for row, value in enumerate(values) if not _is_unicode(value))
        raise DataError(
            f"row {row} of X: found {values[row]!r} in column {name!r}, expected text that UTF-8 "
            "can write"
        ) from None


def _is_unicode(value: Any) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def rows_of(frame: Frame, layout: Layout, categorical: Sequence[str | int] = ()) -> Any:
    """Rows of X, one for each of the frame; a layout that is empty is learned from them."""
    if layout.missing == SKIP:  # which is for files: here no row can be left out
        layout = layout.copied()
        layout.missing = ERROR
    names = frame.texts
    _check_columns(frame)
    is_new = not layout.sources
    options = TableOptions(label=None, text_columns=tuple(categorical) if is_new else ())
    places = places_in(layout, names, frame.kinds(), options, None)
    _check_kinds(frame, [place for place in places.sources if place is not None])
    if layout.is_learned and not layout.grows:
        _check_categories(frame, layout, places.sources)
    table = TableRows(places, layout, options, BadRows(), None)

    def error_at(row: int, position: int, problem: str) -> DataError:
        return DataError(f"row {row} of X: {problem}")

    block = table.block(dict(enumerate(frame.columns)), error_at)
    return next(iter(laid_out([block], layout, None))).X


def _check_columns(frame: Frame) -> None:
    """Names tell columns apart, and there is a row."""
    if not frame.columns:
        raise ValueError("Found array with 0 feature(s): X has no columns.")
    if frame.n_rows == 0:
        raise ValueError("Found array with 0 sample(s): X has no rows.")
    names = frame.texts or []
    broken = [name for name in names if not _is_unicode(name)]
    if broken:
        raise DataError(
            f"found a column called {broken[0]!r}, expected a name that UTF-8 can write"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if len(set(names)) < len(names):
        raise DataError(f"found two columns called {twice!r}, expected different names")


def _check_kinds(frame: Frame, read: Sequence[int]) -> None:
    """Every column that is read holds something that a column of a table can be."""
    kinds = frame.kinds()
    for place in read:
        if kinds[place] in (LIST, UNKNOWN):
            raise DataError(
                f"found {frame.columns[place].type} in column {frame.names[place]!r}, expected "
                "numbers, texts, categories or dates: leave it out"
            )


def _check_categories(frame: Frame, layout: Layout, places: Sequence[int | None]) -> None:
    """Where all values of training were words, truth values or numbers are no new value.

    A value that is rare, or one among codes that are numbers, may be any.
    """
    kinds = frame.kinds()
    for source, place in zip(layout.sources, places, strict=True):
        if place is None or source.kind != CATEGORY or kinds[place] not in (*NUMERIC, DATE):
            continue
        pairs = [pair for pair in layout.categories.numbers if pair.source == source.name]
        known = [pair.value for pair in pairs if pair.what == VALUE]
        found = texts_of(frame.columns[place]).present()
        has_rest = any(pair.what == REST for pair in pairs)
        is_known = not set(known).isdisjoint(found.to_pylist())
        if not known or has_rest or not len(found) or is_known or not all(map(is_word, known)):
            continue
        raise DataError(
            f"found {frame.columns[place].type} in column {source.name!r}, expected texts such as "
            f"{known[0]!r} as in training"
        )
