"""Machines on held-out rows: which rows they get wrong, their size and their time."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import preprocessing

from polyplane.engine.planes.planes import Array
from polyplane.estimator.input.stratified import stratified
from polyplane.report.metrics import Evaluation, standard_error

__all__ = ["Split", "Trial", "folds_of", "new_scaler", "parts_of", "share_of", "size_of", "tried"]

Split = tuple[Array, Array]  # rows to train on, rows held out


@dataclass
class Trial:
    """What a machine did on held-out rows; each of them was held out once."""

    rows: Array = field(default_factory=lambda: np.empty(0, np.int64))
    is_wrong: Array = field(default_factory=lambda: np.empty(0, np.bool_))
    sizes: list[int] = field(default_factory=list)  # planes or support vectors
    seconds: list[float] = field(default_factory=list)
    evaluation: Evaluation | None = None  # of all held-out rows together, where it is wanted

    @property
    def error(self) -> float:
        """Share of the held-out rows."""
        return float(np.mean(self.is_wrong))

    @property
    def standard_error(self) -> float:
        """Of that share."""
        return standard_error(self.error, self.is_wrong.size)

    @property
    def size(self) -> float:
        """Planes or support vectors of a model, on average."""
        return float(np.mean(self.sizes))

    @property
    def median_seconds(self) -> float:
        """Of a fit: the first one may have compiled loops."""
        return float(np.median(self.seconds))

    def lead_over(self, other: "Trial") -> tuple[float, float]:
        """By how much its error is lower on the same rows, and the standard error of that."""
        difference = other.is_wrong[np.argsort(other.rows)].astype(np.float64)
        difference -= self.is_wrong[np.argsort(self.rows)]
        return float(difference.mean()), float(difference.std() / np.sqrt(difference.size))


def share_of(y: Array, share: float, seed: int) -> list[Split]:
    """One split that holds out a share of every class."""
    _, codes = np.unique(y, return_inverse=True)
    return [stratified(np.arange(y.size), codes, share, seed)]


def folds_of(y: Array, n_folds: int, seed: int) -> list[Split]:
    """Splits that hold out each row once, and of every class about the same share."""
    parts = parts_of(y, n_folds, seed)
    return [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(n_folds)]


def parts_of(y: Array, n_parts: int, seed: int | Sequence[int]) -> Array:
    """A part for each row: rows of a class take turns."""
    order = np.random.default_rng(seed).permutation(y.size)
    _, codes = np.unique(y, return_inverse=True)
    by_class = order[np.argsort(codes[order], kind="stable")]
    parts = np.empty(y.size, np.int64)
    parts[by_class] = np.arange(y.size) % n_parts
    return parts


def new_scaler(kind: str, is_sparse: bool) -> Any:
    """A scaler that leaves zeros of sparse rows alone; None for "none"."""
    if kind == "none":
        return None
    if kind == "maxabs":
        return preprocessing.MaxAbsScaler()
    return preprocessing.StandardScaler(with_mean=not is_sparse)


def tried(
    made: Callable[[], Any],
    X: Any,
    y: Array,
    splits: Sequence[Split],
    scale: str = "none",
    evaluation: Evaluation | None = None,
) -> Iterator[Trial]:
    """The trial of a machine after each split; scaling is learned from its training rows.

    An evaluation, of all labels of y, takes longer than errors.
    """
    trial = Trial(evaluation=evaluation)
    for training, held_out in splits:
        machine, scaler = made(), new_scaler(scale, is_sparse=not isinstance(X, np.ndarray))
        rows = _scaled(scaler and scaler.fit(X[training]), X[training])
        start = time.perf_counter()
        machine.fit(rows, y[training])
        trial.seconds.append(time.perf_counter() - start)
        rows = _scaled(scaler, X[held_out])
        trial.rows = np.append(trial.rows, held_out)
        predicted = machine.predict(rows)
        trial.is_wrong = np.append(trial.is_wrong, predicted != y[held_out])
        if evaluation is not None:
            values = _values(machine, rows, evaluation.classes)
            evaluation.add(y[held_out], predicted, values)
        trial.sizes.append(size_of(machine))
        yield trial


def _values(machine: Any, rows: Any, classes: Array) -> Array:
    """Probabilities or scores of all classes: of those that it has not met, the least."""
    has_probabilities = hasattr(machine, "predict_proba")
    found: Array = (
        machine.predict_proba(rows) if has_probabilities else (machine.decision_function(rows))
    )
    if machine.classes_.size == classes.size:
        return found
    known = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    values = np.full((len(known), classes.size), 0.0 if has_probabilities else -np.inf)
    values[:, np.searchsorted(classes, machine.classes_)] = known
    return values


def _scaled(scaler: Any, rows: Any) -> Any:
    return rows if scaler is None else scaler.transform(rows.astype(np.float32))


def size_of(machine: Any) -> int:
    """Planes of a hyperplane machine, support vectors of a kernel machine."""
    return int(machine.n_planes_ if hasattr(machine, "n_planes_") else machine.support_.size)
