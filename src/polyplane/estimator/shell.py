"""The shell: what every estimator does with its algorithm, whichever that is.

`fit`, `partial_fit` and `resume`, of arrays and of streams; early stopping, callbacks and
evaluations; what an error leaves. An algorithm is never asked which of these is going on: the shell
calls the functions of its family (`training/family.py`), which call those of the algorithm.
"""

import operator
import weakref
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.estimator.fitting.kept_rows import forget_rows, keep_some_rows
from polyplane.estimator.fitting.pass_watch import PassWatch, watch_of
from polyplane.estimator.fitting.restoring import (
    check_can_resume,
    check_fitted,
    check_same_rows,
    restoring,
)
from polyplane.estimator.fitting.streams import RowStream, check_alone, fit_stream, forget_stream
from polyplane.estimator.fitting.thread_safety import writes
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import (
    check_class_weights,
    check_weights_are_known,
    read_training,
)
from polyplane.estimator.online_classifier import OnlineClassifier
from polyplane.estimator.parameters import (
    check_parameters,
    is_flag,
    one_of,
    parameter,
    parameters_of,
    with_parameters,
)
from polyplane.training.family import Family
from polyplane.training.finished import check_can_learn_on
from polyplane.training.job import Job, NewRows, Settings
from polyplane.training.rows import TrainingData, mean_weight_is_one, stratified, weighty
from polyplane.training.state import EarlyStopping
from polyplane.training.work.interruption import interrupts_wait, seen_rows
from polyplane.training.work.progress import progress

__all__ = ["AlgorithmClassifier", "Fit", "error_of", "job_of"]

_JOBS: Any = weakref.WeakKeyDictionary()  # of each estimator its job, and what it was made of


class Fit(NamedTuple):
    """A fit at work: what its passes need beside the training."""

    data: TrainingData  # as steps see the rows
    members: Array  # rows to visit
    held_out: tuple[TrainingData, Array] | None  # rows that early stopping looks at, as they are
    watch: PassWatch | None


