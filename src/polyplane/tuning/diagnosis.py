"""Is it nonlinear? What follows from the errors of algorithms on the same held-out rows.

The verdict climbs the ladder of `candidates.py`. A step is taken if its best algorithm is better
than the best so far by more than luck (three standard errors of the paired difference) and by
enough to matter (a twentieth of the error), and if the algorithm below, having learned its answers,
does not do as well: then only wrong labels stood in the way of that one. A model with one plane a
class over the columns as they are is itself linear and takes no step. A lead that is probably no
luck (p < 0.02) is taken as well, and its verdict is said to be probable. Where a step may matter
but the rows do not tell, or so few rows tell nothing at all, the verdict is `more-data`, unless the
error that is left is below half a point; where nothing beats the most frequent label and the rows
would have shown it, `noise`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.estimator.files.fitted import steps_of
from polyplane.portfolio.polyplane_classifier import PolyplaneClassifier
from polyplane.tuning.candidates import ADDITIVE, CANDIDATES, KERNEL, LINEAR, MAJORITY, PLANES
from polyplane.tuning.runs import Lead, Run, lead_of

__all__ = ["Advice", "Outlook", "StepUp", "advice", "outlook"]

# Standard errors of a lead: the best of several leads needs more, since it is so by some chance.
CLEAR_LEAD_STANDARD_ERRORS, PROBABLE_LEAD_STANDARD_ERRORS = 3.0, 1.5
PROBABLE_P = 0.02  # of a paired test, below which a lead is probably no luck
MIN_ERROR_TO_IMPROVE = 0.005  # share of the rows: a lower error is left as it is
MIN_RELATIVE_GAIN = 0.05  # of the error below: less is not worth a slower algorithm
LARGE_RELATIVE_GAIN = 0.2  # of the error of the simpler algorithm: a lead not to be missed
LARGE_GAIN_SHARE = 0.02  # of the rows: a lead not to be missed
# Standard errors above the most frequent label, to be more than noise; and above an algorithm that
# has learned another one's answers, to be more than linear.
MIN_STANDARD_ERRORS_ABOVE_NOISE = 2.0
# Twice the standard error of a lead with which rows tell nothing; or with it, a lead over the most
# frequent label that may well be there.
MAX_LEAD_INTERVAL = 0.05
MIN_OUTLOOK_SHARE = 0.002  # of the rows, of which an outlook speaks
OUTLOOK_ROWS_FACTOR = 2  # times as many, for the outlook
WITHOUT_OUTLOOK = "noise", "more-data"  # verdicts after which errors say nothing of labels
Runs = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class StepUp:
    """The gain of the best algorithm of a step over the best one of the steps taken before."""

    step: str
    run: Run
    below: Run
    lead: Lead
    is_taken: bool
    is_imitated: bool = False  # the algorithm below, having learned its answers, is as good
    is_linear: bool = False  # the run's model has one plane a class over plain columns

    @property
    def is_probable(self) -> bool:
        """Return True if the step is worth taking and its lead is probably no luck."""
        lead, is_open = self.lead, not (self.is_taken or self.is_imitated or self.is_linear)
        is_better = lead.points >= MIN_RELATIVE_GAIN * self.below.error and lead.p < PROBABLE_P
        return is_open and is_better and self.below.error >= MIN_ERROR_TO_IMPROVE


@dataclass(frozen=True)
class Advice:
    """A verdict, a sentence with the numbers behind it, and the algorithm to use."""

    verdict: str  # linear, additive, piecewise-linear, kernel, more-data or noise
    sentence: str
    machine: str
    steps: Sequence[StepUp] = ()


@dataclass(frozen=True)
class Outlook:
    """Errors that more rows, or cleaner labels, would save; None if unknown."""

    more_rows: float | None  # points of error, as a share, for twice as many
    cleaner_labels: float | None
    sentence: str


def latest(runs: Runs, name: str) -> Run:
    """Return the run of an algorithm on the largest sample that it has reached."""
    return runs[name][-1]


def common(runs: Runs, one: str, other: str) -> tuple[Run, Run]:
    """Return the runs of two algorithms on the largest sample that both have reached."""
    sizes = {run.n_rows for run in runs[one]} & {run.n_rows for run in runs[other]}
    largest = max(sizes)
    (mine,) = [run for run in runs[one] if run.n_rows == largest]
    (its,) = [run for run in runs[other] if run.n_rows == largest]
    return mine, its


def best_of(runs: Runs, step: str) -> str | None:
    """Return the algorithm of a step with the lowest error, on a sample not much smaller."""
    names = [name for name in runs if CANDIDATES[name].step == step]
    if not names:
        return None
    largest = max(latest(runs, name).n_rows for name in names)
    far = [name for name in names if 4 * latest(runs, name).n_rows >= largest]
    return min(far, key=lambda name: latest(runs, name).error)


def climbed(runs: Runs) -> list[StepUp]:
    """Return the steps of the ladder above a linear model, each compared with the best before."""
    steps, below = [], LINEAR
    for step in (ADDITIVE, PLANES, KERNEL):
        names = [name for name in runs if CANDIDATES[name].step == step]
        tried = [_step_up(runs, name, below) for name in names]
        if not tried:
            continue
        best = max(tried, key=lambda one: (one.is_taken, one.lead.points - one.lead.spread))
        steps.append(best)
        below = best.run.machine if best.is_taken else below
    return steps


def _step_up(runs: Runs, name: str, below: str) -> StepUp:
    """Compare an algorithm with one below, which it must beat on that one's largest sample, too."""
    run, beside = common(runs, name, below)
    lead = lead_of(run, beside)
    is_better = run.error < latest(runs, below).error
    is_imitated = _is_imitated(run, below)
    is_taken = (
        is_better
        and lead.z > CLEAR_LEAD_STANDARD_ERRORS
        and lead.points >= MIN_RELATIVE_GAIN * beside.error
    )
    is_linear = _is_linear(run)
    is_taken = is_taken and not is_imitated and not is_linear
    if is_taken and CANDIDATES[name].step == KERNEL:  # planes may have stopped at fewer rows
        planes = [other for other in runs if CANDIDATES[other].step == PLANES]
        is_taken = all(
            lead_of(*common(runs, name, other)).z > PROBABLE_LEAD_STANDARD_ERRORS
            for other in planes
        )
    return StepUp(CANDIDATES[name].step, run, beside, lead, is_taken, is_imitated, is_linear)


