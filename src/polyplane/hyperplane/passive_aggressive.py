"""Passive-Aggressive: the smallest change of the planes that gives the row at hand its margin.

Problem     at each row, with loss l(W) = max(0, 1 + max_rival - own) and V the planes before it,
            PA-I:   minimise  1/2 |W - V|^2 + C xi    subject to  l(W) <= xi, xi >= 0  (Eq. 6)
            PA-II:  minimise  1/2 |W - V|^2 + C xi^2  subject to  l(W) <= xi           (Eq. 7)
Algorithm   Figure 1 for two classes; for more the same step for the pair of the row's class and
            its best rival, sections 7 and 8 with one label a row and all costs 1:
            W[own] += tau x, W[rival] -= tau x, where the changed vector has |x|^2 twice, and
            PA-I:   tau = min(C, l / (2 |x|^2))
            PA-II:  tau = l / (2 |x|^2 + 1 / (2 C))
Symbols     both are tau = min(most, l / (2 |x|^2 + slack)): `most` is C or infinity, `slack` is 0
            or 1 / (2 C). W = sums: nothing shrinks, and the scale of the planes is 1
Two classes keep their planes opposite, W_1 = -W_0 = w/2, and l = max(0, 1 - y w x). A step moves w
            by 2 tau y x, so half the C makes it the step of Figure 1, exactly:
            2 min(C/2, l / (2 |x|^2)) = min(C, l / |x|^2), and 2 l / (2 |x|^2 + 1/C) likewise.
Silences    A weight of a row multiplies its C. A row of zeros changes nothing. Of equal rivals the
            lowest class is the best.
Departures  (1) rows follow an order, in several passes, instead of one endless stream;
            (2) planes are averaged over all steps, step t weighing t, unless `average` is False;
            (3) plain PA, which is both variants with C = infinity, is left out: a large C comes
            close to it.
Paper       Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (JMLR 7, 2006, 551-585),
            https://jmlr.org/papers/v7/crammer06a.html
"""

import math
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import MISTAKES, NO_PLANE, count_up
from polyplane.engine.planes.winners_and_ties import best_scores, plane_of_other, plane_of_own
from polyplane.engine.rows.storage import squared_norm
from polyplane.engine.steps.hinge import update
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.estimator.parameters import one_of, parameter, positive, register
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.model.plane_record import FinishedPlanes
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, hinge_planes
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData

__all__ = ["PASSIVE_AGGRESSIVE", "PassiveAggressiveClassifier", "passive_aggressive_epoch"]


class StepRule(NamedTuple):
    """Limits that C puts on steps."""

    most: Any
    slack: Any


@inlined
def step_size(rule: Any, loss: Any, squared_length: Any, weight: Any) -> Any:
    """tau, of Eq. 8 for two classes; 0 where the row is zero and cannot change anything."""
    softened = 2.0 * squared_length + rule.slack / weight
    return min(rule.most * weight, loss / softened) if softened > 0 else 0.0


@jit
def passive_aggressive_epoch(
    rows: Any, targets: Any, order: Any, state: Any, rule: Any, t: Any
) -> Any:
    """Visit rows in `order`; change `state` in place; return the new count of visited rows."""
    page, wanted, planes, tiles = opened(rows, targets, state)
    for k in range(order.size):  # departure 1
        i, label, a, b = scored(page, wanted, planes, tiles, order, k)
        best, rival_score = best_scores(planes.scores, planes.owner, tiles, label)
        if rival_score >= best:
            count_up(planes, MISTAKES)
        loss = 1.0 - (np.float64(best) - np.float64(rival_score))
        if loss > 0:
            own = plane_of_own(planes.scores, planes.owner, tiles, label, best)
            rival = plane_of_other(planes.scores, planes.owner, tiles, label, rival_score)
            squared_length = np.float64(squared_norm(page, a, b))
            weight = np.float64(weight_of(wanted, i))
            tau = step_size(rule, loss, squared_length, weight)  # Fig. 1
            if own != NO_PLANE:  # which a score that overflowed to NaN would leave
                update(page, a, b, planes, own, rival, np.float32(tau), t)
        t += 1
    return t


def rule(model: PlaneModel, settings: Settings) -> StepRule:
    """Return what holds steps back: half the C for two classes, which keep opposite planes."""
    C = float(settings.C) / 2 if model.planes.room_left.size == 2 else float(settings.C)
    return StepRule(C, 0.0) if settings.variant == "PA-I" else StepRule(math.inf, 1 / (2 * C))


def steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order`."""
    n_steps: int = passive_aggressive_epoch(
        data.rows, model.targets(data), order, model.planes, model.rule, model.n_steps
    )
    return n_steps


def finish(model: PlaneModel) -> FinishedPlanes:
    """Return W, which is the sums: alpha t = 1."""
    return hinge_planes(model, 1.0 / max(model.n_steps, 1))


PASSIVE_AGGRESSIVE = PlaneAlgorithm(steps=steps, rule=rule, finish=finish)


@register
class PassiveAggressiveClassifier(PlaneClassifier):
    """Linear classifier whose steps are just as long as the margin of the row at hand asks for.

    With two classes this is the binary algorithm, and `decision_function` is its w x; with more,
    a step raises the plane of the row's class and lowers that of its best rival. It suits streams
    that drift, since the length of a step does not fall.

    See Also
    --------
    AROWClassifier : Steps that are long in rare columns.
    PegasosClassifier : A linear SVM.

    Notes
    -----
    The step on a row x with the label y = -1 or 1 is::

        w <- w + tau y x,    loss = max(0, 1 - y w x)
        PA-I:   tau = min(C, loss / |x|^2)
        PA-II:  tau = loss / (|x|^2 + 1 / (2 C))

    Planes are averaged over all steps unless ``average=False``; the weight of a row multiplies
    its C.

    References
    ----------
    .. [1] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online
       passive-aggressive algorithms", JMLR 7, 2006, 551-585.
       https://jmlr.org/papers/v7/crammer06a.html

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> from polyplane import PassiveAggressiveClassifier
    >>> model = PassiveAggressiveClassifier(C=0.01, random_state=0)
    >>> for first in range(0, 400, 100):
    ...     model = model.partial_fit(X[first : first + 100], y[first : first + 100])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = PASSIVE_AGGRESSIVE
    alpha: ClassVar[float] = 1.0  # type: ignore[misc]  # no parameter: nothing is regularised
    variant: str = parameter(
        default="PA-II",
        allowed=one_of("PA-I", "PA-II"),
        meaning=(
            "How C holds steps back: 'PA-I' cuts them at C, which bounds what one wrong label can "
            "do; 'PA-II' shortens all of them, and weights of rows and classes always count."
        ),
    )
    C: float = parameter(
        default=1.0,
        allowed=positive(),
        meaning=(
            "Aggressiveness: larger fits the row at hand more closely, smaller learns more slowly "
            "and is less misled by noise. It acts beside the squared length of a row: try 0.001 "
            "to 1 for rows of length 1."
        ),
    )

    @property
    def alpha_(self) -> NoReturn:
        """Raise an error, since Passive-Aggressive has no alpha."""
        raise AttributeError("PassiveAggressiveClassifier has no alpha; its parameter is C.")
