"""Rows as CSV text: a header, columns of numbers in the fewest digits, the label last.

Every number reads back to the same float32. CSV has no sparse rows, so zeros are written out; a
label that would read back as another one, or as a missing value, is refused.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import scipy.sparse as sp

from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Array, Chunk, DataError
from polyplane.data.table.texts import MISSING_TEXTS

__all__ = ["write"]

LABEL = "label"
MOST_COLUMNS = 1 << 14  # of sparse rows, most of whose columns would be zeros
NUMBERS_AT_ONCE = 1 << 22
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
QUOTED = set(',"\r\n')


def write(
    file: BinaryIO,
    chunks: Iterable[Chunk],
    names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> int:
    """Write chunks, of which there is one at least; return how many rows."""
    n_rows, width = 0, n_features
    for chunk in chunks:
        if width is None or n_rows == 0:
            width = max(width or 0, chunk.X.shape[1])
            file.write(_header(names, width, is_labelled=bool(chunk.y.size)))
        _check_width(chunk.X, width)
        for X, y in _dense_pieces(chunk, width):
            file.write(_text_of(X, y))
        n_rows += chunk.X.shape[0]
    return n_rows


def _header(names: Sequence[str] | None, width: int, is_labelled: bool) -> bytes:
    names = [f"x{k}" for k in range(width)] if names is None else list(names)
    if len(names) != width or len({*names, LABEL}) <= len(names):
        raise ValueError(
            f"names are {names[:5]}..., expected {width} different ones, none 'label'."
        )
    if any(NUMBER.fullmatch(name) for name in names):
        raise ValueError("A name is a number: a reader would take the header for a row.")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([*names, *[LABEL] * is_labelled])
    return out.getvalue().encode()


def _check_width(X: Any, width: int) -> None:
    if sp.issparse(X) and width > MOST_COLUMNS:
        raise ValueError(
            f"Rows have {width:,} columns, most of them zeros that CSV would write out: write "
            "LIBSVM text, Parquet, Arrow or npz."
        )
    if X.shape[1] > width or (X.shape[1] < width and not sp.issparse(X)):
        raise ValueError(
            f"A chunk has {X.shape[1]:,} columns, but the header {width:,}: state n_features."
        )


def _dense_pieces(chunk: Chunk, width: int) -> Iterator[tuple[Array, Array]]:
    """A chunk as dense rows, some at a time where they are sparse."""
    X, y = chunk
    if isinstance(X, np.ndarray):
        yield X, y
        return
    n_at_once = max(1, NUMBERS_AT_ONCE // width)
    for start in range(0, X.shape[0], n_at_once):
        part = slice(start, start + n_at_once)
        yield widened(sp.csr_matrix(X[part]), width).toarray(), y[part] if y.size else y


def _text_of(X: Array, y: Array) -> bytes:
    numbers = np.ascontiguousarray(X.T, np.uint8 if X.dtype == np.uint8 else np.float32)
    if not np.isfinite(numbers).all():
        raise DataError("X holds values that are not finite in float32: they cannot be written")
    columns, needs_quotes = [pa.array(column) for column in numbers], False
    if y.size:
        labels = y.astype(np.uint8) if y.dtype == np.bool_ else y
        columns.append(pa.array(labels))
        needs_quotes = _check_labels(labels)
    batch = pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
    style = "needed" if needs_quotes else "none"
    out = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=style)
    pyarrow.csv.write_csv(batch, out, options)
    text: bytes = out.getvalue().to_pybytes()
    return text


def _check_labels(y: Array) -> bool:
    """Return True if a label needs quotes; one that would not be read back is an error."""
    if y.dtype.kind != "U":
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise DataError("cannot write this row: its label is not finite")
        return False
    labels = np.unique(y).tolist()
    for label in labels:
        if label in MISSING_TEXTS or label != label.strip():
            raise DataError(
                f"cannot write the label {label!r} as CSV: it would be read as a missing value, "
                "or without its blanks; write Parquet"
            )
    return any(not QUOTED.isdisjoint(label) for label in labels)
