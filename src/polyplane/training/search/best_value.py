"""The best value of a parameter, by trials on rows that are left out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.training.job import Job, NewRows
from polyplane.training.planes.algorithm import PlaneJob
from polyplane.training.planes.models import bytes_of_models
from polyplane.training.planes.passes import count_steps_of_passes
from polyplane.training.rows import stratified, weighty
from polyplane.training.search.contest import (
    Contender,
    Rules,
    best_as_fitted,
    looks_of,
    most_passes,
    winner,
)
from polyplane.training.search.trials import NO_PART, Trial, members_of, new_trial, take_hinge_steps
from polyplane.training.work.progress import progress

__all__ = ["ALPHAS", "best_alpha", "best_value"]

ALPHAS = tuple(10.0**-k for k in range(2, 8))  # section 4 of the AMM paper
FOLDS = 3  # of the rows, each left out by one trial of a value
MANY_ROWS = 30_000  # of which half is left out by a single trial, so that a search is no dearer
MOST_JUDGED = 8_000  # rows by which a trial is judged, unless two are close in the end
MOST_BYTES = 1 << 28  # of the first planes of all trials; else each value has but one


def best_alpha(job: PlaneJob, rows: NewRows) -> dict[str, Any]:
    """Return the best of `ALPHAS` where alpha is 'auto'."""
    if not job.settings.is_open("alpha"):
        return {}
    return {"alpha": best_value(job, rows, "alpha", ALPHAS, {})}


def best_value(
    job: PlaneJob, rows: NewRows, name: str, values: Sequence[Any], fixed: dict[str, Any]
) -> Any:
    """Return the value of a parameter that does best on rows left out, others being fixed."""
    data, settings = rows.data, job.settings
    members = weighty(in_place(data.labels.size), data.weights)
    parts, judged_by, more_rows = _parts_of(members, data.labels, rows.seed)
    kept = {part: members_of(data, parts, part) for part in (NO_PART, *judged_by)}

    def job_with(k: int) -> PlaneJob:
        return Job(job.algorithm, settings.replaced(**{"n_threads": 1, **fixed, name: values[k]}))

    def new(k: int, left_out: int) -> Trial:
        return new_trial(job_with(k), rows, parts, left_out, kept[left_out])

    def tried(total: int, choose: Callable[[Rules], int]) -> Any:
        title, n_threads = f"{settings.name}: {name}", settings.n_threads
        with progress(title, total, bool(settings.verbose), is_search=True) as report:
            best = choose(Rules(data, parts, judged_by, more_rows, n_threads, report))
        return values[best]

    def steps_of(trials: Sequence[Trial]) -> int:
        """Return the steps of a pass of all trials."""
        return sum(
            count_steps_of_passes(one.job, one.training, data, kept[one.left_out], 1)
            for one in trials
        )

    n_passes, has_many_rows = int(settings.max_iter), members.size >= MANY_ROWS
    if len(judged_by) > 1 and take_hinge_steps([new(0, NO_PART)]):
        trials = [new(0, part) for part in (NO_PART, *judged_by)]
        total = len(values) * n_passes * steps_of(trials)
        return tried(total, lambda rules: best_as_fitted(len(values), new, rules))
    n_trials = len(values) * len(judged_by)
    if n_trials * bytes_of_models(job_with(0), rows) > MOST_BYTES:
        judged_by = {k: judged_by[k] for k in list(judged_by)[:1]}
    contenders = [Contender([new(k, part) for part in judged_by]) for k in range(len(values))]
    looks = looks_of(n_passes, has_many_rows)
    total = most_passes(len(values), looks) * steps_of(contenders[0].trials)
    return tried(total, lambda rules: winner(contenders, looks, rules))


def _parts_of(members: Array, labels: Array, seed: int) -> tuple[Array, dict[int, Array], Array]:
    """The part of each row, of each part that is left out the rows to judge by, and more rows."""
    parts = np.zeros(labels.size, np.int32)
    if members.size >= MANY_ROWS:
        _, left_out = stratified(members, labels, 0.5, seed)
        parts[left_out] = 1
        share = min(1.0, MOST_JUDGED / left_out.size)
        later, first = stratified(left_out, labels, share, seed)
        return parts, {1: first}, later
    judged_by: dict[int, Array] = {}
    n_folds = min(FOLDS, members.size)
    for k in range(n_folds):
        members, judged_by[k] = stratified(members, labels, 1 / (n_folds - k), seed + k)
        parts[judged_by[k]] = k
    return parts, judged_by, np.empty(0, members.dtype)
