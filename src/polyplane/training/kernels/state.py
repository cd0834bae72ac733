"""Trainings of kernels: support rows, and for each problem a set of support vectors.

Support rows are copied out, so that a stream need not be kept; memory grows with them alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.support.support_set import OF_SIDE, SupportSet, active_slots
from polyplane.model.kernels.kernel_record import Expansion, KernelRecord
from polyplane.model.kernels.kernel_values import Kernel, KernelRows, no_rows
from polyplane.model.many_classes.decomposition import Problem
from polyplane.training.state import Training
from polyplane.training.work.interruption import SeenRows

__all__ = ["KernelCourse", "KernelModel", "KernelTraining", "SupportRows", "one_sided"]


class Growing:
    """An array that is appended to without being copied each time."""

    def __init__(self, start: Array) -> None:
        self.room, self.size = start.copy(), start.size

    @property
    def array(self) -> Array:
        """Return the part of the array that is in use."""
        return self.room[: self.size]

    def append(self, more: Array) -> None:
        """Add to its end."""
        size = self.size + more.size
        if size > self.room.size:
            longer = np.empty(max(size, 2 * self.size), self.room.dtype)
            longer[: self.size] = self.array
            self.room = longer
        self.room[self.size : size] = more
        self.size = size


class SupportRows:
    """Support rows, which grow."""

    def __init__(self, rows: KernelRows | None = None) -> None:
        rows = no_rows() if rows is None else rows
        entries = rows.entries
        self.values, self.columns = Growing(entries.values), Growing(entries.columns)
        self.starts, self.constant = Growing(entries.starts), entries.constant
        self.by_row = [Growing(array) for array in (rows.lengths, rows.numbers, rows.labels)]

    @property
    def rows(self) -> KernelRows:
        """The rows, in place."""
        entries = CsrRows(self.values.array, self.columns.array, self.starts.array, self.constant)
        return KernelRows(entries, *(grown.array for grown in self.by_row))

    def append(self, rows: KernelRows) -> None:
        """Add rows to the end."""
        entries = rows.entries
        self.starts.append(self.values.size + entries.starts[1:])
        self.values.append(entries.values)
        self.columns.append(entries.columns)
        of_rows = (rows.lengths, rows.numbers, rows.labels)
        for grown, more in zip(self.by_row, of_rows, strict=True):
            grown.append(more)


@dataclass
class KernelModel:
    """One problem in training."""

    problem: Problem
    held: SupportSet
    seed: int
    rule: Any = None
    n_steps: int = 0
    is_over: bool = False  # another pass would change nothing

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)


@dataclass
class KernelCourse:
    """Progress of a fit in the current pass: enough to resume after an interruption."""

    rows_seen: SeenRows
    first_number: int  # of the rows of X
    mixed_by: Any = None  # the generator's state before it mixed the rows
    n_visited: int = 0


@dataclass(kw_only=True)
class KernelTraining(Training):
    """State of kernel models between calls of `fit` and `partial_fit`."""

    kernel: Kernel
    gamma: float
    cache_bytes: int
    is_dense: bool  # how users hold their rows
    models: list[KernelModel] = field(default_factory=list)
    pool: SupportRows = field(default_factory=SupportRows)
    places: dict[int, int] = field(default_factory=dict)  # of support rows, by number
    n_seen: int = 0  # rows of X handed in so far: their numbers
    course: KernelCourse | None = None  # until a fit is finished
    derived: Any = None  # of the support rows, which an algorithm need not derive at each step

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    @property
    def is_unfinished(self) -> bool:
        """Return True if a fit was interrupted."""
        return self.course is not None

    def end_fit(self) -> None:
        """Forget how far a fit has come."""
        self.course = None

    def renumber(self, numbers: Array) -> None:
        """Let rows of X have these numbers, and rows to come higher ones."""
        rows = self.support
        self.pool = SupportRows(rows._replace(numbers=numbers[rows.numbers]))
        self.places = {number: place for place, number in enumerate(self.support.numbers.tolist())}
        self.n_seen = int(numbers.max()) + 1
        for model in self.models:
            slots = active_slots(model.held)
            model.held.row[slots] = numbers[model.held.row[slots]]

    @property
    def support(self) -> KernelRows:
        """The support rows of all problems."""
        return self.pool.rows

    def live(self) -> Array:
        """Places of support rows that a problem needs, in increasing order."""
        is_live = np.zeros(self.support.size, bool)
        for model in self.models:
            is_live[model.held.place[active_slots(model.held)]] = True
        return np.flatnonzero(is_live)

    def record(
        self, expand: Callable[[KernelModel], tuple[Array, float]], combine: str
    ) -> KernelRecord:
        """The classifier reached; `expand` gives a model's coefficients by slot.

        Its kernel has no offset: that is in the intercepts.
        """
        live = self.live()
        live = live[np.argsort(self.support.numbers[live])]
        decomposition = self.decomposition(combine)
        by_problem = {model.problem: model for model in self.models}
        place_of = np.zeros(self.support.size, np.int32)
        place_of[live] = np.arange(live.size)
        expansions = []
        for problem in decomposition.problems():
            model = by_problem[problem]
            coefs, intercept = expand(model)
            slots = np.sort(active_slots(model.held))
            expansions.append(Expansion(place_of[model.held.place[slots]], coefs[slots], intercept))
        return KernelRecord(
            self.kernel.without_offset(), self.support.chosen(live), expansions, decomposition
        )


def one_sided(model: KernelModel) -> float | None:
    """Return the score of a problem that has not met both sides, and None of one that has."""
    n_first, n_second = model.held.counts[OF_SIDE : OF_SIDE + 2]
    if n_first > 0 and n_second > 0:
        return None
    return float(n_second > 0) - float(n_first > 0)
