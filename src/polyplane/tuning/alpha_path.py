"""Every alpha, fold and seed of an estimator, side by side.

The rows are read and cut into folds once. For each alpha there is one model of all rows and one for
each fold, which leaves that fold out and is tried on it; all of them visit the rows in the same
order, in threads (`training/search/trials.py`). The model of all rows is, to the bit, what
`fit` makes of them with that alpha. With `halving` an alpha goes no further once it is clearly
behind (`training/search/contest.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from polyplane.arrays import Array
from polyplane.estimator.fitting.kept_rows import keep_some_rows
from polyplane.estimator.input.validation import check_class_weights
from polyplane.estimator.parameters import check_parameters
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.estimator.shell import job_of
from polyplane.report.plots import plot_path
from polyplane.training.job import NewRows
from polyplane.training.planes.algorithm import PlaneJob
from polyplane.training.search.best_value import ALPHAS
from polyplane.training.search.contest import clearly_behind
from polyplane.training.search.trials import (
    NO_PART,
    Trial,
    count_passes,
    new_trial,
    pass_side_by_side,
    wrong_rows,
)
from polyplane.training.work.interruption import seen_rows
from polyplane.training.work.progress import progress
from polyplane.tuning.held_out import parts_of

__all__ = ["AlphaPath", "alpha_path"]


@dataclass(frozen=True)
class AlphaPath:
    """Errors and models of each alpha.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Values that were tried.
    models : list of estimator or None
        Models fitted to all rows; None of values that were left behind.
    errors : ndarray of shape (n_alphas,)
        Share of wrong rows, each judged by models that had not seen it.
    standard_errors : ndarray of shape (n_alphas,)
        Standard errors of `errors`.
    fold_errors : ndarray of shape (n_alphas, n_folds, n_seeds)
        Errors by fold and seed; NaN where a value was left behind.
    passes : ndarray of shape (n_looks,)
        Passes after which errors were measured: 1, 2, 4, ... and the last.
    curves : ndarray of shape (n_looks, n_alphas)
        Errors after these passes; NaN of a value that was left behind before.
    best_alpha : float
        Value with the lowest error; of equals the largest.
    best_model : estimator
        Model of all rows with `best_alpha`.
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
    """Cross-validate an estimator of planes with several values of alpha, side by side in threads.

    Parameters
    ----------
    estimator : estimator
        Classifier of planes with a parameter `alpha`. Passes and threads are its `max_iter` and
        `n_jobs`; it is not fitted itself.
    X : array-like, sparse matrix or table of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Labels.
    alphas : sequence of float, optional
        Values to try; by default powers of ten from 1e-2 to 1e-7.
    cv : int, default=5
        Number of folds.
    n_seeds : int, default=1
        Number of random orders of the rows; the models returned are those of the first.
    halving : bool, default=False
        Drop values on the way that are clearly behind.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, 1 by default.

    Returns
    -------
    AlphaPath
        Result with `best_alpha`, `best_model`, `alphas`, `models`, `errors`, `curves` and `plot()`.

    See Also
    --------
    plots.plot_path : Errors along the path as a picture.
    explore : Compare algorithms of different kinds.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import polyplane as pp
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> path = pp.alpha_path(pp.AMMClassifier(random_state=0), X, y, alphas=[1.0, 1e-3], cv=3)
    >>> path.errors.shape
    (2,)
    >>> path.best_alpha
    0.001
    """
    values = _alphas_to_try(estimator, alphas, cv, n_seeds)
    reader = clone(estimator).set_params(alpha=float(values[0]))
    rows = _rows_to_try(reader, X, y, sample_weight)
    job = job_of(reader, {})
    parts = parts_of(rows.data.labels, cv, rows.seed).astype(np.int32)
    courses = [
        _Course.begun(job, rows._replace(seed=seed), values, parts, cv, has_whole=k == 0)
        for k, seed in enumerate([rows.seed, *_seeds_after(rows.seed, n_seeds)])
    ]
    looks, n_passes = _Looks(values, parts), count_passes(courses[0].trials)
    n_threads, places = effective_n_jobs(reader.n_jobs), range(values.size)
    total = sum(len(course.trials) for course in courses) * n_passes * parts.size
    title = f"{type(reader).__name__}: {values.size} alphas"
    with progress(title, total, bool(reader.verbose)) as report:
        for n in range(1, n_passes + 1):
            for course in courses:
                pass_side_by_side(course.trials, rows.data, parts, n_threads, report)
            if _is_time_to_look(n, n_passes):
                wrong = [[_wrong(course, k, rows, parts) for course in courses] for k in places]
                looks.take(n, np.array(wrong))
                if halving and n < n_passes:
                    _drop(courses, looks.behind())
    models = [
        None if trial is None else _fitted(trial, float(alpha), reader, rows, X)
        for trial, alpha in zip(courses[0].whole, values, strict=True)
    ]
    return looks.path(models)


def _rows_to_try(reader: Any, X: Any, y: Any, sample_weight: Any) -> NewRows:
    """Checked rows, whose columns the estimator then knows."""
    check_parameters(reader)
    rows: NewRows = reader.read_rows(X, y, None, None, sample_weight)
    check_class_weights(reader, rows.labels)
    return rows


