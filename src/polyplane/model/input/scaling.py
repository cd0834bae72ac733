"""Columns brought to one scale before a classifier sees them, as scikit-learn's scalers do it.

maxabs     x / scale
minmax     x * scale + shift
standard   (x - shift) / scale
Sparse rows keep their zeros: they are multiplied by 1 / scale, and there must be no shift. The
arithmetic is that of scikit-learn, to the bit, so that models see what they were trained on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.model.format.checks import need
from polyplane.model.format.schema import (
    Count,
    Flag,
    Many,
    Maybe,
    Number,
    Numbers,
    Table,
    Text,
    Word,
)

__all__ = ["SCALER", "SCALERS", "Scaler"]

SCALERS = "maxabs", "minmax", "standard"
OF_COLUMNS = Numbers("float32|float64", ("column",))


@dataclass(frozen=True)
class Scaler:
    """Map of a fitted scaler, and what it needs to be fitted further."""

    kind: str
    n_columns: int
    names: list[str] | None  # of columns
    scale: Array | None  # [column]
    shift: Array | None  # [column]: the mean of "standard", the term of "minmax"
    clips: bool  # whether values are kept within low and high
    low: float
    high: float
    n_rows: int | None  # seen so far
    mean: Array | None  # [column] of "standard", whether it is taken away or not
    variance: Array | None  # [column] of "standard"
    least: Array | None  # [column] of "minmax"
    greatest: Array | None  # [column] of "minmax", and of "maxabs" the largest magnitude

    def scaled(self, X: Any) -> Any:
        """Rows of X on the scale of the classifier; X itself stays as it is."""
        if X.shape[1] != self.n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, but the scaler knows {self.n_columns}.")
        is_float = X.dtype in (np.float32, np.float64)
        X = X.copy() if is_float else X.astype(np.float64)
        if isinstance(X, np.ndarray):
            return self._clipped(self._of_dense(X))
        if self.shift is not None:
            raise ValueError("Sparse rows cannot be shifted, as this scaler does: make them dense.")
        if self.scale is not None:
            X.data *= (1.0 / self.scale).take(X.indices, mode="clip")
        self._clipped(X.data)
        return X

    def _of_dense(self, X: Array) -> Array:
        if self.kind == "maxabs":
            X /= self.scale
        elif self.kind == "minmax":
            X *= self.scale
            X += self.shift
        else:
            if self.shift is not None:
                X -= self.shift.astype(X.dtype)
            if self.scale is not None:
                X /= self.scale.astype(X.dtype)
        return X

    def _clipped(self, values: Array) -> Array:
        if self.clips:
            low, high = values.dtype.type(self.low), values.dtype.type(self.high)
            np.clip(values, low, high, out=values)
        return values


def _check_scaler(scaler: Scaler) -> None:
    need(scaler.kind == "standard" or scaler.scale is not None, "a scaler has no scale")
    has_shift = {"maxabs": (False,), "minmax": (True,), "standard": (False, True)}
    need((scaler.shift is not None) in has_shift[scaler.kind], "a scaler shifts as it cannot")
    for one in (scaler.scale, scaler.shift):
        need(one is None or one.size == scaler.n_columns, "the scaler is of other columns")
    if scaler.scale is not None:
        need(bool((scaler.scale != 0).all()), "a scaler divides by 0")
    need(scaler.names is None or len(scaler.names) == scaler.n_columns, "names are too many")
    need(scaler.low <= scaler.high, "a scaler keeps values within nothing")


SCALER = Table(
    Scaler,
    {
        "kind": Word(SCALERS),
        "columns": Count(),
        "names": Maybe(Many(Text())),
        "scale": Maybe(OF_COLUMNS),
        "shift": Maybe(OF_COLUMNS),
        "clips": Flag(),
        "low": Number(),
        "high": Number(),
        "rows": Maybe(Count()),
        "mean": Maybe(OF_COLUMNS),
        "variance": Maybe(OF_COLUMNS),
        "least": Maybe(OF_COLUMNS),
        "greatest": Maybe(OF_COLUMNS),
    },
    {"columns": "n_columns", "rows": "n_rows"},
    check=_check_scaler,
)
