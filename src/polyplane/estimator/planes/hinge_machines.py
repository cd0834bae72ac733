"""What the machines of the multi-hyperplane hinge loss share: one loop, `engine.hinge`."""

import numpy as np

from polyplane.engine.planes.hinge import HingeRule, SparseRule, hinge_epoch
from polyplane.engine.planes.planes import Array, with_planes
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import Model, Training
from polyplane.estimator.validation import TrainingData

__all__ = ["HingeClassifier", "LinearClassifier"]

NO_COINS = np.empty(0, np.float32)


@with_parameters
class HingeClassifier(HyperplaneClassifier):
    """Trained by steps on max(0, 1 + best rival score - own score)."""

    def _rule(self, model: Model) -> HingeRule | SparseRule:
        return HingeRule(self._alpha_of_planes(model), False)

    def _rule_like(self, model: Model) -> HingeRule | SparseRule:
        return self._rule(model)

    def _introduce(self, model: Model, training: Training, data: TrainingData) -> None:
        super()._introduce(model, training, data)
        model.rule = self._rule(model)

    def _coins(self, model: Model, n_rows: int) -> Array:
        """A uniform number for each step, for machines that toss coins."""
        return NO_COINS

    def _steps(self, model: Model, data: TrainingData, order: Array, chosen: Array) -> int:
        n_steps: int = hinge_epoch(
            data.rows,
            model.targets(data),
            order,
            model.planes,
            model.rule,
            self._coins(model, order.size),
            chosen,
            model.n_steps,
        )
        return n_steps


@with_parameters
class LinearClassifier(HingeClassifier):
    """One plane per class, with two classes in the steps of Pegasos.

    The multi-class SVM keeps its two planes opposite, W_1 = -W_0 = w/2: both get the same row with
    opposite signs. Its loss is 1 - w x and its regulariser alpha/4 |w|^2, so twice the alpha makes
    it Pegasos exactly, and one loop serves both.
    """

    def _room_per_class(self) -> int:
        return 0

    def _start_classes(self, model: Model, data: TrainingData, first: int) -> None:
        labels = np.arange(first, model.planes.room_left.size)
        model.planes = with_planes(model.planes, labels, np.zeros((labels.size, 1)))

    def _alpha_of_planes(self, model: Model) -> float:
        is_two_class = model.planes.room_left.size == 2
        return 2 * model.alpha if is_two_class else model.alpha
