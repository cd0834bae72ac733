"""Tables in front of an estimator: frames become rows of X by the layout of `data/table/`.

`fit` learns the layout from the whole frame, the first `partial_fit` from its chunk, after which it
grows; `layout_` keeps it, and everything that takes X obeys it. Rows that have been laid out
already, as `polyplane.read` does with files, are taken as they are.
"""

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from polyplane.data.table.frames import Frame, frame_of, has_texts, is_frame, rows_of
from polyplane.data.table.layout import LaidOut, Layout
from polyplane.data.table.learning import ignored_columns
from polyplane.data.table.statistics import KeyedRows
from polyplane.engine.inspection import largest_magnitude

__all__ = [
    "TableRows", "give_layout", "keep_keys", "keep_keys_again", "layout_of", "rows_of_table",
    "take_keys", "take_layout", "width_of", "without_layout",
]  # fmt: skip

FROM_DTYPE = "from_dtype"
ROWS_COPIED = 1 << 12  # at once, to look for gaps


class TableRows(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Tables to rows of X before a scaler, by a layout that has been learned."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> "TableRows":
        """Nothing is left to learn."""
        return self

    def transform(self, X: Any) -> Any:
        """Rows of a frame; rows that have been laid out already are taken as they are."""
        is_table = is_frame(X) or has_texts(X)
        return rows_of(frame_of(X), _frozen(self.layout)) if is_table else X


def layout_of(estimator: Any) -> Layout | None:
    """Return the layout of the table X; None where X was no table."""
    layout: Layout | None = vars(estimator).get("layout_")
    return layout


def without_layout(estimator: Any) -> Any:
    """Return the fitted estimator for rows that have been laid out already."""
    layout = layout_of(estimator)
    if layout is None:
        return estimator
    plain = copy.copy(estimator)
    for name in ("layout_", "feature_names_in_"):
        vars(plain).pop(name, None)
    plain.n_features_in_ = layout.width
    return plain


def width_of(estimator: Any) -> int:
    """Return the number of columns the algorithm sees: those of X, or those its layout makes."""
    layout = layout_of(estimator)
    return int(estimator.n_features_in_) if layout is None else layout.width


def give_layout(estimator: Any, layout: Layout | None) -> None:
    """Let an estimator take tables, if the layout makes the rows that it has been fitted on."""
    if layout is None or not layout.is_learned or layout.width != estimator.n_features_in_:
        return
    estimator.layout_, estimator.n_features_in_ = layout, len(layout.sources)
    if layout.has_names:
        names = [source.name for source in layout.sources]
        estimator.feature_names_in_ = np.array(names, object)


def take_layout(estimator: Any) -> Layout | None:
    """Let an estimator take rows that are laid out, and only these; return the layout it had."""
    layout = layout_of(estimator)
    if layout is not None:
        estimator.n_features_in_ = layout.width
        for name in ("layout_", "feature_names_in_"):
            vars(estimator).pop(name, None)
    return layout


def rows_of_table(estimator: Any, X: Any, begins: bool, grows: bool) -> Any:
    """Rows of X where it is a table, or of an estimator that has met one; else None.

    `begins`: a new layout is learned, and `grows` with later chunks if it is learned from one.
    """
    if isinstance(X, LaidOut):
        return _of_layout(estimator, X, begins)
    if isinstance(X, list | tuple):
        X = _array_of(X)
    is_table = is_frame(X) or has_texts(X)
    if begins:
        is_table = is_table or _has_gaps(estimator, X)
        vars(estimator).pop("layout_", None)
        return _learned(estimator, frame_of(X), grows) if is_table else None
    layout = layout_of(estimator)
    if layout is None:
        if is_table:
            _check_only_numbers(estimator, frame_of(X))
        return None
    if not is_table:
        is_raw = getattr(X, "shape", ())[1:] == (estimator.n_features_in_,)
        if not is_raw or sp.issparse(X):
            return _laid_out_before(estimator, X, layout)
        _warn_of_no_names(estimator, layout)
        X = np.asarray(X)
    frame = frame_of(X)
    if not grows or not layout.grows:
        return rows_of(frame, _frozen(layout))
    estimator.layout_ = layout.copied()
    estimator.layout_.categories.is_frozen = False
    return rows_of(frame, estimator.layout_)


def _of_layout(estimator: Any, rows: LaidOut, begins: bool) -> Any:
    """Rows of X that a layout has made, which the estimator takes over when a fit begins."""
    layout = layout_of(estimator)
    if begins or layout is None:
        estimator.n_features_in_ = rows.layout.width
        vars(estimator).pop("feature_names_in_", None)
        give_layout(estimator, rows.layout)
    else:
        layout.keys, layout.keyed = rows.layout.keys, rows.layout.keyed
    return rows.X


def take_keys(estimator: Any) -> KeyedRows | None:
    """Return the keys of the rows that were read last, which are kept no longer."""
    layout = layout_of(estimator)
    if layout is None:
        return None
    keyed, layout.keyed = layout.keyed, None
    return keyed


def keep_keys(estimator: Any, layout: Layout) -> bool:
    """Have a layout keep the keys of rows if the estimator takes them; return whether it does."""
    if layout.grows and layout.is_learned:
        return False
    layout.keeps_keys = bool(getattr(estimator, "KEEPS_KEYS", False))
    layout.statistics, layout.keys, layout.keyed = None, None, None
    return layout.keeps_keys


def keep_keys_again(estimator: Any) -> None:
    """Have the rows of a training that goes on read without target statistics, with their keys."""
    layout = layout_of(estimator)
    if layout is not None and not layout.grows:
        estimator.layout_ = layout.for_training()


def _has_gaps(estimator: Any, X: Any) -> bool:
    """Return True if X is an array of numbers of which some are missing: a table without names."""
    is_numbers = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64)
    if not is_numbers or X.size == 0 or getattr(estimator, "kernel", None) == "precomputed":
        return False
    if X.flags.c_contiguous:
        return bool(np.isnan(largest_magnitude(X)))
    starts = range(0, len(X), ROWS_COPIED)
    parts = (np.ascontiguousarray(X[start : start + ROWS_COPIED]) for start in starts)
    return any(np.isnan(largest_magnitude(part)) for part in parts)


