"""Estimators of planes: the parameters that all of them have."""

from typing import Any, ClassVar

from polyplane.estimator.answers.plane_answers import PlanePrediction
from polyplane.estimator.online_classifier import A_NUMBER_OF_THREADS
from polyplane.estimator.parameters import (
    at_least,
    between,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    with_parameters,
)
from polyplane.estimator.shell import AlgorithmClassifier
from polyplane.training.family import Family
from polyplane.training.planes.family import PLANES

__all__ = ["PlaneClassifier", "grown_rivals", "interval_of_pruning", "most_planes"]


@with_parameters
class PlaneClassifier(PlanePrediction, AlgorithmClassifier):
    """Base of classifiers whose classes are maxima of planes."""

    family: ClassVar[Family[Any]] = PLANES

    alpha: float | str = parameter(
        default=1e-4,
        allowed=either(positive(), one_of("auto")),
        meaning=(
            "Regularisation, lambda of the papers. Larger is smoother. 'auto' tries 1e-2 to 1e-7 "
            "without parts of the rows, on which they are judged, and then fits all rows with the "
            "best."
        ),
    )
    max_iter: int = parameter(
        default=10,
        allowed=at_least(1),
        meaning="Passes over the rows.",
    )
    multi_class: str = parameter(
        default="joint",
        allowed=one_of("joint", "ovr", "ovo"),
        meaning=(
            "More than two classes by one model of all ('joint'), one of each class against the "
            "rest ('ovr') or one of each pair ('ovo'): more planes, less error. In a stream, "
            "announce the classes: a model starts when both its sides are known."
        ),
    )
    n_estimators: int = parameter(
        default=1,
        allowed=at_least(1),
        meaning="Models that differ in seed and order of rows; their scores are averaged.",
    )
    fit_intercept: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Give every row a constant feature 1, so that planes have intercepts.",
    )
    average: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning=(
            "Predict with the mean of the planes over all steps, later ones weighing more, instead "
            "of the last planes: less noise for a few percent of the time."
        ),
    )
    early_stopping: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning=(
            "Stop when the error on held-out rows no longer falls, and keep the best model. "
            "The rows are the last of `eval_set` of `fit`, or else a share of X."
        ),
    )
    validation_fraction: float = parameter(
        default=0.1,
        allowed=between(0, 1),
        meaning="Share of the rows held out by early stopping.",
    )
    n_iter_no_change: int = parameter(
        default=3,
        allowed=at_least(1),
        meaning="Passes without a better error after which early stopping ends.",
    )
    tol: float = parameter(
        default=1e-4,
        allowed=at_least(0, whole=False),
        meaning="How much lower an error must be to count as better.",
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning=(
            "Threads for prediction, for models side by side and for what is searched; -1 uses "
            "all cores."
        ),
    )

    def _setting_in_use(self, name: str) -> Any:
        """The value of a parameter, or what was found where it is 'auto'."""
        value = getattr(self, name)
        is_open = isinstance(value, str) and value == "auto"
        return self._training.found[name] if is_open else value


# ---- of algorithms whose classes grow planes as the data ask -------------------------------


def interval_of_pruning() -> Any:
    """Return the parameter `prune_interval`."""
    return parameter(
        default=10_000,
        allowed=at_least(1),
        meaning="Steps between prunings, k of the papers.",
    )


def most_planes() -> Any:
    """Return the parameter `max_planes`."""
    return parameter(
        default=None,
        allowed=either(one_of(None), at_least(1)),
        meaning="Most planes of one class; None for any number.",
    )


def grown_rivals() -> Any:
    """Return the parameter `grow_rivals`."""
    return parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let an update create a plane for a rival class, too, as the AMM paper has it.",
    )
