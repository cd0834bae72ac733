"""Every hyperplane machine: its parameters, fit and partial_fit, and how models come to be.

Steps and passes are in `passes.py`, what is predicted and shown in `prediction.py`, models in
training and the walk over rows in `training.py`. Each lists what a machine may override.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.mixing import NEW
from polyplane.engine.planes.planes import (
    Array,
    Planes,
    live_lanes,
    with_classes,
    with_features,
    with_planes,
    zero_planes,
)
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.targets import LEFT_OUT, rows_of
from polyplane.engine.tiles import LANES
from polyplane.estimator.fitting.memory import check_memory
from polyplane.estimator.fitting.pass_watch import PassWatch, watch_of
from polyplane.estimator.fitting.progress import Report, progress, without_errors
from polyplane.estimator.fitting.resuming import check_can_resume, check_same_rows, seen_rows
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.fitting.streams import RowStream, check_alone, fit_stream, forget_stream
from polyplane.estimator.fitting.thread_safety import writes, writing
from polyplane.estimator.input.known_classes import known_classes
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import (
    TrainingData,
    all_or_nothing,
    check_weights_are_known,
    codes_of,
    no_training_data,
    read_matrix_and_labels,
    read_training,
    weighty,
)
from polyplane.estimator.online_classifier import A_NUMBER_OF_THREADS, OnlineClassifier
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
from polyplane.estimator.planes.contest import Contender, looks_of, most_passes, winner
from polyplane.estimator.planes.kept_rows import forget_rows, keep_some_rows
from polyplane.estimator.planes.packs import new_trial
from polyplane.estimator.planes.passes import PlanePasses
from polyplane.estimator.planes.prediction import PlanePrediction
from polyplane.estimator.planes.training import (
    NO_CHOICE,
    OwnState,
    PlaneModel,
    PlaneTraining,
    visit,
)
from polyplane.model.format.checks import need
from polyplane.model.many_classes.decomposition import Problem
from polyplane.model.plane_record import FinishedPlanes
from polyplane.model.prediction import Features, FittedModel

__all__ = [
    "ALPHAS", "Census", "ExpectedModel", "HyperplaneClassifier", "Moment", "Piece", "RowsToTry",
    "become",
    "begin_by_sample", "complete_by_sample", "count_passes", "end_round", "expected_of",
    "features_of", "found_by", "give_planes", "join_round", "meet_rows", "own_of_fitted",
    "pass_over", "rows_to_try", "scale_of", "seed_of", "settles_alpha", "stratified",
    "weights_of_classes",
]  # fmt: skip

ALPHAS = tuple(10.0**-k for k in range(2, 8))  # section 4 of the AMM paper
FOLDS = 3  # of the rows, each left out by one trial of a value
MANY_ROWS = 30_000  # of which half is left out by a single trial, so that a search is no dearer
MOST_JUDGED = 8_000  # rows by which a trial is judged
MOST_BYTES = 1 << 28  # of the first planes of all trials; else each value has but one
SEED_OF_GIVEN = 0  # the same file gives the same model
BYTES_OF_MODEL = 8_000  # besides its planes, measured with tens of thousands of pairs


@with_parameters
class HyperplaneClassifier(PlanePrediction, PlanePasses, OnlineClassifier):
    """Classifier whose classes are maxima of hyperplanes.

    As it stands it is the multi-class SVM, one plane per class in steps on the hinge loss; a
    machine overrides what it does otherwise, of the methods under "what a machine adds".
    """

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

    def _room_per_class(self) -> int:
        """How many planes a class may grow by itself."""
        return 0

    def _least_planes(self, n_codes: int) -> int:
        """How many planes a model of so many classes has at least."""
        return n_codes

    def _alpha_of(self, model: PlaneModel) -> float:
        """The regularisation of a model."""
        return float(self._setting("alpha"))

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        """Give classes `first` and later their first planes: one that is zero."""
        labels = np.arange(first, model.planes.room_left.size)
        model.planes = with_planes(model.planes, labels, np.zeros((labels.size, 1)))

    def _finish(self, model: PlaneModel) -> FinishedPlanes:
        """The planes that a model has reached."""
        return model.finished(self._alpha_of_planes(model))

    def _weighed(self, data: TrainingData) -> TrainingData:
        """The rows of a fit with the weights that steps use."""
        return data

    def _training_view(self, training: PlaneTraining, data: TrainingData) -> TrainingData:
        """The data as steps see them, where that is not how finished planes do."""
        return data

    def _view_of_sample(
        self, training: PlaneTraining, data: TrainingData, is_all: bool
    ) -> TrainingData:
        """The same of a sample of the rows to come, or of all of them."""
        return self._training_view(training, data)

    def _own_of_model(self, training: PlaneTraining) -> OwnState:
        """What the machine itself keeps of each model, before its first row."""
        return OwnState()

    def _own_of_training(self) -> OwnState:
        """What the machine itself keeps of a training, before its first row."""
        return OwnState()

    def _own_of_fitted(self, model: FittedModel) -> OwnState:
        """The same of a training of which only what predicts is known."""
        return self._own_of_training()

    def _take_features(self, model: FittedModel) -> None:
        """Become what trained a fitted model, as far as parameters do not tell; or refuse it."""
        features: Any = model.features
        is_plain = features.columns is None and features.products is None
        need(is_plain, "features are of another machine")

    def _keeps_average(self, training: PlaneTraining) -> bool:
        """Whether the mean of the planes over all steps is kept."""
        return bool(self.average)

    def _count_features(self, n_columns: int) -> int:
        """Features of the planes, without the constant, for so many columns of X."""
        return n_columns

    def _features_of(self, training: PlaneTraining) -> int:
        """Features of the planes of a training."""
        return self._count_features(training.n_columns)

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
        n_steps = self._count_steps(self._training, data, members)
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
            if not goes_on:
                self._training = self._new_training(self._draw_seed())
                self.n_iter_ = 1
            self._training.courses = []
            members = weighty(in_place(data.labels.size), data.weights)
            data, members = self._meet_chunk(data, labels, members)
        models = self._training.models

        def learn(k: int, report: Report) -> None:
            if len(models) > 1:
                report = without_errors(report)
            own_rows = data._replace(rows=with_own_page(data.rows))
            order = rows_of(members, models[k].targets(data))
            self._follow(models[k], own_rows, order, report)

        n_steps = self._count_steps(self._training, data, members, 1)
        with progress(self._title(), n_steps, self._shows()) as report:
            for_each(learn, len(models), effective_n_jobs(self.n_jobs), report)
        return self

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
        if self.alpha == "auto" and "alpha" not in self._found:
            raise ValueError('alpha="auto" needs all rows at once, not a stream: give a number.')

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

    def _new_training(self, seed: int) -> PlaneTraining:
        return PlaneTraining(
            kind=self._setting("multi_class"),
            seed=seed,
            constant=float(self.fit_intercept),
            known=known_classes(np.empty(0)),
            n_columns=width_of(self),
            own=self._own_of_training(),
        )

    def _meet(self, training: PlaneTraining, labels: Array, data: TrainingData) -> None:
        """Classes and columns that training has not met yet."""
        training.known = known_classes(labels)
        training.n_columns = width_of(self)
        known = {(model.problem, model.estimator) for model in training.models}
        self._check_memory(training, len(known))
        for problem in training.decomposition(self.combine).problems():
            for e in range(int(self._setting("n_estimators"))):
                if (problem, e) not in known:
                    training.models.append(self._new_model(training, problem, e))
        for model in training.models:
            self._introduce(model, training, data)
        self.classes_ = training.classes

    def _check_memory(self, training: PlaneTraining, n_known: int) -> None:
        """Planes of models to come, in training and as they will be finished."""
        n_models, n_bytes, what = self._size_of_models(training)
        check_memory(type(self).__name__, training.kind, n_models - n_known, n_bytes, what)

    def _size_of_models(self, training: PlaneTraining) -> tuple[int, int, str]:
        """How many there are, the bytes of each at least, and what these are for."""
        n_problems = training.decomposition(self.combine).n_problems()
        n_models = n_problems * int(self._setting("n_estimators"))
        n_codes = max(2, training.labels.size) if training.kind == "joint" else 2
        n_features = 1 + self._features_of(training)
        n_planes = self._least_planes(n_codes)
        n_lanes = -(-n_planes // LANES) * LANES * (2 if self._keeps_average(training) else 1)
        n_bytes = 4 * (n_features * (n_lanes + n_planes) + training.labels.size) + BYTES_OF_MODEL
        return n_models, n_bytes, f"{n_planes} planes with {n_features:,} numbers each"

    def _new_model(self, training: PlaneTraining, problem: Problem, estimator: int) -> PlaneModel:
        """All models of one estimator have the same seed: alone they would have it, too."""
        n_features = self._features_of(training)
        return PlaneModel(
            problem=problem,
            estimator=estimator,
            planes=zero_planes(n_features, self._keeps_average(training)),
            alpha=1.0,
            constant=training.constant,
            seed=seed_of(training.seed, estimator),
            n_features=n_features,
            own=self._own_of_model(training),
        )

    def _introduce(self, model: PlaneModel, training: PlaneTraining, data: TrainingData) -> None:
        """What is new in the data to a model; it starts when it has a row to visit.

        A model always knows at least two classes: until the second one is named, it stands for
        all that the first one is not.
        """
        model.alpha = self._alpha_of(model)
        model.n_features = self._features_of(training)
        model.planes = with_features(model.planes, model.n_features)
        model.codes = model.problem.codes(training.labels.size)
        n_before = model.planes.room_left.size
        n_now = model.problem.n_codes(training.labels.size)
        if n_now > n_before and model.visits(data).any():
            model.planes = with_classes(model.planes, n_now, self._room_per_class())
            self._start_classes(model, data, n_before)
        model.rule = self._rule(model)

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

    def _better_settings(self, data: TrainingData, labels: Array, seed: int) -> dict[str, Any]:
        """What is set to 'auto', found by trials on held-out rows."""
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
        parts, judged_by = _parts_of(members, data.labels, seed)
        if self._bytes_of_trials(len(values) * len(judged_by), labels, seed) > MOST_BYTES:
            judged_by = {k: judged_by[k] for k in list(judged_by)[:1]}
        contenders = [
            Contender(
                [
                    new_trial(self, {"n_jobs": 1, **fixed, name: one}, data, labels, seed, parts, k)
                    for k in judged_by
                ]
            )
            for one in values
        ]
        looks = looks_of(int(self.max_iter), members.size >= MANY_ROWS)
        n_threads = effective_n_jobs(self.n_jobs)
        of_a_pass = sum(
            self._count_steps(one.training, data, members[parts[members] != one.left_out], 1)
            for one in contenders[0].trials
        )
        total = most_passes(len(values), looks) * of_a_pass
        with progress(f"{self._title()}: {name}", total, self._shows(), is_search=True) as report:
            best = winner(contenders, data, parts, judged_by, looks, n_threads, report)
        return values[best]


def _parts_of(members: Array, labels: Array, seed: int) -> tuple[Array, dict[int, Array]]:
    """The part of each row, and of each part that is left out the rows to judge by."""
    parts = np.zeros(labels.size, np.int32)
    if members.size >= MANY_ROWS:
        _, left_out = stratified(members, labels, 0.5, seed)
        parts[left_out] = 1
        share = min(1.0, MOST_JUDGED / left_out.size)
        return parts, {1: stratified(left_out, labels, share, seed)[1]}
    judged_by: dict[int, Array] = {}
    n_folds = min(FOLDS, members.size)
    for k in range(n_folds):
        members, judged_by[k] = stratified(members, labels, 1 / (n_folds - k), seed + k)
        parts[judged_by[k]] = k
    return parts, judged_by


def _check_one_way(X_val: Any, eval_set: Any) -> None:
    if X_val is not None and eval_set is not None:
        raise ValueError(
            "X_val and eval_set are both for early stopping: give the rows as eval_set alone."
        )


# ---- what other files ask of a machine ---------------------------------------------------


def give_planes(
    machine: Any, labels: Array, owner: Array, intercepts: Array, weights: Array, n_steps: int
) -> Array:
    """Make a machine that knows its columns one that has reached these planes; return their sums.

    `owner` is the place of each plane's class among `labels`, and sums are alpha t W with
    t = `n_steps`: whether float32 holds them is for the caller to see.
    """
    machine._found, machine.n_iter_ = {}, 1
    training = machine._training = machine._new_training(SEED_OF_GIVEN)
    model = machine._new_model(training, Problem(), 0)
    room = -(-(owner.size + LANES) // LANES) * LANES
    empty = zero_planes(model.n_features, machine._keeps_average(training), room)
    model.planes = with_classes(empty, labels.size, machine._room_per_class())
    model.alpha, model.n_steps = machine._alpha_of(model), n_steps
    scale = machine._alpha_of_planes(model) * n_steps
    sums = np.empty((owner.size, weights.shape[1] + 1), np.float32)
    sums[:, 0], sums[:, 1:] = scale * intercepts, scale * weights
    model.planes = with_planes(model.planes, owner, sums)
    training.models.append(model)
    machine._meet(training, labels, no_training_data())
    return sums


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
    return RowsToTry(machine._weighed(data), labels, machine._draw_seed())


def features_of(machine: Any) -> Features:
    """How rows become what the planes of a fitted machine see."""
    features: Features = machine._features(machine._training)
    return features


def found_by(machine: Any) -> dict[str, Any]:
    """What the fit has found of settings that were 'auto'."""
    found: dict[str, Any] = machine._found
    return found


def settles_alpha(machine: Any) -> bool:
    """Whether alpha is settled anew by each fit, so that 'auto' stands for no one number."""
    return bool(machine._is_soft())


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


# ---- rounds of several learners: what `rounds.py` asks of a machine -----------------------


class Census(NamedTuple):
    """How many rows there are of each class."""

    labels: Array
    n_rows: Array

    def visited_by(self, machine: Any) -> "Census":
        """Without rows of weight 0."""
        given = machine.class_weight if isinstance(machine.class_weight, dict) else {}
        has_weight = [given.get(label, 1.0) > 0 for label in self.labels.tolist()]
        return Census(self.labels[has_weight], self.n_rows[has_weight])


def _count_visited(machine: Any, model: PlaneModel, census: Census) -> int:
    """How many of the rows counted a model visits."""
    visited = census.visited_by(machine)
    _, codes = codes_of(visited.labels, machine._training.labels)
    return int(visited.n_rows[model.codes[codes] != LEFT_OUT].sum())


def weights_of_classes(machine: Any, census: Census) -> dict[Any, float] | None:
    """The factors of classes as steps use them, of which a part of the rows cannot tell."""
    if machine.class_weight is None:
        return None
    labels, n_rows = census.labels.tolist(), census.n_rows
    if isinstance(machine.class_weight, dict):
        weights = np.array([machine.class_weight.get(label, 1.0) for label in labels], np.float64)
    else:
        weights = n_rows.sum() / (n_rows.size * n_rows)
    return dict(
        zip(labels, (weights / machine._mean_weight(weights, n_rows)).tolist(), strict=True)
    )


def begin_by_sample(machine: Any, X: Any, y: Any, census: Census) -> None:
    """Begin a training as `fit` does, of the rows counted, of which these are some or all.

    Settings that are 'auto', maps of columns and first planes are found on these. No row is
    learned.
    """
    with writing(machine), all_or_nothing(machine):
        check_parameters(machine)
        data, labels = machine._read_training(X, y, census.labels, None, False)
        data = machine._weighed(data)
        machine._check_classes(labels)
        seed, n_rows = machine._draw_seed(), int(census.n_rows.sum())
        machine._rows_to_come = int(census.visited_by(machine).n_rows.sum())
        machine._found, machine.n_iter_ = machine._better_settings(data, labels, seed), 0
        for name in ("_rows_to_come", "_reached"):
            vars(machine).pop(name, None)
        training = machine._training = machine._new_training(seed)
        is_all = data.labels.size == n_rows
        machine._meet(training, labels, machine._view_of_sample(training, data, is_all))
        for model in training.models:
            n_visited = _count_visited(machine, model, census)
            machine._begin(model, machine._count_passes(n_visited) * n_visited)


def complete_by_sample(machine: Any, X: Any, y: Any) -> None:
    """Do with models what `fit` does in the end, with some of its rows or all."""
    with writing(machine):
        data, _ = machine._read_training(X, y, None, None, True)
        seen = machine._training_view(machine._training, data)
        members = weighty(in_place(data.labels.size), data.weights)
        machine._complete(machine._training, seen, members)


def count_passes(machine: Any) -> int:
    """How many passes over the rows are set, or were found."""
    return int(machine._setting("max_iter"))


def meet_rows(machine: Any, X: Any, y: Any, classes: Any) -> bool:
    """Begin a training as `fit` does, or let it meet more rows; return whether all has begun.

    A model begins when it meets a row that it will visit: one of a pair of classes needs a row of
    one of them. No row is learned.
    """
    goes_on = hasattr(machine, "_training")
    with writing(machine), all_or_nothing(machine):
        check_parameters(machine)
        data, labels = machine._read_training(X, y, classes, None, goes_on)
        machine._check_classes(labels)
        if not goes_on:
            seed = machine._draw_seed()
            machine._found, machine.n_iter_ = {}, 0
            machine._training = machine._new_training(seed)
        machine._meet(machine._training, labels, data)
    return all(model.planes.room_left.size > 0 for model in machine._training.models)


class Moment(NamedTuple):
    """Where a round stands in a training."""

    n_done: int  # rounds before it
    n_rounds: int  # in all
    ends_pass: bool = True  # over all rows

    @property
    def is_last(self) -> bool:
        """Whether the training ends with it."""
        return self.n_done + 1 == self.n_rounds


class Piece(NamedTuple):
    """Which part of the rows of a partition, in the order of a pass, is visited."""

    place: int = 0
    n_pieces: int = 1


def join_round(machine: Any, census: Census, n_pieces: int, moment: Moment) -> None:
    """Let steps fall as suits a learner that visits a piece of these rows in each round."""
    for model in machine._training.models:
        n_rows = _count_visited(machine, model, census) // n_pieces
        if n_rows > 0:
            machine._schedule(model, n_rows, moment.n_done, moment.n_rounds)


def pass_over(machine: Any, X: Any, y: Any, learner: int, piece: Piece) -> list[Array]:
    """A pass over rows, or a piece of one, as a pass of `fit`; return origins of planes.

    Those are, for each model and each plane that lives, its place among those that lived before,
    or NEW. Each learner has an order of its own; that of the first is that of `fit`. All classes
    and columns are known by now.
    """
    with writing(machine):
        data, _ = machine._read_training(X, y, None, None, True)
        seen = machine._training_view(machine._training, data)
        models = machine._training.models
        return [_pass_of(machine, model, seen, learner, piece) for model in models]


def _pass_of(
    machine: Any, model: PlaneModel, data: TrainingData, learner: int, piece: Piece
) -> Array:
    """The pass of one model; return the origins of its planes."""
    walk = machine._walk()

    def steps(model: PlaneModel, data: TrainingData, order: Array, _: Array) -> int:
        n_steps: int = walk.steps(model, data, order, NO_CHOICE)
        return n_steps

    def silent(*_: Any) -> None:
        """Nobody looks."""

    members = weighty(in_place(data.labels.size), data.weights)
    order = rows_of(members, model.targets(data))
    before = model.generator.bit_generator.state
    if machine.shuffle and learner > 0:
        bits: Any = model.generator.bit_generator
        model.generator = np.random.Generator(bits.jumped(learner))
    if machine.shuffle:
        shuffle(order, model.generator)
    order = np.array_split(order, piece.n_pieces)[piece.place]
    if piece.place + 1 < piece.n_pieces:  # the next has the same order
        model.generator.bit_generator.state = before
    lanes = live_lanes(model.planes).astype(np.int32)  # `visit` follows them where they go
    visit(model, data, order, lanes, walk._replace(steps=steps), silent)
    return _origins_of(model.planes, lanes)


def _origins_of(planes: Planes, lanes: Array) -> Array:
    """Of each plane that lives its place among `lanes`, or NEW."""
    origin = np.full(planes.owner.size + 1, NEW, np.int64)
    origin[lanes] = np.arange(lanes.size)  # of those that went, in the last place: -1
    return origin[live_lanes(planes)]


def scale_of(machine: Any, model: PlaneModel) -> float:
    """The factor by which sums are what learners average."""
    return float(machine._scale_of(model))


def end_round(machine: Any, n_before: Sequence[int], moment: Moment) -> None:
    """Do what a machine does between rounds, and count passes.

    Models that were mixed have made steps since `n_before`, and no learner's schedule is theirs.
    """
    machine.n_iter_ += moment.ends_pass
    models = machine._training.models
    for model, before in zip(models, n_before, strict=False):
        if model.n_steps > before:
            made = model.n_steps - before
            machine._schedule(model, made, moment.n_done + 1, moment.n_rounds)
            machine._act(model)
            model.note()
    if moment.ends_pass and not moment.is_last:
        for model in models:
            machine._end_pass_of_all(model)


def seed_of(seed: int, estimator: int) -> int:
    """The seed of one model of an ensemble; the first has that of the whole."""
    if estimator == 0:
        return seed
    return int(np.random.default_rng([seed, estimator]).integers(2**31))


def stratified(members: Array, labels: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to keep and rows to hold out: of every class about the same share, at random."""
    mixed = members.copy()
    shuffle(mixed, np.random.default_rng(seed))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    place = np.floor(np.arange(by_class.size) * share)
    is_held_out = np.diff(place, append=np.floor(by_class.size * share)) > 0
    is_held_out[-1] |= not is_held_out.any()  # of few rows one at least
    return by_class[~is_held_out], by_class[is_held_out]
