"""State common to all trainings, which `fit` and `partial_fit` hand on."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.training.columns import Columns
from polyplane.training.work.interruption import SeenRows

__all__ = ["ClassesMet", "EarlyStopping", "KnownClasses", "Training", "known_classes", "twin"]

NO_ROWS = SeenRows(0, 0)


class KnownClasses(NamedTuple):
    """Labels with what follows from them: made together, so that it is never of other labels."""

    labels: Array  # of all classes met, in the order in which they were met
    classes: Array  # the labels, sorted
    ranks: Array  # place of each label among the sorted ones


def known_classes(labels: Array) -> KnownClasses:
    """Return the classes, sorted, with the rank of each label."""
    classes = np.sort(labels)
    return KnownClasses(labels, classes, np.searchsorted(classes, labels).astype(np.int32))


@dataclass
class ClassesMet:
    """Classes that a training of planes or kernels has met."""

    kind: str  # of its decomposition
    seed: int
    known: KnownClasses

    @property
    def labels(self) -> Array:
        """Labels of all classes met, in the order in which they were met."""
        return self.known.labels

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.known.classes

    @property
    def ranks(self) -> Array:
        """Place of each label among the sorted ones."""
        return self.known.ranks

    def decomposition(self, combine: str) -> Decomposition:
        """Return how the problems make one classifier."""
        return Decomposition(self.kind, combine, self.ranks)


def twin(thing: Any) -> Any:
    """Return a record with the same fields, of which each can be replaced without a trace."""
    made = object.__new__(type(thing))
    vars(made).update(vars(thing))
    return made


@dataclass
class EarlyStopping:
    """Best loss so far, and the models that had it."""

    best: float = np.inf
    since_best: int = 0  # passes
    snapshots: list[Any] = field(default_factory=list)  # of all models at their best


@dataclass(kw_only=True)
class Training(ClassesMet):
    """Fields of a training beside its models."""

    columns: Columns
    n_columns: int
    constant: float = 0.0  # of rows: 1 with an intercept, where that is a feature
    found: dict[str, Any] = field(default_factory=dict)  # of parameters that were 'auto'
    n_passes: int = 0  # of the latest fit
    rows_seen: SeenRows = NO_ROWS  # by the latest fit
    split_seed: int = 0  # of the rows that early stopping holds out
    watch: EarlyStopping = field(default_factory=EarlyStopping)
    models: list[Any] = field(default_factory=list)
    origin: object = field(default_factory=object)  # which training it is: copies share it

    @property
    def n_steps(self) -> int:
        """Rows visited by all models together."""
        return sum(model.n_steps for model in self.models)

    @property
    def is_unfinished(self) -> bool:
        """Return True if a fit was interrupted."""
        raise NotImplementedError

    def goes_on_from(self, before: Any) -> bool:
        """Return True if it is the training that was there before."""
        return before is not None and self.origin is before.origin

    def end_fit(self) -> None:
        """Forget how far a fit has come: it is finished, or given up."""
        raise NotImplementedError

    def snapshot(self) -> list[Any]:
        """Return the state of each model, to return to."""
        return []

    def return_to(self, snapshots: list[Any]) -> None:
        """Take up an earlier state."""
