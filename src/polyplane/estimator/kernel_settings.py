"""The parameters that all kernel machines share."""

from typing import Any

from polyplane.estimator.parameters import (
    Range,
    at_least,
    closed,
    either,
    is_flag,
    is_whole,
    one_of,
    parameter,
    positive,
    with_parameters,
)

__all__ = ["KernelSettings"]

KERNELS = ("rbf", "linear", "poly", "sigmoid", "precomputed")


@with_parameters
class KernelSettings:
    """What one can set on every kernel machine."""

    kernel: Any = parameter(
        default="rbf",
        allowed=either(one_of(*KERNELS), Range(callable, "a function of two matrices")),
        meaning=(
            "'rbf' exp(-gamma |x - z|^2), 'linear' x z, 'poly' (gamma x z + coef0)^degree, "
            "'sigmoid' tanh(gamma x z + coef0); 'precomputed': X holds kernel values with all "
            "training rows; or a function that returns kernel values of the rows of two matrices."
        ),
    )
    gamma: float | str = parameter(
        default="scale",
        allowed=either(positive(), one_of("scale", "auto")),
        meaning=(
            "Of the kernel. 'scale' is 1 / (columns * variance of X), in a stream of its first "
            "chunk; 'auto' is 1 / columns."
        ),
    )
    degree: int = parameter(default=3, allowed=at_least(1), meaning="Of the kernel 'poly'.")
    coef0: float = parameter(
        default=0.0,
        allowed=closed(-1e10, 1e10),
        meaning="Of the kernels 'poly' and 'sigmoid'.",
    )
    max_iter: int = parameter(default=1, allowed=at_least(1), meaning="Passes over the rows.")
    multi_class: str = parameter(
        default="ovo",
        allowed=one_of("ovr", "ovo"),
        meaning=(
            "More than two classes by one problem of each class against the rest ('ovr') or of "
            "each pair ('ovo'). All problems share one block of kernel values."
        ),
    )
    combine: str = parameter(
        default="vote",
        allowed=one_of("vote", "margin"),
        meaning=(
            "How pairs of classes decide: by one vote each, margins deciding between equals, or "
            "by their margins, cut to [-1, 1] and added."
        ),
    )
    budget: int | None = parameter(
        default=None,
        allowed=either(at_least(2), one_of(None)),
        meaning=(
            "The most support vectors that a problem may have; above it the one that matters "
            "least, by the machine's own measure, is removed."
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
    n_jobs: Any = parameter(
        default=None,
        allowed=Range(
            lambda v: v is None or (is_whole(v) and v != 0),
            "None or a whole number other than 0",
        ),
        meaning="Threads for kernel values and for problems side by side; -1 uses all cores.",
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
