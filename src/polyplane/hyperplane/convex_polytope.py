"""CPM, the convex polytope machine: one class lies inside a polytope of K planes.

Problem     f(x) = max_k W_k x, positive outside the polytope; minimise
            alpha/2 |W|^2 + mean of max(0, 1 - W_z x) over positives, z being the row's plane,
            and of sum_k max(0, 1 + W_k x) over negatives                           (section 3)
Algorithms  Alg. 1: a negative pushes every plane that it violates, a positive pulls one plane;
            Alg. 2: ASSIGN chooses that plane so that the entropy of rows over planes stays above
            h, since left alone a few planes would serve all positives
Two sides   f- has the negatives inside, f+ the positives (Alg. 1 with labels swapped): rows are
            positive where f- - f+ > 0. In terms of planes: those of f- speak for class 1, those
            of f+ for class 0, and one pass over the rows trains both.
Symbols     lambda = alpha, K = n_planes, h = entropy * log2(K), T = max_steps;
            W = sums / (alpha t) (`engine/planes/planes.py`)
Tuning      `alpha="auto"` and `entropy="auto"` are section 5.1: one round of coordinate descent
            on held-out rows, first alpha in {1, 10, ... 10^4}/T with h = 0, then h; shares above
            the paper's 0.9 are tried, too, because they were better here.
Silences    (1) planes that start equal stay equal until something tells them apart: with K > 1
            they start as seeded noise, short beside the first row;
            (2) ASSIGN keeps the plane that wins where no plane raises the entropy.
Departures  (1) rows follow an order instead of independent draws;
            (2) planes shrink before the update, not after it, as in Pegasos: with K = 1 and one
            side this is Pegasos;
            (3) pairs of classes that tie in votes are decided by their margins, not by lot.
Paper       Kantchelian, Tschantz, Huang, Bartlett, Joseph, Tygar (NIPS 2014),
            https://papers.nips.cc/paper/2014/hash/b147a61c1d07c1c999560f62add6dbc7-Abstract.html
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.assignment_by_entropy import Tally, tally_of
from polyplane.engine.planes.planes import NO_PLANE, Planes, count_planes, resized, with_planes
from polyplane.engine.rows.storage import length_of_row
from polyplane.engine.steps.polytope import PolytopeRule, new_tally, polytope_epoch
from polyplane.engine.tiles import LANES
from polyplane.estimator.parameters import at_least, closed, either, one_of, parameter, register
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.model.format.checks import need
from polyplane.training.job import NewRows, Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, PlaneJob
from polyplane.training.planes.state import (
    NO_CHOICE,
    NO_ROWS_WON,
    OwnState,
    PlaneModel,
    PlaneTraining,
)
from polyplane.training.rows import TrainingData
from polyplane.training.search.best_value import best_value

__all__ = ["CPM", "CPMClassifier"]

START_LENGTH_SHARE = 0.003  # length of the planes at the start, as a share of the first row's
ENTROPIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
SPEAKS_FOR = {"negative": (1,), "positive": (0,), "both": (0, 1)}  # by the class inside


@dataclass
class Balance(OwnState):
    """Number of rows of each plane, by which ASSIGN keeps their entropy up."""

    tally: Tally | None = None  # until the first row

    def snapshot(self) -> Tally | None:
        return self.tally and Tally(*(array.copy() for array in self.tally))

    def return_to(self, snapshot: Tally | None) -> None:
        self.tally = snapshot

    def check(self, planes: Planes) -> None:
        is_tallied = self.tally is not None
        words = "rows are not counted as the algorithm counts them"
        need(is_tallied == (planes.room_left.size > 0), words)

    @property
    def won(self) -> Array:
        return NO_ROWS_WON if self.tally is None else self.tally.of_plane

    def settle(self, won: Array, owner: Array) -> None:
        self.tally = tally_of(won, owner)


def rule(model: PlaneModel, settings: Settings) -> PolytopeRule:
    """Return what the steps follow: h is `entropy` log2(K)."""
    return PolytopeRule(model.alpha, _entropy_in_bits(settings))


def _entropy_in_bits(settings: Settings) -> float:
    return float(settings.entropy) * math.log2(settings.n_planes)


def steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order` (Alg. 1 and 2)."""
    n_steps: int = polytope_epoch(
        data.rows,
        model.targets(data),
        order,
        model.planes,
        model.own.tally,
        model.rule,
        chosen,
        model.n_steps,
    )
    return n_steps


def choices(settings: Settings, n_rows: int) -> Array:
    """Return the plane of each row, where ASSIGN asks for it."""
    if _entropy_in_bits(settings) == 0:
        return NO_CHOICE
    return np.full(n_rows, NO_PLANE, np.int32)


