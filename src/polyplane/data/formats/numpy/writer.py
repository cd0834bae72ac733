"""Rows as NumPy files.

npy   dense rows in one file, written as they come, however many there will be; their labels in
      another beside it, where the reader looks for them.
npz   X and y; or a CSR matrix as `scipy.sparse.save_npz` writes it, and y. All rows are held in
      memory.
"""

import contextlib
import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats.numpy.reader import labels_path_of
from polyplane.whole_files import whole_file

__all__ = ["write_npy", "write_npz"]

HEADER = 128  # bytes: room for any shape


def write_npy(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write dense rows and, beside them, their labels; return how many rows."""
    labels_path = labels_path_of(path) or path.with_name(f"{path.stem}_y.npy")
    chunks = iter(chunks)
    first = next(chunks)
    n_rows, labels = 0, []
    with contextlib.ExitStack() as stack:
        labels_file = stack.enter_context(whole_file(labels_path)) if first.y.size else None
        file = stack.enter_context(whole_file(path))
        file.write(bytes(HEADER))
        for chunk in chain([first], chunks):
            if not isinstance(chunk.X, np.ndarray):
                raise ValueError("Rows are sparse, which npy is not: write npz.")
            _check_alike(chunk.X, first.X)
            rows = np.ascontiguousarray(chunk.X, _kind_of(chunk.X))
            file.write(rows.reshape(-1).data)
            n_rows += len(rows)
            labels.append(chunk.y)
        file.seek(0)
        file.write(_header(_kind_of(first.X), (n_rows, first.X.shape[1])))
        if labels_file is None:
            _check_none_beside(path)
        else:
            np.save(labels_file, np.concatenate(labels))
            labels_file.flush()
            os.fsync(labels_file.fileno())  # both are whole before either takes its place
    return n_rows


def write_npz(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write rows and labels to an archive; return how many rows."""
    held: list[Chunk] = []
    for chunk in chunks:
        held.append(chunk)
        _check_alike(chunk.X, held[0].X)
    X, y = joined(held)
    arrays: dict[str, Any] = {"y": y} if y.size else {}
    if not y.size:
        _check_none_beside(path)
    if isinstance(X, np.ndarray):
        arrays["X"] = X.astype(_kind_of(X), copy=False)
    else:
        arrays |= {
            "indices": X.indices,
            "indptr": X.indptr,
            "format": np.array(b"csr"),
            "shape": np.array(X.shape),
            "data": X.data.astype(np.float32, copy=False),
        }
    with whole_file(path) as file:
        np.savez_compressed(file, **arrays)
    return int(X.shape[0])


def _kind_of(X: Any) -> Any:
    return np.dtype(np.uint8 if X.dtype == np.uint8 else np.float32)


def _header(dtype: Any, shape: tuple[int, ...]) -> bytes:
    """The head of an npy file of version 1.0, always of the same length."""
    said = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text = said.encode().ljust(HEADER - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _check_alike(X: Any, first: Any) -> None:
    """Rows are finite, and of the form, the type and where they are dense the width of the first.

    Sparse rows may grow wider.
    """
    is_dense = isinstance(X, np.ndarray)
    if is_dense != isinstance(first, np.ndarray):
        kind = (
            "dense rows, expected sparse ones" if is_dense else "sparse rows, expected dense ones"
        )
        raise ValueError(f"A chunk has {kind} as in the first.")
    if is_dense and (X.shape[1], _kind_of(X)) != (first.shape[1], _kind_of(first)):
        raise ValueError(
            f"A chunk has {X.shape[1]} columns of {_kind_of(X)}, expected {first.shape[1]} of "
            f"{_kind_of(first)} as in the first."
        )
    values = X if is_dense else X.data
    if not np.isfinite(values.astype(np.float32, copy=False)).all():
        raise DataError("X holds values that are not finite in float32: they cannot be written")


def _check_none_beside(path: Path) -> None:
    """Rows without labels must not stand beside labels of others, which would be theirs."""
    beside = labels_path_of(path)
    if beside is not None:
        raise DataError(
            f"has no labels, but those in {beside.name} beside it would be read as its own: "
            "remove that file, or name another",
            str(path),
        )
