"""Rows without end on a Dask cluster: each partition is made, learned and let go of in one task.

A round   The next partitions are shared out to the learners. One task of a learner makes its rows,
          or reads them, and learns them, partition by partition; it holds one of them at a time,
          and only what it has reached leaves it.
Begin     The first rows of all are learned by one learner. Learners that begin by themselves find
          the same planes each, not alike enough to be told for one: on generated digits two of them
          had 114 planes where one process has 66, and every step looks at all planes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from polyplane.arrays import Array
from polyplane.backends.dask_machines import check_mixable, is_to_go_on
from polyplane.backends.dask_needed import Client, Future, dask, default_client
from polyplane.backends.dask_partitions import Partition, is_dask_frame, partitions_of, told_apart
from polyplane.backends.dask_rounds import MIN_COSINE_OF_ONE_PLANE, Parcel, after_round, mixture_of
from polyplane.backends.dask_rows import faults_in_words, layout_of_files, near, unusable
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.table.frames import is_frame
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.input.tables import layout_of, take_layout
from polyplane.estimator.learners.travelling_models import Journey, Moment, has_begun
from polyplane.hyperplane.soft_planes import SoftPlanesClassifier

__all__ = ["partial_fit"]

PARTITIONS_BETWEEN_MIXTURES = 4  # partitions of a learner between mixtures
FIRST_ROWS = 10_000  # that one learner learns: planes are there by then, and one pruning


def partial_fit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    classes: Any = None,
    client: Client | None = None,
    learners: int | None = None,
    every: int = PARTITIONS_BETWEEN_MIXTURES,
    alike: float = MIN_COSINE_OF_ONE_PLANE,
    checkpoint: Any = None,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """Visit all rows once, in the order given, without keeping them; return the estimator.

    classes     all labels there will be, at the first call.
    learners    models trained side by side; by default one for each worker's thread.
    every       partitions that a learner visits before they become one again.
    alike       cosine from which new planes of two learners are taken for one.
    checkpoint  a model file that is written after each mixture.
    callback    is called with the estimator after each mixture.
    options     of `polyplane.read`, where X names files.

    After Ctrl-C, or where the cluster is lost, the estimator is that of the last mixture.
    """
    client = client or default_client()
    _check_streamable(estimator, X, classes)
    if any(given is not None and given < 1 for given in (learners, every)):
        raise ValueError("learners and every must be whole numbers of at least 1.")
    n_learners = learners or max(1, sum(client.nthreads().values()))
    goes_on = is_to_go_on(estimator, training_of(estimator) is not None)
    with faults_in_words():
        known = layout_of(estimator) if goes_on else None
        parts = told_apart(client, partitions_of(X, y, options, n_learners, known))
        layout = layout_of_files(client, parts)
        sources = [_Source(_lean(part), number) for number, part in enumerate(parts)]
        if goes_on:
            travelling = unpacked(packed(estimator)).set_params(shuffle=False)
            take_layout(travelling)
            model = packed(travelling)
        else:
            model, sources = _first_model(client, clone(estimator), sources, np.asarray(classes))
        after = partial(after_round, estimator, layout, checkpoint, callback)
        _make_rounds(client, model, sources, (n_learners, every, alike), after)
    return estimator


def _check_streamable(estimator: Any, X: Any, classes: Any) -> None:
    check_mixable(estimator)
    name = type(estimator).__name__
    if isinstance(estimator, SoftPlanesClassifier):
        raise TypeError(
            f"{name} looks at many rows before its first step: give it to dask_cluster.fit."
        )
    if is_dask_frame(X):
        raise TypeError("X is a dataframe, whose layout dask_cluster.fit learns: give arrays here.")
    if classes is None and training_of(estimator) is None:
        raise ValueError(f"{name} is not fitted: give classes, all labels that there will be.")


class _Source(NamedTuple):
    """A partition as a task gets it: not its rows, but how to come by them."""

    rows: Any  # delayed
    number: int
    n_learned: int = 0  # of its rows, the first

    def chunk(self) -> Chunk:
        """Its rows, made here."""
        (found,) = dask.compute(self.rows, scheduler="synchronous")
        if is_frame(found.X):
            raise ValueError("its rows are a table: give arrays, sparse matrices or files")
        if self.n_learned == 0:
            return Chunk(*found)
        return Chunk(found.X[self.n_learned :], found.y[self.n_learned :])


def _lean(part: Partition) -> Any:
    """Return a partition as a task of its own, without the rows of others."""
    (lean,) = dask.optimize(part.chunk)
    if any(isinstance(task, Future) for task in dict(lean.dask).values()):
        raise ValueError("X is on the workers already, where dask_cluster.fit learns it.")
    return lean


def _first_model(
    client: Client, estimator: Any, sources: Sequence[_Source], classes: Array
) -> tuple[PackedModel, list[_Source]]:
    """Return the model after the first rows, and the partitions that are left.

    It goes on until all models of the estimator have met a row that they visit.
    """
    estimator.set_params(shuffle=False)
    for place, source in enumerate(sources):
        task = client.submit(_begun, estimator, _Sealed([source]), classes, pure=False)
        estimator, n_learned = task.result()
        if training_of(estimator) is not None and has_begun(training_of(estimator)):
            return packed(estimator), [source._replace(n_learned=n_learned), *sources[place + 1 :]]
    if training_of(estimator) is None:
        raise ValueError(f"X has no rows in any of its {len(sources)} partitions.")
    return packed(estimator), []


class _Sealed:
    """Sources in a task's arguments: Dask would look into a list, and compute what is in it."""

    def __init__(self, sources: Sequence[_Source]) -> None:
        self.sources = sources


