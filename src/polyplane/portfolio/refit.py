"""The chosen recipes trained on all rows, and how sure their scores may be then.

A recipe that is trained on more rows than in its trial scores on another scale. Where rows are
held out of this training, they tell the factor that makes its scores log-odds, and what to expect
of the blend. Else a recipe gets the factor that makes it as sure as it was in its trial of rows
that both have learned, times the factor of the trial.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.hyperplane.soft_planes import complete_on, train_on_all
from polyplane.portfolio.blend import calibration_of, matching_factor
from polyplane.portfolio.expected import Score, score_of
from polyplane.portfolio.split import taken
from polyplane.portfolio.trials import Views, scores_of_member
from polyplane.training.blended.training import Member
from polyplane.training.rows import TrainingData
from polyplane.training.work.interruption import interrupts_wait
from polyplane.training.work.progress import Report
from polyplane.training.work.side_by_side import for_each

__all__ = ["Matched", "refit", "settle"]

ROWS_TO_MATCH = ROWS_TO_COMPRESS = 4_000


class Matched(NamedTuple):
    """Rows that both a member and its trial have learned, on which one is as sure as the other."""

    rows: TrainingData  # as members see them
    rows_of_trials: TrainingData  # as trials saw them, maybe with more columns
    estimators: Mapping[str, Any]  # those of the trials, by name; empty: nothing is matched


def refit(
    members: Sequence[Member], views: Views, matched: Matched, n_threads: int, report: Report
) -> None:
    """Train members that are not done on all rows."""
    left = [member for member in members if not member.is_done]
    left.sort(key=lambda member: -member.estimator.max_iter)  # so that threads end together
    some = _evenly(in_place(matched.rows.labels.size), ROWS_TO_MATCH)
    rows, rows_of_trials = taken(matched.rows, some), taken(matched.rows_of_trials, some)
    some_of_all = taken(views.data, _evenly(views.members, ROWS_TO_COMPRESS))

    def work(k: int, report: Report) -> None:
        member = left[k]
        view = member.estimator.get_params(deep=False) | {"statistics": member.statistics}
        train_on_all(member.estimator, view, views, report)
        with interrupts_wait():
            complete_on(member.estimator, some_of_all)
            if member.name in matched.estimators:
                member.weight *= matching_factor(
                    scores_of_member(member.estimator, rows),
                    scores_of_member(matched.estimators[member.name], rows_of_trials),
                )
            member.is_done = True

    for_each(work, len(left), n_threads, report)


def _evenly(order: Array, n_most: int) -> Array:
    """Return at most so many of the rows, evenly spaced."""
    n = min(order.size, n_most)
    return order[np.arange(n) * order.size // max(n, 1)]


def settle(members: Sequence[Member], held_out: TrainingData, ranks: Array) -> Score:
    """Give members the weights that held-out rows tell; return how the blend did on these."""
    labels = ranks[held_out.labels]
    weights = held_out.weights if held_out.weights.size else None
    total: Any = 0.0
    for member in members:
        scores = scores_of_member(member.estimator, held_out).astype(np.float64)
        member.weight = member.share * calibration_of(scores, labels, weights)
        total = total + member.weight * scores
    factor = calibration_of(np.asarray(total), labels, weights)
    for member in members:
        member.weight *= factor
    return score_of(np.asarray(total) * factor, labels, weights)
