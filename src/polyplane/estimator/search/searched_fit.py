"""A fit that finds its settings first, and is made again where it is worse than their trial.

Candidates are in `candidates.py`, and how they are judged in `trials.py`; here they are trained, by
a machine that finds settings in this way, and the best of them is what its fit goes by.
"""

import logging
import threading
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import CsrRows, count_rows, in_parts, packed
from polyplane.estimator.fitting.pass_watch import PassWatch
from polyplane.estimator.fitting.progress import Report, progress
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData, weighty
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.new_models import seed_of
from polyplane.estimator.planes.training import PlaneModel, PlaneTraining
from polyplane.estimator.search.candidates import Candidates
from polyplane.estimator.search.halving import calibrated
from polyplane.estimator.search.relevance import Worth, weights_of, worth_of
from polyplane.estimator.search.trials import Begun, Problem, Setting, Split, View
from polyplane.model.input.column_maps import ColumnMap
from polyplane.model.plane_record import FinishedPlanes

__all__ = ["SearchedFit", "written_out"]

log = logging.getLogger("polyplane")
STEPS = 3_000_000  # max_iter = 'auto' makes about so many, in LEAST_PASSES to MOST_PASSES
LEAST_PASSES, MOST_PASSES = 5, 40
LONG_PASSES = 120  # at most, where the search finds that they are worth it
MOST_PACKED = 1 << 26  # entries of X, 8 bytes each, that are written out for training
CLEARLY_WORSE = 1.02  # times the loss of a trial: a fit that is made again
SURELY_RIGHT = 5e-3  # mean loss: where it is less, shares of it tell nothing
MOST_AGAIN, SMALLER_STEP = 3, 1 / 3  # how often, and each time with steps of this share
WORSE_THAN_TRIAL = (
    "the fit is worse than the trial of its settings on fewer rows: steps of {step:g} are too "
    "large for these rows. Set a smaller step_size."
)


class Reached(NamedTuple):
    """What the trial of the settings found reached on rows that it had not seen."""

    data: TrainingData
    rows: Array
    loss: float


