"""Prediction and fitted attributes: everything that only looks at what training has left."""

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import Rows, count_rows
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.planes.machine import Machine
from polyplane.estimator.planes.training import HISTORY, Training
from polyplane.estimator.thread_safety import reads, reads_alone
from polyplane.estimator.validation import read_matrix
from polyplane.model.input_rows import check_scores
from polyplane.model.plane_record import PlaneRecord

__all__ = ["Predictor"]


class Trained:
    """What the first fit leaves."""

    _training: Training
    _found: dict[str, Any]  # what was 'auto'
    classes_: Array
    n_features_in_: int
    n_iter_: int


@with_parameters
class Predictor(Machine, Trained, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier once it is fitted."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_training")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _record(self) -> PlaneRecord:
        check_is_fitted(self)
        return self._record_of(self._training)

    def _record_of(self, training: Training) -> PlaneRecord:
        return training.record(self._finish, self.combine, self._empty_score(), self._is_soft())

    def _read(self, X: Any) -> tuple[Rows, Array, int]:
        check_is_fitted(self)
        rows = self._mapped_rows(read_matrix(self, X, False, self._training.constant))
        rows = self._prediction_rows(self._training, rows)
        return rows, in_place(count_rows(rows)), effective_n_jobs(self.n_jobs)

    @reads
    def predict(self, X: Any) -> Array:
        """Label of the class that scores highest on each row."""
        winners = self._record().classes_of(*self._read(X))
        labels: Array = self._training.classes[winners]
        return labels

    @reads
    def decision_function(self, X: Any) -> Array:
        """Score of each class, or with two classes the second one's lead over the first."""
        scores = self._record().class_scores(*self._read(X))
        check_scores(type(self).__name__, scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @reads
    def assign(self, X: Any) -> Array:
        """Index in `planes_` of the plane that decides each row.

        It is the best plane of those that speak for the predicted class; -1 if there is none.
        """
        return self._record().deciding_planes(*self._read(X))

    @reads
    def plane_scores(self, X: Any) -> Array:
        """Score of each plane on each row."""
        return self._record().plane_scores(*self._read(X))

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    @reads
    def planes_(self) -> Array:
        """Planes by features: by model, those of one class together, oldest first."""
        planes, columns = self._record().planes(), self._training.columns
        is_spread = columns is None or columns.used is None
        return planes if is_spread else columns.spread(np.vstack([planes[:, 0], planes.T]))[1:].T

    @property
    @reads
    def intercepts_(self) -> Array:
        """Constant term of each plane."""
        return self._record().intercepts()

    @property
    @reads
    def plane_classes_(self) -> Array:
        """Label of each plane's class."""
        labels: Array = self._training.classes[self._record().plane_class]
        return labels

    @property
    @reads
    def plane_signs_(self) -> Array:
        """1, or -1 where a plane speaks against its class, as the rest of one-vs-rest does."""
        return self._record().plane_sign

    @property
    @reads
    def planes_per_class_(self) -> Array:
        """How many planes speak for each of `classes_`."""
        record = self._record()
        speaks_for = record.plane_class[record.plane_sign > 0]
        return np.bincount(speaks_for, minlength=self._training.classes.size)

    @property
    @reads
    def n_planes_(self) -> int:
        """How many planes the model has."""
        return self._record().n_planes

    @property
    @reads_alone
    def n_steps_(self) -> int:
        """Rows visited since training began, by all models together."""
        check_is_fitted(self)
        return self._training.n_steps

    @property
    @reads_alone
    def alpha_(self) -> float:
        """The alpha in use: the one given, or the one found by alpha='auto'."""
        check_is_fitted(self)
        return self._training.models[0].alpha

    @property
    @reads_alone
    def history_(self) -> Array:
        """Model, step, planes now, created, pruned, error since the point before."""
        check_is_fitted(self)
        models = enumerate(self._training.models)
        notes = [(k, *note) for k, model in models for note in model.history]
        return np.array(notes, HISTORY)
