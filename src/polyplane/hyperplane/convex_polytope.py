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
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.assignment_by_entropy import Tally
from polyplane.engine.planes.planes import NO_PLANE, Planes, count_planes, resized, with_planes
from polyplane.engine.rows.storage import length_of_row
from polyplane.engine.steps.polytope import PolytopeRule, new_tally, polytope_epoch
from polyplane.engine.tiles import LANES
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.parameters import (
    at_least,
    closed,
    either,
    one_of,
    parameter,
    register,
)
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import NO_CHOICE, OwnState, PlaneModel, PlaneTraining
from polyplane.model.format.checks import need

__all__ = ["CPMClassifier"]

NOISE = 0.003  # length of the planes at the start, as a share of the first row's
ENTROPIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
SPEAKS_FOR = {"negative": (1,), "positive": (0,), "both": (0, 1)}  # by the class inside


@dataclass
class Balance(OwnState):
    """How rows are spread over planes, so that ASSIGN can keep their entropy up."""

    tally: Tally | None = None  # until the first row

    def snapshot(self) -> Tally | None:
        return self.tally and Tally(*(array.copy() for array in self.tally))

    def return_to(self, snapshot: Tally | None) -> None:
        self.tally = snapshot

    def check(self, planes: Planes) -> None:
        is_tallied = self.tally is not None
        words = "rows are not counted as the machine counts them"
        need(is_tallied == (planes.room_left.size > 0), words)


@register
class CPMClassifier(HyperplaneClassifier):
    """Convex polytope machine: a class inside a polytope, or both classes in one each.

    `classes_[0]` is the negative class, `classes_[1]` the positive one; more than two classes are
    taken in pairs or each against the rest.
    """

    FOUND_ON_ALL_ROWS = "alpha", "entropy"

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

    def _rule(self, model: PlaneModel) -> None:
        return None  # its steps follow one that is made anew for each call of the loop

    def _least_planes(self, n_codes: int) -> int:
        return self.n_planes * len(SPEAKS_FOR[self.sides])

    def _empty_score(self) -> float:
        return 0.0  # the class inside the only polytope

    def _own_of_model(self, training: PlaneTraining) -> Balance:
        return Balance()

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        length = NOISE * (length_of_row(data.rows, model.first_row(data)) or 1.0)
        for label in SPEAKS_FOR[self.sides]:
            start = model.start_of(self.n_planes, label, length)
            model.planes = with_planes(model.planes, np.full(len(start), label), start)
        n_lanes = -(-count_planes(model.planes) // LANES) * LANES  # no room for births: none come
        model.planes = resized(model.planes, len(model.planes.sums), n_lanes)
        model.own.tally = new_tally(n_lanes)

    def _entropy_in_bits(self) -> float:
        return float(self._setting("entropy")) * math.log2(self.n_planes)

    def _first_choice(self, data: TrainingData) -> Array:
        if self._entropy_in_bits() == 0:
            return NO_CHOICE
        return np.full(data.labels.size, NO_PLANE, np.int32)

    def _steps(self, model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
        n_steps: int = polytope_epoch(
            data.rows,
            model.targets(data),
            order,
            model.planes,
            model.own.tally,
            PolytopeRule(model.alpha, self._entropy_in_bits()),
            chosen,
            model.n_steps,
        )
        return n_steps

    def _count_passes(self, n_rows: int) -> int:
        if self.max_steps is None:
            return self.max_iter
        return math.ceil(self.max_steps / n_rows) if n_rows else 0

    def _part_of_pass(self, order: Array, n_done: int) -> Array:
        if self.max_steps is None:
            return order
        return order[: max(0, self.max_steps - n_done * order.size)]

    def _better_settings(
        self, data: TrainingData, labels: Array, seed: int, n_to_come: int | None = None
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        whole = {"max_steps": None}
        if self.alpha == "auto":
            entropy = 0.0 if self.entropy == "auto" else self.entropy
            share = 2 / max(2, labels.size) if self.multi_class == "ovo" else 1  # of a pair's rows
            n_steps = self.max_steps or share * self.max_iter * data.labels.size
            alphas = [10.0**k / n_steps for k in range(5)]
            fixed = whole | {"entropy": entropy}
            found["alpha"] = self._best_of("alpha", alphas, fixed, data, labels, seed)
        if self.entropy == "auto":
            fixed = whole | {"alpha": found.get("alpha", self.alpha)}
            found["entropy"] = self._best_of("entropy", ENTROPIES, fixed, data, labels, seed)
        return found

    @property
    def entropy_(self) -> float:
        """The entropy in use: the share given, or the one found by entropy='auto'."""
        return float(self._setting("entropy"))
