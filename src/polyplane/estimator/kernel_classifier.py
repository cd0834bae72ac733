"""Estimators of kernels: the parameters that all of them have, and what they show."""

from typing import Any, ClassVar, Self

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.storage import matrix_of
from polyplane.estimator.fitting.restoring import check_fitted
from polyplane.estimator.fitting.thread_safety import reads, reads_alone, writes
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.online_classifier import A_NUMBER_OF_THREADS
from polyplane.estimator.parameters import (
    Range,
    at_least,
    closed,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    with_parameters,
)
from polyplane.estimator.shell import AlgorithmClassifier, job_of
from polyplane.training.family import Family
from polyplane.training.finished import check_can_learn_on
from polyplane.training.kernels.family import KERNELS as KERNEL_FAMILY
from polyplane.training.kernels.kernel_choice import KERNELS

__all__ = [
    "CachedKernelClassifier",
    "KernelClassifier",
    "constant_in_kernel",
    "mean_of_all_steps",
]


@with_parameters
class KernelClassifier(AlgorithmClassifier):
    """Base of classifiers whose problems are sums of kernels around support vectors.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features_in_)
    n_support_ : ndarray of shape (n_classes,)
    problems_ : list of tuple
    dual_coef_ : ndarray of shape (n_problems, n_support)
    intercept_ : ndarray of shape (n_problems,)
    n_steps_ : int
    gamma_ : float
    """

    family: ClassVar[Family[Any]] = KERNEL_FAMILY

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
            "Scale of the kernel. 'scale' is 1 / (columns * variance of X), in a stream of its "
            "first chunk; 'auto' is 1 / columns."
        ),
    )
    degree: int = parameter(default=3, allowed=at_least(1), meaning="Degree of the kernel 'poly'.")
    coef0: float = parameter(
        default=0.0,
        allowed=closed(-1e10, 1e10),
        meaning="Constant in the kernels 'poly' and 'sigmoid'.",
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
            "least, by the algorithm's own measure, is removed."
        ),
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning="Threads for kernel values and for problems side by side; -1 uses all cores.",
    )

    # ---- prediction ----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.allow_nan = self.kernel != "precomputed"
        return tags

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    def feature_importances_(self) -> Array:
        """Raise an error, since a kernel mixes all columns."""
        raise AttributeError(
            f"{type(self).__name__} has no feature_importances_: a kernel mixes all columns. Use "
            "permutation_importance of sklearn.inspection."
        )

    @property
    @reads
    def support_(self) -> Array:
        """Numbers of the rows that are support vectors: rows of X, or of the stream so far."""
        numbers: Array = self._record().support.numbers
        return numbers

    @property
    @reads
    def support_vectors_(self) -> Any:
        """Support vectors as X was given: an array, or a CSR matrix."""
        record = self._record()
        matrix = matrix_of(record.support.entries, width_of(self))
        return matrix.toarray() if self._training.is_dense else matrix

    @property
    @reads
    def n_support_(self) -> Array:
        """Number of support vectors of each of `classes_`."""
        ranks = self._training.ranks[self._record().support.labels]
        return np.bincount(ranks, minlength=self._training.classes.size)

    @property
    @reads
    def problems_(self) -> list[tuple[Any, Any]]:
        """Labels of both sides of each problem, None being the rest; f > 0 is the second side."""
        training, order = self._training, self._problem_order()
        problems = self._record().decomposition.problems()
        labels = [*training.labels.tolist(), None]  # the last is that of REST, -1
        pairs = [tuple(labels[side] for side in problem.classes) for problem in problems]
        return [pairs[k] for k in order]

    def _problem_order(self) -> Array:
        """Return the order of problems: one-vs-rest by `classes_`, pairs as they are."""
        decomposition = self._record().decomposition
        problems = decomposition.problems()
        if decomposition.kind == "ovo" or decomposition.is_joint:
            return np.arange(len(problems))
        return np.argsort([decomposition.ranks[problem.classes[1]] for problem in problems])

    @property
    @reads
    def dual_coef_(self) -> Array:
        """Coefficients of support vectors: f(x) = sum_i dual_coef_i K(x_i, x) + intercept."""
        coefs: Array = self._record().dual_coefs()[self._problem_order()]
        return coefs

    @property
    @reads
    def intercept_(self) -> Array:
        """Constant of each problem."""
        intercepts: Array = self._record().intercepts[self._problem_order()]
        return intercepts

    @property
    @reads_alone
    def n_steps_(self) -> int:
        """Number of rows visited since training began, by all problems together."""
        check_fitted(self)
        return int(self._training.n_steps)

    @property
    @reads_alone
    def gamma_(self) -> float:
        """Value of gamma in use."""
        check_fitted(self)
        return float(self._training.gamma)


@with_parameters
class CachedKernelClassifier(KernelClassifier):
    """Base of kernel classifiers whose steps look at kernel values among support vectors."""

    cache_mb: int = parameter(
        default=256,
        allowed=at_least(1),
        meaning="Megabytes for kernel values among support vectors; less is only slower.",
    )

    @writes
    def finish(self) -> Self:
        """Do what `fit` does at its end, for a stream that pauses.

        Returns
        -------
        Self
            The estimator.
        """
        check_fitted(self)
        check_can_learn_on(self)
        job = job_of(self, {})
        finishing = job.settings.replaced(finishes=True)
        self.family.complete(job._replace(settings=finishing), self._training, None, None)
        return self


def mean_of_all_steps() -> Any:
    """Return the parameter `average` of algorithms whose coefficients are sums of updates."""
    return parameter(
        default=True,
        allowed=is_flag(),
        meaning="Predict with the mean over all steps instead of the last f.",
    )


def constant_in_kernel() -> Any:
    """Return the parameter `fit_intercept` of such algorithms."""
    return parameter(
        default=True,
        allowed=is_flag(),
        meaning="Add 1 to the kernel, which gives f a constant.",
    )
