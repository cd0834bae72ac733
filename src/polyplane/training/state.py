"""What every training is, of whichever family: a state that `fit` and `partial_fit` hand on."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.estimator.fitting.resuming import SeenRows
from polyplane.estimator.input.known_classes import ClassesMet
from polyplane.training.columns import Columns

__all__ = ["EarlyStopping", "Training"]

NO_ROWS = SeenRows(0, 0)


@dataclass
class EarlyStopping:
    """What early stopping has seen."""

    best: float = np.inf
    since_best: int = 0  # passes
    snapshots: list[Any] = field(default_factory=list)  # of all models at their best


@dataclass(kw_only=True)
class Training(ClassesMet):
    """What a training consists of, beside its models."""

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
