"""What hyperplane machines predict, and what they show of their planes.

What is left of a training and scores rows is `model/plane_record.py`; here it is derived, and rows
become what its planes see. Whoever asks sees a view of the estimator (`thread_safety.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import Rows, count_rows
from polyplane.estimator.fitting.pass_watch import hinge_loss
from polyplane.estimator.fitting.thread_safety import finished_of, reads, reads_alone
from polyplane.estimator.input.tables import layout_of
from polyplane.estimator.input.validation import TrainingData, read_matrix
from polyplane.estimator.online_classifier import check_fitted
from polyplane.estimator.planes.kept_rows import rows_kept_of
from polyplane.estimator.planes.training import HISTORY, PlaneModel, PlaneTraining
from polyplane.estimator.planes.what_if import WhatIf
from polyplane.model.explanation import Explainer, Explanation
from polyplane.model.plane_record import FinishedPlanes, PlaneRecord
from polyplane.model.prediction import Features

__all__ = ["PlanePrediction", "wrong_rows_of"]


class PlanePrediction:
    """A hyperplane machine as its users ask it."""

    _training: Any
    combine: str
    n_jobs: Any
    predict: Any

    # ---- what a machine adds -------------------------------------------------------------

    def _finish(self, model: PlaneModel) -> FinishedPlanes:
        """The planes that a model has reached."""
        raise NotImplementedError

    def _empty_score(self) -> float:
        """Score of a class without planes; minus infinity: it must not win."""
        return -np.inf

    def _is_soft(self) -> bool:
        """Whether a class scores the log-sum-exp of its planes instead of their maximum."""
        return False

    def _mapped_rows(self, rows: Rows) -> Rows:
        """Rows as the planes see them."""
        return rows

    def _prediction_rows(self, training: PlaneTraining, rows: Rows) -> Rows:
        """Rows as finished planes see them."""
        return rows

    def _features(self, training: PlaneTraining) -> Features:
        """The same for models by themselves: how their rows become what finished planes see."""
        return Features(training.constant)

    def _by_column(self, training: PlaneTraining, planes: Array) -> Array:
        """Planes with a place for each column, or for each feature that columns become."""
        return planes

    def _calibration_of(self, training: PlaneTraining) -> float:
        """Factor of class scores that makes them log-odds."""
        return 1.0

    # ---- prediction ----------------------------------------------------------------------

    def _record(self) -> PlaneRecord:
        check_fitted(self)
        finished: PlaneRecord | None = finished_of(self)
        if finished is None:
            return self._record_of(self._training)
        return replace(
            finished,
            decomposition=self._training.decomposition(self.combine),
            calibration=self._calibration_of(self._training),
        )

    def _record_of(self, training: PlaneTraining) -> PlaneRecord:
        return training.record(
            self._finish,
            self.combine,
            self._empty_score(),
            self._is_soft(),
            self._calibration_of(training),
        )

    def _read(self, X: Any) -> tuple[Rows, Array, int]:
        check_fitted(self)
        rows = self._mapped_rows(read_matrix(self, X, False, self._training.constant))
        rows = self._prediction_rows(self._training, rows)
        return rows, in_place(count_rows(rows)), effective_n_jobs(self.n_jobs)

    def _winners(self, X: Any) -> Array:
        return self._record().classes_of(*self._read(X))

    def _class_scores(self, X: Any) -> Array:
        return self._record().class_scores(*self._read(X))

    def _loss_and_error(self, X: Any, codes: Array) -> tuple[float, float]:
        record, (rows, order, n_jobs) = self._record(), self._read(X)
        places = self._training.ranks[codes]
        winners = record.classes_of(rows, order, n_jobs)
        if hasattr(self, "predict_proba"):
            logs = record.log_probabilities(rows, order, n_jobs)
            loss = -float(logs[np.arange(places.size), places].mean())
        else:
            loss = hinge_loss(record.class_scores(rows, order, n_jobs), places)
        return loss, float(np.mean(winners != places))

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

    @reads
    def explain(self, X: Any, reference: Any = None) -> Explanation:
        """What each column of each row gave to the lead of the predicted class over the next.

        With `reference`, rows such as those of the training, contributions are what differs from
        the mean over these; without, from columns that are 0.
        """
        n_columns, names = self._training.n_columns, vars(self).get("feature_names_in_")
        layout = layout_of(self)
        shown_as, pairs = (None, None) if layout is None else layout.explained_columns()
        if layout is not None and shown_as is None:
            names = layout.feature_names
        explainer = Explainer(
            self._record(),
            self._features(self._training),
            n_columns,
            self._training.classes,
            names,
            shown_as=shown_as,
        )
        if reference is not None:
            explainer = explainer.with_reference(self._read(reference)[0])
        rows, _, n_jobs = self._read(X)
        what_if = WhatIf(self.predict, layout, X, reference)
        found = explainer.explain(rows, n_jobs)
        if pairs is not None and len(pairs) > 0:
            found = replace(found, contributions=_with_pairs_shared(found.contributions, pairs))
        return replace(found, alternatives=what_if.smallest_changes)

    @property
    def feature_importances_(self) -> Array:
        """How much each column matters: mean absolute contribution to the lead, which sum to 1.

        Of up to 512 rows of the latest `fit`, as `explain` tells it with these as reference.
        """
        check_fitted(self)
        rows = rows_kept_of(self)
        if rows is None:
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_ without rows of a fit, which "
                "streams, copies and model files do not keep: use explain(X, reference=X)"
                ".importances."
            )
        found = self.explain(rows, reference=rows).importances
        return found / (found.sum() or 1.0)

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    @reads
    def planes_(self) -> Array:
        """Planes by features: by model, those of one class together, oldest first."""
        return self._by_column(self._training, self._record().planes())

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
        check_fitted(self)
        return int(self._training.n_steps)

    @property
    @reads_alone
    def alpha_(self) -> float:
        """The alpha in use: the one given, or the one found by alpha='auto'."""
        check_fitted(self)
        return float(self._training.models[0].alpha)

    @property
    @reads_alone
    def history_(self) -> Array:
        """Model, step, planes now, created, pruned, error since the point before."""
        check_fitted(self)
        models = enumerate(self._training.models)
        notes = [(k, *note) for k, model in models for note in model.history]
        return np.array(notes, HISTORY)

    def _wrong_rows(self, training: PlaneTraining, data: TrainingData, order: Array) -> Array:
        """Which rows are wrong."""
        rows = self._prediction_rows(training, data.rows)
        found = self._record_of(training).classes_of(rows, order, effective_n_jobs(self.n_jobs))
        is_wrong: Array = found != training.ranks[data.labels[order]]
        return is_wrong

    def _error(self, training: PlaneTraining, data: TrainingData, order: Array) -> float:
        """Share of wrong rows."""
        return float(np.mean(self._wrong_rows(training, data, order)))


# ---- what other files ask of a machine ---------------------------------------------------


def wrong_rows_of(
    machine: PlanePrediction, training: PlaneTraining, data: TrainingData, order: Array
) -> Array:
    """Which rows a training of the machine gets wrong."""
    return machine._wrong_rows(training, data, order)


def _with_pairs_shared(contributions: Array, pairs: Array) -> Array:
    """Return contributions of columns; what pairs behind them give is shared by halves."""
    n_columns = contributions.shape[1] - len(pairs)
    shared = contributions[:, :n_columns].copy()
    for k, pair in enumerate(pairs.tolist()):
        shared[:, pair] += contributions[:, n_columns + k, None] / 2
    return shared
