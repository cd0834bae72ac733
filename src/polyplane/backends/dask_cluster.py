"""Training on a Dask cluster, for rows that no one machine holds.

A round   The partitions are shared out to learners, by default one for each thread of a worker.
          Every learner goes on from the shared model over its partitions, one after the other;
          what they reach is mixed in pairs (`engine/planes/mixing.py`) to the next shared model.
Learners  Which partition is whose follows from their numbers alone, and so does the order in which
          models are mixed: the result depends on `learners`, not on where tasks ran. Only where
          that is left out, and workers hold rows already, each learns what it holds. One learner
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
from typing import Any

from polyplane.arrays import Array
from polyplane.backends.dask_cascade import ROUNDS, fit_cascade, is_cascade
from polyplane.backends.dask_machines import check_mixable, is_to_go_on
from polyplane.backends.dask_needed import Client, default_client
from polyplane.backends.dask_partitions import mix_rows, partitions_of
from polyplane.backends.dask_portfolio import fit_portfolio, is_portfolio
from polyplane.backends.dask_prediction import Evaluation, evaluate, predict
from polyplane.backends.dask_rounds import (
    MIN_COSINE_OF_ONE_PLANE,
    after_round,
    check_mixes,
    one_stretch,
    plan_of,
    rows_as_seen,
)
from polyplane.backends.dask_rows import (
    LoadedRows,
    faults_in_words,
    load_rows,
    result_of_sample,
    sampled,
)
from polyplane.backends.dask_starts import first_model, needs_sample, that_travels
from polyplane.backends.dask_stream import partial_fit
from polyplane.data.chunks import Chunk
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.input.tables import layout_of
from polyplane.estimator.learners.travelling_models import completed, count_passes
from polyplane.training.work.progress import Report, progress

__all__ = [
    "MIN_COSINE_OF_ONE_PLANE", "ROUNDS", "Evaluation", "bytes_sent", "evaluate", "fit", "mix_rows",
    "partial_fit", "predict", "sample",
]  # fmt: skip


def fit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    client: Client | None = None,
    rounds: int | None = None,
    learners: int | None = None,
    mixes: float | None = None,
    alike: float = MIN_COSINE_OF_ONE_PLANE,
    checkpoint: Any = None,
    resume: bool = False,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """Train an estimator on the rows of a cluster; return it.

    rounds      passes over all partitions; by default `max_iter`.
    learners    models trained side by side; by default one for each worker's thread.
    mixes       how often they become one in a pass: 4 times, and 20 in all at most; or less than
                once, such as 1/2, in every second pass.
    alike       cosine from which new planes of two learners are taken for one.
    checkpoint  a model file that is written after each round.
    resume      go on from the rounds that the estimator, such as `load(checkpoint)`, has made.
    callback    is called with the estimator after each round.
    options     of `polyplane.read`, where X names files.

    After Ctrl-C the estimator is what the last complete round made of it, and so it is after a
    ConnectionError, where the cluster is lost.
    """
    client = client or default_client()
    cascades, blends = is_cascade(estimator), is_portfolio(estimator)
    if blends and resume:
        raise ValueError(
            "PolyplaneClassifier cannot resume on a cluster, where its recipes are trained one "
            "after the other: fit again."
        )
    if not (cascades or blends):
        check_mixable(estimator)
    if any(given is not None and given < 1 for given in (rounds, learners)):
        raise ValueError("rounds and learners must be whole numbers of at least 1.")
    check_mixes(mixes)
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
        elif blends:
            way = learners, mixes, alike

            def train(algorithm: Any) -> PackedModel:
                return _make_passes(algorithm, rows, way, False, lambda model: None)

            fit_portfolio(estimator, rows, rounds, train, after)
        else:
            travelling = that_travels(estimator, rows, rounds, goes_on)
            _make_passes(travelling, rows, (learners, mixes, alike), goes_on, after)
    return estimator


def sample(
    X: Any,
    y: Any = None,
    *,
    n_rows: int = 20_000,
    client: Client | None = None,
    **options: Any,
) -> tuple[Any, Array]:
    """Bring a sample of about so many rows of all partitions here; return X and y.

    A sample holds at least 100 rows of each class, where there are as many, and of other rows the
    share that is asked for.
    """
    if n_rows < 1:
        raise ValueError("n_rows must be a whole number of at least 1.")
    client = client or default_client()
    n_threads = max(1, sum(client.nthreads().values()))
    with faults_in_words():
        rows = load_rows(client, partitions_of(X, y, options, n_threads), n_threads)
        found: Chunk = result_of_sample(sampled(rows, n_rows))
    return found.X, found.y


def _make_passes(
    estimator: Any,
    rows: LoadedRows,
    way: tuple[int | None, float | None, float],
    goes_on: bool,
    after: Callable[[PackedModel], None],
) -> PackedModel:
    """Make all passes that are left; return the model reached."""
    learners, mixes, alike = way
    sample = sampled(rows) if needs_sample(estimator, rows) else None
    model = packed(estimator) if goes_on else first_model(estimator, rows, sample)
    begun = unpacked(model)
    n_done, n_passes = int(begun.n_iter_), count_passes(begun)
    if sample is not None and not goes_on:  # else rows may come to columns that are new
        rows = rows_as_seen(rows, estimator, model)
    plan = plan_of(rows, learners, mixes, n_passes)
    n_rows = (n_passes - n_done) * int(rows.census().n_rows.sum())
    shown = type(estimator).__name__, n_rows, bool(estimator.verbose)
    with progress(*shown, is_elsewhere=True) as report:
        for stretch in plan.stretches(n_done, n_passes):
            told = partial(_report, report, int(unpacked(model).n_planes_))
            model = one_stretch(rows.client, model, plan, stretch, n_passes, alike, told)
            if stretch[1] == n_passes and sample is not None:
                task = rows.client.submit(_completed, model, sample, pure=False)
                model = result_of_sample(task)
            after(model)
    return model


def _report(report: Report, size: int, n_rows: int) -> None:
    report(n_rows, size, math.nan)  # how many were wrong nobody has asked the learners


def bytes_sent(client: Client) -> int:
    """Bytes that the workers of a cluster have handed out so far, to each other and to clients."""
    return sum(client.run(_sent_by).values())


def _sent_by(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _completed(model: PackedModel, sample: Chunk) -> PackedModel:
    return completed(model, sample.X, sample.y)
