"""The record of an algorithm of planes, whose defaults are the multi-class SVM.

    minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own),    W = sums / (step_alpha t)

with a plane for each class that starts at zero, steps on the hinge loss (`engine/steps/hinge.py`),
and W, or its mean over all steps, in the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import live_lanes, with_planes
from polyplane.engine.steps.hinge import HingeRule, hinge_epoch
from polyplane.model.plane_record import FinishedPlanes
from polyplane.training.columns import Columns
from polyplane.training.job import Job, NewRows, Settings
from polyplane.training.planes.state import (
    NO_CHOICE,
    Course,
    OwnState,
    PlaneModel,
    PlaneTraining,
)
from polyplane.training.rows import TrainingData

__all__ = [
    "PlaneAlgorithm",
    "PlaneJob",
    "StreamStart",
    "given_alpha",
    "hinge_planes",
    "hinge_steps",
    "nothing",
    "steps_with_coins",
    "twice_alpha_of_opposite_planes",
]

NO_COINS = np.empty(0, np.float32)


# ---- defaults ----------------------------------------------------------------------------


def nothing(*_: Any) -> None:
    """Do what most algorithms do at most occasions."""


def given_alpha(model: PlaneModel) -> float:
    """Return the alpha that is set."""
    return model.alpha


def twice_alpha_of_opposite_planes(model: PlaneModel) -> float:
    """Return the alpha of the multi-class SVM that, with two classes, is Pegasos with `alpha`.

    It keeps its two planes opposite, W_1 = -W_0 = w/2: both get the same row with opposite signs.
    Its loss is 1 - w x and its regulariser alpha/4 |w|^2, so twice the alpha makes it Pegasos
    exactly, and one loop serves both.
    """
    is_two_class = model.planes.room_left.size == 2
    return 2 * model.alpha if is_two_class else model.alpha


def hinge_steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order`; return the new count of steps."""
    return steps_with_coins(model, data, order, chosen, NO_COINS)


def steps_with_coins(
    model: PlaneModel, data: TrainingData, order: Array, chosen: Array, coins: Array
) -> int:
    """Visit rows in `order`, with a uniform number for each step."""
    n_steps: int = hinge_epoch(
        data.rows,
        model.targets(data),
        order,
        model.planes,
        model.rule,
        coins,
        chosen,
        model.n_steps,
    )
    return n_steps


def start_at_zero(
    training: PlaneTraining, model: PlaneModel, data: TrainingData, settings: Settings, first: int
) -> None:
    """Give each class one plane that is zero."""
    labels = np.arange(first, model.planes.room_left.size)
    model.planes = with_planes(model.planes, labels, np.zeros((labels.size, 1)))


def hinge_planes(model: PlaneModel, alpha: float) -> FinishedPlanes:
    """Return W = sums / (alpha t)."""
    lanes = live_lanes(model.planes)
    sums = mean_sums(model.planes, model.n_steps)[: model.n_features + 1, lanes]
    scale = 1.0 / (alpha * max(model.n_steps, 1))
    return FinishedPlanes(sums, model.planes.owner[lanes], np.full(lanes.size, scale, np.float32))


# ---- the record --------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamStart:
    """Functions of an algorithm that needs more than the first row of a stream to start."""

    begin_chunk: Callable[..., tuple[PlaneTraining, TrainingData, Array]]
    """(job, training or None, rows, members): what `Family.meet_chunk` is."""
    visit: Callable[..., None]
    """(job, model, data, order, report): visit rows of a chunk."""


@dataclass(frozen=True)
class PlaneAlgorithm:
    """Functions and facts that make an algorithm of planes."""

    # steps
    steps: Callable[[PlaneModel, TrainingData, Array, Array], int] = hinge_steps
    """(model, data, order, chosen): visit rows; return the new count of steps, which is less where
    `model.planes` are full."""
    rule: Callable[[PlaneModel, Settings], Any] | None = None
    """The named tuple that the compiled loop reads, made anew when classes or settings change;
    None: a `HingeRule` with `step_alpha`."""
    rule_kept: Any = None
    """A rule like those that are kept from step to step, which `begin` makes; else None."""
    step_alpha: Callable[[PlaneModel], float] = given_alpha
    """The alpha for which W = sums / (step_alpha t)."""
    between: Callable[[PlaneModel, Settings], None] = nothing
    """Called each `prune_interval` steps, wherever chunks are cut."""
    # beginnings
    search: Callable[[Job[Any], NewRows], dict[str, Any]] = lambda *_: {}
    """Numbers for the parameters `searched` that are 'auto'."""
    searched: tuple[str, ...] = ()
    """Parameters whose 'auto' needs all rows; that of others is computed by the fit itself."""
    columns: type[Columns] = Columns
    """How the columns of X are seen."""
    start: Callable[[PlaneTraining, PlaneModel, TrainingData, Settings, int], None] = start_at_zero
    """(training, model, data, settings, first): give classes `first` and later their planes."""
    first_planes: Callable[[Settings, int], int] = lambda settings, n_classes: n_classes
    """(settings, n_classes): how many planes a model has at least."""
    starts_from_rows: Callable[[Settings], bool] = lambda settings: False
    """Whether first planes are made of all rows, so that none is new in the first pass."""
    begin: Callable[[PlaneModel, Settings, int], None] = nothing
    """(model, settings, n_steps): a fit of so many steps begins."""
    choices: Callable[[Settings, int], Array] = lambda settings, n_rows: NO_CHOICE
    """(settings, n_rows): of each row its plane, or below 0 a note; or an empty array."""
    own: Callable[[], OwnState] = OwnState
    """What is kept of each model beside what all algorithms keep."""
    own_of_training: Callable[[], OwnState] = OwnState
    """The same of a training."""
    stream: StreamStart | None = None
    """How a stream starts, where the first row is not enough; then only streams keep means."""
    # ends
    end_pass: Callable[[PlaneModel, TrainingData, Settings, Course, Array], bool] = lambda *_: False
    """(model, data, settings, course, order): after a pass; True: another would change nothing."""
    complete: Callable[[PlaneModel, TrainingData, Settings, Array], None] = nothing
    """(model, data, settings, members): the end of a fit."""
    finish: Callable[[PlaneModel], FinishedPlanes] | None = None
    """The planes that predict, for rows as steps see them; None: W."""
    empty_score: float = -np.inf
    """Score of a class without planes; minus infinity: it must not win."""
    is_soft: bool = False
    """Whether a class scores the log-sum-exp of its planes, which makes probabilities; the unit of
    weights of rows must then not change the steps."""
    # several learners
    scale: Callable[[PlaneModel], float] = lambda model: 1.0
    """The factor by which sums are what learners average."""
    schedule: Callable[[PlaneModel, int, int, int], None] = nothing
    """(model, n_rows, n_done, n_parts): let steps fall over parts of so many rows each."""
    end_round: Callable[[PlaneModel, Settings], None] = nothing
    """After each pass of all learners but the last."""

    def rule_of(self, model: PlaneModel, settings: Settings) -> Any:
        """Return what the steps of a model follow."""
        if self.rule_kept is not None:
            return model.rule
        if self.rule is None:
            return HingeRule(self.step_alpha(model), False)
        return self.rule(model, settings)

    def planes_of(self, model: PlaneModel) -> FinishedPlanes:
        """Return the planes that a model has reached, for rows as steps see them."""
        if self.finish is None:
            return hinge_planes(model, self.step_alpha(model))
        return self.finish(model)


PlaneJob = Job[PlaneAlgorithm]
