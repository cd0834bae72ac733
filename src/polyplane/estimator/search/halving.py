"""Settings found by the fit itself: candidates side by side, the better ones go on for longer.

Successive halving: every candidate makes a short training on most of the rows and is judged by
its loss on the rows held out; a third of them makes a training three times as long, and so on.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from polyplane.engine.planes.planes import Array
from polyplane.estimator.progress import Report
from polyplane.estimator.side_by_side import for_each

__all__ = ["KEPT", "Judgement", "best_candidate", "calibrated"]

KEPT = 3  # one candidate in so many goes on
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


def best_candidate(
    judge: Callable[[Any, int, Report], Judgement],
    candidates: Sequence[Any],
    rungs: Sequence[int],
    n_threads: int,
    report: Report,
) -> tuple[Any, Judgement]:
    """The winner of the last rung; `judge(candidate, rung, report)` trains and judges one."""
    alive = list(candidates)
    judgements: list[Judgement] = []
    for rung in rungs:
        made: list[Any] = [None] * len(alive)

        def work(
            k: int, report: Report, alive: Any = alive, made: Any = made, rung: int = rung
        ) -> None:
            made[k] = judge(alive[k], rung, report)

        for_each(work, len(alive), n_threads, report)
        order = np.argsort([judgement.loss for judgement in made], kind="stable")
        order = order[: max(1, -(-len(alive) // KEPT))]
        alive, judgements = [alive[k] for k in order], [made[k] for k in order]
    return alive[0], judgements[0]
