"""What a machine adds to the estimator that all share: its loop, and what it does along the way."""

import sys
from typing import Any

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import Rows
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.planes.training import NO_CHOICE, Model, Training
from polyplane.estimator.settings import Settings
from polyplane.estimator.validation import TrainingData
from polyplane.model.plane_record import FinishedPlanes

__all__ = ["Machine"]


@with_parameters
class Machine(Settings):
    """Only the first two have no default: the loop, and how far classes may grow."""

    def _steps(self, model: Model, data: TrainingData, order: Array, chosen: Array) -> int:
        """Run the machine's loop over `order`; return the new count of steps."""
        raise NotImplementedError

    def _due(self, step: int) -> int:
        """The next count of steps at which `_act` wants to be called."""
        return sys.maxsize

    def _act(self, model: Model) -> None:
        """What happens between steps, such as pruning."""

    def _room_per_class(self) -> int:
        """How many planes a class may grow by itself."""
        raise NotImplementedError

    def _least_planes(self, n_codes: int) -> int:
        """How many planes a model of so many classes has at least."""
        return n_codes

    def _alpha_of(self, model: Model) -> float:
        """The regularisation of a model."""
        return float(self._setting("alpha"))

    def _setting(self, name: str) -> Any:
        """A parameter, or what was found for it where it is 'auto'."""
        raise NotImplementedError

    def _rule_like(self, model: Model) -> Any:
        """A rule as the model's would be, or None where steps follow none that is kept."""
        return None

    def _check_state(self) -> None:
        """Refuse a fitted machine whose own attributes are none of its kind."""

    def _begin(self, model: Model, n_steps: int) -> None:
        """Told before the first pass of a fit how many steps it will be."""

    def _start_classes(self, model: Model, data: TrainingData, first: int) -> None:
        """Give classes `first` and later their first planes, where the machine has any."""

    def _starts_from_rows(self) -> bool:
        """Whether the first planes are made of the rows, so that none is new in the first pass."""
        return False

    def _first_choice(self, data: TrainingData) -> Array:
        """The plane of each row, for machines that hold on to it."""
        return NO_CHOICE

    def _has_settled(
        self, model: Model, data: TrainingData, n_passes: int, order: Array, chosen: Array
    ) -> bool:
        """Asked after each pass over `order`: whether another one would change nothing."""
        return False

    def _alpha_of_planes(self, model: Model) -> float:
        """The alpha for which W = Theta / (alpha t)."""
        return model.alpha

    def _finish(self, model: Model) -> FinishedPlanes:
        """The planes that a model has reached."""
        return model.finished(self._alpha_of_planes(model))

    def _empty_score(self) -> float:
        """Score of a class without planes; minus infinity: it must not win."""
        return -np.inf

    def _count_passes(self, n_rows: int) -> int:
        """How many passes a model of so many rows makes."""
        return int(self._setting("max_iter"))

    def _part_of_pass(self, order: Array, n_done: int) -> Array:
        """What of `order` is to be visited by a model that has made so many passes."""
        return order

    def _mapped_rows(self, rows: Rows) -> Rows:
        """Rows as the planes see them."""
        return rows

    def _training_view(self, training: Training, data: TrainingData) -> TrainingData:
        """The data as steps see them, where that is not how finished planes do."""
        return data

    def _prediction_rows(self, training: Training, rows: Rows) -> Rows:
        """Rows as finished planes see them."""
        return rows

    def _keeps_average(self, training: Training) -> bool:
        """Whether the mean of the planes over all steps is kept."""
        return bool(self.average)

    def _is_soft(self) -> bool:
        """Whether a class scores the log-sum-exp of its planes instead of their maximum."""
        return False

    def _count_features(self, n_columns: int) -> int:
        """Features of the planes, without the constant, for so many columns of X."""
        return n_columns

    def _features_of(self, training: Training) -> int:
        """Features of the planes of a training."""
        return self._count_features(training.n_columns)
