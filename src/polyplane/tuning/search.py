"""The work of an exploration: machines on samples that grow while time remains.

On each sample each machine first chooses among a few settings on one split, then is judged on folds
that are the same for all. Later samples try again what won and its neighbours, unless they were
clearly behind; other alphas of the linear machine and of AMM are trained beside them, for the page.
The settings were chosen on rows that are also judged, which flatters all machines a little, and
alike.
What a machine takes on a larger sample is guessed from what it took on the ones before, and on the
first one from a few of its rows. One that would take too much of what is left stays at the sample
it has reached; so does one that is clearly behind, unless it costs next to nothing.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.estimator.files.fitted import steps_of
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.polyplane import PolyplaneClassifier
from polyplane.report.columns import is_sparse
from polyplane.tuning.alpha_path import models_of_path
from polyplane.tuning.budget import Budget
from polyplane.tuning.compiling import Compilation, made_up_rows, watched
from polyplane.tuning.held_out import Split, Trial, folds_of, share_of
from polyplane.tuning.machines import ADDITIVE, LADDER, LINEAR, Machine, Setting, machines_for
from polyplane.tuning.runs import Run, lead_of, run_folds, with_scaler
from polyplane.tuning.samples import Sample

__all__ = ["Search"]

FOR_TUNING = 0.25  # of the rows, held out to choose settings
STEEPEST, FLATTEST = 2.3, 0.5  # powers of the rows with which seconds grow
SEARCHING = 8.0  # times that a fit takes which finds its settings, beside one that does not
FOR_SETTINGS = 0.1  # of the seconds, for those of one machine on one sample
AROUND = 3  # settings tried again on a larger sample
FEW_ROWS, MORE_ROWS = 40, 4  # of a first try of a setting, and times as many of the next
FOR_FEW = 0.1  # of the time left, for such a try
BEHIND, FAR = 3.0, 1.25  # standard errors and times the lowest error: clearly behind
NOT_BEHIND = 2.0  # standard errors, within which settings are tried again
IMITATORS = LINEAR, ADDITIVE  # of machines that lead, perhaps because labels are wrong
CLEARLY_LESS = 0.6  # times the error of a simpler machine: it could not imitate that
CHEAP = 0.02  # of the seconds, for which a machine grows although it is behind
DEARER = 1.6  # times the first loops that those of other machines take to compile, at most
OF_PAGES = 0.75  # times the first loops that those which explain rows take
EARLY = "majority", "linear"  # which run however late it is
NEXT = "amm"  # whose loops are those of the linear machine, so that it may come late as well
PACKED = PegasosClassifier, AMMClassifier  # of which several alphas cost less than as many fits
NEEDED = "linear", "polyplane"  # without which a larger sample would tell nothing
QUICK = {"search": False}  # for an answer soon: first guesses
SMALL = QUICK | {"n_planes": 8, "units": 1, "shrinkage": 1.0}  # the same for few or noisy rows
NOTICED = 0.5  # seconds of compilation, more than loading loops takes
NO_TIME = "there was no time for it"
NO_TIME_TO_COMPILE = (
    "there was no time to compile its loops, which happens once on a machine: explore again"
)


class Search:
    """Machines, and what has been found of them so far."""

    def __init__(
        self, sample: Sample, budget: Budget, n_folds: int, seed: int, n_jobs: int | None
    ) -> None:
        self.sample, self.budget = sample, budget
        self.n_folds, self.seed, self.n_jobs = n_folds, seed, n_jobs
        self.machines, self.left_out = machines_for(sample.X)
        self.runs: dict[str, list[Run]] = {}  # of each machine by size of the sample
        self.compilation: Compilation | None = None
        self._compiled: set[Any] = set()  # kinds of settings whose loops are there
        self._first_loops: float | None = None  # seconds that the linear machine's took to compile
        self._longest_loops = 0.0  # and those of any
        self._seen: dict[Any, tuple[int, float]] = {}  # rows and seconds of a fit, by kind

    def work(self) -> Iterator[Run]:
        """Do all there is time for; each run as soon as it is there."""
        with watched() as self.compilation:
            n_rows: int | None = self._first_rows()
            is_first, n_last = True, 0
            while n_rows is not None:
                splits = folds_of(self.sample.y[:n_rows], self.n_folds, self.seed)
                for machine in self._in_turn(is_first):
                    run = self._run(machine, n_rows, splits, is_first)
                    if run is not None:
                        runs = self.runs.setdefault(machine.name, [])
                        if runs and runs[-1].n_rows == n_rows:
                            runs.pop()
                        runs.append(run)
                        self.left_out.pop(machine.name, None)
                        yield run
                is_first, n_last = False, n_rows
                n_rows = self._next_rows(n_rows)
            yield from self._with_time_left(n_last)

    def _in_turn(self, is_first: bool) -> Iterator[Machine]:
        """Machines for a sample; on the first, those with settings left come again.

        They do so after machines that share the loops of their early settings: by then there is
        something to show, although nothing else has been compiled.
        """
        waiting: list[Machine] = []
        for machine in list(self.machines):
            if machine.name not in EARLY and machine.name != NEXT:
                yield from waiting
                waiting = []
            yield machine
            if is_first and machine.n_early is not None:
                waiting.append(machine)
        yield from waiting

    def _comes_again(self, machine: Machine, n_rows: int) -> bool:
        """Whether it has tried its early settings on this sample, and now tries the others."""
        runs = self.runs.get(machine.name, [])
        return machine.n_early is not None and any(run.n_rows == n_rows for run in runs)

    @property
    def compile_seconds(self) -> float:
        """That went into compilation, which the next exploration will not need."""
        return 0.0 if self.compilation is None else self.compilation.seconds

    @property
    def lacks(self) -> list[str]:
        """Machines without which little can be said, and for which there was no time so far."""
        names = [machine.name for machine in self.machines if machine.name in NEEDED]
        return [name for name in names if name not in self.runs]

    @property
    def has_compiled(self) -> bool:
        """Whether loops were not on disk: machines may be missing that the next time are there."""
        return self._longest_loops >= NOTICED

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
            which = "Only one" if counts.max() >= 2 * self.n_folds else "No"
            raise ValueError(
                f"{which} class has {2 * self.n_folds} rows or more, which {self.n_folds} folds "
                f"need: take more rows, or fewer folds. There are {labels.size:,} classes in "
                f"{y.size:,} rows."
            )
        needed = int(places[min(places.size, 2 * self.n_folds) - 1]) + 1
        return min(y.size, max(needed, self.budget.first_rows(y.size)))

    # ---- what there is time for ----------------------------------------------------------

    def _next_rows(self, n_before: int) -> int | None:
        """The next sample, of machines that can afford it."""
        if self.lacks and not self.has_compiled:
            return None  # there was no time for them on this one

        def price(n_rows: int) -> float:
            prices = {machine: self._price(machine, n_rows) for machine in self.machines}
            return sum(
                seconds
                for machine, seconds in prices.items()
                if machine.name in NEEDED
                or (self.budget.allows_one(seconds) and self._may_grow(machine, seconds))
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
        n_again = min(AROUND, len(_contenders(last)))
        n_fits = self.n_folds + (n_again if n_again > 1 else 0)
        return n_fits * last.fit_seconds * float((n_rows / last.n_rows) ** power)

    def _may_grow(self, machine: Machine, seconds: float) -> bool:
        """Whether larger samples could still show something, or cost next to nothing."""
        if self.budget.rows or machine.name in (*EARLY, *NEEDED):
            return True
        runs = self.runs.get(machine.name)
        if not runs or seconds <= CHEAP * self.budget.seconds:
            return True
        beside = [one for each in self.runs.values() for one in each]
        beside = [one for one in beside if one.n_rows == runs[-1].n_rows]
        best = min(beside, key=lambda one: one.error)
        is_sure = lead_of(best, runs[-1]).z > BEHIND
        return not (is_sure and runs[-1].error > FAR * best.error)

    def _can_search(self, machine: Machine, n_rows: int) -> bool:
        """Whether there is time to let a fit find its settings."""
        folds = self._price(machine, n_rows)
        return self.budget.allows_one(folds + SEARCHING * folds / self.n_folds)

    def _can_try(self, setting: Setting, growth: float, n_rows: int) -> str:
        """Why there is no time for a setting on a sample; empty if there is.

        Loops are compiled on made-up rows, unless such a compilation would take all the time; then
        the setting is tried on a few of the rows, and on more if these were dear.
        """
        if self.budget.rows:  # the same work each time, whatever it takes
            return ""
        if not self._compile(setting):
            return NO_TIME_TO_COMPILE
        kind, n_few = _kind_of(setting), FEW_ROWS
        if kind not in self._seen and not self._try_few(setting, n_few):
            return NO_TIME
        while not self._is_modest(kind, growth, n_rows):
            n_few *= MORE_ROWS
            dear = self._guess(kind, growth, n_few) > FOR_FEW * self.budget.left
            if n_few > n_rows // 2 or dear or not self._try_few(setting, n_few):
                n_seen, seconds = self._seen[kind]
                return f"{NO_TIME}: {n_seen:,} rows took {seconds:.1f} s"
        return ""

    def _is_modest(self, kind: Any, growth: float, n_rows: int) -> bool:
        folds = (self.n_folds + 1) * self._guess(kind, growth, n_rows)
        return self.budget.allows_one(folds)

    def _guess(self, kind: Any, growth: float, n_rows: int) -> float:
        n_seen, seconds = self._seen[kind]
        return seconds * float((n_rows / n_seen) ** growth)

    def _try_few(self, setting: Setting, n_rows: int) -> bool:
        """Time a fit on some first rows; False where they cannot be learned from."""
        X, y = self.sample.X[:n_rows], self.sample.y[:n_rows]
        if np.unique(y).size < 2:
            return False
        start = self._now()
        with contextlib.suppress(ValueError):
            self._made(setting).fit(X, y)
        self._seen[_kind_of(setting)] = len(y), max(1e-6, self._now() - start)
        return True

    def _compile(self, setting: Setting) -> bool:
        """Have the loops of a setting compiled; False where there is no time for that.

        How long that may take is learned from the first, those of the linear machine: nothing
        where they were on disk. Then the page will have to compile its own, too.
        """
        kind = _kind_of(setting)
        if self.budget.rows or kind in self._compiled:
            return True
        is_shared = setting.kind in PACKED and any(one in PACKED for one, *_ in self._compiled)
        if not is_shared and not self._may_compile():
            return False
        before = self.compile_seconds
        n_classes = np.unique(self.sample.y).size
        X, y = made_up_rows(is_sparse(self.sample.X), n_classes)
        with contextlib.suppress(ValueError):  # real rows will tell what is wrong
            self._made(setting).fit(X, y).predict(X)
        self._compiled.add(kind)
        seconds = self.compile_seconds - before
        if self._first_loops is None and setting.kind in PACKED:
            self._first_loops = seconds
            self.budget.page_seconds = max(self.budget.page_seconds, OF_PAGES * seconds)
        self._longest_loops = max(self._longest_loops, seconds)
        return True

    def _may_compile(self) -> bool:
        """Whether there is time for the loops of another machine."""
        return self.budget.allows(max(self._longest_loops, DEARER * (self._first_loops or 0.0)))

    def _now(self) -> float:
        return time.perf_counter() if self.compilation is None else self.compilation.clock()

    # ---- a machine on a sample -----------------------------------------------------------

    def _run(
        self, machine: Machine, n_rows: int, splits: Sequence[Split], is_first: bool
    ) -> Run | None:
        """A machine on the first rows; None where it fails or there is no time."""
        seconds = self._price(machine, n_rows)
        is_modest = machine.name in NEEDED or self.budget.allows_one(seconds)
        if not is_first and not (is_modest and self.budget.allows(seconds)):
            return None
        if not is_first and not self._may_grow(machine, seconds):
            return None
        is_new = machine.name not in self.runs and machine.name not in (*EARLY, NEXT)
        if self.budget.left == 0 or (is_new and self.budget.is_late):
            self._leave_out(machine, NO_TIME_TO_COMPILE if self.has_compiled else NO_TIME)
            return None
        run = Run(machine.name, n_rows, self.n_folds)
        start = time.perf_counter()
        try:
            if not self._tune(run, machine, n_rows, is_first):
                return None
            if (
                self._comes_again(machine, n_rows)
                and run.setting == self.runs[run.machine][-1].setting
            ):
                self.runs[run.machine][-1].tried = run.tried
                return None
            self._judge(run, n_rows, splits)
        except (ValueError, MemoryError, FloatingPointError) as error:
            self.left_out[machine.name] = str(error) or type(error).__name__
            if machine in self.machines:  # a machine that comes again may fail again
                self.machines.remove(machine)
            return None
        fits = run.trial.seconds if machine.searches else [*run.tuning, *run.trial.seconds]
        run.fit_seconds = max(1e-6, float(np.median(fits)))
        run.total_seconds = time.perf_counter() - start
        if run.is_whole or len(run.trial.seconds) > 1:
            return run
        self._leave_out(machine, NO_TIME)
        return None

    def _leave_out(self, machine: Machine, why: str) -> None:
        if machine.name not in self.runs:
            self.left_out[machine.name] = why

    def _judge(self, run: Run, n_rows: int, splits: Sequence[Split]) -> None:
        """Fold after fold, while there is time."""
        X, y = self.sample.X[:n_rows], self.sample.y[:n_rows]
        folds = run_folds(run, lambda: self._made(run.setting), X, y, splits, self._now)
        for (training, _), _ in zip(splits, folds, strict=False):
            self._imitate(run, X, y, training)
            if not self.budget.allows(1.2 * run.trial.median_seconds):
                break

    def _imitate(self, run: Run, X: Any, y: Array, training: Array) -> None:
        """Have simpler machines learn the answers of the last fold's model, and try these, too.

        Wrong labels cost a linear machine more than one of several planes, which may then lead
        although the border is a plane. Answers have no wrong labels: if that was all, what has
        learned them is as good. The same goes for a sum of curves.
        """
        simpler = [name for name in IMITATORS if self._may_imitate(name, run)]
        answers = run.model.predict(X[training]) if simpler else np.empty(0)
        if np.unique(answers).size < 2:
            return
        for name in simpler:
            model = self._made(self.runs[name][-1].setting).fit(X[training], answers)
            is_wrong = model.predict(X[run.held_out]) != y[run.held_out]
            trial = run.imitated.setdefault(name, Trial())
            trial.rows = np.append(trial.rows, run.held_out)
            trial.is_wrong = np.append(trial.is_wrong, is_wrong)

    def _may_imitate(self, name: str, run: Run) -> bool:
        """Whether there is such a machine, which is simpler, not far behind, and soon done."""
        steps = {machine.name: LADDER.index(machine.step) for machine in self.machines}
        if not self.runs.get(name) or steps[run.machine] <= steps[name]:
            return False
        simpler = self.runs[name][-1]
        growth = max(1.0, run.n_rows / simpler.n_rows)
        is_cheap = self.n_folds * growth * simpler.fit_seconds <= CHEAP * self.budget.seconds
        return is_cheap and run.error >= CLEARLY_LESS * simpler.error

    def _made(self, setting: Setting) -> Any:
        made = setting.made(self.seed, self.n_jobs)
        return with_scaler(made, setting.scale, is_sparse(self.sample.X))

    # ---- settings ------------------------------------------------------------------------

    def _tune(self, run: Run, machine: Machine, n_rows: int, is_first: bool) -> bool:
        """Choose the setting of a run; False where there is no time for any."""
        X, y = self.sample.X[:n_rows], self.sample.y[:n_rows]
        settings = self._settings(run, machine, n_rows, is_first)
        if len(settings) == 1 and not run.is_searched:
            run.setting = settings[0]
            return self._has_time(machine, settings[0], n_rows)
        ((training, held_out),) = share_of(y, FOR_TUNING, self.seed)
        seconds, failure = 0.0, None
        shown: list[Setting] = []  # but not to be chosen
        if not is_first and self._try_path(run, machine, settings, training, held_out):
            shown = [one for one, _ in run.tried if one not in settings]
            settings = [one for one in settings if one not in _path_in(settings)]
        for setting in settings:
            is_long = sum(run.tuning) > FOR_SETTINGS * self.budget.seconds
            is_dear = not self.budget.allows(2 * (self.n_folds + 1) * seconds)
            if run.tried and (is_long or is_dear):
                break
            if not self._has_time(machine, setting, n_rows):
                continue
            start = self._now()
            try:
                model = self._made(setting).fit(X[training], y[training])
                error = float(np.mean(model.predict(X[held_out]) != y[held_out]))
            except ValueError as problem:  # another may do
                failure = problem
                continue
            seconds = self._now() - start
            run.tuning.append(seconds)
            run.tried.append((_as_found(setting, model), error))
            if not setting.is_open:
                self._seen[_kind_of(setting)] = training.size, max(1e-6, seconds)
        if failure is not None and not run.tried:
            raise failure
        if not run.tried:
            return False
        choice = [one for one in run.tried if one[0] not in shown]
        run.setting = min(choice, key=lambda one: one[1])[0]
        return True

    def _try_path(
        self,
        run: Run,
        machine: Machine,
        settings: Sequence[Setting],
        training: Array,
        held_out: Array,
    ) -> bool:
        """Try all alphas side by side, if some are wanted; they become what each alone would."""
        path = _path_in(machine.settings(self.sample.X[: run.n_rows]))
        if not _path_in(settings) or not self._has_time(machine, path[0], run.n_rows):
            return False
        if not self.budget.rows and not self._may_compile():  # side by side they have their own
            return False
        X, y, start = self.sample.X, self.sample.y, self._now()
        *before, made = steps_of(self._made(path[0]))
        rows, held = X[training], X[held_out]
        for scaler in before:
            rows, held = scaler.fit_transform(rows), scaler.transform(held)
        try:
            models = models_of_path(
                made, rows, y[training], [float(one.alpha or 0) for one in path]
            )
        except ValueError:  # one by one they tell why, and others may do
            return False
        errors = [float(np.mean(model.predict(held) != y[held_out])) for model in models]
        seconds = max(1e-6, (self._now() - start) / len(path))
        run.tried += zip(path, errors, strict=True)
        run.tuning += [seconds] * len(path)
        return True

    def _has_time(self, machine: Machine, setting: Setting, n_rows: int) -> bool:
        """Whether a setting may be tried; of a machine that has none, why is kept."""
        if machine.name in self.runs and not self._comes_again(machine, n_rows):
            is_known = any(setting.kind is one for one, *_ in self._compiled)
            return is_known or self._compile(setting)  # its price on this sample has been allowed
        if machine.name in EARLY and setting == machine.settings(self.sample.X)[0]:
            return self._compile(setting)  # nothing has been compiled yet, so there is time
        why = self._can_try(setting, machine.growth, n_rows)
        if why:
            self._leave_out(machine, why)
        return not why

    def _settings(
        self, run: Run, machine: Machine, n_rows: int, is_first: bool
    ) -> Sequence[Setting]:
        """Those to try on a sample."""
        settings = list(machine.settings(self.sample.X[:n_rows]))
        before = self.runs.get(machine.name, [])
        run.is_searched = machine.searches and not is_first and self._can_search(machine, n_rows)
        if run.is_searched:
            return settings
        if machine.searches:
            guesses = [_changed(settings[0], guess) for guess in (QUICK, SMALL)]
            good = _contenders(before[-1]) if before else guesses
            return [one for one in guesses if one in good] or guesses
        if not before:
            return settings[: machine.n_early]
        if self._comes_again(machine, n_rows):
            run.tried = list(before[-1].tried)
            return settings[machine.n_early :]
        good = _contenders(before[-1])
        behind = [one for one, _ in before[-1].tried if one not in good]
        near = [one for one in _around(settings, before[-1].setting) if one not in behind]
        return near or [one for one in settings if one in good]


def _path_in(settings: Sequence[Setting]) -> list[Setting]:
    """Those that differ in alpha alone, of machines that are trained side by side."""
    return [one for one in settings if one.kind in PACKED and one.alpha is not None]


def _kind_of(setting: Setting) -> Any:
    """Settings of one kind run the same loops, for about the same time."""
    columns, planes = (setting.parameters.get(name) for name in ("columns", "n_planes"))
    return setting.kind, columns, planes


def _changed(setting: Setting, changes: dict[str, Any]) -> Setting:
    return Setting(setting.kind, {**setting.parameters, **changes}, setting.scale, setting.alpha)


def _contenders(run: Run) -> list[Setting]:
    """Settings that were not clearly behind on the quarter of the rows that was held out."""
    if not run.tried:
        return [run.setting]
    lowest = min(error for _, error in run.tried)
    n_rows = max(1.0, FOR_TUNING * run.n_rows)
    spread = math.sqrt(2 * max(lowest * (1 - lowest), 1 / n_rows) / n_rows)
    return [one for one, error in run.tried if error <= lowest + NOT_BEHIND * spread]


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
    is_found = isinstance(estimator, PolyplaneClassifier) and setting.is_open
    return _changed(setting, dict(estimator.settings_)) if is_found else setting
