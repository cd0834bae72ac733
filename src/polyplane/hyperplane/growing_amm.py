"""GAMM, the growing adaptive multi-hyperplane machine: AMM whose planes also multiply by cloning.

Problem     that of AMM (`amm.py`). AMM gives birth to a plane only where all planes of a class
            score below zero, which stops early: on a 4 x 4 checkerboard it fails.
Algorithm   AMM online; at an update whose own plane is not the zero plane, with probability p
            that plane is cloned first: the copy stays, the original moves on. After each cloning
            p <- beta p. Pruning as in AMM takes away the clones that were of no use.
Symbols     lambda = alpha, p = clone_probability, beta = clone_decay, c = prune_budget
Silences    (1) the copy is made before the update;
            (2) p is one number for all classes;
            (3) the average of a clone (`average=True`) shares the past of its original.
Departures  as in AMM: rows follow an order, rivals' zero planes do not become planes.
Paper       Djuric, Wang, Vucetic (ICML 2020), PMLR 119:2567-2576,
            https://proceedings.mlr.press/v119/djuric20a.html
"""

from typing import ClassVar

from polyplane.arrays import Array
from polyplane.engine.order import coins_at
from polyplane.engine.planes.pruning import prune
from polyplane.engine.steps.hinge import HingeRule
from polyplane.estimator.parameters import at_least, closed, parameter, register
from polyplane.estimator.plane_classifier import (
    PlaneClassifier,
    grown_rivals,
    interval_of_pruning,
    most_planes,
)
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, nothing, steps_with_coins
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData
from polyplane.training.search.best_value import best_alpha

__all__ = ["GAMM", "GAMMClassifier"]


def rule(model: PlaneModel, settings: Settings) -> HingeRule:
    """Return what the steps follow: AMM, and clones."""
    return HingeRule(
        model.alpha,
        settings.grow_rivals,
        clone_probability=float(settings.clone_probability),
        clone_decay=float(settings.clone_decay),
    )


def steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order`, with a coin for each."""
    coins: Array = coins_at(model.seed, model.n_steps, order.size)
    return steps_with_coins(model, data, order, chosen, coins)


def prune_planes(model: PlaneModel, settings: Settings) -> None:
    """Drop planes that are of little use, as AMM does."""
    prune(model.planes, settings.prune_budget)


GAMM = PlaneAlgorithm(
    steps=steps,
    rule=rule,
    between=prune_planes,
    search=best_alpha,
    searched=("alpha",),
    start=nothing,  # a class starts with its zero plane, which is no plane yet
)


@register
class GAMMClassifier(PlaneClassifier):
    """Growing adaptive multi-hyperplane machine, which also adds planes by cloning.

    The adaptive machine adds a plane only where all planes of a class score below zero, which can
    stop too early. Here an update clones its plane with a probability that falls with each clone,
    and pruning removes the clones that are of no use.

    See Also
    --------
    AMMClassifier : The same algorithm without clones.
    MMClassifier : A fixed number of planes per class.

    Notes
    -----
    The model and the problem are those of `AMMClassifier`::

        g_c(x) = max_j w_cj x
        minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_{c != y_i} g_c(x_i) - g_{y_i}(x_i))

    The probability of a clone is p at the start and ``p * clone_decay`` after each clone [1]_.

    References
    ----------
    .. [1] N. Djuric, Z. Wang and S. Vucetic, "Growing adaptive multi-hyperplane machines",
       ICML 2020, PMLR 119, 2567-2576. https://proceedings.mlr.press/v119/djuric20a.html

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import GAMMClassifier
    >>> model = GAMMClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = GAMM

    prune_interval: int = interval_of_pruning()
    max_planes: int | None = most_planes()
    grow_rivals: bool = grown_rivals()
    clone_probability: float = parameter(
        default=0.2,
        allowed=closed(0, 1),
        meaning="Chance that an update clones its plane, at the start; with 0 this is AMM.",
    )
    clone_decay: float = parameter(
        default=0.99,
        allowed=closed(0, 1),
        meaning="Factor of that chance after each cloning.",
    )
    prune_budget: float = parameter(
        default=50.0,
        allowed=at_least(0, whole=False),
        meaning="Budget of one pruning, c of Theorem 3 of the AMM paper.",
    )
