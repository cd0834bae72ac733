"""Base of all estimators: parameters, checks and predictions, in any thread.

How estimators are set, asked and checked is here; how they are trained is in `shell.py`.
"""

import copy
import functools
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import Rows, count_rows
from polyplane.estimator.fitting.pass_watch import hinge_loss
from polyplane.estimator.fitting.restoring import check_fitted
from polyplane.estimator.fitting.thread_safety import finished_of, reads
from polyplane.estimator.input.validation import read_matrix
from polyplane.estimator.parameters import (
    Range,
    at_least,
    either,
    is_flag,
    is_whole,
    parameter,
    with_parameters,
)
from polyplane.model.input.input_rows import check_scores
from polyplane.training.finished import FinishedTraining

__all__ = [
    "A_NUMBER_OF_THREADS",
    "OnlineClassifier",
    "evaluations_of",
    "give_evaluations",
    "give_training",
    "record_of",
    "weights_of_classes",
]

A_NUMBER_OF_THREADS = Range(
    lambda v: v is None or (is_whole(v) and v != 0), "None or a whole number other than 0"
)


def _says_columns(value: Any) -> bool:
    """Return True if a value can tell which columns are meant."""
    if value is None or isinstance(value, str):
        return value is None or value == "from_dtype"
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(isinstance(one, str | bool | int | np.integer | np.bool_) for one in value)


@with_parameters
class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: their common parameters, and what they answer once they are fitted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, sorted.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if all of them have one.
    layout_ : Layout
        How columns of a table became columns of numbers, if X was a table.
    n_iter_ : int
    evals_result_ : dict of str to dict of str to list of float
    """

    class_weight: Any = parameter(
        default=None,
        allowed=Range(
            lambda v: v is None or isinstance(v, dict) or (isinstance(v, str) and v == "balanced"),
            "None, 'balanced' or a dict from label to weight",
        ),
        meaning="Factor on each class's loss; 'balanced' is inverse to the number of its rows.",
    )
    categorical_features: Any = parameter(
        default="from_dtype",
        allowed=Range(
            _says_columns, "None, 'from_dtype' or a list of names, of positions or of flags"
        ),
        meaning=(
            "Columns of a table that are categories: those of text and of types that say so "
            "('from_dtype', None), and the columns given, whatever they hold."
        ),
    )
    random_state: Any = parameter(
        default=None,
        allowed=Range(lambda v: True, "None, a whole number or a RandomState"),
        meaning="Seed of the random order of rows and of all other draws.",
    )
    verbose: bool | int = parameter(
        default=False,
        allowed=either(is_flag(), at_least(0)),
        meaning="Show a progress bar.",
    )

    # ---- what is left of a training --------------------------------------------------------

    def _reached(self) -> Any:
        """Return what scores rows, derived from the training."""
        raise NotImplementedError

    def _record(self) -> Any:
        """Return what scores rows; of a view, with the decision rule that it was made with."""
        check_fitted(self)
        finished = finished_of(self)
        if finished is None and not isinstance(self._training, FinishedTraining):
            return self._reached()
        record = finished or self._training.finished
        if record.decomposition.combine == self.combine:
            return record
        return replace(record, decomposition=self._training.decomposition(self.combine))

    def _seen(self, X: Any) -> tuple[Rows, Array, int]:
        """Return rows as the planes or kernels see them, their order, and the number of threads."""
        check_fitted(self)
        rows = read_matrix(self, X, False, self._training.constant)
        rows = self._training.columns.for_prediction(rows)
        return rows, in_place(count_rows(rows)), effective_n_jobs(self.n_jobs)

    def _loss_and_error(self, X: Any, codes: Array) -> tuple[float, float]:
        """Return mean loss and share of wrong rows, of rows whose labels have these codes."""
        record, (rows, order, n_jobs) = self._record(), self._seen(X)
        places = self._training.ranks[codes]
        winners = record.classes_of(rows, order, n_jobs)
        if hasattr(self, "predict_proba"):
            logs = record.log_probabilities(rows, order, n_jobs)
            loss = -float(logs[np.arange(places.size), places].mean())
        else:
            loss = hinge_loss(record.class_scores(rows, order, n_jobs), places)
        return loss, float(np.mean(winners != places))

    # ---- what users ask ------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_training")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # a table, then (`tables.py`)
        return tags

    @reads
    def predict(self, X: Any) -> Array:
        """Predict the label of the class that scores highest on each row.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of `classes_`.
        """
        labels: Array = self._training.classes[self._record().classes_of(*self._seen(X))]
        return labels

    @reads
    def decision_function(self, X: Any) -> Array:
        """Return the score of each class on each row, or of two classes one margin.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            Scores; with two classes that of the second one above the first.
        """
        scores: Array = self._record().class_scores(*self._seen(X))
        check_scores(type(self).__name__, scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def n_iter_(self) -> int:
        """Number of passes of the latest fit."""
        check_fitted(self)
        return int(self._training.n_passes)

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Losses and errors after each pass of the latest fit, on each set of its `eval_set`.

        The sets are called valid_0, valid_1, ...; the loss is 'log_loss' of estimators that have
        probabilities and else 'hinge', and 'error' is the share of wrong rows.
        """
        check_is_fitted(self)
        return copy.deepcopy(vars(self).get("_evals_result", {}))

    # ---- what all fits share ---------------------------------------------------------------

    def _draw_seed(self) -> int:
        given = self.random_state
        return _seed_of_number(given) if type(given) is int else _drawn_seed(given)

    def _check_classes(self, labels: Array) -> None:
        if labels.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; y holds only one "
                f"class, {labels.tolist()[0]!r}."
            )


def _drawn_seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31))


_seed_of_number = functools.lru_cache(_drawn_seed)  # a generator is made in the time of 500 rows


# ---- what other files ask of an estimator ------------------------------------------------


def weights_of_classes(
    estimator: Any, labels: Array, n_rows: Array, has_mean_one: bool = False
) -> dict[Any, float] | None:
    """The factors of classes of so many rows as steps use them, or None without any.

    A part of the rows cannot tell them.
    """
    given, named = estimator.class_weight, labels.tolist()
    if given is None:
        return None
    if isinstance(given, dict):
        weights = np.array([given.get(label, 1.0) for label in named], np.float64)
    else:
        weights = n_rows.sum() / (n_rows.size * n_rows)
    if has_mean_one:
        has_weight = weights > 0
        weights = weights / float(np.average(weights[has_weight], weights=n_rows[has_weight]))
    return dict(zip(named, weights.tolist(), strict=True))


def give_training(estimator: Any, training: Any) -> None:
    """Let an estimator go on from here."""
    estimator._training = training


def record_of(estimator: Any) -> Any:
    """Return what scores rows, of an estimator; in the middle of a fit, so far."""
    return estimator._record()


def evaluations_of(estimator: Any) -> dict[str, dict[str, list[float]]]:
    """Return the dict behind `evals_result_`, not a copy."""
    found: dict[str, dict[str, list[float]]] = vars(estimator).get("_evals_result", {})
    return found


def give_evaluations(estimator: Any, evaluations: dict[str, dict[str, list[float]]]) -> None:
    """Let `evals_result_` show them."""
    if evaluations:
        estimator._evals_result = evaluations