class SearchedFit(HyperplaneClassifier):
    """A machine that sees columns through maps and finds what is 'auto' on held-out rows."""

    max_iter: int | str  # type: ignore[assignment]
    search: bool
    step_size: float | str
    relevance: float | str
    _worth: Worth | None  # of columns, from the search until the fit begins
    _calibration: float  # factor of class scores that makes them log-odds
    _reached: Reached

    # ---- what a machine adds -------------------------------------------------------------

    def _start_from(
        self, training: PlaneTraining, columns: ColumnMap, centres: Any, margins: Any
    ) -> None:
        """Let a training that has not begun see columns so.

        Centres of classes, and margins between them, are found by whoever needs them first.
        """
        raise NotImplementedError

    def _columns_of(self, training: PlaneTraining) -> ColumnMap:
        """How a training that has begun sees columns."""
        raise NotImplementedError

    def _finish_as_seen(self, model: PlaneModel) -> FinishedPlanes:
        """The planes that a model has reached, for rows as steps see them."""
        raise NotImplementedError

    # ---- settings ------------------------------------------------------------------------

    def _better_settings(
        self, data: TrainingData, labels: Array, seed: int, n_to_come: int | None = None
    ) -> dict[str, Any]:
        if self.warm_start and hasattr(self, "_training"):
            return self._found
        members = weighty(in_place(data.labels.size), data.weights)
        if np.unique(data.labels[members]).size < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; those with a weight "
                "above 0 are all of one class."
            )
        n_rows = members.size if n_to_come is None else n_to_come
        n_passes, most_passes = passes_for(n_rows), passes_for(n_rows, LONG_PASSES)
        problem = Problem(data, members, labels, seed, n_passes, most_passes)
        candidates = self._candidates(problem)
        found = candidates.first_guess | {"max_iter": n_passes}
        self._calibration, self._worth = 1.0, None
        if self.search and any(getattr(self, name) == "auto" for name in candidates.SEARCHED):
            title, n_threads = f"{self._title()}: settings", effective_n_jobs(self.n_jobs)
            with progress(title, candidates.count_steps(), self._shows(), is_search=True) as report:
                best = candidates.run(n_threads, report)
                finer = candidates.finer(best, n_threads, report)
                if finer is not None:
                    on_all = self._candidates(problem, takes_all=True)
                    best = on_all.better_of(best, finer, n_threads, report)
            self._calibration, self._worth = best.calibration, best.worth
            if self.max_iter == "auto" and n_to_come is None:  # else it may make fewer passes
                self._reached = Reached(data, best.rows, best.loss)
            found |= best.setting
        elif self._wants_trial(self._with_set(found)):
            given = candidates.as_given(self._with_set(found), effective_n_jobs(self.n_jobs))
            self._calibration, self._worth = given.calibration, given.worth
        if not candidates.may_be_several(found):
            found["n_estimators"] = 1
        return found

    def _candidates(self, problem: Problem, takes_all: bool = False) -> Candidates:
        """Those of this machine, each map of the columns written out once for their trials."""
        views: dict[View, TrainingData] = {}
        one_writes = threading.Lock()

        def begin(setting: Setting, split: Split, member: int) -> Begun:
            with one_writes:
                if split.view not in views:
                    views[split.view] = written_out(split.columns, split.data)
            seen = views[split.view]._replace(weights=split.data.weights)
            seed = seed_of(problem.seed, member)
            return self._trial(setting, split, seen, problem.labels, seed)

        return Candidates(self, problem, begin, takes_all)

    def _wants_trial(self, setting: Setting) -> bool:
        """Whether settings that are all known are tried all the same.

        Only rows held out tell how sure scores may be; those of squared hinges are no log-odds at
        all without them. What columns are worth is known from a trial as well.
        """
        is_squared = setting["loss"] == "squared-hinge" and setting["n_planes"] == 1
        return bool(self.search or is_squared or setting["relevance"] != 0)

    def _with_set(self, found: Setting) -> Setting:
        """Settings with those of the user."""
        given = {name: getattr(self, name) for name in found}
        return {name: found[name] if one == "auto" else one for name, one in given.items()}

    def _weighed_columns(self, columns: ColumnMap) -> ColumnMap:
        """The columns of a fit, as long as the search found them worth."""
        state: Any = vars(self)
        worth: Worth | None = state.pop("_worth", None)
        if worth is None or columns.table is None:
            return columns
        power = float(self._setting("relevance"))
        return columns.weighed(weights_of(worth, power, columns.n_mapped))

    def _trial(
        self, setting: Setting, split: Split, seen: TrainingData, labels: Array, seed: int
    ) -> Begun:
        """A training with this setting."""
        changes = {"n_jobs": 1, "n_estimators": 1, "max_iter": "auto", "early_stopping": False}
        trial = type(self)(**(self.get_params() | changes))
        trial.n_features_in_, trial._found = width_of(self), dict(setting)
        training = trial._new_training(seed)
        trial._start_from(training, split.columns, split.centres, split.margins)

        def go_on(n_passes: int, report: Report) -> tuple[Array, Array]:
            trial._found["max_iter"] = n_passes
            if not training.models:
                trial._meet(training, labels, seen)
            trial._make_passes(training, seen, split.members, None, report)
            scores = trial._scores_as_seen(training, seen.rows, split.held_out)
            return scores, training.ranks[split.data.labels[split.held_out]]

        def worth() -> Worth:
            models = training.models
            scales = [trial._scale_of(model) for model in models]
            return worth_of(models, scales, split.columns, seen.rows, split.members)

        return Begun(go_on, worth)

    # ---- a fit that goes wrong -------------------------------------------------------------

    def _run(
        self, data: TrainingData, members: Array, held_out: Any, watch: PassWatch | None
    ) -> Self:
        """A fit that is worse than the trial of its settings is made again with smaller steps.

        It is judged by rows that it has seen and the trial had not: it should be better. Where it
        is not, its steps were too large for so many rows, and planes were lost.
        """
        state: Any = vars(self)
        reached: Reached | None = state.pop("_reached", None)
        super()._run(data, members, held_out, watch)
        if reached is None or watch is not None:
            return self
        fits = [(self._loss_on(reached), self._training, self._found)]
        most = max(CLEARLY_WORSE * reached.loss, SURELY_RIGHT)
        while fits[-1][0] > most and self.step_size == "auto" and len(fits) <= MOST_AGAIN:
            step = self._found["step_size"]
            log.info("steps of %g were too large for these rows: fitting again", step)
            self._found = self._found | {"step_size": step * SMALLER_STEP}
            self._training = self._begun_again(self._training, data, members)
            super()._run(data, members, held_out, watch)
            fits.append((self._loss_on(reached), self._training, self._found))
        loss, self._training, self._found = min(fits, key=lambda fit: fit[0])
        if loss > most:
            step = self._setting("step_size")
            warnings.warn(WORSE_THAN_TRIAL.format(step=step), stacklevel=4)
        return self

    def _loss_on(self, reached: Reached) -> float:
        """The mean loss of rows, whatever unit the scores have."""
        training = self._training
        scores = self._scores_on(training, reached.data.rows, reached.rows)
        labels, weights = reached.data.labels[reached.rows], reached.data.weights
        of_rows = weights[reached.rows] if weights.size else None
        return calibrated(scores, training.ranks[labels], of_rows).loss

    def _scores_as_seen(self, training: PlaneTraining, rows: Any, order: Array) -> Array:
        """Scores of the classes on rows as steps see them: planes need not be folded for these."""
        record = training.record(
            self._finish_as_seen, self.combine, self._empty_score(), self._is_soft(), 1.0
        )
        return record.class_scores(rows, order)

    def _scores_on(self, training: PlaneTraining, rows: Any, order: Array) -> Array:
        """Scores of the classes; rows with directions share the loop of those without."""
        record, seen = self._record_of(training), self._prediction_rows(training, rows)
        parts = in_parts(seen, order)
        return np.concatenate([record.class_scores(some, places) for _, some, places in parts])

    def _begun_again(
        self, before: PlaneTraining, data: TrainingData, members: Array
    ) -> PlaneTraining:
        """A training of the same rows before its first pass."""
        training = self._new_training(before.seed)
        self._start_from(training, self._columns_of(before), {}, {})
        self._meet(training, before.labels, data)
        training.rows_seen, training.split_seed = before.rows_seen, before.split_seed
        self._set_out(training, data, members)
        return training


def passes_for(n_rows: int, most: int = MOST_PASSES) -> int:
    """Passes of a fit of so many rows."""
    return int(np.clip(STEPS // max(n_rows, 1), LEAST_PASSES, most))


def written_out(columns: Any, data: TrainingData) -> TrainingData:
    """The data as steps see them, mapped once and for all unless they are too large for that."""
    rows = columns.for_training(data.rows)
    n_rows = count_rows(rows)
    if not isinstance(rows, CsrRows) and columns.count_entries(data.rows) <= MOST_PACKED:
        rows = packed(rows, in_place(n_rows))
    return data._replace(rows=rows)
