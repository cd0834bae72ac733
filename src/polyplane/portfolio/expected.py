"""The error to expect on new rows, from rows that no recipe was trained on.

The weights of the recipes are chosen on the rows by which they are judged, which makes the blend
look better there than it is. So the estimate is cross-fitted: the rows are dealt into parts, and
each part is judged with weights chosen on the others.

Models that were trained on other rows would err on other judged rows: standard errors are larger by
the square root of 1 + judged rows / tried rows (Nadeau and Bengio, Machine Learning 52, 2003).
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from polyplane.arrays import Array
from polyplane.model.fit_report import Z_95, expected_words
from polyplane.portfolio.blend import calibration_of, log_losses, weights_of_recipes

__all__ = ["Expected", "Score", "cross_fitted", "score_of"]

PARTS = 5


@dataclass(frozen=True)
class Score:
    """Log-loss, error and AUC of a model on rows that it was not trained on."""

    log_loss: float
    log_loss_se: float  # standard error
    error: float  # share of wrong rows
    error_se: float
    auc: float | None  # area under the ROC curve; the mean over classes of one against the rest

    def widened(self, factor: float) -> "Score":
        """Return the score with standard errors that are larger by a factor."""
        return replace(self, log_loss_se=factor * self.log_loss_se, error_se=factor * self.error_se)

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95% interval of "log_loss" or "error"."""
        middle, half = getattr(self, name), Z_95 * getattr(self, f"{name}_se")
        return max(0.0, middle - half), middle + half


@dataclass(frozen=True)
class Expected:
    """Score to expect of a model on new rows, and of the linear recipe."""

    model: Score
    linear: Score | None
    n_rows: int  # by which it was estimated

    @property
    def error(self) -> float:
        """Expected share of wrong rows."""
        return self.model.error

    @property
    def log_loss(self) -> float:
        """Expected log-loss."""
        return self.model.log_loss

    @property
    def auc(self) -> float | None:
        """Expected area under the ROC curve."""
        return self.model.auc

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Expected":
        """Return what `to_dict` has made plain."""
        linear = plain["linear"]
        return cls(
            Score(**plain["model"]), None if linear is None else Score(**linear), plain["n_rows"]
        )

    def __str__(self) -> str:
        return f"expected {expected_words(self.to_dict())}"


def score_of(scores: Array, labels: Array, weights: Array | None = None) -> Score:
    """Return how class scores that are log-odds did; `labels` are ranks of classes."""
    loss, loss_se = _mean(log_losses(scores, labels), weights)
    error, error_se = _mean((scores.argmax(axis=1) != labels).astype(np.float64), weights)
    if error_se == 0:  # of a few rows that are all right, the next may be wrong
        error_se = 1 / (labels.size + 1)
    return Score(loss, loss_se, error, error_se, _auc(scores, labels))


def _mean(values: Array, weights: Array | None) -> tuple[float, float]:
    """Return a mean and its standard error."""
    shares = np.ones(values.size) if weights is None else np.asarray(weights, np.float64)
    mean = float(np.average(values, weights=shares))
    squared = float((np.square(shares) * np.square(values - mean)).sum())
    return mean, math.sqrt(squared) / float(shares.sum())


def _auc(scores: Array, labels: Array) -> float | None:
    """Return the mean area over classes that have rows and lack some; None where there is none."""
    areas = []
    n_classes = scores.shape[1]
    for k in range(n_classes) if n_classes > 2 else (1,):
        is_own = labels == k
        n_own, n_rest = int(is_own.sum()), int((~is_own).sum())
        if n_own == 0 or n_rest == 0:
            continue
        others = np.delete(scores, k, axis=1).max(axis=1)
        ranks = rankdata(scores[:, k] - others)
        areas.append((ranks[is_own].sum() - n_own * (n_own + 1) / 2) / (n_own * n_rest))
    return float(np.mean(areas)) if areas else None


def cross_fitted(
    scores: Array,
    labels: Array,
    row_weights: Array | None,
    linear: int | None,
    seed: int,
    n_tried: int,
) -> Expected:
    """Return the estimate for the blend of [recipe, row, class] scores; `linear` is a recipe.

    `n_tried` rows have trained each recipe.
    """
    parts = np.random.default_rng(seed).permutation(labels.size) % min(PARTS, labels.size)
    blended = np.empty_like(scores[0])
    for k in range(int(parts.max()) + 1):
        is_in, is_out = parts == k, parts != k
        of_out = None if row_weights is None else row_weights[is_out]
        weights = weights_of_recipes(scores[:, is_out], labels[is_out], of_out)
        mean = np.tensordot(weights, scores, axes=1)
        blended[is_in] = mean[is_in] * calibration_of(mean[is_out], labels[is_out], of_out)
    factor = math.sqrt(1 + labels.size / n_tried)
    of_linear = None if linear is None else score_of(scores[linear], labels, row_weights)
    return Expected(
        score_of(blended, labels, row_weights).widened(factor),
        of_linear and of_linear.widened(factor),
        int(labels.size),
    )
