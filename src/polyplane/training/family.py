"""Functions that the shell calls for a family of algorithms: of planes or of kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from polyplane.arrays import Array
from polyplane.training.job import Job, NewRows
from polyplane.training.rows import TrainingData
from polyplane.training.state import Training
from polyplane.training.work.progress import Report

__all__ = ["Family"]

State = TypeVar("State", bound=Training)


@dataclass(frozen=True)
class Family(Generic[State]):
    """Functions over the trainings of a family; a `Job` is an algorithm with its settings."""

    unit: str  # of the size of a model
    explains: bool  # whether importances of columns are told, by rows that are kept
    has_constant: bool  # whether an intercept is a feature of rows

    check: Callable[[Job[Any], TrainingData, int], None]
    """(job, data, n_columns): refuse rows of a fit that cannot be trained on."""
    check_streamable: Callable[[Job[Any], bool], None]
    """(job, begins): refuse settings that need all rows at once."""
    new: Callable[[Job[Any], NewRows], State]
    """A training before its first row."""
    meet: Callable[[Job[Any], State, NewRows], tuple[State, TrainingData]]
    """(job, training, rows): a copy that has met these rows, and the rows as its steps see them."""
    meet_chunk: Callable[
        [Job[Any], State | None, NewRows, Array], tuple[State, TrainingData, Array]
    ]
    """(job, training or None, rows, members): the same for a chunk of a stream; the training, rows
    as its steps see them, and those that are still to be visited."""
    begin: Callable[[Job[Any], State, TrainingData, Array], None]
    """(job, training, rows, members): the beginning of a fit."""
    count_steps: Callable[[Job[Any], State, TrainingData, Array], int]
    """(job, training, rows, members): steps until the end of a fit, or of a chunk."""
    pass_over: Callable[[Job[Any], State, TrainingData, Array, Report], None]
    """One more pass of all models, or what is left of it."""
    learn: Callable[[Job[Any], State, TrainingData, Array, Report], None]
    """Visit the rows of a chunk, once, in the order given."""
    is_over: Callable[[Job[Any], State], bool]
    """Whether all passes have been made, or another one would change nothing."""
    complete: Callable[[Job[Any], State, TrainingData | None, Array | None], None]
    """The end of a fit; of a stream no rows are at hand."""
    record: Callable[[Any, State, str], Any]
    """(algorithm, training, combine): what predicts."""
