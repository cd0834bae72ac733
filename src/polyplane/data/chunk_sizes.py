"""Chunks of one size from pieces of any size, in their order or mixed."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.data.chunks import Array, Chunk

__all__ = ["joined", "mixed", "no_rows", "rechunked", "widened"]

LONGEST = np.iinfo(np.int32).max


def rechunked(pieces: Iterable[Chunk], chunk_rows: int) -> Iterator[Chunk]:
    """Yield the rows in chunks of exactly `chunk_rows`; the last may be shorter."""
    held: list[Chunk] = []
    n_rows = 0
    for piece in pieces:
        if piece.X.shape[0] == 0:
            continue
        held.append(piece)
        n_rows += piece.X.shape[0]
        if n_rows >= chunk_rows:
            whole = joined(held)
            n_left = n_rows % chunk_rows
            if n_rows == chunk_rows:
                yield whole
            else:
                for start in range(0, n_rows - n_left, chunk_rows):
                    stop = start + chunk_rows
                    yield Chunk(whole.X[start:stop], whole.y[start:stop])
            if n_left:
                held.append(Chunk(whole.X[n_rows - n_left :], whole.y[n_rows - n_left :]))
            n_rows = n_left
    if held:
        yield joined(held)


def joined(chunks: list[Chunk]) -> Chunk:
    """All chunks as one, as wide as the widest; the list is emptied, so that memory is freed."""
    if len(chunks) == 1:
        return chunks.pop()
    y = np.concatenate([chunk.y for chunk in chunks])
    parts = [chunk.X for chunk in chunks]
    chunks.clear()
    return Chunk(_joined_csr(parts) if sp.issparse(parts[0]) else _joined_dense(parts), y)


def widened(X: Any, width: int) -> Any:
    """A CSR matrix with more columns that shares its entries, or the same if it is as wide."""
    if X.shape[1] >= width:
        return X
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width), copy=False)
    wide.has_canonical_format = X.has_canonical_format
    return wide


def _joined_dense(parts: list[Any]) -> Any:
    out = np.empty((sum(map(len, parts)), parts[0].shape[1]), np.result_type(*parts))
    end = 0
    for part in _taken(parts):
        place = slice(end, end := end + len(part))
        out[place] = part
    return out


def _joined_csr(parts: list[Any]) -> Any:
    shape = sum(part.shape[0] for part in parts), max(part.shape[1] for part in parts)
    n_entries = sum(part.nnz for part in parts)
    is_canonical = all(part.has_canonical_format for part in parts)
    starts = np.zeros(shape[0] + 1, np.int64 if n_entries > LONGEST else np.int32)
    np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]), out=starts[1:])
    values = np.empty(n_entries, np.result_type(*(part.dtype for part in parts)))
    columns = np.empty(n_entries, parts[0].indices.dtype)
    end = 0
    for part in _taken(parts):
        place = slice(end, end := end + part.nnz)
        values[place], columns[place] = part.data[: part.nnz], part.indices[: part.nnz]
    matrix = sp.csr_matrix((values, columns, starts), shape=shape, copy=False)
    matrix.has_canonical_format = is_canonical
    return matrix


def _taken(parts: list[Any]) -> Iterator[Any]:
    """Each part in turn, which is then no longer in the list."""
    parts.reverse()
    while parts:
        yield parts.pop()


# ---- in random order ---------------------------------------------------------------------


def mixed(
    pieces: Iterable[Chunk], n_pieces: int, seed: int | Sequence[int]
) -> Generator[Chunk, None, None]:
    """Chunks as long as the pieces, of so many pieces at a time whose rows are in random order."""
    generator, pieces = np.random.default_rng(seed), iter(pieces)
    while window := list(islice(pieces, n_pieces)):
        n_rows = window[0].X.shape[0]
        X, y = joined(window)
        order = generator.permutation(X.shape[0])
        for start in range(0, order.size, n_rows):
            part = order[start : start + n_rows]
            yield Chunk(_taken_rows(X, part), y[part] if y.size else y)
        del X, y  # before the next pieces come


def _taken_rows(X: Any, rows: Array) -> Any:
    some: Any = X[rows]
    if not isinstance(X, np.ndarray):
        some.has_canonical_format = X.has_canonical_format
    return some


def no_rows(width: int) -> Chunk:
    """Return a chunk without rows."""
    return Chunk(sp.csr_matrix(np.empty((0, width), np.float32)), np.empty(0))
