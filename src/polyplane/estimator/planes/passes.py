"""How hyperplane machines pass over their rows, from the first step of a fit or from the middle.

`machine` is a `HyperplaneClassifier`; what it does along the way are its methods of the section
"what a machine adds".
"""

from typing import Any

from joblib import effective_n_jobs

from polyplane.engine.order import shuffle
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import rows_of
from polyplane.estimator.planes.training import Course, EarlyStopping, PlaneTraining, Walk, visit
from polyplane.estimator.progress import Report, without_errors
from polyplane.estimator.side_by_side import for_each
from polyplane.estimator.validation import TrainingData

__all__ = ["make_passes", "set_out", "walk_of"]


def walk_of(machine: Any) -> Walk:
    """What a machine does between the cuts of `visit`."""
    return Walk(machine._steps, machine._due, machine._act)


def make_passes(
    machine: Any, training: PlaneTraining, data: TrainingData, members: Array, held_out: Any,
    report: Report,
) -> None:  # fmt: skip
    """Passes of a machine over the rows `members`, stopped early where asked for."""
    n_threads = effective_n_jobs(machine.n_jobs)
    if not training.is_unfinished:
        set_out(machine, training, data, members)
    views = [_own_view(data) for _ in training.models]
    n_most = max(machine._count_passes(course.n_rows) for course in training.courses)
    while not _is_over(machine, training, n_most):
        for_each(
            lambda k, report: _one_pass(machine, training, k, views[k], members, report),
            len(views),
            n_threads,
            report,
        )
        machine.n_iter_ += 1
        if held_out is not None:
            _note_error(machine, training, machine._error(training, *held_out))
    for model, state in zip(training.models, training.watch.snapshots, strict=False):
        model.return_to(state)
    training.courses, training.watch = [], EarlyStopping()


def set_out(machine: Any, training: PlaneTraining, data: TrainingData, members: Array) -> None:
    """The beginning of all courses."""
    machine.n_iter_, training.courses, training.watch = 0, [], EarlyStopping()
    for model in training.models:
        n_rows = rows_of(members, model.targets(data)).size
        training.courses.append(Course(n_rows, machine._first_choice(data)))
        machine._begin(model, machine._count_passes(n_rows) * n_rows)


def _is_over(machine: Any, training: PlaneTraining, n_most: int) -> bool:
    """Whether the last pass has been made."""
    return (
        machine.n_iter_ >= n_most
        or training.watch.since_best >= machine.n_iter_no_change
        or all(course.is_over for course in training.courses)
    )


def _note_error(machine: Any, training: PlaneTraining, error: float) -> None:
    """What early stopping does after a pass."""
    watch = training.watch
    if error < watch.best - machine.tol:
        snapshots = [model.snapshot() for model in training.models]
        training.watch = EarlyStopping(error, 0, snapshots)
    else:
        watch.since_best += 1


def _own_view(data: TrainingData) -> TrainingData:
    """The same data with a page of their own, so that threads do not meet."""
    return data._replace(rows=with_own_page(data.rows))


def _one_pass(
    machine: Any,
    training: PlaneTraining,
    k: int,
    data: TrainingData,
    members: Array,
    report: Report,
) -> None:
    """One more pass of model k, or what is left of it."""
    model, course = training.models[k], training.courses[k]
    if course.is_over or course.n_passes > machine.n_iter_:
        return
    order = rows_of(members, model.targets(data))
    if course.mixed_by is None:
        course.mixed_by, course.first_step = model.generator.bit_generator.state, model.n_steps
    if machine.shuffle:
        model.generator.bit_generator.state = course.mixed_by
        shuffle(order, model.generator)
    order = machine._part_of_pass(order, course.n_passes)
    rest = order[model.n_steps - course.first_step :]
    is_new = course.first_step == 0 and not machine._starts_from_rows()
    if not is_new or len(training.models) > 1:
        report = without_errors(report)
    visit(model, data, rest, course.chosen, walk_of(machine), report)
    course.n_passes, course.mixed_by = course.n_passes + 1, None
    is_last = course.n_passes >= machine._count_passes(course.n_rows)
    course.is_over = is_last or machine._end_pass(
        model, data, course.n_passes, order, course.chosen
    )
