"""Parts of rows that are held out in turn, and what a model does on them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import preprocessing

from polyplane.arrays import Array
from polyplane.report.metrics import standard_error

__all__ = ["Split", "Trial", "folds_of", "new_scaler", "parts_of"]

Split = tuple[Array, Array]  # rows to train on, rows held out


@dataclass
class Trial:
    """Results of an estimator on held-out rows; each row was held out once."""

    rows: Array = field(default_factory=lambda: np.empty(0, np.int64))
    is_wrong: Array = field(default_factory=lambda: np.empty(0, np.bool_))
    sizes: list[int] = field(default_factory=list)  # planes or support vectors
    seconds: list[float] = field(default_factory=list)

    @property
    def error(self) -> float:
        """Share of the held-out rows that are wrong."""
        return float(np.mean(self.is_wrong))

    @property
    def standard_error(self) -> float:
        """Standard error of that share."""
        return standard_error(self.error, self.is_wrong.size)

    @property
    def size(self) -> float:
        """Mean number of planes or support vectors of a model."""
        return float(np.mean(self.sizes))

    @property
    def median_seconds(self) -> float:
        """Median seconds of a fit: the first one may have compiled loops."""
        return float(np.median(self.seconds))


def folds_of(y: Array, n_folds: int, seed: int) -> list[Split]:
    """Return splits that hold out each row once, and of every class about the same share."""
    parts = parts_of(y, n_folds, seed)
    return [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(n_folds)]


def parts_of(y: Array, n_parts: int, seed: int | Sequence[int]) -> Array:
    """Return the part of each row: rows of a class take turns."""
    order = np.random.default_rng(seed).permutation(y.size)
    _, codes = np.unique(y, return_inverse=True)
    by_class = order[np.argsort(codes[order], kind="stable")]
    parts = np.empty(y.size, np.int64)
    parts[by_class] = np.arange(y.size) % n_parts
    return parts


def new_scaler(kind: str, is_sparse: bool) -> Any:
    """Return a scaler that leaves zeros of sparse rows alone; None for "none"."""
    if kind == "none":
        return None
    if kind == "maxabs":
        return preprocessing.MaxAbsScaler()
    return preprocessing.StandardScaler(with_mean=not is_sparse)
