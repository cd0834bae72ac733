"""Every hyperplane machine: its parameters, fit and partial_fit, and its search for alpha.

How models come to be is in `new_models.py`, steps and passes are in `passes.py`, what is predicted
and shown in `prediction.py`, what several learners do in `rounds/learner.py`. Each lists what a
machine may override. Models in training and the walk over rows are in `training.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import rows_of
from polyplane.estimator.fitting.pass_watch import PassWatch, watch_of
from polyplane.estimator.fitting.progress import Report, progress, without_errors
from polyplane.estimator.fitting.resuming import check_can_resume, check_same_rows, seen_rows
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.fitting.streams import RowStream, check_alone, fit_stream, forget_stream
from polyplane.estimator.fitting.thread_safety import writes
from polyplane.estimator.input.known_classes import known_classes
from polyplane.estimator.input.stratified import stratified
from polyplane.estimator.input.validation import (
    TrainingData,
    all_or_nothing,
    check_class_weights,
    check_weights_are_known,
    codes_of,
    read_matrix_and_labels,
    read_training,
    weighty,
)
from polyplane.estimator.online_classifier import A_NUMBER_OF_THREADS, TrainedClassifier
from polyplane.estimator.parameters import (
    at_least,
    between,
    check_parameters,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    with_parameters,
)
from polyplane.estimator.planes.contest import (
    Contender,
    Rules,
    best_as_fitted,
    looks_of,
    most_passes,
    winner,
)
from polyplane.estimator.planes.kept_rows import forget_rows, keep_some_rows
from polyplane.estimator.planes.prediction import PlanePrediction
from polyplane.estimator.planes.rounds.learner import PlaneLearner
from polyplane.estimator.planes.setting_trials import (
    NO_PART,
    Trial,
    members_of,
    new_trial,
    take_hinge_steps,
)
from polyplane.estimator.planes.training import (
    NO_CHOICE,
    OwnState,
    PlaneModel,
    PlaneTraining,
    visit,
)
from polyplane.model.format.checks import need
from polyplane.model.plane_record import FinishedPlanes
from polyplane.model.prediction import Features, FittedModel

__all__ = [
    "ALPHAS",
    "ExpectedModel",
    "HyperplaneClassifier",
    "RowsToTry",
    "become",
    "computed_from_rows",
    "expected_of",
    "features_of",
    "found_by",
    "own_of_fitted",
    "rows_to_try",
]  # fmt: skip

ALPHAS = tuple(10.0**-k for k in range(2, 8))  # section 4 of the AMM paper
FOLDS = 3  # of the rows, each left out by one trial of a value
MANY_ROWS = 30_000  # of which half is left out by a single trial, so that a search is no dearer
MOST_JUDGED = 8_000  # rows by which a trial is judged, unless two are close in the end
MOST_BYTES = 1 << 28  # of the first planes of all trials; else each value has but one


@with_parameters
class HyperplaneClassifier(PlanePrediction, PlaneLearner, TrainedClassifier):
    """Classifier whose classes are maxima of hyperplanes.

    As it stands it is the multi-class SVM, one plane per class in steps on the hinge loss; a
    machine overrides what it does otherwise, of the methods under "what a machine adds".
    """

    FOUND_ON_ALL_ROWS: ClassVar[tuple[str, ...]] = ("alpha",)  # where they are 'auto'
    COMPUTED_FROM_ROWS: ClassVar[tuple[str, ...]] = ()  # 'auto' is no value that could be set

    alpha: float | str = parameter(
        default=1e-4,
        allowed=either(positive(), one_of("auto")),
        meaning=(
            "Regularisation, lambda of the papers. Larger is smoother. 'auto' tries 1e-2 to 1e-7 "
            "without parts of the rows, on which they are judged, and then fits all rows with the "
            "best."
        ),
    )
    max_iter: int = parameter(
        default=10,
        allowed=at_least(1),
        meaning="Passes over the rows.",
    )
    multi_class: str = parameter(
        default="joint",
        allowed=one_of("joint", "ovr", "ovo"),
        meaning=(
            "More than two classes by one model of all ('joint'), one of each class against the "
            "rest ('ovr') or one of each pair ('ovo'): more planes, less error. In a stream, "
            "announce the classes: a model starts when both its sides are known."
        ),
    )
    n_estimators: int = parameter(
        default=1,
        allowed=at_least(1),
        meaning="Models that differ in seed and order of rows; their scores are averaged.",
    )
    fit_intercept: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Give every row a constant feature 1, so that planes have intercepts.",
    )
    average: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning=(
            "Predict with the mean of the planes over all steps, later ones weighing more, instead "
            "of the last planes: less noise for a few percent of the time."
        ),
    )
    early_stopping: bool = parameter(
        default=False,
        allowed=is_flag(),
        meaning=(
            "Stop when the error on held-out rows no longer falls, and keep the best model met. "
            "The rows are the last of `eval_set` of `fit`, or else a share of X."
        ),
    )
    validation_fraction: float = parameter(
        default=0.1,
        allowed=between(0, 1),
        meaning="Share of the rows held out by early stopping.",
    )
    n_iter_no_change: int = parameter(
        default=3,
        allowed=at_least(1),
        meaning="Passes without a better error after which early stopping ends.",
    )
    tol: float = parameter(
        default=1e-4,
        allowed=at_least(0, whole=False),
        meaning="How much lower an error must be to count as better.",
    )
    n_jobs: Any = parameter(
        default=None,
        allowed=A_NUMBER_OF_THREADS,
        meaning=(
            "Threads for prediction, for models side by side and for what is searched; -1 uses "
            "all cores."
        ),
    )

    # ---- what a machine adds -------------------------------------------------------------

    def _finish(self, model: PlaneModel) -> FinishedPlanes:
        """The planes that a model has reached."""
        return model.finished(self._alpha_of_planes(model))

    def _own_of_fitted(self, model: FittedModel) -> OwnState:
        """The same of a training of which only what predicts is known."""
        return self._own_of_training()

    def _take_features(self, model: FittedModel) -> None:
        """Become what trained a fitted model, as far as parameters do not tell; or refuse it."""
        features: Any = model.features
        is_plain = features.columns is None and features.products is None
        need(is_plain, "features are of another machine")

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
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train on the rows of X.

        `eval_set` is a pair (X, y) or a list of such pairs: after each pass the loss and the error
        on each are added to `evals_result_`, and early stopping goes by the error on the last one
        instead of rows held out of X. `callbacks` are functions that get a `PassRecord` after each
        pass; one that returns True ends the training. X_val and y_val are for early stopping
        alone. X may be a `polyplane.stream`, which has the labels in it; then y is left out.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight, X_val=X_val, y_val=y_val)
            forget_rows(self)
            return fit_stream(self, X, eval_set=eval_set, callbacks=callbacks)
        with all_or_nothing(self):
            check_parameters(self)
            goes_on = self.warm_start and hasattr(self, "_training")
            data, labels = self._read_training(X, y, None, sample_weight, goes_on)
            data = self._weighed(data)
            self._check_classes(labels)
            check_class_weights(self, labels)
            validation = self._read_validation(X_val, y_val, labels)
            watch = watch_of(self, eval_set, callbacks, labels)
            _check_one_way(X_val, eval_set)
            seed = self._draw_seed()
            self._found = self._better_settings(data, labels, seed)
            if not goes_on:
                self._training = self._new_training(seed)
            seen = self._training_view(self._training, data)
            self._meet(self._training, labels, seen)
            forget_stream(self)
            self._training.rows_seen, self._training.split_seed = seen_rows(data.labels), seed
            members, held_out = self._split(data, validation, seed, watch)
            self._set_out(self._training, seen, members)  # from here on it can be resumed
        keep_some_rows(self, X)
        return self._run(seen, members, held_out, watch)

    @writes
    def resume(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        callbacks: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Go on with a fit that was interrupted, given the same rows again.

        The model becomes what it would have been without the interruption, to the bit.
        """
        if isinstance(X, RowStream):
            check_alone(self, y=y, sample_weight=sample_weight, X_val=X_val, y_val=y_val)
            return fit_stream(self, X, resumes=True, eval_set=eval_set, callbacks=callbacks)
        with all_or_nothing(self):
            check_is_fitted(self)
            check_parameters(self)
            check_can_resume(self, self._training.is_unfinished)
            data, labels = self._read_training(X, y, None, sample_weight, True)
            data = self._weighed(data)
            check_same_rows(self, seen_rows(data.labels), self._training.rows_seen)
            validation = self._read_validation(X_val, y_val, labels)
            watch = watch_of(self, eval_set, callbacks, labels, resumes=True)
            _check_one_way(X_val, eval_set)
            seen = self._training_view(self._training, data)
            split_seed = self._training.split_seed
            members, held_out = self._split(data, validation, split_seed, watch)
        return self._run(seen, members, held_out, watch)

    def _run(
        self, data: TrainingData, members: Array, held_out: Any, watch: PassWatch | None
    ) -> Self:
        """The passes of a fit, or those that are left of it."""
        n_steps = self._count_steps(self._training)
        n_steps -= self._count_steps_made(self._training)
        with progress(self._title(), n_steps, self._shows()) as report:
            self._make_passes(self._training, data, members, held_out, report, watch)
        self._complete(self._training, data, members)
        return self

    def _complete(self, training: PlaneTraining, data: TrainingData, members: Array) -> None:
        """What a fit does with its models in the end."""

    @writes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of X once, in the order given; new classes and columns are welcome."""
        with all_or_nothing(self):
            check_parameters(self)
            goes_on = hasattr(self, "_training")
            if not goes_on:
                self._found = {}
            check_weights_are_known(self)
            self._check_streamable()
            data, labels = self._read_training(X, y, classes, sample_weight, goes_on, is_chunk=True)
            data, members = self.meet_chunk(data, labels)
        n_steps = self._count_steps_of_passes(self._training, data, members, 1)
        with progress(self._title(), n_steps, self._shows()) as report:
            self.learn_chunk(data, members, report)
        return self

    def meet_chunk(
        self, data: TrainingData, labels: Array, seed: int | None = None
    ) -> tuple[TrainingData, Array]:
        """Take up what is new in a chunk; return it as steps see it, and the rows to visit.

        `labels` are all that are known from now on; without a `seed` one is drawn.
        """
        if not hasattr(self, "_training"):
            self._found = {}
            self._training = self._new_training(self._draw_seed() if seed is None else seed)
            self.n_iter_ = 1
        self._training.courses = []
        members = weighty(in_place(data.labels.size), data.weights)
        return self._meet_chunk(data, labels, members)

    def learn_chunk(self, data: TrainingData, members: Array, report: Report) -> None:
        """Visit the rows of a chunk that has been met."""
        models = self._training.models

        def learn(k: int, report: Report) -> None:
            if len(models) > 1:
                report = without_errors(report)
            own_rows = data._replace(rows=with_own_page(data.rows))
            order = rows_of(members, models[k].targets(data))
            self._follow(models[k], own_rows, order, report)

        for_each(learn, len(models), effective_n_jobs(self.n_jobs), report)

    def _meet_chunk(
        self, data: TrainingData, labels: Array, members: Array
    ) -> tuple[TrainingData, Array]:
        """What is new in a chunk; return it as steps see it, and the rows to visit."""
        self._meet(self._training, labels, data)
        return data, members

    def _follow(self, model: PlaneModel, data: TrainingData, order: Array, report: Report) -> None:
        """Visit the rows of a chunk."""
        visit(model, data, order, NO_CHOICE, self._walk(), report)

    def _check_streamable(self) -> None:
        for name in self.FOUND_ON_ALL_ROWS:
            if getattr(self, name) == "auto" and name not in self._found:
                raise ValueError(
                    f'{name}="auto" needs all rows at once, not a stream: give a number.'
                )

    def _title(self) -> str:
        return type(self).__name__

    def _shows(self) -> bool:
        return bool(self.verbose)

    def _read_training(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        goes_on: bool,
        is_chunk: bool = False,
    ) -> tuple[TrainingData, Array]:
        """Checked rows with codes and weights, and all labels known from now on."""
        constant = self._training.constant if goes_on else float(self.fit_intercept)
        known = self._training.labels if goes_on else None
        data, labels = read_training(self, X, y, classes, sample_weight, known, constant, is_chunk)
        return data._replace(rows=self._mapped_rows(data.rows)), labels

    def _read_validation(self, X: Any, y: Any, labels: Array) -> TrainingData | None:
        if X is None and y is None:
            return None
        if X is None or y is None:
            raise ValueError("X_val and y_val go together: give both or neither.")
        rows, y = read_matrix_and_labels(self, X, y, False, float(self.fit_intercept))
        known, codes = codes_of(y, labels)
        if known.size > labels.size:
            raise ValueError(
                f"y_val holds labels that y does not: {known[labels.size :].tolist()}."
            )
        return TrainingData(self._mapped_rows(rows), codes, np.empty(0, np.float32))

    def _split(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        seed: int,
        watch: PassWatch | None,
    ) -> tuple[Array, tuple[TrainingData, Array] | None]:
        """Rows to train on, and rows that early stopping looks at."""
        members = weighty(in_place(data.labels.size), data.weights)
        if not self.early_stopping or (watch is not None and watch.sets):
            return members, None
        if validation is not None:
            return members, (validation, in_place(validation.labels.size))
        members, held_out = stratified(members, data.labels, self.validation_fraction, seed)
        return members, (data, held_out)

    # ---- search --------------------------------------------------------------------------

    def _better_settings(
        self, data: TrainingData, labels: Array, seed: int, n_to_come: int | None = None
    ) -> dict[str, Any]:
        """What is set to 'auto', found by trials on held-out rows.

        The data may be a sample; then `n_to_come` is how many rows a pass will be.
        """
        if self.alpha != "auto":
            return {}
        return {"alpha": self._best_of("alpha", ALPHAS, {}, data, labels, seed)}

    def _bytes_of_trials(self, n_trials: int, labels: Array, seed: int) -> int:
        """Of so many side by side, at least."""
        training = self._new_training(seed)
        training.known = known_classes(labels)
        n_models, n_bytes, _ = self._size_of_models(training)
        return n_trials * n_models * n_bytes

    def _best_of(
        self,
        name: str,
        values: Sequence[Any],
        fixed: dict[str, Any],
        data: TrainingData,
        labels: Array,
        seed: int,
    ) -> Any:
        """The value of a parameter that does best on rows left out, others being fixed."""
        members = weighty(in_place(data.labels.size), data.weights)
        parts, judged_by, more_rows = _parts_of(members, data.labels, seed)
        n_threads = effective_n_jobs(self.n_jobs)

        kept = {part: members_of(data, parts, part) for part in (NO_PART, *judged_by)}

        def new(k: int, left_out: int) -> Trial:
            settings, rows = {"n_jobs": 1, **fixed, name: values[k]}, kept[left_out]
            return new_trial(self, settings, data, labels, seed, parts, left_out, rows)

        def tried(total: int, choose: Callable[[Rules], int]) -> Any:
            shown = progress(f"{self._title()}: {name}", total, self._shows(), is_search=True)
            with shown as report:
                best = choose(Rules(data, parts, judged_by, more_rows, n_threads, report))
            return values[best]

        def steps_of(trials: Sequence[Trial]) -> int:
            """Of a pass."""
            return sum(
                self._count_steps_of_passes(one.training, data, kept[one.left_out], 1)
                for one in trials
            )

        n_passes, has_many_rows = int(self.max_iter), members.size >= MANY_ROWS
        if len(judged_by) > 1 and take_hinge_steps([new(0, NO_PART)]):
            trials = [new(0, part) for part in (NO_PART, *judged_by)]
            total = len(values) * n_passes * steps_of(trials)
            return tried(total, lambda rules: best_as_fitted(len(values), new, rules))
        if self._bytes_of_trials(len(values) * len(judged_by), labels, seed) > MOST_BYTES:
            judged_by = {k: judged_by[k] for k in list(judged_by)[:1]}
        contenders = [Contender([new(k, part) for part in judged_by]) for k in range(len(values))]
        looks = looks_of(n_passes, has_many_rows)
        total = most_passes(len(values), looks) * steps_of(contenders[0].trials)
        return tried(total, lambda rules: winner(contenders, looks, rules))


def _parts_of(members: Array, labels: Array, seed: int) -> tuple[Array, dict[int, Array], Array]:
    """The part of each row, of each part that is left out the rows to judge by, and more rows."""
    parts = np.zeros(labels.size, np.int32)
    if members.size >= MANY_ROWS:
        _, left_out = stratified(members, labels, 0.5, seed)
        parts[left_out] = 1
        share = min(1.0, MOST_JUDGED / left_out.size)
        later, first = stratified(left_out, labels, share, seed)
        return parts, {1: first}, later
    judged_by: dict[int, Array] = {}
    n_folds = min(FOLDS, members.size)
    for k in range(n_folds):
        members, judged_by[k] = stratified(members, labels, 1 / (n_folds - k), seed + k)
        parts[judged_by[k]] = k
    return parts, judged_by, np.empty(0, members.dtype)


def _check_one_way(X_val: Any, eval_set: Any) -> None:
    if X_val is not None and eval_set is not None:
        raise ValueError(
            "X_val and eval_set are both for early stopping: give the rows as eval_set alone."
        )


# ---- what other files ask of a machine ---------------------------------------------------


class RowsToTry(NamedTuple):
    """Rows as a fit would see them, before it begins."""

    data: TrainingData
    labels: Array
    seed: int


def rows_to_try(machine: Any, X: Any, y: Any, sample_weight: Any) -> RowsToTry:
    """Checked rows for trials of a machine, which then knows their columns."""
    check_parameters(machine)
    data, labels = machine._read_training(X, y, None, sample_weight, False)
    machine._check_classes(labels)
    check_class_weights(machine, labels)
    return RowsToTry(machine._weighed(data), labels, machine._draw_seed())


def features_of(machine: Any) -> Features:
    """How rows become what the planes of a fitted machine see."""
    features: Features = machine._features(machine._training)
    return features


def found_by(machine: Any) -> dict[str, Any]:
    """What the fit has found of settings that were 'auto'."""
    found: dict[str, Any] = machine._found
    return found


def computed_from_rows(machine: Any) -> tuple[str, ...]:
    """Return the parameters whose 'auto' stands for what each fit computes from its rows."""
    names: tuple[str, ...] = machine.COMPUTED_FROM_ROWS
    return names


def become(machine: Any, model: FittedModel) -> None:
    """Let a machine with the parameters of a fitted model know what its fit had found."""
    machine._found = dict(model.found)
    machine._take_features(model)


def own_of_fitted(machine: Any, model: FittedModel) -> OwnState:
    """The machine's own state of a training of which only what predicts is known."""
    own: OwnState = machine._own_of_fitted(model)
    return own


class ExpectedModel(NamedTuple):
    """What a machine would make of a model in training."""

    n_features: int
    own: OwnState
    rule: Any  # of the kind that its steps follow, or None where they follow none


def expected_of(machine: Any, training: PlaneTraining, model: PlaneModel) -> ExpectedModel:
    """What a machine expects of a model that comes from elsewhere."""
    return ExpectedModel(
        machine._features_of(training), machine._own_of_model(training), machine._rule_like(model)
    )
