"""Every kernel machine: its parameters, what a machine adds, fit and partial_fit, prediction.

A machine adds its walk over a chunk and how its coefficients are read off. Support rows in training
are in `kernel_training.py`; what is left of a training and scores rows is
`model/kernels/kernel_record.py`.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs

from polyplane.arrays import Array
from polyplane.engine.order import in_place, shuffle
from polyplane.engine.rows.storage import DenseRows, count_rows, matrix_of
from polyplane.engine.support.support_set import (
    OF_SIDE,
    SupportSet,
    Visit,
    active_slots,
    empty_set,
)
from polyplane.estimator.files.finished_training import check_can_learn_on
from polyplane.estimator.fitting.memory import check_memory
from polyplane.estimator.fitting.pass_watch import PassWatch, watch_of
from polyplane.estimator.fitting.progress import Report, progress, without_errors
from polyplane.estimator.fitting.resuming import (
    check_can_resume,
    check_same_rows,
    interrupts_wait,
    seen_rows,
)
from polyplane.estimator.fitting.streams import RowStream, check_alone, fit_stream, forget_stream
from polyplane.estimator.fitting.thread_safety import (
    finished_of,
    reads,
    reads_alone,
    writes,
    writing,
)
from polyplane.estimator.input.known_classes import known_classes
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import (
    TrainingData,
    check_class_weights,
    check_weights_are_known,
    read_matrix,
    read_training,
    weighty,
)
from polyplane.estimator.kernels.kernel_choice import KERNELS, gamma_of, kernel_of
from polyplane.estimator.kernels.kernel_training import (
    KernelCourse,
    KernelModel,
    KernelTraining,
    SupportRows,
    Walker,
    learn_chunk,
    make_lines,
    one_by_one,
)
from polyplane.estimator.online_classifier import (
    A_NUMBER_OF_THREADS,
    TrainedClassifier,
    check_fitted,
)
from polyplane.estimator.parameters import (
    Range,
    at_least,
    check_parameters,
    closed,
    either,
    one_of,
    parameter,
    positive,
    with_parameters,
)
from polyplane.model.kernels.kernel_record import KernelRecord

__all__ = [
    "NO_COINS", "CachedKernelClassifier", "ExpectedProblem", "KernelClassifier", "expected_of",
    "one_sided", "renumber", "settled_gamma",
]  # fmt: skip

BYTES_OF_PROBLEM = 16_000  # of few support vectors, measured with ten thousand pairs
NO_COINS = np.empty((0, 0))
NO_SLOTS = np.empty(0, np.int32)


class FittedKernels:
    """What the first fit leaves of a kernel machine."""

    _training: KernelTraining
    gamma_: float


@with_parameters
class KernelClassifier(FittedKernels, TrainedClassifier):
    """Classifier whose problems are sums of kernels around support vectors."""

    kernel: Any = parameter(
        default="rbf",
        allowed=either(one_of(*KERNELS), Range(callable, "a function of two matrices")),
        meaning=(
            "'rbf' exp(-gamma |x - z|^2), 'linear' x z, 'poly' (gamma x z + coef0)^degree, "
            "'sigmoid' tanh(gamma x z + coef0); 'precomputed': X holds kernel values with all "
            "training rows; or a function that returns kernel values of the rows of two matrices."
        ),
    )
    gamma: float | str = parameter(
        default="scale",
        allowed=either(positive(1e-30, 1e30), one_of("scale", "auto")),
        meaning=(
            "Of the kernel. 'scale' is 1 / (columns * variance of X), in a stream of its first "
            "chunk; 'auto' is 1 / columns."
        ),
    )
    degree: int = parameter(default=3, allowed=at_least(1), meaning="Of the kernel 'poly'.")
    coef0: float = parameter(
        default=0.0,
        allowed=closed(-1e10, 1e10),
        meaning="Of the kernels 'poly' and 'sigmoid'.",
    )
    max_iter: int = parameter(default=1, allowed=at_least(1), meaning="Passes over the rows.")
    multi_class: str = parameter(
        default="ovo",
        allowed=one_of("ovr", "ovo"),
        meaning=(
            "More than two classes by one problem of each class against the rest ('ovr') or of "
            "each pair ('ovo'). All problems share one block of kernel values."
        ),
    )
    budget: int | None = parameter(
        default=None,
        allowed=either(at_least(2), one_of(None)),
        meaning=(
            "The most support vectors that a problem may have; above it the one that matters "
            "least, by the machine's own measure, is removed."
        ),
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning="Threads for kernel values and for problems side by side; -1 uses all cores.",
    )

    # ---- what a machine adds -------------------------------------------------------------

    def _expand(self, model: KernelModel) -> tuple[Array, float]:
        """Coefficients by slot, and the intercept: what a machine has reached in a problem."""
        raise NotImplementedError

    def _new_set(self) -> SupportSet:
        """The set of a problem that has not met a row."""
        return empty_set(1, 0)

    def _rule(self) -> Any:
        """What the steps follow."""
        raise NotImplementedError

    def _rule_like(self, model: KernelModel) -> Any:
        """A rule as the model's would be."""
        return self._rule()

    def _totals_of_slots(self) -> tuple[int, ...]:
        """Which of the totals are slots."""
        return ()

    def _walk(
        self, model: KernelModel, visit: Visit, order: Array, coins: Array, first: int
    ) -> int:
        """Visit rows of a chunk; return how far it came."""
        raise NotImplementedError

    def _coins(self, model: KernelModel, n_rows: int) -> Array:
        """Uniform numbers for the steps, by row."""
        return NO_COINS

    def _foreseen(self, model: KernelModel, coins: Array) -> Array:
        """Slots whose lines of the cache the next steps are likely to want."""
        return NO_SLOTS

    def _finish(self, training: KernelTraining, model: KernelModel) -> None:
        """What a fit does with a model in the end."""

    def _finishes(self) -> bool:
        """Whether it does."""
        return True

    def _end_pass(self, model: KernelModel) -> bool:
        """What is done after each pass; return whether another one would change nothing."""
        return False

    def _chunk_size(self) -> int:
        """Rows that one block of kernel values serves."""
        return 256

    def _cache_bytes(self) -> int:
        """Memory for kernel values among support vectors."""
        return 0

    def _offset(self) -> float:
        """A constant added to the kernel."""
        return 0.0

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

        `eval_set` is a pair (X, y) or a list of such pairs: after each pass the loss and the error
        on each are added to `evals_result_`. `callbacks` are functions that get a `PassRecord`
        after each pass; one that returns True ends the training. X may be a `polyplane.stream`,
        which has the labels in it; then y is left out.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight)
            return fit_stream(self, X, eval_set=eval_set, callbacks=callbacks)
        goes_on = self.warm_start and hasattr(self, "_training")
        with self._recovering(goes_on):
            check_parameters(self)
            data, labels = self._read_training(X, y, None, sample_weight, goes_on)
            self._check_whole(data, labels)
            check_class_weights(self, labels)
            watch = watch_of(self, eval_set, callbacks, labels)
            self._meet(data, labels, goes_on)
            forget_stream(self)
            self.n_iter_, self._training.course = 0, None
            self._train(self._training, data, watch)
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
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight)
            return fit_stream(self, X, resumes=True, eval_set=eval_set, callbacks=callbacks)
        with self._recovering(True):
            check_fitted(self)
            check_parameters(self)
            course = self._training.course
            check_can_resume(self, course is not None)
            data, labels = self._read_training(X, y, None, sample_weight, True)
            check_same_rows(self, seen_rows(data.labels), course.rows_seen)  # type: ignore[union-attr]
            watch = watch_of(self, eval_set, callbacks, labels, resumes=True)
            self._training = self._training.copied()
            self._train(self._training, data, watch)
        return self

    def _check_whole(self, data: TrainingData, labels: Array) -> None:
        """What `fit` asks of its data beyond what each row must be."""
        self._check_classes(labels)
        if self.kernel == "precomputed" and data.labels.size != width_of(self):
            raise ValueError(
                "kernel='precomputed' needs a square matrix of kernel values between all training "
                f"rows; X has {data.labels.size} rows and {width_of(self)} columns."
            )

    def _train(self, training: KernelTraining, data: TrainingData, watch: PassWatch | None) -> None:
        """Passes over the rows until nothing moves, and what follows the last."""
        members = weighty(in_place(data.labels.size), data.weights)
        make_lines(training, self._cache_bytes() > 0)
        course = training.course = training.course or self._set_out(training, data)
        n_left = (self.max_iter - self.n_iter_) * members.size - course.n_visited
        with self._progress(n_left) as report:
            while self.n_iter_ < self.max_iter and not all(m.is_over for m in training.models):
                order = members.copy()
                if course.mixed_by is None:
                    course.mixed_by = training.generator.bit_generator.state
                if self.shuffle:
                    training.generator.bit_generator.state = course.mixed_by
                    shuffle(order, training.generator)
                rest = order[course.n_visited :]
                is_new = self.n_iter_ == 0 and course.first_number == 0
                told = report if is_new else without_errors(report)
                self._pass(training, data, rest, course.first_number, told)
                self.n_iter_, course.n_visited, course.mixed_by = self.n_iter_ + 1, 0, None
                for model in training.models:
                    model.is_over = self._end_pass(model)
                if watch is not None:
                    with interrupts_wait():
                        record = watch.look(self)
                    if watch.is_ended_by(record):
                        break
            if self._finishes():
                for model in one_by_one(training, self._cache_bytes() > 0):
                    self._finish(training, model)
        training.course = None

    def _set_out(self, training: KernelTraining, data: TrainingData) -> KernelCourse:
        """The beginning of a fit."""
        is_same = self.kernel == "precomputed"  # its rows are those of the fit before
        first_number = 0 if is_same else training.n_seen
        training.n_seen = first_number + data.labels.size
        return KernelCourse(seen_rows(data.labels), first_number)

    @writes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of X once, in the order given; new classes and columns are welcome."""
        goes_on = hasattr(self, "_training")
        with self._recovering(goes_on):
            check_parameters(self)
            self._check_streamable()
            data, labels = self._read_training(X, y, classes, sample_weight, goes_on, is_chunk=True)
            self._meet(data, labels, goes_on)
            if not goes_on:
                self.n_iter_ = 1
            training = self._training
            training.course = None
            make_lines(training, self._cache_bytes() > 0)
            members = weighty(in_place(data.labels.size), data.weights)
            first_number = training.n_seen
            training.n_seen += data.labels.size
            with self._progress(members.size) as report:
                self._pass(training, data, members, first_number, report)
        return self

    @contextlib.contextmanager
    def _recovering(self, goes_on: bool) -> Iterator[None]:
        """What goes wrong before a chunk is learned, or in a new fit, leaves all as it was.

        Ctrl-C leaves what has been learned; so does an error in a training that goes on, since its
        new support vectors are already among the old ones.
        """
        state: Any = vars(self)
        before = dict(state)
        try:
            yield
        except BaseException as error:
            training = state.get("_training")
            has_learned = training is not before.get("_training") and training.n_learned > 0
            if not has_learned or (isinstance(error, Exception) and not goes_on):
                state.clear()
                state.update(before)
            raise

    def _check_streamable(self) -> None:
        check_weights_are_known(self)
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' needs all rows at once, not a stream: rows yet to come have "
                "no kernel values. Give a function as the kernel instead."
            )

    def _pass(
        self,
        training: KernelTraining,
        data: TrainingData,
        order: Array,
        first_number: int,
        report: Report,
    ) -> None:
        """Visit the rows of `order`, a chunk at a time."""
        walker = Walker(self._walk, self._coins, self._foreseen, self._cache_bytes() > 0)
        n_jobs, size = effective_n_jobs(self.n_jobs), self._chunk_size()
        for start in range(0, order.size, size):
            part = order[start : start + size]
            learn_chunk(training, data, part, first_number, walker, n_jobs, report)

    def _progress(self, n_rows: int) -> Any:
        return progress(type(self).__name__, n_rows, bool(self.verbose), "support vectors")

    def _read_training(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        goes_on: bool,
        is_chunk: bool = False,
    ) -> tuple[TrainingData, Array]:
        known = self._training.labels if goes_on else None
        return read_training(self, X, y, classes, sample_weight, known, 0.0, is_chunk)

    def _meet(self, data: TrainingData, labels: Array, goes_on: bool) -> None:
        """What is new in the data, to the training and to its problems."""
        if not goes_on:
            self.gamma_ = gamma_of(self, data, width_of(self))
            seed, is_dense = self._draw_seed(), isinstance(data.rows, DenseRows)
            kernel = kernel_of(self, self.gamma_, self._offset(), width_of(self), is_dense)
            cache = self._cache_bytes()
            known = known_classes(labels)
            self._training = KernelTraining(self.multi_class, seed, known, kernel, cache, is_dense)
        else:
            self._training = self._training.copied()
        training = self._training
        training.known = known_classes(labels)
        training.kernel = replace(training.kernel, n_columns=width_of(self))
        started = {model.problem for model in training.models}
        n_new = training.decomposition(self.combine).n_problems() - len(started)
        name, what = type(self).__name__, "support vectors"
        check_memory(name, training.kind, n_new, BYTES_OF_PROBLEM, what)
        for problem in training.decomposition(self.combine).problems():
            if problem not in started:
                training.models.append(KernelModel(problem, self._new_set(), training.seed))
        for model in training.models:
            model.rule, model.is_over = self._rule(), False
        self.classes_ = training.classes

    # ---- prediction ----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.allow_nan = self.kernel != "precomputed"
        return tags

    def _record(self) -> KernelRecord:
        check_fitted(self)
        finished: KernelRecord | None = finished_of(self)
        if finished is None:
            return self._training.record(self._expand, self.combine)
        return replace(finished, decomposition=self._training.decomposition(self.combine))

    def _class_scores(self, X: Any) -> Array:
        record = self._record()
        rows = read_matrix(self, X, False, 0.0)
        order = in_place(count_rows(rows))
        return record.class_scores(rows, order, effective_n_jobs(self.n_jobs))

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    def feature_importances_(self) -> Array:
        """Kernel machines have none."""
        raise AttributeError(
            f"{type(self).__name__} has no feature_importances_: a kernel mixes all columns. Use "
            "permutation_importance of sklearn.inspection."
        )

    @property
    @reads
    def support_(self) -> Array:
        """Numbers of the rows that are support vectors: rows of X, or of the stream so far."""
        return self._record().support.numbers

    @property
    @reads
    def support_vectors_(self) -> Any:
        """The support vectors, as X was handed in: an array, or a CSR matrix."""
        record = self._record()
        matrix = matrix_of(record.support.entries, width_of(self))
        return matrix.toarray() if self._training.is_dense else matrix

    @property
    @reads
    def n_support_(self) -> Array:
        """How many support vectors each of `classes_` has."""
        ranks = self._training.ranks[self._record().support.labels]
        return np.bincount(ranks, minlength=self._training.classes.size)

    @property
    @reads
    def problems_(self) -> list[tuple[Any, Any]]:
        """The labels of both sides of each problem, None being the rest; f > 0 is the second."""
        training, order = self._training, self._problem_order()
        problems = self._record().decomposition.problems()
        labels = [*training.labels.tolist(), None]  # the last is that of REST, -1
        pairs = [tuple(labels[side] for side in problem.classes) for problem in problems]
        return [pairs[k] for k in order]

    def _problem_order(self) -> Array:
        """One-vs-rest in the order of `classes_`; pairs as they are."""
        decomposition = self._record().decomposition
        problems = decomposition.problems()
        if decomposition.kind == "ovo" or decomposition.is_joint:
            return np.arange(len(problems))
        return np.argsort([decomposition.ranks[problem.classes[1]] for problem in problems])

    @property
    @reads
    def dual_coef_(self) -> Array:
        """Problems by support vectors: f(x) = sum_i dual_coef_i K(x_i, x) + intercept."""
        return self._record().dual_coefs()[self._problem_order()]

    @property
    @reads
    def intercept_(self) -> Array:
        """The constant of each problem."""
        return self._record().intercepts[self._problem_order()]

    @property
    @reads_alone
    def n_steps_(self) -> int:
        """Rows visited since training began, by all problems together."""
        check_fitted(self)
        return sum(model.n_steps for model in self._training.models)


@with_parameters
class CachedKernelClassifier(KernelClassifier):
    """A kernel machine whose steps look at kernel values among support vectors."""

    cache_mb: int = parameter(
        default=256,
        allowed=at_least(1),
        meaning="Megabytes for kernel values among support vectors; less is only slower.",
    )

    @writes
    def finish(self) -> Self:
        """What `fit` does in the end, for a stream that pauses."""
        check_fitted(self)
        check_can_learn_on(self)
        make_lines(self._training, self._cache_bytes() > 0)
        for model in self._training.models:
            self._finish(self._training, model)
        return self

    def _cache_bytes(self) -> int:
        return int(self.cache_mb) << 20


# ---- what other files ask of a machine ---------------------------------------------------


class ExpectedProblem(NamedTuple):
    """What a machine would make of a problem in training."""

    empty: SupportSet
    rule: Any  # of the kind that its steps follow
    totals_of_slots: tuple[int, ...]  # which of the set's totals are slots


def expected_of(machine: Any, model: KernelModel) -> ExpectedProblem:
    """What a machine expects of a problem that comes from elsewhere."""
    return ExpectedProblem(
        machine._new_set(), machine._rule_like(model), machine._totals_of_slots()
    )


def settled_gamma(machine: Any, X: Any, y: Any) -> float:
    """The number that gamma stands for if these are the rows."""
    check_parameters(machine)
    data, _ = machine._read_training(X, y, None, None, False)
    return gamma_of(machine, data, width_of(machine))


def renumber(machine: Any, numbers: Array) -> None:
    """Let support vectors have other numbers than their places in X, and rows to come higher ones.

    `numbers` are of the rows of X.
    """
    with writing(machine):
        training = machine._training
        rows = training.support
        training.pool = SupportRows(rows._replace(numbers=numbers[rows.numbers]))
        training.places = {k: place for place, k in enumerate(training.support.numbers.tolist())}
        training.n_seen = int(numbers.max()) + 1
        for model in training.models:
            slots = active_slots(model.held)
            model.held.row[slots] = numbers[model.held.row[slots]]


def one_sided(model: KernelModel) -> float | None:
    """The score of a problem that has met only one side, or none; None once it has met both."""
    n_first, n_second = model.held.counts[OF_SIDE : OF_SIDE + 2]
    if n_first > 0 and n_second > 0:
        return None
    return float(n_second > 0) - float(n_first > 0)