def start(
    training: PlaneTraining, model: PlaneModel, data: TrainingData, settings: Settings, first: int
) -> None:
    """Start with seeded noise (silence 1)."""
    length = START_LENGTH_SHARE * (length_of_row(data.rows, model.first_row(data)) or 1.0)
    for label in SPEAKS_FOR[settings.sides]:
        planes = model.start_of(settings.n_planes, label, length)
        model.planes = with_planes(model.planes, np.full(len(planes), label), planes)
    n_lanes = -(-count_planes(model.planes) // LANES) * LANES  # no room for births: none come
    model.planes = resized(model.planes, len(model.planes.sums), n_lanes)
    model.own = Balance(new_tally(n_lanes))


def first_planes(settings: Settings, n_classes: int) -> int:
    """Return how many planes a model starts with."""
    return int(settings.n_planes * len(SPEAKS_FOR[settings.sides]))


def search(job: PlaneJob, rows: NewRows) -> dict[str, Any]:
    """Find alpha first, with h = 0 where that is open, too; then h (section 5.1)."""
    settings, found, whole = job.settings, dict[str, Any](), {"max_steps": None}
    if settings.is_open("alpha"):
        entropy = 0.0 if settings.is_open("entropy") else settings.entropy
        is_of_pairs = settings.multi_class == "ovo"
        share = 2 / max(2, rows.labels.size) if is_of_pairs else 1  # of the rows, in a pair
        n_steps = settings.max_steps or share * settings.max_iter * rows.data.labels.size
        alphas = [10.0**k / n_steps for k in range(5)]
        found["alpha"] = best_value(job, rows, "alpha", alphas, whole | {"entropy": entropy})
    if settings.is_open("entropy"):
        fixed = whole | {"alpha": found.get("alpha", settings.alpha)}
        found["entropy"] = best_value(job, rows, "entropy", ENTROPIES, fixed)
    return found


CPM = PlaneAlgorithm(
    steps=steps,
    rule=rule,
    search=search,
    searched=("alpha", "entropy"),
    start=start,
    first_planes=first_planes,
    choices=choices,
    own=Balance,
    empty_score=0.0,  # the class inside the only polytope
)


@register
class CPMClassifier(PlaneClassifier):
    """Convex polytope machine, which puts a polytope around one class or around each of two.

    `classes_[0]` is the negative class, `classes_[1]` the positive one; more than two classes are
    taken in pairs or each against the rest.

    Attributes
    ----------
    entropy_ : float

    See Also
    --------
    AMMClassifier : All classes in one model, with as many planes as the data need.
    MMClassifier : All classes in one model, with a fixed number of planes.

    Notes
    -----
    The score of one polytope of K = `n_planes` planes is positive outside it, and the problem is::

        f(x) = max_k w_k x
        minimise  alpha/2 |W|^2 + mean_i { max(0, 1 - w_z(i) x_i)       for rows outside
                                         { sum_k max(0, 1 + w_k x_i)   for rows inside

    z(i) is the plane of row i, chosen so that the entropy of rows over planes stays above `entropy`
    (Algorithms 1 and 2 of [1]_). With ``sides="both"`` the decision is by the difference of the
    scores of the two polytopes.

    References
    ----------
    .. [1] A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar,
       "Large-margin convex polytope machine", NIPS 2014.
       https://papers.nips.cc/paper/2014/hash/b147a61c1d07c1c999560f62add6dbc7-Abstract.html

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import CPMClassifier
    >>> model = CPMClassifier(n_planes=8, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.8
    True
    >>> model.n_planes_
    16
    """

    algorithm: ClassVar[PlaneAlgorithm] = CPM

    n_planes: int = parameter(
        default=16,
        allowed=at_least(1),
        meaning="Planes of each polytope, K; with 1 and one side this is Pegasos.",
    )
    sides: str = parameter(
        default="both",
        allowed=one_of("both", "negative", "positive"),
        meaning="The class inside the polytope; 'both' trains a polytope around each.",
    )
    entropy: float | str = parameter(
        default=0.9,
        allowed=either(closed(0, 1), one_of("auto")),
        meaning=(
            "How evenly rows must be spread over planes: h as a share of log2(n_planes). 'auto' "
            "tries shares on held-out rows."
        ),
    )
    max_steps: int | None = parameter(
        default=None,
        allowed=either(one_of(None), at_least(1)),
        meaning="Steps of each model, T of the paper, instead of max_iter passes.",
    )
    multi_class: str = parameter(
        default="ovo",
        allowed=one_of("ovo", "ovr"),
        meaning="More than two classes by one model of each pair, or of each against the rest.",
    )

    @property
    def entropy_(self) -> float:
        """Entropy in use: the share given, or the one found by entropy='auto'."""
        return float(self._setting_in_use("entropy"))
