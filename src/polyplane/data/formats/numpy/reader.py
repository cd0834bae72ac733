"""NumPy files to chunks of rows.

npy      a matrix, or images that become rows, read where it lies on disk. Labels stand in a file
         beside it: y.npy for X.npy, y_train.npy for X_train.npy, any_y.npy or any_labels.npy for
         any.npy; or in the file that is named. Without one `y` is empty.
npz      X and y; x_train and y_train, or x_test and y_test, by `part`; data and target or
         labels; the first and second array, if they were saved without names; or a CSR matrix by
         `scipy.sparse.save_npz`, with y inside or in a file beside it.
         Read into memory as a whole.
Values   bytes stay bytes, truth values become bytes, other numbers float32. Objects are refused,
         and nothing is ever unpickled. A row with NaN or infinity is a bad row, counted from 1.
         Bytes after an array are an error, as it would be half of what was saved.
"""

import io
import math
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.data.careful_reading import as_data_errors
from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Array, BadRows, Chunk, DataError

__all__ = ["chunks", "labels_path_of", "sound_rows"]

EXPECTED = "a NumPy file of numbers"
NAMES_OF_X = "X", "x", "data", "features", "images", "arr_0"
NAMES_OF_Y = "y", "Y", "labels", "label", "target", "arr_1"
SPARSE = {"data", "indices", "indptr", "shape", "format"}
NUMBERS, LABELS = "biuf", "biufUS"  # kinds of dtypes
LARGEST_WIDTH = (1 << 31) - 1


def labels_path_of(path: str | Path) -> Path | None:
    """The file of labels that stands beside a file of rows, if it exists."""
    path = Path(path)
    renamed = re.sub(r"(^|[_-])[Xx](?=[_-]|$)", r"\1y", path.stem)
    names = [renamed] * (renamed != path.stem) + [f"{path.stem}_y", f"{path.stem}_labels"]
    candidates = [path.with_name(f"{name}.npy") for name in names]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def chunks(
    path: str | Path,
    chunk_rows: int,
    bad: BadRows | None = None,
    labels: str | Path | None = None,
    part: str = "train",
) -> Iterator[Chunk]:
    """Chunks of `chunk_rows` rows, the last may be shorter; `y` is empty without labels."""
    return rechunked(_pieces(path, chunk_rows, bad or BadRows(), labels, part), chunk_rows)


def _pieces(
    path: str | Path, chunk_rows: int, bad: BadRows, labels: str | Path | None, part: str
) -> Iterator[Chunk]:
    X, y = _arrays_in(path, part)
    labels = labels or (labels_path_of(path) if y is None else None)
    if labels is not None:
        y, _ = _arrays_in(labels, part)
    _check_shapes(X, y, path, labels or path)
    y = np.empty(0) if y is None else _plain_labels(y)
    for start in range(0, X.shape[0], chunk_rows):
        rows = slice(start, start + chunk_rows)
        yield sound_rows(X[rows], y[rows], start, bad, path)


def _arrays_in(path: str | Path, part: str) -> tuple[Any, Array | None]:
    """Rows, and labels if they stand in the same file."""
    with as_data_errors(path, EXPECTED):
        with open(path, "rb") as file:
            is_archive = file.read(2) == b"PK"
        if not is_archive:
            mapped: Any = np.lib.format.open_memmap(path, mode="r")  # never unpickles
            _check_size(mapped.offset + mapped.nbytes, os.path.getsize(path))
            return mapped, None
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            y_name = _first_of((f"y_{part}", *NAMES_OF_Y), names)
            y = None if y_name is None else _member(archive, y_name)
            if names >= SPARSE:
                return _sparse_rows(archive), y
            x_name = _first_of((f"X_{part}", f"x_{part}", *NAMES_OF_X), names)
            if x_name is not None:
                return _member(archive, x_name), y
    raise DataError(
        f"found arrays called {', '.join(sorted(names)) or 'nothing'}, expected X and y, "
        f"x_{part} and y_{part}, or a CSR matrix",
        path,
    )


