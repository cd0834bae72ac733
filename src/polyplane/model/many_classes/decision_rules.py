"""Rules that make scores of classes of leads of problems: one entry each, in four languages.

ovr     for each class a lead over the rest: that is its score
margin  each pair's lead, cut to [-1, 1], is added to one class and taken from the other
vote    each pair gives one vote; margins only decide between classes with equally many
soft    leads of pairs are log-odds; a class scores the sum of log(doubt + its probability)

A rule says what a problem gives to the class of its second side and to that of its first, and the
caller adds up what each class is given, always in the order of the problems: `added_up`.
In C, leads are of the type `$real` and NAME_SIDES holds the classes of both sides.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import special

from polyplane.arrays import Array

__all__ = ["RULES", "DecisionRule", "rule_of"]

TIE_BREAK = 0.2  # most that leads can add to votes, which differ by one half at least
MOST_LOG = 700.0  # whose exponential is finite
# A pair that is sure and wrong must not outweigh all others: its log is -3, not -lead.
PAIR_SMOOTHING = 0.05
AddedUp = Callable[[Any, Any], Any]  # of gains of second and of first sides, scores of classes
Bounds = Callable[[str, float, float], str]  # SQL of a value that is kept within two numbers


class DecisionRule(ABC):
    """One rule."""

    name: ClassVar[str]
    c: ClassVar[str]  # what follows `void name_decide(const $real *leads, float *scores) {`

    @abstractmethod
    def scores(self, leads: Array, added_up: AddedUp, n_classes: int) -> Array:
        """Return class scores of leads, which are problems by rows of X."""

    @abstractmethod
    def onnx(self, graph: Any, leads: str, kind: type, added_up: AddedUp, n_classes: int) -> str:
        """Return class scores of leads of a NumPy type, rows of X by problems."""

    @abstractmethod
    def sql(self, lead: str, bounds: Bounds, n_classes: int) -> tuple[str, str]:
        """Return what a lead adds to the scores of the second and of the first side's class."""

    def c_constants(self, n_classes: int) -> dict[str, Any]:
        """Macros of its C, by name without NAME_."""
        return {}


class OverRest(DecisionRule):
    """See above."""

    name = "ovr"
    c = """\
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) scores[NAME_SIDES[p][1]] = (float)leads[p];
"""

    def scores(self, leads: Array, added_up: AddedUp, n_classes: int) -> Array:
        scores: Array = added_up(leads, None)
        return scores

    def onnx(self, graph: Any, leads: str, kind: type, added_up: AddedUp, n_classes: int) -> str:
        scores: str = added_up(leads, None)
        return scores

    def sql(self, lead: str, bounds: Bounds, n_classes: int) -> tuple[str, str]:
        return lead, f"-{lead}"


class Margin(DecisionRule):
    """See above."""

    name = "margin"
    c = """\
    $real margins[NAME_N_CLASSES] = {0};
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) {
        $real cut = leads[p] < -1 ? -1 : leads[p] > 1 ? 1 : leads[p];
        margins[NAME_SIDES[p][1]] += cut;
        margins[NAME_SIDES[p][0]] -= cut;
    }
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) scores[c] = (float)margins[c];
"""

    def scores(self, leads: Array, added_up: AddedUp, n_classes: int) -> Array:
        cut = np.clip(leads, -1, 1)
        margins: Array = added_up(cut, -cut)
        return margins

    def onnx(self, graph: Any, leads: str, kind: type, added_up: AddedUp, n_classes: int) -> str:
        cut = graph.add("Clip", leads, np.array(-1, kind), np.array(1, kind))
        margins: str = added_up(cut, graph.add("Neg", cut))
        return margins

    def sql(self, lead: str, bounds: Bounds, n_classes: int) -> tuple[str, str]:
        cut = bounds(lead, -1.0, 1.0)
        return cut, f"(-{cut})"


