"""AMM, the adaptive multi-hyperplane machine: planes are born and pruned as the data ask.

Problem     minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own),     (Eq. 3-6)
            every class having as many planes as it needs and one zero plane in reserve
Algorithms  mode="online": Alg. 2, the best own plane is chosen anew at each step (Eq. 10);
            mode="batch": Alg. 1, one online scan sets z, the plane of each row; then passes with
            z fixed, each followed by a reassignment of z (Eq. 9), until z no longer changes;
            both prune every `prune_interval` steps (Eq. 14, Thm 3).
Symbols     lambda = alpha, k = prune_interval, c = prune_budget; W = sums / (alpha t), so that
            the threshold c/((t-1) lambda) of Thm 3 on |W| is c on the sums, whatever t is
Silences    (1) equal scores go to the oldest plane, the zero plane being the youngest;
            (2) the cumulative norm of pruned planes adds up squares;
            (3) a row whose plane was pruned falls back to the zero plane;
            (4) planes and t run on from the scan into the passes of Alg. 1;
            (5) the scan ends with a choice of z by the planes it has reached: choices made on
            the way, by planes that hardly exist yet, led to three times the planes on a9a.
Departures  (1) rows follow an order instead of independent draws;
            (2) a rival's zero plane wins its comparisons, but becomes a plane of its own only
            with grow_rivals=True, which is the paper's rule: at large alpha that rule makes
            hundreds of planes that no row ever needs, for the same error;
            (3) max_planes closes the zero plane of a class that has so many.
Paper       Wang, Djuric, Crammer, Vucetic (KDD 2011), doi:10.1145/2020408.2020420
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from polyplane.arrays import Array
from polyplane.engine.planes.pruning import prune
from polyplane.engine.steps.hinge import UNASSIGNED, HingeRule, reassign
from polyplane.estimator.parameters import at_least, one_of, parameter, register
from polyplane.estimator.plane_classifier import (
    PlaneClassifier,
    grown_rivals,
    interval_of_pruning,
    most_planes,
)
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, nothing
from polyplane.training.planes.state import NO_CHOICE, Course, PlaneModel
from polyplane.training.rows import TrainingData
from polyplane.training.search.best_value import best_alpha

__all__ = ["AMM", "AMMClassifier"]


def rule(model: PlaneModel, settings: Settings) -> HingeRule:
    """Return what the steps follow (Eq. 11-13)."""
    return HingeRule(model.alpha, bool(settings.grow_rivals))


def prune_planes(model: PlaneModel, settings: Settings) -> None:
    """Drop planes that are of little use (Eq. 14, Thm 3)."""
    prune(model.planes, settings.prune_budget)


def choices(settings: Settings, n_rows: int) -> Array:
    """Return z of Alg. 1, whose first pass is the scan."""
    if settings.mode == "online":
        return NO_CHOICE
    return np.full(n_rows, UNASSIGNED, np.int32)


def end_pass(
    model: PlaneModel, data: TrainingData, settings: Settings, course: Course, order: Array
) -> bool:
    """Choose z anew (Alg. 1); the end is reached when it stays."""
    if settings.mode == "online":
        return False
    n_changed = reassign(data.rows, model.targets(data), order, model.planes, course.chosen)
    return bool(n_changed == 0 and course.n_passes > 1)  # at first z is only set


AMM = PlaneAlgorithm(
    rule=rule,
    between=prune_planes,
    search=best_alpha,
    searched=("alpha",),
    start=nothing,  # a class starts with its zero plane, which is no plane yet
    choices=choices,
    end_pass=end_pass,
)


def _learns_online(estimator: Any) -> bool:
    if estimator.mode != "online":
        raise AttributeError('AMMClassifier(mode="batch") has no partial_fit: use mode="online".')
    return True


@register
class AMMClassifier(PlaneClassifier):
    """Adaptive multi-hyperplane machine, which finds the number of planes of each class by itself.

    A class is the maximum of its planes. Training adds a plane where all planes of the row's class
    score below zero, and prunes small planes every `prune_interval` steps.

    See Also
    --------
    GAMMClassifier : Adds planes by cloning as well.
    SAMMClassifier : Removes planes by a penalty instead of pruning.
    MMClassifier : A fixed number of planes per class.
    PolyplaneClassifier : The estimator to try first, with probabilities.

    Notes
    -----
    The score of a class c on a row x, and the problem that training approximates, are::

        g_c(x) = max_j w_cj x
        minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_{c != y_i} g_c(x_i) - g_{y_i}(x_i))

    With ``mode="online"`` a step follows Algorithm 2 of [1]_, with ``mode="batch"`` Algorithm 1.
    Rows are visited in a random order instead of independent draws.

    References
    ----------
    .. [1] Z. Wang, N. Djuric, K. Crammer and S. Vucetic, "Trading representability for
       scalability: adaptive multi-hyperplane machine for nonlinear classification", KDD 2011.
       doi:10.1145/2020408.2020420

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import AMMClassifier
    >>> model = AMMClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> model.planes_.shape == (model.n_planes_, 2)
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = AMM

    prune_interval: int = interval_of_pruning()
    max_planes: int | None = most_planes()
    grow_rivals: bool = grown_rivals()
    mode: str = parameter(
        default="online",
        allowed=one_of("online", "batch"),
        meaning=(
            "'online' chooses the plane of a row at each visit; 'batch' keeps it fixed during a "
            "pass."
        ),
    )
    prune_budget: float = parameter(
        default=10.0,
        allowed=at_least(0, whole=False),
        meaning=(
            "Budget of one pruning, c of Theorem 3: about the number of net updates that saves a "
            "plane, for rows of length 1."
        ),
    )

    @available_if(_learns_online)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "AMMClassifier":
        """Visit the rows of X once, in the order given; new classes and columns are welcome.

        This is a method of `mode="online"` only.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.
        y : array-like of shape (n_rows,)
            Labels, of classes that may be new.
        classes : array-like of shape (n_classes,), optional
            Labels of classes that are to come. Announcing them is optional.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default.

        Returns
        -------
        Self
            The estimator.
        """
        return super().partial_fit(X, y, classes, sample_weight)
