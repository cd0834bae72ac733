"""The kernel that a user has named: a formula, a function, or values that are given.

Those with a formula are listed in `model/kernels/kernel_formulas.py`.
"""

from typing import Any

import numpy as np

from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import packed
from polyplane.model.kernels.kernel_formulas import FORMULAS
from polyplane.model.kernels.kernel_values import FormulaKernel, FunctionKernel, GivenKernel, Kernel
from polyplane.training.rows import TrainingData, weighty

__all__ = ["KERNELS", "gamma_of", "kernel_of"]

ROWS_AT_ONCE = 4_096  # of X, while its variance is taken
LEAST_VARIANCE = 1e-30  # squares of less than float32's least number are 0
KERNELS = (*FORMULAS, "precomputed")


def kernel_of(settings: Any, gamma: float, offset: float, n_columns: int, is_dense: bool) -> Kernel:
    """The kernel of an estimator's settings; `offset` is a constant added to it."""
    if callable(settings.kernel):
        return FunctionKernel(
            function=settings.kernel, offset=offset, n_columns=n_columns, is_dense=is_dense
        )
    if settings.kernel == "precomputed":
        return GivenKernel(offset=offset, n_columns=n_columns)
    formula = FORMULAS[settings.kernel].made(
        np.float32(gamma), np.float32(settings.coef0), settings.degree, np.float32(offset)
    )
    return FormulaKernel(formula=formula, n_columns=n_columns)


def gamma_of(settings: Any, data: TrainingData, n_columns: int) -> float:
    """The number that gamma stands for; what storage holds of zeros does not matter."""
    if not isinstance(settings.gamma, str):
        return float(settings.gamma)
    if settings.gamma == "auto" or settings.kernel in ("linear", "precomputed"):
        return 1.0 / n_columns
    members = weighty(in_place(data.labels.size), data.weights)
    total = squares = 0.0
    for start in range(0, members.size, ROWS_AT_ONCE):
        some = packed(data.rows, members[start : start + ROWS_AT_ONCE]).values
        some = some[some != 0].astype(np.float64)
        total, squares = total + some.sum(), squares + np.square(some).sum()
    n_values = members.size * n_columns
    variance = squares / n_values - (total / n_values) ** 2
    if 0 < variance < LEAST_VARIANCE:
        raise ValueError(
            f"The variance of X is {variance:.3g}: products of such small numbers vanish in "
            "float32. Scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    return float(1.0 / (n_columns * variance)) if variance > 0 else 1.0
