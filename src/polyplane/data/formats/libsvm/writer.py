"""Rows as LIBSVM text, in the fewest digits that read back to the same float32."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from polyplane.data.chunks import DataError
from polyplane.data.formats.libsvm.errors import label_problem, shown, word_at
from polyplane.data.formats.libsvm.lines import LARGEST_INDEX

__all__ = ["write"]

ENTRIES_AT_ONCE = 1 << 18


def _label_text(label: Any) -> bytes:
    if isinstance(label, np.floating):
        is_whole = label == np.rint(label) and abs(label) < 2.0**53
        text = str(int(label)) if is_whole else repr(float(label))
    else:
        text = str(int(label)) if isinstance(label, np.bool_) else str(label)
    word = text.encode()
    problem = label_problem(word)
    if problem is None and (not word or word_at(word, 0) != word):
        problem = f"the label {shown(word)} is empty or has a blank or # in it"
    if problem is not None:
        raise DataError(f"cannot write this row: {problem}")
    return word


def _rows_of(X: Any, base: int) -> Any:
    """X as canonical CSR float32, checked."""
    with np.errstate(over="ignore"):
        rows = sp.csr_matrix(X, dtype=np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise DataError("X holds values that are not finite in float32: they cannot be written")
    if rows.shape[1] - 1 + base > LARGEST_INDEX:
        raise DataError(f"X has {rows.shape[1]:,} columns, more than indices can tell apart")
    return rows


def write(file: BinaryIO, X: Any, y: Any, base: int = 1) -> None:
    """Write rows and their labels; indices start at `base`, and zeros of a dense X are left out."""
    rows = _rows_of(X, base)
    kinds, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.size != rows.shape[0]:
        raise DataError(f"X has {rows.shape[0]:,} rows, but there are {codes.size:,} labels")
    words = pa.array([_label_text(kind).decode() for kind in kinds], pa.string())
    for first, last in _pieces(rows.indptr):
        labels = words.take(pa.array(codes[first:last]))
        file.write(_text_of(rows[first:last], labels, base))
        file.write(b"\n")


def _pieces(starts: Any) -> Iterator[tuple[int, int]]:
    """Cut rows into pieces of at most `ENTRIES_AT_ONCE` entries, or of one row."""
    first, n_rows = 0, starts.size - 1
    while first < n_rows:
        end = int(np.searchsorted(starts, int(starts[first]) + ENTRIES_AT_ONCE, "right")) - 1
        last = min(max(end, first + 1), first + ENTRIES_AT_ONCE, n_rows)
        yield first, last
        first = last


def _text_of(rows: Any, labels: Any, base: int) -> Any:
    """Return the lines of some rows, of which the last has no end."""
    indices = pc.cast(pa.array(rows.indices.astype(np.int64) + base), pa.string())
    entries = pc.binary_join_element_wise(indices, pc.cast(pa.array(rows.data), pa.string()), ":")
    starts = pa.array(rows.indptr.astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(starts, entries), " ")
    blanks = pa.array(["", " "]).take(pa.array((np.diff(rows.indptr) > 0).astype(np.int8)))
    lines = pc.binary_join_element_wise(labels, joined, blanks)
    all_lines = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(all_lines, "\n")[0].as_buffer()
