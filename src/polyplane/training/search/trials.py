"""Trials of settings: the same rows in the same order, settings and left-out rows their own.

Trials differ in a parameter or in the part of the rows that they leave out.
Each becomes, to the bit, what its settings alone would make of those rows in that order. They are
trained side by side in threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place, shuffle
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.steps.hinge import HingeRule
from polyplane.engine.targets import rows_of
from polyplane.training.job import NewRows
from polyplane.training.planes.algorithm import PlaneJob, hinge_steps
from polyplane.training.planes.family import wrong_rows as wrong_rows_of
from polyplane.training.planes.models import meet_rows, new_training
from polyplane.training.planes.passes import begin_fit, pass_of
from polyplane.training.planes.passes import count_passes as count_passes_of
from polyplane.training.planes.state import PlaneTraining
from polyplane.training.rows import TrainingData, weighty
from polyplane.training.work.progress import Report, without_errors
from polyplane.training.work.side_by_side import for_each

__all__ = [
    "NO_PART",
    "Trial",
    "count_passes",
    "members_of",
    "new_trial",
    "pass_side_by_side",
    "take_hinge_steps",
    "wrong_rows",
]

NO_PART = -1  # what a trial leaves out that visits every row
MIN_BYTES_FOR_THREADS = 1 << 27  # of rows that each trial reads: less ends before they help


@dataclass
class Trial:
    """A training with settings of its own."""

    job: PlaneJob
    training: PlaneTraining
    seen: TrainingData  # all rows as its steps see them
    left_out: int = NO_PART  # the part of the rows that it does not visit


def new_trial(
    job: PlaneJob,
    rows: NewRows,
    parts: Array,
    left_out: int = NO_PART,
    members: Array | None = None,
) -> Trial:
    """Return a training before its first pass.

    Who makes several that leave out the same may give them their `members`.
    """
    if members is None:
        members = members_of(rows.data, parts, left_out)
    training, seen = meet_rows(job, new_training(job, rows), rows)
    begin_fit(job, training, seen, members)
    return Trial(job, training, seen, left_out)


def members_of(data: TrainingData, parts: Array, left_out: int) -> Array:
    """Return the rows that a trial visits."""
    members = weighty(in_place(parts.size), data.weights)
    return members if left_out == NO_PART else members[parts[members] != left_out]


def count_passes(trials: Sequence[Trial]) -> int:
    """Return how many passes the longest of them makes."""
    return max(
        count_passes_of(trial.job.settings, course.n_rows)
        for trial in trials
        for course in trial.training.courses
    )


def take_hinge_steps(trials: Sequence[Trial]) -> bool:
    """Return True if all steps are those of the hinge loss, without coins and choices kept."""
    return all(
        isinstance(model.rule, HingeRule)
        and model.rule.clone_probability == 0
        and course.chosen.size == 0
        and trial.job.algorithm.steps is hinge_steps
        for trial in trials
        for model, course in zip(trial.training.models, trial.training.courses, strict=True)
    )


def wrong_rows(trial: Trial, data: TrainingData, rows: Array) -> Array:
    """Return which of these rows it gets wrong."""
    return wrong_rows_of(trial.job, trial.training, data, rows)


def pass_side_by_side(
    trials: Sequence[Trial], data: TrainingData, parts: Array, n_threads: int, report: Report
) -> None:
    """Make one pass of all trials over the rows; `parts` is the part of each row."""
    if len(trials) * _count_bytes(data.rows) < MIN_BYTES_FOR_THREADS:
        n_threads = 1
    alive = [t for t in trials if not all(course.is_over for course in t.training.courses)]
    for k in range(len(trials[0].training.models)):
        order = _order(trials, k, data)

        def visit(place: int, report: Report, k: int = k, order: Array = order) -> None:
            trial = trials[place]
            model, course = trial.training.models[k], trial.training.courses[k]
            if not course.is_over:
                own = trial.seen._replace(rows=with_own_page(trial.seen.rows))
                kept = order[parts[order] != trial.left_out]
                pass_of(trial.job, model, course, own, kept, report)

        for_each(visit, len(trials), n_threads, without_errors(report))
    for trial in alive:
        trial.training.n_passes += 1


def _count_bytes(rows: Any) -> int:
    return sum(part.nbytes for part in rows if isinstance(part, np.ndarray))


def _order(trials: Sequence[Trial], k: int, data: TrainingData) -> Array:
    """The rows of a pass as a fit would mix them: models of one seed mix alike."""
    models = [trial.training.models[k] for trial in trials]
    everything = weighty(in_place(data.labels.size), data.weights)
    order: Array = rows_of(everything, models[0].targets(data))
    if trials[0].job.settings.shuffle:
        shuffle(order, models[0].generator)
        for model in models[1:]:
            model.generator.bit_generator.state = models[0].generator.bit_generator.state
    return order