def _is_imitated(run: Run, below: str) -> bool:
    """Return True if the algorithm below, having learned a run's answers, is not clearly behind."""
    if below not in run.imitated:
        return False
    return (
        lead_of(run, replace(run, trial=run.imitated[below])).z <= MIN_STANDARD_ERRORS_ABOVE_NOISE
    )


def _is_linear(run: Run) -> bool:
    """Return True if the model of a run is one plane a class over the columns as they are."""
    model = None if run.model is None else steps_of(run.model)[-1]
    if CANDIDATES[run.machine].step != PLANES or isinstance(model, PolyplaneClassifier):
        return False
    return model is not None and model.n_planes_ <= model.classes_.size


def advice(runs: Runs, y: Array) -> Advice:
    """Return the verdict that follows from all runs, and what to use."""
    if LINEAR not in runs:
        return Advice("more-data", "There was no time to train even a linear model.", MAJORITY)
    steps = climbed(runs)
    taken = [step for step in steps if step.is_taken]
    noise = _noise(runs, y)
    if noise is not None:
        return Advice(*noise, LINEAR, steps)
    linear = latest(runs, LINEAR)
    if taken:
        top = taken[-1]
        words = _nonlinear(top, runs) + _unreached(runs, top.run.machine)
        return Advice(top.step, words, top.run.machine, steps)
    probable = [step for step in steps if step.is_probable]
    if probable:
        step = max(probable, key=lambda one: one.lead.z)
        sentence = (
            f"It is probably {step.step} (p = {step.lead.p:.2g}): {step.run.machine} has "
            f"{step.run.error:.1%} wrong where a linear model has {step.below.error:.1%}, a lead "
            f"of {_points(step.lead)}; more rows would confirm it."
        )
        return Advice(step.step, sentence, step.run.machine, steps)
    open_steps = [step for step in steps if _may_matter(step)]
    if open_steps:
        step = max(open_steps, key=lambda one: one.lead.z)
        sentence = (
            f"These rows are too few to decide: {step.run.machine} leads a linear model by "
            f"{_points(step.lead)}, which may be chance; take more rows."
        )
        return Advice("more-data", sentence, LINEAR, steps)
    if not steps:
        words = f"A linear model has {linear.error:.1%} wrong; there was no time for any other."
        return Advice("more-data", words, LINEAR)
    return Advice("linear", _linear(steps, linear) + _unreached(runs, LINEAR), LINEAR, steps)


