"""The scikit-learn face of every hyperplane machine: one path for `fit` and `partial_fit`.

A machine adds its parameters and three things it does along the way (`_steps`, `_due`, `_act`);
everything users know from scikit-learn is here.
"""

import contextlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes import Array, with_classes, with_features, zero_planes
from polyplane.engine.rows import Rows, count_rows, with_own_page
from polyplane.estimator.parameters import check_parameters, with_parameters
from polyplane.estimator.progress import Report, progress
from polyplane.estimator.settings import Settings
from polyplane.estimator.training import HISTORY, NO_CHOICE, Training, Walk, visit
from polyplane.estimator.validation import (
    TrainingData,
    codes_of,
    read_matrix,
    read_matrix_and_labels,
    row_weights,
)
from polyplane.model.record import PlaneRecord

__all__ = ["HyperplaneClassifier"]

ALPHAS = tuple(10.0**-k for k in range(2, 8))  # section 4 of the AMM paper
SEARCH_EPOCHS = 3


class Trained:
    """What the first fit leaves."""

    _training: Training
    classes_: Array
    n_features_in_: int
    n_iter_: int


@with_parameters
class HyperplaneClassifier(Settings, Trained, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose classes are maxima of hyperplanes."""

    # ---- what a machine adds -------------------------------------------------------------

    def _steps(self, training: Training, data: TrainingData, order: Array, chosen: Array) -> int:
        """Run the machine's loop over `order`; return the new count of steps."""
        raise NotImplementedError

    def _due(self, step: int) -> int:
        """The next count of steps at which `_act` wants to be called."""
        return sys.maxsize

    def _act(self, training: Training) -> None:
        """What happens between steps, such as pruning."""

    def _room_per_class(self) -> int:
        """How many planes a class may grow by itself."""
        raise NotImplementedError

    def _start_classes(self, training: Training, data: TrainingData, first: int) -> None:
        """Give classes `first` and later their first planes, where the machine has any."""

    def _first_choice(self, data: TrainingData) -> Array:
        """The plane of each row, for machines that hold on to it."""
        return NO_CHOICE

    def _has_settled(
        self, training: Training, data: TrainingData, members: Array, chosen: Array
    ) -> bool:
        """Asked after each pass: whether another one would change nothing."""
        return False

    def _alpha_of_planes(self, training: Training) -> float:
        """The alpha for which W = Theta / (alpha t)."""
        return training.alpha

    def _train(
        self, training: Training, data: TrainingData, members: Array, held_out: Any, report: Report
    ) -> None:
        """Passes over the rows `members`, stopped early where asked for."""
        best, best_state, since_best = np.inf, None, 0
        walk = Walk(self._steps, self._due, self._act)
        chosen = self._first_choice(data)
        for epoch in range(self.max_iter):
            if self.shuffle:
                shuffle(members, training.generator)
            visit(training, data, members, chosen, walk, report)
            self.n_iter_ = epoch + 1
            if held_out is not None:
                error = self._error(training, *held_out)
                if error < best - self.tol:
                    best, best_state, since_best = error, training.snapshot(), 0
                else:
                    since_best += 1
            if (
                self._has_settled(training, data, members, chosen)
                or since_best == self.n_iter_no_change
            ):
                break
        if best_state is not None:
            training.return_to(best_state)

    # ---- training ------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Train on the rows of X; X_val and y_val, if given, are for early stopping."""
        with _all_or_nothing(self):
            check_parameters(self)
            goes_on = self.warm_start and hasattr(self, "_training")
            data, labels = self._read_training(X, y, None, sample_weight, goes_on)
            if labels.size < 2:
                raise ValueError(
                    f"{type(self).__name__} needs rows of at least 2 classes; y holds only one "
                    f"class, {labels[0]!r}."
                )
            validation = self._read_validation(X_val, y_val, labels)
            seed = self._draw_seed()
            alpha = self._best_alpha(data, labels, seed) if self.alpha == "auto" else self.alpha
            if not goes_on:
                self._training = self._new_training(float(alpha), seed)
            self._training.alpha = float(alpha)
            self._meet(labels, data)
            members, held_out = self._split(data, validation, seed)
            self.n_iter_ = 0
        total = self.max_iter * members.size
        with progress(type(self).__name__, total, bool(self.verbose)) as report:
            self._train(self._training, data, members, held_out, report)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of X once, in the order given; new classes and columns are welcome."""
        with _all_or_nothing(self):
            check_parameters(self)
            goes_on = hasattr(self, "_training")
            if self.alpha == "auto" and not goes_on:
                raise ValueError('alpha="auto" needs fit: give partial_fit a number for alpha.')
            if self.class_weight == "balanced":
                raise ValueError(
                    'class_weight="balanced" needs all rows at once, so partial_fit cannot use '
                    "it: give a dict of weights."
                )
            data, labels = self._read_training(X, y, classes, sample_weight, goes_on)
            if not goes_on:
                self._training = self._new_training(float(self.alpha), self._draw_seed())
                self.n_iter_ = 1
            if self.alpha != "auto":
                self._training.alpha = float(self.alpha)
            self._meet(labels, data)
        members = _weighty(in_place(data.labels.size), data.weights)
        walk = Walk(self._steps, self._due, self._act)
        with progress(type(self).__name__, members.size, bool(self.verbose)) as report:
            visit(self._training, data, members, NO_CHOICE, walk, report)
        return self

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _read_training(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, goes_on: bool
    ) -> tuple[TrainingData, Array]:
        """Checked rows with codes and weights, and all labels known from now on."""
        if isinstance(X, list | tuple):
            X = np.asarray(X)
        is_wider = goes_on and getattr(X, "shape", ())[-1:] > (self.n_features_in_,)
        constant = self._training.constant if goes_on else float(self.fit_intercept)
        rows, y = read_matrix_and_labels(self, X, y, not goes_on or is_wider, constant)
        known = self._training.labels if goes_on else None
        if classes is not None:
            if np.size(classes) == 0:
                raise ValueError("classes is empty: name the labels, or leave it out.")
            known, _ = codes_of(column_or_1d(np.asarray(classes)), known)
        labels, codes = codes_of(y, known)
        return TrainingData(rows, codes, row_weights(y, sample_weight, self.class_weight)), labels

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
        return TrainingData(rows, codes, np.empty(0, np.float32))

    def _new_training(self, alpha: float, seed: int) -> Training:
        return Training(
            planes=zero_planes(self.n_features_in_, bool(self.average)),
            alpha=alpha,
            constant=float(self.fit_intercept),
            seed=seed,
            generator=np.random.default_rng(seed),
            labels=np.empty(0),
            n_columns=self.n_features_in_,
        )

    def _meet(self, labels: Array, data: TrainingData) -> None:
        self._introduce(self._training, labels, data)
        self.classes_ = self._training.classes

    def _introduce(self, training: Training, labels: Array, data: TrainingData) -> None:
        """Classes and columns that training has not met yet.

        The engine always knows at least two classes: until the second one is named, it stands
        for all that the first one is not.
        """
        training.forget_results()
        training.labels = labels
        training.n_columns = self.n_features_in_
        training.planes = with_features(training.planes, training.n_columns)
        n_before, n_now = training.planes.room_left.size, max(2, labels.size)
        if n_now > n_before:
            training.planes = with_classes(training.planes, n_now, self._room_per_class())
            self._start_classes(training, data, n_before)

    def _split(
        self, data: TrainingData, validation: TrainingData | None, seed: int
    ) -> tuple[Array, tuple[TrainingData, Array] | None]:
        """Rows to train on, and rows that early stopping looks at."""
        members = _weighty(in_place(data.labels.size), data.weights)
        if not self.early_stopping:
            return members, None
        if validation is not None:
            return members, (validation, in_place(validation.labels.size))
        members, held_out = _stratified(members, data.labels, self.validation_fraction, seed)
        return members, (data, held_out)

    def _error(self, training: Training, data: TrainingData, order: Array) -> float:
        record = training.record(self._alpha_of_planes(training))
        found = record.classes_of(data.rows, order, effective_n_jobs(self.n_jobs))
        expected = np.searchsorted(training.classes, training.labels)[data.labels[order]]
        return float(np.mean(found != expected))

    def _best_alpha(self, data: TrainingData, labels: Array, seed: int) -> float:
        """The alpha of the papers' grid with the lowest error on held-out rows."""
        members = _weighty(in_place(data.labels.size), data.weights)
        members, held_out = _stratified(members, data.labels, self.validation_fraction, seed)
        epochs = min(self.max_iter, SEARCH_EPOCHS)

        def error_of(alpha: float) -> float:
            trial: Any = type(self)(**(self.get_params() | {"max_iter": epochs, "n_jobs": 1}))
            trial.n_features_in_ = self.n_features_in_
            training = trial._new_training(alpha, seed)
            own_page = data._replace(rows=with_own_page(data.rows))
            trial._introduce(training, labels, own_page)
            trial._train(training, own_page, members.copy(), None, report)
            return float(trial._error(training, own_page, held_out))

        title = f"{type(self).__name__}: alpha"
        total = len(ALPHAS) * epochs * members.size
        n_threads = min(effective_n_jobs(self.n_jobs), len(ALPHAS))
        with (
            progress(title, total, bool(self.verbose)) as report,
            ThreadPoolExecutor(n_threads) as pool,
        ):
            errors = list(pool.map(error_of, ALPHAS))
        return ALPHAS[int(np.argmin(errors))]

    # ---- prediction ----------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_training")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _record(self) -> PlaneRecord:
        check_is_fitted(self)
        return self._training.record(self._alpha_of_planes(self._training))

    def _read(self, X: Any) -> tuple[Rows, Array, int]:
        check_is_fitted(self)
        rows = read_matrix(self, X, False, self._training.constant)
        return rows, in_place(count_rows(rows)), effective_n_jobs(self.n_jobs)

    def predict(self, X: Any) -> Array:
        """Label of the class whose plane scores highest on each row."""
        winners = self._record().classes_of(*self._read(X))
        labels: Array = self._training.classes[winners]
        return labels

    def decision_function(self, X: Any) -> Array:
        """Score of each class, or with two classes the second one's lead over the first."""
        scores = self._record().class_scores(*self._read(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def assign(self, X: Any) -> Array:
        """Index in `planes_` of the plane that decides each row."""
        return self._record().best_planes(*self._read(X))

    def plane_scores(self, X: Any) -> Array:
        """Score of each plane on each row."""
        return self._record().plane_scores(*self._read(X))

    # ---- fitted attributes ---------------------------------------------------------------

    @property
    def planes_(self) -> Array:
        """Planes by features, those of one class together, oldest first."""
        return self._record().planes()

    @property
    def intercepts_(self) -> Array:
        """Constant term of each plane."""
        return self._record().intercepts()

    @property
    def plane_classes_(self) -> Array:
        """Label of each plane's class."""
        labels: Array = self._training.classes[self._record().owner]
        return labels

    @property
    def n_planes_(self) -> int:
        """How many planes the model has."""
        return self._record().n_planes

    @property
    def n_steps_(self) -> int:
        """Rows visited since training began."""
        check_is_fitted(self)
        return self._training.n_steps

    @property
    def alpha_(self) -> float:
        """The alpha in use: the one given, or the one found by alpha='auto'."""
        check_is_fitted(self)
        return self._training.alpha

    @property
    def history_(self) -> Array:
        """Steps, planes now, created, pruned, and error since the point before, by step."""
        check_is_fitted(self)
        return np.array(self._training.history, HISTORY)


@contextlib.contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Input that turns out to be bad half-way leaves the estimator as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _weighty(members: Array, weights: Array) -> Array:
    """Rows of weight 0 are not visited: that is what leaving them out means."""
    return members[weights > 0] if weights.size else members


def _stratified(members: Array, labels: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to keep and rows to hold out: of every class about the same share, at random."""
    mixed = members.copy()
    shuffle(mixed, np.random.default_rng(seed))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    place = np.floor(np.arange(by_class.size) * share)
    is_held_out = np.diff(place, append=np.floor(by_class.size * share)) > 0
    is_held_out[-1] |= not is_held_out.any()  # of few rows one at least
    return by_class[~is_held_out], by_class[is_held_out]
