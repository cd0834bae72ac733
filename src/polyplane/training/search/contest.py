"""Values of a parameter side by side: which is best for a fit.

`winner` lets the better ones go on, and the last one left has won. Each value is tried by trials
that leave out a part of the rows each and are judged by it. They make the passes of the fit itself,
for what is best after three passes need not be after ten. And with small alphas a model is luck:
its error moves by points from pass to pass, and from one part of the rows to another. So a value
counts by its mean error over all parts and the later half of the looks, and is clearly behind only
where it is so beyond that luck, too. Values of hinge steps that have reached the same planes are
judged as one and go on together: they may part later. Where those that stay and those that leave
are close, they are judged by more rows, if there are more.

`best_as_fitted` judges the very models that fits would leave: where luck is most of what parts
errors, means over parts say little of them. Models of all rows are trained with each value. Such a
model is likely to err as often as on the rows it has learned from, and as much more often as models
that left out a part did on that part: that much depends on the value, and little on luck.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import same_bits
from polyplane.training.rows import TrainingData
from polyplane.training.search.trials import (
    NO_PART,
    Trial,
    count_passes,
    pass_side_by_side,
    take_hinge_steps,
    wrong_rows,
)
from polyplane.training.work.progress import Report

__all__ = [
    "Contender", "Rules", "best_as_fitted", "clearly_behind", "later_half", "looks_of",
    "most_passes", "winner",
]  # fmt: skip

LOOKS = {0.2: 4, 0.4: 3, 0.6: 2, 0.8: 1}  # values that go on after so much of the passes, at most
LOOKS_AT_MANY = {0.2: 2, 0.7: 1}  # the same of many rows, of which a pass tells more
FAR_BEHIND = 1.5  # standard errors of the difference to the best
CLOSE = 2.0  # the same, of the rows alone, between those that stay and those that leave
HOPELESS = 2.0  # standard errors of the difference to the best, of a part of the rows


@dataclass
class Contender:
    """The trials of a value, and what has been seen of them."""

    trials: Sequence[Trial]  # one for each part that is left out
    is_wrong: Array = field(default_factory=lambda: np.empty(0, np.bool_))  # at the latest look
    errors: list[list[float]] = field(default_factory=list)  # by look and part

    def look(self, data: TrainingData, judged_by: Mapping[int, Array]) -> None:
        """See which rows are wrong by now, part after part."""
        seen = [wrong_rows(one, data, judged_by[one.left_out]) for one in self.trials]
        self.is_wrong = np.concatenate(seen)
        self.errors.append([float(part.mean()) for part in seen])

    def look_at_more(self, data: TrainingData, rows: Array) -> None:
        """Add more rows of a single part to the latest look."""
        (trial,) = self.trials
        self.is_wrong = np.concatenate([self.is_wrong, wrong_rows(trial, data, rows)])
        self.errors[-1] = [float(self.is_wrong.mean())]

    def see_like(self, other: "Contender") -> None:
        """Take over what was seen of one that has reached the same planes."""
        self.is_wrong = other.is_wrong
        self.errors.append(list(other.errors[-1]))

    @property
    def recent_error(self) -> float:
        """By which it counts."""
        return float(later_half(np.array(self.errors)).mean())

    def equals(self, other: "Contender") -> bool:
        """Return True if both have reached the same planes, so that both err on the same rows."""
        pairs = zip(self.trials, other.trials, strict=True)
        models = (zip(a.training.models, b.training.models, strict=True) for a, b in pairs)
        return all(same_bits(a.planes, b.planes) for each in models for a, b in each)


def looks_of(n_passes: int, has_many_rows: bool) -> dict[int, int]:
    """After which passes there is a look, and how many values go on."""
    looks = LOOKS_AT_MANY if has_many_rows else LOOKS
    by_pass = {math.ceil(n_passes * share): stay for share, stay in looks.items()}
    return by_pass | {n_passes: 1}  # of those that were equal before


def most_passes(n_values: int, looks: Mapping[int, int]) -> int:
    """Return the largest number of passes that all values together can make."""
    total = before = 0
    for n_passes, stay in looks.items():
        total += (n_passes - before) * n_values
        before, n_values = n_passes, min(n_values, stay)
    return total


def later_half(errors: Array) -> Array:
    """The latest looks: of one or two the last, of three or four the last two."""
    return errors[len(errors) // 2 :]


def clearly_behind(is_wrong: Array, errors: Array) -> Array:
    """Return which values are clearly behind the best one.

    `is_wrong` is by value and row, `errors` by value, look and part. The standard error of a
    difference is that of the rows together with that of the luck of looks and parts. Of a single
    error nobody knows how much of it was luck.
    """
    recent = np.stack([later_half(each).ravel() for each in errors])
    means, n_errors = recent.mean(axis=1), recent.shape[1]
    if n_errors == 1:
        return np.zeros(len(means), np.bool_)
    best, lines = int(np.argmin(means)), is_wrong.astype(np.float64)
    of_rows = (lines - lines[best]).var(axis=1) / lines[0].size
    of_luck = (recent - recent[best]).var(axis=1, ddof=1) / n_errors
    behind: Array = means - means[best] > FAR_BEHIND * np.sqrt(of_rows + of_luck)
    return behind


@dataclass(frozen=True)
class Rules:
    """Rules by which values are tried."""

    data: TrainingData
    parts: Array  # the part of each row
    judged_by: Mapping[int, Array]  # of each part that is left out, rows to judge by
    more_rows: Array  # of a single part, for values that are close
    n_threads: int
    report: Report

    def pass_of(self, trials: Sequence[Trial]) -> None:
        """One, of all these."""
        pass_side_by_side(trials, self.data, self.parts, self.n_threads, self.report)


def winner(contenders: Sequence[Contender], looks: Mapping[int, int], rules: Rules) -> int:
    """The place of the best; of those that are equal all along, the first.

    `looks` are those of `looks_of`.
    """
    alive, n = list(range(len(contenders))), 0
    while len(alive) > 1 and n < max(looks):
        n += 1
        rules.pass_of([trial for k in alive for trial in contenders[k].trials])
        if n in looks:
            alike = _looked_at(alive, contenders, rules)
            stay = _better([same[0] for same in alike], contenders, looks[n], rules)
            alive = sorted(k for same in alike if same[0] in stay for k in same)
    return alive[0]


def _looked_at(
    alive: Sequence[int], contenders: Sequence[Contender], rules: Rules
) -> list[list[int]]:
    """Places of those that have reached the same, together, after a look at each kind."""
    alike: list[list[int]] = []
    for k in alive:
        same = [each for each in alike if contenders[k].equals(contenders[each[0]])]
        if not same:
            contenders[k].look(rules.data, rules.judged_by)
            alike.append([k])
        elif take_hinge_steps(contenders[k].trials):  # else each takes its own time
            contenders[k].see_like(contenders[same[0][0]])
            same[0].append(k)
    return alike


def _better(
    alive: Sequence[int], contenders: Sequence[Contender], most: int, rules: Rules
) -> list[int]:
    """Return the best of those that are not clearly behind, `most` at most."""
    errors = np.array([contenders[k].errors for k in alive])
    is_behind = clearly_behind(np.stack([contenders[k].is_wrong for k in alive]), errors)
    rest = [k for k, behind in zip(alive, is_behind, strict=True) if not behind]
    rest.sort(key=lambda k: contenders[k].recent_error)
    if rules.more_rows.size and most == 1:
        for k in _close(rest, contenders, most):
            contenders[k].look_at_more(rules.data, rules.more_rows)
        rest.sort(key=lambda k: contenders[k].recent_error)
    return rest[:most]


def _close(ranked: Sequence[int], contenders: Sequence[Contender], most: int) -> list[int]:
    """Return those close to the last one that stays, if one of them would leave."""
    if len(ranked) <= most:
        return []
    its = contenders[ranked[most - 1]].is_wrong.astype(np.float64)
    leads = {k: contenders[k].is_wrong - its for k in ranked}
    near = [
        k
        for k, lead in leads.items()
        if abs(lead.mean()) <= CLOSE * lead.std() / math.sqrt(lead.size)
    ]
    return near if set(near) & set(ranked[most:]) else []


# ---- models as fits would leave them -----------------------------------------------------


def best_as_fitted(n_values: int, new: Callable[[int, int], Trial], rules: Rules) -> int:
    """The value whose model of all rows is likely to err least; of equals the first.

    `new` makes a trial of a value that leaves out a part or, with NO_PART, none. Trials that leave
    out the same are side by side. Values without hope are tried with no further part.
    """
    alive, everything = list(range(n_values)), np.concatenate(list(rules.judged_by.values()))
    wholes = _trained(alive, NO_PART, new, rules)
    learned = [float(wrong_rows(each, rules.data, everything).mean()) for each in wholes]
    more: list[list[float]] = [[] for _ in alive]
    for part, rows in rules.judged_by.items():
        before = np.concatenate([each for k, each in rules.judged_by.items() if k != part])
        is_wrong = {}
        for k, trial in zip(alive, _trained(alive, part, new, rules), strict=True):
            is_wrong[k] = wrong_rows(trial, rules.data, rows).astype(np.float64)
            more[k].append(is_wrong[k].mean() - wrong_rows(trial, rules.data, before).mean())
        expected = {k: learned[k] + float(np.mean(more[k])) for k in alive}
        best = min(alive, key=expected.__getitem__)
        alive = [
            k
            for k in alive
            if _has_hope(expected[k] - expected[best], is_wrong[k] - is_wrong[best])
        ]
    return best


def _has_hope(behind: float, differences: Array) -> bool:
    """Return True if so much more error, given that of each row left out, may be chance."""
    return behind <= HOPELESS * float(differences.std()) / math.sqrt(differences.size)


def _trained(
    values: Sequence[int], left_out: int, new: Callable[[int, int], Trial], rules: Rules
) -> list[Trial]:
    """Trials of these values after all their passes."""
    trials = [new(k, left_out) for k in values]
    for _ in range(count_passes(trials)):
        rules.pass_of(trials)
    return trials
