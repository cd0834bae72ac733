"""Values of a parameter side by side: the better ones go on, and the last one left has won.

Each value is tried by trials that leave out a part of the rows each and are judged by it. They make
the passes of the fit itself, for what is best after three passes need not be after ten. And with
small alphas a model is luck: its error moves by points from pass to pass, and from one part of the
rows to another. So a value counts by its mean error over all parts and the later half of the looks,
and is clearly behind only where it is so beyond that luck, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyplane.engine.planes.planes import Array, same_bits
from polyplane.estimator.fitting.progress import Report
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.planes.packs import Trial, pass_together, wrong_rows

__all__ = ["Contender", "clearly_behind", "later_half", "looks_of", "most_passes", "winner"]

LOOKS = {0.2: 4, 0.4: 3, 0.6: 2, 0.8: 1}  # values that go on after so much of the passes, at most
LOOKS_AT_MANY = {0.2: 2, 0.7: 1}  # the same of many rows, of which a pass tells more
FAR_BEHIND = 1.5  # standard errors of the difference to the best


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

    def equals(self, other: "Contender") -> bool:
        """Whether both have reached the same planes, so that both get the same rows wrong."""
        pairs = zip(self.trials, other.trials, strict=True)
        models = (zip(a.training.models, b.training.models, strict=True) for a, b in pairs)
        return all(same_bits(a.planes, b.planes) for each in models for a, b in each)


def looks_of(n_passes: int, has_many_rows: bool) -> dict[int, int]:
    """After which passes there is a look, and how many values go on."""
    looks = LOOKS_AT_MANY if has_many_rows else LOOKS
    return {math.ceil(n_passes * share): stay for share, stay in looks.items()}


def most_passes(n_values: int, looks: Mapping[int, int]) -> int:
    """How many all values together can make, if none leaves before it must."""
    total = before = 0
    for n_passes, stay in looks.items():
        total += (n_passes - before) * n_values
        before, n_values = n_passes, min(n_values, stay)
    return total


def later_half(errors: Array) -> Array:
    """The latest looks: of one or two the last, of three or four the last two."""
    return errors[len(errors) // 2 :]


def clearly_behind(is_wrong: Array, errors: Array) -> Array:
    """Which values are, given wrong rows by value, and errors by value, look and part.

    The standard error is that of the rows together with that of the luck. Of one error nobody
    knows how much of it was luck.
    """
    recent = np.stack([later_half(each).ravel() for each in errors])
    means, n_errors = recent.mean(axis=1), recent.shape[1]
    if n_errors == 1:
        return np.zeros(len(means), np.bool_)
    best = np.argmin(means)
    of_rows = (is_wrong.astype(np.float64) - is_wrong[best]).var(axis=1) / is_wrong.shape[1]
    of_luck = (recent - recent[best]).var(axis=1, ddof=1) / n_errors
    behind: Array = means - means[best] > FAR_BEHIND * np.sqrt(of_rows + of_luck)
    return behind


def winner(
    contenders: Sequence[Contender],
    data: TrainingData,
    parts: Array,
    judged_by: Mapping[int, Array],
    looks: Mapping[int, int],
    n_threads: int,
    report: Report,
) -> int:
    """The place of the best; of those that are equal all along, the first.

    `parts` is the part of each row, `judged_by` the rows of each part that trials are judged by,
    and `looks` are those of `looks_of`.
    """
    alive, n = list(range(len(contenders))), 0
    while len(alive) > 1:
        n += 1
        trials = [trial for k in alive for trial in contenders[k].trials]
        pass_together(trials, data, parts, n_threads, report)
        if n in looks:
            alive = _different(alive, contenders)
            for k in alive:
                contenders[k].look(data, judged_by)
            alive = _better(alive, contenders, looks[n])
    return alive[0]


def _different(alive: Sequence[int], contenders: Sequence[Contender]) -> list[int]:
    """The first of each that have reached the same."""
    found: list[int] = []
    for k in alive:
        if not any(contenders[k].equals(contenders[other]) for other in found):
            found.append(k)
    return found


def _better(alive: Sequence[int], contenders: Sequence[Contender], most: int) -> list[int]:
    """Those that are not clearly behind, and of them the best."""
    errors = np.array([contenders[k].errors for k in alive])
    is_behind = clearly_behind(np.stack([contenders[k].is_wrong for k in alive]), errors)
    means = np.where(is_behind, np.inf, [later_half(each).mean() for each in errors])
    n_left = min(most, int(np.count_nonzero(~is_behind)))
    return [alive[k] for k in sorted(np.argsort(means, kind="stable")[:n_left].tolist())]
