"""A model in training: its planes, what it has seen, and the walk over rows.

All training, whether `fit`, `partial_fit` or a search, is `visit`: rows in some order, cut only
where something is due by the count of steps. Where the caller cuts his data changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyplane.engine.planes import (
    CREATED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    Array,
    Planes,
    copied,
    count_planes,
    has_idle_tile,
    live_lanes,
    with_more_room,
)
from polyplane.estimator.progress import Report
from polyplane.estimator.validation import TrainingData
from polyplane.model.record import PlaneRecord, record_of

__all__ = ["HISTORY", "NO_CHOICE", "Snapshot", "Training", "Walk", "next_multiple", "visit"]

RECORD_EVERY = 10_000  # steps between points of the history, after powers of two up to there
HISTORY = np.dtype(
    [("step", "i8"), ("planes", "i8"), ("created", "i8"), ("pruned", "i8"), ("error", "f8")]
)
NO_CHOICE = np.empty(0, np.int32)


class Snapshot(NamedTuple):
    """A state to return to."""

    planes: Planes
    n_steps: int
    mistakes_noted: int
    n_notes: int


@dataclass
class Training:
    """What `fit` and `partial_fit` leave behind and take up again."""

    planes: Planes
    alpha: float
    constant: float  # 1 with an intercept, 0 without
    seed: int
    generator: np.random.Generator
    labels: Array  # of all classes met, in the order in which they were met
    n_columns: int
    n_steps: int = 0
    mistakes_noted: int = 0
    start_length: float = 1.0  # of the first row, for machines whose planes start at random
    history: list[tuple[int, int, int, int, float]] = field(default_factory=list)

    @cached_property
    def classes(self) -> Array:
        """The labels, sorted."""
        return np.sort(self.labels)

    def forget_results(self) -> None:
        """Called whenever training goes on: what was derived is no longer true."""
        self.__dict__.pop("classes", None)
        self.__dict__.pop("_record", None)

    def record(self, alpha: float) -> PlaneRecord:
        """The model reached, W = Theta / (alpha t)."""
        if "_record" not in self.__dict__:
            class_of_code = np.searchsorted(self.classes, self.labels)
            scale = 1.0 / (alpha * max(self.n_steps, 1))
            self.__dict__["_record"] = record_of(
                self.planes, self.n_steps, scale, class_of_code, self.n_columns
            )
        made: PlaneRecord = self.__dict__["_record"]
        return made

    def snapshot(self) -> Snapshot:
        """The state now."""
        return Snapshot(copied(self.planes), self.n_steps, self.mistakes_noted, len(self.history))

    def return_to(self, snapshot: Snapshot) -> None:
        """Take up an earlier state."""
        self.planes, self.n_steps, self.mistakes_noted, n_notes = snapshot
        del self.history[n_notes:]
        self.forget_results()

    def note(self) -> None:
        """A point of the history; its error is that of the steps since the point before."""
        counts = self.planes.counts
        mistakes = int(counts[MISTAKES])
        steps = self.n_steps - (self.history[-1][0] if self.history else 0)
        error = (mistakes - self.mistakes_noted) / steps
        self.mistakes_noted = mistakes
        created, pruned = int(counts[CREATED]), int(counts[PRUNED])
        self.history.append((self.n_steps, created - pruned, created, pruned, error))


class Walk(NamedTuple):
    """What a machine does along the way."""

    steps: Callable[[Training, TrainingData, Array, Array], int]  # its loop; returns new n_steps
    due: Callable[[int], int]  # next count of steps at which `act` wants to be called
    act: Callable[[Training], None]


def _next_record(step: int) -> int:
    """Next power of two below RECORD_EVERY, then its multiples."""
    power = 1 << step.bit_length()
    return min(power, RECORD_EVERY) if step < RECORD_EVERY else next_multiple(step, RECORD_EVERY)


def next_multiple(step: int, interval: int) -> int:
    """The first multiple of `interval` after `step`."""
    return (step // interval + 1) * interval


def _make_room(training: Training, chosen: Array) -> None:
    """More lanes; rows that have chosen a plane follow it to its new place."""
    lanes = live_lanes(training.planes)
    place = np.full(training.planes.owner.size, NO_PLANE, np.int32)
    place[lanes] = np.arange(lanes.size, dtype=np.int32)
    training.planes = with_more_room(training.planes)
    chosen[chosen >= 0] = place[chosen[chosen >= 0]]


def visit(
    training: Training, data: TrainingData, order: Array, chosen: Array, walk: Walk, report: Report
) -> None:
    """Visit the rows in `order`, once each."""
    done = 0
    while done < order.size:
        training.forget_results()
        before, mistakes = training.n_steps, int(training.planes.counts[MISTAKES])
        next_act, next_note = walk.due(before), _next_record(before)
        part = order[done : done + min(next_act, next_note) - before]
        training.n_steps = walk.steps(training, data, part, chosen)
        visited = training.n_steps - before
        done += visited
        if training.n_steps == next_act:
            walk.act(training)
        if visited < part.size or has_idle_tile(training.planes):
            _make_room(training, chosen)
        if training.n_steps == next_note:
            training.note()
        n_mistakes = int(training.planes.counts[MISTAKES]) - mistakes
        report(visited, count_planes(training.planes), n_mistakes / max(visited, 1))
