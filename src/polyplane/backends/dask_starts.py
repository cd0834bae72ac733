"""Start of training on a Dask cluster: the estimator of the learners, and its first model."""

from typing import Any

import numpy as np
from sklearn.base import clone

from polyplane.arrays import Array
from polyplane.backends.dask_rows import LoadedRows, holders_of, near, result_of, result_of_sample
from polyplane.data.chunks import Chunk
from polyplane.data.table.frames import is_frame
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.input.tables import layout_of, take_layout
from polyplane.estimator.learners.travelling_models import Census, begun, begun_by_sample
from polyplane.estimator.online_classifier import weights_of_classes
from polyplane.estimator.shell import job_of

__all__ = ["first_model", "needs_sample", "that_travels"]


def that_travels(estimator: Any, rows: LoadedRows, rounds: int | None, goes_on: bool) -> Any:
    """The estimator as learners have it: what all rows and rounds settle is said in numbers."""
    travelling = unpacked(packed(estimator)) if goes_on else clone(estimator)
    if goes_on and not rows.surveys[0].is_table:
        take_layout(travelling)  # rows of files are laid out as they are read
    if goes_on:
        _check_known(travelling, rows)
    is_soft = travelling.algorithm.is_soft  # then fits divide weights by their mean
    travelling.set_params(class_weight=weights_of_classes(estimator, *rows.census(), is_soft))
    return travelling if rounds is None else travelling.set_params(max_iter=int(rounds))


def needs_sample(estimator: Any, rows: LoadedRows) -> bool:
    """Return True if it begins, or ends, with what only many rows of all kinds can tell."""
    algorithm, settings = job_of(estimator, {})
    is_to_find = len(settings.open_of(algorithm.searched)) > 0
    return rows.surveys[0].is_table or is_to_find or algorithm.starts_from_rows(settings)


def first_model(estimator: Any, rows: LoadedRows, sample: Any) -> PackedModel:
    """The model before the first step, that all learners share."""
    if sample is not None:
        words = estimator, sample, rows.n_columns, rows.census()
        model: PackedModel = result_of_sample(rows.client.submit(_begun_by, *words, pure=False))
        return model
    has_begun = False
    for number, chunk in zip(rows.numbers, rows.chunks, strict=True):
        if has_begun:
            break
        told = estimator, chunk, rows.classes, rows.n_columns
        here = near(holders_of(rows.client, [chunk])[chunk.key])
        task = rows.client.submit(_begun, *told, pure=False, **here)
        estimator, has_begun = result_of(task, number)
    return packed(estimator)


def _check_known(estimator: Any, rows: LoadedRows) -> None:
    """A mixture needs planes of the same classes and columns from all learners."""
    unknown = np.setdiff1d(rows.classes, estimator.classes_)
    if unknown.size:
        raise ValueError(f"y holds labels that the model to resume does not: {unknown.tolist()}.")
    if rows.n_columns > estimator.n_features_in_:
        raise ValueError(
            f"X has {rows.n_columns} columns, and the model to resume {estimator.n_features_in_}."
        )


def _begun(estimator: Any, chunk: Chunk, classes: Array, n_columns: int) -> tuple[Any, bool]:
    estimator = clone(estimator) if training_of(estimator) is None else estimator
    has_begun = begun(estimator, chunk.X, chunk.y, classes, n_columns)
    _check_no_gaps(estimator, chunk)
    return estimator, has_begun


def _check_no_gaps(estimator: Any, chunk: Chunk) -> None:
    if layout_of(estimator) is not None and not is_frame(chunk.X):
        raise ValueError("X has gaps (NaN), which a cluster takes from dask dataframes only")


def _begun_by(estimator: Any, sample: Chunk, n_columns: int, census: Census) -> PackedModel:
    estimator = clone(estimator)
    begun_by_sample(estimator, sample.X, sample.y, n_columns, census)
    _check_no_gaps(estimator, sample)
    return packed(estimator)
