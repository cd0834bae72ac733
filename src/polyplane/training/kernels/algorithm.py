"""The record of an algorithm of kernels.

An algorithm walks through a chunk of rows, for one problem at a time, with a block of kernel values
at hand and, where it looks at values among support vectors, a cache that may lack a line.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.support.support_set import SupportSet, Visit, empty_set
from polyplane.training.columns import Columns
from polyplane.training.job import Job, Settings
from polyplane.training.kernels.state import KernelModel, KernelTraining
from polyplane.training.rows import TrainingData

__all__ = ["NO_COINS", "NO_SLOTS", "KernelAlgorithm", "Stretch", "nothing"]

NO_COINS = np.empty((0, 0))
NO_SLOTS = np.empty(0, np.int32)


def nothing(*_: Any) -> None:
    """Do what most algorithms do at most occasions."""


class Stretch(NamedTuple):
    """Rows of a chunk that a problem is still to visit: from `order[first]` on."""

    training: KernelTraining
    model: KernelModel
    visit: Visit
    order: Array
    coins: Array
    first: int


@dataclass(frozen=True)
class KernelAlgorithm:
    """Functions and facts that make an algorithm of kernels."""

    walk: Callable[[Stretch], int]
    """Visit rows of a chunk; return how far it came, to the end or to where there is no room or a
    line is missing."""
    rule: Callable[[Settings], Any]
    """The named tuple that the compiled loop reads."""
    finish: Callable[[KernelModel], tuple[Array, float]]
    """Coefficients by slot, and the intercept: what a problem has reached."""
    new_set: Callable[[], SupportSet] = lambda: empty_set(1, 0)
    """The set of a problem before its first row; a total that is NOT_THERE stands for a slot."""
    coins: Callable[[KernelModel, int], Array] = lambda model, n_rows: NO_COINS
    """(model, n_rows): uniform numbers for the steps, by row."""
    foreseen: Callable[[KernelModel, Array], Array] = lambda model, coins: NO_SLOTS
    """(model, coins): slots whose lines the next steps are likely to want."""
    start: Callable[[Job[Any], KernelTraining, TrainingData], None] = nothing
    """Before the first pass of a fit."""
    learn: Callable[..., None] | None = None
    """(job, training, rows, order, first_number, report): visit rows; None: chunk by chunk."""
    end_pass: Callable[[KernelModel, Settings], bool] = lambda model, settings: False
    """After a pass; True: another one would change nothing."""
    complete: Callable[[KernelTraining, KernelModel, Settings], None] = nothing
    """The end of a fit, and of a stream."""
    search: Callable[..., dict[str, Any]] = lambda *_: {}
    """(job, rows): numbers for parameters that are 'auto'."""
    columns: type[Columns] = Columns
    """How the columns of X are seen."""
    is_soft: bool = False
    """Whether scores are log-odds, which make probabilities."""
