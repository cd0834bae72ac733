"""`polyplane tune`: settings of an algorithm on held-out rows, one parameter after the other."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.cli.failures import CallError
from polyplane.cli.input.estimators import allows, estimator_class, made
from polyplane.cli.input.model_input import check_choice
from polyplane.cli.input.row_input import labelled_sample
from polyplane.cli.options.algorithms import Algorithm, algorithm_of
from polyplane.cli.options.shared_options import words_of_reading
from polyplane.cli.options.train_request import scale_of
from polyplane.cli.output.evaluation_report import plain_evaluation, show_evaluation
from polyplane.cli.output.screen import Screen
from polyplane.data.chunks import Chunk
from polyplane.report.curve import curve
from polyplane.report.metrics import METRICS, Evaluation
from polyplane.tuning.held_out import Split, Trial, folds_of, share_of, tried

__all__ = ["run", "usual_values"]

ROWS, SHARE, SEED = 20_000, 0.2, 0
A_FEW = 20  # rows of a class
POWERS = tuple(10.0**-k for k in range(2, 8))
USUAL: Mapping[str, Sequence[Any]] = {  # in the order in which they are tuned
    "n_planes": (1, 2, 4, 8, 16, 32),
    "alpha": POWERS,
    "mu": (0.0, 1e-5, 1e-4, 1e-3, 1e-2),
    "entropy": (0.0, 0.5, 0.75, 0.9, 0.98),
    "clone_probability": (0.1, 0.2, 0.4),
    "gamma": (0.1, 0.3, 1.0, 3.0, 10.0),  # where the kernel has a scale, times it
    "C": (0.1, 1.0, 10.0, 100.0, 1000.0),
    "step_size": (0.1, 0.3, 1.0),
}


@dataclass(frozen=True)
class Found:
    """A value of a parameter, and how it did."""

    value: Any
    trial: Trial


@dataclass(frozen=True)
class Goal:
    """What makes a setting better than another, and how it is looked at."""

    metric: str = "error"
    threshold: float | None = None
    positive: str | None = None

    def check(self, algorithm: str, classes: Any) -> None:
        """What does not fit the algorithm, or the classes once they are known, is refused."""
        kind = estimator_class(algorithm)
        has_probabilities = hasattr(kind, "predict_proba")
        check_choice(self.threshold, self.positive, classes, has_probabilities, kind.__name__)
        if self.metric in ("log-loss", "brier") and not has_probabilities:
            raise CallError(
                f"--metric {self.metric} is about probabilities, which {algorithm} has not: take "
                "error, auc or average-precision, or the algorithm polyplane."
            )

    def new_evaluation(self, algorithm: str, classes: Any) -> Evaluation:
        """Nothing evaluated yet."""
        has_probabilities = hasattr(estimator_class(algorithm), "predict_proba")
        return Evaluation(classes, has_probabilities, self.positive, self.threshold)

    def value_of(self, trial: Trial) -> float:
        """How good a trial was."""
        assert trial.evaluation is not None
        return trial.evaluation.value_of(self.metric)

    def price_of(self, trial: Trial) -> float:
        """The same, less being better; what is not known is worst."""
        price = METRICS[self.metric] * self.value_of(trial)
        return math.inf if math.isnan(price) else price

    def in_words(self, value: float) -> str:
        """Errors are shares."""
        return f"{value:.2%}" if self.metric == "error" else f"{value:.4f}"


def _metric_of(given: str | None) -> str:
    if given is not None and given not in METRICS:
        raise CallError(f"--metric is {given!r}, expected one of {', '.join(METRICS)}.")
    return given or "error"


def run(
    screen: Screen,
    *,
    data: Sequence[str],
    algorithm: str,
    stated: Sequence[str] | None,
    metric: str | None,
    threshold: float | None,
    positive: str | None,
    folds: int | None,
    share: float | None,
    rows: int | None,
    scale: str | None,
    seed: int | None,
    parameters: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Find the best value of each parameter, the others being as they are."""
    chosen, scaled, start = algorithm_of(algorithm), scale_of(scale), seed or SEED
    fixed = chosen.values_of(parameters)
    made(algorithm, fixed)  # every value lies in its range, or nothing is read
    wanted = _stated(chosen, stated or [], fixed)
    _check_splits(folds, share)
    goal = Goal(_metric_of(metric), threshold, positive)
    goal.check(algorithm, None)
    sample, n_met = labelled_sample(data, reading, rows or ROWS, start, screen)
    goal.check(algorithm, np.unique(sample.y))
    splits = (
        folds_of(sample.y, folds, start) if folds else share_of(sample.y, share or SHARE, start)
    )
    grid = wanted or usual_values(chosen, fixed, sample)
    best: dict[str, Any] = {}
    tables: dict[str, list[Found]] = {}
    n_trials = sum(map(len, grid.values())) * len(splits)
    _warm_up(algorithm, fixed, sample, scaled)
    with screen.progress("Tuning", n_trials, "fits") as advance:
        for name, values in grid.items():
            settings = [{**fixed, **best, name: value} for value in values]
            found = [
                Found(
                    value, _trial(algorithm, setting, sample, splits, scaled, goal, start, advance)
                )
                for value, setting in zip(values, settings, strict=True)
            ]
            tables[name] = found
            winner = min(found, key=lambda one: goal.price_of(one.trial))
            best[name] = winner.value
    _show(screen, chosen, tables, best, goal, n_met, sample.y.size)
    asked = [*words_of_reading(reading), *([] if seed is None else ["--seed", str(seed)])]
    asked += [] if scaled == "none" else ["--scale", scaled]
    judged = winner.trial.evaluation if tables else None
    if judged is not None:
        screen.say()
        screen.say("The best of them, on held-out rows")
        show_evaluation(screen, judged)
    _tell(screen, chosen, tables, {**fixed, **best}, data, asked, sample.y.size, goal, judged)


