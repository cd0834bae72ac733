"""What `polyplane train` was asked to do, as plain values."""

import re
from dataclasses import dataclass, field
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.algorithms import algorithm_of

__all__ = ["SCALES", "Checkpoint", "TrainRequest", "train_request"]

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
SCALES = ("none", "maxabs", "standard")


@dataclass(frozen=True)
class Checkpoint:
    """How often a model is written on the way: one of the two is given."""

    seconds: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class TrainRequest:
    """A training: from which rows, with which algorithm, to which file.

    Parameters are those that were given, under their names in Python and as the values that they
    are there; what they may be is checked by the estimator. `cli/input/estimators.py` makes
    the estimator, and says of a parameter out of its range which option it was.
    """

    data: list[str]  # paths, patterns or "-": a source of `polyplane.stream`
    algorithm: str  # name of the estimator's class
    test: str | None = None  # rows to measure the error on
    threshold: float | None = None  # from which on they count as positive
    positive: str | None = None  # label of that class
    model: str | None = None  # file to write
    parameters: dict[str, Any] = field(default_factory=dict)  # --seed is random_state
    stream: bool = False
    chunk_rows: int | None = None  # None is the usual number
    cache: bool = False
    scale: str = "none"  # or "maxabs" or "standard"
    resume: str | None = None  # a model file to go on from
    checkpoint: Checkpoint | None = None
    reading: dict[str, Any] = field(default_factory=dict)  # options of `polyplane.stream`
    on_bad: str = "raise"  # or "skip"
    cluster: str | None = None  # address of a Dask scheduler, or "local:8"
    learners: int | None = None  # on the cluster


def train_request(
    *,
    algorithm: str,
    parameters: dict[str, Any],
    reading: dict[str, Any],
    seed: int | None = None,
    scale: str | None = None,
    checkpoint: str | None = None,
    **others: Any,
) -> TrainRequest:
    """The request of what stands on the command line."""
    chosen = algorithm_of(algorithm)
    values = chosen.values_of(parameters)
    if seed is not None:
        values["random_state"] = seed
    reading = dict(reading)
    on_bad = reading.pop("on_bad", "raise")
    return TrainRequest(
        algorithm=chosen.class_name,
        parameters=values,
        scale=scale_of(scale),
        checkpoint=None if checkpoint is None else _checkpoint_of(checkpoint),
        reading=reading,
        on_bad=on_bad,
        **others,
    )


def scale_of(given: str | None) -> str:
    """The scaling asked for, of those that there are."""
    scale = given or "none"
    if scale not in SCALES:
        raise CallError(f"--scale is {scale!r}, expected one of {', '.join(SCALES)}.")
    return scale


def _checkpoint_of(text: str) -> Checkpoint:
    """60s, 5m and 1h are times; a number alone counts rows."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([smh]?)", text.strip())
    number = float(found[1]) if found else 0.0
    if found is None or number <= 0 or (not found[2] and number != int(number)):
        raise CallError(
            f"--checkpoint is {text!r}, expected a time such as 60s, 5m or 1h, or a number of rows."
        )
    if found[2]:
        return Checkpoint(seconds=number * SECONDS[found[2]])
    return Checkpoint(rows=int(number))
