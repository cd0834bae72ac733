"""Settings found by the fit itself: candidates side by side, the better ones go on for longer.

Successive halving: every candidate makes the first passes of a training on most of the rows and is
judged by its loss on the rows held out; the best third goes on from there, and so on.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from polyplane.engine.planes.planes import Array
from polyplane.estimator.fitting.progress import Report
from polyplane.estimator.fitting.side_by_side import for_each

__all__ = ["KEPT", "Judgement", "calibrated", "final_judgements"]

KEPT = 3  # one candidate in so many goes on
RANGE_OF_LOG_FACTOR = (-4.0, 4.0)
TOLERANCE = 1e-3  # of the logarithm: a thousandth of the factor


class Judgement(NamedTuple):
    """What a candidate is worth: lower is better, and of equals the first."""

    loss: float
    calibration: float
    losses: Any = None  # of each row held out, in one order for all candidates

    def clearly_beats(self, other: "Judgement", share: float) -> bool:
        """Whether it has less than this share of the loss, and by more than is luck.

        Luck is the standard error of the mean difference between the two on the same rows.
        """
        if self.loss >= share * other.loss:
            return False
        differences = other.losses - self.losses
        return bool(differences.mean() > differences.std() / math.sqrt(differences.size))


def calibrated(scores: Array, labels: Array, weights: Array | None = None) -> Judgement:
    """The factor that makes class scores log-odds, and the mean loss of the labels with it.

    A row of twice the weight counts as two, as it does in training.
    Few rows that are all right would make scores certain: the factor is that of one row more,
    which has the median lead and is wrong.
    """
    shares = None if weights is None else np.asarray(weights / weights.mean(), np.float64)
    own = scores[np.arange(len(labels)), labels]
    leads = np.asarray(scores - own[:, None], np.float64)  # of each class over the right one
    leads[np.arange(len(labels)), labels] = -np.inf
    doubt = float(np.median(np.abs(leads.max(axis=1))))
    if leads.shape[1] == 2:
        leads = leads[np.arange(len(labels)), 1 - labels]

    def losses(log_factor: float) -> Array:
        """The right class leads itself by 0: added last, or losses below 1e-16 were lost."""
        scaled = np.exp(log_factor) * leads
        of_rivals = scaled if scaled.ndim == 1 else special.logsumexp(scaled, axis=1)
        of_rows = np.asarray(np.logaddexp(0, of_rivals))
        return of_rows if shares is None else shares * of_rows

    def total(log_factor: float) -> float:
        return float(losses(log_factor).sum() + np.logaddexp(0, np.exp(log_factor) * doubt))

    found = optimize.minimize_scalar(
        lambda log_factor: total(log_factor) / (len(labels) + 1),
        bounds=RANGE_OF_LOG_FACTOR,
        method="bounded",
        options={"xatol": TOLERANCE},
    )
    of_rows = losses(found.x)
    return Judgement(float(of_rows.mean()), float(np.exp(found.x)), of_rows)


def final_judgements(
    judge: Callable[[Any, int, Report], Judgement],
    candidates: Sequence[Any],
    rungs: Sequence[int],
    n_threads: int,
    report: Report,
    stay: Collection[int] = (0,),
    price: Callable[[Any], float] = lambda candidate: 0.0,
) -> list[Judgement | None]:
    """Of each candidate on the last rung; None of one that was left behind before.

    `judge(candidate, rung, report)` lets one go on to a rung and judges it there. Those that
    `stay`, such as the first, with which others are compared, always go on.
    """
    alive = list(range(len(candidates)))
    found: list[Judgement | None] = [None] * len(candidates)
    for rung in rungs:
        on_rung = [candidates[k] for k in alive]
        made = _judged_together(judge, on_rung, rung, n_threads, report, price)
        if rung == rungs[-1]:
            for k, judgement in zip(alive, made, strict=True):
                found[k] = judgement
        others = [k for k, candidate in enumerate(alive) if candidate not in stay]
        others.sort(key=lambda k: (math.isnan(made[k].loss), made[k].loss))
        kept = {*others[: -(-len(others) // KEPT)]}
        alive = [one for k, one in enumerate(alive) if k in kept or one in stay]
    return found


def _judged_together(
    judge: Callable[[Any, int, Report], Judgement],
    candidates: Sequence[Any],
    rung: int,
    n_threads: int,
    report: Report,
    price: Callable[[Any], float],
) -> list[Any]:
    """Judgements of all; the dearest begin first, so that threads end together."""
    made: list[Any] = [None] * len(candidates)
    turns = sorted(range(len(candidates)), key=lambda k: -price(candidates[k]))

    def work(turn: int, report: Report) -> None:
        made[turns[turn]] = judge(candidates[turns[turn]], rung, report)

    for_each(work, len(turns), n_threads, report)
    return made
