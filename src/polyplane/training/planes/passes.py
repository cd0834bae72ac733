"""Passes over rows, from the first step of a fit or from the middle, and chunks of streams.

All training, whether `fit`, `partial_fit` or a search, is `visit`: rows in some order, cut only
where something is due by the count of steps. Where the caller cuts the data changes nothing.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import shuffle
from polyplane.engine.planes.planes import (
    MISTAKES,
    NO_PLANE,
    count_planes,
    has_idle_tile,
    live_lanes,
    with_more_room,
)
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import rows_of
from polyplane.training.job import Settings
from polyplane.training.planes.algorithm import PlaneJob
from polyplane.training.planes.state import NO_CHOICE, Course, PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData
from polyplane.training.work.interruption import interrupts_wait
from polyplane.training.work.progress import Report, without_errors
from polyplane.training.work.side_by_side import for_each

__all__ = [
    "begin_fit",
    "count_passes",
    "count_steps_left",
    "count_steps_of_passes",
    "is_over",
    "learn_chunk",
    "make_passes",
    "pass_of",
    "pass_over",
    "visit",
]

RECORD_EVERY = 10_000  # steps between points of the history, after powers of two up to there


# ---- steps -------------------------------------------------------------------------------


def visit(
    job: PlaneJob,
    model: PlaneModel,
    data: TrainingData,
    order: Array,
    report: Report,
    chosen: Array = NO_CHOICE,
    lanes: Array = NO_CHOICE,
) -> None:
    """Visit the rows in `order`, once each.

    `chosen` is what is kept of each row; `lanes` are those of some planes, which follow these to
    new places.
    """
    algorithm, settings = job
    done, interval = 0, int(settings.prune_interval)
    with interrupts_wait() as let_through:
        while done < order.size:
            before, mistakes = model.n_steps, int(model.planes.counts[MISTAKES])
            next_act, next_note = _next_multiple(before, interval), _next_note(before)
            part = order[done : done + min(next_act, next_note) - before]
            model.n_steps = algorithm.steps(model, data, part, chosen)
            visited = model.n_steps - before
            done += visited
            if model.n_steps == next_act:
                algorithm.between(model, settings)
            if visited < part.size or has_idle_tile(model.planes):
                _make_room(model, (chosen, lanes))
            if model.n_steps == next_note:
                model.note()
            n_mistakes = int(model.planes.counts[MISTAKES]) - mistakes
            report(visited, count_planes(model.planes), n_mistakes / max(visited, 1))
            let_through()


def _next_note(step: int) -> int:
    """Next power of two below RECORD_EVERY, then its multiples."""
    if step >= RECORD_EVERY:
        return _next_multiple(step, RECORD_EVERY)
    return min(1 << step.bit_length(), RECORD_EVERY)


def _next_multiple(step: int, interval: int) -> int:
    """The first multiple of `interval` after `step`."""
    return (step // interval + 1) * interval


def _make_room(model: PlaneModel, followers: Sequence[Array]) -> None:
    """More lanes; who has chosen a plane follows it to its new place."""
    live = live_lanes(model.planes)
    place = np.full(model.planes.owner.size, NO_PLANE, np.int32)
    place[live] = np.arange(live.size, dtype=np.int32)
    model.planes = with_more_room(model.planes)
    for chosen in followers:
        chosen[chosen >= 0] = place[chosen[chosen >= 0]]


# ---- passes ------------------------------------------------------------------------------


def begin_fit(job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array) -> None:
    """The beginning of all courses."""
    algorithm, settings = job
    training.n_passes, training.courses = 0, []
    for model in training.models:
        n_rows = rows_of(members, model.targets(data)).size
        chosen = algorithm.choices(settings, data.labels.size)
        training.courses.append(Course(n_rows, chosen))
        algorithm.begin(model, settings, count_passes(settings, n_rows) * n_rows)


def make_passes(
    job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array, report: Report
) -> None:
    """Make all passes of a fit, or those that are left, where nobody looks."""
    if not training.is_unfinished:
        begin_fit(job, training, data, members)
    while not is_over(job, training):
        pass_over(job, training, data, members, report)
        training.n_passes += 1
    training.end_fit()


def is_over(job: PlaneJob, training: PlaneTraining) -> bool:
    """Return True if all passes have been made, or another one would change nothing."""
    n_most = max(count_passes(job.settings, course.n_rows) for course in training.courses)
    return training.n_passes >= n_most or all(course.is_over for course in training.courses)


def pass_over(
    job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array, report: Report
) -> None:
    """Make one more pass of all models, or what is left of it."""

    def one_pass(k: int, report: Report) -> None:
        model, course = training.models[k], training.courses[k]
        if course.is_over or course.n_passes > training.n_passes:
            return
        own = _own_view(data)
        order = rows_of(members, model.targets(own))
        if course.mixed_by is None:
            course.mixed_by, course.first_step = model.generator.bit_generator.state, model.n_steps
        if job.settings.shuffle:
            model.generator.bit_generator.state = course.mixed_by
            shuffle(order, model.generator)
        n_done = model.n_steps - course.first_step
        is_new = course.first_step == 0 and not job.algorithm.starts_from_rows(job.settings)
        if not is_new or len(training.models) > 1:
            report = without_errors(report)
        pass_of(job, model, course, own, order, report, n_done)

    for_each(one_pass, len(training.models), job.settings.n_threads, report)


def pass_of(
    job: PlaneJob,
    model: PlaneModel,
    course: Course,
    data: TrainingData,
    order: Array,
    report: Report,
    n_done: int = 0,
) -> None:
    """Make one more pass of a model in the order given, of which some rows have been visited."""
    algorithm, settings = job
    order = _part_of_pass(settings, order, course.n_passes)
    visit(job, model, data, order[n_done:], report, course.chosen)
    course.n_passes, course.mixed_by = course.n_passes + 1, None
    is_last = course.n_passes >= count_passes(settings, course.n_rows)
    course.is_over = is_last or algorithm.end_pass(model, data, settings, course, order)


def learn_chunk(
    job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array, report: Report
) -> None:
    """Visit the rows of a chunk, in the order given."""
    models, stream = training.models, job.algorithm.stream
    follow = partial(visit, job) if stream is None else partial(stream.visit, job)

    def learn(k: int, report: Report) -> None:
        if len(models) > 1:
            report = without_errors(report)
        own, model = _own_view(data), models[k]
        follow(model, own, rows_of(members, model.targets(own)), report)

    for_each(learn, len(models), job.settings.n_threads, report)


def _own_view(data: TrainingData) -> TrainingData:
    """Return the data with a page of their own, so that threads do not share one."""
    return data._replace(rows=with_own_page(data.rows))


# ---- how many ----------------------------------------------------------------------------


def count_passes(settings: Settings, n_rows: int) -> int:
    """Return the number of passes over so many rows."""
    if settings.max_steps is None:
        return int(settings.max_iter)
    return -(-int(settings.max_steps) // n_rows) if n_rows else 0


def _part_of_pass(settings: Settings, order: Array, n_passes: int) -> Array:
    """Return the part of `order` that a model visits after so many passes."""
    if settings.max_steps is None:
        return order
    return order[: max(0, settings.max_steps - n_passes * order.size)]


def count_steps_left(
    job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array
) -> int:
    """Return the number of steps left to all models in the current fit, or in a chunk."""
    if not training.courses:
        return count_steps_of_passes(job, training, data, members, 1)
    sizes = [course.n_rows for course in training.courses]
    n_steps = sum(
        _count_steps(job.settings, n_rows, count_passes(job.settings, n_rows)) for n_rows in sizes
    )
    return n_steps - sum(
        course.n_passes * course.n_rows + (model.n_steps - course.first_step) * course.is_amid
        for model, course in zip(training.models, training.courses, strict=True)
    )


def count_steps_of_passes(
    job: PlaneJob, training: PlaneTraining, data: TrainingData, members: Array, n_passes: int
) -> int:
    """Return the number of steps of all models in so many passes over `members`."""
    sizes = [rows_of(members, model.targets(data)).size for model in training.models]
    return sum(_count_steps(job.settings, n_rows, n_passes) for n_rows in sizes)


def _count_steps(settings: Settings, n_rows: int, n_passes: int) -> int:
    """Steps of a model of so many rows."""
    n_steps = n_passes * n_rows
    return n_steps if settings.max_steps is None else min(n_steps, int(settings.max_steps))