@with_parameters
class AlgorithmClassifier(OnlineClassifier):
    """Base of estimators that have an algorithm."""

    algorithm: ClassVar[Any]
    family: ClassVar[Family[Any]]

    combine: str = parameter(
        default="vote",
        allowed=one_of("vote", "margin"),
        meaning=(
            "How pairs of classes decide: by one vote each, margins deciding between equals, or "
            "by their margins, cut to [-1, 1] and added."
        ),
    )
    shuffle: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Visit rows in a new random order in each pass.",
    )
    warm_start: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning="Let `fit` go on from the model at hand instead of starting anew.",
    )

    # ---- training ------------------------------------------------------------------------

    @writes
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        callbacks: Any = None,
    ) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, table or polyplane.stream of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table; a stream holds the
            labels, too.
        y : array-like of shape (n_rows,), optional
            Labels: numbers, texts or truth values. Left out with a stream.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default. Left out with a stream.
        eval_set : tuple or list of tuple, optional
            Pairs (X, y). After each pass the loss and the error on each are added to
            `evals_result_`; early stopping, of algorithms that have it, goes by the error on the
            last one instead of rows held out of X.
        callbacks : callable or list of callable, optional
            Functions that get a `PassRecord` after each pass; one that returns True ends the
            training.

        Returns
        -------
        Self
            The estimator.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight)
            forget_rows(self)
            return fit_stream(self, X, eval_set=eval_set, callbacks=callbacks)
        with restoring(self):
            check_parameters(self)
            before = vars(self).get("_training") if self.warm_start else None
            if before is not None:
                check_can_learn_on(self)
            data, labels = self._read_training(X, y, None, sample_weight, before)
            data = self._weighed(data)
            job = job_of(self, {})
            self.family.check(job, data, width_of(self))
            self._check_classes(labels)
            check_class_weights(self, labels)
            watch = watch_of(self, eval_set, callbacks, labels)
            rows = NewRows(data, labels, width_of(self), self._draw_seed())
            found = self.algorithm.search(job, rows)
            job = job_of(self, found)
            training = before or self.family.new(job, rows)
            training, seen = self.family.meet(job, training, rows)
            training.found = found
            self.become(training)
            training.watch = EarlyStopping()
            forget_stream(self)
            training.rows_seen, training.split_seed = seen_rows(data.labels), rows.seed
            fit = self._fit_of(data, seen, watch)
            self.family.begin(job, training, seen, fit.members)  # from here on it can be resumed
            if self.family.explains:
                keep_some_rows(self, X)
            self._make_passes(job, fit)
        return self

    @writes
    def resume(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        callbacks: Any = None,
    ) -> Self:
        """Go on with a fit that was interrupted, given the same rows again.

        The model becomes what it would have been without the interruption, to the bit.

        Parameters
        ----------
        X : array-like, sparse matrix, table or polyplane.stream of shape (n_rows, n_features)
            Rows of the fit that was interrupted. A table is a DataFrame of pandas or polars, or an
            Arrow table; a stream holds the labels, too.
        y : array-like of shape (n_rows,), optional
            Labels: numbers, texts or truth values. Left out with a stream.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default. Left out with a stream.
        eval_set : tuple or list of tuple, optional
            Pairs (X, y). After each pass the loss and the error on each are added to
            `evals_result_`; early stopping, of algorithms that have it, goes by the error on the
            last one instead of rows held out of X.
        callbacks : callable or list of callable, optional
            Functions that get a `PassRecord` after each pass; one that returns True ends the
            training.

        Returns
        -------
        Self
            The estimator.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight)
            return fit_stream(self, X, resumes=True, eval_set=eval_set, callbacks=callbacks)
        with restoring(self):
            check_fitted(self)
            check_parameters(self)
            check_can_learn_on(self)
            training = self._training
            check_can_resume(self, training.is_unfinished)
            data, labels = self._read_training(X, y, None, sample_weight, training)
            data = self._weighed(data)
            check_same_rows(self, seen_rows(data.labels), training.rows_seen)
            watch = watch_of(self, eval_set, callbacks, labels, resumes=True)
            seen = training.columns.for_training(data)
            fit = self._fit_of(data, seen, watch)
            self._make_passes(job_of(self, training.found), fit)
        return self

    @writes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of X once, in the order given; new classes and columns are welcome.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.
        y : array-like of shape (n_rows,)
            Labels, of classes that may be new.
        classes : array-like of shape (n_classes,), optional
            Labels of classes that are to come. Announcing them is optional.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default.

        Returns
        -------
        Self
            The estimator.
        """
        with restoring(self):
            check_parameters(self)
            check_weights_are_known(self)
            check_can_learn_on(self)
            before = vars(self).get("_training")
            job = job_of(self, {} if before is None else before.found)
            self.family.check_streamable(job, before is None)
            data, labels = self._read_training(X, y, classes, sample_weight, before, is_chunk=True)
            seed = self._draw_seed() if before is None else before.seed
            rows = NewRows(data, labels, width_of(self), seed, is_chunk=True)
            members = weighty(in_place(data.labels.size), data.weights)
            training, seen, members = self.family.meet_chunk(job, before, rows, members)
            self.become(training)
            n_steps = self.family.count_steps(job, training, seen, members)
            with progress(*self._shown(job, n_steps)) as report:
                self.family.learn(job, training, seen, members, report)
        return self

    def complete_stream(self) -> None:
        """Do at the end of a stream what `fit` does after its last pass, without rows."""
        self.family.complete(job_of(self, {}), self._training, None, None)

    # ---- what these consist of -------------------------------------------------------------

    def _read_training(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        before: Any,
        is_chunk: bool = False,
    ) -> tuple[TrainingData, Array]:
        """Return checked rows with codes and weights, and all labels known from now on."""
        constant, known = self._constant(), None
        if before is not None:
            constant, known = before.constant, before.labels
        return read_training(self, X, y, classes, sample_weight, known, constant, is_chunk)

    def _weighed(self, data: TrainingData) -> TrainingData:
        """Return the rows of a fit with the weights that steps use."""
        return mean_weight_is_one(data) if self.algorithm.is_soft else data

    def read_rows(
        self, X: Any, y: Any, classes: Any, before: Any, sample_weight: Any = None
    ) -> NewRows:
        """Return checked rows for a training outside of this estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_rows, n_features)
            Rows. A table is a DataFrame of pandas or polars, or an Arrow table.
        y : array-like of shape (n_rows,)
            Labels.
        classes : array-like or None
            Labels of classes that are to come.
        before : training or None
            Training that these rows continue.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, 1 by default.

        Returns
        -------
        NewRows
            Rows with codes and weights, all labels, the number of columns, and the seed.
        """
        data, labels = self._read_training(X, y, classes, sample_weight, before)
        self._check_classes(labels)
        seed = self._draw_seed() if before is None else before.seed
        return NewRows(data, labels, width_of(self), seed)

    def become(self, training: Any) -> None:
        """Take over a training that was made outside of this estimator.

        Parameters
        ----------
        training : training
            State that `fit` or `partial_fit` would have left.
        """
        self._training, self.classes_ = training, training.classes

    def _constant(self) -> float:
        """Return the constant feature of rows of a new training."""
        return float(getattr(self, "fit_intercept", 0.0)) * self.family.has_constant

    def _fit_of(
        self,
        data: TrainingData,
        seen: TrainingData,
        watch: PassWatch | None,
    ) -> Fit:
        """Return which rows are visited, and which early stopping looks at."""
        members = weighty(in_place(data.labels.size), data.weights)
        stops_early = getattr(self, "early_stopping", False)
        if not stops_early or (watch is not None and watch.sets):
            return Fit(seen, members, None, watch)
        share, seed = getattr(self, "validation_fraction", 0.1), self._training.split_seed
        members, held_out = stratified(members, data.labels, share, seed)
        return Fit(seen, members, (data, held_out), watch)

    def _make_passes(self, job: Job[Any], fit: Fit) -> None:
        """Make all passes of a fit, or those that are left of it, and what follows the last."""
        family, training = self.family, self._training
        n_left = family.count_steps(job, training, fit.data, fit.members)
        with progress(*self._shown(job, n_left)) as report:
            while not self._is_over(job):
                family.pass_over(job, training, fit.data, fit.members, report)
                if self._end_of_pass(job, fit):
                    break
            training.return_to(training.watch.snapshots)
            family.complete(job, training, fit.data, fit.members)
        training.watch = EarlyStopping()
        training.end_fit()

    def _is_over(self, job: Job[Any]) -> bool:
        has_stopped = self._training.watch.since_best >= job.settings.n_iter_no_change
        return has_stopped or self.family.is_over(job, self._training)

    def _end_of_pass(self, job: Job[Any], fit: Fit) -> bool:
        """Look at what all models together have reached; return whether a callback ends it.

        Ctrl-C waits until the pass has been noted: who resumes goes on with the next.
        """
        watch, training = fit.watch, self._training
        with interrupts_wait():
            training.n_passes += 1
            if fit.held_out is not None:
                self._note_error(job, error_of(self, *fit.held_out))
            record = None if watch is None else watch.look(self)
            if watch is None or record is None:
                return False
            if job.settings.early_stopping and watch.sets:
                self._note_error(job, watch.error(record))
        return watch.is_ended_by(record)

    def _note_error(self, job: Job[Any], error: float) -> None:
        """Do what early stopping does after a pass."""
        training = self._training
        if error < training.watch.best - job.settings.tol:
            training.watch = EarlyStopping(error, 0, training.snapshot())
        else:
            training.watch.since_best += 1

    def _shown(self, job: Job[Any], n_steps: int) -> tuple[str, int, bool, str]:
        return job.settings.name, n_steps, bool(self.verbose), self.family.unit

    # ---- what is left ----------------------------------------------------------------------

    def _reached(self) -> Any:
        return self.family.record(self.algorithm, self._training, self.combine)


def error_of(estimator: Any, data: TrainingData, order: Array) -> float:
    """Return the share of wrong rows, of rows that are read but not mapped."""
    training, record = estimator._training, estimator._record()
    rows = training.columns.for_prediction(data.rows)
    found = record.classes_of(rows, order, effective_n_jobs(estimator.n_jobs))
    return float(np.mean(found != training.ranks[data.labels[order]]))


def job_of(estimator: Any, found: dict[str, Any]) -> Job[Any]:
    """Return the algorithm of an estimator, with its settings and what was found of them.

    It is made once, until a parameter changes.
    """
    kind: Any = type(estimator)
    names, read = parameters_of(kind)
    state = (*read(estimator), found, kind.algorithm, effective_n_jobs(estimator.n_jobs))
    known: tuple[tuple[Any, ...], Job[Any]] | None = _JOBS.get(estimator)
    if known is None or not all(map(operator.is_, known[0], state)):
        given = dict(zip(names, state, strict=False))
        settings = Settings(**given, name=kind.__name__, n_threads=state[-1])
        job = Job(kind.algorithm, settings.with_found(found) if found else settings)
        known = _JOBS[estimator] = state, job
    return known[1]
