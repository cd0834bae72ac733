"""How hyperplane machines pass over their rows, from the first step of a fit or from the middle."""

from typing import Any

import numpy as np
from joblib import effective_n_jobs

from polyplane.engine.order import shuffle
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import rows_of
from polyplane.estimator.parameters import with_parameters
from polyplane.estimator.planes.prediction import Predictor
from polyplane.estimator.planes.training import Course, Training, Walk, Watch, for_each, visit
from polyplane.estimator.progress import Report, without_errors
from polyplane.estimator.validation import TrainingData

__all__ = ["Passes"]


@with_parameters
class Passes(Predictor):
    """A classifier that visits all rows again and again."""

    def _train(
        self, training: Training, data: TrainingData, members: Array, held_out: Any, report: Report
    ) -> None:
        """Passes over the rows `members`, stopped early where asked for."""
        n_threads = effective_n_jobs(self.n_jobs)
        if not training.is_unfinished:
            self._set_out(training, data, members)
        views = [self._own_view(data) for _ in training.models]
        n_most = max(self._count_passes(course.n_rows) for course in training.courses)
        while not self._is_over(training, n_most):
            training.forget_results()
            for_each(
                lambda k, report: self._pass(training, k, views[k], members, report),
                len(views),
                n_threads,
                report,
            )
            self.n_iter_ += 1
            if held_out is not None:
                self._look(training, self._error(training, *held_out))
        for model, state in zip(training.models, training.watch.snapshots, strict=False):
            model.return_to(state)
        training.courses, training.watch = [], Watch()
        training.forget_results()

    def _set_out(self, training: Training, data: TrainingData, members: Array) -> None:
        """The beginning of all courses."""
        self.n_iter_, training.courses, training.watch = 0, [], Watch()
        for model in training.models:
            n_rows = rows_of(members, model.targets(data)).size
            training.courses.append(Course(n_rows, self._first_choice(data)))
            self._begin(model, self._count_passes(n_rows) * n_rows)

    def _is_over(self, training: Training, n_most: int) -> bool:
        return (
            self.n_iter_ >= n_most
            or training.watch.since_best >= self.n_iter_no_change
            or all(course.is_over for course in training.courses)
        )

    def _look(self, training: Training, error: float) -> None:
        """What early stopping does after a pass."""
        watch = training.watch
        if error < watch.best - self.tol:
            snapshots = [model.snapshot() for model in training.models]
            training.watch = Watch(error, 0, snapshots)
        else:
            watch.since_best += 1

    def _own_view(self, data: TrainingData) -> TrainingData:
        """The same data with a page of their own, so that threads do not meet."""
        return data._replace(rows=with_own_page(data.rows))

    def _pass(
        self, training: Training, k: int, data: TrainingData, members: Array, report: Report
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
        course.n_passes, course.mixed_by = course.n_passes + 1, None
        is_last = course.n_passes >= self._count_passes(course.n_rows)
        course.is_over = is_last or self._has_settled(
            model, data, course.n_passes, order, course.chosen
        )

    def _walk(self) -> Walk:
        return Walk(self._steps, self._due, self._act)

    def _error(self, training: Training, data: TrainingData, order: Array) -> float:
        rows = self._prediction_rows(training, data.rows)
        found = self._record_of(training).classes_of(rows, order, effective_n_jobs(self.n_jobs))
        return float(np.mean(found != training.ranks[data.labels[order]]))
