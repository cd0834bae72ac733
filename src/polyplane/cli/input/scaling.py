"""Columns brought to one scale on the way to a classifier, from memory or from a stream."""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.cli.failures import CallError
from polyplane.cli.input.row_input import chunks_of
from polyplane.cli.output.screen import Screen
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.data.reading import Stream
from polyplane.tuning.held_out import new_scaler

__all__ = ["ScaledStream", "scaled", "scaler_of_rows", "scaler_of_stream"]


def scaled(scaler: Any, X: Any) -> Any:
    """Rows as the classifier sees them."""
    if scaler is None:
        return X
    if sp.issparse(X):
        X = widened(X, scaler.n_features_in_)
    return scaler.transform(_floats(X))


def _floats(X: Any) -> Any:
    """Bytes would become float64, of twice the size."""
    return X.astype(np.float32) if X.dtype == np.uint8 else X


def scaler_of_rows(scale: str, X: Any) -> Any:
    """Return a scaler fitted to the rows of X; None without scaling."""
    if scale == "none":
        return None
    return new_scaler(scale, sp.issparse(X)).fit(_floats(X))


def scaler_of_stream(scale: str, rows: Stream, screen: Screen) -> Any:
    """Return a scaler fitted to a stream in a pass of its own, or two where rows are sparse."""
    if scale == "none":
        return None
    if rows.is_once:
        raise CallError(
            f"--scale {scale} reads the rows once more, which a pipe cannot: save them to a file "
            "first, or leave --scale out."
        )
    scaler = None
    n_passes = 1
    while n_passes:
        n_passes -= 1
        for chunk in chunks_of(rows, screen, "Looking at columns"):
            if scaler is None:
                scaler = new_scaler(scale, sp.issparse(chunk.X))
                n_passes += sp.issparse(chunk.X)  # the first only tells how many there are
            if n_passes == 0:
                X = widened(chunk.X, rows.n_columns) if sp.issparse(chunk.X) else chunk.X
                scaler.partial_fit(_floats(X))
    return scaler


@dataclass
class ScaledStream:
    """A stream whose rows are scaled as they come, and counted."""

    rows: Stream
    scaler: Any  # or None
    n_rows: int = 0  # of the latest pass so far

    @property
    def is_once(self) -> bool:
        """Return True if it can be read only once."""
        return self.rows.is_once

    def __iter__(self) -> Generator[Chunk, None, None]:
        """One pass."""
        return self._scaled(iter(self.rows))

    def shuffled(self, seed: Sequence[int]) -> Generator[Chunk, None, None]:
        """One pass in random order."""
        return self._scaled(self.rows.shuffled(seed))

    def _scaled(self, chunks: Generator[Chunk, None, None]) -> Generator[Chunk, None, None]:
        self.n_rows = 0
        with contextlib.closing(chunks):
            for chunk in chunks:
                self.n_rows += chunk.X.shape[0]
                yield Chunk(scaled(self.scaler, chunk.X), chunk.y)
