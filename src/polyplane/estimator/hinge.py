"""What the machines of the multi-hyperplane hinge loss share: one loop, `engine.hinge`."""

from polyplane.engine.hinge import HingeRule, hinge_epoch
from polyplane.engine.planes import Array
from polyplane.estimator.base import HyperplaneClassifier
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.training import Training
from polyplane.estimator.validation import TrainingData

__all__ = ["HingeClassifier"]


@with_parameters
class HingeClassifier(HyperplaneClassifier):
    """Trained by steps on max(0, 1 + best rival score - own score)."""

    def _rule(self, training: Training) -> HingeRule:
        return HingeRule(self._alpha_of_planes(training), False)

    def _steps(self, training: Training, data: TrainingData, order: Array, chosen: Array) -> int:
        n_steps: int = hinge_epoch(
            data.rows,
            data.labels,
            data.weights,
            order,
            training.planes,
            self._rule(training),
            chosen,
            training.n_steps,
        )
        return n_steps
