"""Trials side by side: the same rows in the same order, settings and left-out rows their own.

Trials of one machine that differ in alpha or in the part of the rows they leave out are trained by
one reading of the rows (`engine/planes/pack.py`), as long as their steps are those of the hinge
loss; others follow one another over the same order. Either way each becomes, to the bit, what its
settings alone would make of those rows in that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.hinge import HingeRule
from polyplane.engine.planes.pack import (
    NO_PART,
    counts_of,
    hinge_epoch_of_pack,
    is_due,
    members_of,
    packed,
    put_back,
    taken_out,
)
from polyplane.engine.planes.planes import (
    NO_PLANE,
    Array,
    has_idle_tile,
    lacks_room,
    with_room_for,
)
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import rows_of
from polyplane.estimator.planes.kept_rows import keep_some_rows
from polyplane.estimator.planes.passes import PlanePasses
from polyplane.estimator.planes.training import (
    NO_CHOICE,
    Due,
    EarlyStopping,
    PlaneTraining,
    attend,
    due_after,
    visit,
)
from polyplane.estimator.progress import Report, without_errors
from polyplane.estimator.resuming import seen_rows
from polyplane.estimator.side_by_side import for_each
from polyplane.estimator.tables import width_of
from polyplane.estimator.validation import TrainingData, weighty

__all__ = [
    "Trial", "become_fitted", "clearly_behind", "count_passes", "new_trial", "pass_together",
    "wrong_rows",
]  # fmt: skip

MOST_BYTES = 1 << 20  # of the sums of a pack: what stays near the processor
SPARE = 6  # lanes that a model of a new pack has left at least: packing anew takes time
FAR_BEHIND = 2.0  # standard errors of the difference to the best, on the same rows


@dataclass
class Trial:
    """A machine with settings of its own, and what it has reached."""

    machine: Any
    training: PlaneTraining
    left_out: int = NO_PART  # the part of the rows that it does not visit


def new_trial(
    machine: Any,
    settings: dict[str, Any],
    data: TrainingData,
    labels: Array,
    seed: int,
    parts: Array,
    left_out: int = NO_PART,
) -> Trial:
    """A machine like this one with other settings, before its first pass."""
    made: Any = type(machine)(**(machine.get_params() | settings))
    made.n_features_in_, made._found = width_of(machine), {}
    training = made._training = made._new_training(seed)
    own = data._replace(rows=with_own_page(data.rows))
    made._meet(training, labels, own)
    members = weighty(in_place(parts.size), data.weights)
    made._set_out(training, own, members[parts[members] != left_out])
    return Trial(made, training, left_out)


def count_passes(trials: Sequence[Trial]) -> int:
    """How many passes the longest of them makes."""
    return max(
        int(trial.machine._count_passes(course.n_rows))
        for trial in trials
        for course in trial.training.courses
    )


def wrong_rows(trial: Trial, data: TrainingData, rows: Array) -> Array:
    """Which of these rows it gets wrong."""
    is_wrong: Array = trial.machine._wrong_rows(trial.training, data, rows)
    return is_wrong


def clearly_behind(is_wrong: Array) -> Array:
    """Which trials are left behind, given a line of wrong rows for each: see `FAR_BEHIND`."""
    best = np.argmin(is_wrong.mean(axis=1))
    lag = is_wrong.astype(np.float64) - is_wrong[best]
    behind: Array = lag.mean(axis=1) > FAR_BEHIND * lag.std(axis=1) / np.sqrt(lag.shape[1])
    return behind


def become_fitted(trial: Trial, reader: Any, data: TrainingData, X: Any) -> Any:
    """The machine of a trial of all rows as its own fit would leave it; `reader` has read X."""
    machine, training = trial.machine, trial.training
    own = vars(machine)
    own.update({name: value for name, value in vars(reader).items() if name not in own})
    training.rows_seen, training.split_seed = seen_rows(data.labels), training.seed
    training.courses, training.watch = [], EarlyStopping()
    keep_some_rows(machine, X)
    return machine


def pass_together(
    trials: Sequence[Trial], data: TrainingData, parts: Array, n_threads: int, report: Report
) -> None:
    """One pass of all trials over the rows; `parts` is the part of each row."""
    were_over = [all(course.is_over for course in trial.training.courses) for trial in trials]
    for k in range(len(trials[0].training.models)):
        order = _order(trials, k, data)
        groups = _groups(trials, k, n_threads)

        def learn(
            g: int, report: Report, groups: Any = groups, k: int = k, order: Array = order
        ) -> None:
            own = data._replace(rows=with_own_page(data.rows))
            if len(groups[g]) > 1:
                _visit_as_pack(groups[g], k, own, parts, order, report)
            else:
                _visit_alone(groups[g][0], k, own, parts, order, report)

        for_each(learn, len(groups), n_threads, without_errors(report))
    for trial, was_over in zip(trials, were_over, strict=True):
        trial.machine.n_iter_ += not was_over


def _order(trials: Sequence[Trial], k: int, data: TrainingData) -> Array:
    """The rows of a pass as a fit would mix them: models of one seed mix alike."""
    models = [trial.training.models[k] for trial in trials]
    everything = weighty(in_place(data.labels.size), data.weights)
    order: Array = rows_of(everything, models[0].targets(data))
    if trials[0].machine.shuffle:
        shuffle(order, models[0].generator)
        for model in models[1:]:
            model.generator.bit_generator.state = models[0].generator.bit_generator.state
    return order


def _groups(trials: Sequence[Trial], k: int, n_threads: int) -> list[list[Trial]]:
    """Trials that make a pack, a group for each thread at least; others are alone."""
    alone = [[trial] for trial in trials if not _fits_a_pack(trial, k)]
    rest = [trial for trial in trials if _fits_a_pack(trial, k)]
    if not rest:
        return alone
    n_bytes = sum(trial.training.models[k].planes.sums.nbytes for trial in rest)
    n_groups = min(len(rest), max(n_threads, -(-n_bytes // MOST_BYTES)))
    return [rest[g::n_groups] for g in range(n_groups)] + alone


def _fits_a_pack(trial: Trial, k: int) -> bool:
    """Whether its steps are those of the hinge loss, without coins and choices kept."""
    rule = trial.training.models[k].rule
    is_plain = isinstance(rule, HingeRule) and rule.clone_probability == 0
    has_choice = trial.training.courses[k].chosen.size > 0
    has_own_steps = type(trial.machine)._steps is not PlanePasses._steps
    return is_plain and not has_choice and not has_own_steps


def _visit_alone(
    trial: Trial, k: int, data: TrainingData, parts: Array, order: Array, report: Report
) -> None:
    machine, model, course = trial.machine, trial.training.models[k], trial.training.courses[k]
    if course.is_over:
        return
    rest = machine._part_of_pass(order[parts[order] != trial.left_out], course.n_passes)
    visit(model, data, rest, course.chosen, machine._walk(), report)
    course.n_passes += 1
    course.is_over = course.n_passes >= machine._count_passes(course.n_rows) or machine._end_pass(
        model, data, course.n_passes, rest, course.chosen
    )


def _visit_as_pack(
    trials: Sequence[Trial], k: int, data: TrainingData, parts: Array, order: Array, report: Report
) -> None:
    """One reading of the rows for all; it is cut where something is due for one of them."""
    pack, done = _Pack(trials, k, data, parts), 0
    while done < order.size:
        before = pack.n_steps
        done += pack.visit_some(order[done:])
        report(pack.n_steps - before, pack.n_planes, np.nan)
    pack.unpack()
    for trial in trials:
        trial.training.courses[k].n_passes += 1


class _Pack:
    """Models in one matrix, and what each of them is due to do."""

    def __init__(self, trials: Sequence[Trial], k: int, data: TrainingData, parts: Array) -> None:
        self.models = [trial.training.models[k] for trial in trials]
        self.walks = [trial.machine._walk() for trial in trials]
        self.left_out = [trial.left_out for trial in trials]
        self.data, self.parts, self.targets = data, parts, self.models[0].targets(data)
        self._pack()

    @property
    def n_steps(self) -> int:
        """Steps of all models."""
        return int(self.members.n_steps.sum())

    @property
    def n_planes(self) -> int:
        """Planes of all models."""
        return int((self.planes.owner != NO_PLANE).sum())

    def _pack(self) -> None:
        for model in self.models:
            model.planes = with_room_for(model.planes, SPARE)
        each = [model.planes for model in self.models]
        self.planes, self.members = packed(each), members_of(each)
        self.members.alpha[:] = [model.rule.alpha for model in self.models]
        self.members.left_out[:] = self.left_out
        self.members.n_steps[:] = [model.n_steps for model in self.models]

    def unpack(self) -> None:
        """Give the models what they have reached."""
        for m in range(len(self.models)):
            self._take_out(m)

    def _take_out(self, m: int) -> None:
        self.models[m].planes = taken_out(self.planes, self.members, m)
        self.models[m].n_steps = int(self.members.n_steps[m])

    def _needs_planes(self, m: int, due: Due) -> bool:
        """Whether a model that is due must be taken out: counts are enough for a note."""
        model = self.models[m]
        model.planes = model.planes._replace(counts=counts_of(self.planes, self.members, m))
        model.n_steps = int(self.members.n_steps[m])
        is_to_act = model.n_steps == due.act
        return is_to_act or lacks_room(model.planes) or has_idle_tile(model.planes)

    def visit_some(self, order: Array) -> int:
        """Visit rows up to where something is due for a model, and do it; return how many."""
        members = self.members
        steps = members.n_steps.tolist()
        due = [due_after(n, walk) for n, walk in zip(steps, self.walks, strict=True)]
        members.last_step[:] = [min(each) for each in due]
        rule = self.models[0].rule
        n_rows: int = hinge_epoch_of_pack(
            self.data.rows, self.targets, self.parts, order, self.planes, members, rule.grows_rivals
        )
        self._attend(due)
        return n_rows

    def _attend(self, due: Sequence[Due]) -> None:
        """Do what is due for each model; if one of them needs more room, all are packed anew."""
        rooms, attended = np.diff(self.members.first_lane), set()
        for m, model in enumerate(self.models):
            if not is_due(self.planes, self.members, m):
                continue
            if self._needs_planes(m, due[m]):
                self._take_out(m)
                attended.add(m)
            attend(model, self.walks[m], due[m], lacks_room(model.planes), NO_CHOICE)
        if all(self.models[m].planes.owner.size == rooms[m] for m in attended):
            for m in attended:
                put_back(self.planes, self.members, m, self.models[m].planes)
        else:
            for m in set(range(len(self.models))) - attended:
                self._take_out(m)
            self._pack()
