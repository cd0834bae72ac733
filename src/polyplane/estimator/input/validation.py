"""What users hand in, checked once and turned into what the engine reads, without a copy."""

from typing import Any, NamedTuple

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

__all__ = [
    "TrainingData",
    "check_class_weights",
    "check_labels",
    "check_weights_are_known",
    "codes_of",
    "mean_weight_is_one",
    "read_matrix",
    "read_matrix_and_labels",
    "read_training",
    "row_weights",
    "weighty",
]

LARGEST_WEIGHT = 1e6
KEPT_DTYPES = (np.float32, np.float64, np.uint8)  # the first is what others become
SPARSE_DTYPES = (np.float32, np.float64)
LABEL_TABLE_LIMIT = 1 << 16


class TrainingData(NamedTuple):
    """Rows, the code of each row's class, and weights (empty: all 1)."""

    rows: Rows
    labels: Array
    weights: Array


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
    if _small_integers(y) is None:
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


def mean_weight_is_one(data: TrainingData) -> TrainingData:
    """Return the data with weights whose mean is 1: their unit must not change the steps."""
    has_weight = data.weights > 0
    if not has_weight.any():
        return data
    mean = data.weights[has_weight].mean(dtype=np.float64)
    return data._replace(weights=(data.weights / mean).astype(np.float32))


def weighty(members: Array, weights: Array) -> Array:
    """Rows of weight 0 are not visited: that is what leaving them out means."""
    return members[weights > 0] if weights.size else members


def _is_plain(X: Any) -> bool:
    """Whether `validate_data` would hand X back as it is, if the estimator knows its columns.

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
    """Whether plain rows have the columns of an estimator that goes on; any will do at a reset."""
    is_as_wide = X.shape[1] == getattr(estimator, "n_features_in_", None)
    return reset or (is_as_wide and not hasattr(estimator, "feature_names_in_"))


def _meet_columns(estimator: Any, X: Any) -> None:
    """What `validate_data` notes of plain rows: they have no names."""
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)


def _are_plain_labels(y: Any, n_rows: int) -> bool:
    """The same of y."""
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
        raise ValueError(f"{error} This is said of column {name!r}.") from None


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


def _small_integers(y: Array) -> Array | None:
    """y as integers of a small range, or None; most labels are, and then no sort is needed."""
    if y.dtype.kind not in "biuf":
        return None
    low, high = y.min(), y.max()
    if not (low > -LABEL_TABLE_LIMIT and high < LABEL_TABLE_LIMIT):
        return None
    whole = y.astype(np.int32)
    return None if y.dtype.kind == "f" and (whole != y).any() else whole


def codes_of(y: Array, known: Array | None) -> tuple[Array, Array]:
    """The labels met so far, old ones first in their order, and the code of each row of y."""
    whole = _small_integers(y)
    if whole is not None:
        shift = int(whole.min())
        places = whole - shift
        table = np.zeros(int(places.max()) + 1, np.int32)
        table[places] = 1  # `np.bincount` takes three times as long
        present = np.flatnonzero(table)
        labels = (present + shift).astype(y.dtype)
    else:
        labels, places = np.unique(y, return_inverse=True)
        present, table = np.arange(labels.size), np.zeros(labels.size, np.int32)
    if known is None or known.size == 0:
        merged, codes = labels, np.arange(labels.size)
    else:
        _check_alike(known, labels)
        merged, codes = _merged(known, labels)
    table[present] = codes
    return merged, table[places]


def _merged(known: Array, labels: Array) -> tuple[Array, Array]:
    """The known labels and those that are new, which are sorted, and the code of each of these."""
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, labels, sorter=order), known.size - 1)
    codes = order[place]
    is_new = known[codes] != labels
    n_new = np.count_nonzero(is_new)
    if n_new == 0:
        return known, codes
    codes[is_new] = known.size + np.arange(n_new)
    return np.concatenate([known, labels[is_new]]), codes


def _check_alike(known: Array, labels: Array) -> None:
    if known.dtype.kind in "OUS" and labels.dtype.kind not in "OUS":
        raise ValueError(
            f"y holds numbers, but earlier labels are text, like {known.tolist()[0]!r}."
        )
    if known.dtype.kind not in "OUS" and labels.dtype.kind in "OUS":
        raise ValueError(
            f"y holds text, but earlier labels are numbers, like {known.tolist()[0]!r}."
        )


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
