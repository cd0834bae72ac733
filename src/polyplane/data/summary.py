"""Summary of a stream of rows: labels, columns, zeros and ranges, counted as rows come."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.data.chunks import Chunk

__all__ = ["RowSummary"]

MAX_UNSCALED_VALUE = 10.0  # columns beyond it want scaling
MAX_RANGE_RATIO = 100.0  # and those of which some reach so many times farther than others


@dataclass
class RowSummary:
    """Counts of rows met so far."""

    n_rows: int = 0
    n_entries: int = 0  # that are not zero
    is_sparse: bool = False
    dtype: str = ""
    classes: dict[Any, int] = field(default_factory=dict)
    lows: Array = field(default_factory=lambda: np.empty(0, np.float32))  # of each column
    highs: Array = field(default_factory=lambda: np.empty(0, np.float32))
    counts: Array = field(default_factory=lambda: np.empty(0, np.int64))  # non-zeros of each

    def add(self, chunk: Chunk) -> None:
        """Look at more rows."""
        X = chunk.X
        self._widen(X.shape[1])
        self.n_rows += X.shape[0]
        self.is_sparse, self.dtype = not isinstance(X, np.ndarray), str(X.dtype)
        if self.is_sparse:
            columns, values = X.indices[: X.nnz], X.data[: X.nnz]
            np.minimum.at(self.lows, columns, values)
            np.maximum.at(self.highs, columns, values)
            self.counts += np.bincount(columns[values != 0], minlength=self.counts.size)
        elif len(X):
            self.lows = np.minimum(self.lows, X.min(axis=0))
            self.highs = np.maximum(self.highs, X.max(axis=0))
            self.counts += np.count_nonzero(X, axis=0)
        self.n_entries = int(self.counts.sum())
        labels, counts = np.unique(chunk.y, return_counts=True)
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            self.classes[label] = self.classes.get(label, 0) + count

    def _widen(self, width: int) -> None:
        new = width - self.lows.size
        if new > 0:
            self.lows = np.append(self.lows, np.full(new, np.inf, np.float32))
            self.highs = np.append(self.highs, np.full(new, -np.inf, np.float32))
            self.counts = np.append(self.counts, np.zeros(new, np.int64))

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.lows.size)

    @property
    def density(self) -> float:
        """Share of the values that are not zero."""
        n_values = self.n_rows * self.n_features
        return self.n_entries / n_values if n_values else 0.0

    def ranges(self) -> tuple[Array, Array]:
        """Least and greatest value of each column, zeros that are not stored counting, too."""
        has_zeros = self.counts < self.n_rows
        lows = np.where(has_zeros, np.minimum(self.lows, 0), self.lows)
        return lows, np.where(has_zeros, np.maximum(self.highs, 0), self.highs)

    def reaches(self) -> Array:
        """The largest absolute value of each column that is not all zeros."""
        lows, highs = self.ranges()
        reach = np.maximum(np.abs(lows), np.abs(highs))
        return reach[reach > 0]

    @property
    def wants_scaling(self) -> bool:
        """Return True if planes would see little but a few of the columns."""
        reach = self.reaches()
        if not reach.size:
            return False
        low, high = (
            np.quantile(reach, 0.1, method="lower"),
            np.quantile(reach, 0.9, method="higher"),
        )
        return bool(reach.max() > MAX_UNSCALED_VALUE or high > MAX_RANGE_RATIO * low)
