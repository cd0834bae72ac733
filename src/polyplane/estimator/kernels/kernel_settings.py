"""The parameters that all kernel machines share beside those of every machine."""

from typing import Any

from polyplane.estimator.parameters import (
    Range,
    at_least,
    closed,
    either,
    one_of,
    parameter,
    positive,
    with_parameters,
)
from polyplane.estimator.settings import A_NUMBER_OF_THREADS, CommonSettings

__all__ = ["KernelSettings"]

KERNELS = ("rbf", "linear", "poly", "sigmoid", "precomputed")


@with_parameters
class KernelSettings(CommonSettings):
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
        allowed=either(positive(1e-30, 1e30), one_of("scale", "auto")),
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
    budget: int | None = parameter(
        default=None,
        allowed=either(at_least(2), one_of(None)),
        meaning=(
            "The most support vectors that a problem may have; above it the one that matters "
            "least, by the machine's own measure, is removed."
        ),
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning="Threads for kernel values and for problems side by side; -1 uses all cores.",
    )
