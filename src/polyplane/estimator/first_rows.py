"""The first rows of a stream, kept until there are enough of them to start from."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyplane.engine.planes import Array
from polyplane.engine.rows import csr_rows, matrix_of, packed
from polyplane.estimator.validation import TrainingData

__all__ = ["FirstRows"]


class FirstRows:
    """At most `room` rows, with their classes and weights: how they came in chunks is forgotten."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.n_rows = 0
        self.parts: list[TrainingData] = []

    @property
    def is_full(self) -> bool:
        """Whether there are enough."""
        return self.n_rows >= self.room

    def copied(self) -> "FirstRows":
        """The same rows in a collection of its own."""
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

    def data(self) -> TrainingData:
        """All that is kept."""
        rows: list[Any] = [part.rows for part in self.parts]
        width = 1 + max((int(r.columns.max()) for r in rows if r.columns.size), default=0)
        matrices = [matrix_of(r, width) for r in rows]
        weights = np.concatenate([part.weights for part in self.parts])
        return TrainingData(
            csr_rows(sp.vstack(matrices, format="csr"), float(rows[0].constant)),
            np.concatenate([part.labels for part in self.parts]),
            weights if (weights != 1).any() else np.empty(0, np.float32),
        )
