"""MM, the multi-hyperplane machine: a fixed number of planes per class.

Problem     minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own),     (Eq. 3-6)
            a class's score being the maximum over its planes
Algorithm   the steps of Eq. 11-13 with the best own plane at each step (Eq. 10)
Symbols     lambda = alpha; W = sums / (alpha t) (`engine/planes/planes.py`)
Start       Planes of one class that start equal would stay equal but for the rule that breaks
            ties, so with two or more planes each starts as a random direction as long as the
            first row: one seeded draw per class, whenever the class is met. With one plane per
            class they start at zero, and this is the multi-class SVM. With init="kmeans" or
            "subset" planes start as prototypes of their class
            (`training/soft_planes/prototypes.py`), which are trusted as if they had come from one
            pass, Theta = alpha n / margin times them, and at least so much that one step does not
            overthrow them: then alpha n is replaced by the squared length of a prototype.
Departures  (1) online steps instead of the SMO solver of Aiolli and Sperduti;
            (2) their random first assignment of rows is replaced by the random start.
Papers      Aiolli, Sperduti (JMLR 6, 2005, 817-850); Wang, Djuric, Crammer, Vucetic (KDD 2011),
            doi:10.1145/2020408.2020420
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyplane.engine.planes.planes import with_planes
from polyplane.engine.rows.storage import length_of_row
from polyplane.estimator.parameters import at_least, one_of, parameter, register
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm
from polyplane.training.planes.state import OwnState, PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData
from polyplane.training.search.best_value import best_alpha
from polyplane.training.soft_planes.prototypes import margin_of, prototypes_of

__all__ = ["MM", "MMClassifier"]


@dataclass
class RandomStart(OwnState):
    """Length of planes that start in random directions."""

    start_length: float = 1.0  # of the first row


def start(
    training: PlaneTraining, model: PlaneModel, data: TrainingData, settings: Settings, first: int
) -> None:
    """Give classes their planes: prototypes of all, or random directions, or one that is zero."""
    n_planes = settings.n_planes
    if first == 0 and settings.init != "random" and n_planes > 1:
        _start_from_prototypes(model, data, settings)
        return
    if first == 0 and n_planes > 1:
        model.own.start_length = length_of_row(data.rows, model.first_row(data)) or 1.0
    for label in range(first, model.planes.room_left.size):
        planes = model.start_of(n_planes, label, model.own.start_length)
        model.planes = with_planes(model.planes, np.full(len(planes), label), planes)


def _start_from_prototypes(model: PlaneModel, data: TrainingData, settings: Settings) -> None:
    members = np.flatnonzero(model.visits(data))
    codes = np.arange(model.planes.room_left.size)
    made = prototypes_of(model, data, members, codes, settings.n_planes, settings.init)
    squared_length = float(np.square(made.planes[:, 1:]).sum(axis=1).mean())
    trusted = max(model.alpha * members.size, squared_length)
    scale = trusted / margin_of(model, data, members, made)
    model.planes = with_planes(model.planes, made.owner, made.planes * np.float32(scale))


def first_planes(settings: Settings, n_classes: int) -> int:
    """Return how many planes a model starts with."""
    return int(settings.n_planes * n_classes)


def starts_from_rows(settings: Settings) -> bool:
    """Return True for prototypes."""
    return bool(settings.init != "random")


MM = PlaneAlgorithm(
    search=best_alpha,
    searched=("alpha",),
    start=start,
    first_planes=first_planes,
    starts_from_rows=starts_from_rows,
    own=RandomStart,
)


@register
class MMClassifier(PlaneClassifier):
    """Multi-hyperplane machine with the same fixed number of planes for every class.

    A class is the maximum of its planes; with one plane per class this is the multi-class SVM.

    See Also
    --------
    AMMClassifier : Finds the number of planes of each class.
    PegasosClassifier : One plane per class.

    Notes
    -----
    The score of a class c on a row x, and the problem that training approximates, are::

        g_c(x) = max_{j <= n_planes} w_cj x
        minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_{c != y_i} g_c(x_i) - g_{y_i}(x_i))

    Training makes stochastic steps (Equations 11 to 13 of [1]_) instead of the solver of [2]_.

    References
    ----------
    .. [1] Z. Wang, N. Djuric, K. Crammer and S. Vucetic, "Trading representability for
       scalability: adaptive multi-hyperplane machine for nonlinear classification", KDD 2011.
       doi:10.1145/2020408.2020420
    .. [2] F. Aiolli and A. Sperduti, "Multiclass classification with multi-prototype support vector
       machines", JMLR 6, 2005, 817-850. https://jmlr.org/papers/v6/aiolli05a.html

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import MMClassifier
    >>> model = MMClassifier(n_planes=6, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> model.n_planes_
    12
    """

    algorithm: ClassVar[PlaneAlgorithm] = MM

    n_planes: int = parameter(
        default=4,
        allowed=at_least(1),
        meaning="Planes per class; with 1 this is the multi-class SVM.",
    )
    init: str = parameter(
        default="random",
        allowed=one_of("random", "kmeans", "subset"),
        meaning=(
            "How planes start: in random directions, or as prototypes of their class, which are "
            "centres of k-means or rows drawn at random. Prototypes need `fit`."
        ),
    )
