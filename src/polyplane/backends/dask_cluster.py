"""Training, prediction and evaluation on a Dask cluster, for rows that no one machine holds.

A round   The partitions are shared out to learners, by default one for each thread of a worker.
          Every learner goes on from the shared model over its partitions, one after the other;
          what they reach is mixed in pairs (`engine/planes/mixing.py`) to the next shared model.
Learners  Which partition is whose follows from their numbers alone, and so does the order in which
          models are mixed: the result depends on `learners`, not on where tasks ran. One learner
          with one partition is `fit`, to the last bit.
Rows      In a round a task goes to where its partition is. A learner's tasks wait for each other,
          so that none stands in a queue from which Dask might move it, and its rows, to an idle
          worker.
Faults    A task is a pure function of the shared model and a partition, which Dask runs again where
          a worker is lost. The shared model is on every worker; no round depends on earlier ones.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polyplane.backends.dask_cascade import ROUNDS, fit_cascade, is_cascade
from polyplane.backends.dask_look import explore, sample
from polyplane.backends.dask_machines import check_mixable, is_to_go_on
from polyplane.backends.dask_needed import Client, da, default_client, delayed
from polyplane.backends.dask_partitions import is_array_like, mix_rows, partitions_of
from polyplane.backends.dask_rounds import ALIKE, after_round, one_round, rounds_of_pass
from polyplane.backends.dask_rows import (
    LoadedRows,
    faults_in_words,
    holders_of,
    load_rows,
    near,
    result_of,
    result_of_sample,
    sampled,
)
from polyplane.backends.dask_stream import partial_fit
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import Chunk
from polyplane.data.table.frames import is_frame
from polyplane.engine.planes.planes import Array
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.progress import Report, progress
from polyplane.estimator.input.tables import layout_of, take_layout, width_of
from polyplane.estimator.online_classifier import training_of, weights_of_classes
from polyplane.estimator.planes.rounds.travelling_models import (
    Census,
    Moment,
    begun,
    begun_by_sample,
    completed,
    count_passes,
)

__all__ = [
    "ALIKE", "ROUNDS", "Evaluation", "bytes_sent", "evaluate", "explore", "fit", "mix_rows",
    "partial_fit", "predict", "sample",
]  # fmt: skip

MIXES = 4  # in a pass: two learners lose a little less than by mixing once (docs/dask.md)

# ---- training ----------------------------------------------------------------------------


def fit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    client: Client | None = None,
    rounds: int | None = None,
    learners: int | None = None,
    mixes: int = MIXES,
    alike: float = ALIKE,
    checkpoint: Any = None,
    resume: bool = False,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """Train an estimator on the rows of a cluster; return it.

    rounds      passes over all partitions; by default `max_iter`.
    learners    models trained side by side; by default one for each worker's thread.
    mixes       how often they become one in a pass.
    alike       cosine from which new planes of two learners are taken for one.
    checkpoint  a model file that is written after each round.
    resume      go on from the rounds that the estimator, such as `load(checkpoint)`, has made.
    callback    is called with the estimator after each round.
    options     of `polyplane.read`, where X names files.

    After Ctrl-C the estimator is what the last complete round made of it, and so it is after a
    ConnectionError, where the cluster is lost.
    """
    client = client or default_client()
    cascades = is_cascade(estimator)
    if not cascades:
        check_mixable(estimator)
    if any(given is not None and given < 1 for given in (rounds, learners, mixes)):
        raise ValueError("rounds, learners and mixes must be whole numbers of at least 1.")
    goes_on = is_to_go_on(estimator, resume)
    n_learners = learners or max(1, sum(client.nthreads().values()))
    layout = layout_of(estimator) if goes_on else None
    parts = partitions_of(X, y, options, n_learners, layout)
    with faults_in_words():
        rows = load_rows(client, parts, n_learners)
    after = partial(after_round, estimator, rows.layout, checkpoint, callback)
    with faults_in_words():
        if cascades:
            fit_cascade(estimator, rows, rounds or ROUNDS, goes_on, after)
        else:
            machine = _that_travels(estimator, rows, rounds, goes_on)
            _make_passes(machine, rows, (n_learners, mixes, alike), goes_on, after)
    return estimator


def _make_passes(
    machine: Any,
    rows: LoadedRows,
    way: tuple[int, int, float],
    goes_on: bool,
    after: Callable[[PackedModel], None],
) -> None:
    """All passes that are left."""
    n_learners, n_mixes, alike = way
    rounds = rounds_of_pass(rows, n_learners, n_mixes)
    sample = sampled(rows) if _needs_sample(machine, rows) else None
    model = packed(machine) if goes_on else _first_model(machine, rows, sample)
    begun = unpacked(model)
    n_done, n_passes = int(begun.n_iter_), count_passes(begun)
    n_rows = (n_passes - n_done) * int(rows.census().n_rows.sum())
    shown = type(machine).__name__, n_rows, bool(machine.verbose)
    with progress(*shown, is_elsewhere=True) as report:
        for number in range(n_done, n_passes):
            told = partial(_report, report, int(unpacked(model).n_planes_))
            for k, learners in enumerate(rounds):
                n_before, is_end = number * len(rounds) + k, k + 1 == len(rounds)
                moment = Moment(n_before, n_passes * len(rounds), is_end)
                model = one_round(rows.client, model, learners, moment, alike, told)
            if number == n_passes - 1 and sample is not None:
                task = rows.client.submit(_completed, model, sample, pure=False)
                model = result_of_sample(task)
            after(model)


def _report(report: Report, size: int, n_rows: int) -> None:
    report(n_rows, size, math.nan)  # how many were wrong nobody has asked the learners


def bytes_sent(client: Client) -> int:
    """Bytes that the workers of a cluster have handed out so far, to each other and to clients."""
    return sum(client.run(_sent_by).values())


def _sent_by(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _that_travels(estimator: Any, rows: LoadedRows, rounds: int | None, goes_on: bool) -> Any:
    """The estimator as learners have it: what all rows and rounds settle is said in numbers."""
    machine = unpacked(packed(estimator)) if goes_on else clone(estimator)
    if goes_on and not rows.surveys[0].is_table:
        take_layout(machine)  # rows of files are laid out as they are read
    if goes_on:
        _check_known(machine, rows)
    machine.set_params(class_weight=weights_of_classes(estimator, *rows.census()))
    return machine if rounds is None else machine.set_params(max_iter=int(rounds))


def _needs_sample(machine: Any, rows: LoadedRows) -> bool:
    """Whether it begins, or ends, with what only many rows of all kinds can tell."""
    is_to_find = "auto" in (machine.alpha, getattr(machine, "entropy", None))
    starts_from_rows = getattr(machine, "init", "random") != "random"
    return rows.surveys[0].is_table or is_to_find or starts_from_rows


def _first_model(machine: Any, rows: LoadedRows, sample: Any) -> PackedModel:
    """The model before the first step, that all learners share."""
    if sample is not None:
        words = machine, sample, rows.n_columns, rows.census()
        model: PackedModel = result_of_sample(rows.client.submit(_begun_by, *words, pure=False))
        return model
    has_begun = False
    for number, chunk in zip(rows.numbers, rows.chunks, strict=True):
        if has_begun:
            break
        told = machine, chunk, rows.classes, rows.n_columns
        here = near(holders_of(rows.client, [chunk])[chunk.key])
        task = rows.client.submit(_begun, *told, pure=False, **here)
        machine, has_begun = result_of(task, number)
    return packed(machine)


def _check_known(estimator: Any, rows: LoadedRows) -> None:
    """A mixture needs planes of the same classes and columns from all learners."""
    unknown = np.setdiff1d(rows.classes, estimator.classes_)
    if unknown.size:
        raise ValueError(f"y holds labels that the model to resume does not: {unknown.tolist()}.")
    if rows.n_columns > estimator.n_features_in_:
        raise ValueError(
            f"X has {rows.n_columns} columns, and the model to resume {estimator.n_features_in_}."
        )


def _begun(machine: Any, chunk: Chunk, classes: Array, n_columns: int) -> tuple[Any, bool]:
    machine = clone(machine) if training_of(machine) is None else machine
    has_begun = begun(machine, chunk.X, chunk.y, classes, n_columns)
    _check_no_gaps(machine, chunk)
    return machine, has_begun


def _check_no_gaps(machine: Any, chunk: Chunk) -> None:
    if layout_of(machine) is not None and not is_frame(chunk.X):
        raise ValueError("X has gaps (NaN), which a cluster takes from dask dataframes only")


def _begun_by(machine: Any, sample: Chunk, n_columns: int, census: Census) -> PackedModel:
    machine = clone(machine)
    begun_by_sample(machine, sample.X, sample.y, n_columns, census)
    _check_no_gaps(machine, sample)
    return packed(machine)


def _completed(model: PackedModel, sample: Chunk) -> PackedModel:
    return completed(model, sample.X, sample.y)


# ---- prediction --------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """How a model does on the rows of a cluster."""

    n_rows: int
    error: float  # share of wrong rows
    labels: Array  # of rows and of the model, sorted
    confusions: Array  # rows of label i that were called j


def predict(estimator: Any, X: Any, **options: Any) -> Any:
    """Labels of the rows of X, computed when and where Dask is asked for them.

    Of dask arrays and dataframes it is a dask array; of chunks and files a list of delayed arrays.
    """
    check_is_fitted(estimator)
    parts = partitions_of(X, None, options, layout=layout_of(estimator))
    # a part of the graph: scattered, it could be let go of before the graph has arrived
    model = delayed(packed(estimator, training=False), traverse=False)
    made = [delayed(_predicted)(model, part.chunk) for part in parts]
    if not is_array_like(X):
        return made
    sizes = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(made)
    dtype = estimator.classes_.dtype
    arrays = [
        da.from_delayed(one, shape=(size,), dtype=dtype)
        for one, size in zip(made, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def evaluate(
    estimator: Any, X: Any, y: Any = None, *, client: Client | None = None, **options: Any
) -> Evaluation:
    """Compare predictions with labels on the workers; only counts come back."""
    client = client or default_client()
    check_is_fitted(estimator)
    (model,) = client.scatter([packed(estimator, training=False)], broadcast=True, hash=False)
    given = partitions_of(X, y, options, layout=layout_of(estimator))
    tasks = [delayed(_counted)(model, part.chunk) for part in given]
    parts = [result_of(future, k) for k, future in enumerate(client.compute(tasks))]
    labels: Array = np.unique(np.concatenate([known for known, _ in parts]))
    confusions = np.zeros((labels.size, labels.size), np.int64)
    for known, counts in parts:
        places = np.searchsorted(labels, known)
        confusions[np.ix_(places, places)] += counts
    n_rows = int(confusions.sum())
    error = 1 - np.trace(confusions) / n_rows if n_rows else float("nan")
    return Evaluation(n_rows, float(error), labels, confusions)


def _predicted(model: PackedModel, chunk: Chunk) -> Array:
    machine = unpacked(model)
    if chunk.X.shape[0] == 0:
        return np.empty(0, machine.classes_.dtype)
    X = widened(chunk.X, width_of(machine)) if sp.issparse(chunk.X) else chunk.X
    labels: Array = machine.predict(X)
    return labels


def _counted(model: PackedModel, chunk: Chunk) -> tuple[Array, Array]:
    """Labels, and how many rows of each were called what."""
    called = _predicted(model, chunk)
    if chunk.y.shape != called.shape:
        raise ValueError("there are no labels to compare with")
    labels = np.unique(np.concatenate([unpacked(model).classes_, chunk.y]))
    places = np.searchsorted(labels, chunk.y) * labels.size + np.searchsorted(labels, called)
    counts = np.bincount(places, minlength=labels.size**2)
    return labels, counts.reshape(labels.size, labels.size)