def _linear(steps: Sequence[StepUp], linear: Run) -> str:
    nearest = max(steps, key=lambda one: one.lead.points)
    if nearest.is_imitated and nearest.lead.z > PROBABLE_LEAD_STANDARD_ERRORS:
        return (
            f"It looks linear, with wrong labels: {nearest.run.machine} has "
            f"{nearest.run.error:.1%} wrong where a linear model has {linear.error:.1%}, but one "
            f"that learns the answers of {nearest.run.machine} is as good."
        )
    if nearest.is_linear and nearest.lead.z > PROBABLE_LEAD_STANDARD_ERRORS:
        return (
            f"It looks linear: {nearest.run.machine} has {nearest.run.error:.1%} wrong where the "
            f"linear model has {linear.error:.1%}, but its model is one plane a class as well."
        )
    return (
        f"It looks linear: nothing beats the linear model's error of {linear.error:.1%} by "
        f"enough to matter ({nearest.run.machine}: {_points(nearest.lead)})."
    )


def _may_matter(step: StepUp) -> bool:
    """Return True if more rows could show that the step is worth taking."""
    lead, worth = step.lead, MIN_RELATIVE_GAIN * step.below.error
    if step.is_imitated or step.is_linear or step.below.error < MIN_ERROR_TO_IMPROVE:
        return False
    is_open = lead.points + 2 * lead.spread >= worth
    is_likely = lead.z > PROBABLE_LEAD_STANDARD_ERRORS and lead.points >= worth / 2
    is_too_wide = 2 * lead.spread > MAX_LEAD_INTERVAL and lead.points > -lead.spread
    most = lead.points + 2 * lead.spread
    large = max(LARGE_RELATIVE_GAIN * step.below.error, LARGE_GAIN_SHARE)
    may_be_large = lead.points > lead.spread / 2 and most > large
    return is_open and (is_likely or is_too_wide or may_be_large)


def _noise(runs: Runs, y: Array) -> tuple[str, str] | None:
    """Return the verdict and its words if nothing beats the most frequent label, else None."""
    if MAJORITY not in runs:
        return None
    leads = [lead_of(*common(runs, name, MAJORITY)) for name in runs if name != MAJORITY]
    best = max(leads, key=lambda lead: lead.z)
    if best.z > MIN_STANDARD_ERRORS_ABOVE_NOISE + 0.5:  # the best of several
        return None
    usual, share = most_frequent(y)
    words = f"Nothing here beats always saying {_shown(usual)}, which is wrong on {1 - share:.1%}"
    if best.points + 2 * best.spread > MAX_LEAD_INTERVAL:
        return (
            "more-data",
            f"{words}, by more than chance; but {best.n_rows:,} rows are too few to decide.",
        )
    if not any(CANDIDATES[name].step in (PLANES, KERNEL) for name in runs):
        return "more-data", f"{words}; but there was no time for algorithms that see more."
    return "noise", f"{words}: the columns say little about the label."


