"""Fitted classifiers for programs without Python: as ONNX, or as C."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from polyplane import __version__
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import Rows, dense_rows
from polyplane.estimator.kernels.kernel_classifier import KernelClassifier
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.thread_safety import view_of
from polyplane.model.export.c_header import c_header
from polyplane.model.export.content import Exported, Scaling, with_some_plane
from polyplane.model.file import ModelError
from polyplane.model.plane_record import PlaneRecord
from polyplane.whole_files import whole_file

__all__ = ["to_c", "to_onnx"]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    column_names: Sequence[str] | None = None,
) -> Any:
    """The model as an `onnx.ModelProto`, written to `path` where one is given.

    `model` is a fitted polyplane classifier, or a pipeline that ends with one and scales columns
    before it (MaxAbsScaler, MinMaxScaler, StandardScaler). Input `X` is float32, rows by columns;
    outputs are `label`, `scores` (by class) and, where the classifier has them, `probabilities`.
    `column_names` go into the metadata; without them those that `model` was fitted with.
    """
    exported = _exported(model, column_names)
    try:
        from polyplane.model.export.onnx_model import onnx_model  # noqa: PLC0415 an extra, slow to load
    except ImportError as error:
        problem = "the model cannot be written as ONNX: `pip install polyplane[onnx]` first"
        raise ModelError(problem) from error
    made = onnx_model(exported, __version__)
    if path is not None:
        _write(path, made.SerializeToString())
    return made


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    column_names: Sequence[str] | None = None,
) -> str:
    """The model as a header of C99 or C++, written to `path` where one is given.

    `model` is as in `to_onnx`. Functions begin with `name`, by default that of the file:
    `int NAME_predict(const float *x)` returns the number of a class, of which NAME_CLASSES has
    the label, and `void NAME_scores(const float *x, float *scores)` fills in their scores.
    `column_names` become NAME_COLUMNS; without them those that `model` was fitted with.
    """
    exported = _exported(model, column_names)
    text = c_header(exported, _c_name(path, name), __version__)
    if path is not None:
        _write(path, text.encode())
    return text


def _c_name(path: str | os.PathLike[str] | None, name: str | None) -> str:
    """With what names of functions begin: as given, or made of the file's name."""
    if name is None:
        stem = "polyplane" if path is None else Path(path).name.split(".")[0]
        name = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = name if name[:1].isalpha() else f"model_{name}"
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ModelError(
            f"name is {name!r}, with which names in C cannot begin: use letters, digits and "
            "underscores, a letter first"
        )
    return name


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        with whole_file(Path(path)) as file:
            file.write(content)
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); nothing was changed"
        raise ModelError(problem, path) from error


def _exported(model: Any, column_names: Sequence[str] | None) -> Exported:
    """What is exported of a classifier or pipeline."""
    *scalers, classifier = _steps(model)
    names = getattr(model, "feature_names_in_", ()) if column_names is None else column_names
    if len(names) not in (0, classifier.n_features_in_):
        raise ModelError(
            f"{len(names)} column names are given for {classifier.n_features_in_} columns: give "
            "one for each"
        )
    classifier = view_of(classifier)
    record, rows = classifier._record(), None
    if isinstance(classifier, HyperplaneClassifier):
        record, rows = with_some_plane(_of_all_columns(classifier)), _row_of_zeros(classifier)
    return Exported(
        title=type(classifier).__name__,
        n_columns=classifier.n_features_in_,
        column_names=[str(name) for name in names],
        classes=classifier.classes_,
        scalings=[_scaling(scaler, classifier.n_features_in_) for scaler in scalers],
        record=record,
        rows=rows,
        has_probabilities=hasattr(classifier, "predict_proba"),
    )


def _steps(model: Any) -> Sequence[Any]:
    """The steps that do something, of which the last is a classifier of ours, all fitted."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [step for step in steps if step is not None and not isinstance(step, str)]
    if not steps or not isinstance(steps[-1], HyperplaneClassifier | KernelClassifier):
        found = type(steps[-1] if steps else model).__name__
        raise ModelError(
            f"{found} cannot be exported: give a fitted polyplane classifier, or a pipeline of "
            "scalers that ends with one"
        )
    for step in steps:
        try:
            check_is_fitted(step)
        except NotFittedError:
            name = type(step).__name__
            raise NotFittedError(f"{name} is not fitted: call `fit` before exporting") from None
    return steps


def _scaling(scaler: Any, n_columns: int) -> Scaling:
    """What a fitted scaler does."""
    name = type(scaler).__name__
    if type(scaler) not in SCALERS:
        kinds = ", ".join(kind.__name__ for kind in SCALERS)
        raise ModelError(f"{name} cannot be exported: before the classifier, only {kinds} can")
    if scaler.n_features_in_ != n_columns:
        raise ModelError(
            f"{name} was fitted on {scaler.n_features_in_} columns, the classifier on {n_columns}: "
            "fit the pipeline as a whole"
        )
    return SCALERS[type(scaler)](scaler)


def _of_max_abs(scaler: Any) -> Scaling:
    limits = (-1.0, 1.0) if getattr(scaler, "clip", False) else None
    return Scaling(None, _wide(scaler.scale_), limits)


def _of_min_max(scaler: Any) -> Scaling:
    """x * scale_ + min_, the other way round."""
    factor, term = _wide(scaler.scale_), _wide(scaler.min_)
    limits = (float(scaler.feature_range[0]), float(scaler.feature_range[1]))
    return Scaling(
        -term / factor if term.any() else None, 1 / factor, limits if scaler.clip else None
    )


def _of_standard(scaler: Any) -> Scaling:
    shift = _wide(scaler.mean_) if scaler.with_mean else None
    return Scaling(shift, _wide(scaler.scale_) if scaler.with_std else None)


def _wide(numbers: Any) -> Array:
    return np.asarray(numbers, np.float64)


SCALERS: dict[type, Callable[[Any], Scaling]] = {
    MaxAbsScaler: _of_max_abs,
    MinMaxScaler: _of_min_max,
    StandardScaler: _of_standard,
}


def _of_all_columns(classifier: HyperplaneClassifier) -> PlaneRecord:
    """The record, whose planes may have features of columns in use only."""
    record, columns = classifier._record(), classifier._training.columns
    if columns is None or columns.used is None:
        return record
    return replace(record, sums=columns.spread(record.sums))


def _row_of_zeros(classifier: HyperplaneClassifier) -> Rows:
    """A row as finished planes see it: its type says what becomes of columns."""
    zeros = np.zeros((1, classifier.n_features_in_), np.float32)
    row: Any = classifier._mapped_rows(dense_rows(zeros, classifier._training.constant))
    columns = classifier._training.columns
    if columns is not None and columns.used is not None:
        wide: Rows = row._replace(constant=np.float32(1))
        return wide
    return classifier._prediction_rows(classifier._training, row)
