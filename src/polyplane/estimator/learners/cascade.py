"""A cascade of kernel SVMs: support vectors of parts of the rows become those of all.

Parts      every part of the rows is trained on by itself; rows that are no support vectors of their
           part are unlikely to be some of all rows.
Pairs      the support vectors of two parts are trained on together, and what is left with those of
           the next pair, until one model is left.
Feedback   its support vectors go back to all parts, each of which trains again on its rows and
           these. The dual objective never falls by more than the tolerance, and where no
           part has a row that violates the margin the model is that of all rows.
Departure  (1) a part of one class has no model: its first rows stand for it until feedback comes.
Every function leaves what it is given as it was and gives the same bits for the same arguments.

Paper      Graf, Cosatto, Bottou, Dourdanovic, Vapnik (NIPS 2004), Parallel Support Vector Machines:
           The Cascade SVM, https://papers.nips.cc/paper/2608, Figure 1.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from polyplane.arrays import Array
from polyplane.data.chunk_sizes import joined, widened
from polyplane.data.chunks import Chunk
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import count_rows
from polyplane.engine.targets import LEFT_OUT
from polyplane.estimator.files.saving import PackedModel, packed, unpacked
from polyplane.estimator.fitting.restoring import training_of
from polyplane.estimator.fitting.thread_safety import writing
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import read_matrix, read_training, row_weights
from polyplane.estimator.online_classifier import record_of
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.shell import job_of
from polyplane.training.kernels.kernel_choice import gamma_of
from polyplane.training.rows import codes_of

__all__ = [
    "Reached", "Vectors", "count_violators", "gamma_by_sample", "of_pair", "of_part", "vectors_of",
]  # fmt: skip

ROWS_OF_ONE_CLASS = 100  # departure 1
# Share of the margin 1: rows nearer than that to the right side are no violators.
MARGIN_OF_VIOLATION = 0.05


class Vectors(NamedTuple):
    """Rows that matter, with their numbers among all rows."""

    X: Any
    y: Array
    numbers: Array


class Reached(NamedTuple):
    """Result of a training on some of the rows."""

    vectors: Vectors
    model: PackedModel | None  # None of rows of one class
    objective: float  # of the dual, of all problems together


def vectors_of(estimator: Any) -> Vectors:
    """The support vectors of an estimator that a cascade has trained."""
    support, labels = record_of(estimator).support, training_of(estimator).labels
    return Vectors(estimator.support_vectors_, labels[support.labels], support.numbers)


def gamma_by_sample(estimator: Any, X: Any, y: Any, n_columns: int) -> float:
    """Return the value of gamma, by some of the rows."""
    made, wide = clone(estimator), _as_wide(X, n_columns)
    check_parameters(made)
    data, _ = read_training(made, wide, y, None, None, None, 0.0)
    return gamma_of(job_of(made, {}).settings, data, width_of(made))


def of_part(
    estimator: Any, X: Any, y: Any, first: int, n_columns: int, fed_back: Vectors | None
) -> Reached:
    """Return the result of the rows of a part and of the vectors of all parts."""
    own = Vectors(_as_wide(X, n_columns), np.asarray(y), first + np.arange(len(y), dtype=np.int64))
    if fed_back is None:
        return _trained(estimator, own)
    is_own = (fed_back.numbers >= first) & (fed_back.numbers < first + len(y))
    return _trained(estimator, _together(_chosen(fed_back, ~is_own), own))


def of_pair(estimator: Any, one: Reached, other: Reached) -> Reached:
    """Return the result of training on the vectors of two results together."""
    new = ~np.isin(other.vectors.numbers, one.vectors.numbers)
    return _trained(estimator, _together(one.vectors, _chosen(other.vectors, new)))


def count_violators(reached: Reached, X: Any, y: Any, first: int, n_columns: int) -> int:
    """Rows of a part that are no support vectors, and on the wrong side of a margin."""
    if reached.model is None:
        return len(y)
    estimator = unpacked(reached.model)
    rows = read_matrix(estimator, _as_wide(X, n_columns), False, 0.0)
    record, training = record_of(estimator), training_of(estimator)
    leads = record.leads(rows, in_place(count_rows(rows)))
    _, codes = codes_of(np.asarray(y), training.labels)
    violates = np.zeros(len(y), bool)
    for p, problem in enumerate(record.decomposition.problems()):
        side = problem.codes(training.labels.size)[codes]
        margin = np.where(side == 1, leads[:, p], -leads[:, p])
        violates |= (side != LEFT_OUT) & (margin < 1 - MARGIN_OF_VIOLATION)
    numbers = first + np.arange(len(y), dtype=np.int64)
    return int(np.count_nonzero(violates & ~np.isin(numbers, reached.vectors.numbers)))


def _trained(estimator: Any, rows: Vectors) -> Reached:
    if np.unique(rows.y).size < 2:
        return Reached(_chosen(rows, in_place(len(rows.y))[:ROWS_OF_ONE_CLASS]), None, 0.0)
    made = clone(estimator).fit(rows.X, rows.y)
    support = made.support_
    vectors = _chosen(rows, support[np.argsort(rows.numbers[support])])
    objective = _dual_objective(made, rows.y[support])
    with writing(made):
        training_of(made).renumber(rows.numbers)
    return Reached(vectors, packed(made), objective)


def _dual_objective(estimator: Any, y: Array) -> float:
    """sum |a| - a K a / 2 over all problems; of squared slack, K has that on its diagonal."""
    record = record_of(estimator)
    entries, coefs = record.support.entries, record.dual_coefs()
    outputs = record.leads(entries, in_place(count_rows(entries))) - record.intercepts
    slack = getattr(training_of(estimator).models[0].rule, "slack", 0.0)
    weights = row_weights(y, None, estimator.class_weight)
    slacks = slack / (weights if weights.size else np.ones(len(y)))
    quadratic = np.sum(coefs * outputs.T) + np.sum(slacks * np.square(coefs))
    return float(np.abs(coefs).sum() - quadratic / 2)


def _together(one: Vectors, other: Vectors) -> Vectors:
    X, y = joined([Chunk(part.X, part.y) for part in (one, other) if len(part.y)])
    return Vectors(X, y, np.concatenate([one.numbers, other.numbers]))


def _chosen(rows: Vectors, which: Array) -> Vectors:
    return Vectors(rows.X[which], rows.y[which], rows.numbers[which])


def _as_wide(X: Any, n_columns: int) -> Any:
    return widened(X, n_columns) if sp.issparse(X) else X