def _nonlinear(top: StepUp, runs: Runs) -> str:
    linear = common(runs, top.run.machine, LINEAR)[1]
    of_step = {
        ADDITIVE: "It is nonlinear, column by column: a sum of curves",
        PLANES: f"It is nonlinear: {top.run.machine}",
        KERNEL: f"It is nonlinear, and a kernel sees more than planes do: {top.run.machine}",
    }
    beside = (
        "" if top.below.machine == LINEAR else f" and {top.below.machine} {top.below.error:.1%}"
    )
    last = latest(runs, top.run.machine)
    is_first = last.n_rows == top.run.n_rows
    on = "" if is_first else f", on {top.run.n_rows:,} rows"
    now = "" if is_first else f" On {last.n_rows:,} rows it has {last.error:.1%}."
    return (
        f"{of_step[top.step]} has {top.run.error:.1%} wrong where a linear model has "
        f"{linear.error:.1%}{beside}{on}: a lead of {_points(top.lead)}.{now}"
    )


def _unreached(runs: Runs, machine: str) -> str:
    """Return a sentence on a better algorithm that saw more rows than the advised one, if any."""
    mine = latest(runs, machine)
    others = [latest(runs, name) for name in runs]
    ahead = [
        run for run in others if run.n_rows > mine.n_rows and run.interval[1] < mine.interval[0]
    ]
    if not ahead:
        return ""
    best = min(ahead, key=lambda run: run.error)
    return (
        f" {best.machine} has {best.error:.1%} wrong on {best.n_rows:,} rows, which there was no "
        f"time to try {machine} on: with more time, explore again."
    )


def most_frequent(y: Array) -> tuple[Any, float]:
    """Return the most frequent label and its share."""
    labels, counts = np.unique(y, return_counts=True)
    place = int(np.argmax(counts))
    return labels.tolist()[place], float(counts[place] / y.size)


def _shown(label: Any) -> str:
    text = repr(label)
    return text if len(text) <= 60 else f"{text[:57]}…'"


def _points(lead: Lead) -> str:
    return f"{100 * lead.points:.2f} ± {100 * lead.spread:.2f} points"


# ---- outlook -----------------------------------------------------------------------------


def outlook(runs: Runs, said: Advice) -> Outlook:
    """Estimate what more rows and cleaner labels would gain for the advised algorithm."""
    machine = said.machine
    if said.verdict in WITHOUT_OUTLOOK:
        return Outlook(None, None, "")
    more = _by_more_rows(runs.get(machine, ()))
    cleaner = _by_cleaner_labels(runs[machine][-1]) if runs.get(machine) else None
    words = []
    if more is not None and more < MIN_OUTLOOK_SHARE:
        words.append("twice the rows would hardly lower the error")
    elif more is not None:
        words.append(
            f"Twice the rows would lower the error by about {100 * more:.1f} points, if the "
            f"curve of {machine} continues as before"
        )
    if cleaner is not None and cleaner >= MIN_OUTLOOK_SHARE:
        words.append(
            f"of the half of the rows on which {machine} is surest, {cleaner:.1%} have another "
            "label: about as many labels are wrong, or depend on what no column holds"
        )
    if len(words) == 2 and more is not None and cleaner is not None:
        better = "more rows" if more > cleaner else "cleaner labels"
        words.append(f"{better} would help more")
    sentence = "; ".join(words)
    return Outlook(more, cleaner, f"{sentence[:1].upper()}{sentence[1:]}." if words else "")


def _by_more_rows(runs: Sequence[Run]) -> float | None:
    """Estimate the gain of twice the rows from a power law through the errors on all samples."""
    if len(runs) < 2 or runs[-1].error == 0:
        return None if len(runs) < 2 else 0.0
    sizes = np.log([run.n_rows for run in runs])
    errors = np.log([max(run.error, 0.5 / run.n_rows) for run in runs])
    weights = np.sqrt([run.n_rows for run in runs])
    power = -float(np.polyfit(sizes, errors, 1, w=weights)[0])
    left = float(OUTLOOK_ROWS_FACTOR) ** -min(max(power, 0.0), 1.0)
    return runs[-1].error * (1 - float(left))


def _by_cleaner_labels(run: Run) -> float | None:
    """Return the error on the surer half of the rows, which a better border would not lower."""
    if run.sureness is None or not np.isfinite(run.sureness).all():
        return None
    is_sure = run.sureness >= np.median(run.sureness)
    share = float(np.mean(run.trial.is_wrong[is_sure]))
    return min(share, run.error) if not math.isnan(share) else None
