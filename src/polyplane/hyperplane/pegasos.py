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
    """Linear SVM: one plane per class, trained by Pegasos steps.

    With two classes this is Pegasos, and `decision_function` is its w x; with more it is the
    multi-class SVM.
    """

    algorithm: ClassVar[PlaneAlgorithm] = PEGASOS
