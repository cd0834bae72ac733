"""What kernel machines share whose coefficients are sums of updates, now and averaged.

w is a sum of updates u_s, and so is its mean over all steps: beside the sum of u_s that of s u_s,
or of another weight of the step, is kept, as for planes (`engine/planes/averaging.py`).
"""

from typing import Any, NamedTuple

from polyplane.arrays import Array
from polyplane.engine.support.support_set import SupportSet, empty_set
from polyplane.estimator.kernels.kernel_classifier import KernelClassifier
from polyplane.estimator.kernels.kernel_training import KernelModel
from polyplane.estimator.parameters import is_flag, parameter, with_parameters

__all__ = ["NOW", "SumKernelClassifier", "SumRule"]

# read by compiled code
NOW, TIMED, N_COEFS = 0, 1, 2  # kinds of coefficients


class SumRule(NamedTuple):
    """What the steps follow."""

    alpha: Any  # 0 where there is no regularisation
    budget: Any  # 0: none
    averages: Any
    offset: Any  # of the kernel


@with_parameters
class SumKernelClassifier(KernelClassifier):
    """A kernel machine without a second look at a support vector."""

    fit_intercept: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Add 1 to the kernel, which gives f a constant.",
    )
    average: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Predict with the mean over all steps instead of the last f.",
    )

    def _offset(self) -> float:
        return float(self.fit_intercept)

    def _new_set(self) -> SupportSet:
        return empty_set(N_COEFS, 0)

    def _rule(self) -> SumRule:
        return SumRule(0.0, int(self.budget or 0), bool(self.average), self._offset())

    def _weight_of_all(self, n_steps: int) -> float:
        """The weights of all steps together, in the unit of the timed sums."""
        raise NotImplementedError

    def _scale(self, model: KernelModel) -> float:
        """f is the sum over this."""
        return 1.0

    def _expand(self, model: KernelModel) -> tuple[Array, float]:
        coefs = model.held.coef[NOW].copy()
        if model.rule.averages:
            coefs -= model.held.coef[TIMED] / self._weight_of_all(max(model.n_steps, 1))
        coefs /= self._scale(model)
        return coefs, model.rule.offset * float(coefs.sum())
