"""Classifiers on the same held-out rows: what they get wrong, how surely, and what they cost."""

import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import pipeline
from sklearn.utils import _safe_indexing

from polyplane.arrays import Array
from polyplane.estimator.files.fitted import sklearn_scalers, steps_of
from polyplane.estimator.files.saving import SavedModel, fitted_model
from polyplane.estimator.online_classifier import OnlineClassifier
from polyplane.model.format.prediction_part import write_prediction
from polyplane.model.format.schema import Writer
from polyplane.tuning.held_out import Split, Trial, new_scaler

__all__ = [
    "Lead",
    "Run",
    "bytes_of",
    "lead_of",
    "run_folds",
    "size_of",
    "sureness_of",
    "with_scaler",
]

TIMED_ROWS = 4_096  # on which a prediction is timed
LONG_ENOUGH, MOST_TIMES = 0.02, 5  # seconds after which, and times that, it is


@dataclass
class Run:
    """Results of an algorithm on one sample, each row of which was held out once."""

    machine: str
    n_rows: int
    n_folds: int
    trial: Trial = field(default_factory=Trial)
    predicted: Any = None  # labels, in the order of `trial.rows`
    sureness: Any = None  # how far the winner was ahead; NaN where an algorithm does not tell
    setting: Any = None
    microseconds: float = float("nan")  # of the prediction of a row, on one core
    n_bytes: int = 0  # of what predicts
    total_seconds: float = 0.0  # of all folds
    model: Any = None  # fitted without `held_out`: the last fold
    held_out: Any = None
    imitated: dict[str, Trial] = field(
        default_factory=dict
    )  # by algorithms that learned its answers

    @property
    def error(self) -> float:
        """Share of the held-out rows that are wrong."""
        return self.trial.error

    @property
    def is_whole(self) -> bool:
        """Return True if all folds have been held out."""
        return len(self.trial.seconds) == self.n_folds

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95% interval of the error: Wilson's, which stays between 0 and 1."""
        n, z = max(1, self.trial.is_wrong.size), 1.96
        middle = (self.error + z * z / (2 * n)) / (1 + z * z / n)
        half = (
            z * np.sqrt(self.error * (1 - self.error) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        )
        return max(0.0, float(middle - half)), min(1.0, float(middle + half))


@dataclass(frozen=True)
class Lead:
    """By how much an error is lower than another on the same held-out rows."""

    points: float  # a share
    spread: float  # its standard error
    n_rows: int

    @property
    def z(self) -> float:
        """Return the lead in standard errors."""
        if self.spread > 0:
            return self.points / self.spread
        return 0.0 if self.points == 0 else float(np.copysign(np.inf, self.points))

    @property
    def p(self) -> float:
        """Return the two-sided p of a paired test: how likely so large a lead is by luck."""
        return math.erfc(abs(self.z) / math.sqrt(2))


def lead_of(one: Run, other: Run) -> Lead:
    """Return the lead of one run over another, on the rows that both were tried on."""
    common, mine, its = np.intersect1d(one.trial.rows, other.trial.rows, return_indices=True)
    if not common.size:
        return Lead(0.0, float("inf"), 0)
    difference = other.trial.is_wrong[its].astype(np.float64) - one.trial.is_wrong[mine]
    spread = float(difference.std() / np.sqrt(common.size))
    if spread == 0:  # of rows that were all alike, one may not have been
        spread = 1.0 / common.size
    return Lead(float(difference.mean()), spread, int(common.size))


def run_folds(
    run: Run,
    made: Callable[[], Any],
    X: Any,
    y: Array,
    splits: Sequence[Split],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Run]:
    """Fit and predict fold after fold; yield the run after each. `clock` times the fits."""
    for training, held_out in splits:
        model = made()
        start = clock()
        model.fit(_safe_indexing(X, training), y[training])
        run.trial.seconds.append(clock() - start)
        rows = _safe_indexing(X, held_out)
        predicted = np.asarray(model.predict(rows))
        sureness = sureness_of(model, rows)
        is_first = run.predicted is None
        run.predicted = predicted if is_first else np.concatenate([run.predicted, predicted])
        run.sureness = sureness if is_first else np.concatenate([run.sureness, sureness])
        run.trial.rows = np.append(run.trial.rows, held_out)
        run.trial.is_wrong = np.append(run.trial.is_wrong, predicted != y[held_out])
        run.trial.sizes.append(size_of(model))
        price = _microseconds(model, _safe_indexing(X, held_out[:TIMED_ROWS]))
        run.microseconds = price if is_first else min(run.microseconds, price)
        run.n_bytes, run.model, run.held_out = bytes_of(model), model, held_out
        yield run


def with_scaler(estimator: Any, scale: str, is_sparse: bool) -> Any:
    """Return the estimator behind a scaler, or alone if it needs none."""
    scaler = new_scaler(scale, is_sparse)
    if scaler is None:
        return estimator
    return pipeline.Pipeline([("scaler", scaler), ("classifier", estimator)])


def sureness_of(model: Any, rows: Any) -> Array:
    """Return how far each predicted label is ahead, by probability or score."""
    if hasattr(model, "predict_proba"):
        sure: Array = np.asarray(model.predict_proba(rows)).max(axis=1)
        return sure
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(rows), np.float64)
        if scores.ndim == 1:
            return np.abs(scores)
        best = np.partition(scores, -2, axis=1)
        lead: Array = best[:, -1] - best[:, -2]
        return lead
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    return np.full(n_rows, np.nan)


def size_of(model: Any) -> int:
    """Return how many planes or support vectors a model has; 0 if it has neither."""
    last = steps_of(model)[-1]
    if hasattr(last, "n_planes_"):
        return int(last.n_planes_)
    support = getattr(last, "support_", None)
    return int(np.size(support)) if support is not None else 0


def bytes_of(model: Any) -> int:
    """Return the bytes of what predicts, as in a model file; of other models those of a pickle."""
    *before, last = steps_of(model)
    known = tuple(sklearn_scalers().values())
    is_file = len(before) <= 1 and all(type(step) in known for step in before)
    if isinstance(last, OnlineClassifier) and is_file:
        out = Writer()
        write_prediction(fitted_model(SavedModel(last, before[0] if before else None)), out)
        return int(sum(np.asarray(array).nbytes for array in out.arrays.values()))
    try:
        return len(pickle.dumps(model))
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0


def _microseconds(model: Any, rows: Any) -> float:
    """Return the microseconds of predicting a row on one core, the least of a few measurements."""
    last = steps_of(model)[-1]
    n_jobs = vars(last).get("n_jobs")
    if isinstance(last, OnlineClassifier):
        last.n_jobs = 1
    n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    least, total = math.inf, 0.0
    for _ in range(MOST_TIMES):
        start = time.perf_counter()
        model.predict(rows)
        seconds = time.perf_counter() - start
        least, total = min(least, seconds), total + seconds
        if total > LONG_ENOUGH:
            break
    if isinstance(last, OnlineClassifier):
        last.n_jobs = n_jobs
    return 1e6 * least / max(1, n_rows)
