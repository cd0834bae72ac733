"""Rows as NumPy files, written as they come, however many there will be.

npy   dense rows in one file, their labels in another beside it, where the reader looks for them.
npz   X and y; or a CSR matrix as `scipy.sparse.save_npz` writes it, and y. What is to come first
      is known last: parts wait in files without names, and are then packed into the archive.
Labels are held as numbers of those that have been met, which are few.
"""

import contextlib
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from polyplane.data.chunks import Array, Chunk, DataError
from polyplane.data.formats.numpy.reader import labels_path_of
from polyplane.whole_files import errors_named, whole_file

__all__ = ["write_npy", "write_npz"]

HEADER = 128  # bytes: room for any shape
BLOCK = 1 << 20  # values that are copied at a time
LONGEST = np.iinfo(np.int32).max
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # same rows, same bytes


def write_npy(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write dense rows and, beside them, their labels; return how many rows."""
    labels_path = labels_path_of(path) or path.with_name(f"{path.stem}_y.npy")
    chunks = iter(chunks)
    first = next(chunks)
    with contextlib.ExitStack() as stack:
        labels = stack.enter_context(_Labels(path))
        labels_file = stack.enter_context(whole_file(labels_path)) if first.y.size else None
        file = stack.enter_context(whole_file(path))
        rows = _Dense(file, path)
        file.write(bytes(HEADER))
        for chunk in chain([first], chunks):
            rows.add(chunk.X)
            labels.add(chunk.y)
        labels.check_none_beside()
        file.seek(0)
        file.write(_header(rows.dtype, (rows.n_rows, rows.width)))
        if labels_file is not None:
            labels.write_to(labels_file)
            labels_file.flush()
            os.fsync(labels_file.fileno())  # both are whole before either takes its place
    return rows.n_rows


def write_npz(file: BinaryIO, chunks: Iterable[Chunk], path: Path) -> int:
    """Write rows and labels to an archive; return how many rows."""
    with contextlib.ExitStack() as stack:
        labels = stack.enter_context(_Labels(path))
        rows: _Dense | _Sparse | None = None
        for chunk in chunks:
            if rows is None:
                is_dense = isinstance(chunk.X, np.ndarray)
                rows = _Dense(_spool(stack, path), path) if is_dense else _Sparse(stack, path)
            rows.add(chunk.X)
            labels.add(chunk.y)
        assert rows is not None, "chunks have been checked: there is one"
        labels.check_none_beside()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            rows.pack(archive)
            if labels.known:
                with _member(archive, "y") as member:
                    labels.write_to(member)
    return rows.n_rows


def _spool(stack: contextlib.ExitStack, path: Path) -> Any:
    """A file without a name on the disk that the result is for: it goes when it is closed."""
    with errors_named(path):
        return stack.enter_context(tempfile.TemporaryFile(dir=path.parent))


def _header(dtype: Any, shape: tuple[int, ...]) -> bytes:
    """The head of an npy file of version 1.0, always of the same length."""
    said = f"{{'descr': {np.dtype(dtype).str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text = said.encode().ljust(HEADER - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@contextlib.contextmanager
def _member(archive: zipfile.ZipFile, name: str) -> Iterator[Any]:
    entry = zipfile.ZipInfo(f"{name}.npy", LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(entry, "w", force_zip64=True) as member:
        yield member


def _values_in(file: Any, dtype: Any) -> Iterator[Array]:
    """The values of a file from its beginning, some at a time."""
    file.seek(0)
    while block := file.read(BLOCK * np.dtype(dtype).itemsize):
        yield np.frombuffer(block, dtype)


class _Dense:
    """Rows of one width and type, as they lie in memory."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file, self.path = file, path
        self.n_rows, self.width = 0, 0
        self.dtype: Any = np.float32

    def add(self, X: Any) -> None:
        """More rows."""
        if not isinstance(X, np.ndarray):
            raise ValueError("Rows are sparse, which npy is not: write npz.")
        dtype = np.dtype(np.uint8 if X.dtype == np.uint8 else np.float32)
        if self.n_rows == 0:
            self.width, self.dtype = X.shape[1], dtype
        if (X.shape[1], dtype) != (self.width, self.dtype):
            raise ValueError(
                f"A chunk has {X.shape[1]} columns of {dtype}, expected {self.width} of "
                f"{self.dtype} as in the first."
            )
        rows = np.ascontiguousarray(X, dtype)
        if not np.isfinite(rows).all():
            raise DataError("X holds values that are not finite in float32: they cannot be written")
        self.file.write(rows.reshape(-1).data)
        self.n_rows += len(rows)

    def pack(self, archive: zipfile.ZipFile) -> None:
        """Write X."""
        with _member(archive, "X") as member:
            member.write(_header(self.dtype, (self.n_rows, self.width)))
            for values in _values_in(self.file, self.dtype):
                member.write(values.data)


class _Sparse:
    """Non-zeros of rows; those of a later chunk may lie in more columns."""

    def __init__(self, stack: contextlib.ExitStack, path: Path) -> None:
        self.data, self.columns, self.lengths = (_spool(stack, path) for _ in range(3))
        self.n_rows = self.width = self.n_entries = 0

    def add(self, X: Any) -> None:
        """More rows."""
        if isinstance(X, np.ndarray):
            raise ValueError("A chunk has dense rows, expected sparse ones as in the first.")
        if not np.isfinite(X.data[: X.nnz]).all():
            raise DataError("X holds values that are not finite in float32: they cannot be written")
        self.data.write(X.data[: X.nnz].astype(np.float32).data)
        self.columns.write(X.indices[: X.nnz].astype(np.int32).data)
        self.lengths.write(np.diff(X.indptr).astype(np.int64).data)
        self.n_rows, self.n_entries = self.n_rows + X.shape[0], self.n_entries + X.nnz
        self.width = max(self.width, X.shape[1])

    def pack(self, archive: zipfile.ZipFile) -> None:
        """Write the arrays of the matrix."""
        index = np.int64 if self.n_entries > LONGEST else np.int32
        with _member(archive, "indices") as member:
            member.write(_header(index, (self.n_entries,)))
            for values in _values_in(self.columns, np.int32):
                member.write(values.astype(index).data)
        with _member(archive, "indptr") as member:
            member.write(_header(index, (self.n_rows + 1,)))
            last = 0
            member.write(index(last).tobytes())
            for lengths in _values_in(self.lengths, np.int64):
                ends = last + np.cumsum(lengths)
                member.write(ends.astype(index).data)
                last = int(ends[-1])
        for name, value in (("format", np.bytes_(b"csr")), ("shape", self._shape())):
            with _member(archive, name) as member:
                member.write(_header(value.dtype, value.shape) + value.tobytes())
        with _member(archive, "data") as member:
            member.write(_header(np.float32, (self.n_entries,)))
            for values in _values_in(self.data, np.float32):
                member.write(values.data)

    def _shape(self) -> Array:
        return np.array([self.n_rows, self.width], np.int64)


class _Labels:
    """Labels as numbers of those that have been met, in a file without a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[Any, int] = {}
        self.n_rows = 0

    def __enter__(self) -> "_Labels":
        with errors_named(self.path):
            self.file = tempfile.TemporaryFile(dir=self.path.parent)
        return self

    def __exit__(self, *_: Any) -> None:
        self.file.close()

    def add(self, y: Array) -> None:
        """More labels."""
        kinds, places = np.unique(y, return_inverse=True)
        for label in kinds.tolist():
            self.known.setdefault(label, len(self.known))
        numbers = np.array([self.known[label] for label in kinds.tolist()], np.int32)
        self.file.write(numbers[places].data if y.size else b"")
        self.n_rows += y.size

    def check_none_beside(self) -> None:
        """Rows without labels must not stand beside labels of others, which would be theirs."""
        beside = labels_path_of(self.path)
        if not self.known and beside is not None:
            raise DataError(
                f"has no labels, but those in {beside.name} beside it would be read as its own: "
                "remove that file, or name another",
                str(self.path),
            )

    def write_to(self, file: Any) -> None:
        """Write them as an npy file."""
        labels = np.array(list(self.known))
        file.write(_header(labels.dtype, (self.n_rows,)))
        for numbers in _values_in(self.file, np.int32):
            file.write(np.ascontiguousarray(labels[numbers]).tobytes())
