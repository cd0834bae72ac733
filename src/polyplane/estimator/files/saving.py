"""`polyplane.save` and `polyplane.load`: a fitted model and all it needs to predict and to go on.

A loaded model predicts the same bits and continues training where it stopped, in the middle of a
fit that was interrupted as well. What a file may hold is settled by `packing.py` and
`soundness.py`, how it is stored by `model/file.py`.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import polyplane
from polyplane.data.table.layout import Layout
from polyplane.estimator.files.array_checks import need, need_array, need_count, need_finite
from polyplane.estimator.files.model_checks import check_estimator_state, check_sizes
from polyplane.estimator.files.packing import Packer, Unpacker
from polyplane.estimator.files.record_checks import check_record
from polyplane.estimator.kernels.kernel_classifier import KernelClassifier
from polyplane.estimator.kernels.kernel_training import KernelTraining
from polyplane.estimator.parameters import REGISTRY, check_parameters
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import Training
from polyplane.estimator.thread_safety import writing
from polyplane.model.file import ModelError, is_model_file, read_file, write_file

__all__ = ["ModelError", "SavedModel", "is_model_file", "load", "read_model", "save", "write_model"]

SCALERS = {kind.__name__: kind for kind in (MaxAbsScaler, MinMaxScaler, StandardScaler)}


@dataclass
class SavedModel:
    """What a model file holds."""

    estimator: Any
    scaler: Any = None  # of columns, fitted
    layout: Layout | None = None  # how the columns of a table became those of X
    training: dict[str, Any] = field(default_factory=dict)  # how it was called: plain values
    version: str = polyplane.__version__  # of the program that wrote it

    def predictor(self) -> Any:
        """What takes X as it comes."""
        if self.scaler is None:
            return self.estimator
        return Pipeline([("scaler", self.scaler), ("classifier", self.estimator)])


def save(model: Any, path: Any) -> None:
    """Write a fitted model, or a pipeline of a scaler and one, to a file, whole or not at all."""
    write_model(_saved(model), path)


def load(path: Any) -> Any:
    """The model of a file, as it was saved."""
    return read_model(path).predictor()


def _saved(model: Any) -> SavedModel:
    if not isinstance(model, Pipeline):
        return SavedModel(model)
    *before, last = [step for _, step in model.steps]
    if len(before) > 1 or not all(type(step) in SCALERS.values() for step in before):
        raise ModelError(
            "a pipeline can be saved if it is a polyplane classifier behind at most one of "
            f"{', '.join(SCALERS)}; save the classifier by itself instead"
        )
    return SavedModel(last, *before)


# ---- writing -----------------------------------------------------------------------------


def write_model(saved: SavedModel, path: Any) -> None:
    """Write a model file, whole or not at all; a model that is being trained is waited for."""
    estimator = saved.estimator
    if not isinstance(estimator, HyperplaneClassifier | KernelClassifier):
        raise ModelError(f"{estimator!r} is no polyplane classifier, which a model file holds")
    with writing(estimator):
        _write_model(saved, path)


def _write_model(saved: SavedModel, path: Any) -> None:
    estimator, packer = saved.estimator, Packer()
    if not hasattr(estimator, "_training"):
        raise ModelError(f"{type(estimator).__name__} is not fitted: there is nothing to save")
    values = {
        "version": saved.version,
        "estimator": _apart(estimator, packer, "model"),
        "scaler": saved.scaler and _apart(saved.scaler, packer, "scaler"),
        "layout": saved.layout and saved.layout.to_dict(),
        "training": packer.pack(saved.training, "training"),
    }
    write_file(path, values, packer.arrays)


def _apart(estimator: Any, packer: Packer, name: str) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    fitted = {key: value for key, value in vars(estimator).items() if key not in parameters}
    return {
        "class": type(estimator).__name__,
        "parameters": {key: packer.pack(parameters[key], key) for key in parameters},
        "fitted": {key: packer.pack(fitted[key], f"{name}.{key.strip('_')}") for key in fitted},
    }


# ---- reading -----------------------------------------------------------------------------


def read_model(path: Any) -> SavedModel:
    """What a model file holds, once all of it has been looked at."""
    values, arrays = read_file(path)
    unpacker = Unpacker(arrays, check_record)
    try:
        return _put_together(values, unpacker)
    except (Exception, RecursionError) as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"is damaged or made by hand: {words}", path) from error


def _put_together(values: dict[str, Any], unpacker: Unpacker) -> SavedModel:
    packed = values["estimator"]
    machine = _machine(packed["class"])
    unpacker.allow_rules_of(machine)
    estimator = _estimator(machine, packed, unpacker)
    check_parameters(estimator)
    check_sizes(estimator)
    kind = KernelTraining if issubclass(machine, KernelClassifier) else Training
    need(isinstance(estimator._training, kind), "a training is of another machine")
    check_estimator_state(estimator)
    scaler = layout = None
    if values["scaler"] is not None:
        scaler = _scaler(values["scaler"], unpacker, estimator.n_features_in_)
    if values["layout"] is not None:
        layout = Layout.from_dict(values["layout"], is_frozen=True)
    need(isinstance(values["version"], str), "it does not say which version wrote it")
    training = unpacker.unpack(values["training"])
    need(isinstance(training, dict), "there is no record of how it was trained")
    return SavedModel(estimator, scaler, layout, training, str(values["version"]))


def _machine(name: Any) -> Any:
    """The class of this name; only names that polyplane makes public are looked up."""
    need(isinstance(name, str) and name in polyplane.__all__, f"there is no machine {name!r}")
    machine = getattr(polyplane, name)
    need(machine in REGISTRY.values(), f"there is no machine {name!r}")
    return machine


def _estimator(kind: Any, packed: dict[str, Any], unpacker: Unpacker) -> Any:
    """An estimator with what was set and what was fitted, which hides nothing of its class."""
    known = inspect.signature(kind).parameters
    parameters = {name: unpacker.unpack(packed["parameters"][name]) for name in known}
    made = kind(**parameters)
    for name, value in packed["fitted"].items():
        is_free = name.isidentifier() and not name.startswith("__") and not hasattr(kind, name)
        need(is_free and name not in known, f"{name!r} cannot be set")
        vars(made)[name] = unpacker.unpack(value)
    return made


def _scaler(packed: dict[str, Any], unpacker: Unpacker, n_columns: int) -> Any:
    need(isinstance(packed, dict) and isinstance(packed["class"], str), "a scaler is none")
    need(packed["class"] in SCALERS, f"there is no scaler {packed['class']!r}")
    made = _estimator(SCALERS[packed["class"]], packed, unpacker)
    need_count(made.n_features_in_)
    need(made.n_features_in_ == n_columns, "the scaler is of other columns")
    for value in vars(made).values():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            need_array(value, value.dtype, n_columns)
            need_finite(value)
    scaled = made.transform(np.zeros((1, n_columns)))  # it has all that it needs
    need(np.isfinite(scaled).all(), "a scaler does not scale")
    return made
