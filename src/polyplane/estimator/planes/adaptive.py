"""Parameters and hooks of machines whose classes grow planes as the data ask."""

import sys

from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.parameters import (
    at_least,
    either,
    is_flag,
    one_of,
    parameter,
    with_parameters,
)
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import PlaneModel, next_multiple

__all__ = ["AdaptiveClassifier"]


@with_parameters
class AdaptiveClassifier(HyperplaneClassifier):
    """Classes have a zero plane in reserve; what is not needed is dropped from time to time."""

    prune_interval: int = parameter(
        default=10_000,
        allowed=at_least(1),
        meaning="Steps between prunings, k of the papers.",
    )
    max_planes: int | None = parameter(
        default=None,
        allowed=either(one_of(None), at_least(1)),
        meaning="Most planes of one class; None for any number.",
    )
    grow_rivals: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let an update create a plane for a rival class, too, as the AMM paper has it.",
    )

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        """None: a class starts with its zero plane, which is no plane yet."""

    def _room_per_class(self) -> int:
        return sys.maxsize if self.max_planes is None else self.max_planes

    def _due(self, step: int) -> int:
        return next_multiple(step, self.prune_interval)
