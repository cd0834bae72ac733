"""Every alpha, fold and seed of a machine from one reading of the rows.

The rows are cut into folds once. For each alpha there is one model of all rows and one for each
fold, which leaves that fold out and is tried on it; all of them visit the rows in the same order,
side by side (`estimator/planes/packs.py`). The model of all rows is, to the bit, what `fit` makes
of them with that alpha. With `halving` an alpha goes no further once it is clearly behind
(`estimator/planes/contest.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from polyplane.engine.planes.pack import NO_PART
from polyplane.engine.planes.planes import Array
from polyplane.estimator.fitting.progress import progress, silence
from polyplane.estimator.planes.contest import clearly_behind
from polyplane.estimator.planes.hyperplane_classifier import (
    ALPHAS,
    HyperplaneClassifier,
    RowsToTry,
    rows_to_try,
    settles_alpha,
)
from polyplane.estimator.planes.packs import (
    Trial,
    become_fitted,
    count_passes,
    new_trial,
    pass_together,
    wrong_rows,
)
from polyplane.report.plots import plot_path
from polyplane.tuning.held_out import parts_of

__all__ = ["AlphaPath", "alpha_path", "models_of_path"]


@dataclass(frozen=True)
class AlphaPath:
    """What each alpha reached.

    `curves` has the error of each alpha after passes 1, 2, 4, ... and the last: NaN of one that
    was left behind before.
    """

    alphas: Array
    models: list[Any]  # fitted to all rows; None of alphas that were left behind
    errors: Array  # share of wrong rows, each tried by the models that had not seen it
    standard_errors: Array
    fold_errors: Array  # by alpha, fold and seed; NaN where left behind
    passes: Array  # after which `curves` were taken
    curves: Array  # by pass and alpha

    @property
    def best_alpha(self) -> float:
        """The alpha with the lowest error; of equals the largest, which is the smoothest."""
        lowest = np.flatnonzero(self.errors == np.nanmin(self.errors))
        return float(self.alphas[lowest].max())

    @property
    def best_model(self) -> Any:
        """The model of all rows with that alpha."""
        return self.models[int(np.flatnonzero(self.alphas == self.best_alpha)[0])]

    def plot(self, ax: Any = None) -> Any:
        """Errors by alpha, with matplotlib; the lowest is marked."""
        alive = ~np.isnan(self.errors)
        errors = self.fold_errors[alive].reshape(alive.sum(), -1)
        return plot_path(self.alphas[alive].tolist(), errors, chosen=self.best_alpha, ax=ax)

    def __str__(self) -> str:
        lines = ["   alpha    error"]
        for alpha, error, spread in zip(
            self.alphas, self.errors, self.standard_errors, strict=True
        ):
            mark = "  <- lowest" if alpha == self.best_alpha else ""
            said = "left behind" if np.isnan(error) else f"{error:.2%} ± {spread:.2%}{mark}"
            lines.append(f"{alpha:8.2g}    {said}")
        return "\n".join(lines)


def alpha_path(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    alphas: Sequence[float] | None = None,
    cv: int = 5,
    n_seeds: int = 1,
    halving: bool = False,
    sample_weight: Any = None,
) -> AlphaPath:
    """Train and try a hyperplane machine with each of `alphas`, all in one pass over the rows.

    `cv` is the number of folds, `n_seeds` how many orders of the rows are tried; the models are
    those of the first. Passes and threads are the estimator's `max_iter` and `n_jobs`.
    """
    values = np.array(ALPHAS if alphas is None else alphas, np.float64)
    _check(estimator, values, cv, n_seeds)
    reader = clone(estimator).set_params(alpha=float(values[0]))
    rows = rows_to_try(reader, X, y, sample_weight)
    parts = parts_of(rows.data.labels, cv, rows.seed).astype(np.int32)
    courses = [
        _Course.begun(reader, rows, seed, values, parts, cv, has_whole=k == 0)
        for k, seed in enumerate(_seeds(rows.seed, n_seeds))
    ]
    passes, curves, looks = [], [], list[Array]()
    n_passes = count_passes(courses[0].trials)
    n_threads, places = effective_n_jobs(reader.n_jobs), range(values.size)
    total = sum(len(course.trials) for course in courses) * n_passes * parts.size
    title = f"{type(reader).__name__}: {values.size} alphas"
    with progress(title, total, bool(reader.verbose)) as report:
        for n in range(1, n_passes + 1):
            for course in courses:
                pass_together(course.trials, rows.data, parts, n_threads, report)
            if n & (n - 1) and n < n_passes:
                continue
            wrong = [[_wrong(course, k, rows, parts) for course in courses] for k in places]
            is_wrong: Array = np.array(wrong)  # by alpha, seed and row
            passes.append(n)
            curves.append(is_wrong.mean(axis=(1, 2)))
            folds = np.stack([is_wrong[:, :, parts == f].mean(axis=2) for f in range(cv)], axis=1)
            looks.append(folds)
            if halving and n < n_passes:
                _drop_what_is_behind(courses, is_wrong, np.stack(looks, axis=1))
    errors = is_wrong.mean(axis=(1, 2))
    models = [
        None if trial is None else become_fitted(trial, reader, rows.data, X)
        for trial in courses[0].whole
    ]
    spread = np.sqrt(errors * (1 - errors) / parts.size)
    return AlphaPath(values, models, errors, spread, folds, np.array(passes), np.array(curves))


def models_of_path(estimator: Any, X: Any, y: Any, alphas: Sequence[float]) -> list[Any]:
    """The estimator fitted with each alpha, to the bit as alone, from one reading of the rows."""
    reader = clone(estimator).set_params(alpha=alphas[0])
    rows = rows_to_try(reader, X, y, None)
    parts = np.zeros(rows.data.labels.size, np.int32)
    trials = [
        new_trial(reader, {"alpha": alpha}, rows.data, rows.labels, rows.seed, parts)
        for alpha in alphas
    ]
    for _ in range(count_passes(trials)):
        pass_together(trials, rows.data, parts, effective_n_jobs(reader.n_jobs), silence)
    return [become_fitted(trial, reader, rows.data, X) for trial in trials]


def _check(estimator: Any, values: Array, cv: int, n_seeds: int) -> None:
    name = type(estimator).__name__
    is_hyperplane = (
        isinstance(estimator, HyperplaneClassifier) and "alpha" in estimator.get_params()
    )
    if not is_hyperplane or settles_alpha(estimator):
        raise TypeError(
            f"alpha_path is for hyperplane machines that take an alpha, such as AMMClassifier; "
            f"{name} does not."
        )
    if estimator.early_stopping:
        raise ValueError(
            "alpha_path makes as many passes as max_iter says: set early_stopping=False."
        )
    if values.ndim != 1 or values.size == 0 or not (values > 0).all():
        raise ValueError(f"alphas={values.tolist()!r} is not a list of numbers above 0.")
    if np.unique(values).size < values.size:
        raise ValueError("alphas has the same number twice: each is tried once.")
    if cv < 2 or n_seeds < 1:
        raise ValueError(f"cv={cv} and n_seeds={n_seeds}: there are at least 2 folds and 1 seed.")


def _seeds(first: int, n_seeds: int) -> Iterator[int]:
    yield first
    for k in range(1, n_seeds):
        yield int(np.random.default_rng([first, k]).integers(2**31))


@dataclass
class _Course:
    """All trials of one seed; None in the place of an alpha that was left behind."""

    whole: list[Trial | None]  # by alpha; none at all but with the first seed
    folds: list[list[Trial] | None]  # by alpha

    @classmethod
    def begun(
        cls, reader: Any, rows: RowsToTry, seed: int, alphas: Array, parts: Array, cv: int,
        has_whole: bool,
    ) -> "_Course":  # fmt: skip
        """Before the first pass."""

        def trial(alpha: float, left_out: int) -> Trial:
            settings = {"alpha": alpha}
            return new_trial(reader, settings, rows.data, rows.labels, seed, parts, left_out)

        values = alphas.tolist()
        return cls(
            [trial(alpha, NO_PART) for alpha in values] if has_whole else [],
            [[trial(alpha, fold) for fold in range(cv)] for alpha in values],
        )

    @property
    def trials(self) -> list[Trial]:
        """Those at work."""
        of_folds = [trial for each in self.folds if each is not None for trial in each]
        return [trial for trial in self.whole if trial is not None] + of_folds


def _wrong(course: _Course, k: int, rows: RowsToTry, parts: Array) -> Array:
    """Of each row, whether the model that has not seen it is wrong, with alpha number k."""
    is_wrong = np.full(parts.size, np.nan)
    for trial in course.folds[k] or []:
        place = np.flatnonzero(parts == trial.left_out)
        is_wrong[place] = wrong_rows(trial, rows.data, place)
    return is_wrong


def _drop_what_is_behind(courses: Sequence[_Course], is_wrong: Array, errors: Array) -> None:
    """Alphas that are clearly behind; `errors` are by alpha, look, fold and seed."""
    alive = np.flatnonzero(~np.isnan(is_wrong[:, 0, 0]))
    lines = is_wrong[alive].mean(axis=1)
    for k in alive[clearly_behind(lines, errors[alive])]:
        for course in courses:
            course.folds[k] = None
            if course.whole:
                course.whole[k] = None
