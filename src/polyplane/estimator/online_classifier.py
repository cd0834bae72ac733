"""What every machine is to its users: scikit-learn's estimator, fitted online, in any thread.

Hyperplane and kernel machines differ in what they train and in what is left of it; how they are
set, asked and checked is the same and is here. A family (`planes/hyperplane_classifier.py`,
`kernels/kernel_classifier.py`) adds `fit`, `partial_fit` and `resume`, and a record that scores
rows; a machine adds its loop.
"""

import copy
import functools
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyplane.arrays import Array
from polyplane.estimator.fitting.pass_watch import hinge_loss
from polyplane.estimator.fitting.thread_safety import reads
from polyplane.estimator.parameters import (
    Range,
    at_least,
    either,
    is_flag,
    is_whole,
    one_of,
    parameter,
    with_parameters,
)
from polyplane.model.input.input_rows import check_scores

__all__ = [
    "A_NUMBER_OF_THREADS", "OnlineClassifier", "TrainedClassifier", "check_fitted",
    "evaluations_of", "give_evaluations", "give_training", "record_of", "training_of",
    "weights_of_classes",
]  # fmt: skip

A_NUMBER_OF_THREADS = Range(
    lambda v: v is None or (is_whole(v) and v != 0), "None or a whole number other than 0"
)


def _says_columns(value: Any) -> bool:
    """Whether a value can tell which columns are meant."""
    if value is None or isinstance(value, str):
        return value is None or value == "from_dtype"
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(isinstance(one, str | bool | int | np.integer | np.bool_) for one in value)


class Fitted:
    """What the first fit leaves; a family says more of its training."""

    _training: Any  # a `ClassesMet`
    classes_: Array
    n_features_in_: int
    n_iter_: int
    _evals_result: dict[str, dict[str, list[float]]]


@with_parameters
class OnlineClassifier(Fitted, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What one can set on every machine, and ask of it once it is fitted."""

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
        meaning="Seed.",
    )
    verbose: bool | int = parameter(
        default=False,
        allowed=either(is_flag(), at_least(0)),
        meaning="Show a progress bar.",
    )

    # ---- what a family adds --------------------------------------------------------------

    def _record(self) -> Any:
        """What is left of the training and scores rows; of a view, what it was made with."""
        raise NotImplementedError

    def _class_scores(self, X: Any) -> Array:
        """The score of each class on each row."""
        raise NotImplementedError

    def _winners(self, X: Any) -> Array:
        """The place in `classes_` of the class that scores highest on each row."""
        winners: Array = self._class_scores(X).argmax(axis=1)
        return winners

    def _loss_and_error(self, X: Any, codes: Array) -> tuple[float, float]:
        """Mean loss and share of wrong rows, of rows whose labels have these codes."""
        places = self._training.ranks[codes]
        scores = self._class_scores(X)
        return hinge_loss(scores, places), float(np.mean(scores.argmax(axis=1) != places))

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
        """Label of the class that scores highest on each row."""
        labels: Array = self._training.classes[self._winners(X)]
        return labels

    @reads
    def decision_function(self, X: Any) -> Array:
        """Score of each class, or with two classes the second one's lead over the first."""
        scores = self._class_scores(X)
        check_scores(type(self).__name__, scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Losses and errors after each pass of the latest fit, on each set of its `eval_set`.

        The sets are called valid_0, valid_1, ...; the loss is 'log_loss' of machines that have
        probabilities and else 'hinge', and 'error' is the share of wrong rows.
        """
        check_is_fitted(self)
        return copy.deepcopy(vars(self).get("_evals_result", {}))

    # ---- what a machine adds -------------------------------------------------------------

    def _mean_weight(self, weights: Array, n_rows: Array) -> float:
        """What steps divide the weights of classes by that have so many rows."""
        return 1.0

    # ---- what families share -------------------------------------------------------------

    def _draw_seed(self) -> int:
        given = self.random_state
        return _seed_of_number(given) if type(given) is int else _drawn_seed(given)

    def _check_classes(self, labels: Array) -> None:
        if labels.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; y holds only one "
                f"class, {labels.tolist()[0]!r}."
            )


@with_parameters
class TrainedClassifier(OnlineClassifier):
    """An estimator of one algorithm, whose training can go on."""

    combine: str = parameter(
        default="vote",
        allowed=one_of("vote", "margin"),
        meaning=(
            "How pairs of classes decide: by one vote each, margins deciding between equals, or "
            "by their margins, cut to [-1, 1] and added."
        ),
    )
    shuffle: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Visit rows in a new random order in each pass.",
    )
    warm_start: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let `fit` go on from the model at hand instead of starting anew.",
    )


def _drawn_seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(2**31))


_seed_of_number = functools.lru_cache(_drawn_seed)  # a generator is made in the time of 500 rows


# ---- what other files ask of an estimator ------------------------------------------------


def check_fitted(estimator: Any) -> None:
    """scikit-learn's check where it would fail; else it takes as long as to predict 100 rows."""
    if training_of(estimator) is None:
        check_is_fitted(estimator)


def weights_of_classes(estimator: Any, labels: Array, n_rows: Array) -> dict[Any, float] | None:
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
    mean = estimator._mean_weight(weights, n_rows)
    return dict(zip(named, (weights / mean).tolist(), strict=True))


def training_of(estimator: Any) -> Any:
    """What `fit` and `partial_fit` take up again; None before the first."""
    return vars(estimator).get("_training")


def give_training(estimator: Any, training: Any) -> None:
    """Let an estimator go on from here."""
    estimator._training = training


def record_of(estimator: Any) -> Any:
    """What is left of its training and scores rows; in the middle of a fit, so far."""
    return estimator._record()


def evaluations_of(estimator: Any) -> dict[str, dict[str, list[float]]]:
    """What `evals_result_` shows, itself."""
    found: dict[str, dict[str, list[float]]] = vars(estimator).get("_evals_result", {})
    return found


def give_evaluations(estimator: Any, evaluations: dict[str, dict[str, list[float]]]) -> None:
    """Let `evals_result_` show them."""
    if evaluations:
        estimator._evals_result = evaluations