def _array_of(rows: Any) -> Any:
    """Lists of lists as an array, if they can be one."""
    try:
        return np.asarray(rows)
    except ValueError:  # of several lengths, which is said elsewhere
        return rows


def _learned(estimator: Any, frame: Frame, grows: bool) -> Any:
    """Rows of the frame from which the layout is learned."""
    layout = Layout(grows=grows, keeps_keys=getattr(estimator, "KEEPS_KEYS", False) and not grows)
    rows = rows_of(frame, layout, _categorical(estimator, frame))
    if layout.set_aside:
        words = ignored_columns(layout.set_aside, "categorical_features")
        warnings.warn(f"{type(estimator).__name__}: {words}", stacklevel=2)
    estimator.layout_, estimator.n_features_in_ = layout, len(frame.columns)
    vars(estimator).pop("feature_names_in_", None)
    if frame.texts is not None:
        estimator.feature_names_in_ = np.array(frame.texts, object)
    return rows


def _frozen(layout: Layout) -> Layout:
    """Return a layout that learns no more categories."""
    if layout.categories.is_frozen:
        return layout
    frozen = layout.copied()
    frozen.categories.is_frozen = True
    return frozen


def _laid_out_before(estimator: Any, X: Any, layout: Layout) -> Any:
    """Rows of the width that the layout gives them."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or shape[1] > layout.width:
        found = f"{shape[1]} columns" if len(shape) == 2 else f"shape {shape}"
        raise ValueError(
            f"X has {found}, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: the columns of the table that it was "
            "fitted on."
        )
    return X


def _check_only_numbers(estimator: Any, frame: Frame) -> None:
    found = frame.first_of_no_numbers()
    if found is not None:
        raise ValueError(
            f"{found}, but {type(estimator).__name__} was fitted on numbers: fit it on a table "
            "that has such a column."
        )


def _warn_of_no_names(estimator: Any, layout: Layout) -> None:
    if layout.has_names:
        warnings.warn(
            "X does not have valid feature names, but "
            f"{type(estimator).__name__} was fitted with feature names",
            stacklevel=2,
        )


def _categorical(estimator: Any, frame: Frame) -> Sequence[str | int]:
    """The columns that are categories whatever their type is."""
    given = getattr(estimator, "categorical_features", FROM_DTYPE)
    if given is None or (isinstance(given, str) and given == FROM_DTYPE):
        return ()
    chosen = np.asarray(given)
    n_columns = len(frame.columns)
    if chosen.dtype.kind == "b":
        if chosen.shape != (n_columns,):
            raise ValueError(
                f"categorical_features is a mask of {chosen.size} columns; X has {n_columns}."
            )
        return [int(place) for place in np.flatnonzero(chosen)]
    known = frame.texts or []
    listed = chosen.ravel().tolist()
    lacking = [name for name in listed if isinstance(name, str) and name not in known]
    if lacking:
        raise ValueError(f"categorical_features names {lacking}, which X does not have.")
    return listed