def _check_splits(folds: int | None, share: float | None) -> None:
    if folds is not None and share is not None:
        raise CallError("--folds and --share exclude each other: leave one out.")
    if folds is not None and folds < 2:
        raise CallError(f"--folds is {folds}, expected 2 or more.")
    if share is not None and not 0 < share < 1:
        raise CallError(f"--share is {share}, expected a number between 0 and 1.")


def _stated(
    chosen: Algorithm, texts: Sequence[str], fixed: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """What --try says."""
    options = {name.lower(): name for name in chosen.parameters}
    options |= {p.option.lstrip("-").lower(): p.name for p in chosen.parameters.values()}
    grid: dict[str, list[Any]] = {}
    for text in texts:
        said, _, values = text.partition("=")
        name = options.get(said.strip().lstrip("-").lower())
        if name is None or not values:
            raise CallError(
                f"--try is {text!r}, expected a parameter of {chosen.name} and values, such as "
                "alpha=1e-3,1e-4."
            )
        if name in fixed:
            raise CallError(f"--try {said} and its own option exclude each other: leave one out.")
        parameter = chosen.parameters[name]
        flags = {"yes": True, "no": False}
        parts = [part.strip() for part in values.split(",")]
        grid[name] = [
            flags[part] if parameter.is_flag and part in flags else parameter.value_of(part)
            for part in parts
        ]
        for value in grid[name]:
            made(chosen.name, {name: value})
    return grid


def usual_values(
    chosen: Algorithm, fixed: Mapping[str, Any], sample: Chunk
) -> dict[str, list[Any]]:
    """What is tried of each parameter that an algorithm has, its default always among it."""
    kind = estimator_class(chosen.name)
    grid = {}
    for name, usual in USUAL.items():
        if name not in chosen.parameters or name in fixed:
            continue
        parameter = chosen.parameters[name]
        values = list(usual)
        if "scale" in parameter.words:
            values = [_rounded(value * _kernel_scale(sample.X)) for value in usual]
        values = [value for value in values if allows(kind, name, value)]
        is_there = parameter.default in values or parameter.default == "scale"
        grid[name] = values if is_there else [parameter.default, *values]
    return grid


def _kernel_scale(X: Any) -> float:
    """gamma='scale' of the kernel machines: 1 / (columns * variance)."""
    values = X if isinstance(X, np.ndarray) else X.data
    n = X.shape[0] * X.shape[1]
    mean = float(values.sum(dtype=np.float64)) / n
    variance = float(np.square(values, dtype=np.float64).sum()) / n - mean * mean
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _warm_up(algorithm: str, settings: Mapping[str, Any], sample: Chunk, scale: str) -> None:
    """A fit of few rows, so that no trial's time is that of compiling."""
    firsts = [np.flatnonzero(sample.y == label)[:A_FEW] for label in np.unique(sample.y)]
    few = np.concatenate(firsts)
    for _ in tried(lambda: made(algorithm, settings), sample.X, sample.y, [(few, few)], scale):
        pass


def _trial(
    algorithm: str, settings: Mapping[str, Any], sample: Chunk, splits: Sequence[Split],
    scale: str, goal: Goal, seed: int, advance: Any,
) -> Trial:  # fmt: skip
    trial = Trial()
    evaluation = goal.new_evaluation(algorithm, np.unique(sample.y))
    for trial in tried(
        lambda: made(algorithm, {**settings, "random_state": seed}), sample.X, sample.y, splits,
        scale, evaluation,
    ):  # fmt: skip
        advance(1, f"error {trial.error:.2%}")
    return trial


# ---- results -----------------------------------------------------------------------------


def _show(
    screen: Screen,
    chosen: Algorithm,
    tables: Mapping[str, list[Found]],
    best: Mapping[str, Any],
    goal: Goal,
    n_met: int,
    n_rows: int,
) -> None:
    of_all = f" of {n_met:,}" if n_met > n_rows else ""
    screen.say(f"{chosen.name} on {n_rows:,}{of_all} rows; {goal.metric} on held-out rows decides")
    unit = "planes" if chosen.has_planes else "vectors"
    others = [] if goal.metric == "error" else [goal.metric]
    for name, found in tables.items():
        option = chosen.parameters[name].option
        screen.table(
            [option, "error", "±", *others, unit, "seconds"],
            [
                [
                    f"{_said(one.value)}{' (best)' if one.value == best[name] else ''}",
                    f"{one.trial.error:.2%}",
                    f"{one.trial.standard_error:.2%}",
                    *(f"{_judged(one.trial).value_of(metric):.4f}" for metric in others),
                    f"{one.trial.size:.0f}",
                    f"{one.trial.median_seconds:.2f}",
                ]
                for one in found
            ],
        )
        points = [(_said(one.value), goal.value_of(one.trial), _spread(goal, one)) for one in found]
        for line in curve(points, min(screen.out.width, 78), screen.is_ascii, goal.in_words):
            screen.say(line)


def _judged(trial: Trial) -> Evaluation:
    assert trial.evaluation is not None
    return trial.evaluation


def _spread(goal: Goal, found: Found) -> float:
    """Only of errors is it known."""
    return found.trial.standard_error if goal.metric == "error" else math.nan


def _said(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _tell(
    screen: Screen,
    chosen: Algorithm,
    tables: Mapping[str, list[Found]],
    settings: Mapping[str, Any],
    data: Sequence[str],
    asked: Sequence[str],
    n_rows: int,
    goal: Goal,
    judged: Evaluation | None,
) -> None:
    options = [chosen.parameters[name].text_of(value) for name, value in settings.items()]
    words = [f"--algorithm {chosen.name}", *options, *([shlex.join(asked)] if asked else [])]
    screen.say()
    screen.say(f"polyplane train {shlex.join(data)} {' '.join(words)}", is_one_line=True)
    screen.result(
        {
            "algorithm": chosen.name,
            "rows": n_rows,
            "best": settings,
            "error": judged.tally.error if judged else None,
            "metric": goal.metric,
            "value": judged.value_of(goal.metric) if judged else None,
            "evaluation": plain_evaluation(judged) if judged else None,
            "options": " ".join(words),
            "trials": [
                {
                    "parameter": name,
                    "value": one.value,
                    "standard_error": one.trial.standard_error,
                    **{
                        metric.replace("-", "_"): _judged(one.trial).value_of(metric)
                        for metric in METRICS
                    },
                    "size": one.trial.size,
                    "seconds": one.trial.median_seconds,
                }
                for name, found in tables.items()
                for one in found
            ],
        }
    )