def _begun(estimator: Any, sealed: _Sealed, classes: Array) -> tuple[Any, int]:
    """Return the estimator after the first rows, and the number of rows that it has learned."""
    chunk = sealed.sources[0].chunk()
    n_rows = chunk.X.shape[0]
    for some in (slice(FIRST_ROWS), slice(FIRST_ROWS, None)):
        if chunk.y[some].size:
            estimator.partial_fit(chunk.X[some], chunk.y[some], classes=classes)
            if has_begun(training_of(estimator)):
                return estimator, min(n_rows, FIRST_ROWS) if some.start is None else n_rows
    return estimator, n_rows


def _make_rounds(
    client: Client,
    model: PackedModel,
    sources: Sequence[_Source],
    way: tuple[int, int, float],
    after: Callable[[PackedModel], None],
) -> None:
    n_learners, every, alike = way
    n_a_round = n_learners * every
    starts = range(0, len(sources), n_a_round)
    if not starts:
        after(model)
    for k, start in enumerate(starts):
        some = sources[start : start + n_a_round]
        groups = np.array_split(np.arange(len(some)), min(n_learners, len(some)))
        shared = [[some[place] for place in group] for group in groups]
        model = _one_round(client, model, shared, Moment(k, len(starts), 0), alike)
        after(model)


def _one_round(
    client: Client,
    before: PackedModel,
    groups: Sequence[Sequence[_Source]],
    moment: Moment,
    alike: float,
) -> PackedModel:
    """A task a learner, and the mixture."""
    workers = sorted(client.nthreads())
    (model,) = client.scatter([Parcel(before)], broadcast=True, hash=False)
    begun_here = [model]
    try:
        for number, group in enumerate(groups):
            end = partial(Journey.alone, moment=moment) if len(groups) == 1 else Journey.shares
            here = near([workers[number % len(workers)]])
            begun_here.append(client.submit(_learn, model, _Sealed(group), end, pure=False, **here))
        last = begun_here[1]
        if len(groups) > 1:
            last = mixture_of(client, model, begun_here[1:], moment, alike, begun_here)
        reached: PackedModel = last.result().content
        return reached
    except BaseException:
        client.cancel(begun_here)
        raise


def _learn(model: Parcel, sealed: _Sealed, end: Callable[[Journey], Any]) -> Parcel:
    """Return the result of a learner after its partitions."""
    journey = Journey(model.content)
    for source in sealed.sources:
        try:
            chunk = source.chunk()
            if chunk.X.shape[0] > 0:
                journey.visit(chunk.X, chunk.y)
        except DataError:
            raise
        except (OSError, TypeError, ValueError) as error:
            raise unusable(source.number, error) from error
    return Parcel(end(journey))
