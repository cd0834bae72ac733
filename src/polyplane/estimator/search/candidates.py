"""How a fit finds its settings: candidates tried on some of its rows.

First come maps of the columns with the shrinkage that suits them, each class against the rest, and
linear models: what data differ in most. Then come neighbours of the winner, one change each, and in
the end the changes that won, together. A change is taken if it wins 1.5% of the loss on rows held
out (0.5% where there are many rows), and more than the standard error of the difference: less is
luck. A linear model is taken where it is no worse.
Trials (`trials.py`) go on from where they stopped: all make a third of their passes, with steps
that fall to 0, and the best third the rest, with new ones. Of an ensemble one model is tried, until
the settings are found; two of them then tell how many passes are worth it.
Where losses still fall by then, rows hardly contradict each other: such data want a long training
with little shrinkage and more models, and end with next to no error on training rows.
At last the same is tried with columns as long as they were worth to these trials (`relevance.py`):
short ones cannot tell yet. That wins on most tables, and is taken wherever it loses nothing; a
small sample of the rows is not asked: many rows want it less than few.
Many rows also bear finer columns and more passes than a small sample of them does. Where that has
chosen coarse ones, both are trained on all rows, one model each, before one is taken.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.estimator.fitting.progress import Report, silence
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.search.halving import Judgement, final_judgements
from polyplane.estimator.search.relevance import POWERS, Worth
from polyplane.estimator.search.trials import (
    FEW_ROWS,
    N_SPLITS,
    Begin,
    Problem,
    Setting,
    Trials,
    View,
    view_of,
)
from polyplane.model.input.column_maps import AS_IS
from polyplane.model.many_classes.decomposition import Decomposition

__all__ = ["Candidates", "Found"]

MOST_PLANES, MOST_PLANES_OF_WIDE = (32, 320), (32, 640)  # of a class, and of all, at first
FEWER_PLANES_OF_WIDE = 16, 640  # of texts, which hardly bend and have large planes, and of pairs
LEAST_WORDS = 2_000  # columns of a text: images have fewer
MOST_AGAINST_REST = 20  # classes each of which may be taken against the rest
RUNGS = 4, 12  # passes of a trial; the winner makes those of a fit
MOST_MEMBERS = 2  # of an ensemble that are judged together
MORE_PASSES = 2  # times those of the last rung tell, on a sample, whether all are worth it
WORTH_IT = 0.995  # of the loss: what more passes over many rows must reach to be made
ALL_RIGHT = 0.05  # loss of a row: where all have less, more passes only make sure what is right
STILL_FALLS = 0.9884  # of the loss: where twice the passes reach that, a long training is tried
LONG: Setting = {"n_estimators": 4, "learn_from": "unsure"}  # and a share of the shrinkage
LONG_SHRINKS = 1 / 3
LEAST_LONGER = 1.5  # times the passes of others; with very many rows it would make no difference
MUCH_WORSE = 1.05  # times the loss before: trials of more than a few rows think too little of them
CLEARLY, CLEARLY_ON_MANY = 0.985, 0.995  # of the loss: what a change must reach to be taken
CLEARLY_WITH_LARGE_STEPS = 0.9  # the same of larger steps: where they win less, fits are a gamble
MOST_CONTESTED = 200_000  # rows on which the last two are trained
FINER: Setting = {"columns": "fine", "directions": "none", "relevance": 1.0}
FINER_SHRINKS = 3.0  # times the shrinkage of coarser columns
AS_GOOD = 1.02  # times its loss is no loss of squared hinges, which err less on texts
OF_TABLES: Setting = {
    "columns": "knots", "init": "subset", "multi_class": "joint", "start_scale": 3.0,
    "step_size": 0.3, "units": 2, "shrinkage": 0.1, "learn_from": "most", "directions": "none",
    "relevance": 0.0, "loss": "cross-entropy", "n_estimators": 2,
}  # fmt: skip
OF_WIDE: Setting = OF_TABLES | {
    "columns": "plain", "init": "kmeans", "units": 1, "shrinkage": 0.05, "learn_from": "unsure",
}  # fmt: skip
WIDE_APART: dict[str, Setting] = {
    "ovr": {"multi_class": "ovr", "n_estimators": 1, "units": 2},
    "ovo": {"multi_class": "ovo", "n_estimators": 1},
}
OF_SEVERAL_CLASSES = 4  # models
LINEAR: Setting = {
    "n_planes": 1, "units": 1, "shrinkage": 0.05, "step_size": 0.03, "n_estimators": 1,
}  # fmt: skip
SQUARED: Setting = LINEAR | {"loss": "squared-hinge", "step_size": 0.3}  # each class against all
AGAINST_REST: Setting = {
    "multi_class": "ovr", "columns": "knots", "n_estimators": 2, "shrinkage": 0.03,
    "learn_from": "unsure",
}  # fmt: skip
OF_FEWER: Setting = {"columns": "knots", "shrinkage": 0.3}  # what a sample wants, and not all rows
FIRST_CHANGES: tuple[Setting, ...] = (
    {"columns": "fine", "shrinkage": 0.3},
    OF_FEWER,
    {"columns": "plain", "shrinkage": 0.03, "learn_from": "unsure"},
    {"columns": "knots", "shrinkage": 0.03, "learn_from": "unsure"},
    {"columns": "fine", **LINEAR, "shrinkage": 0.1},
    {"columns": "knots", "shrinkage": 0.1, "directions": "principal"},
    {"columns": "fine", "shrinkage": 0.3, "directions": "principal"},
    {"columns": "plain", **LINEAR},
)


class Found(NamedTuple):
    """The best setting, and how it did on rows that its trials had not seen."""

    setting: Setting
    n_tried: int  # passes of its trials
    calibration: float  # the factor that makes its scores log-odds
    loss: float
    rows: Array  # held out, by their places in the data of the fit
    n_splits: int = N_SPLITS  # in which it was tried, if there are so many
    is_long: bool = False
    worth: Worth | None = None  # of the columns, if they count by that


class Candidates:
    """Candidates for the settings of a machine, and which of them is best."""

    SEARCHED = (
        "columns", "n_planes", "start_scale", "step_size", "units", "shrinkage", "learn_from",
        "directions", "relevance", "loss",
    )  # fmt: skip

    def __init__(
        self, machine: Any, problem: Problem, begin: Begin, takes_all: bool = False
    ) -> None:
        self.machine, self.labels = machine, problem.labels
        self.n_passes, self.most_passes = problem.n_passes, problem.most_passes
        self.trials = Trials(machine, problem, begin, takes_all)
        self.first_guess = self._first_guess()
        self.rungs = RUNGS
        self.clearly = CLEARLY_ON_MANY if self.trials.is_sample else CLEARLY

    # ---- candidates ------------------------------------------------------------------------

    def _first_guess(self) -> Setting:
        (kind, *_), columns = next(iter(self.trials.maps.items()))
        if columns.is_as_is:
            how = "ovr" if self._may_part_classes() else self.machine.multi_class
            apart = WIDE_APART.get(how, {}) if self.labels.size > 2 else {}
            is_text = columns.n_columns > LEAST_WORDS
            few = is_text or how == "ovo"
            n_planes = self._first_planes(*FEWER_PLANES_OF_WIDE if few else MOST_PLANES_OF_WIDE)
            return OF_WIDE | apart | {"columns": kind, "n_planes": n_planes}
        kind = (
            OF_TABLES["columns"] if View(OF_TABLES["columns"], False) in self.trials.maps else kind
        )
        several = {} if self.labels.size == 2 else {"n_estimators": OF_SEVERAL_CLASSES}
        n_planes = self._first_planes(*MOST_PLANES)
        return OF_TABLES | several | {"columns": kind, "n_planes": n_planes}

    def _may_part_classes(self) -> bool:
        """Whether each class may be taken against the rest."""
        return 2 < self.labels.size <= MOST_AGAINST_REST and self.machine.multi_class == "auto"

    def _first_planes(self, of_class: int, of_all: int) -> int:
        return int(np.clip(of_all // self.labels.size, 2, of_class))

    def _first_round(self) -> list[Setting]:
        if not self.trials.is_table():
            linear = [self.first_guess | LINEAR, self.first_guess | SQUARED]
            return self._open([self.first_guess, *linear])
        kinds = {view.kind for view in self.trials.maps}
        is_small = self.trials.is_small_sample()
        changes = [one for one in FIRST_CHANGES if one is not OF_FEWER or not is_small]
        if self._may_part_classes():
            n_planes = max(2, self.first_guess["n_planes"] // 2)  # a class, and as many of the rest
            changes.append(AGAINST_REST | {"n_planes": n_planes})
        if len(kinds) == 1:  # the others would be the same
            changes = [change | {"columns": next(iter(kinds))} for change in changes]
        known = [change for change in changes if view_of(OF_TABLES | change) in self.trials.maps]
        return self._open([self.first_guess, *(self.first_guess | change for change in known)])

    def _second_round(self, best: Setting) -> list[Setting]:
        """One change each; smaller steps and more shrinkage have won with linear models alone."""
        n_planes, step, shrinkage = best["n_planes"], best["step_size"], best["shrinkage"]
        changes: list[Setting] = [{"step_size": step * 3}, {"shrinkage": shrinkage / 3}]
        if n_planes > 1:
            if best["multi_class"] == "joint":  # others never wanted them, and are dear
                changes += [{"n_planes": n_planes * 2}, {"units": 1 if best["units"] > 1 else 2}]
            is_turned = best["directions"] == "principal"
            changes.append({"directions": "none" if is_turned else "principal"})
        else:
            changes += [{"step_size": step / 3}, {"shrinkage": shrinkage * 3}]
        changes = [one for one in changes if view_of(best | one) in self.trials.maps]
        return self._open([best, *(best | change for change in changes)])

    def _open(self, candidates: list[Setting]) -> list[Setting]:
        """The candidates with what the user has set, each once."""
        machine = self.machine
        fixed = {
            name: getattr(machine, name)
            for name in candidates[0]
            if getattr(machine, name, "auto") != "auto" and name != "relevance"
        }
        found: list[Setting] = []
        for candidate in candidates:
            setting = candidate | fixed
            if machine.n_estimators == "auto" and not self.may_be_several(setting):
                setting["n_estimators"] = 1
            if setting not in found:
                found.append(setting)
        return found

    def may_be_several(self, setting: Setting) -> bool:
        """Whether two models may share the planes of one.

        Not if their number is the user's, and not of a linear model, whose loss has one minimum.
        """
        return bool(self.machine.n_planes == "auto" and setting["n_planes"] > 1)

    # ---- rounds ----------------------------------------------------------------------------

    def run(self, n_threads: int, report: Report) -> Found:
        """The best setting, and how it did."""
        best = self._first_winner(n_threads, report)
        best = self._together(self._second_round(best), n_threads, report)
        return self._weighed(self._with_passes(best, n_threads, report), n_threads, report)

    def as_given(self, setting: Setting, n_threads: int) -> Found:
        """A setting that leaves nothing to choose, and how it did."""
        n_passes = min(int(setting["max_iter"]), self.most_passes)
        tried = _untimed(setting)
        if self.machine.n_estimators == "auto" and not self.may_be_several(tried):
            tried["n_estimators"] = 1
        even, worth = tried | {"relevance": 0.0}, None
        judged = self._judged_as_fitted(even, n_passes, N_SPLITS, n_threads)
        if setting["relevance"] and self.trials.is_table():
            self.trials.weigh(even)
            worth = self.trials.worth_for(even)
            judged = self._judged_as_fitted(tried, n_passes, N_SPLITS, n_threads)
        return self._found(tried, n_passes, judged, n_passes)._replace(worth=worth)

    def _weighed(self, even: Found, n_threads: int, report: Report) -> Found:
        """The same with columns as long as they were worth to its trials, where that is better."""
        given = self.machine.relevance
        is_small = given == "auto" and self.trials.is_small_sample()
        if not self.trials.is_table() or _is_linear(even.setting) or given == 0 or is_small:
            return even
        self.trials.weigh(_untimed(even.setting), even.n_splits)
        worth = self.trials.worth_for(even.setting)
        if even.is_long and given == "auto":
            return self._weighed_long(even, n_threads, report)._replace(worth=worth)
        best = even
        for power in POWERS if given == "auto" else (float(given),):
            found = self._as_before(even, power, n_threads, report)._replace(worth=worth)
            if given == "auto" and not self._is_better(found, best):
                break
            best = found
        return best

    def _weighed_long(self, even: Found, n_threads: int, report: Report) -> Found:
        """The same of a long training, which is dear: all powers side by side, one model each.

        Two models are calibrated otherwise than one, by as much as they were before.
        """
        settings = [even.setting | {"relevance": power} for power in (0.0, *POWERS)]
        judged: list[Any] = [None] * len(settings)

        def work(k: int, report: Report) -> None:
            setting = _untimed(settings[k])
            judged[k] = self.trials.judge(setting, even.n_tried, report, n_splits=1)

        for_each(work, len(settings), n_threads, report)
        one, best = judged[0], 0
        for k in range(1, len(settings)):
            if not judged[k].clearly_beats(judged[best], self.clearly if best else 1):
                break
            best = k
        return even._replace(
            setting=settings[best],
            calibration=even.calibration * judged[best].calibration / one.calibration,
            loss=even.loss * judged[best].loss / one.loss,
        )

    def _as_before(self, even: Found, power: float, n_threads: int, report: Report) -> Found:
        """The same with weights; few rows, for which it costs little, choose passes anew."""
        setting = even.setting | {"relevance": power}
        if self.trials.chosen.size < FEW_ROWS and not even.is_long:
            return self._with_passes(_untimed(setting), n_threads, report)
        tried = _untimed(setting), even.n_tried, even.n_splits
        judged = self._judged_as_fitted(*tried, n_threads, report)
        return even._replace(setting=setting, calibration=judged.calibration, loss=judged.loss)

    def finer(self, found: Found, n_threads: int, report: Report) -> Found | None:
        """What all rows may like better than what a small sample of them has found."""
        setting = _untimed(found.setting)
        changes = FINER | {"shrinkage": FINER_SHRINKS * setting["shrinkage"]}
        names = (*changes, "max_iter")
        is_open = all(getattr(self.machine, name) == "auto" for name in names)
        is_coarse = setting["columns"] == "knots" and setting["n_planes"] > 1 and not found.is_long
        is_many = self.trials.is_small_sample() and self.trials.n_rows <= MOST_CONTESTED
        finer = setting | changes
        if not (is_open and is_coarse and is_many and view_of(finer) in self.trials.maps):
            return None
        even = finer | {"relevance": 0.0}
        judgement = self._judged_as_fitted(even, self.n_passes, 1, n_threads, report)
        self.trials.weigh(even)
        found = self._found(finer, self.n_passes, judgement, self.n_passes)
        return found._replace(worth=self.trials.worth_for(even))

    def better_of(self, one: Found, other: Found, n_threads: int, report: Report) -> Found:
        """By the loss of one model of each."""
        both, losses = (one, other), [0.0, 0.0]
        for each in both:
            if each.worth is not None:
                self.trials.worth[self.trials.even_view(each.setting)] = [each.worth] * len(
                    self.trials.splits
                )

        def work(k: int, report: Report) -> None:
            setting, n_passes = both[k].setting, int(both[k].setting["max_iter"])
            losses[k] = self.trials.judge(_untimed(setting), n_passes, report, n_splits=1).loss

        for_each(work, len(both), n_threads, report)
        return both[int(np.argmin(losses))]

    def _is_better(self, weighed: Found, before: Found) -> bool:
        """Whether weights are to be taken; larger powers only if it is clear."""
        n_splits = min(weighed.n_splits, before.n_splits)
        of_weighed, of_before = (
            self._judged_as_fitted(_untimed(one.setting), one.n_tried, n_splits)
            for one in (weighed, before)
        )
        if before.setting["relevance"] == 0:
            return of_weighed.loss < of_before.loss
        return of_weighed.clearly_beats(of_before, self.clearly)

    def _with_passes(self, best: Setting, n_threads: int, report: Report) -> Found:
        """As many passes as are worth their time, and the calibration after them."""

        def judge(setting: Setting, n_passes: int, n_splits: int = N_SPLITS) -> Judgement:
            return self._judged_as_fitted(setting, n_passes, n_splits, n_threads, report)

        n_passes, n_most = self.rungs[-1], self.n_passes
        if self.machine.max_iter != "auto":
            n_most = int(self.machine.max_iter)
            n_passes = max(n_passes, n_most)
            judgement = judge(best, n_passes)  # calibrated for what will be made
            return self._found(best, n_most, judgement, n_passes)
        before = judge(best, n_passes)
        if n_most <= n_passes:
            return self._found(best, n_most, before, n_passes)
        if before.losses.max() < ALL_RIGHT:
            return self._found(best, n_passes, before, n_passes)
        n_more = min(n_most, MORE_PASSES * n_passes) if self.trials.is_sample else n_most
        after = judge(best, n_more)
        if after.loss >= (WORTH_IT if self.trials.is_sample else 1) * before.loss:
            return self._found(best, n_passes, before, n_passes)
        long, doublings = self._long(best), math.log2(n_more / n_passes)
        if after.loss < STILL_FALLS**doublings * before.loss and long != best:
            found = self._as_long(long, n_threads, report)
            most = MUCH_WORSE if len(self.trials.splits) == 1 else 1
            if found.loss < most * judge(best, n_more, 1).loss:
                return found
        return self._found(best, n_most, after, n_more)

    def _as_long(self, long: Setting, n_threads: int, report: Report) -> Found:
        """A long training, of which one split tells enough."""
        judgement = self._judged_as_fitted(long, self.most_passes, 1, n_threads, report)
        found = self._found(long, self.most_passes, judgement, self.most_passes)
        return found._replace(n_splits=1, is_long=True)

    def _judged_as_fitted(
        self,
        setting: Setting,
        n_passes: int,
        n_splits: int,
        n_threads: int = 1,
        report: Report = silence,
    ) -> Judgement:
        """An ensemble judged as one, where it is known what will be fitted."""
        n_members = min(int(setting["n_estimators"]), MOST_MEMBERS)
        return self.trials.judge(setting, n_passes, report, n_members, n_threads, n_splits)

    def _long(self, best: Setting) -> Setting:
        """What a long training of a setting would be; the same, if there is none."""
        is_longer = self.most_passes >= LEAST_LONGER * self.n_passes
        is_joint = best["multi_class"] == "joint"
        if not is_longer or best["n_planes"] == 1 or not (is_joint or self.trials.is_table()):
            return best
        changes = LONG | {"shrinkage": best["shrinkage"] * LONG_SHRINKS}
        if not is_joint:  # models that differ by their classes as well
            changes["n_estimators"] = best["n_estimators"]
        return self._open([best | changes])[0]

    def _found(self, setting: Setting, n_passes: int, judgement: Judgement, n_tried: int) -> Found:
        return Found(
            setting | {"max_iter": n_passes},
            n_tried,
            judgement.calibration,
            judgement.loss,
            self.trials.rows_held_out(),
        )

    def _first_winner(self, n_threads: int, report: Report) -> Setting:
        """The best of the round, or a linear model where that is no worse.

        Linear models need fewer passes: where it is close, both make those of a fit.
        """
        candidates = self._first_round()
        winners = self._winners(candidates, n_threads, report)
        linear = self._best_linear(candidates, report)
        if linear is None:
            return winners[0]
        curved = next((one for one in winners if not _is_linear(one)), linear)
        passes = [self.rungs[-1]]
        if not self.trials.is_sample and self.machine.max_iter == "auto":
            passes.append(max(self.n_passes, self.rungs[-1]))
        for n_passes in passes:
            of_curved, of_linear = (
                self.trials.judge(
                    one, n_passes, report, self._count_members(one, n_passes), n_threads
                )
                for one in (curved, linear)
            )
            if of_curved.clearly_beats(of_linear, self.clearly):
                return curved
            if of_linear.clearly_beats(of_curved, self.clearly):
                return linear
        return curved if of_curved.loss < of_linear.loss else linear

    def _count_members(self, setting: Setting, n_passes: int) -> int:
        """Of an ensemble, that are judged together: one, until it is as it will be fitted."""
        return min(int(setting["n_estimators"]), MOST_MEMBERS) if n_passes > self.rungs[-1] else 1

    def _best_linear(self, candidates: list[Setting], report: Report) -> Setting | None:
        """Squared hinges, which err less on texts, unless their loss is clearly the larger one."""
        linear = [one for one in candidates if _is_linear(one)]
        linear.sort(key=lambda one: one["loss"] != "squared-hinge")
        if not linear:
            return None
        first, *others = ((self.trials.judge(one, self.rungs[-1], report), one) for one in linear)
        for other in others:
            is_squared = first[1]["loss"] == "squared-hinge"
            if other[0].clearly_beats(first[0], 1 / AS_GOOD if is_squared else 1):
                first = other
        return first[1]

    def _winners(self, candidates: list[Setting], n_threads: int, report: Report) -> list[Setting]:
        """Those that are clearly better than the first, best first, and then the first."""
        stay = [k for k, one in enumerate(candidates) if k == 0 or _is_linear(one)]
        found = final_judgements(
            self.trials.judge, candidates, self.rungs, n_threads, report, stay, self.trials.price
        )
        first: Any = found[0]
        better = [
            (judgement.loss, k)
            for k, judgement in enumerate(found)
            if judgement is not None
            and judgement.clearly_beats(first, self._share(candidates[k], candidates[0]))
        ]
        return [candidates[k] for _, k in sorted(better)] + candidates[:1]

    def _share(self, candidate: Setting, first: Setting) -> float:
        """What of the first one's loss a candidate must reach.

        Steps that are nearly too large do well on some rows and seeds and lose their way on
        others; where they are of use, with classes that hardly overlap, they win much.
        """
        has_larger_steps = first["step_size"] < candidate["step_size"] and not _is_linear(first)
        return CLEARLY_WITH_LARGE_STEPS if has_larger_steps else self.clearly

    def _together(self, candidates: list[Setting], n_threads: int, report: Report) -> Setting:
        """The best of the winners, or of all their changes at once."""
        *winners, before = self._winners(candidates, n_threads, report)
        if len(winners) < 2:
            return (winners or [before])[0]
        joined = dict(winners[0])
        for other in winners[1:]:
            changes = {name: other[name] for name in other if other[name] != before[name]}
            if all(joined[name] == before[name] for name in changes):
                joined |= changes
        if joined == winners[0]:
            return joined
        return self._winners([winners[0], joined], n_threads, report)[0]

    def count_steps(self) -> int:
        """About how many steps all trials make together."""
        kind = self.machine.multi_class
        kind = self.first_guess["multi_class"] if kind == "auto" else kind
        n_problems = len(Decomposition(kind, "vote", self.labels).problems())
        visits = 2 * n_problems / max(2, self.labels.size) if kind == "ovo" else n_problems
        n_first, n_second = len(self._first_round()), len(self._second_round(self.first_guess))
        passes = sum(n * self.rungs[0] for n in (n_first, n_second))
        passes += sum((n // 3 + 2) * (self.rungs[1] - self.rungs[0]) for n in (n_first, n_second))
        passes += (1 + self.trials.is_table()) * MOST_MEMBERS * max(self.n_passes, self.rungs[1])
        return int(visits * passes * sum(members.size for members, _ in self.trials.splits))


def _untimed(setting: Setting) -> Setting:
    """Without the passes of a fit, which are not those of its trials."""
    return {name: one for name, one in setting.items() if name != "max_iter"}


def _is_linear(setting: Setting) -> bool:
    return bool(setting["n_planes"] == 1 and setting["columns"] in ("plain", AS_IS))
