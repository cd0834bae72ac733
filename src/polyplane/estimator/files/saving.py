"""`polyplane.save` and `polyplane.load`: a fitted model and all it needs to predict and to go on.

A loaded model predicts the same bits and continues training where it stopped, in the middle of a
fit that was interrupted as well. A file has two parts: the prediction part is the schema of
`model/format/prediction_part.py`, the training part that of `training_tables.py`. How values and
arrays are stored is settled by `model/format/model_file.py`.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn import pipeline

import polyplane
from polyplane.arrays import Array
from polyplane.data.table.layout import Layout
from polyplane.engine.records import aligned_zeros
from polyplane.estimator.answers.plane_answers import PlanePrediction
from polyplane.estimator.files.blends import PackedModel, read_blend, write_blend
from polyplane.estimator.files.fitted import (
    estimator_of,
    fitted_of,
    scaler_of,
    sklearn_scaler_of,
    sklearn_scalers,
    steps_of,
)
from polyplane.estimator.files.learning import read_training, write_training
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.fitting.thread_safety import at_rest, forget_finished, view_of
from polyplane.estimator.input.tables import TableRows, give_layout
from polyplane.estimator.kernel_classifier import KernelClassifier
from polyplane.estimator.online_classifier import give_training
from polyplane.model.format.model_file import ModelError, read_file, write_file
from polyplane.model.format.prediction_part import read_prediction, refusing, write_prediction
from polyplane.model.format.schema import Reader, Writer
from polyplane.model.prediction import Features, FittedModel
from polyplane.training.blended.training import BlendedTraining
from polyplane.training.finished import FinishedTraining

__all__ = [
    "ModelError", "PackedModel", "SavedModel", "checked_estimator", "fitted_model", "load",
    "packed", "read_model", "save", "unpacked", "write_model",
]  # fmt: skip


FINISHED_PLANES = "prediction.planes.sums"  # an array of model files


@dataclass
class SavedModel:
    """Content of a model file."""

    estimator: Any
    scaler: Any = None  # of columns, fitted
    layout: Layout | None = None  # how the columns of a table became those of X
    training: dict[str, Any] = field(default_factory=dict)  # how it was called: plain values
    version: str = polyplane.__version__  # of the program that wrote it

    def predictor(self) -> Any:
        """Return the estimator or pipeline that takes X as it comes."""
        if self.scaler is None:
            give_layout(self.estimator, self.layout)
            return self.estimator
        steps = [("scaler", self.scaler), ("classifier", self.estimator)]
        if self.layout is not None and self.layout.width == self.scaler.n_features_in_:
            steps.insert(0, ("table", TableRows(self.layout)))
        return pipeline.Pipeline(steps)


def save(model: Any, path: Any, *, training: bool = True) -> None:
    """Write a fitted model, or a pipeline of a scaler and one, to a file.

    The file is written whole or not at all.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted polyplane classifier, or a pipeline that ends with one.
    path : path
        File to write.
    training : bool, default=True
        Keep what further training needs. Without it the file is smaller, and holds a model that
        predicts but cannot learn on.

    See Also
    --------
    load : The model of a file.
    to_onnx : The model for other programs.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pp.save(model, Path(folder, "moons.model"))
    ...     again = pp.load(Path(folder, "moons.model"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    write_model(_saved(model), path, training)


def load(path: Any) -> Any:
    """Return the model of a file, as it was saved.

    Parameters
    ----------
    path : path
        File that `save` or `polyplane train` wrote. Reading it runs no code of the file.

    Returns
    -------
    estimator or Pipeline
        The fitted model.

    See Also
    --------
    save : Write a model to a file.
    import_model : The model of a file of LIBSVM or LIBLINEAR.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = pp.AMMClassifier(random_state=0).fit(X, y)
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pp.save(model, Path(folder, "moons.model"))
    ...     pp.load(Path(folder, "moons.model"))
    AMMClassifier(random_state=0)
    """
    return read_model(path).predictor()


def _saved(model: Any) -> SavedModel:
    *before, last = steps_of(model)
    layout = None
    if before and isinstance(before[0], TableRows):
        layout = before.pop(0).layout
    if not before:
        return SavedModel(last, layout=layout)
    scalers = tuple(sklearn_scalers().values())
    if len(before) > 1 or not all(type(step) in scalers for step in before):
        raise ModelError(
            "a pipeline can be saved if it is a polyplane classifier behind at most one of "
            f"{', '.join(kind.__name__ for kind in scalers)}; save the classifier by itself instead"
        )
    return SavedModel(last, before[0], layout)


# ---- writing -----------------------------------------------------------------------------


def write_model(saved: SavedModel, path: Any, training: bool = True) -> None:
    """Write a model file, whole or not at all; a model that is being trained is waited for."""
    estimator = saved.estimator
    if not isinstance(estimator, PlanePrediction | KernelClassifier):
        raise ModelError(f"{estimator!r} is not a polyplane classifier, which a model file holds")
    with at_rest(estimator):
        if training_of(estimator) is None:
            raise ModelError(f"{type(estimator).__name__} is not fitted: there is nothing to save")
        _write_model(saved, path, training)


def fitted_model(saved: SavedModel) -> FittedModel:
    """Return the part of a model that predicts, as a file holds it."""
    fitted = fitted_of(view_of(saved.estimator))
    return replace(
        fitted,
        scaler=None if saved.scaler is None else scaler_of(saved.scaler),
        table=fitted.table if saved.layout is None else saved.layout.to_dict(),
        call=saved.training,
        version=saved.version,
    )


def _write_model(saved: SavedModel, path: Any, training: bool) -> None:
    values, arrays = _contents(saved, training)
    write_file(path, values, arrays)


def _contents(saved: SavedModel, training: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """The values and arrays of a model file."""
    out, estimator = Writer(), saved.estimator
    values = {"prediction": write_prediction(fitted_model(saved), out), "training": None}
    if training and not isinstance(training_of(estimator), FinishedTraining):
        is_blend = isinstance(training_of(estimator), BlendedTraining)
        values["training"] = (
            write_blend(estimator, out, packed) if is_blend else write_training(estimator, out)
        )
    return values, out.arrays


# ---- reading -----------------------------------------------------------------------------


def read_model(path: Any) -> SavedModel:
    """Return the content of a model file, after all of it was checked."""
    return _read_contents(*read_file(path), path)


def _read_contents(values: Any, arrays: dict[str, Array], path: Any) -> SavedModel:
    with refusing(path):
        model = read_prediction(values, Reader(arrays))
        estimator = estimator_of(model)
        plain = values.get("training")
        if isinstance(plain, dict) and "blend" in plain:
            read_blend(plain, arrays, estimator, model, unpacked)
        elif plain is not None:
            read_training(plain, arrays, estimator, model)
        else:
            features = model.features or Features(0.0)
            columns = estimator.algorithm.columns.of_features(features, model.n_columns)
            give_training(estimator, FinishedTraining(model, columns))
        layout = model.table and Layout.from_dict(model.table, is_frozen=True)
        scaler = model.scaler and sklearn_scaler_of(model.scaler)
        return SavedModel(estimator, scaler, layout or None, dict(model.call), model.version)


def checked_estimator(model: FittedModel, path: Any) -> Any:
    """The estimator that predicts as a model does, once all has been looked at as if in a file."""
    out = Writer()
    values = {"prediction": write_prediction(model, out), "training": None}
    return _read_contents(values, out.arrays, path).predictor()


# ---- without a file ----------------------------------------------------------------------


def packed(estimator: Any, *, training: bool = True) -> PackedModel:
    """A fitted estimator on its way; its arrays are not copied, so it must not learn on.

    Planes that predict are made of those that learn, and stay behind where these travel.
    """
    values, arrays = _contents(SavedModel(estimator), training)
    shape = None
    if values["training"] is not None and FINISHED_PLANES in arrays:
        shape = arrays.pop(FINISHED_PLANES).shape
    return PackedModel(json.dumps(values, allow_nan=False), arrays, shape)


def unpacked(model: PackedModel) -> Any:
    """The estimator again, once all has been looked at as if it came from a file.

    It has copies of the arrays, which others may hold, too.
    """
    arrays = {name: _copied(array) for name, array in model.arrays.items()}
    if model.shape_of_planes is not None:
        arrays[FINISHED_PLANES] = np.zeros(model.shape_of_planes, np.float32)
    made = _read_contents(json.loads(model.values), arrays, None).predictor()
    if model.shape_of_planes is not None:
        forget_finished(made)
    return made


def _copied(array: Array) -> Array:
    if array.ndim != 2 or array.dtype != np.float32:
        return np.array(array, order="C")
    made = aligned_zeros(*array.shape)
    made[:] = array
    return made
