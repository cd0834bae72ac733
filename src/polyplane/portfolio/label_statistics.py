"""Target statistics of a fit: which keys and pairs of keys, and the columns that rows get.

Pairs   the pairs of keys that say most beyond the single keys. For each class a logistic
        regression on the statistics of single keys is the base line; one Newton step for each pair
        of values, from rows of other parts, is what a pair adds. `MOST_PAIRS` pairs with the
        largest gain of log-likelihood are taken, if it is at least `LEAST_GAIN`.
Rows    statistics of a trial leave out the rows by which it is judged; those of the training on
        all rows leave out the rows that are held out.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from polyplane.arrays import Array
from polyplane.data.table.statistics import (
    N_PARTS,
    PRIOR_ROWS,
    KeyedRows,
    Labelled,
    TargetStatistics,
    entries_with_columns,
    learned_statistics,
    places_and_parts,
)
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import CsrRows, count_rows, csr_rows_of, packed
from polyplane.training.rows import TrainingData

__all__ = ["LabelStatistics", "label_statistics", "widened"]

MOST_PAIRS = 10
LEAST_GAIN = 3.0  # of log-likelihood
MOST_COLUMNS = 256  # of all statistics together: several of each for each class
ROWS_LOOKED_AT = 10_000  # to choose pairs
NEWTON_STEPS, RIDGE = 6, 1.0  # of the base line


class LabelStatistics(NamedTuple):
    """Keys of the rows of a fit, and the combinations of keys that have statistics."""

    keyed: KeyedRows
    combinations: list[tuple[int, ...]]
    ranks: Array  # of the classes of rows
    class_names: list[str]
    seed: int

    def of_rows(self, data: TrainingData, left_out: Array) -> tuple[TargetStatistics, Array]:
        """Return what all rows but some say, and the columns of all rows."""
        weights = weights_without(data, left_out)
        labelled = Labelled(self.ranks, weights, len(self.class_names))
        return learned_statistics(
            self.keyed, self.combinations, labelled, self.class_names, self.seed
        )


def weights_without(data: TrainingData, left_out: Array) -> Array:
    """Return the weights of rows, 0 for those that are left out."""
    weights = data.weights.astype(np.float64) if data.weights.size else np.ones(data.labels.size)
    weights[left_out] = 0
    return weights


def label_statistics(
    keyed: KeyedRows | None, data: TrainingData, ranks: Array, class_names: Any, seed: int
) -> LabelStatistics | None:
    """Return the keys and pairs that say something of the classes; None if there are no keys."""
    n_classes = len(class_names)
    n_numbers = 2 if n_classes == 2 else n_classes + 1
    if keyed is None or len(keyed.keys) * n_numbers > MOST_COLUMNS:
        return None
    singles: list[tuple[int, ...]] = [
        (k,) for k, key in enumerate(keyed.keys) if len(key.values) > 2
    ]
    if not singles:
        return None
    of_rows = ranks[data.labels]
    some = np.unique(np.linspace(0, data.labels.size - 1, ROWS_LOOKED_AT).astype(np.int64))
    weights = weights_without(data, np.empty(0, np.int64))[some]
    labelled = Labelled(of_rows[some], weights, n_classes)
    few = keyed._replace(codes=keyed.codes[:, some])
    gains = _gains_of_pairs(few, singles, labelled, seed)
    most = min(MOST_PAIRS, (MOST_COLUMNS - len(singles) * n_numbers) // n_numbers)
    best = sorted(gains, key=lambda pair: -gains[pair])[: max(0, most)]
    pairs = [pair for pair in best if gains[pair] >= LEAST_GAIN]
    names = [str(name) for name in class_names]
    return LabelStatistics(keyed, [*singles, *pairs], of_rows, names, seed)


def _gains_of_pairs(
    keyed: KeyedRows, singles: list[tuple[int, ...]], labelled: Labelled, seed: int
) -> dict[tuple[int, ...], float]:
    """Return how much log-likelihood each pair of keys gains beyond single keys."""
    names = [str(k) for k in range(labelled.n_classes)]
    columns = learned_statistics(keyed, singles, labelled, names, seed)[1].astype(np.float64)
    columns = (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-12)
    columns = np.hstack([np.ones((len(columns), 1)), columns])
    classes = range(labelled.n_classes) if labelled.n_classes > 2 else (1,)
    with threadpool_limits(1):  # products of few columns wait for threads longer than they take
        residuals = [_residuals(columns, labelled.ranks == k, labelled.weights) for k in classes]
    pairs = itertools.combinations(range(len(keyed.keys)), 2)
    return {pair: _gain(keyed, pair, residuals, seed) for pair in pairs}


def _residuals(columns: Array, is_own: Array, weights: Array) -> tuple[Array, Array]:
    """Return gradient and curvature of each row's loss under a logistic regression."""
    coefs = np.zeros(columns.shape[1])
    for _ in range(NEWTON_STEPS):
        shares = 1 / (1 + np.exp(-np.clip(columns @ coefs, -30, 30)))
        gradient = columns.T @ (weights * (is_own - shares)) - RIDGE * coefs
        curvature = (columns * (weights * shares * (1 - shares))[:, None]).T @ columns
        coefs += np.linalg.solve(curvature + RIDGE * np.eye(coefs.size), gradient)
    shares = 1 / (1 + np.exp(-np.clip(columns @ coefs, -30, 30)))
    return weights * (is_own - shares), weights * shares * (1 - shares)


def _gain(
    keyed: KeyedRows, pair: tuple[int, ...], residuals: list[tuple[Array, Array]], seed: int
) -> float:
    """Return what a Newton step for each pair of values gains on rows of other parts."""
    codes, places, parts = places_and_parts(keyed, pair, seed)
    flat, total = places * N_PARTS + parts, 0.0
    for gradient, curvature in residuals:
        sums = [
            np.bincount(flat, one, codes.size * N_PARTS).reshape(-1, N_PARTS)
            for one in (gradient, curvature)
        ]
        others = [(one.sum(axis=1, keepdims=True) - one).ravel()[flat] for one in sums]
        step = others[0] / (others[1] + PRIOR_ROWS * curvature.mean())
        total += float((step * gradient - np.square(step) * curvature / 2).sum())
    return total


def widened(data: TrainingData, columns: Array, n_columns: int) -> TrainingData:
    """Return rows with more columns behind the `n_columns` that they have."""
    rows: Any = data.rows
    if not isinstance(rows, CsrRows):
        rows = packed(rows, in_place(count_rows(rows)))
    entries = entries_with_columns(rows.values, rows.columns, rows.starts, columns, n_columns)
    return data._replace(rows=csr_rows_of(*entries, rows.constant))
