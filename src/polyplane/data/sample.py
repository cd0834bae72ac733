"""A random sample of a stream of any length, in memory for as many rows as are wanted."""

from collections.abc import Iterable

import numpy as np

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import joined, widened
from polyplane.data.chunks import Chunk

__all__ = ["sample", "unlike_classes"]

MAX_LABELS_OF_ANY_ROWS = 100  # different labels, of which there may be so many in any rows


def sample(chunks: Iterable[Chunk], n_rows: int, seed: int) -> tuple[Chunk, int]:
    """Return a random sample of rows in their order, and the number of all rows."""
    generator = np.random.default_rng(seed)
    held: list[Chunk] = []
    keys: list[Array] = []
    n_held = n_met = 0
    for chunk in chunks:
        held.append(chunk)
        keys.append(generator.random(chunk.X.shape[0]))
        n_held, n_met = n_held + chunk.X.shape[0], n_met + chunk.X.shape[0]
        if n_held > 2 * n_rows:
            held, keys = _smallest(held, keys, n_rows)
            n_held = n_rows
    held, keys = _smallest(held, keys, n_rows)
    return joined(held), n_met


def _smallest(
    chunks: list[Chunk], keys: list[Array], n_rows: int
) -> tuple[list[Chunk], list[Array]]:
    """The rows with the smallest keys."""
    every = np.concatenate(keys)
    if every.size <= n_rows:
        return chunks, keys
    limit = np.partition(every, n_rows - 1)[n_rows - 1]
    width = max(chunk.X.shape[1] for chunk in chunks)
    kept, kept_keys = [], []
    for chunk, own in zip(chunks, keys, strict=True):
        rows = np.flatnonzero(own <= limit)
        X = chunk.X if isinstance(chunk.X, np.ndarray) else widened(chunk.X, width)
        if rows.size:
            kept.append(Chunk(X[rows], chunk.y[rows] if chunk.y.size else chunk.y))
            kept_keys.append(own[rows])
    return kept, kept_keys


def unlike_classes(labels: Array, n_rows: int) -> str:
    """Return words for labels that do not look like classes; empty if they may be classes."""
    is_number = labels.dtype.kind in "iuf"
    if labels.dtype.kind == "f" and bool((labels != np.rint(labels)).any()):
        return "a number to predict"
    if labels.size <= max(MAX_LABELS_OF_ANY_ROWS, n_rows // (10 if is_number else 2)):
        return ""
    return "a number to predict or an id" if is_number else "an id"
