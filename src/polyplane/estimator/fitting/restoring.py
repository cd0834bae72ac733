"""The one rule for what an error leaves of an estimator, whoever trains it.

Until a row has been learned, whatever goes wrong leaves the estimator as it was. Afterwards Ctrl-C
leaves what has been learned. An error undoes a training that began anew, and leaves one that goes
on, whose arrays have changed in place, where it was.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from sklearn.utils.validation import check_is_fitted

from polyplane.estimator.fitting.kept_rows import give_rows, rows_kept_of
from polyplane.training.work.interruption import SeenRows

__all__ = ["check_can_resume", "check_fitted", "check_same_rows", "restoring", "training_of"]


@contextlib.contextmanager
def restoring(estimator: Any) -> Iterator[None]:
    """Restore the estimator after an error, by the rule."""
    state = vars(estimator)
    before, kept = dict(state), rows_kept_of(estimator)
    training_before = before.get("_training")
    n_before = 0 if training_before is None else training_before.n_steps
    try:
        yield
    except BaseException as error:
        training = state.get("_training")
        is_new = training is None or not training.goes_on_from(training_before)
        has_learned = training is not None and training.n_steps > (0 if is_new else n_before)
        if not has_learned or (is_new and isinstance(error, Exception)):
            state.clear()
            state.update(before)
            give_rows(estimator, kept)
        raise


def training_of(estimator: Any) -> Any:
    """Return the training that `fit` and `partial_fit` continue; None before the first."""
    return vars(estimator).get("_training")


def check_fitted(estimator: Any) -> None:
    """scikit-learn's check where it would fail; else it takes as long as to predict 100 rows."""
    if training_of(estimator) is None:
        check_is_fitted(estimator)


def check_can_resume(estimator: Any, is_interrupted: bool) -> None:
    """Refuse to resume a fit that is complete."""
    if not is_interrupted:
        raise ValueError(
            f"{type(estimator).__name__} has no interrupted fit of this kind to resume: call fit, "
            "with warm_start=True to go on from the model at hand."
        )


def check_same_rows(estimator: Any, found: SeenRows, expected: SeenRows) -> None:
    """Other rows would make another model."""
    if found.n_rows != expected.n_rows:
        raise ValueError(
            f"{type(estimator).__name__}: the fit to resume began with {expected.n_rows} rows, and "
            f"X has {found.n_rows}: give the same rows in the same order."
        )
    if found != expected:
        raise ValueError(
            f"{type(estimator).__name__}: the labels are not those with which the fit to resume "
            "began: give the same rows in the same order."
        )
