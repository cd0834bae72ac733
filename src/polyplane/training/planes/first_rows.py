"""The first rows of a stream, kept until there are enough of them to start from.

What comes of them starts anew with the first row, with two, four, eight ... and with all for which
there is room: at counts of rows, so that chunks do not matter, and seldom, so that single rows are
cheap.
"""

from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.storage import csr_rows_of, packed
from polyplane.training.rows import TrainingData

__all__ = ["FirstRows"]


class FirstRows:
    """At most `room` rows, with their classes and weights: how they came in chunks is forgotten."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.n_rows = 0
        self.parts: list[TrainingData] = []

    @property
    def is_full(self) -> bool:
        """Return True if there are enough rows to start from."""
        return self.n_rows >= self.room

    def last_start(self) -> int:
        """Return the number of rows at the latest start; 0 before the first."""
        return self.room if self.is_full else (1 << self.n_rows.bit_length()) >> 1

    def copied(self) -> "FirstRows":
        """Return a copy of the collection, with the same rows."""
        copy = FirstRows(self.room)
        copy.n_rows, copy.parts = self.n_rows, list(self.parts)
        return copy

    def take(self, data: TrainingData, members: Array) -> Array:
        """Keep what there is room for; return the rest of `members`."""
        taken, rest = np.split(members, [self.room - self.n_rows])
        weights = data.weights[taken] if data.weights.size else np.ones(taken.size, np.float32)
        self.parts.append(TrainingData(packed(data.rows, taken), data.labels[taken], weights))
        self.n_rows += taken.size
        return rest

    def forget(self) -> None:
        """Let go of the rows; that there were enough is remembered."""
        self.parts = []

    def data(self, n_rows: int | None = None) -> TrainingData:
        """All that is kept, or the first of it."""
        rows: list[Any] = [part.rows for part in self.parts]
        lengths = np.concatenate([np.diff(r.starts) for r in rows])[:n_rows]
        starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
        values = np.concatenate([r.values for r in rows])[: starts[-1]]
        columns = np.concatenate([r.columns for r in rows])[: starts[-1]]
        weights = np.concatenate([part.weights for part in self.parts])[:n_rows]
        return TrainingData(
            csr_rows_of(values, columns, starts, rows[0].constant),
            np.concatenate([part.labels for part in self.parts])[:n_rows],
            weights if (weights != 1).any() else np.empty(0, np.float32),
        )
