"""Weights of recipes, by greedy selection, and factors that make scores log-odds.

Algorithm   ensemble selection (Caruana, Niculescu-Mizil, Crew, Ksikes, ICML 2004): the recipe that
            lowers the log-loss of the mean score most is added, again and again and with
            repetition, and its count is its weight. Scores are added up, not probabilities, so
            that the blend is a sum of soft maxima of planes, too.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, special

from polyplane.arrays import Array

__all__ = ["calibration_of", "log_losses", "matching_factor", "weights_of_recipes"]

STEPS = 12  # of the selection: weights are multiples of 1/12 at least
LEAST_GAIN = 1e-6  # of the log-loss, with which a recipe is added
LARGEST_LOSS_OF_PRUNING = 0.002  # share of the log-loss: members with less gain cost a refit each
RANGE_OF_LOG_FACTOR = (-4.0, 4.0)
TOLERANCE = 1e-3  # of the logarithm: a thousandth of the factor
MOST_LOSS = -math.log(1e-6)  # of a row in the selection: one row must not decide


def log_losses(scores: Array, labels: Array) -> Array:
    """Return the log-loss of each row of [..., row, class] scores."""
    own = np.take_along_axis(scores, _as_index(labels, scores.ndim), axis=-1)[..., 0]
    best = scores.max(axis=-1)
    totals = np.log(np.exp(scores - best[..., None]).sum(axis=-1))
    losses: Array = best + totals - own
    return losses


def _as_index(labels: Array, n_dimensions: int) -> Array:
    return labels.reshape((1,) * (n_dimensions - 2) + (labels.size, 1))


def weights_of_recipes(scores: Array, labels: Array, row_weights: Array | None = None) -> Array:
    """Return the weight of each recipe; `scores` are [recipe, row, class], and weights sum to 1.

    Recipes are selected first. Then those are left out again, one by one, without which the
    log-loss is hardly larger.
    """

    def loss(mean: Array) -> float:
        losses = np.minimum(log_losses(mean, labels), MOST_LOSS)
        return float(np.average(losses, weights=row_weights))

    weights, least = _selected(scores, loss)
    limit = least * (1 + LARGEST_LOSS_OF_PRUNING)
    while np.count_nonzero(weights) > 1:
        chosen = np.flatnonzero(weights)
        others = [np.where(np.arange(weights.size) == k, 0, weights) for k in chosen]
        others = [one / one.sum() for one in others]
        losses = [loss(np.tensordot(one[chosen], scores[chosen], axes=1)) for one in others]
        if min(losses) > limit:
            break
        weights = others[int(np.argmin(losses))]
    return weights


def _selected(scores: Array, loss: Callable[[Array], float]) -> tuple[Array, float]:
    """Return the weights of greedy selection with repetition, and their log-loss."""
    total, counts = np.zeros_like(scores[0]), np.zeros(len(scores))
    least, best = np.inf, counts
    for step in range(1, STEPS + 1):
        losses = [loss((total + one) / step) for one in scores]
        chosen = int(np.argmin(losses))
        total = total + scores[chosen]
        counts[chosen] += 1
        if losses[chosen] < least - LEAST_GAIN:
            least, best = losses[chosen], counts / step
    return best, least


def calibration_of(scores: Array, labels: Array, row_weights: Array | None = None) -> float:
    """Return the factor that makes class scores log-odds.

    Few rows that are all right would make scores certain: the factor is that of one row more,
    which has the median margin and is wrong.
    """
    own = scores[np.arange(labels.size), labels]
    margins = np.asarray(scores - own[:, None], np.float64)  # of each class over the right one
    margins[np.arange(labels.size), labels] = -np.inf
    doubt = float(np.median(np.abs(margins.max(axis=1))))
    shares = np.ones(labels.size) if row_weights is None else row_weights / row_weights.mean()

    def loss(log_factor: float) -> float:
        """The right class has margin 0: it is added last, else losses below 1e-16 were lost."""
        scaled = math.exp(log_factor) * margins
        of_rows = np.logaddexp(0, special.logsumexp(scaled, axis=1))
        total = float((shares * of_rows).sum()) + float(
            np.logaddexp(0, math.exp(log_factor) * doubt)
        )
        return total / (labels.size + 1)

    found = optimize.minimize_scalar(
        loss, bounds=RANGE_OF_LOG_FACTOR, method="bounded", options={"xatol": TOLERANCE}
    )
    return float(np.exp(found.x))


def matching_factor(scores: Array, expected: Array) -> float:
    """Return the factor with which scores are as sure as `expected` scores of the same rows.

    It minimises the cross-entropy of the probabilities of both.
    """
    shares = special.softmax(expected.astype(np.float64), axis=1)
    centred = np.asarray(scores - scores.mean(axis=1, keepdims=True), np.float64)

    def loss(log_factor: float) -> float:
        scaled = math.exp(log_factor) * centred
        return float((special.logsumexp(scaled, axis=1) - (shares * scaled).sum(axis=1)).mean())

    found = optimize.minimize_scalar(
        loss, bounds=RANGE_OF_LOG_FACTOR, method="bounded", options={"xatol": TOLERANCE}
    )
    return float(np.exp(found.x))
