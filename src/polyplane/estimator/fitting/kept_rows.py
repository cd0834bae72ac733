"""A few rows of the latest fit, by which `feature_importances_` are told.

They are kept beside estimators, not in them: no copy, pickle or model file hands out rows of the
training.
"""

import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

__all__ = ["forget_rows", "give_rows", "keep_some_rows", "rows_kept_of"]

MAX_KEPT_ROWS = 512
PLAIN = np.ndarray, sp.csr_matrix, sp.csr_array
_KEPT: Any = weakref.WeakKeyDictionary()


def keep_some_rows(estimator: Any, X: Any) -> None:
    """Copy some rows of X, evenly spaced."""
    has_no_rows = getattr(X, "format", "csr") != "csr"  # of sparse matrices
    rows = sp.csr_matrix(X) if has_no_rows else X if hasattr(X, "shape") else np.asarray(X)
    n_kept = min(rows.shape[0], MAX_KEPT_ROWS)
    places = np.arange(n_kept) * rows.shape[0] // n_kept
    try:  # what is plain needs no search for the library that it comes from
        kept = rows[places] if type(rows) in PLAIN else _safe_indexing(rows, places)
    except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError):
        kept = None  # no fit fails because rows of its kind cannot be picked
    _KEPT[estimator] = kept


def forget_rows(estimator: Any) -> None:
    """Remove the rows that were kept of the latest fit."""
    _KEPT.pop(estimator, None)


def give_rows(estimator: Any, rows: Any) -> None:
    """Let these be the rows of the latest fit; None: there are none."""
    if rows is None:
        forget_rows(estimator)
    else:
        _KEPT[estimator] = rows


def rows_kept_of(estimator: Any) -> Any:
    """Return the rows kept of the latest fit, or None."""
    return _KEPT.get(estimator)
