"""The parameters that all machines share, and those that all hyperplane machines do."""

from typing import Any

from polyplane.estimator.parameters import (
    Range,
    at_least,
    between,
    either,
    is_flag,
    is_whole,
    one_of,
    parameter,
    positive,
    with_parameters,
)

__all__ = ["A_NUMBER_OF_THREADS", "CommonSettings", "Settings"]

A_NUMBER_OF_THREADS = Range(
    lambda v: v is None or (is_whole(v) and v != 0), "None or a whole number other than 0"
)


@with_parameters
class CommonSettings:
    """What one can set on every machine."""

    combine: str = parameter(
        default="vote",
        allowed=one_of("vote", "margin"),
        meaning=(
            "How pairs of classes decide: by one vote each, margins deciding between equals, or "
            "by their margins, cut to [-1, 1] and added."
        ),
    )
    shuffle: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Visit rows in a new random order in each pass.",
    )
    class_weight: Any = parameter(
        default=None,
        allowed=Range(
            lambda v: v is None or isinstance(v, dict) or (isinstance(v, str) and v == "balanced"),
            "None, 'balanced' or a dict from label to weight",
        ),
        meaning="Factor on each class's loss; 'balanced' is inverse to the number of its rows.",
    )
    warm_start: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let `fit` go on from the model at hand instead of starting anew.",
    )
    random_state: Any = parameter(
        default=None,
        allowed=Range(lambda v: True, "None, a whole number or a RandomState"),
        meaning="Seed.",
    )
    verbose: bool | int = parameter(
        default=False,
        allowed=either(is_flag(), at_least(0)),
        meaning="Show a progress bar.",
    )


@with_parameters
class Settings(CommonSettings):
    """What one can set on every hyperplane machine."""

    alpha: float | str = parameter(
        default=1e-4,
        allowed=either(positive(), one_of("auto")),
        meaning=(
            "Regularisation, lambda of the papers. Larger is smoother. 'auto' tries 1e-2 to 1e-7 "
            "on a held-out share of the rows and then fits all of them with the best."
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
            "Stop when the error on held-out rows no longer falls, and keep the best model met. "
            "The rows are X_val and y_val of `fit`, or else a share of X."
        ),
    )
    validation_fraction: float = parameter(
        default=0.1,
        allowed=between(0, 1),
        meaning="Share of the rows held out by early stopping and by alpha='auto'.",
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
