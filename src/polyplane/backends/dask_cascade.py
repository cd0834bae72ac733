"""Kernel SVMs on a Dask cluster: a cascade, whose parts are the partitions.

A round trains on all partitions, where they are, and mixes support vectors in pairs
(`estimator/learners/cascade.py`); only these travel. It ends when no partition has a violator, when
a round has gained next to nothing of the dual objective, or after as many rounds as are wanted.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from polyplane.backends.dask_rows import (
    LoadedRows,
    holders_of,
    near,
    result_of_sample,
    sampled,
    unusable,
)
from polyplane.data.chunks import Chunk
from polyplane.estimator.kernel_classifier import KernelClassifier
from polyplane.estimator.learners.cascade import (
    Reached,
    Vectors,
    count_violators,
    gamma_by_sample,
    of_pair,
    of_part,
    vectors_of,
)
from polyplane.estimator.online_classifier import evaluations_of, weights_of_classes
from polyplane.estimator.parameters import check_parameters
from polyplane.kernel.huller import HullerClassifier
from polyplane.kernel.lasvm import LaSVMClassifier
from polyplane.training.work.progress import progress

__all__ = ["ROUNDS", "fit_cascade", "is_cascade"]

ROUNDS = 5  # at most, unless said otherwise: the authors see three to five
MIN_RELATIVE_GAIN_OF_ROUND = 1e-3  # of the dual objective, in a round: less is the end
MEASURES = "dual_objective", "violators"  # of `evals_result_["cascade"]`, round by round
MACHINES = (HullerClassifier, LaSVMClassifier)


def is_cascade(estimator: Any) -> bool:
    """Return True if an estimator is trained by a cascade; kernels that cannot be are refused."""
    if not isinstance(estimator, KernelClassifier):
        return False
    name = type(estimator).__name__
    if type(estimator) not in MACHINES:
        raise TypeError(
            f"{name} cannot be trained on a cluster: a cascade needs an algorithm whose "
            "solution is that of its support vectors alone; choose one of "
            f"{', '.join(kind.__name__ for kind in MACHINES)}."
        )
    check_parameters(estimator)
    if not isinstance(estimator.kernel, str) or estimator.kernel == "precomputed":
        raise ValueError(f"{name}: on a cluster the kernel must be named, and not precomputed.")
    if estimator.warm_start:
        raise ValueError(f"{name}: on a cluster warm_start must be False.")
    return True


class _Round(NamedTuple):
    reached: Reached
    n_violators: int


def fit_cascade(
    estimator: Any,
    rows: LoadedRows,
    n_rounds: int,
    goes_on: bool,
    after: Callable[..., None],
) -> None:
    """Train a kernel SVM on the rows of a cluster, or go on with that.

    `after` is called with the model and the measures of each round.
    """
    if rows.surveys[0].is_table:
        raise ValueError(
            f"{type(estimator).__name__}: a cascade takes arrays, sparse matrices and files, and "
            "no dataframes."
        )
    if rows.classes.size < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs rows of at least 2 classes; y holds only one class, "
            f"{rows.classes.tolist()[0]!r}."
        )
    travelling = _that_travels(estimator, rows)
    vectors = vectors_of(estimator) if goes_on else None
    told = evaluations_of(estimator).get("cascade", {}) if goes_on else {}
    objectives, violators = (list(told.get(name, [])) for name in MEASURES)
    n_rows = int(rows.census().n_rows.sum())
    n_left = n_rounds - len(objectives)
    shown = type(travelling).__name__, n_left * n_rows, bool(travelling.verbose), "vectors"
    with progress(*shown, is_elsewhere=True) as report:
        for _ in range(n_left):
            last = _one_round(travelling, rows, vectors)
            vectors = last.reached.vectors
            objectives.append(last.reached.objective)
            violators.append(float(last.n_violators))
            measures = dict(zip(MEASURES, (list(objectives), list(violators)), strict=True))
            report(n_rows, vectors.X.shape[0], math.nan)
            after(last.reached.model, {"cascade": measures})
            is_still = len(objectives) > 1 and objectives[-1] <= objectives[-2] * (
                1 + MIN_RELATIVE_GAIN_OF_ROUND
            )
            if last.n_violators == 0 or is_still:
                break


def _that_travels(estimator: Any, rows: LoadedRows) -> Any:
    """The estimator as parts have it: what all rows settle is said in numbers."""
    travelling = clone(estimator)
    travelling.set_params(class_weight=weights_of_classes(estimator, *rows.census()))
    if len(rows.chunks) > 1 and isinstance(travelling.gamma, str):
        told = travelling, sampled(rows), rows.n_columns
        travelling.set_params(gamma=result_of_sample(rows.client.submit(_gamma, *told, pure=False)))
    return travelling


def _gamma(estimator: Any, sample: Chunk, n_columns: int) -> float:
    return gamma_by_sample(estimator, sample.X, sample.y, n_columns)


def _one_round(estimator: Any, rows: LoadedRows, vectors: Vectors | None) -> _Round:
    """All parts, pairs of them until one is left, and the violators that all parts then have."""
    client, begun_here = rows.client, []
    firsts = np.cumsum([0, *(one.n_rows for one in rows.surveys)]).tolist()
    homes = holders_of(client, rows.chunks)
    fed_back: Any = None
    try:
        if vectors is not None:
            (fed_back,) = client.scatter([vectors], broadcast=True, hash=False)
        level = []
        for k, chunk in enumerate(rows.chunks):
            told = estimator, chunk, rows.numbers[k], firsts[k], rows.n_columns, fed_back
            level.append(client.submit(_part, *told, pure=False, **near(homes[chunk.key])))
        while len(level) > 1:
            begun_here += level
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [
                client.submit(of_pair, estimator, *pair, pure=False) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        begun_here += level
        counts = [
            client.submit(
                _violators,
                level[0],
                chunk,
                firsts[k],
                rows.n_columns,
                pure=False,
                **near(homes[chunk.key]),
            )
            for k, chunk in enumerate(rows.chunks)
        ]
        begun_here += counts
        return _Round(level[0].result(), sum(client.gather(counts)))
    except BaseException:
        client.cancel(begun_here)
        raise


def _part(
    estimator: Any, chunk: Chunk, number: int, first: int, n_columns: int, fed_back: Vectors | None
) -> Reached:
    try:
        return of_part(estimator, chunk.X, chunk.y, first, n_columns, fed_back)
    except (TypeError, ValueError) as error:
        raise unusable(number, error) from error


def _violators(reached: Reached, chunk: Chunk, first: int, n_columns: int) -> int:
    return count_violators(reached, chunk.X, chunk.y, first, n_columns)
