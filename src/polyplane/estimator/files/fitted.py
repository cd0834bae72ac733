"""Estimators as what they are once fitted, and back: the bridge to `model/prediction.py`.

Here, and in `training_tables.py`, is all that model files know of the classes behind estimators.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import preprocessing

import polyplane
from polyplane.arrays import Array
from polyplane.estimator.answers.plane_answers import PlanePrediction
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.input.tables import layout_of, width_of
from polyplane.estimator.kernel_classifier import KernelClassifier
from polyplane.estimator.online_classifier import record_of
from polyplane.estimator.parameters import REGISTRY, check_parameters
from polyplane.model.format.algorithm_names import class_name_of, short_name
from polyplane.model.format.checks import LARGEST_COUNT, need
from polyplane.model.format.model_file import ModelError
from polyplane.model.input.scaling import Scaler
from polyplane.model.prediction import HISTORY, FittedModel

__all__ = [
    "estimator_of",
    "fitted_of",
    "scaler_of",
    "sklearn_scaler_of",
    "sklearn_scalers",
    "steps_of",
]


# ---- estimators to fitted models ---------------------------------------------------------


def fitted_of(estimator: Any) -> FittedModel:
    """Return an estimator, or a view of it, as a fitted model; in the middle of a fit, so far."""
    training = training_of(estimator)
    layout = layout_of(estimator)
    names = vars(estimator).get("feature_names_in_") if layout is None else None
    is_planes = isinstance(estimator, PlanePrediction)
    return FittedModel(
        algorithm=short_name(type(estimator).__name__),
        labels=training.classes,
        n_columns=width_of(estimator),
        names=None if names is None else [str(name) for name in names],
        record=record_of(estimator),
        features=training.columns.features(training.constant) if is_planes else None,
        has_probabilities=hasattr(estimator, "predict_proba"),
        is_dense=True if is_planes else training.is_dense,
        parameters=estimator.get_params(deep=False),
        found=dict(training.found),
        n_steps=int(estimator.n_steps_),
        n_passes=int(estimator.n_iter_),
        alpha=float(training.models[0].alpha) if is_planes else None,
        gamma=None if is_planes else float(estimator.gamma_),
        history=estimator.history_ if is_planes else np.empty(0, HISTORY),
        version=polyplane.__version__,
        table=None if layout is None else layout.to_dict(),
        fit_report=vars(estimator).get("_fit_report"),
    )


# ---- fitted models to estimators ---------------------------------------------------------


def estimator_of(model: FittedModel) -> Any:
    """A fitted estimator, whose training is still missing."""
    name = class_name_of(model.algorithm)
    need(name is not None, f"there is no algorithm {model.algorithm!r}")
    estimator: Any = getattr(polyplane, str(name))
    need(estimator in REGISTRY.values(), f"there is no algorithm {model.algorithm!r}")
    need(
        issubclass(estimator, PlanePrediction) == model.has_planes,
        "a record is of another algorithm",
    )
    made = estimator(**model.parameters)
    _check_settings(made)
    made.classes_, made.n_features_in_ = model.labels, model.n_columns
    if model.names is not None:
        made.feature_names_in_ = np.array(model.names, object)
    if isinstance(made, KernelClassifier):
        need(model.gamma is not None, "there is no gamma")
        return made
    need(model.alpha is not None, "there is no alpha")
    need(model.has_probabilities == hasattr(made, "predict_proba"), "probabilities are unclear")
    if model.fit_report is not None:
        made._fit_report = dict(model.fit_report)
    _check_found(made, model.found)
    return made


def _check_settings(estimator: Any) -> None:
    """Parameters in their ranges, and whole numbers such as arrays can be counted with."""
    check_parameters(estimator)
    for name, value in estimator.get_params(deep=False).items():
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        need(not is_whole or abs(value) < LARGEST_COUNT, f"{name} is beyond all counts")


def _check_found(estimator: Any, found: Mapping[str, Any]) -> None:
    """Check that each 'auto' was found, and that it is a value the parameter may have."""
    given, searched = estimator.get_params(deep=False), set(estimator.algorithm.searched)
    need(found.keys() <= searched, "settings were found of other parameters")
    need("auto" not in found.values(), "a setting has not been found")
    _check_settings(type(estimator)(**found))
    open_ = {name for name, value in given.items() if isinstance(value, str) and value == "auto"}
    need(open_ & searched <= found.keys(), "a setting has not been found")


# ---- scalers -----------------------------------------------------------------------------


def sklearn_scalers() -> dict[str, Any]:
    """The scalers that a model may have before it; asked late, for they load much of SciPy."""
    return {
        "maxabs": preprocessing.MaxAbsScaler,
        "minmax": preprocessing.MinMaxScaler,
        "standard": preprocessing.StandardScaler,
    }


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, or the model alone."""
    return [step for _, step in getattr(model, "steps", [("", model)])]


