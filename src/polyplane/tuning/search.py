"""The work of an exploration: algorithms on samples that grow while time remains.

On each sample every algorithm is judged, with its defaults, on folds that are the same for all.
What an algorithm takes on a larger sample is estimated from the samples before, and on the first
one from a fit to a few rows. The seconds in which loops are compiled are no part of the budget. An
algorithm that would take too much of what is left stays at the sample it has reached; so does one
that is clearly behind, unless it costs next to nothing.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.report.columns import is_sparse
from polyplane.tuning.budget import Budget
from polyplane.tuning.candidates import ADDITIVE, LADDER, LINEAR, Candidate, candidates_for
from polyplane.tuning.held_out import Split, Trial, folds_of
from polyplane.tuning.runs import Run, lead_of, run_folds, with_scaler
from polyplane.tuning.samples import Sample

__all__ = ["Search"]

MAX_GROWTH, MIN_GROWTH = 2.3, 0.5  # powers of the rows with which seconds grow
FIRST_FIT_ROWS = 100  # of a first fit, which compiles loops and tells what a fit takes
SECOND_FIT_ROWS_FACTOR = 4  # times as many rows for another, if the first was slow
MAX_SHARE_OF_FIRST_FITS = 0.1  # of the time left, for such a fit
BEHIND, FAR = 3.0, 1.25  # standard errors and times the lowest error: clearly behind
IMITATORS = LINEAR, ADDITIVE  # of algorithms that lead, perhaps because labels are wrong
# With less of a simpler algorithm's error, that algorithm could not imitate the other.
MAX_ERROR_RATIO_TO_IMITATE = 0.6
MAX_SHARE_OF_CHEAP_FIT = 0.02  # of the seconds, for which an algorithm grows although it is behind
EARLY = "majority", "linear", "amm"  # tried as long as there is any time
NEEDED = "linear", "polyplane"  # without which a larger sample would tell nothing
NO_TIME = "there was no time for it"


class Search:
    """Candidates, and what is known of each so far."""

    def __init__(
        self, sample: Sample, budget: Budget, n_folds: int, seed: int, n_jobs: int | None
    ) -> None:
        self.sample, self.budget = sample, budget
        self.n_folds, self.seed, self.n_jobs = n_folds, seed, n_jobs
        self.candidates, self.left_out = candidates_for(sample.X)
        self.runs: dict[str, list[Run]] = {}  # of each candidate, by size of the sample

    def work(self) -> Iterator[Run]:
        """Do all there is time for; yield each run as soon as it is done."""
        n_rows: int | None = self._first_rows()
        while n_rows is not None:
            splits = folds_of(self.sample.y[:n_rows], self.n_folds, self.seed)
            for candidate in list(self.candidates):
                run = self._run(candidate, n_rows, splits)
                if run is not None:
                    self.runs.setdefault(candidate.name, []).append(run)
                    yield run
            n_rows = self._next_rows(n_rows)

    def _first_rows(self) -> int:
        """Return a size with which two classes have a row in each fold."""
        y = self.sample.y
        labels, counts = np.unique(y, return_counts=True)
        second = labels[np.argsort(-counts, kind="stable")[1]]
        places = np.flatnonzero(y == second)
        if places.size < 2 * self.n_folds:
            which = "Only one" if counts.max() >= 2 * self.n_folds else "No"
            raise ValueError(
                f"{which} class has {2 * self.n_folds} rows or more, which {self.n_folds} folds "
                f"need: take more rows, or fewer folds. There are {labels.size:,} classes in "
                f"{y.size:,} rows."
            )
        needed = int(places[2 * self.n_folds - 1]) + 1
        return min(y.size, max(needed, self.budget.first_rows(y.size)))

    # ---- what there is time for ----------------------------------------------------------

    def _next_rows(self, n_before: int) -> int | None:
        """Return the size of the next sample, or None if there is no time for another."""
        if any(one.name in NEEDED and one.name not in self.runs for one in self.candidates):
            return None  # there was no time for it on this one

        def price(n_rows: int) -> float:
            prices = {one.name: self._price(one, n_rows) for one in self.candidates}
            return sum(s for name, s in prices.items() if name in NEEDED or self._is_worth(name, s))

        return self.budget.next_rows(n_before, self.sample.n_rows, price)

    def _price(self, candidate: Candidate, n_rows: int) -> float:
        """Estimate the seconds of a candidate on a sample, from those on the ones before."""
        runs = self.runs.get(candidate.name)
        if not runs:
            return 0.0
        last, power = runs[-1], candidate.growth
        if len(runs) > 1:
            power = math.log(last.total_seconds / runs[-2].total_seconds)
            power /= math.log(last.n_rows / runs[-2].n_rows)
        power = min(MAX_GROWTH, max(MIN_GROWTH, power))
        return last.total_seconds * float((n_rows / last.n_rows) ** power)

    def _is_worth(self, name: str, seconds: float) -> bool:
        return self.budget.allows_one(seconds) and self._may_grow(name, seconds)

    def _may_grow(self, name: str, seconds: float) -> bool:
        """Return True if a larger sample could still show something, or costs next to nothing."""
        runs = self.runs.get(name)
        if (
            not runs
            or name in (*EARLY, *NEEDED)
            or seconds <= MAX_SHARE_OF_CHEAP_FIT * self.budget.seconds
        ):
            return True
        beside = [one for each in self.runs.values() for one in each]
        beside = [one for one in beside if one.n_rows == runs[-1].n_rows]
        best = min(beside, key=lambda one: one.error)
        is_sure = lead_of(best, runs[-1]).z > BEHIND
        return not (is_sure and runs[-1].error > FAR * best.error)

    def _why_no_time(self, candidate: Candidate, n_rows: int) -> str:
        """Return why there is no time for a candidate on a sample; an empty text if there is."""
        if self.budget.rows:  # the same work each time, whatever it takes
            return ""
        if candidate.name in self.runs:
            seconds = self._price(candidate, n_rows)
            is_worth = candidate.name in NEEDED or self._is_worth(candidate.name, seconds)
            return "" if is_worth and self.budget.allows(seconds) else NO_TIME
        if self.budget.left == 0:
            return NO_TIME
        n_few = min(FIRST_FIT_ROWS, n_rows)
        while True:
            seconds = self._seconds_of_few(candidate, n_few)
            estimate = (self.n_folds + 1) * seconds * float((n_rows / n_few) ** candidate.growth)
            if candidate.name in EARLY or self.budget.allows_one(estimate):
                return ""
            n_few *= SECOND_FIT_ROWS_FACTOR
            is_slow = (
                seconds * SECOND_FIT_ROWS_FACTOR**candidate.growth
                > MAX_SHARE_OF_FIRST_FITS * self.budget.left
            )
            if is_slow or 2 * n_few > n_rows:
                return f"{NO_TIME}: {n_few // SECOND_FIT_ROWS_FACTOR:,} rows took {seconds:.1f} s"

    def _seconds_of_few(self, candidate: Candidate, n_few: int) -> float:
        """Return the seconds of a fit to a few rows, without those of compilation."""
        X, y = self.sample.X[:n_few], self.sample.y[:n_few]
        if np.unique(y).size < 2:
            return 0.0
        start = self.budget.elapsed
        with contextlib.suppress(ValueError):  # more rows will tell what is wrong
            self._estimator(candidate).fit(X, y).predict(X)
        return self.budget.elapsed - start

    # ---- a candidate on a sample ---------------------------------------------------------

    def _run(self, candidate: Candidate, n_rows: int, splits: Sequence[Split]) -> Run | None:
        """Judge a candidate on the first rows; return None if it fails or there is no time."""
        try:
            why = self._why_no_time(candidate, n_rows)
            if not why:
                return self._judge(candidate, n_rows, splits)
        except (ValueError, MemoryError, FloatingPointError) as error:
            why = str(error) or type(error).__name__
            self.candidates.remove(candidate)
        if candidate.name not in self.runs:
            self.left_out[candidate.name] = why
        return None

    def _judge(self, candidate: Candidate, n_rows: int, splits: Sequence[Split]) -> Run | None:
        """Fit and predict fold after fold, while there is time; two folds are the least."""
        X, y, start = self.sample.X[:n_rows], self.sample.y[:n_rows], self.budget.elapsed
        run = Run(candidate.name, n_rows, self.n_folds, setting=candidate.setting(X))
        made = partial(self._estimator, candidate)
        folds = run_folds(run, made, X, y, splits, lambda: self.budget.elapsed)
        for (training, _), _ in zip(splits, folds, strict=False):
            self._imitate(run, X, y, training)
            if not self.budget.allows(1.2 * run.trial.median_seconds):
                break
        run.total_seconds = max(1e-6, self.budget.elapsed - start)
        if run.is_whole or len(run.trial.seconds) > 1:
            self.left_out.pop(candidate.name, None)
            return run
        if candidate.name not in self.runs:
            self.left_out[candidate.name] = NO_TIME
        return None

    def _estimator(self, candidate: Candidate) -> Any:
        setting = candidate.setting(self.sample.X)
        estimator = setting.estimator(self.seed, self.n_jobs)
        return with_scaler(estimator, setting.scale, is_sparse(self.sample.X))

    def _imitate(self, run: Run, X: Any, y: Array, training: Array) -> None:
        """Fit simpler algorithms to the answers of the last fold's model, and judge these, too.

        Wrong labels cost a linear model more than one of several planes, which may then lead
        although the border is a plane. Answers have no wrong labels: if that was all, what has
        learned them is as good. The same goes for a sum of curves.
        """
        simpler = [one for one in self.candidates if self._may_imitate(one, run)]
        answers = run.model.predict(X[training]) if simpler else np.empty(0)
        if np.unique(answers).size < 2:
            return
        for candidate in simpler:
            model = self._estimator(candidate).fit(X[training], answers)
            is_wrong = model.predict(X[run.held_out]) != y[run.held_out]
            trial = run.imitated.setdefault(candidate.name, Trial())
            trial.rows = np.append(trial.rows, run.held_out)
            trial.is_wrong = np.append(trial.is_wrong, is_wrong)

    def _may_imitate(self, candidate: Candidate, run: Run) -> bool:
        """Return True if a candidate is simpler than a run's, not far behind, and soon done."""
        runs, steps = self.runs.get(candidate.name), {c.name: c.step for c in self.candidates}
        if candidate.name not in IMITATORS or not runs:
            return False
        if LADDER.index(steps[run.machine]) <= LADDER.index(candidate.step):
            return False
        growth = max(1.0, run.n_rows / runs[-1].n_rows)
        is_cheap = growth * runs[-1].total_seconds <= MAX_SHARE_OF_CHEAP_FIT * self.budget.seconds
        return is_cheap and run.error >= MAX_ERROR_RATIO_TO_IMITATE * runs[-1].error
