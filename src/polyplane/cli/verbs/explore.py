"""`polyplane explore`: is it nonlinear?"""

from collections.abc import Sequence
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.input.row_input import labelled_sample
from polyplane.cli.screen import Screen
from polyplane.tuning.diagnosis import CONTESTANTS, advice, compared
from polyplane.tuning.held_out import Trial

__all__ = ["run"]

ROWS, FOLDS, SEED = 5_000, 3, 0


def run(
    screen: Screen,
    *,
    data: Sequence[str],
    rows: int | None,
    folds: int | None,
    seed: int | None,
    jobs: int | None,
    reading: dict[str, Any],
) -> None:
    """Try machines of different kinds on a sample, and say what follows."""
    n_folds, start = FOLDS if folds is None else folds, SEED if seed is None else seed
    if n_folds < 2:
        raise CallError(f"--folds is {n_folds}, expected 2 or more.")
    sample, n_met = labelled_sample(data, reading, ROWS if rows is None else rows, start, screen)
    trials: dict[str, Trial] = {}
    with screen.progress("Exploring", len(CONTESTANTS) * n_folds, "fits") as advance:
        for name, trial in compared(sample.X, sample.y, n_folds, start, jobs):
            trials[name] = trial
            advance(1, f"{name} {trial.error:.2%}")
    said = advice(trials, sample.y)
    of_all = f" of {n_met:,}" if n_met > sample.y.size else ""
    screen.table(
        ["machine", "error", "±", "size", "seconds"],
        [
            [
                name,
                f"{trial.error:.2%}",
                f"{trial.standard_error:.2%}",
                f"{trial.size:.0f} {CONTESTANTS[name].unit}",
                f"{trial.median_seconds:.2f}",
            ]
            for name, trial in trials.items()
        ],
        f"{sample.y.size:,}{of_all} rows, each held out once",
    )
    screen.say(said.sentence)
    screen.result(
        {
            "rows": int(sample.y.size),
            "rows_met": n_met,
            "verdict": said.verdict,
            "advice": said.sentence,
            "machines": [
                {
                    "algorithm": name,
                    "error": trial.error,
                    "standard_error": trial.standard_error,
                    "size": trial.size,
                    "unit": CONTESTANTS[name].unit,
                    "seconds": trial.median_seconds,
                }
                for name, trial in trials.items()
            ],
        }
    )
