"""Every recipe trained once on some rows, and judged by others."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.rows.turned import Turn
from polyplane.hyperplane.soft_planes import (
    SoftPlanesClassifier,
    first_planes,
    measured_importance,
    scores_as_seen,
    trained_on,
    written_out,
)
from polyplane.model.input.column_maps import AS_IS, ColumnMap, column_map
from polyplane.portfolio.blend import calibration_of
from polyplane.portfolio.expected import Score, score_of
from polyplane.portfolio.recipes import OF_THE_VIEW, TABLE, WIDE
from polyplane.portfolio.split import Split
from polyplane.training.rows import TrainingData, weighty
from polyplane.training.soft_planes.column_weights import Importance, weights_of
from polyplane.training.work.progress import Report, silence
from polyplane.training.work.side_by_side import for_each

__all__ = [
    "MAX_PASSES_OF_TRIAL",
    "Trial",
    "Views",
    "algorithm_of",
    "joined",
    "judged_labels",
    "judged_weights",
    "kind_of_data",
    "ranks_of",
    "scores_of_member",
    "tried_recipes",
]

View = tuple[str, str, str, str]  # kind of columns, scores, directions, statistics
MAX_PASSES_OF_TRIAL = 60  # recipes with more passes are chosen as well by half of them
PLAIN: View = ("plain", "values", "none", "none")


class Trial(NamedTuple):
    """Scores of the judged rows by a recipe, and how good they are."""

    name: str
    settings: dict[str, Any]
    scores: Array  # [judged row, class by rank], log-odds
    score: Score
    calibration: float
    seconds: float
    estimator: Any  # trained on the tried rows of the first split


class Views:
    """Maps of the columns of some rows, each made once, and the importance of columns by map."""

    def __init__(
        self,
        data: TrainingData,
        labels: Array,
        n_columns: int,
        seed: int,
        sample: "Views | None" = None,
        n_read: int | None = None,
    ) -> None:
        """Take rows; `sample` is a part of them on which the importance of columns is measured.

        Columns from `n_read` on are target statistics, which only some recipes read.
        """
        self.data, self.labels, self.n_columns, self.seed = data, labels, n_columns, seed
        self.sample, self.n_read = sample, n_read
        self.members = weighty(in_place(data.labels.size), data.weights)
        self.maps: dict[View, ColumnMap] = {}
        self.importance: dict[View, Importance] = {}
        self._lock = threading.RLock()
        self._locks: dict[Any, Any] = {}

    def columns(self, settings: dict[str, Any]) -> ColumnMap:
        """Return the map that the settings of a recipe ask for."""
        key = view_of(settings)
        columns, power = self._map(key), settings.get("relevance", 0.0)
        if power == 0 or columns.is_as_is:
            return columns
        found = (self.sample or self)._importance_of(key, self.n_columns)
        return columns.weighed(weights_of(found, power, columns.n_mapped))

    def seen(self, columns: ColumnMap) -> TrainingData:
        """Return the rows as steps see them."""
        return written_out(columns, self.data._replace(rows=with_own_page(self.data.rows)))

    def _lock_of(self, key: Any) -> Any:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def _map(self, key: View) -> ColumnMap:
        kind, scores, directions, statistics = key
        with self._lock_of(("map", key)):
            if key not in self.maps:
                turn = None if self.sample is None else self.sample._turn_of(key, self.n_columns)
                self.maps[key] = column_map(
                    with_own_page(self.data.rows),
                    self.members,
                    self.n_columns,
                    kind,
                    may_leave_out=kind == AS_IS,
                    must_map=kind != AS_IS,
                    turns=directions == "principal",
                    scores=scores,
                    known_turn=turn,
                    n_read=self.n_read if statistics == "none" else None,
                )
            return self.maps[key]

    def _turn_of(self, key: View, n_columns: int) -> Turn | None:
        """Return the directions of a map as they are for the first columns alone."""
        turn = self._map(key).turn
        return turn and turn._replace(knot_starts=turn.knot_starts[: n_columns + 1])

    def _importance_of(self, key: View, n_columns: int) -> Importance:
        """Return the importance of the first columns, and of directions."""
        left_out = np.arange(n_columns, self.n_columns)
        return Importance(*(np.delete(one, left_out) for one in self._importance(key)))

    def _importance(self, key: View) -> Importance:
        columns = self._map(key)
        with self._lock_of(("importance", key)):
            if key not in self.importance:
                seen = self.seen(columns)
                self.importance[key] = measured_importance(
                    seen, self.labels, columns, self.members, self.seed
                )
            return self.importance[key]


def view_of(settings: dict[str, Any]) -> View:
    """Return the kind of the columns, their scores, their directions and target statistics."""
    return (
        settings["columns"],
        settings.get("scores", "values"),
        settings.get("directions", "none"),
        settings.get("statistics", "none"),
    )


def kind_of_data(views: Views) -> str:
    """Return whether the columns are those of a table, or of texts and images."""
    columns = column_map(
        views.data.rows, views.members, views.n_columns, "plain", True, n_read=views.n_read
    )
    if columns.is_as_is:
        return WIDE
    views.maps[PLAIN] = columns
    return TABLE


def algorithm_of(settings: dict[str, Any], n_classes: int, **others: Any) -> SoftPlanesClassifier:
    """Return the algorithm of a recipe, not trained, with fewer planes where classes are many."""
    n_planes = settings["n_planes"]
    if n_planes > 1 and n_classes > 2:
        n_planes = first_planes(n_planes, n_classes)
    own = {name: value for name, value in settings.items() if name not in OF_THE_VIEW}
    return SoftPlanesClassifier(**own | others | {"n_planes": n_planes})


def tried_recipes(
    recipes: Sequence[tuple[str, dict[str, Any]]],
    splits: Sequence[Split],
    views: Sequence[Views],
    n_threads: int,
    report: Report,
    done: Callable[[Trial], None],
) -> list[Trial]:
    """Train every recipe once on the tried rows of each split; tell of each that is `done`."""
    trials: list[Any] = [None] * len(recipes)

    def work(k: int, report: Report) -> None:
        trials[k] = _trial(*recipes[k], splits, views, report)
        done(trials[k])

    for_each(work, len(recipes), n_threads, report)
    return trials


def _trial(
    name: str,
    settings: dict[str, Any],
    splits: Sequence[Split],
    views: Sequence[Views],
    report: Report = silence,
) -> Trial:
    start = time.perf_counter()
    scores, estimators = [], []
    for split, view in zip(splits, views, strict=True):
        columns = view.columns(settings)
        n_passes = min(settings["max_iter"], MAX_PASSES_OF_TRIAL)
        others = {"random_state": view.seed, "max_iter": n_passes}
        algorithm = algorithm_of(settings, view.labels.size, **others)
        seen = view.seen(columns)
        trained_on(algorithm, seen, view.labels, columns, view.members, view.seed, report)
        scores.append(scores_of_member(algorithm, split.judged))
        estimators.append(algorithm)
    seconds = time.perf_counter() - start
    raw = np.concatenate(scores).astype(np.float64)
    ranks = ranks_of(views[0].labels)
    return _judged(name, settings, raw, splits, ranks, seconds, estimators[0])


def _judged(
    name: str,
    settings: dict[str, Any],
    raw: Array,
    splits: Sequence[Split],
    ranks: Array,
    seconds: float,
    estimator: Any,
) -> Trial:
    """Return a trial with the factor that makes `raw` scores of the judged rows log-odds."""
    labels, weights = judged_labels(splits, ranks), judged_weights(splits)
    calibration = calibration_of(raw, labels, weights)
    scores = calibration * raw
    score = score_of(scores, labels, weights)
    as_kept = scores.astype(np.float32)
    return Trial(name, settings, as_kept, score, calibration, seconds, estimator)


def joined(first: Trial, later: Trial, splits: Sequence[Split], ranks: Array) -> Trial:
    """Return the trial of a recipe on all splits, from those on the first and on the others."""
    raw = [trial.scores.astype(np.float64) / trial.calibration for trial in (first, later)]
    seconds = first.seconds + later.seconds
    both = np.concatenate(raw)
    return _judged(first.name, first.settings, both, splits, ranks, seconds, first.estimator)


def scores_of_member(estimator: SoftPlanesClassifier, data: TrainingData) -> Array:
    """Return the class scores of a trained recipe on some rows."""
    columns: ColumnMap = estimator._training.columns.map
    return scores_as_seen(estimator, columns.for_training(with_own_page(data.rows)))


def ranks_of(labels: Array) -> Array:
    """Return the place of each label, which stand in the order of their codes, among all sorted."""
    ranks: Array = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
    return ranks


def judged_labels(splits: Sequence[Split], ranks: Array) -> Array:
    """Return the ranks of the classes of the judged rows."""
    return np.concatenate([ranks[split.judged.labels] for split in splits])


def judged_weights(splits: Sequence[Split]) -> Array | None:
    """Return the weights of the judged rows, or None where all count alike."""
    if not any(split.judged.weights.size for split in splits):
        return None
    return np.concatenate([split.judged.weights for split in splits])