class Vote(Margin):
    """See above."""

    name = "vote"
    c = """\
    $real margins[NAME_N_CLASSES] = {0};
    float votes[NAME_N_CLASSES] = {0};
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) {
        $real cut = leads[p] < -1 ? -1 : leads[p] > 1 ? 1 : leads[p];
        float vote = leads[p] < 0 ? -0.5f : leads[p] > 0 ? 0.5f : 0.0f;
        margins[NAME_SIDES[p][1]] += cut;
        margins[NAME_SIDES[p][0]] -= cut;
        votes[NAME_SIDES[p][1]] += vote;
        votes[NAME_SIDES[p][0]] -= vote;
    }
    for (int32_t c = 0; c < NAME_N_CLASSES; c++)
        scores[c] = votes[c] + NAME_TIE_BREAK * (float)margins[c];
"""

    def scores(self, leads: Array, added_up: AddedUp, n_classes: int) -> Array:
        margins = super().scores(leads, added_up, n_classes)
        halves = np.sign(leads) / 2
        votes: Array = added_up(halves, -halves)
        votes += np.float32(TIE_BREAK / n_classes) * margins
        return votes

    def onnx(self, graph: Any, leads: str, kind: type, added_up: AddedUp, n_classes: int) -> str:
        margins = super().onnx(graph, leads, kind, added_up, n_classes)
        half = graph.add("Mul", graph.add("Sign", leads), np.array(0.5, kind))
        votes = added_up(half, graph.add("Neg", half))
        share = np.float32(TIE_BREAK / n_classes)
        scores: str = graph.add("Add", votes, graph.add("Mul", margins, share))
        return scores

    def sql(self, lead: str, bounds: Bounds, n_classes: int) -> tuple[str, str]:
        cut, _ = super().sql(lead, bounds, n_classes)
        vote = f"CASE WHEN {lead} < 0 THEN -0.5e0 WHEN {lead} > 0 THEN 0.5e0 ELSE 0e0 END"
        gain = f"({vote} + {TIE_BREAK / n_classes:e} * {cut})"
        return gain, f"(-{gain})"

    def c_constants(self, n_classes: int) -> dict[str, Any]:
        return {"TIE_BREAK": np.float32(TIE_BREAK / n_classes)}


class Soft(DecisionRule):
    """See above; in float64."""

    name = "soft"
    c = """\
    double sums[NAME_N_CLASSES] = {0};
    for (int32_t p = 0; p < NAME_N_PROBLEMS; p++) {
        sums[NAME_SIDES[p][1]] += log(NAME_DOUBT + 1.0 / (1.0 + exp(-(double)leads[p])));
        sums[NAME_SIDES[p][0]] += log(NAME_DOUBT + 1.0 / (1.0 + exp((double)leads[p])));
    }
    for (int32_t c = 0; c < NAME_N_CLASSES; c++) scores[c] = (float)sums[c];
"""

    def scores(self, leads: Array, added_up: AddedUp, n_classes: int) -> Array:
        wide = leads.astype(np.float64)
        scores: Array = added_up(
            np.log(PAIR_SMOOTHING + special.expit(wide)),
            np.log(PAIR_SMOOTHING + special.expit(-wide)),
        )
        return scores

    def onnx(self, graph: Any, leads: str, kind: type, added_up: AddedUp, n_classes: int) -> str:
        wide = graph.cast(leads, np.float64)
        second, first = (
            graph.add(
                "Log", graph.add("Add", graph.add("Sigmoid", lead), np.float64(PAIR_SMOOTHING))
            )
            for lead in (wide, graph.add("Neg", wide))
        )
        scores: str = added_up(second, first)
        return scores

    def sql(self, lead: str, bounds: Bounds, n_classes: int) -> tuple[str, str]:
        near = bounds(lead, -MOST_LOG, MOST_LOG)
        second, first = (
            f"LN({PAIR_SMOOTHING:e} + 1e0 / (1e0 + EXP({sign}{near})))" for sign in ("-", "")
        )
        return second, first

    def c_constants(self, n_classes: int) -> dict[str, Any]:
        return {"DOUBT": np.float64(PAIR_SMOOTHING)}


RULES: dict[str, DecisionRule] = {
    rule.name: rule for rule in (OverRest(), Margin(), Vote(), Soft())
}


def rule_of(kind: str, combine: str) -> DecisionRule:
    """The rule of a decomposition, "ovr" or "ovo", whose pairs are combined so."""
    return RULES["ovr" if kind == "ovr" else combine]
