"""AROW, adaptive regularization of weights: a step is long where little has been seen.

Problem     at each row, with w and Sigma the mean and the covariance of a normal distribution over
            weights, minimise  KL(new, old) + max(0, 1 - y w x)^2 / (2 r) + x Sigma x / (2 r)
Algorithm   Figure 1 with a diagonal Sigma: on a row with m = y w x < 1,
            beta = 1 / (x Sigma x + r),    w += (1 - m) beta y Sigma x,
            and Sigma^-1 += x x / r. For more classes the same step for the pair of the row's class
            and its best rival, each with a Sigma of its own: m = (W[own] - W[rival]) x, and
            x Sigma x is the sum of both.
Symbols     W = sums; timed_sums = Sigma^-1 - 1, which is 0 before the first row and in columns that
            are new, so that the start is w = 0, Sigma = 1
Two classes keep their planes opposite, W_1 = -W_0 = w/2, with one Sigma: half of each plane's
            variance and half of each step make it Figure 1, exactly (`share`).
Silences    A weight of a row divides its r. Of equal rivals the lowest class is the best.
Departures  (1) rows follow an order, in several passes, instead of one endless stream;
            (2) Sigma^-1, not Sigma, is made diagonal: its diagonal is exact.
Paper       Crammer, Kulesza, Dredze (NIPS 2009),
            https://papers.nips.cc/paper/3848-adaptive-regularization-of-weight-vectors
"""

from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import MISTAKES, NO_PLANE, count_up, inverse_length, live_lanes
from polyplane.engine.planes.winners_and_ties import best_scores, plane_of_other, plane_of_own
from polyplane.engine.rows.storage import value_at
from polyplane.engine.steps.visits import opened, scored
from polyplane.engine.targets import weight_of
from polyplane.engine.tiles import at, put
from polyplane.estimator.parameters import at_least, parameter, positive, register
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.model.plane_record import FinishedPlanes
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData

__all__ = ["AROW", "AROWClassifier", "arow_epoch"]


class AROWRule(NamedTuple):
    """Settings of the steps."""

    r: Any
    share: Any  # of a plane in its pair: 1/2 where both planes have one Sigma


@inlined
def variance(page: Any, a: Any, b: Any, planes: Any, plane: Any) -> Any:
    """x Sigma x of the opened row."""
    x = np.float64(page.constant)
    total = x * x / (1.0 + at(planes.timed_sums, plane))
    for j in range(a, b):
        x = np.float64(value_at(page, j))
        place = (at(page.index, j) + 1) * planes.stride + plane
        total += x * x / (1.0 + at(planes.timed_sums, place))
    return total


@inlined
def move(planes: Any, place: Any, x: Any, step: Any, precision: Any) -> Any:
    """One component: w += step Sigma x and Sigma^-1 += precision x x; return what |w|^2 gains."""
    known = 1.0 + np.float64(at(planes.timed_sums, place))
    before = np.float64(at(planes.sums, place))
    after = np.float32(before + step * x / known)
    put(planes.sums, place, after)
    put(planes.timed_sums, place, np.float32(known - 1.0 + precision * x * x))
    return np.float64(after) * np.float64(after) - before * before


@inlined
def update(page: Any, a: Any, b: Any, planes: Any, plane: Any, step: Any, precision: Any) -> Any:
    """The step of one plane, with its norm."""
    gain = move(planes, np.int64(plane), np.float64(page.constant), step, precision)
    for j in range(a, b):
        place = (at(page.index, j) + 1) * planes.stride + plane
        gain += move(planes, place, np.float64(value_at(page, j)), step, precision)
    after = at(planes.squared_norms, plane) + gain
    put(planes.squared_norms, plane, after)
    put(planes.inverse_lengths, plane, inverse_length(after))


@jit
def arow_epoch(rows: Any, targets: Any, order: Any, state: Any, rule: Any, t: Any) -> Any:
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
            if own != NO_PLANE and rival != NO_PLANE:
                r = rule.r / np.float64(weight_of(wanted, i))
                spread = variance(page, a, b, planes, own) + variance(page, a, b, planes, rival)
                step = rule.share * loss / (rule.share * spread + r)  # Fig. 1: alpha
                update(page, a, b, planes, own, step, 1.0 / r)
                update(page, a, b, planes, rival, -step, 1.0 / r)
        t += 1
    return t


def rule(model: PlaneModel, settings: Settings) -> AROWRule:
    """Return what the steps follow."""
    return AROWRule(float(settings.r), 0.5 if model.planes.room_left.size == 2 else 1.0)


def steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order`."""
    n_steps: int = arow_epoch(
        data.rows, model.targets(data), order, model.planes, model.rule, model.n_steps
    )
    return n_steps


def finish(model: PlaneModel) -> FinishedPlanes:
    """Return W, which is the sums."""
    lanes = live_lanes(model.planes)
    sums = model.planes.sums[: model.n_features + 1, lanes]
    return FinishedPlanes(sums, model.planes.owner[lanes], np.ones(lanes.size, np.float32))


AROW = PlaneAlgorithm(steps=steps, rule=rule, finish=finish)


@register
class AROWClassifier(PlaneClassifier):
    """Linear classifier for streams, which learns rare columns fast and well-known ones steadily.

    Each weight has a confidence, which grows with the rows that use its column. One pass is often
    enough, labels may be wrong now and then, and only `r` has to be set.

    See Also
    --------
    PassiveAggressiveClassifier : Steps of one length in all columns.
    PegasosClassifier : A linear SVM.

    Notes
    -----
    With a diagonal covariance S of the weights, the step on a row x with the label y = -1 or 1 and
    the margin m = y w x < 1 is::

        beta = 1 / (x S x + r)
        w <- w + (1 - m) beta y S x,    1/S <- 1/S + x x / r

    The weight of a row divides its r.

    References
    ----------
    .. [1] K. Crammer, A. Kulesza and M. Dredze, "Adaptive regularization of weight vectors",
       NIPS 2009. https://papers.nips.cc/paper/3848-adaptive-regularization-of-weight-vectors

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> from polyplane import AROWClassifier
    >>> model = AROWClassifier(max_iter=1, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """

    algorithm: ClassVar[PlaneAlgorithm] = AROW
    alpha: ClassVar[float] = 1.0  # type: ignore[misc]  # no parameter: nothing shrinks
    average: ClassVar[bool] = True  # type: ignore[misc]  # no parameter: it makes room for Sigma
    r: float = parameter(
        default=1.0,
        allowed=positive(),
        meaning=(
            "How slowly confidence grows, r of the paper: larger is less misled by noise, smaller "
            "follows the rows more closely. It acts beside the squared length of a row."
        ),
    )
    max_iter: int = parameter(default=5, allowed=at_least(1), meaning="Passes over the rows.")

    @property
    def alpha_(self) -> NoReturn:
        """Raise an error, since AROW has no alpha."""
        raise AttributeError("AROWClassifier has no alpha; its parameter is r.")
