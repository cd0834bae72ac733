"""Every alpha, fold and seed of a machine across a Dask cluster, by the rounds of one fit.

All models of the path go through the same rounds (`dask_rounds.py`): a learner trains each of them
on its partitions, where these are, and each is mixed with its like. A partition is cut into folds
by itself; a model that leaves out a fold does not visit its rows in any partition, and is tried on
them where they are. Counts of wrong rows come back and add up. What is seen by them, and which
alphas are clearly behind, is settled as in one process (`tuning/alpha_path.py`).
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from polyplane.backends.dask_machines import check_mixable
from polyplane.backends.dask_needed import Client, default_client
from polyplane.backends.dask_partitions import partitions_of
from polyplane.backends.dask_prediction import predicted_by
from polyplane.backends.dask_rounds import (
    ALIKE,
    Bundle,
    HeldOut,
    after_round,
    check_mixes,
    one_stretch,
    plan_of,
    together,
)
from polyplane.backends.dask_rows import (
    LoadedRows,
    faults_in_words,
    holders_of,
    load_rows,
    near,
    sampled,
    unusable,
)
from polyplane.backends.dask_starts import first_model, needs_sample, that_travels
from polyplane.data.chunks import Chunk
from polyplane.data.table.frames import is_frame
from polyplane.engine.planes.planes import Array
from polyplane.estimator.files.saving import PackedModel, unpacked
from polyplane.estimator.fitting.progress import Report, progress
from polyplane.estimator.online_classifier import training_of
from polyplane.estimator.planes.rounds.travelling_models import count_passes
from polyplane.estimator.planes.setting_trials import NO_PART
from polyplane.tuning.alpha_path import (
    AlphaPath,
    Look,
    PathNotes,
    added,
    alphas_to_try,
    is_time_to_look,
    look_of,
    seeds_after,
)

__all__ = ["alpha_path"]


class _Trial(NamedTuple):
    """One model of the path."""

    alpha: int  # its place
    left_out: int  # a fold, or NO_PART
    seed: int  # its place


_Reached = dict[_Trial, PackedModel]


def alpha_path(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    alphas: Sequence[float] | None = None,
    cv: int = 5,
    n_seeds: int = 1,
    halving: bool = False,
    client: Client | None = None,
    learners: int | None = None,
    mixes: float | None = None,
    alike: float = ALIKE,
    **options: Any,
) -> AlphaPath:
    """Train and try a hyperplane machine with each of `alphas` on the rows of a cluster.

    X, y, `learners`, `mixes`, `alike` and `options` are those of `fit`, the rest is as in
    `polyplane.alpha_path`. The models are those that `fit` makes of all rows with each alpha.
    """
    values = alphas_to_try(estimator, alphas, cv, n_seeds)
    client = client or default_client()
    settled = clone(estimator).set_params(alpha=float(values[0]))
    check_mixable(settled)
    if learners is not None and learners < 1:
        raise ValueError("learners must be a whole number of at least 1.")
    check_mixes(mixes)
    n_learners = learners or max(1, sum(client.nthreads().values()))
    parts = partitions_of(X, y, options, n_learners)
    with faults_in_words():
        rows = load_rows(client, parts, n_learners)
        machine = that_travels(settled, rows, None, False)
        reached = _first_models(machine, rows, values, cv, n_seeds)
        tries, way = (cv, n_seeds, halving), (learners, mixes, alike)
        notes, reached = _make_passes(reached, rows, PathNotes(values), tries, way)
    return notes.path(_fitted(estimator, rows, values, reached))


def _first_models(machine: Any, rows: LoadedRows, alphas: Array, cv: int, n_seeds: int) -> _Reached:
    """All models before their first step, in which folds of one alpha and seed do not differ."""
    if not isinstance(machine.random_state, Integral):  # one that all alphas share
        drawn = check_random_state(machine.random_state).randint(2**31)
        machine.set_params(random_state=int(drawn))
    seeds = [machine.random_state, *seeds_after(int(machine.random_state), n_seeds)]
    sample = sampled(rows) if needs_sample(machine, rows) else None
    reached = {}
    for k, alpha in enumerate(alphas.tolist()):
        for j, seed in enumerate(seeds):
            own = clone(machine).set_params(alpha=alpha, random_state=seed)
            begun = first_model(own, rows, sample)
            for left_out in [*range(cv), *([NO_PART] if j == 0 else [])]:
                reached[_Trial(k, left_out, j)] = begun
    return reached


def _make_passes(
    reached: _Reached,
    rows: LoadedRows,
    notes: PathNotes,
    tries: tuple[int, int, bool],
    way: tuple[int | None, float | None, float],
) -> tuple[PathNotes, _Reached]:
    """All passes of all models, but of those that are left behind; what was seen on the way."""
    (cv, n_seeds, halving), (learners, mixes, alike) = tries, way
    machine = unpacked(next(iter(reached.values())))
    n_passes = count_passes(machine)
    plan = plan_of(rows, learners, mixes, n_passes)
    n_rows, shape = int(rows.census().n_rows.sum()), (notes.alphas.size, n_seeds)
    title = f"{type(machine).__name__}: {notes.alphas.size} alphas"
    n_steps, is_shown = len(reached) * n_passes * n_rows, bool(machine.verbose)
    with progress(title, n_steps, is_shown, is_elsewhere=True) as report:
        for done, n in plan.stretches(0, n_passes):
            held_out = HeldOut(cv, training_of(machine).seed, [one.left_out for one in reached])
            told = partial(_report, report, len(reached))
            models, words = list(reached.values()), (n_passes, alike, told, held_out)
            made = one_stretch(rows.client, models, plan, (done, n), *words)
            reached = dict(zip(reached, made, strict=True))
            if any(is_time_to_look(k, n_passes) for k in range(done + 1, n + 1)):
                notes.take(n, added(_looks(reached, rows, held_out, shape)))
                if halving and n < n_passes:
                    gone = set(notes.behind().tolist())
                    reached = {k: one for k, one in reached.items() if k.alpha not in gone}
    return notes, reached


def _report(report: Report, n_models: int, n_rows: int) -> None:
    report(n_rows * n_models, n_models, math.nan)


def _looks(
    reached: Mapping[_Trial, PackedModel],
    rows: LoadedRows,
    held_out: HeldOut,
    shape: tuple[int, int],
) -> list[Look]:
    """At the rows of all partitions, where they are."""
    tried = {one: model for one, model in reached.items() if one.left_out != NO_PART}
    (models,) = rows.client.scatter([Bundle(list(tried.values()))], broadcast=True, hash=False)
    holders = holders_of(rows.client, rows.chunks)
    parts = [rows.part(place) for place in range(len(rows.chunks))]
    parts.sort(key=lambda part: sorted(holders[part.chunk.key]))
    tasks = []
    for block in together(parts, holders):
        chunks, numbers = [part.chunk for part in block], [part.number for part in block]
        words = models, list(tried), chunks, numbers, held_out, shape
        here = near(holders[chunks[0].key])
        tasks.append(rows.client.submit(_look, *words, pure=False, **here))
    looks: list[Look] = rows.client.gather(tasks)
    return looks


def _look(
    models: Bundle,
    tried: Sequence[_Trial],
    chunks: Sequence[Chunk],
    numbers: Sequence[int],
    held_out: HeldOut,
    shape: tuple[int, int],
) -> Look:
    """Which rows are wrong to the models that leave them out."""
    trials = list(zip(tried, map(unpacked, models.parts), strict=True))
    looks = []
    for chunk, number in zip(chunks, numbers, strict=True):
        try:
            looks.append(_look_at(chunk, held_out.parts(chunk.y, number), trials, held_out, shape))
        except (TypeError, ValueError) as error:
            raise unusable(number, error) from error
    return added(looks)


def _look_at(
    chunk: Chunk,
    parts: Array,
    trials: Sequence[tuple[_Trial, Any]],
    held_out: HeldOut,
    shape: tuple[int, int],
) -> Look:
    """The same of one partition."""
    is_wrong = np.full((*shape, parts.size), np.nan)
    X = chunk.X.iloc if is_frame(chunk.X) else chunk.X
    for fold in range(held_out.n_parts):
        place = np.flatnonzero(parts == fold)
        own = Chunk(X[place], chunk.y[place])
        for one, machine in trials:
            if one.left_out == fold:
                is_wrong[one.alpha, one.seed, place] = predicted_by(machine, own) != own.y
    return look_of(is_wrong, parts, held_out.n_parts)


def _fitted(
    estimator: Any, rows: LoadedRows, alphas: Array, reached: Mapping[_Trial, PackedModel]
) -> list[Any]:
    """The machines of all rows; None of alphas that were left behind."""
    made: list[Any] = [None] * alphas.size
    for one, model in reached.items():
        if one.left_out == NO_PART:
            made[one.alpha] = clone(estimator).set_params(alpha=float(alphas[one.alpha]))
            after_round(made[one.alpha], rows.layout, None, None, model)
    return made
