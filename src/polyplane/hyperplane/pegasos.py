"""Pegasos: a linear SVM by stochastic sub-gradient steps on the primal.

Problem     two classes:   minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i w x_i)
            more classes:  minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own)
Algorithm   Figure 1 of the Pegasos paper, one row per step; the multi-class SVM of Crammer and
            Singer in the same steps, Eq. 1-4 and 11 of the AMM paper.
Symbols     lambda = alpha; W = sums / (alpha t), a signed sum of rows (`engine/planes/planes.py`)
Two classes by the loop of the multi-class SVM, exactly: see `twice_alpha_of_opposite_planes`.
Departures  (1) rows follow an order instead of independent draws with replacement;
            (2) the optional projection at the end of a step is left out.
Papers      Shalev-Shwartz, Singer, Srebro, Cotter (2011), doi:10.1007/s10107-010-0420-4;
            Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420
"""

from typing import ClassVar

from polyplane.estimator.parameters import register
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.training.planes.algorithm import PlaneAlgorithm, twice_alpha_of_opposite_planes
from polyplane.training.search.best_value import best_alpha

__all__ = ["PEGASOS", "PegasosClassifier"]


PEGASOS = PlaneAlgorithm(
    step_alpha=twice_alpha_of_opposite_planes,
    search=best_alpha,
    searched=("alpha",),
)


@register
class PegasosClassifier(PlaneClassifier):
    """Linear SVM with one plane per class, trained by Pegasos steps.

    With two classes this is Pegasos, and `decision_function` is its w x; with more it is the
    multi-class SVM.

    See Also
    --------
    MMClassifier : Several planes per class.
    PassiveAggressiveClassifier : A linear classifier for streams that drift.
    KernelPegasosClassifier : The same steps with a kernel.

    Notes
    -----
    The problem of two classes, and of more, is::

        minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i w x_i)
        minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_{c != y_i} w_c x_i - w_{y_i} x_i)

    Rows are visited in a random order instead of independent draws, and the optional projection of
    [1]_ is left out.

    References
    ----------
    .. [1] S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, "Pegasos: primal estimated
       sub-gradient solver for SVM", Mathematical Programming 127, 2011.
       doi:10.1007/s10107-010-0420-4

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> from polyplane import PegasosClassifier
    >>> model = PegasosClassifier(alpha=1e-3, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    >>> model.decision_function(X[400:]).shape
    (169,)
    """

    algorithm: ClassVar[PlaneAlgorithm] = PEGASOS
