"""What there is to do: an algorithm with its settings, and rows that a training is to meet."""

from typing import Generic, NamedTuple, TypeVar

from polyplane.arrays import Array
from polyplane.estimator.input.validation import TrainingData
from polyplane.training.settings import Settings

__all__ = ["Job", "NewRows"]

Algorithm = TypeVar("Algorithm")


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
    goes_on: bool = False  # there is a training, which a fit takes up again
