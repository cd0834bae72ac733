"""Stand-in for a training that was not kept: the estimator predicts and learns nothing."""

from dataclasses import dataclass
from typing import Any

from polyplane.arrays import Array
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.prediction import FittedModel
from polyplane.training.columns import Columns

__all__ = ["FinishedTraining", "check_can_learn_on"]


@dataclass
class FinishedModel:
    """Facts about a model whose training was not kept."""

    alpha: float | None
    n_steps: int
    history: list[tuple[Any, ...]]


class FinishedTraining:
    """The end of a training: what prediction and fitted attributes look at."""

    def __init__(self, model: FittedModel, columns: Columns) -> None:
        self.title, self.finished = model.title, model.record
        self.classes = model.labels
        self.ranks: Array = model.record.decomposition.ranks
        self.labels = model.labels[self.ranks]
        self.kind = model.record.decomposition.kind
        self.columns, self.n_columns, self.is_dense = columns, model.n_columns, model.is_dense
        self.constant = 0.0 if model.features is None else model.features.constant
        self.n_steps, self.n_passes, self.found = model.n_steps, model.n_passes, dict(model.found)
        self.gamma = model.gamma
        self.models, self.origin = _models(model), object()

    def decomposition(self, combine: str) -> Decomposition:
        """Return how the problems make one classifier."""
        return Decomposition(self.kind, combine, self.ranks)

    def goes_on_from(self, before: Any) -> bool:
        """Return True if it is the training that was there before."""
        return before is self


def check_can_learn_on(estimator: Any) -> None:
    """Refuse to go on from where there is nothing to go on from."""
    training = vars(estimator).get("_training")
    if isinstance(training, FinishedTraining):
        raise ValueError(
            f"{training.title}: the model was saved without its training state or imported: it "
            "predicts, but cannot learn on; call fit without warm_start to train it anew."
        )


def _models(model: FittedModel) -> list[FinishedModel]:
    """One for each that has a history, and one at least; the first has made all steps."""
    numbers = model.history["model"].tolist()
    made = [FinishedModel(model.alpha, 0, []) for _ in range(max(numbers, default=0) + 1)]
    for number, point in zip(numbers, model.history.tolist(), strict=True):
        made[number].history.append(point[1:])
    made[0].n_steps = model.n_steps
    return made