def _first_of(wanted: Sequence[str], names: set[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _check_size(expected: int, found: int) -> None:
    if found < expected:
        raise ValueError(f"the array ends after {found} of {expected} bytes")
    if found > expected:
        n = found - expected
        raise ValueError(f"{n} byte{'s follow' if n > 1 else ' follows'} the array")


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    """An array of an archive. What its header states is compared with the bytes that are there."""
    data = archive.read(f"{name}.npy")
    file = io.BytesIO(data)
    is_first_version = np.lib.format.read_magic(file) == (1, 0)
    read_header = (
        np.lib.format.read_array_header_1_0
        if is_first_version
        else np.lib.format.read_array_header_2_0
    )
    shape, is_fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError(f"an array of {dtype}")
    _check_size(file.tell() + math.prod(shape) * dtype.itemsize, len(data))
    array = np.frombuffer(data, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if is_fortran else "C")


def _sparse_rows(archive: zipfile.ZipFile) -> Any:
    """A CSR matrix as `scipy.sparse.save_npz` writes it."""
    form = _member(archive, "format")[()]
    if form not in ("csr", b"csr"):
        raise ValueError(f"a sparse matrix in form {form!r}; store it by rows, with tocsr()")
    data, columns, starts, shape = (
        _member(archive, name) for name in ("data", "indices", "indptr", "shape")
    )
    with np.errstate(over="ignore"):
        entries = data.astype(np.float32), columns.astype(np.int32), starts.copy()
    rows = sp.csr_matrix(entries, shape=tuple(shape.tolist()))
    rows.check_format(full_check=True)
    rows.sum_duplicates()
    return rows


def _check_shapes(X: Any, y: Array | None, path: Any, y_path: Any) -> None:
    if len(X.shape) < 2 or X.dtype.kind not in NUMBERS:
        problem = f"found an array of {X.dtype} and shape {X.shape}, expected a matrix of numbers"
        raise DataError(problem, path)
    width = math.prod(X.shape[1:])
    if not 0 < width <= LARGEST_WIDTH:
        raise DataError(f"found rows of {width} values, expected 1 to {LARGEST_WIDTH}", path)
    if y is None:
        return
    if y.dtype.kind not in LABELS or math.prod(y.shape[1:]) != 1 or not y.shape:
        problem = f"found an array of {y.dtype} and shape {y.shape}, expected one label a row"
        raise DataError(problem, y_path)
    if y.shape[0] != X.shape[0]:
        problem = f"found {y.shape[0]} labels, expected {X.shape[0]}, one for each row"
        raise DataError(problem, y_path)


def _plain_labels(y: Array) -> Array:
    """One dimension, in the byte order of this machine; bytes as text."""
    y = y.reshape(-1)
    return y.astype(np.str_) if y.dtype.kind == "S" else y.astype(y.dtype.newbyteorder("="))


def sound_rows(rows: Any, y: Array, first_row: int, bad: BadRows, path: Any) -> Chunk:
    """Rows as float32 or uint8, without those that are not finite, which are met by `bad`."""
    X, keep = rows, np.ones(rows.shape[0], np.bool_)
    if isinstance(rows, np.ndarray):
        is_bytes = rows.dtype in (np.uint8, np.bool_)
        flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
        with np.errstate(over="ignore"):
            X = np.array(flat, np.uint8 if is_bytes else np.float32, order="C")
        keep = keep if is_bytes else np.isfinite(X).all(axis=1)
    else:
        entries = np.flatnonzero(~np.isfinite(rows.data))
        keep[np.searchsorted(rows.indptr, entries, "right") - 1] = False
    is_labelled = np.isfinite(y) if y.dtype.kind == "f" and y.size else np.ones_like(keep)
    for row in np.flatnonzero(~(keep & is_labelled)).tolist():
        found = "a value" if is_labelled[row] else "a label"
        problem = f"found {found} that is NaN, infinite or above 3.4e38, expected a finite number"
        bad.meet(DataError(f"row {first_row + row + 1}: {problem}", path))
    keep &= is_labelled
    return Chunk(X, y) if keep.all() else Chunk(X[keep], y[keep] if y.size else y)
