"""How hyperplane machines pass over their rows, from the first step of a fit or from the middle.

What a machine does at a step and between passes are methods that it may override, each with its
contract; what it does with its rows, its classes and in the end is in `hyperplane_classifier.py`.
"""

import sys
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from polyplane.arrays import Array
from polyplane.engine.order import shuffle
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.steps.hinge import HingeRule, hinge_epoch
from polyplane.engine.targets import rows_of
from polyplane.estimator.fitting.pass_watch import PassWatch
from polyplane.estimator.fitting.progress import Report, without_errors
from polyplane.estimator.fitting.resuming import interrupts_wait
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.planes.training import (
    NO_CHOICE,
    Course,
    EarlyStopping,
    PlaneModel,
    PlaneTraining,
    Walk,
    visit,
)

__all__ = ["PlanePasses", "has_own_loop", "pass_by_itself", "passes_of"]

NO_COINS = np.empty(0, np.float32)


class PlanePasses:
    """A machine as its rows meet it: steps, what happens between them, and passes."""

    _found: dict[str, Any]  # what was 'auto'
    n_iter_: int
    n_jobs: Any
    shuffle: bool
    tol: float
    n_iter_no_change: int
    early_stopping: bool

    def _setting(self, name: str) -> Any:
        """The value of a parameter, or what was found where it is 'auto'."""
        value = getattr(self, name)
        return self._found[name] if isinstance(value, str) and value == "auto" else value

    def _error(self, training: PlaneTraining, data: TrainingData, order: Array) -> float:
        """Share of wrong rows."""
        raise NotImplementedError

    # ---- what a machine adds to steps ------------------------------------------------------

    def _rule(self, model: PlaneModel) -> Any:
        """What the steps of a model follow: a named tuple that its loop reads."""
        return HingeRule(self._alpha_of_planes(model), False)

    def _rule_like(self, model: PlaneModel) -> Any:
        """A rule as the model's would be, or None where steps follow none that is kept."""
        return self._rule(model)

    def _alpha_of_planes(self, model: PlaneModel) -> float:
        """The alpha for which W = Theta / (alpha t)."""
        return model.alpha

    def _coins(self, model: PlaneModel, n_rows: int) -> Array:
        """A uniform number for each step, for machines that toss coins."""
        return NO_COINS

    def _steps(self, model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
        """Run the machine's loop over `order`; return the new count of steps.

        Unless the machine has one of its own, it is that of the multi-hyperplane hinge loss.
        """
        n_steps: int = hinge_epoch(
            data.rows,
            model.targets(data),
            order,
            model.planes,
            model.rule,
            self._coins(model, order.size),
            chosen,
            model.n_steps,
        )
        return n_steps

    def _due(self, step: int) -> int:
        """The next count of steps at which `_act` wants to be called."""
        return sys.maxsize

    def _act(self, model: PlaneModel) -> None:
        """What happens between steps, such as pruning."""

    # ---- what a machine adds to passes -----------------------------------------------------

    def _begin(self, model: PlaneModel, n_steps: int) -> None:
        """Told before the first pass of a fit how many steps it will be."""

    def _first_choice(self, data: TrainingData) -> Array:
        """Of each row its plane, or below 0 a note, for machines that keep such; else none."""
        return NO_CHOICE

    def _starts_from_rows(self) -> bool:
        """Whether the first planes are made of the rows, so that none is new in the first pass."""
        return False

    def _count_passes(self, n_rows: int) -> int:
        """How many passes a model of so many rows makes."""
        return int(self._setting("max_iter"))

    def _part_of_pass(self, order: Array, n_done: int) -> Array:
        """What of `order` is to be visited by a model that has made so many passes."""
        return order

    def _end_pass(
        self, model: PlaneModel, data: TrainingData, n_passes: int, order: Array, chosen: Array
    ) -> bool:
        """What is done after each pass over `order`; return whether more would change nothing."""
        return False

    # ---- passes ----------------------------------------------------------------------------

    def _walk(self) -> Walk:
        """What is done between the cuts of `visit`."""
        return Walk(self._steps, self._due, self._act)

    def _make_passes(
        self,
        training: PlaneTraining,
        data: TrainingData,
        members: Array,
        held_out: tuple[TrainingData, Array] | None,
        report: Report,
        watch: PassWatch | None = None,
    ) -> None:
        """Passes over the rows `members`, stopped early where rows are held out or watched."""
        if not training.is_unfinished:
            self._set_out(training, data, members)
        views = [_own_view(data) for _ in training.models]
        n_most = max(self._count_passes(course.n_rows) for course in training.courses)
        while not self._is_over(training, n_most):
            for_each(
                lambda k, report: self._one_pass(training, k, views[k], members, report),
                len(views),
                effective_n_jobs(self.n_jobs),
                report,
            )
            if self._end_of_pass(training, held_out, watch):
                break
        for model, state in zip(training.models, training.watch.snapshots, strict=False):
            model.return_to(state)
        training.courses, training.watch = [], EarlyStopping()

    def _end_of_pass(
        self,
        training: PlaneTraining,
        held_out: tuple[TrainingData, Array] | None,
        watch: PassWatch | None,
    ) -> bool:
        """Look at what all models together have reached; return whether a callback ends it.

        Ctrl-C waits until the pass has been noted: who resumes goes on with the next.
        """
        with interrupts_wait():
            self.n_iter_ += 1
            if held_out is not None:
                self._note_error(training, self._error(training, *held_out))
            record = None if watch is None else watch.look(self)
            if watch is not None and record is not None and self.early_stopping and watch.sets:
                self._note_error(training, watch.error(record))
        return watch is not None and record is not None and watch.is_ended_by(record)

    def _set_out(self, training: PlaneTraining, data: TrainingData, members: Array) -> None:
        """The beginning of all courses."""
        self.n_iter_, training.courses, training.watch = 0, [], EarlyStopping()
        for model in training.models:
            n_rows = rows_of(members, model.targets(data)).size
            training.courses.append(Course(n_rows, self._first_choice(data)))
            self._begin(model, self._count_passes(n_rows) * n_rows)

    def _is_over(self, training: PlaneTraining, n_most: int) -> bool:
        """Whether the last pass has been made."""
        return (
            self.n_iter_ >= n_most
            or training.watch.since_best >= self.n_iter_no_change
            or all(course.is_over for course in training.courses)
        )

    def _note_error(self, training: PlaneTraining, error: float) -> None:
        """What early stopping does after a pass."""
        watch = training.watch
        if error < watch.best - self.tol:
            snapshots = [model.snapshot() for model in training.models]
            training.watch = EarlyStopping(error, 0, snapshots)
        else:
            watch.since_best += 1

    def _one_pass(
        self, training: PlaneTraining, k: int, data: TrainingData, members: Array, report: Report
    ) -> None:
        """One more pass of model k, or what is left of it."""
        model, course = training.models[k], training.courses[k]
        if course.is_over or course.n_passes > self.n_iter_:
            return
        order = rows_of(members, model.targets(data))
        if course.mixed_by is None:
            course.mixed_by, course.first_step = model.generator.bit_generator.state, model.n_steps
        if self.shuffle:
            model.generator.bit_generator.state = course.mixed_by
            shuffle(order, model.generator)
        order = self._part_of_pass(order, course.n_passes)
        rest = order[model.n_steps - course.first_step :]
        is_new = course.first_step == 0 and not self._starts_from_rows()
        if not is_new or len(training.models) > 1:
            report = without_errors(report)
        visit(model, data, rest, course.chosen, self._walk(), report)
        self._count_pass(model, data, course, order)

    def _count_pass(
        self, model: PlaneModel, data: TrainingData, course: Course, order: Array
    ) -> None:
        """What is done when a model has made one more pass over `order`."""
        course.n_passes, course.mixed_by = course.n_passes + 1, None
        is_last = course.n_passes >= self._count_passes(course.n_rows)
        course.is_over = is_last or self._end_pass(
            model, data, course.n_passes, order, course.chosen
        )

    def _count_steps(self, training: PlaneTraining) -> int:
        """How many steps all models together make in all passes of the fit at work."""
        sizes = [course.n_rows for course in training.courses]
        return sum(self._count_steps_of(n_rows, self._count_passes(n_rows)) for n_rows in sizes)

    def _count_steps_of_passes(
        self, training: PlaneTraining, data: TrainingData, members: Array, n_passes: int
    ) -> int:
        """How many they make in so many passes over `members`."""
        sizes = [rows_of(members, model.targets(data)).size for model in training.models]
        return sum(self._count_steps_of(n_rows, n_passes) for n_rows in sizes)

    def _count_steps_of(self, n_rows: int, n_passes: int) -> int:
        """Steps of a model of so many rows, whichever these are."""
        order = np.broadcast_to(np.int32(0), n_rows)
        return sum(self._part_of_pass(order, k).size for k in range(n_passes))

    def _count_steps_made(self, training: PlaneTraining) -> int:
        """Those of the fit at work that have been made."""
        return sum(
            course.n_passes * course.n_rows + (model.n_steps - course.first_step) * course.is_amid
            for model, course in zip(training.models, training.courses, strict=False)
        )


# ---- what other files ask of a machine ---------------------------------------------------


def passes_of(machine: PlanePasses, n_rows: int) -> int:
    """How many passes a model of so many rows makes."""
    return machine._count_passes(n_rows)


def has_own_loop(machine: PlanePasses) -> bool:
    """Whether its steps are not those of the multi-hyperplane hinge loss."""
    return type(machine)._steps is not PlanePasses._steps


def pass_by_itself(
    machine: PlanePasses,
    model: PlaneModel,
    course: Course,
    data: TrainingData,
    order: Array,
    report: Report,
) -> None:
    """One more pass of a model, over rows whose order is given."""
    rest = machine._part_of_pass(order, course.n_passes)
    visit(model, data, rest, course.chosen, machine._walk(), report)
    machine._count_pass(model, data, course, rest)


def _own_view(data: TrainingData) -> TrainingData:
    """The same data with a page of their own, so that threads do not meet."""
    return data._replace(rows=with_own_page(data.rows))
