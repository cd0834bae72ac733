"""Jobs: an algorithm with its settings, and rows that a training is to meet."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar

from polyplane.arrays import Array
from polyplane.training.rows import TrainingData

__all__ = ["Job", "NewRows", "Settings"]

Algorithm = TypeVar("Algorithm")


class Settings(SimpleNamespace):
    """The value of each parameter by its name. Nothing writes to it.

    What stands here is what the shell and the families read. An algorithm without such a parameter
    has the value that stands beside it.
    """

    name: str  # of the estimator, for messages
    n_threads: int
    verbose: bool | int = False
    alpha: Any = 1.0
    average: bool = False
    budget: int | None = None  # support vectors
    cache_mb: int = 0
    combine: str
    early_stopping: bool = False
    finishes: bool = True  # whether a fit of kernels ends with what `complete` does
    fit_intercept: bool = False
    max_iter: int
    max_planes: int | None = 0  # that a class may grow by itself; None: any number
    max_steps: int | None = None  # of a model, instead of `max_iter`
    multi_class: str
    n_estimators: int = 1
    n_iter_no_change: int = sys.maxsize
    pack: int = 256  # rows that one block of kernel values serves
    prune_interval: int = sys.maxsize  # steps between calls of `between`
    shuffle: bool
    tol: float = 0.0
    validation_fraction: float = 0.1

    def replaced(self, **values: Any) -> "Settings":
        """Return the same settings but for some."""
        return Settings(**vars(self) | values)

    def with_found(self, found: dict[str, Any]) -> "Settings":
        """Return the settings with what was found in the place of 'auto'."""
        return self.replaced(**{name: one for name, one in found.items() if self.is_open(name)})

    def is_open(self, name: str) -> bool:
        """Return True for a parameter that is 'auto'."""
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"

    def open_of(self, names: Sequence[str]) -> list[str]:
        """Return those of the parameters that are 'auto'."""
        return [name for name in names if self.is_open(name)]


class Job(NamedTuple, Generic[Algorithm]):
    """An algorithm and its settings."""

    algorithm: Algorithm
    settings: Settings


class NewRows(NamedTuple):
    """Rows that a training is about to meet."""

    data: TrainingData  # as they are
    labels: Array  # all that are known from now on, in the order in which they were met
    n_columns: int
    seed: int  # of a training that begins
    is_chunk: bool = False  # of a stream