def scaler_of(scaler: Any) -> Scaler:
    """Return the map of a fitted scaler of scikit-learn."""
    kinds = {estimator: kind for kind, estimator in sklearn_scalers().items()}
    kind = kinds[type(scaler)]
    names = getattr(scaler, "feature_names_in_", None)
    n_rows = getattr(scaler, "n_samples_seen_", None)  # of columns with gaps, one for each
    low, high = getattr(scaler, "feature_range", (-1.0, 1.0))
    shift = _of(scaler, "min_")
    if kind == "standard" and scaler.with_mean:
        shift = _of(scaler, "mean_")
    has_scale = kind != "standard" or scaler.with_std
    return Scaler(
        kind=kind,
        n_columns=int(scaler.n_features_in_),
        names=None if names is None else [str(name) for name in names],
        scale=_of(scaler, "scale_") if has_scale else None,
        shift=shift,
        clips=bool(getattr(scaler, "clip", False)),
        low=float(low),
        high=float(high),
        n_rows=None if n_rows is None or np.ndim(n_rows) else int(n_rows),
        mean=_of(scaler, "mean_"),
        variance=_of(scaler, "var_"),
        least=_of(scaler, "data_min_"),
        greatest=_of(scaler, "max_abs_" if kind == "maxabs" else "data_max_"),
    )


def _of(scaler: Any, name: str) -> Array | None:
    value = getattr(scaler, name, None)
    return None if value is None else np.asarray(value)


def sklearn_scaler_of(scaler: Scaler) -> Any:
    """The scaler again, to stand in a pipeline."""
    made = _new_scaler(scaler)
    made.n_features_in_ = scaler.n_columns
    if scaler.n_rows is not None:
        made.n_samples_seen_ = np.int64(scaler.n_rows)
    if scaler.names is not None:
        made.feature_names_in_ = np.array(scaler.names, object)
    made.scale_ = scaler.scale
    if scaler.kind == "maxabs":
        made.max_abs_ = scaler.greatest
    elif scaler.kind == "minmax":
        made.min_, made.data_min_, made.data_max_ = scaler.shift, scaler.least, scaler.greatest
        if scaler.least is not None and scaler.greatest is not None:
            made.data_range_ = scaler.greatest - scaler.least
    else:
        made.mean_, made.var_ = scaler.mean, scaler.variance
    return made


def _new_scaler(scaler: Scaler) -> Any:
    estimator = sklearn_scalers()[scaler.kind]
    if scaler.kind == "minmax":
        return estimator(feature_range=(scaler.low, scaler.high), clip=scaler.clips)
    if scaler.kind == "standard":
        return estimator(with_mean=scaler.shift is not None, with_std=scaler.scale is not None)
    if scaler.clips and not hasattr(estimator(), "clip"):
        raise ModelError("its scaler cuts values, which this scikit-learn cannot: upgrade it")
    return estimator(clip=True) if scaler.clips else estimator()
