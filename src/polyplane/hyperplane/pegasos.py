"""Pegasos: a linear SVM by stochastic sub-gradient steps on the primal.

Problem     two classes:   minimise  alpha/2 |w|^2 + mean_i max(0, 1 - y_i w x_i)
            more classes:  minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own)
Algorithm   Figure 1 of the Pegasos paper, one row per step; the multi-class SVM of Crammer and
            Singer in the same steps, Eq. 1-4 and 11 of the AMM paper.
Symbols     lambda = alpha; W = sums / (alpha t), a signed sum of rows (`engine/planes.py`)
Two classes The multi-class SVM keeps its two planes opposite, W_1 = -W_0 = w/2: both get the same
            row with opposite signs. Its loss is 1 - w x and its regulariser alpha/4 |w|^2, so
            twice the alpha makes it Pegasos exactly, and one loop serves both.
Departures  (1) rows follow an order instead of independent draws with replacement;
            (2) the optional projection at the end of a step is left out.
Papers      Shalev-Shwartz, Singer, Srebro, Cotter (2011), doi:10.1007/s10107-010-0420-4;
            Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420
"""

import numpy as np

from polyplane.engine.planes import with_planes
from polyplane.estimator.hinge import HingeClassifier
from polyplane.estimator.parameters import register
from polyplane.estimator.training import Training
from polyplane.estimator.validation import TrainingData

__all__ = ["PegasosClassifier"]


@register
class PegasosClassifier(HingeClassifier):
    """Linear SVM: one plane per class, trained by Pegasos steps.

    With two classes this is Pegasos, and `decision_function` is its w x; with more it is the
    multi-class SVM.
    """

    def _room_per_class(self) -> int:
        return 0

    def _start_classes(self, training: Training, data: TrainingData, first: int) -> None:
        labels = np.arange(first, training.planes.room_left.size)
        training.planes = with_planes(training.planes, labels, np.zeros((labels.size, 1)))

    def _alpha_of_planes(self, training: Training) -> float:
        is_two_class = training.planes.room_left.size == 2
        return 2 * training.alpha if is_two_class else training.alpha
