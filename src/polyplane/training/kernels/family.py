"""Functions that the shell calls for trainings of kernels."""

from dataclasses import replace
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import shuffle
from polyplane.engine.rows.storage import DenseRows
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.training.family import Family
from polyplane.training.job import Job, NewRows
from polyplane.training.kernels.algorithm import KernelAlgorithm
from polyplane.training.kernels.chunks import learn_chunk
from polyplane.training.kernels.kernel_choice import gamma_of, kernel_of
from polyplane.training.kernels.lines import make_lines, one_by_one
from polyplane.training.kernels.state import KernelCourse, KernelModel, KernelTraining
from polyplane.training.rows import TrainingData
from polyplane.training.state import known_classes, twin
from polyplane.training.work.memory import check_memory
from polyplane.training.work.progress import Report, without_errors

__all__ = ["KERNELS", "KernelJob", "learn_in_chunks"]

MEGABYTE = 1 << 20
BYTES_OF_PROBLEM = 16_000  # of few support vectors, measured with ten thousand pairs
KernelJob = Job[KernelAlgorithm]


def _check(job: KernelJob, data: TrainingData, n_columns: int) -> None:
    if job.settings.kernel == "precomputed" and data.labels.size != n_columns:
        raise ValueError(
            "kernel='precomputed' needs a square matrix of kernel values between all training "
            f"rows; X has {data.labels.size} rows and {n_columns} columns."
        )


def _check_streamable(job: KernelJob, begins: bool) -> None:
    if job.settings.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' needs all rows at once, not a stream: rows yet to come have "
            "no kernel values. Give a function as the kernel instead."
        )


def _new(job: KernelJob, rows: NewRows) -> KernelTraining:
    settings, n_columns = job.settings, rows.n_columns
    gamma, is_dense = (
        gamma_of(settings, rows.data, n_columns),
        isinstance(rows.data.rows, DenseRows),
    )
    return KernelTraining(
        kind=settings.multi_class,
        seed=rows.seed,
        known=known_classes(np.empty(0)),
        columns=job.algorithm.columns.begun(job, rows),
        n_columns=n_columns,
        kernel=kernel_of(settings, gamma, float(settings.fit_intercept), n_columns, is_dense),
        gamma=gamma,
        cache_bytes=int(settings.cache_mb * MEGABYTE),
        is_dense=is_dense,
    )


def _meet(
    job: KernelJob, before: KernelTraining, rows: NewRows
) -> tuple[KernelTraining, TrainingData]:
    """Return a copy, of which classes and problems can be added without a trace."""
    settings, is_new = job.settings, rows.labels is not before.labels
    training: KernelTraining = twin(before)
    training.models = [twin(model) for model in before.models]
    if rows.n_columns != before.n_columns:
        training.n_columns = rows.n_columns
        training.columns = before.columns.widened(rows.n_columns, rows.data.rows)
        training.kernel = replace(training.kernel, n_columns=rows.n_columns)
    if is_new:
        training.known = known_classes(rows.labels)
        started = {model.problem for model in before.models}
        decomposition = training.decomposition(settings.combine)
        n_new = decomposition.n_problems() - len(started)
        check_memory(settings.name, training.kind, n_new, BYTES_OF_PROBLEM, "support vectors")
        training.models += [
            KernelModel(problem, job.algorithm.new_set(), training.seed)
            for problem in decomposition.problems()
            if problem not in started
        ]
    rule = job.algorithm.rule(settings)
    for model in training.models:
        model.rule, model.is_over = rule, False
    return training, rows.data


def _meet_chunk(
    job: KernelJob, before: KernelTraining | None, rows: NewRows, members: Array
) -> tuple[KernelTraining, TrainingData, Array]:
    training, seen = _meet(job, before or _new(job, rows), rows)
    if before is None:
        training.n_passes = 1
    training.end_fit()
    return training, seen, members


def _begin(job: KernelJob, training: KernelTraining, data: TrainingData, members: Array) -> None:
    is_same = job.settings.kernel == "precomputed"  # its rows are those of the fit before
    first_number = 0 if is_same else training.n_seen
    training.n_seen, training.n_passes = first_number + data.labels.size, 0
    training.course = KernelCourse(training.rows_seen, first_number)
    job.algorithm.start(job, training, data)


def _course_of(training: KernelTraining) -> KernelCourse:
    assert training.course is not None
    return training.course


def _count_steps(
    job: KernelJob, training: KernelTraining, data: TrainingData, members: Array
) -> int:
    if training.course is None:
        return members.size
    n_passes = int(job.settings.max_iter) - training.n_passes
    return n_passes * members.size - training.course.n_visited


def _pass_over(
    job: KernelJob, training: KernelTraining, data: TrainingData, members: Array, report: Report
) -> None:
    course, order = _course_of(training), members.copy()
    make_lines(training)
    if course.mixed_by is None:
        course.mixed_by = training.generator.bit_generator.state
    if job.settings.shuffle:
        training.generator.bit_generator.state = course.mixed_by
        shuffle(order, training.generator)
    is_new = training.n_passes == 0 and course.first_number == 0
    told = report if is_new else without_errors(report)
    _visit(job, training, data, order[course.n_visited :], course.first_number, told)
    course.n_visited, course.mixed_by = 0, None
    for model in training.models:
        model.is_over = job.algorithm.end_pass(model, job.settings)


def _learn(
    job: KernelJob, training: KernelTraining, data: TrainingData, members: Array, report: Report
) -> None:
    make_lines(training)
    first_number = training.n_seen
    training.n_seen += data.labels.size
    _visit(job, training, data, members, first_number, report)


def _visit(
    job: KernelJob,
    training: KernelTraining,
    data: TrainingData,
    order: Array,
    first_number: int,
    report: Report,
) -> None:
    learn = job.algorithm.learn or learn_in_chunks
    learn(job, training, data, order, first_number, report)


def learn_in_chunks(
    job: KernelJob,
    training: KernelTraining,
    data: TrainingData,
    order: Array,
    first_number: int,
    report: Report,
) -> None:
    """Visit the rows of `order`, by one block of kernel values for each chunk of them."""
    size, n_threads = int(job.settings.pack), job.settings.n_threads
    for start in range(0, order.size, size):
        part = order[start : start + size]
        learn_chunk(training, data, part, first_number, job.algorithm, n_threads, report)


def _is_over(job: KernelJob, training: KernelTraining) -> bool:
    is_last = training.n_passes >= job.settings.max_iter
    return is_last or all(model.is_over for model in training.models)


def _complete(
    job: KernelJob, training: KernelTraining, data: TrainingData | None, members: Array | None
) -> None:
    if job.settings.finishes:
        make_lines(training)
        for model in one_by_one(training):
            job.algorithm.complete(training, model, job.settings)


def _record(algorithm: KernelAlgorithm, training: KernelTraining, combine: str) -> KernelRecord:
    return training.record(algorithm.finish, combine)


KERNELS: Family[Any] = Family(
    unit="support vectors",
    explains=False,
    has_constant=False,
    check=_check,
    check_streamable=_check_streamable,
    new=_new,
    meet=_meet,
    meet_chunk=_meet_chunk,
    begin=_begin,
    count_steps=_count_steps,
    pass_over=_pass_over,
    learn=_learn,
    is_over=_is_over,
    complete=_complete,
    record=_record,
)
