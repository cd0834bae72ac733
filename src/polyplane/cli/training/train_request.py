"""Arguments of `polyplane train`, as plain values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from polyplane.cli.failures import CallError

__all__ = ["Checkpoint", "TrainRequest", "train_request"]

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Checkpoint:
    """Interval at which a model is written during training: one of the two is given."""

    seconds: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class TrainRequest:
    """A training: from which rows, with which algorithm, to which file."""

    data: Sequence[str]  # paths, patterns or "-": a source of `polyplane.stream`
    algorithm: str  # its short name
    settings: Sequence[str] = ()  # texts such as "n_planes=16"
    seed: int | None = None
    jobs: int | None = None
    test: str | None = None  # rows to measure the error on
    threshold: float | None = None  # from which on they count as positive
    positive: str | None = None  # label of that class
    model: str | None = None  # file to write
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
    reading: dict[str, Any],
    scale: str | None = None,
    checkpoint: str | None = None,
    **others: Any,
) -> TrainRequest:
    """Return the request of what stands on the command line."""
    reading = dict(reading)
    on_bad = reading.pop("on_bad", "raise")
    return TrainRequest(
        scale=scale or "none",
        checkpoint=None if checkpoint is None else _checkpoint_of(checkpoint),
        reading=reading,
        on_bad=on_bad,
        **others,
    )


def _checkpoint_of(text: str) -> Checkpoint:
    """Return a time for 60s, 5m and 1h, and a count of rows for a number alone."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([smh]?)", text.strip())
    number = float(found[1]) if found else 0.0
    if found is None or number <= 0 or (not found[2] and number != int(number)):
        raise CallError(
            f"--checkpoint is {text!r}, expected a time such as 60s, 5m or 1h, or a number of rows."
        )
    if found[2]:
        return Checkpoint(seconds=number * SECONDS[found[2]])
    return Checkpoint(rows=int(number))
