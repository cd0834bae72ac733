"""The one rule for what an error leaves of an estimator, whoever trains it.

Until a row has been learned, whatever goes wrong leaves the estimator as it was. Afterwards Ctrl-C
leaves what has been learned. An error undoes a training that began anew, and leaves one that goes
on, whose arrays have changed in place, where it was.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from polyplane.estimator.planes.kept_rows import give_rows, rows_kept_of

__all__ = ["restoring"]


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
