"""Algorithms of kernels whose coefficients are sums of updates, now and averaged.

w is a sum of updates u_s, and so is its mean over all steps: beside the sum of u_s that of s u_s,
or of another weight of the step, is kept, as for planes (`engine/planes/averaging.py`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from polyplane.arrays import Array
from polyplane.engine.support.support_set import SupportSet, empty_set
from polyplane.training.kernels.algorithm import KernelAlgorithm
from polyplane.training.kernels.state import KernelModel

__all__ = ["NOW", "SumRule", "sum_algorithm"]

# read by compiled code
NOW, TIMED, N_COEFS = 0, 1, 2  # kinds of coefficients


class SumRule(NamedTuple):
    """Numbers that the compiled steps read."""

    alpha: Any  # 0 where there is no regularisation
    budget: Any  # 0: none
    averages: Any
    offset: Any  # of the kernel


def _empty_sums() -> SupportSet:
    return empty_set(N_COEFS, 0)


def sum_algorithm(
    *,
    weight_of_all: Callable[[int], float],
    scale: Callable[[KernelModel], float] = lambda model: 1.0,
    **fields: Any,
) -> KernelAlgorithm:
    """Return the record of an algorithm whose f is the sum of its updates over `scale`.

    `weight_of_all` steps together weigh so much in the timed sums.
    """

    def finish(model: KernelModel) -> tuple[Array, float]:
        coefs = model.held.coef[NOW].copy()
        if model.rule.averages:
            coefs -= model.held.coef[TIMED] / weight_of_all(max(model.n_steps, 1))
        coefs /= scale(model)
        return coefs, model.rule.offset * float(coefs.sum())

    return KernelAlgorithm(new_set=_empty_sums, finish=finish, **fields)
