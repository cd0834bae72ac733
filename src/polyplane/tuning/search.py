"""The work of an exploration: machines on samples that grow while time remains.

On each sample each machine first chooses among a few settings on one split, then is judged on folds
that are the same for all. Later samples try again what won and its neighbours. The settings were
chosen on rows that are also judged, which flatters all machines a little, and alike.
What a machine takes on a larger sample is guessed from what it took on the ones before; one that
would take too much of what is left stays at the sample it has reached.
"""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyplane.estimator.files.fitted import steps_of
from polyplane.hyperplane.polyplane import PolyplaneClassifier
from polyplane.tuning.budget import Budget
from polyplane.tuning.held_out import Split, folds_of, share_of
from polyplane.tuning.machines import Machine, Setting, machines_for
from polyplane.tuning.runs import Run, run_folds, with_scaler
from polyplane.tuning.samples import Sample

__all__ = ["Search"]

FOR_TUNING = 0.25  # of the rows, held out to choose settings
STEEPEST, FLATTEST = 2.3, 0.5  # powers of the rows with which seconds grow
SEARCHING = 8.0  # times that a fit takes which finds its settings, beside one that does not
FOR_SETTINGS = 0.1  # of the seconds, for those of one machine on one sample
AROUND = 3  # settings tried again on a larger sample
EARLY = "majority", "linear"  # which run however late it is
NEEDED = "linear", "polyplane"  # without which a larger sample would tell nothing
QUICK = {"search": False}  # for an answer soon: first guesses
SMALL = QUICK | {"n_planes": 8, "units": 1, "shrinkage": 1.0}  # the same for few or noisy rows


