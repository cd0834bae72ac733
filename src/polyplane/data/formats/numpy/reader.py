"""NumPy files to chunks of rows.

npy      a matrix, or images that become rows, read where it lies on disk. Labels stand in a file
         beside it: y.npy for X.npy, y_train.npy for X_train.npy, any_y.npy or any_labels.npy for
         any.npy; or in the file that is named. Without one `y` is empty.
npz      X and y; x_train and y_train, or x_test and y_test, by `part`; data and target or
         labels; the first and second array, if they were saved without names; or a CSR matrix by
         `scipy.sparse.save_npz`, with y inside or in a file beside it.
         Read as it is unpacked, a chunk at a time.
Values   bytes stay bytes, truth values become bytes, other numbers float32. Objects are refused,
         and nothing is ever unpickled. A row with NaN or infinity is a bad row, counted from 1.
         Bytes after an array are an error, as it would be half of what was saved.
"""

import math
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import scipy.sparse as sp

from polyplane.data.careful_reading import as_data_errors, read_up_to
from polyplane.data.chunk_sizes import rechunked
from polyplane.data.chunks import Array, BadRows, Chunk, DataError

__all__ = ["chunks", "labels_path_of", "sound_rows"]

EXPECTED = "a NumPy file of numbers"
NAMES_OF_X = "X", "x", "data", "features", "images", "arr_0"
NAMES_OF_Y = "y", "Y", "labels", "label", "target", "arr_1"
SPARSE = {"data", "indices", "indptr", "shape", "format"}
NUMBERS, LABELS = "biuf", "biufUS"  # kinds of dtypes
LARGEST_WIDTH = (1 << 31) - 1


class Stored(Protocol):
    """An array whose rows are taken in turn."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows first."""

    @property
    def dtype(self) -> Any:
        """Type of its values."""

    def take(self, n: int) -> Any:
        """The next n rows."""


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
    with ExitStack() as stack:
        X, y = _opened(path, part, stack)
        labels = labels or (labels_path_of(path) if y is None else None)
        y_path = labels or path
        if labels is not None:
            y, _ = _opened(labels, part, stack)
        _check_shapes(X, y, path, y_path)
        for start in range(0, X.shape[0], chunk_rows):
            n = min(chunk_rows, X.shape[0] - start)
            with as_data_errors(path, EXPECTED):
                rows = X.take(n)
            with as_data_errors(y_path, EXPECTED):
                names = np.empty(0) if y is None else _plain_labels(y.take(n))
            yield sound_rows(rows, names, start, bad, path)


def _opened(path: str | Path, part: str, stack: ExitStack) -> tuple[Stored, Stored | None]:
    """Rows, and labels if they stand in the same file."""
    with as_data_errors(path, EXPECTED):
        with open(path, "rb") as file:
            is_archive = file.read(2) == b"PK"
        if not is_archive:
            array: Any = np.lib.format.open_memmap(path, mode="r")  # never unpickles
            _check_end(os.path.getsize(path) - array.offset - array.nbytes)
            return _Mapped(array), None
        archive = stack.enter_context(zipfile.ZipFile(path))
        names = {name.removesuffix(".npy") for name in archive.namelist()}

        def member(name: str) -> "_Packed":
            return _Packed(stack.enter_context(archive.open(f"{name}.npy")))

        y_name = _first_of((f"y_{part}", *NAMES_OF_Y), names)
        y = None if y_name is None else member(y_name)
        if names >= SPARSE:
            return _PackedCsr(*map(member, ("data", "indices", "indptr", "shape", "format"))), y
        x_name = _first_of((f"X_{part}", f"x_{part}", *NAMES_OF_X), names)
        if x_name is not None:
            return member(x_name), y
    raise DataError(
        f"found arrays called {', '.join(sorted(names)) or 'nothing'}, expected X and y, "
        f"x_{part} and y_{part}, or a CSR matrix",
        path,
    )


def _first_of(wanted: Sequence[str], names: set[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _check_end(n_bytes: int) -> None:
    if n_bytes > 0:
        raise ValueError(f"{n_bytes} byte{'s follow' if n_bytes > 1 else ' follows'} the array")


class _Mapped:
    """An array in memory or on disk."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.dtype, self.at = array, array.shape, array.dtype, 0

    def take(self, n: int) -> Array:
        self.at += n
        return self.array[self.at - n : self.at]


class _Packed:
    """An array inside an archive, which can only be read from its beginning to its end."""

    def __init__(self, file: Any) -> None:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        self.shape, is_fortran, self.dtype = read_header(file)
        self.file: BinaryIO = file
        self.n_taken = 0
        if self.dtype.hasobject or any(length < 0 for length in self.shape):
            raise ValueError(f"an array of {self.dtype} and shape {self.shape}")
        self.whole: _Mapped | None = None
        if self.shape and self.shape[0] == 0:
            self.end()
        if is_fortran and len(self.shape) > 1:  # columns come first, rows only when all is there
            shape, self.shape = self.shape, self.shape[::-1]
            self.whole, self.shape = _Mapped(self.take(self.shape[0]).T), shape

    def take(self, n: int) -> Array:
        if self.whole is not None:
            return self.whole.take(n)
        shape = n, *self.shape[1:]
        size = math.prod(shape) * self.dtype.itemsize
        data = read_up_to(self.file, size)
        if len(data) < size:
            raise ValueError(f"the array ends after {len(data)} of {size} bytes")
        self.n_taken += n
        if self.n_taken == self.shape[0]:
            self.end()
        return np.frombuffer(data, self.dtype).reshape(shape)

    def end(self) -> None:
        """Nothing may follow; the end of a member compares its checksum, too."""
        if self.file.read(1):
            raise ValueError("more bytes follow than the shape of the array says")

    def value(self) -> Any:
        """The one value of an array without dimensions."""
        value = np.frombuffer(read_up_to(self.file, self.dtype.itemsize), self.dtype)[0]
        self.end()
        return value


class _PackedCsr:
    """A CSR matrix inside an archive; only where its rows begin is held."""

    def __init__(
        self, data: _Packed, indices: _Packed, indptr: _Packed, shape: _Packed, form: _Packed
    ) -> None:
        found = form.value()
        if found not in ("csr", b"csr"):
            raise ValueError(f"a sparse matrix in form {found!r}; store it by rows, with tocsr()")
        n_rows, width = map(int, shape.take(2))
        self.shape, self.dtype, self.at = (n_rows, width), data.dtype, 0
        self.data, self.indices, self.starts = data, indices, indptr.take(n_rows + 1)
        steps = np.diff(self.starts)
        sizes = data.shape[0], indices.shape[0], int(self.starts[-1])
        if len(set(sizes)) > 1 or self.starts[0] != 0 or (steps < 0).any():
            raise ValueError("a sparse matrix whose rows don't begin and end where they should")

    def take(self, n: int) -> sp.csr_matrix:
        starts = self.starts[self.at : self.at + n + 1]
        self.at += n
        size = int(starts[-1] - starts[0])
        data, indices = self.data.take(size), self.indices.take(size)
        if size and not 0 <= indices.min() <= indices.max() < self.shape[1]:
            raise ValueError(f"a sparse matrix with a column outside its {self.shape[1]}")
        with np.errstate(over="ignore"):
            entries = data.astype(np.float32), indices.astype(np.int32), starts - starts[0]
        rows = sp.csr_matrix(entries, shape=(n, self.shape[1]))
        rows.sum_duplicates()
        return rows


def _check_shapes(X: Stored, y: Stored | None, path: Any, y_path: Any) -> None:
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
