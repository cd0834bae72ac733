"""Rows of X as loops read them: looked at once, at memory speed, and without a copy."""

import math
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.inspection import LARGEST, column_facts, largest_magnitude, starts_are_sound
from polyplane.engine.rows.storage import Rows, csr_rows, dense_rows

__all__ = ["INDEX_DTYPES", "check_products", "check_scores", "checked_rows"]

INDEX_DTYPES = (np.int32, np.int64)


def checked_rows(X: Any, constant: float) -> Rows:
    """A matrix, or one of CSR, of finite numbers that are not too large."""
    if isinstance(X, np.ndarray):
        _check_magnitude(X)
        return dense_rows(X, constant)
    X = _with_plain_parts(X)
    _check_magnitude(X.data)
    if not starts_are_sound(X.indptr, min(X.data.size, X.indices.size)):
        raise ValueError("X is a broken CSR matrix: its indptr does not rise from 0 to its end.")
    lowest, highest, is_canonical = column_facts(X.indices, X.indptr)
    if lowest < 0 or highest >= X.shape[1]:
        raise ValueError(
            f"X is a broken CSR matrix: column {lowest if lowest < 0 else highest} in a matrix "
            f"of {X.shape[1]} columns."
        )
    if not is_canonical:
        X = X.copy()
        X.sum_duplicates()
    return csr_rows(X, constant)


def _with_plain_parts(X: Any) -> Any:
    """Return the matrix in arrays as compiled loops read them, copied only where needed."""
    for name in ("data", "indices", "indptr"):
        part = getattr(X, name)
        if part.ndim != 1:
            raise ValueError(f"X is a broken CSR matrix: its {name} has {part.ndim} dimensions.")
        if name != "data" and part.dtype.kind not in "iu":
            raise ValueError(
                f"X is a broken CSR matrix: its {name} holds {part.dtype.name}, not whole numbers."
            )
    values, columns, starts = np.ascontiguousarray(X.data), _native(X.indices), _native(X.indptr)
    if columns.dtype != starts.dtype:  # loops would be compiled for each mixture
        columns, starts = columns.astype(np.int64), starts.astype(np.int64)
    if values is X.data and columns is X.indices and starts is X.indptr:
        return X
    plain = type(X)(X.shape, dtype=values.dtype)
    plain.data, plain.indices, plain.indptr = values, columns, starts
    return plain


def _native(whole: Array) -> Array:
    """Whole numbers as int32 or int64 of this machine, side by side."""
    plain = whole if whole.dtype in INDEX_DTYPES else whole.astype(np.int64)
    return np.ascontiguousarray(plain)


def _check_magnitude(values: Array) -> None:
    largest = largest_magnitude(values)
    if np.isnan(largest):
        raise ValueError(
            "Input X contains NaN: fill or drop the missing values first, or give a DataFrame, or "
            "an array with such values to the first fit, in which they are learned from."
        )
    if np.isinf(largest):
        raise ValueError("Input X contains infinity: replace or drop such values first.")
    if largest > LARGEST:
        raise ValueError(
            f"Input X has values as large as {largest:.3g}, above {LARGEST:g}, whose products "
            "overflow: scale the columns first, for example with "
            "sklearn.preprocessing.MaxAbsScaler."
        )


def check_products(rows: Any, gamma: float, coef0: float) -> None:
    """Squared norms of rows of products, added up over a long stream, stay within float32."""
    x = largest_magnitude(rows.values)
    if max(gamma * x * x, math.sqrt(2 * gamma * coef0) * x) > LARGEST:
        raise ValueError(
            f"Input X has values as large as {x:.3g}, whose products with gamma={gamma:g} are "
            f"above {LARGEST:g} and would overflow: scale the columns first, for example with "
            "sklearn.preprocessing.MaxAbsScaler."
        )


def check_scores(name: str, scores: Array) -> None:
    """Scores are numbers; minus infinity is that of a class without planes, which cannot win."""
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise ValueError(
            f"{name}: scores of these rows overflow float32: scale the columns before training, "
            "for example with sklearn.preprocessing.StandardScaler, or regularise more."
        )
