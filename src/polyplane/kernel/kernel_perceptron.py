"""The averaged kernel perceptron: every mistake becomes a support vector.

Algorithm   Figure 1 of the paper with kernels (section 3): on a mistake w += y phi(x); the
            prediction is by the average of all w met on the way, each as often as it was met
            ("average", section 2.4, unnormalised).
Symbols     coef: y_i of each mistake, added up; f = sum_i coef_i K(x_i, x)
Departures  (1) an update is y times the row's weight;
            (2) with a `budget`, the vector with the smallest |coef| sqrt(K(x, x)) is removed, of
            equals that of the lowest row number.
Paper       Freund, Schapire (Machine Learning 37, 1999), doi:10.1023/A:1007662407062
"""

from typing import Any, ClassVar

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
from polyplane.estimator.parameters import at_least, is_flag, parameter, register
from polyplane.training.job import Settings
from polyplane.training.kernels.algorithm import KernelAlgorithm, Stretch
from polyplane.training.kernels.sums import NOW, SumRule, sum_algorithm

__all__ = ["KERNEL_PERCEPTRON", "KernelPerceptronClassifier", "kernel_perceptron_walk"]


@jit
def kernel_perceptron_walk(visit: Any, order: Any, held: Any, rule: Any, first: Any, t: Any) -> Any:
    """Visit rows of a chunk from `order[first]` on, t rows having been visited before.

    Return how far it came: to the end, or to where the set is full.
    """
    rows, vectors = spans_of_visit(visit), spans_of_set(held)
    for q in range(first, order.size):
        if is_full(vectors):
            return q
        j = order[q]
        y = 2.0 * at(rows.side, j) - 1.0
        if y * weighted_sum(vectors, NOW, rows, j) <= 0:
            count(vectors, MISTAKES, 1)
            weight = y * at(rows.weight, j)
            add_update(vectors, rows, j, weight, weight * t)
            if at(vectors.counts, ACTIVE) > rule.budget > 0:
                remove_least(vectors)
        t += 1
    return order.size


def rule(settings: Settings) -> SumRule:
    """Return what the steps follow."""
    budget, offset = int(settings.budget or 0), float(settings.fit_intercept)
    return SumRule(0.0, budget, bool(settings.average), offset)


def walk(rows: Stretch) -> int:
    """Visit rows of a chunk (Fig. 1)."""
    held, rule, t = rows.model.held, rows.model.rule, rows.model.n_steps
    reached: int = kernel_perceptron_walk(rows.visit, rows.order, held, rule, rows.first, t)
    return reached


KERNEL_PERCEPTRON = sum_algorithm(walk=walk, rule=rule, weight_of_all=float)


@register
class KernelPerceptronClassifier(KernelClassifier):
    """Averaged kernel perceptron, in which every mistake becomes a support vector.

    Its first pass is quick; it needs about ten passes to come close to an SVM, and keeps every row
    that it was ever wrong on.

    See Also
    --------
    KernelPegasosClassifier : A kernel SVM by steps on the primal problem.

    Notes
    -----
    On a mistake the row is added with its label, and predictions are by the mean over all steps::

        f(x) = sum_i a_i K(x_i, x),    a_i <- a_i + y_i  if  y_i f(x_i) <= 0

    The mean is unnormalised, "average" of Section 2.4 of [1]_.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire, "Large margin classification using the perceptron
       algorithm", Machine Learning 37, 1999. doi:10.1023/A:1007662407062

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import KernelPerceptronClassifier
    >>> model = KernelPerceptronClassifier(gamma=2, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    """

    algorithm: ClassVar[KernelAlgorithm] = KERNEL_PERCEPTRON

    max_iter: int = parameter(default=10, allowed=at_least(1), meaning="Passes over the rows.")
    fit_intercept: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning="Add 1 to the kernel, which gives f a constant. The paper has none.",
    )
    average: bool = mean_of_all_steps()
