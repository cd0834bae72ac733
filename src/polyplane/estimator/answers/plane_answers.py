"""Methods and attributes of estimators of planes: probabilities, planes, explanations.

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
    """Answers of estimators of planes about their planes and about rows.

    Attributes
    ----------
    planes_ : ndarray of shape (n_planes_, n_features_in_)
    intercepts_ : ndarray of shape (n_planes_,)
    plane_classes_ : ndarray of shape (n_planes_,)
    plane_signs_ : ndarray of shape (n_planes_,)
    planes_per_class_ : ndarray of shape (n_classes,)
    n_planes_ : int
    n_steps_ : int
    alpha_ : float
    history_ : structured ndarray
    feature_importances_ : ndarray of shape (n_features_in_,)
    """

    _training: Any
    _record: Any
    _seen: Any
    predict: Any

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reads
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class on each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`; each row sums to 1.
        """
        probabilities: Array = self._record().probabilities(*self._seen(X))
        return probabilities

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @reads
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class on each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        logs: Array = self._record().log_probabilities(*self._seen(X))
        return logs

    @reads
    def assign(self, X: Any) -> Array:
        """Return the index in `planes_` of the plane that decides each row.

        It is the best plane of those that speak for the predicted class.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indices of planes; -1 where no plane decides.
        """
        places: Array = self._record().deciding_planes(*self._seen(X))
        return places

    @reads
    def plane_scores(self, X: Any) -> Array:
        """Return the score of each plane on each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows, n_planes_)
            Scores, in the order of `planes_`.
        """
        scores: Array = self._record().plane_scores(*self._seen(X))
        return scores

    @reads
    def explain(self, X: Any, reference: Any = None) -> Explanation:
        """Return the contribution of each column of each row to the decision.

        Contributions of a row add up to the lead of the predicted class over the next one.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.
        reference : array-like, sparse matrix or table, optional
            Rows such as those of the training. Contributions are then what differs from the mean
            over these; without it, from columns that are 0.

        Returns
        -------
        Explanation
            Arrays `contributions` of shape (n_rows, n_features), `base`, `winner`, `runner_up` and
            `planes`, of n_rows rows each; `lead` and `importances`; and `changes()`.
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
        """Importance of each column: mean absolute contribution to the lead, divided by their sum.

        The rows are up to 512 rows of the latest `fit`, explained with these as reference.
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
        """Weights of the planes: by model, those of one class together, oldest first."""
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
        """Label of the class of each plane."""
        labels: Array = self._training.classes[self._record().plane_class]
        return labels

    @property
    @reads
    def plane_signs_(self) -> Array:
        """Sign of each plane: 1, or -1 where it speaks against its class, as in one-vs-rest."""
        signs: Array = self._record().plane_sign
        return signs

    @property
    @reads
    def planes_per_class_(self) -> Array:
        """Number of planes that speak for each of `classes_`."""
        record = self._record()
        speaks_for = record.plane_class[record.plane_sign > 0]
        return np.bincount(speaks_for, minlength=self._training.classes.size)

    @property
    @reads
    def n_planes_(self) -> int:
        """Number of planes of the model."""
        return int(self._record().n_planes)

    @property
    @reads_alone
    def n_steps_(self) -> int:
        """Number of rows visited since training began, by all models together."""
        check_fitted(self)
        return int(self._training.n_steps)

    @property
    @reads_alone
    def alpha_(self) -> float:
        """Value of alpha in use: the one given, or the one found by alpha='auto'."""
        check_fitted(self)
        return float(self._training.models[0].alpha)

    @property
    @reads_alone
    def history_(self) -> Array:
        """Points of the training: model, step, planes now, created, pruned, and recent error."""
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
