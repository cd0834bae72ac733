"""What stands in the place of a training that was not kept: the estimator predicts, that is all.

It has what prediction and fitted attributes look at. Whatever learning on asks for beyond that is
answered with one sentence, so that every way to it is closed by this one place.
"""

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from polyplane.arrays import Array
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.prediction import FittedModel
from polyplane.training.columns import AsIs, Columns

__all__ = ["FinishedTraining", "check_can_learn_on"]


@dataclass
class FinishedModel:
    """What is told of a model in training."""

    alpha: float | None
    n_steps: int
    history: list[tuple[Any, ...]]


class FinishedTraining:
    """The end of a training."""

    def __init__(self, model: FittedModel, own: Any) -> None:
        self._name, self._record = model.title, model.record
        self.classes = model.labels
        self.ranks: Array = model.record.decomposition.ranks
        self.kind = model.record.decomposition.kind
        self.n_columns, self.is_dense, self.n_steps = model.n_columns, model.is_dense, model.n_steps
        self.constant = 0.0 if model.features is None else model.features.constant
        self.own = own
        self.columns: Columns = AsIs(model.n_columns)
        self.n_passes, self.gamma, self.found = model.n_passes, model.gamma, dict(model.found)
        self.origin = object()
        self.models = _models(model)
        if model.features is None:  # of planes nobody but training asks for them
            self.labels = model.labels[self.ranks]

    def goes_on_from(self, before: Any) -> bool:
        """Return True if it is the training that was there before."""
        return before is self

    def decomposition(self, combine: str) -> Decomposition:
        """How the problems make one classifier."""
        return Decomposition(self.kind, combine, self.ranks)

    def record(self, made_by: Any, combine: str, *others: Any) -> Any:
        """The classifier reached."""
        return replace(self._record, decomposition=self.decomposition(combine))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_record" not in vars(self):  # copies and pickles ask, too
            raise AttributeError(name)
        return self.refuse()

    def refuse(self) -> NoReturn:
        """Say that there is no going on from here."""
        raise ValueError(
            f"{self._name}: the model was saved without its training state or imported: it "
            "predicts, but cannot learn on; call fit without warm_start to train it anew."
        )


def check_can_learn_on(estimator: Any) -> None:
    """For who asks nothing of a training before it begins."""
    training = vars(estimator).get("_training")
    if isinstance(training, FinishedTraining):
        training.refuse()


def _models(model: FittedModel) -> list[FinishedModel]:
    """One for each that has a history, and one at least; the first has made all steps."""
    numbers = model.history["model"].tolist()
    made = [FinishedModel(model.alpha, 0, []) for _ in range(max(numbers, default=0) + 1)]
    for number, point in zip(numbers, model.history.tolist(), strict=True):
        made[number].history.append(point[1:])
    made[0].n_steps = model.n_steps
    return made
