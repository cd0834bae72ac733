"""Is it nonlinear? Machines of different kinds side by side, and what follows from their errors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.convex_polytope import CPMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.polyplane import PolyplaneClassifier
from polyplane.kernel.huller import HullerClassifier
from polyplane.report.metrics import standard_error
from polyplane.tuning.held_out import Trial, folds_of, tried

__all__ = ["CONTESTANTS", "Advice", "advice", "compared"]

LINEAR, KERNEL = "pegasos", "huller"
SURE, UNSURE = 3.0, 1.5  # standard errors: the best of several leads by some luck
SLACK = 10.0  # price of the Huller's quadratic slack: a hard margin learns noise by heart


class Contestant(NamedTuple):
    """A machine with settings that need no tuning."""

    made: Callable[..., Any]
    scale: str
    unit: str


def _with_alpha(kind: Any) -> Callable[..., Any]:
    return lambda **settings: kind(alpha="auto", **settings)


CONTESTANTS: Mapping[str, Contestant] = {
    LINEAR: Contestant(_with_alpha(PegasosClassifier), "maxabs", "planes"),
    "amm": Contestant(_with_alpha(AMMClassifier), "maxabs", "planes"),
    "cpm": Contestant(_with_alpha(CPMClassifier), "maxabs", "planes"),
    KERNEL: Contestant(
        lambda **settings: HullerClassifier(C=SLACK, **settings), "maxabs", "vectors"
    ),
    "polyplane": Contestant(PolyplaneClassifier, "none", "planes"),  # it scales by itself
}


def compared(
    X: Any, y: Array, n_folds: int, seed: int, n_jobs: int | None = None
) -> Iterator[tuple[str, Trial]]:
    """The trial of each machine on the same splits, again after each of them."""
    splits = folds_of(y, n_folds, seed)
    for name, contestant in CONTESTANTS.items():

        def made(contestant: Contestant = contestant) -> Any:
            return contestant.made(random_state=seed, n_jobs=n_jobs)

        for trial in tried(made, X, y, splits, contestant.scale):
            yield name, trial


@dataclass(frozen=True)
class Advice:
    """A word, and a sentence with the numbers from which it follows."""

    verdict: str  # noise, linear, more-data, piecewise-linear or kernel
    sentence: str


def advice(trials: Mapping[str, Trial], y: Array) -> Advice:
    """What to do with data on which machines did so."""
    linear = trials[LINEAR]
    planes = {name: trial for name, trial in trials.items() if name not in (LINEAR, KERNEL)}
    name, best = min(planes.items(), key=lambda item: item[1].error)
    lead, spread = best.lead_over(linear)
    by_kernel, kernel_spread = trials[KERNEL].lead_over(best)
    lowest = min(trial.error for trial in trials.values())
    usual, share = _usual(y)
    if lowest > 1 - share - 2 * standard_error(1 - share, y.size):
        return Advice(
            "noise",
            f"Nothing here beats always saying {usual!r}, which is wrong on {1 - share:.1%}: the "
            "columns say little about the label, or too few rows do.",
        )
    if by_kernel > SURE * kernel_spread and trials[KERNEL].error < linear.error:
        return Advice(
            "kernel",
            f"It is nonlinear, and a kernel machine sees more than planes do: huller has "
            f"{trials[KERNEL].error:.1%}, {name} {best.error:.1%} (a lead of "
            f"{_points(by_kernel, kernel_spread)}); more rows help planes, else take huller.",
        )
    if lead > SURE * spread:
        return Advice(
            "piecewise-linear",
            f"It is nonlinear: {name} has {best.error:.1%} where a linear machine has "
            f"{linear.error:.1%}, a lead of {_points(lead, spread)}; take {name}.",
        )
    if lead > UNSURE * spread:
        return Advice(
            "more-data",
            f"These rows do not tell: {name} leads a linear machine by {_points(lead, spread)}, "
            "which may be luck; take more with --rows.",
        )
    return Advice(
        "linear",
        f"It looks linear: no machine with more planes beats the linear one's {linear.error:.1%} "
        f"by more than luck ({name}: {_points(lead, spread)}); take pegasos, or any of them.",
    )


def _usual(y: Array) -> tuple[Any, float]:
    labels, counts = np.unique(y, return_counts=True)
    place = int(np.argmax(counts))
    return labels.tolist()[place], float(counts[place] / y.size)


def _points(difference: float, spread: float) -> str:
    return f"{100 * difference:.2f} ± {100 * spread:.2f} points"
