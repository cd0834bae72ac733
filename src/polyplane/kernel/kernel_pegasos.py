"""Kernel Pegasos in packs of rows (P-packSVM): sub-gradient steps on the primal, kernelised.

Problem     minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i f(x_i)),  f = <w, phi>
Algorithm   Pegasos with kernels: w = sum_i coef_i phi(x_i) / (alpha t), a signed sum of rows.
            Rows are met in packs of `pack`: one product of the pack with all support vectors and
            with itself, then the exact sequence of single steps inside it.
Symbols     lambda = alpha; coef: signed counts of updates, or sums of weights
Departures  (1) rows follow an order instead of independent draws with replacement;
            (2) the optional projection is left out;
            (3) the sums are averaged over all steps, step t weighing t, unless `average` is False;
            (4) with a `budget`, the vector with the smallest |coef| sqrt(K(x, x)) is removed, of
            equals that of the lowest row number, as in budgeted SGD.
Papers      Shalev-Shwartz, Singer, Srebro, Cotter (2011), doi:10.1007/s10107-010-0420-4;
            Zhu, Chen, Wang, Zhu, Chen (ICDM 2009), doi:10.1109/ICDM.2009.29
"""

from typing import Any, ClassVar

import numpy as np

from polyplane.engine.jit import jit
from polyplane.engine.support.support_set import (
    ACTIVE,
    MISTAKES,
    add_update,
    count,
    is_full,
    remove_least,
    spans_of_set,
    spans_of_visit,
    weighted_sum,
)
from polyplane.engine.tiles import at
from polyplane.estimator.kernel_classifier import KernelClassifier, mean_of_all_steps
from polyplane.estimator.parameters import at_least, is_flag, parameter, positive, register
from polyplane.training.job import Settings
from polyplane.training.kernels.algorithm import KernelAlgorithm, Stretch
from polyplane.training.kernels.sums import NOW, SumRule, sum_algorithm

__all__ = ["KERNEL_PEGASOS", "KernelPegasosClassifier", "kernel_pegasos_walk"]


@jit
def kernel_pegasos_walk(visit: Any, order: Any, held: Any, rule: Any, first: Any, t: Any) -> Any:
    """Visit rows of a pack from `order[first]` on, t rows having been visited before.

    Return how far it came: to the end, or to where the set is full.
    """
    rows, vectors = spans_of_visit(visit), spans_of_set(held)
    for q in range(first, order.size):
        if is_full(vectors):
            return q
        j = order[q]
        y = 2.0 * at(rows.side, j) - 1.0
        margin = y * weighted_sum(vectors, NOW, rows, j)
        count(vectors, MISTAKES, np.int64(margin <= 0))
        if t == 0 or margin < rule.alpha * t:  # y f(x) < 1, both sides times alpha t
            weight = y * at(rows.weight, j)
            add_update(vectors, rows, j, weight, weight * t * (t + 1.0))
            if at(vectors.counts, ACTIVE) > rule.budget > 0:
                remove_least(vectors)
        t += 1
    return order.size


def rule(settings: Settings) -> SumRule:
    """Return what the steps follow."""
    budget, offset = int(settings.budget or 0), float(settings.fit_intercept)
    return SumRule(float(settings.alpha), budget, bool(settings.average), offset)


def walk(rows: Stretch) -> int:
    """Visit rows of a pack."""
    held, rule, t = rows.model.held, rows.model.rule, rows.model.n_steps
    reached: int = kernel_pegasos_walk(rows.visit, rows.order, held, rule, rows.first, t)
    return reached


KERNEL_PEGASOS = sum_algorithm(
    walk=walk,
    rule=rule,
    weight_of_all=lambda n_steps: n_steps * (n_steps + 1.0),
    scale=lambda model: float(model.rule.alpha * max(model.n_steps, 1)),
)


@register
class KernelPegasosClassifier(KernelClassifier):
    """Kernel SVM by Pegasos steps in packs of rows, without a cache.

    Its support vectors are all rows that ever violated the margin, so that models are large;
    `budget` bounds them.

    See Also
    --------
    LaSVMClassifier : Fewer support vectors, in more time.
    NystromClassifier : A model of bounded size.
    PegasosClassifier : The linear SVM.

    Notes
    -----
    The problem of two classes and its scores after t steps are::

        minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i f(x_i)),   f(x) = w phi(x)
        f(x) = sum_i a_i K(x_i, x) / (alpha t)

    a_i is the signed number of updates with row i. Rows are met in packs, which changes the time of
    the steps and not their result [2]_.

    References
    ----------
    .. [1] S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
       sub-gradient solver for SVM", Mathematical Programming 127, 2011.
       doi:10.1007/s10107-010-0420-4
    .. [2] Z. A. Zhu, W. Chen, G. Wang, C. Zhu and Z. Chen, "P-packSVM: parallel primal gradient
       descent kernel SVM", ICDM 2009. doi:10.1109/ICDM.2009.29

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import KernelPegasosClassifier
    >>> model = KernelPegasosClassifier(alpha=1e-3, gamma=2, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    """

    algorithm: ClassVar[KernelAlgorithm] = KERNEL_PEGASOS

    alpha: float = parameter(
        default=1e-4,
        allowed=positive(),
        meaning="Regularisation, lambda of the papers. Larger is smoother.",
    )
    max_iter: int = parameter(default=5, allowed=at_least(1), meaning="Passes over the rows.")
    pack: int = parameter(
        default=256,
        allowed=at_least(1),
        meaning="Rows that one product of matrices serves. It changes the time, not the result.",
    )
    fit_intercept: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Add 1 to the kernel, which gives f a constant, regularised like the rest.",
    )
    average: bool = mean_of_all_steps()
