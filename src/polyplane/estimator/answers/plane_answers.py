"""What estimators of planes show of their planes, and why they label rows as they do.

Whoever asks sees a view of the estimator (`thread_safety.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from polyplane.arrays import Array
from polyplane.estimator.answers.what_if import WhatIf
from polyplane.estimator.fitting.kept_rows import rows_kept_of
from polyplane.estimator.fitting.restoring import check_fitted
from polyplane.estimator.fitting.thread_safety import reads, reads_alone
from polyplane.estimator.input.tables import layout_of
from polyplane.model.explanation import Explainer, Explanation
from polyplane.model.prediction import HISTORY

__all__ = ["PlanePrediction"]


def _has_probabilities(estimator: Any) -> bool:
    if not estimator.algorithm.is_soft:
        raise AttributeError(f"{type(estimator).__name__} has no probabilities.")
    return True


class PlanePrediction:
    """An estimator of planes as its users ask it."""

    _training: Any
    _record: Any
    _seen: Any
    predict: Any

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reads
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class."""
        probabilities: Array = self._record().probabilities(*self._seen(X))
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reads
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class."""
        logs: Array = self._record().log_probabilities(*self._seen(X))
        return logs

    @reads
    def assign(self, X: Any) -> Array:
        """Index in `planes_` of the plane that decides each row.

        It is the best plane of those that speak for the predicted class; -1 if there is none.
        """
        places: Array = self._record().deciding_planes(*self._seen(X))
        return places

    @reads
    def plane_scores(self, X: Any) -> Array:
        """Score of each plane on each row."""
        scores: Array = self._record().plane_scores(*self._seen(X))
        return scores

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
            self._training.columns.features(self._training.constant),
            n_columns,
            self._training.classes,
            names,
            shown_as=shown_as,
        )
        if reference is not None:
            explainer = explainer.with_reference(self._seen(reference)[0])
        rows, _, n_jobs = self._seen(X)
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
        planes: Array = self._training.columns.by_column(self._record().planes())
        return planes

    @property
    @reads
    def intercepts_(self) -> Array:
        """Constant term of each plane."""
        intercepts: Array = self._record().intercepts()
        return intercepts

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
        signs: Array = self._record().plane_sign
        return signs

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
        return int(self._record().n_planes)

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


def _with_pairs_shared(contributions: Array, pairs: Array) -> Array:
    """Return contributions of columns; what pairs behind them give is shared by halves."""
    n_columns = contributions.shape[1] - len(pairs)
    shared = contributions[:, :n_columns].copy()
    for k, pair in enumerate(pairs.tolist()):
        shared[:, pair] += contributions[:, n_columns + k, None] / 2
    return shared
