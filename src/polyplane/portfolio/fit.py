"""The steps of a fit of PolyplaneClassifier, each one function: split, try, blend, refit.

What is folded in the end is the work of who predicts (`training/blended/folding.py`). A fit that
was interrupted takes its steps again from the first that had not ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.data.table.statistics import KeyedRows, TargetStatistics
from polyplane.model.input.column_maps import AS_IS
from polyplane.portfolio.blend import calibration_of, weights_of_recipes
from polyplane.portfolio.expected import Expected, Score, cross_fitted
from polyplane.portfolio.label_statistics import LabelStatistics, label_statistics, widened
from polyplane.portfolio.recipes import EFFORTS, Effort, named, recipes_for, settings_of
from polyplane.portfolio.refit import Matched, refit, settle
from polyplane.portfolio.split import (
    MANY_ROWS,
    Split,
    held_out_places,
    splits_of,
    taken,
    with_label_statistics,
    without,
)
from polyplane.portfolio.trials import (
    MAX_PASSES_OF_TRIAL,
    Trial,
    Views,
    algorithm_of,
    joined,
    judged_labels,
    judged_weights,
    kind_of_data,
    ranks_of,
    tried_recipes,
)
from polyplane.training.blended.training import BlendedTraining, Member
from polyplane.training.rows import TrainingData
from polyplane.training.work.progress import progress, silence

__all__ = ["GivenRows", "PortfolioFit", "blended_members", "refit_members", "split_rows"]

LINEAR_NAME = "linear"  # with which names of linear recipes begin
LEAST_PASSES = 3  # of a refit, however many rows there are
FEWEST_JUDGED = 20  # rows: with fewer, recipes are not judged
MOST_LOSS_BEHIND = 0.05  # of the best log-loss of one split: recipes to try on further splits


class GivenRows(NamedTuple):
    """The rows of a fit, and those of an `eval_set`, without target statistics."""

    data: TrainingData
    judged_by: TrainingData | None
    keyed: KeyedRows | None  # of tables
    eval_keys: KeyedRows | None
    n_columns: int


@dataclass
class PortfolioFit:
    """A fit on its way: what is asked of it, its rows, its training, and what it reports."""

    title: str
    quality: int
    recipes: Any  # as the parameter of PolyplaneClassifier
    n_threads: int
    shows_progress: bool
    given: GivenRows
    training: BlendedTraining
    read_with: Callable[[TargetStatistics | None], int]  # returns the number of columns then
    report: dict[str, Any] = field(default_factory=dict)  # trials, and the error to expect
    estimators: dict[str, Any] = field(default_factory=dict)  # of trials, by recipe

    @property
    def effort(self) -> Effort:
        """Return how much work is done."""
        return EFFORTS[self.quality]

    @property
    def has_weights(self) -> bool:
        """Return whether the recipes are given with their weights, so that none is tried."""
        given = self.recipes
        return isinstance(given, Mapping) and all("weight" in one for one in given.values())

    def views(self, data: TrainingData, sample: Views | None = None) -> Views:
        """Return maps of columns, yet to be made, for rows as they are read now."""
        training = self.training
        given = data, training.labels, training.n_columns, training.seed, sample
        return Views(*given, self.given.n_columns)


class SplitRows(NamedTuple):
    """Splits of the rows, as recipes without and with target statistics see them."""

    narrow: list[Split]
    wide: list[Split]
    samples: list[Views]  # of the tried rows
    statistics: LabelStatistics | None


# ---- 1. split ----------------------------------------------------------------------------


def split_rows(fit: PortfolioFit) -> SplitRows:
    """Return rows to try recipes on and rows to judge them by, with target statistics of tables."""
    given, training = fit.given, fit.training
    narrow = splits_of(given.data, fit.effort, training.seed, given.judged_by)
    statistics, wide = _label_statistics(fit), narrow
    if statistics is not None:
        wide, made = with_label_statistics(
            narrow, given.data, statistics, given.n_columns, given.eval_keys
        )
        training.n_columns = fit.read_with(made)
    samples = [fit.views(split.tried) for split in wide]
    return SplitRows(narrow, wide, samples, statistics)


def _label_statistics(fit: PortfolioFit) -> LabelStatistics | None:
    """Return what keys of the rows say of the classes, if a recipe is to read it."""
    if isinstance(fit.recipes, Mapping):
        all_settings = [settings_of(one) for one in fit.recipes.values()]
        if all(settings["statistics"] == "none" for settings in all_settings):
            return None
    training, given = fit.training, fit.given
    ranks, names = ranks_of(training.labels), training.classes.tolist()
    return label_statistics(given.keyed, given.data, ranks, names, training.seed)


# ---- 2. try, and 3. blend ----------------------------------------------------------------


def blended_members(fit: PortfolioFit, rows: SplitRows) -> list[Member]:
    """Return the recipes of the blend, which are still to be trained on all rows."""
    if fit.has_weights:
        total = sum(one["weight"] for one in fit.recipes.values())
        return [
            _member(fit, name, one, one["weight"] / total, one["weight"])
            for name, one in fit.recipes.items()
        ]
    trials, all_trials = _trials(fit, rows)
    fit.estimators = {trial.name: trial.estimator for trial in trials}
    shares, factor = np.full(len(trials), 1 / len(trials)), 1.0
    if sum(split.judged.labels.size for split in rows.wide) >= FEWEST_JUDGED:
        shares, factor = _blended(fit, trials, rows.wide)
        _report_trials(
            fit, all_trials, {one.name: w for one, w in zip(trials, shares, strict=True)}
        )
    return [
        _member(fit, trial.name, trial.settings, share, share * factor * trial.calibration)
        for trial, share in zip(trials, shares.tolist(), strict=True)
        if share > 0
    ]


def _trials(fit: PortfolioFit, rows: SplitRows) -> tuple[list[Trial], list[Trial]]:
    """Try recipes; return the trials of the best recipes, on all splits, and those of all.

    An interruption leaves the best recipe so far in place of the model.
    """
    done: list[Trial] = []
    recipes = _recipes_to_try(fit, rows.samples[0])
    ranks = ranks_of(fit.training.labels)
    try:
        trials = _tried_on(fit, rows, slice(0, 1), recipes, done)
        if len(rows.wide) == 1:
            return trials, trials
        best = _best_recipes(trials, rows.wide[:1], ranks)
        chosen = [recipes[k] for k in best]
        later = _tried_on(fit, rows, slice(1, None), chosen, [])
        for k, trial in zip(best, later, strict=True):
            trials[k] = joined(trials[k], trial, rows.wide, ranks)
        return [trials[k] for k in best], trials
    except BaseException:
        if done:
            best_so_far = min(done, key=lambda trial: trial.score.log_loss)
            fit.training.interim = Member(
                best_so_far.name,
                1.0,
                best_so_far.calibration,
                best_so_far.estimator,
                statistics=best_so_far.settings["statistics"],
            )
        raise


def _tried_on(
    fit: PortfolioFit,
    rows: SplitRows,
    which: slice,
    recipes: list[tuple[str, dict[str, Any]]],
    done: list[Trial],
) -> list[Trial]:
    """Return the trials of recipes on some of the splits."""
    splits, samples = rows.wide[which], rows.samples[which]
    n_passes = sum(min(settings["max_iter"], MAX_PASSES_OF_TRIAL) for _, settings in recipes)
    n_steps = n_passes * sum(split.tried.labels.size for split in splits)
    with progress(f"{fit.title}: recipes", n_steps, fit.shows_progress, is_search=True) as report:
        return tried_recipes(recipes, splits, samples, fit.n_threads, report, done.append)


def _best_recipes(trials: list[Trial], splits: list[Split], ranks: Array) -> list[int]:
    """Return which recipes are tried on further splits.

    These are the recipes of the blend of the first split, those that are nearly as good as the best
    one, and the linear recipe, whose error is reported.
    """
    if judged_labels(splits, ranks).size < FEWEST_JUDGED:
        return list(range(len(trials)))
    scores = np.stack([trial.scores for trial in trials])
    shares = weights_of_recipes(scores, judged_labels(splits, ranks), judged_weights(splits))
    limit = (1 + MOST_LOSS_BEHIND) * min(trial.score.log_loss for trial in trials)
    return [
        k
        for k, trial in enumerate(trials)
        if shares[k] > 0 or trial.score.log_loss <= limit or trial.name.startswith(LINEAR_NAME)
    ]


def _recipes_to_try(fit: PortfolioFit, sample: Views) -> list[tuple[str, dict[str, Any]]]:
    """Return names and settings."""
    if isinstance(fit.recipes, Mapping):
        return [(name, settings_of(one)) for name, one in fit.recipes.items()]
    if fit.recipes is not None:
        return [(name, settings_of(named(name).settings)) for name in fit.recipes]
    has_statistics = sample.n_read != sample.n_columns
    chosen = recipes_for(fit.quality, kind_of_data(sample), sample.labels.size, has_statistics)
    return [(recipe.name, settings_of(recipe.settings)) for recipe in chosen]


def _blended(fit: PortfolioFit, trials: list[Trial], splits: list[Split]) -> tuple[Array, float]:
    """Return the shares of recipes and the factor that makes the blend's scores log-odds.

    What to expect of the blend is reported.
    """
    ranks, row_weights = ranks_of(fit.training.labels), judged_weights(splits)
    labels = judged_labels(splits, ranks)
    scores = np.stack([trial.scores for trial in trials])
    shares = weights_of_recipes(scores, labels, row_weights)
    places = [k for k, trial in enumerate(trials) if trial.name.startswith(LINEAR_NAME)]
    linear = places[0] if places else None
    n_tried = splits[0].tried.labels.size
    expected = cross_fitted(scores, labels, row_weights, linear, fit.training.seed, n_tried)
    fit.report["expected"] = expected.to_dict()
    return shares, calibration_of(np.tensordot(shares, scores, axes=1), labels, row_weights)


def _report_trials(fit: PortfolioFit, trials: list[Trial], shares: dict[str, float]) -> None:
    """Report what each recipe reached on the rows by which it was judged."""
    fit.report["trials"] = [
        {
            "recipe": trial.name,
            "log_loss": trial.score.log_loss,
            "log_loss_se": trial.score.log_loss_se,
            "error": trial.score.error,
            "auc": trial.score.auc,
            "judged_rows": len(trial.scores),
            "seconds": trial.seconds,
            "weight": float(shares.get(trial.name, 0.0)),
        }
        for trial in trials
    ]


def _member(
    fit: PortfolioFit, name: str, given: Mapping[str, Any], share: float, weight: float
) -> Member:
    """Return a member that is still to be trained; of many rows it makes fewer passes."""
    training, effort = fit.training, fit.effort
    settings = settings_of({key: one for key, one in given.items() if key != "weight"})
    n_rows = training.rows_seen.n_rows
    most = max(LEAST_PASSES, effort.steps_of_refit // max(n_rows, 1))
    # seeds differ little where rows are many, and where planes are many they slow predictions down
    has_seeds = n_rows < MANY_ROWS and settings["n_planes"] > 1 and settings["columns"] != AS_IS
    others = {
        "random_state": training.seed,
        "max_iter": min(settings["max_iter"], most),
        "n_estimators": max(1, round(share * effort.n_models)) if has_seeds else 1,
    }
    algorithm = algorithm_of(settings, training.labels.size, **others)
    return Member(name, share, weight, algorithm, False, settings["statistics"])


# ---- 4. refit ----------------------------------------------------------------------------


def refit_members(fit: PortfolioFit, rows: SplitRows) -> None:
    """Train the members that are not done on all rows, and settle how sure they are."""
    training, given = fit.training, fit.given
    n_rows = given.data.labels.size
    held = held_out_places(n_rows, rows.narrow[0])[: 0 if fit.has_weights else None]
    data, held_out = _rows_of_refit(fit, rows, held)
    are_matched = held_out is None and not fit.has_weights
    splits = rows.narrow if rows.samples[0].n_columns > training.n_columns else rows.wide
    matched = Matched(
        splits[0].tried, rows.wide[0].tried, _trial_estimators(fit, rows) if are_matched else {}
    )
    left = [member for member in training.members if not member.is_done]
    n_passes = sum(one.estimator.max_iter * one.estimator.n_estimators for one in left)
    views = fit.views(data, rows.samples[0])
    n_steps = views.members.size * n_passes
    with progress(fit.title, n_steps, fit.shows_progress) as report:
        refit(training.members, views, matched, fit.n_threads, report)
    if held_out is not None and not fit.has_weights:
        score = settle(training.members, held_out, ranks_of(training.labels))
        known = fit.report.get("expected")
        linear = None if known is None else known["linear"]
        expected = Expected(
            score, None if linear is None else Score(**linear), int(held_out.labels.size)
        )
        fit.report["expected"] = expected.to_dict()


def _rows_of_refit(
    fit: PortfolioFit, rows: SplitRows, held: Array
) -> tuple[TrainingData, TrainingData | None]:
    """Return all rows, with statistics if members read them, and rows that are held out."""
    given, training = fit.given, fit.training
    data, held_out = without(given.data, held), given.judged_by
    if rows.statistics is not None:
        made = None
        if any(member.statistics != "none" for member in training.members):
            made, columns = rows.statistics.of_rows(data, held)
            data = widened(data, columns, given.n_columns)
            if held_out is not None and given.eval_keys is not None:
                held_out = widened(held_out, made.columns(given.eval_keys), given.n_columns)
        training.n_columns = fit.read_with(made)
    if held.size > 0:
        held_out = taken(data._replace(weights=given.data.weights), held)
    return data, held_out


def _trial_estimators(fit: PortfolioFit, rows: SplitRows) -> dict[str, Any]:
    """Return what trials left of recipes; of a fit that was saved they are made again."""
    names = {member.name for member in fit.training.members if not member.is_done}
    if names <= fit.estimators.keys():
        return fit.estimators
    recipes = [one for one in _recipes_to_try(fit, rows.samples[0]) if one[0] in names]
    given = rows.wide[:1], rows.samples[:1], fit.n_threads
    made = tried_recipes(recipes, *given, silence, lambda _: None)
    return {trial.name: trial.estimator for trial in made}