def _fitted(trial: Trial, alpha: float, reader: Any, rows: NewRows, X: Any) -> Any:
    """Return an estimator with the training of a trial, as its own fit would leave it."""
    estimator, training = clone(reader).set_params(alpha=alpha), trial.training
    for name, value in vars(reader).items():
        vars(estimator).setdefault(name, value)
    training.rows_seen, training.split_seed = seen_rows(rows.data.labels), training.seed
    training.end_fit()
    estimator.become(training)
    keep_some_rows(estimator, X)
    return estimator


def _alphas_to_try(estimator: Any, alphas: Sequence[float] | None, cv: int, n_seeds: int) -> Array:
    """The alphas of a path, once all that is asked for has been looked at."""
    values = np.array(ALPHAS if alphas is None else alphas, np.float64)
    name = type(estimator).__name__
    is_hyperplane = isinstance(estimator, PlaneClassifier) and "alpha" in estimator.get_params()
    if not is_hyperplane or "alpha" not in estimator.algorithm.searched:
        raise TypeError(
            f"alpha_path is for hyperplane algorithms that take an alpha, such as AMMClassifier; "
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
    return values


def _is_time_to_look(n: int, n_passes: int) -> bool:
    """Return True if errors are taken after pass n: 1, 2, 4, ... and the last."""
    return n & (n - 1) == 0 or n == n_passes


def _seeds_after(first: int, n_seeds: int) -> Iterator[int]:
    """Yield the seeds of a path besides the first."""
    for k in range(1, n_seeds):
        yield int(np.random.default_rng([first, k]).integers(2**31))


@dataclass
class _Course:
    """All trials of one seed; None in the place of an alpha that was left behind."""

    whole: list[Trial | None]  # by alpha; none at all but with the first seed
    folds: list[list[Trial] | None]  # by alpha

    @classmethod
    def begun(
        cls,
        job: PlaneJob,
        rows: NewRows,
        alphas: Array,
        parts: Array,
        cv: int,
        has_whole: bool,
    ) -> "_Course":
        """Before the first pass."""

        def trial(alpha: float, left_out: int) -> Trial:
            settings = job.settings.replaced(alpha=alpha)
            return new_trial(job._replace(settings=settings), rows, parts, left_out)

        values = alphas.tolist()
        return cls(
            [trial(alpha, NO_PART) for alpha in values] if has_whole else [],
            [[trial(alpha, fold) for fold in range(cv)] for alpha in values],
        )

    @property
    def trials(self) -> list[Trial]:
        """Trials of alphas that still go on."""
        of_folds = [trial for each in self.folds if each is not None for trial in each]
        return [trial for trial in self.whole if trial is not None] + of_folds


def _wrong(course: _Course, k: int, rows: NewRows, parts: Array) -> Array:
    """Return which rows are wrong to the model that has not seen them, with alpha number k."""
    is_wrong = np.full(parts.size, np.nan)
    for trial in course.folds[k] or []:
        place = np.flatnonzero(parts == trial.left_out)
        is_wrong[place] = wrong_rows(trial, rows.data, place)
    return is_wrong


def _drop(courses: Sequence[_Course], places: Array) -> None:
    """Let alphas go no further."""
    for k in places:
        for course in courses:
            course.folds[k] = None
            if course.whole:
                course.whole[k] = None


# ---- what is seen of a path --------------------------------------------------------------


@dataclass
class _Looks:
    """Rows that were wrong to models that had not seen them, at some passes."""

    alphas: Array
    parts: Array  # the part of each row
    passes: list[int] = field(default_factory=list)
    errors: list[Array] = field(default_factory=list)  # by alpha, part and seed
    curves: list[Array] = field(default_factory=list)  # errors by alpha
    is_wrong: Array = field(default_factory=lambda: np.empty(0))  # by alpha, seed and row, now

    def take(self, n_passes: int, is_wrong: Array) -> None:
        """Keep what is seen after so many passes; NaN of alphas that were left behind."""
        by_part = [is_wrong[:, :, self.parts == k].mean(axis=2) for k in np.unique(self.parts)]
        self.passes.append(n_passes)
        self.errors.append(np.stack(by_part, axis=1))
        self.curves.append(is_wrong.mean(axis=(1, 2)))
        self.is_wrong = is_wrong

    def behind(self) -> Array:
        """Return the places of alphas that still go on and are clearly behind."""
        shares = self.is_wrong.mean(axis=1)
        alive = np.flatnonzero(~np.isnan(shares[:, 0]))
        errors = np.stack([look[alive] for look in self.errors], axis=1)
        places: Array = alive[clearly_behind(shares[alive], errors)]
        return places

    def path(self, models: list[Any]) -> AlphaPath:
        """Return the result, with the models of all rows."""
        error = self.curves[-1]
        spread = np.sqrt(error * (1 - error) / self.parts.size)
        return AlphaPath(
            self.alphas,
            models,
            error,
            spread,
            self.errors[-1],
            np.array(self.passes),
            np.array(self.curves),
        )