class Search:
    """Machines, and what has been found of them so far."""

    def __init__(
        self, sample: Sample, budget: Budget, n_folds: int, seed: int, n_jobs: int | None
    ) -> None:
        self.sample, self.budget = sample, budget
        self.n_folds, self.seed, self.n_jobs = n_folds, seed, n_jobs
        self.machines, self.left_out = machines_for(sample.X)
        self.runs: dict[str, list[Run]] = {}  # of each machine by size of the sample

    def work(self) -> Iterator[Run]:
        """Do all there is time for; each run as soon as it is there."""
        n_rows: int | None = self._first_rows()
        is_first, n_last = True, 0
        while n_rows is not None:
            splits = folds_of(self.sample.y[:n_rows], self.n_folds, self.seed)
            for machine in list(self.machines):
                run = self._run(machine, n_rows, splits, is_first)
                if run is not None:
                    self.runs.setdefault(machine.name, []).append(run)
                    yield run
            is_first, n_last = False, n_rows
            n_rows = self._next_rows(n_rows)
        yield from self._with_time_left(n_last)

    def _with_time_left(self, n_rows: int) -> Iterator[Run]:
        """Where all rows are known, machines that had only guessed their settings find them."""
        splits = folds_of(self.sample.y[:n_rows], self.n_folds, self.seed)
        for machine in [] if self.budget.rows else self.machines:
            runs = self.runs.get(machine.name, [])
            is_open = machine.searches and bool(runs) and not runs[-1].is_searched
            if is_open and runs[-1].n_rows == n_rows and self._can_search(machine, n_rows):
                run = self._run(machine, n_rows, splits, is_first=False)
                if run is not None:
                    runs[-1] = run
                    yield run

    def _first_rows(self) -> int:
        """So many that two classes have a row in each fold."""
        y = self.sample.y
        labels, counts = np.unique(y, return_counts=True)
        second = labels[np.argsort(-counts, kind="stable")[1]]
        places = np.flatnonzero(y == second)
        if places.size < 2 * self.n_folds:
            raise ValueError(
                f"Only one class has {2 * self.n_folds} rows or more, which {self.n_folds} folds "
                "need: take more rows, or fewer folds."
            )
        needed = int(places[min(places.size, 2 * self.n_folds) - 1]) + 1
        return min(y.size, max(needed, self.budget.first_rows(y.size)))

    def _next_rows(self, n_before: int) -> int | None:
        """The next sample, of machines that can afford it."""
        if any(
            machine.name in NEEDED and machine.name not in self.runs for machine in self.machines
        ):
            return None  # there was no time for them on this one

        def price(n_rows: int) -> float:
            prices = {machine.name: self._price(machine, n_rows) for machine in self.machines}
            return sum(
                seconds
                for name, seconds in prices.items()
                if name in NEEDED or self.budget.allows_one(seconds)
            )

        return self.budget.next_rows(n_before, self.sample.n_rows, price)

    def _price(self, machine: Machine, n_rows: int) -> float:
        """Seconds that it will take on a sample of a size."""
        runs = self.runs.get(machine.name)
        if not runs:
            return 0.0
        last, power = runs[-1], machine.growth
        if len(runs) > 1:
            power = math.log(last.fit_seconds / runs[-2].fit_seconds)
            power /= math.log(last.n_rows / runs[-2].n_rows)
        power = min(STEEPEST, max(FLATTEST, power))
        n_fits = self.n_folds + (0 if machine.searches else min(AROUND, len(last.tried)))
        return n_fits * last.fit_seconds * float((n_rows / last.n_rows) ** power)

    def _run(
        self, machine: Machine, n_rows: int, splits: Sequence[Split], is_first: bool
    ) -> Run | None:
        """A machine on the first rows; None where it fails or there is no time."""
        seconds = self._price(machine, n_rows)
        is_modest = machine.name in NEEDED or self.budget.allows_one(seconds)
        if not is_first and not (is_modest and self.budget.allows(seconds)):
            return None
        is_new = machine.name not in self.runs and machine.name not in EARLY
        if self.budget.left == 0 or (is_new and self.budget.is_late):
            return None
        run = Run(machine.name, n_rows, self.n_folds)
        start = time.perf_counter()
        try:
            self._tune(run, machine, n_rows, is_first)
            self._judge(run, n_rows, splits)
        except (ValueError, MemoryError, FloatingPointError) as error:
            self.left_out[machine.name] = str(error) or type(error).__name__
            self.machines.remove(machine)
            return None
        fits = run.trial.seconds if machine.searches else [*run.tuning, *run.trial.seconds]
        run.fit_seconds = max(1e-6, float(np.median(fits)))
        run.total_seconds = time.perf_counter() - start
        return run if run.is_whole or len(run.trial.seconds) > 1 else None

    def _judge(self, run: Run, n_rows: int, splits: Sequence[Split]) -> None:
        """Fold after fold, while there is time."""
        X, y = self.sample.X[:n_rows], self.sample.y[:n_rows]
        for _ in run_folds(run, lambda: self._made(run.setting), X, y, splits):
            if not self.budget.allows(1.2 * run.trial.median_seconds):
                break

    def _made(self, setting: Setting) -> Any:
        is_sparse = not isinstance(self.sample.X, np.ndarray)
        return with_scaler(setting.made(self.seed, self.n_jobs), setting.scale, is_sparse)

    def _can_search(self, machine: Machine, n_rows: int) -> bool:
        """Whether there is time to let a fit find its settings."""
        folds = self._price(machine, n_rows)
        return self.budget.allows_one(folds + SEARCHING * folds / self.n_folds)

    # ---- settings ------------------------------------------------------------------------

    def _tune(self, run: Run, machine: Machine, n_rows: int, is_first: bool) -> None:
        """Choose the setting of a run."""
        X, y = self.sample.X[:n_rows], self.sample.y[:n_rows]
        settings = list(machine.settings(X))
        searches = machine.searches and not is_first and self._can_search(machine, n_rows)
        run.is_searched = searches
        if machine.searches and not searches:
            settings = [_changed(settings[0], guess) for guess in (QUICK, SMALL)]
        before = self.runs.get(machine.name, [])
        if before and not machine.searches:
            settings = _around(settings, before[-1].setting)
        if len(settings) == 1 and not searches:
            run.setting = settings[0]
            return
        ((training, held_out),) = share_of(y, FOR_TUNING, self.seed)
        seconds, failure = 0.0, None
        for setting in settings:
            is_long = sum(run.tuning) > FOR_SETTINGS * self.budget.seconds
            is_dear = not self.budget.allows(2 * (self.n_folds + 1) * seconds)
            if run.tried and (is_long or is_dear):
                break
            start = time.perf_counter()
            try:
                model = self._made(setting).fit(X[training], y[training])
                error = float(np.mean(model.predict(X[held_out]) != y[held_out]))
            except ValueError as problem:  # another may do
                failure = problem
                continue
            seconds = time.perf_counter() - start
            run.tuning.append(seconds)
            run.tried.append((_as_found(setting, model), error))
        if failure is not None and not run.tried:
            raise failure
        run.setting = min(run.tried, key=lambda one: one[1])[0]


def _changed(setting: Setting, changes: dict[str, Any]) -> Setting:
    return Setting(setting.kind, {**setting.parameters, **changes}, setting.scale, setting.alpha)


def _around(settings: Sequence[Setting], best: Setting) -> list[Setting]:
    """What won on the sample before, and its neighbours."""
    same = [k for k, one in enumerate(settings) if one.parameters == best.parameters]
    if not same:  # its numbers follow from the rows
        return list(settings)
    k = same[0]
    return [settings[k], *settings[max(0, k - 1) : k], *settings[k + 1 : k + 2]]


def _as_found(setting: Setting, model: Any) -> Setting:
    """With what a fit has found by itself, so that folds need not search again."""
    estimator = steps_of(model)[-1]
    is_open = isinstance(estimator, PolyplaneClassifier) and not setting.parameters
    return _changed(setting, dict(estimator.settings_)) if is_open else setting
