"""Settings found by the fit itself: candidates side by side, the better ones go on for longer.

Successive halving: every candidate makes the first passes of a training on most of the rows and is
judged by its loss on the rows held out; the better half goes on from there, and so on.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from polyplane.engine.planes.planes import Array
from polyplane.estimator.progress import Report
from polyplane.estimator.side_by_side import for_each

__all__ = ["KEPT", "Judgement", "calibrated", "final_judgements"]

KEPT = 2  # one candidate in so many goes on
RANGE_OF_LOG_FACTOR = (-4.0, 4.0)


class Judgement(NamedTuple):
    """What a candidate is worth: lower is better, and of equals the first."""

    loss: float
    calibration: float


def calibrated(scores: Array, labels: Array) -> Judgement:
    """The factor that makes class scores log-odds, and the mean loss of the labels with it."""
    scores = np.asarray(scores, np.float64)
    scores = scores - scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(labels)), labels]

    def loss(log_factor: float) -> float:
        factor = np.exp(log_factor)
        return float(np.mean(special.logsumexp(factor * scores, axis=1) - factor * own))

    found = optimize.minimize_scalar(loss, bounds=RANGE_OF_LOG_FACTOR, method="bounded")
    return Judgement(float(found.fun), float(np.exp(found.x)))


def final_judgements(
    judge: Callable[[Any, int, Report], Judgement],
    candidates: Sequence[Any],
    rungs: Sequence[int],
    n_threads: int,
    report: Report,
) -> list[Judgement | None]:
    """Of each candidate on the last rung; None of one that was left behind before.

    `judge(candidate, rung, report)` lets one go on to a rung and judges it there. The first
    candidate is what the others are compared with: it always goes on.
    """
    alive = list(range(len(candidates)))
    found: list[Judgement | None] = [None] * len(candidates)
    for rung in rungs:
        made: list[Any] = [None] * len(alive)

        def work(
            k: int, report: Report, alive: Any = alive, made: Any = made, rung: int = rung
        ) -> None:
            made[k] = judge(candidates[alive[k]], rung, report)

        for_each(work, len(alive), n_threads, report)
        if rung == rungs[-1]:
            for k, judgement in zip(alive, made, strict=True):
                found[k] = judgement
        order = 1 + np.argsort([judgement.loss for judgement in made[1:]], kind="stable")
        n_kept = -(-order.size // KEPT)
        alive = [alive[k] for k in sorted([0, *order[:n_kept]])]
    return found
