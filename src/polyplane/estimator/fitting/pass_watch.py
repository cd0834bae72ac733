"""A fit looked at after each of its passes: rows beside its own, and callbacks.

Looking changes nothing: the same bits come of a fit that is watched and of one that is not, unless
early stopping or a callback ends it.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.estimator.input.validation import read_matrix_and_labels
from polyplane.training.rows import codes_of

__all__ = ["LOG_LOSS", "EvalSet", "PassRecord", "PassWatch", "hinge_loss", "watch_of"]

LOG_LOSS, HINGE, ERROR = "log_loss", "hinge", "error"


class PassRecord(NamedTuple):
    """Record that callbacks get after a pass.

    Attributes
    ----------
    n_iter : int
        Number of passes completed.
    losses : dict of str to float
        Loss on each set of `eval_set`, by its name.
    errors : dict of str to float
        Share of wrong rows of each set, by its name.
    seconds : float
        Time since `fit` or `resume` began to train.
    """

    n_iter: int  # passes completed
    losses: Mapping[str, float]
    errors: Mapping[str, float]
    seconds: float  # since fit or resume began to train


Callback = Callable[[PassRecord], Any]  # True ends the training


class EvalSet(NamedTuple):
    """Rows to look at, with the codes of their labels."""

    X: Any
    codes: Array


class PassWatch:
    """Sets of rows and callbacks that are looked at after each pass."""

    def __init__(self, sets: Sequence[EvalSet], callbacks: Sequence[Callback]) -> None:
        self.sets = {f"valid_{k}": one for k, one in enumerate(sets)}
        self.callbacks, self.start = callbacks, time.perf_counter()

    def look(self, estimator: Any) -> PassRecord:
        """Losses and errors now, which also become a part of the estimator's results."""
        found = {name: estimator._loss_and_error(*one) for name, one in self.sets.items()}
        loss_name = LOG_LOSS if hasattr(estimator, "predict_proba") else HINGE
        for name, (loss, error) in found.items():
            results = estimator._evals_result.setdefault(name, {loss_name: [], ERROR: []})
            results[loss_name].append(loss)
            results[ERROR].append(error)
        return PassRecord(
            estimator.n_iter_,
            MappingProxyType({name: loss for name, (loss, _) in found.items()}),
            MappingProxyType({name: error for name, (_, error) in found.items()}),
            time.perf_counter() - self.start,
        )

    def error(self, record: PassRecord) -> float:
        """The one that early stopping goes by: that of the last set."""
        return list(record.errors.values())[-1]

    def is_ended_by(self, record: PassRecord) -> bool:
        """Tell all callbacks, and return whether one of them wants an end."""
        return any([callback(record) is True for callback in self.callbacks])


def watch_of(
    estimator: Any, eval_set: Any, callbacks: Any, labels: Array, resumes: bool = False
) -> PassWatch | None:
    """The watch that a fit was asked for, of sets whose rows and labels have been checked.

    Results of the fit before are forgotten, unless it is the one that goes on.
    """
    sets = [_checked(estimator, pair, labels) for pair in _pairs(eval_set)]
    asked = [callbacks] if callable(callbacks) else list(callbacks or ())
    for callback in asked:
        if not callable(callback):
            raise TypeError(
                f"callbacks holds {callback!r}, expected functions of one argument, the record of "
                "a pass."
            )
    before = estimator.__dict__.pop("_evals_result", {})
    if sets or (before and resumes):
        estimator._evals_result = copy.deepcopy(before) if resumes else {}
    return PassWatch(sets, asked) if sets or asked else None


def _pairs(eval_set: Any) -> list[Any]:
    """(X, y) is one set; a list of such pairs, or a tuple of them, is several."""
    if eval_set is None:
        return []
    is_one = isinstance(eval_set, tuple) and not all(isinstance(one, tuple) for one in eval_set)
    pairs = [eval_set] if is_one else list(eval_set)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError("eval_set is not a pair (X, y) or a list of such pairs.")
    return pairs


def _checked(estimator: Any, pair: Any, labels: Array) -> EvalSet:
    X, y = pair
    _, y = read_matrix_and_labels(estimator, X, y, False, 0.0)
    known, codes = codes_of(y, labels)
    if known.size > labels.size:
        raise ValueError(f"eval_set holds labels that y does not: {known[labels.size :].tolist()}.")
    return EvalSet(X, codes)


def hinge_loss(scores: Array, places: Array) -> float:
    """Mean of max(0, 1 - lead): the own class's score, at its place, over the best of others."""
    rows = np.arange(len(places))
    own = scores[rows, places].astype(np.float64)
    others = scores.astype(np.float64)
    others[rows, places] = -np.inf
    with np.errstate(invalid="ignore"):  # of two classes that cannot win, neither leads
        lead = np.nan_to_num(own - others.max(axis=1), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return float(np.maximum(0, 1 - lead).mean())
