"""Pegasos under the polynomial map of degree 2: an SVM with a quadratic kernel, without the kernel.

Problem     that of Pegasos, with phi(x) in place of x, where phi(x) phi(z) = (gamma x z + r)^2
Algorithm   a linear SVM on the mapped rows, whose products are formed when a row is visited and
            never stored
Symbols     lambda = alpha, r = coef0; W = sums / (alpha t). Columns of the planes are those of
            phi in the order of `engine/rows/products.py`, or hashes of them
Two classes as in Pegasos, of two opposite planes each is half of w, and twice the alpha makes up
            for that
Departures  (1) those of Pegasos, which stands here for the paper's dual coordinate descent;
            (2) with n_hash the columns of phi are hashed, with signs.
Papers      Chang, Hsieh, Chang, Ringgaard, Lin (2010), https://jmlr.org/papers/v11/chang10a.html;
            Shalev-Shwartz, Singer, Srebro, Cotter (2011), doi:10.1007/s10107-010-0420-4
"""

from typing import ClassVar

import numpy as np

from polyplane.arrays import Array
from polyplane.estimator.parameters import (
    Range,
    at_least,
    either,
    is_whole,
    one_of,
    parameter,
    positive,
    register,
)
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.training.columns import ProductColumns
from polyplane.training.planes.algorithm import PlaneAlgorithm, twice_alpha_of_opposite_planes
from polyplane.training.search.best_value import best_alpha

__all__ = ["POLY2", "Poly2Classifier"]

MOST_HASHED = (1 << 31) - 1


POLY2 = PlaneAlgorithm(
    columns=ProductColumns,
    step_alpha=twice_alpha_of_opposite_planes,
    search=best_alpha,
    searched=("alpha",),
)


@register
class Poly2Classifier(PlaneClassifier):
    """Linear SVM over products of two columns, with one plane per class.

    The kernel is (gamma x z + coef0)^2. Products are formed as rows are visited, so that memory
    grows with the columns only: n of them give n (n + 3) / 2 columns of the planes, or `n_hash` if
    that is set.

    See Also
    --------
    PegasosClassifier : The linear SVM without products.
    LaSVMClassifier : An SVM with kernels of any degree.

    Notes
    -----
    With phi such that phi(x) phi(z) = (gamma x z + coef0)^2, the problem of two classes is::

        f(x) = w phi(x)
        minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i f(x_i))

    Steps are those of Pegasos [2]_ instead of the dual coordinate descent of [1]_.

    References
    ----------
    .. [1] Y.-W. Chang, C.-J. Hsieh, K.-W. Chang, M. Ringgaard and C.-J. Lin, "Training and
       testing low-degree polynomial data mappings via linear SVM", JMLR 11, 2010, 1471-1490.
       https://jmlr.org/papers/v11/chang10a.html
    .. [2] S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
       sub-gradient solver for SVM", Mathematical Programming 127, 2011.
       doi:10.1007/s10107-010-0420-4

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import Poly2Classifier
    >>> model = Poly2Classifier(random_state=0).fit(X_train, y_train)
    >>> model.planes_.shape
    (2, 5)
    >>> model.score(X_test, y_test) > 0.8
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = POLY2

    gamma: float = parameter(
        default=1.0,
        allowed=positive(1e-30, 1e30),
        meaning="Factor of x z in the kernel: larger gives products more weight.",
    )
    coef0: float = parameter(
        default=1.0,
        allowed=at_least(0, whole=False),
        meaning="Constant in the kernel: larger gives single columns more weight; 0, none.",
    )
    n_hash: int | None = parameter(
        default=None,
        allowed=either(
            one_of(None),
            Range(
                lambda v: is_whole(v) and 1 <= v <= MOST_HASHED,
                f"a whole number from 1 to {MOST_HASHED}",
            ),
        ),
        meaning=(
            "How many features the planes have, to which columns and products are hashed: fewer "
            "take less memory and confuse more. None keeps all apart."
        ),
    )

    @property
    def intercepts_(self) -> Array:
        """Constant term of each plane, multiplied by coef0, the constant of phi."""
        products = self._training.columns.features(1.0).products
        return super().intercepts_ * np.float32(products.coef0)
