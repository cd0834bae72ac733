"""Decomposition of many classes into problems of a few classes each.

joint   one model of all classes; a class scores what its group of planes scores
ovr     for each class a model of it against the rest; a class scores its lead over the rest
ovo     for each pair of classes a model; how pairs decide is the rule `combine`

What leads of problems make of scores is in `decision_rules.py`.

With two classes all three are the same model. Classes count in the order in which training met
them, and problems in an order in which later classes only append.
"""

import math
from typing import NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.targets import LEFT_OUT
from polyplane.model.many_classes.decision_rules import rule_of

__all__ = ["REST", "Decomposition", "Problem"]

REST = -1  # the side of a problem that stands for no class of its own


class Problem(NamedTuple):
    """Classes that one model tells apart, by its codes; nothing if it is all of them."""

    classes: tuple[int, ...] = ()

    def codes(self, n_classes: int) -> Array:
        """Return the model's code of each class."""
        if not self.classes:
            return np.arange(n_classes, dtype=np.int32)
        others = 0 if REST in self.classes else LEFT_OUT
        codes = np.full(n_classes, others, np.int32)
        for code, label in enumerate(self.classes):
            if 0 <= label < n_classes:
                codes[label] = code
        return codes

    def n_codes(self, n_classes: int) -> int:
        """Return the number of codes: always two at least, the second may not be met yet."""
        return len(self.classes) or max(2, n_classes)


class Decomposition(NamedTuple):
    """The problems that a classifier consists of, and how it decides."""

    kind: str  # "joint", "ovr" or "ovo"
    combine: str  # "margin", "vote" or "soft"
    ranks: Array  # of each class, in the order in which training met them, among sorted labels

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return len(self.ranks)

    @property
    def is_joint(self) -> bool:
        """Return True if class scores are those of one model."""
        return self.kind == "joint" or self.n_classes <= 2

    def problems(self) -> list[Problem]:
        """One for each model; those of fewer classes come first."""
        return [self.problem_at(place) for place in range(self.n_problems())]

    def n_problems(self) -> int:
        """Return the number of problems."""
        n = max(2, self.n_classes)
        return {"joint": 1, "ovo": n * (n - 1) // 2, "ovr": n if n > 2 else 1}[self.kind]

    def problem_at(self, place: int) -> Problem:
        """One of them, without making a list of all: pairs are many."""
        if self.kind == "joint":
            return Problem()
        if self.kind == "ovo":
            b = (1 + math.isqrt(1 + 8 * place)) // 2  # b (b - 1) / 2 pairs come before (0, b)
            return Problem((place - b * (b - 1) // 2, b))
        return Problem((REST, 1 - place if place < 2 else place))

    def n_groups(self) -> int:
        """Groups of planes that speak with one voice: a problem has one for each of its codes."""
        return self.n_classes if self.is_joint else 2 * self.n_problems()

    def group_of(self, place: int, code: Array) -> Array:
        """Group of the planes of a code in the problem at `place`."""
        group: Array = self.ranks[code] if self.is_joint else 2 * place + code
        return group

    def class_of(self, place: int, code: Array) -> tuple[Array, Array]:
        """Rank of the class of a code's planes, and -1 where they speak against it, else 1."""
        if self.is_joint:
            return self.ranks[code], np.ones_like(code)
        classes = np.array(self.problem_at(place).classes)
        is_rest = classes == REST
        of_code = self.ranks[np.where(is_rest, classes.max(), classes)]
        return of_code[code], np.where(is_rest, -1, 1)[code]

    def class_scores(self, group_scores: Array) -> Array:
        """Scores of groups, by row of X, made scores of classes by rank."""
        if self.is_joint:
            return group_scores
        return self._of_leads(group_scores[:, 1::2] - group_scores[:, ::2])

    def scores_of_leads(self, leads: Array) -> Array:
        """Return scores of classes of the leads of second sides, by row of X."""
        if not self.is_joint:
            return self._of_leads(leads)
        scores = np.zeros((len(leads), self.n_classes), leads.dtype)
        scores[:, self.ranks[1:2]] = leads[:, : self.n_classes - 1]
        return scores

    def _of_leads(self, by_row: Array) -> Array:
        rule = rule_of(self.kind, self.combine)
        return rule.scores(by_row.T, self._added_up, self.n_classes)

    def _added_up(self, for_second: Array, for_first: Array | None) -> Array:
        """Return scores of classes, added up of what problems give to their sides, by rows.

        In the order of the problems: a matrix product, or a sum in another order, would round a
        row differently in other company. Pairs (0, b), (1, b), ... stand side by side, and only
        with them does class b come in, so that one running sum serves them.
        """
        scores: Array = np.zeros((self.n_classes, for_second.shape[1]), for_second.dtype)
        if for_first is None:  # the rest, which is no class
            seconds = [problem.classes[1] for problem in self.problems()]
            scores[self.ranks[seconds]] += for_second
            return scores.T.astype(np.float32, copy=False)
        first = 0
        for b in range(1, self.n_classes):
            pairs = slice(first, first + b)
            scores[self.ranks[b]] += np.cumsum(for_second[pairs], axis=0)[-1]
            scores[self.ranks[:b]] += for_first[pairs]
            first += b
        return scores.T.astype(np.float32, copy=False)
