"""Checks of the input of users, which becomes what the engine reads, without a copy."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_X_y,
    column_or_1d,
    validate_data,
)

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import widened
from polyplane.engine.rows.storage import Rows
from polyplane.estimator.input.tables import layout_of, rows_of_table, width_of
from polyplane.model.input.input_rows import INDEX_DTYPES, checked_rows
from polyplane.training.rows import TrainingData, codes_of, small_integers

__all__ = [
    "check_class_weights",
    "check_labels",
    "check_weights_are_known",
    "read_matrix",
    "read_matrix_and_labels",
    "read_training",
    "row_weights",
]

LARGEST_WEIGHT = 1e6
KEPT_DTYPES = (np.float32, np.float64, np.uint8)  # the first is what others become
SPARSE_DTYPES = (np.float32, np.float64)


def read_matrix(estimator: Any, X: Any, reset: bool, constant: float) -> Rows:
    """X alone, for prediction."""
    laid_out = rows_of_table(estimator, X, begins=reset, grows=False)
    if laid_out is not None:
        X = check_array(laid_out, **_options(laid_out))
        return _named_rows(estimator, _as_wide(estimator, X), constant)
    if not (_is_plain(X) and _takes(estimator, X, reset)):
        X = validate_data(estimator, _bytes_of(X), reset=reset, **_options(X))
    elif reset:
        _meet_columns(estimator, X)
    return checked_rows(X, constant)


def read_matrix_and_labels(
    estimator: Any,
    X: Any,
    y: Any,
    reset: bool,
    constant: float,
    begins: bool | None = None,
    is_chunk: bool = False,
) -> tuple[Rows, Array]:
    """X and y, for training."""
    begins = reset if begins is None else begins
    check_labels(y, "y")
    laid_out = rows_of_table(estimator, X, begins, is_chunk)
    if laid_out is not None:
        X, y = check_X_y(laid_out, y, estimator=estimator, **_options(laid_out))
        X = _as_wide(estimator, X)
    elif not (_is_plain(X) and _takes(estimator, X, reset) and _are_plain_labels(y, X.shape[0])):
        X, y = validate_data(estimator, _bytes_of(X), y, reset=reset, **_options(X))
    elif reset:
        _meet_columns(estimator, X)
    if small_integers(y) is None:
        check_classification_targets(y)
    return _named_rows(estimator, X, constant), y


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: Any,
    known: Array | None,
    constant: float,
    is_chunk: bool = False,
) -> tuple[TrainingData, Array]:
    """Checked rows with codes and weights, and all labels known from now on.

    `known` are those of the training that goes on; then X may be wider than it was.
    """
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    goes_on = known is not None
    is_wider = goes_on and getattr(X, "shape", ())[-1:] > (estimator.n_features_in_,)
    rows, y = read_matrix_and_labels(
        estimator, X, y, not goes_on or is_wider, constant, not goes_on, is_chunk
    )
    if classes is not None:
        if np.size(classes) == 0:
            raise ValueError("classes is empty: name the labels, or leave it out.")
        check_labels(classes, "classes")
        known, _ = codes_of(column_or_1d(np.asarray(classes)), known)
    labels, codes = codes_of(y, known)
    return TrainingData(rows, codes, row_weights(y, sample_weight, estimator.class_weight)), labels


def check_labels(y: Any, name: str) -> None:
    """Refuse labels that cannot be told apart by size, or that a model file cannot hold."""
    if isinstance(y, list | tuple):
        y = np.array([None] if any(label is None for label in y) else [], object)
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if kind in ("M", "m"):
        raise ValueError(
            f"{name} holds {'dates' if kind == 'M' else 'durations'}, expected numbers or text as "
            "labels: convert them with astype(str)."
        )
    if kind != "O":
        return
    labels = np.asarray(y, object).ravel().tolist()
    kinds = set(map(type, labels))
    if type(None) in kinds:
        raise ValueError(f"{name} holds None, expected a label in each row: drop such rows.")
    if len({issubclass(kind, str) for kind in kinds}) > 1:
        text = next(label for label in labels if isinstance(label, str))
        other = next(label for label in labels if not isinstance(label, str))
        raise ValueError(
            f"{name} holds labels of several types, such as {other!r} and {text!r}, expected "
            "numbers or text: convert them with astype(str)."
        )


def check_class_weights(estimator: Any, labels: Array) -> None:
    """A label that no row has is misspelt, unless all others have weights as well."""
    given = estimator.class_weight
    if not isinstance(given, dict):
        return
    names = labels.tolist()
    unknown = [name for name in given if name not in names]
    unweighted = [name for name in names if name not in given]
    if unknown and unweighted:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, of which there is no row, and leaves out "
            f"{unweighted[0]!r}: its keys must be labels as they stand in y."
        )


def check_weights_are_known(estimator: Any) -> None:
    """In a stream nobody knows how many rows a class will have."""
    if estimator.class_weight == "balanced":
        raise ValueError(
            'class_weight="balanced" needs all rows at once, not a stream: give a dict of weights.'
        )


def _is_plain(X: Any) -> bool:
    """Return True if `validate_data` would return X as it is, if the estimator knows its columns.

    It takes a tenth of a millisecond and more to find that out, in which a thousand rows can be
    learned.
    """
    if type(X) is np.ndarray:
        is_kept = X.dtype in KEPT_DTYPES and X.flags.c_contiguous
    elif type(X) in (sp.csr_matrix, sp.csr_array):
        is_kept = X.data.dtype in SPARSE_DTYPES and X.indices.dtype in INDEX_DTYPES
        is_kept = is_kept and X.indices.dtype == X.indptr.dtype
    else:
        return False
    return is_kept and len(X.shape) == 2 and 0 not in X.shape


def _takes(estimator: Any, X: Any, reset: bool) -> bool:
    """Return True if plain rows have the columns of the estimator; any will do at a reset."""
    is_as_wide = X.shape[1] == getattr(estimator, "n_features_in_", None)
    return reset or (is_as_wide and not hasattr(estimator, "feature_names_in_"))


def _meet_columns(estimator: Any, X: Any) -> None:
    """Note the number of columns of plain rows, as `validate_data` does; they have no names."""
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)


def _are_plain_labels(y: Any, n_rows: int) -> bool:
    """Return True if `validate_data` would return y as it is."""
    is_vector = type(y) is np.ndarray and y.shape == (n_rows,)
    return is_vector and (y.dtype.kind in "biuU" or (y.dtype.kind == "f" and np.isfinite(y).all()))


def _named_rows(estimator: Any, X: Any, constant: float) -> Rows:
    """Checked rows; what is wrong with a number of a table is said with its column."""
    try:
        return checked_rows(X, constant)
    except ValueError as error:
        layout = layout_of(estimator)
        if layout is None:
            raise
        sizes: Any = abs(X).max(axis=0)  # of sparse rows, sparse
        largest = sizes.toarray() if sp.issparse(X) else sizes
        name = layout.feature_names[int(largest.argmax())]
        raise ValueError(f"{error} The column is {name!r}.") from None


def _as_wide(estimator: Any, X: Any) -> Any:
    """Rows of a stream, laid out before all categories had been met, as wide as they are now."""
    width = width_of(estimator)
    if X.shape[1] == width or not sp.issparse(X):
        return X
    return widened(X, width)


def _options(X: Any) -> dict[str, Any]:
    return {
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "dtype": SPARSE_DTYPES if sp.issparse(X) else KEPT_DTYPES,
        "order": "C",
        "ensure_all_finite": False,  # `checked_rows` looks, at memory speed
    }


def _bytes_of(X: Any) -> Any:
    """Truth values are bytes already."""
    is_truth = isinstance(X, np.ndarray) and X.dtype == np.bool_
    return X.view(np.uint8) if is_truth else X


def row_weights(y: Array, sample_weight: Any, class_weight: Any) -> Array:
    """The factor of each row's update; empty where all are 1."""
    if sample_weight is None and class_weight is None:
        return np.empty(0, np.float32)
    matrix = np.empty((y.size, 1), np.float32)
    weights = _check_sample_weight(
        sample_weight, matrix, dtype=np.float64, ensure_non_negative=True, copy=True
    )
    if class_weight is not None:
        labels, codes = np.unique(y, return_inverse=True)
        if isinstance(class_weight, dict):
            factors = np.array([class_weight.get(label, 1.0) for label in labels.tolist()])
        else:
            factors = compute_class_weight(class_weight, classes=labels, y=y)
        weights *= _checked_factors(factors)[codes]
    if weights.max() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight times class_weight is as large as {weights.max():.3g}, above "
            f"{LARGEST_WEIGHT:g}, and would overflow: divide all weights by a constant."
        )
    return np.asarray(weights, np.float32)


def _checked_factors(factors: Array) -> Array:
    try:
        numbers = np.asarray(factors, np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(f"class_weight must hold numbers of at least 0; got {factors.tolist()}.")
    return numbers
