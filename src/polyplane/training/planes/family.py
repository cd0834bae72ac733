"""Functions that the shell calls for trainings of planes."""

from collections.abc import Callable
from typing import Any

from polyplane.arrays import Array
from polyplane.engine.rows.storage import with_own_page
from polyplane.model.plane_record import FinishedPlanes, PlaneRecord
from polyplane.training.family import Family
from polyplane.training.job import NewRows
from polyplane.training.planes import passes
from polyplane.training.planes.algorithm import PlaneAlgorithm, PlaneJob, nothing
from polyplane.training.planes.models import meet_rows, new_training
from polyplane.training.planes.state import PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData
from polyplane.training.work.progress import Report, silence
from polyplane.training.work.side_by_side import for_each

__all__ = ["PLANES", "meet_chunk", "record_as_seen", "record_of", "wrong_rows"]


def _check_streamable(job: PlaneJob, begins: bool) -> None:
    algorithm, settings = job
    for name in settings.open_of(algorithm.searched):
        raise ValueError(f'{name}="auto" needs all rows at once, not a stream: give a number.')
    if begins and algorithm.stream is None and algorithm.starts_from_rows(settings):
        raise ValueError(
            f'init="{settings.init}" needs all rows at once, not a stream: leave init="random".'
        )


def meet_chunk(
    job: PlaneJob, before: PlaneTraining | None, rows: NewRows, members: Array
) -> tuple[PlaneTraining, TrainingData, Array]:
    """Return the training that knows a chunk, the chunk as its steps see it, and rows to visit."""
    stream = job.algorithm.stream
    if stream is not None:
        training, seen, members = stream.begin_chunk(job, before, rows, members)
    else:
        training, seen = meet_rows(job, before or new_training(job, rows), rows)
    if before is None:
        training.n_passes = 1
    training.end_fit()
    return training, seen, members


def _complete(
    job: PlaneJob, training: PlaneTraining, data: TrainingData | None, members: Array | None
) -> None:
    algorithm, settings = job
    if data is None or members is None or algorithm.complete is nothing:
        return

    def complete(k: int, _: Report) -> None:
        own = data._replace(rows=with_own_page(data.rows))
        algorithm.complete(training.models[k], own, settings, members)

    for_each(complete, len(training.models), settings.n_threads, silence)


def record_of(algorithm: PlaneAlgorithm, training: PlaneTraining, combine: str) -> PlaneRecord:
    """Return the classifier reached."""
    columns = training.columns

    def finish(model: PlaneModel) -> FinishedPlanes:
        finished = algorithm.planes_of(model)
        return finished._replace(sums=columns.folded(finished.sums, model.constant))

    return _record(algorithm, training, combine, finish)


def record_as_seen(algorithm: PlaneAlgorithm, training: PlaneTraining, combine: str) -> PlaneRecord:
    """Return the classifier reached, for rows as steps see them."""
    return _record(algorithm, training, combine, algorithm.planes_of)


def _record(
    algorithm: PlaneAlgorithm,
    training: PlaneTraining,
    combine: str,
    finish: Callable[[PlaneModel], FinishedPlanes],
) -> PlaneRecord:
    return training.record(finish, combine, algorithm.empty_score, algorithm.is_soft)


def wrong_rows(job: PlaneJob, training: PlaneTraining, data: TrainingData, order: Array) -> Array:
    """Return which of these rows, as they are, a training gets wrong."""
    rows = training.columns.for_prediction(data.rows)
    record = record_of(job.algorithm, training, job.settings.combine)
    found = record.classes_of(rows, order, job.settings.n_threads)
    is_wrong: Array = found != training.ranks[data.labels[order]]
    return is_wrong


PLANES: Family[Any] = Family(
    unit="planes",
    explains=True,
    has_constant=True,
    check=nothing,
    check_streamable=_check_streamable,
    new=new_training,
    meet=meet_rows,
    meet_chunk=meet_chunk,
    begin=passes.begin_fit,
    count_steps=passes.count_steps_left,
    pass_over=passes.pass_over,
    learn=passes.learn_chunk,
    is_over=passes.is_over,
    complete=_complete,
    record=record_of,
)
