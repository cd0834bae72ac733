"""`polyplane bench`: how fast it is here, beside scikit-learn's linear SGD."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from polyplane.cli.failures import CallError
from polyplane.cli.output.screen import Screen
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.polyplane import PolyplaneClassifier

__all__ = ["run"]

EPOCHS, ROUNDS, SEED = 10, 5, 0
PEER = "SGDClassifier (scikit-learn)"
ALPHA = 1e-4
SET: dict[str, Any] = {"start_scale": 3.0, "step_size": 0.3, "columns": "plain", "init": "subset"}


@dataclass
class Race:
    """A machine at one task."""

    task: str
    machine: str
    made: Callable[[], Any]
    seconds: list[float] = field(default_factory=list)
    error: float = 0.0

    @property
    def epoch(self) -> float:
        """Median seconds of one pass."""
        return statistics.median(self.seconds) / EPOCHS


def run(screen: Screen, *, rounds: int | None, seed: int | None) -> None:
    """Let machines take turns, so that they share what else the computer does."""
    n_rounds, start = ROUNDS if rounds is None else rounds, SEED if seed is None else seed
    if n_rounds < 1:
        raise CallError(f"--rounds is {n_rounds}, expected 1 or more.")
    tasks = _tasks(start)
    races = [Race(task, name, made) for task in tasks for name, made in _machines(start).items()]
    with screen.progress("Racing", (n_rounds + 1) * len(races), "fits") as advance:
        for turn in range(n_rounds + 1):
            for race in races:
                _run_once(race, tasks[race.task], is_counted=turn > 0)
                advance(1, race.machine)
    peers = {race.task: race.epoch for race in races if race.machine == PEER}
    for task, (X, *_) in tasks.items():
        screen.table(
            ["machine", "ms an epoch", "ratio", "error"],
            [
                [
                    race.machine,
                    f"{1e3 * race.epoch:.2f}",
                    f"{race.epoch / peers[task]:.2f}",
                    f"{race.error:.2%}",
                ]
                for race in races
                if race.task == task
            ],
            f"{task}: {X.shape[0]:,} rows of {X.shape[1]} columns, medians of {n_rounds}",
        )
    screen.result({"rounds": n_rounds, "races": [_plain(race, peers) for race in races]})


def _tasks(seed: int) -> dict[str, tuple[Any, ...]]:
    digits, labels = load_digits(return_X_y=True)
    clouds, sides = make_classification(
        10_000, 40, n_informative=10, n_redundant=0, n_clusters_per_class=4, random_state=seed
    )
    tasks = {"digits, ten classes": (digits / 16, labels), "clouds, two classes": (clouds, sides)}
    return {
        name: tuple(train_test_split(X.astype(np.float32), y, random_state=seed, stratify=y))
        for name, (X, y) in tasks.items()
    }


def _machines(seed: int) -> dict[str, Callable[[], Any]]:
    settings: dict[str, Any] = {"max_iter": EPOCHS, "random_state": seed}
    return {
        PEER: lambda: SGDClassifier(alpha=ALPHA, tol=None, **settings),
        "pegasos": lambda: PegasosClassifier(alpha=ALPHA, **settings),
        "amm": lambda: AMMClassifier(alpha=ALPHA, **settings),
        "polyplane, 16 planes": lambda: PolyplaneClassifier(
            n_planes=16, multi_class="joint", **SET, **settings
        ),
    }


def _run_once(race: Race, parts: tuple[Any, ...], is_counted: bool) -> None:
    X, X_test, y, y_test = parts
    machine = race.made()
    start = time.perf_counter()
    machine.fit(X, y)
    if is_counted:
        race.seconds.append(time.perf_counter() - start)
    race.error = float(np.mean(machine.predict(X_test) != y_test))


def _plain(race: Race, peers: dict[str, float]) -> dict[str, Any]:
    return {
        "task": race.task,
        "machine": race.machine,
        "epoch_seconds": race.epoch,
        "ratio": race.epoch / peers[race.task],
        "error": race.error,
    }
