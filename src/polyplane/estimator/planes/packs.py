"""Trials side by side: the same rows in the same order, settings and left-out rows their own.

Trials of one machine that differ in alpha or in the part of the rows they leave out are trained by
one reading of the rows (`engine/planes/pack.py`), as long as their steps are those of the hinge
loss; others follow one another over the same order. Either way each becomes, to the bit, what its
settings alone would make of those rows in that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from polyplane.engine.order import in_place, shuffle
from polyplane.engine.planes.pack import (
    MOST_NOTES,
    NO_PART,
    hinge_epoch_of_pack,
    new_minds,
    new_pack,
    noted,
    place_in_pack,
    plan_notes,
)
from polyplane.engine.planes.planes import (
    MOST_BIRTHS,
    Array,
    copied,
    count_planes,
    lacks_room,
    same_bits,
    with_room_for,
)
from polyplane.engine.rows.at_hand import no_rows_at_hand, with_more_entries
from polyplane.engine.rows.storage import with_own_page
from polyplane.engine.steps.hinge import HingeRule
from polyplane.engine.targets import rows_of
from polyplane.engine.tiles import LANES
from polyplane.estimator.fitting.progress import Report, without_errors
from polyplane.estimator.fitting.resuming import seen_rows
from polyplane.estimator.fitting.side_by_side import Hands, share_out
from polyplane.estimator.input.validation import TrainingData, weighty
from polyplane.estimator.planes.kept_rows import keep_some_rows
from polyplane.estimator.planes.new_models import begun_like
from polyplane.estimator.planes.passes import has_own_loop, pass_by_itself, passes_of, walk_of
from polyplane.estimator.planes.prediction import wrong_rows_of
from polyplane.estimator.planes.training import (
    NO_CHOICE,
    Due,
    EarlyStopping,
    PlaneModel,
    PlaneTraining,
    Walk,
    attend,
    records_after,
)

__all__ = [
    "NO_PART", "Trial", "become_fitted", "count_passes", "fit_a_pack", "members_of",
    "new_trial", "pass_together", "wrong_rows",
]  # fmt: skip

MOST_BYTES = 1 << 20  # of the sums of a pack: what stays near the processor
NOTHING_DUE = Due(0, 0)
LOOKS = 8  # in a pass, whether another thread has nothing to do
ROWS_BETWEEN_LOOKS = 8_192  # at least
VISITS_WORTH_SHARING = 16_384  # of rows by minds, in the time of which packs are made
BYTES_WORTH_THREADS = 1 << 27  # of rows, read by each trial: a pass over less ends before they help


@dataclass
class Trial:
    """A machine with settings of its own, and what it has reached."""

    machine: Any
    training: PlaneTraining
    left_out: int = NO_PART  # the part of the rows that it does not visit


def new_trial(
    machine: Any,
    settings: dict[str, Any],
    data: TrainingData,
    labels: Array,
    seed: int,
    parts: Array,
    left_out: int = NO_PART,
    members: Array | None = None,
) -> Trial:
    """A machine like this one with other settings, before its first pass.

    Who makes several that leave out the same may give them their `members`.
    """
    own = data._replace(rows=with_own_page(data.rows))
    if members is None:
        members = members_of(data, parts, left_out)
    made, training = begun_like(machine, settings, own, labels, seed, members)
    return Trial(made, training, left_out)


def members_of(data: TrainingData, parts: Array, left_out: int) -> Array:
    """The rows that a trial visits."""
    members = weighty(in_place(parts.size), data.weights)
    return members if left_out == NO_PART else members[parts[members] != left_out]


def count_passes(trials: Sequence[Trial]) -> int:
    """How many passes the longest of them makes."""
    return max(
        passes_of(trial.machine, course.n_rows)
        for trial in trials
        for course in trial.training.courses
    )


def fit_a_pack(trials: Sequence[Trial]) -> bool:
    """Whether they are trained by one reading, so that those of one mind cost no more than one."""
    models = range(len(trials[0].training.models))
    return all(_fits_a_pack(trial, k) for trial in trials for k in models)


def wrong_rows(trial: Trial, data: TrainingData, rows: Array) -> Array:
    """Which of these rows it gets wrong."""
    return wrong_rows_of(trial.machine, trial.training, data, rows)


def become_fitted(trial: Trial, reader: Any, data: TrainingData, X: Any) -> Any:
    """The machine of a trial of all rows as its own fit would leave it; `reader` has read X."""
    machine, training = trial.machine, trial.training
    own = vars(machine)
    own.update({name: value for name, value in vars(reader).items() if name not in own})
    training.rows_seen, training.split_seed = seen_rows(data.labels), training.seed
    training.courses, training.watch = [], EarlyStopping()
    keep_some_rows(machine, X)
    return machine


def pass_together(
    trials: Sequence[Trial], data: TrainingData, parts: Array, n_threads: int, report: Report
) -> None:
    """One pass of all trials over the rows; `parts` is the part of each row."""
    if len(trials) * _count_bytes(data.rows) < BYTES_WORTH_THREADS:
        n_threads = 1
    were_over = [all(course.is_over for course in trial.training.courses) for trial in trials]
    for k in range(len(trials[0].training.models)):
        order = _order(trials, k, data)
        groups = _groups(trials, k, n_threads)
        tasks = [
            partial(
                _visit_as_pack if len(group) > 1 else _visit_alone, group, k, data, parts, order
            )
            for group in groups
        ]
        share_out(tasks, min(n_threads, len(trials)), without_errors(report))
        for trial in (trial for group in groups if len(group) > 1 for trial in group):
            trial.training.courses[k].n_passes += 1
    for trial, was_over in zip(trials, were_over, strict=True):
        trial.machine.n_iter_ += not was_over


def _count_bytes(rows: Any) -> int:
    return sum(part.nbytes for part in rows if isinstance(part, np.ndarray))


def _order(trials: Sequence[Trial], k: int, data: TrainingData) -> Array:
    """The rows of a pass as a fit would mix them: models of one seed mix alike."""
    models = [trial.training.models[k] for trial in trials]
    everything = weighty(in_place(data.labels.size), data.weights)
    order: Array = rows_of(everything, models[0].targets(data))
    if trials[0].machine.shuffle:
        shuffle(order, models[0].generator)
        for model in models[1:]:
            model.generator.bit_generator.state = models[0].generator.bit_generator.state
    return order


def _groups(trials: Sequence[Trial], k: int, n_threads: int) -> list[list[Trial]]:
    """Trials that make a pack, of minds for each thread if there are as many; others are alone.

    Neighbouring alphas that leave out the same rows are together: they may be of one mind, which
    costs no more than one of them. Threads share out minds that part later.
    """
    alone = [[trial] for trial in trials if not _fits_a_pack(trial, k)]
    rest = [trial for trial in trials if _fits_a_pack(trial, k)]
    if not rest:
        return alone
    rest.sort(key=lambda trial: (trial.left_out, -trial.training.models[k].rule.alpha))
    n_bytes = sum(trial.training.models[k].planes.sums.nbytes for trial in rest)
    n_minds = np.cumsum([True, *(not _are_alike(a, b, k) for a, b in pairwise(rest))])
    n_groups = min(int(n_minds[-1]), max(n_threads, -(-n_bytes // MOST_BYTES)))
    shares = n_minds[-1] / n_groups * np.arange(1, n_groups)
    inner = np.searchsorted(n_minds, shares, side="right").tolist()
    return [rest[a:b] for a, b in pairwise([0, *inner, len(rest)])] + alone


def _are_alike(trial: Trial, other: Trial, k: int) -> bool:
    """Whether both leave out the same rows, and seem to have reached the same planes."""
    model, another = trial.training.models[k], other.training.models[k]
    is_close = trial.left_out == other.left_out and model.n_steps == another.n_steps
    lengths, others = model.planes.squared_norms, another.planes.squared_norms
    return is_close and np.array_equal(lengths, others)


def _fits_a_pack(trial: Trial, k: int) -> bool:
    """Whether its steps are those of the hinge loss, without coins and choices kept."""
    rule = trial.training.models[k].rule
    is_plain = isinstance(rule, HingeRule) and rule.clone_probability == 0
    has_choice = trial.training.courses[k].chosen.size > 0
    return is_plain and not has_choice and not has_own_loop(trial.machine)


def _visit_alone(
    trials: Sequence[Trial], k: int, data: TrainingData, parts: Array, order: Array,
    report: Report, hands: Hands,
) -> None:  # fmt: skip
    (trial,) = trials
    course = trial.training.courses[k]
    if not course.is_over:
        kept = order[parts[order] != trial.left_out]
        model, own = trial.training.models[k], data._replace(rows=with_own_page(data.rows))
        pass_by_itself(trial.machine, model, course, own, kept, report)


def _visit_as_pack(
    trials: Sequence[Trial], k: int, data: TrainingData, parts: Array, order: Array,
    report: Report, hands: Hands,
) -> None:  # fmt: skip
    """One reading of the rows for all; rows that nobody visits are not read."""
    if len({trial.left_out for trial in trials}) == 1:
        order = order[parts[order] != trials[0].left_out]
    _visit_by_minds(_minds(trials, k), data, parts, order, report, hands)


def _visit_by_minds(
    minds: "Sequence[_Mind]", data: TrainingData, parts: Array, order: Array, report: Report,
    hands: Hands,
) -> None:  # fmt: skip
    """Visit what is left, which is cut where something is due for a mind.

    Half of the minds are given to a thread that has nothing to do, if that is worth it.
    """
    pack = _Pack(minds, data, parts, order)
    n_rows = max(ROWS_BETWEEN_LOOKS, order.size // LOOKS) if hands.are_several else 0
    while pack.is_amid:
        if hands.are_idle and pack.is_worth_sharing:
            own, others = pack.shared()
            hands.give(partial(_visit_by_minds, others, data, parts, order))
            pack = _Pack(own, data, parts, order)
        before = pack.n_steps
        pack.visit_some(n_rows)
        report(pack.n_steps - before, pack.n_planes, np.nan)
    pack.unpack()


@dataclass
class _Mind:
    """Models that have reached the same: the first has it, the others follow in the end."""

    models: list[PlaneModel]  # the largest alpha first
    walk: Walk
    left_out: int
    due: Due = NOTHING_DUE
    n_visited: int = 0  # rows of this pass, before it came to its pack

    @property
    def lead(self) -> PlaneModel:
        """The model whose planes are trained."""
        return self.models[0]

    def takes(self, model: PlaneModel, left_out: int) -> bool:
        """Whether a model has reached the same, to the bit."""
        own, planes = _past(self.lead, self.left_out), self.lead.planes
        return own == _past(model, left_out) and same_bits(planes, model.planes)


def _past(model: PlaneModel, left_out: int) -> tuple[Any, ...]:
    """What models of one mind have in common besides planes: all but alpha."""
    rule = model.rule._replace(alpha=0)
    return left_out, rule, model.n_steps, model.mistakes_noted, model.history


def _minds(trials: Sequence[Trial], k: int) -> list[_Mind]:
    """The models number k of all trials, those of one mind together."""
    minds: list[_Mind] = []
    for trial in sorted(trials, key=lambda trial: -trial.training.models[k].rule.alpha):
        model = trial.training.models[k]
        for mind in minds:
            if mind.takes(model, trial.left_out):
                mind.models.append(model)
                break
        else:
            minds.append(_Mind([model], walk_of(trial.machine), trial.left_out))
    return minds


def _follow(model: PlaneModel, lead: PlaneModel) -> None:
    """Reach what another has reached."""
    model.planes, model.n_steps = copied(lead.planes), lead.n_steps
    model.history, model.mistakes_noted = list(lead.history), lead.mistakes_noted


class _Pack:
    """Minds in one record, and what each of them is due to do."""

    def __init__(
        self, minds: Sequence[_Mind], data: TrainingData, parts: Array, order: Array
    ) -> None:
        self.minds, self.parts, self.order = list(minds), parts, order
        self.data = data._replace(rows=with_own_page(data.rows))
        self.targets, self.at_hand = self.minds[0].lead.targets(data), no_rows_at_hand()
        self.record = new_minds(sum(len(mind.models) for mind in minds))
        for m, mind in enumerate(self.minds):
            mind.lead.planes = with_room_for(mind.lead.planes, MOST_BIRTHS)
            self.record.left_out[m], self.record.n_steps[m] = mind.left_out, mind.lead.n_steps
            self.record.n_visited[m] = mind.n_visited
            self._set_alphas(m)
            self._plan(m)
        self._lay_out()

    @property
    def n_steps(self) -> int:
        """Steps of all models."""
        return int((self.record.n_steps * self.record.n_alphas).sum())

    @property
    def n_planes(self) -> int:
        """Planes of all models."""
        return sum(len(mind.models) * count_planes(mind.lead.planes) for mind in self.minds)

    @property
    def n_done(self) -> int:
        """Rows that all minds have visited."""
        return int(self.record.n_visited[: len(self.minds)].min())

    @property
    def is_amid(self) -> bool:
        """Whether there are rows left to visit."""
        return self.n_done < self.order.size

    @property
    def is_worth_sharing(self) -> bool:
        """Whether two packs of half the minds each would soon be done with what they cost."""
        n_minds = len(self.minds)
        return n_minds > 1 and n_minds * (self.order.size - self.n_done) >= VISITS_WORTH_SHARING

    def shared(self) -> tuple[list[_Mind], list[_Mind]]:
        """Every other mind, and the others, to go on from here in packs of their own."""
        for m, mind in enumerate(self.minds):
            self._take_note(m)
            mind.n_visited = int(self.record.n_visited[m])
        return self.minds[::2], self.minds[1::2]

    def _lay_out(self) -> None:
        """Places for all models, in which each mind has room to grow once at least."""
        self.n_lanes = LANES + max(mind.lead.planes.owner.size for mind in self.minds)
        self.planes = new_pack(self.minds[0].lead.planes, self.record.n_alphas.size, self.n_lanes)
        for m in range(len(self.minds)):
            self._put_in_place(m)

    def _put_in_place(self, m: int) -> None:
        lead = self.minds[m].lead
        lead.planes = place_in_pack(self.planes, self.record, m, lead.planes)

    def _set_alphas(self, m: int) -> None:
        alphas = [model.rule.alpha for model in self.minds[m].models]
        self.record.alphas[m, : len(alphas)], self.record.n_alphas[m] = alphas, len(alphas)

    def _plan(self, m: int) -> None:
        """What is due next of a mind: the loop makes notes by itself up to where it must act."""
        mind, steps = self.minds[m], list[int]()
        act = mind.walk.due(mind.lead.n_steps)
        for note in records_after(mind.lead.n_steps):
            if note >= act or len(steps) == MOST_NOTES:
                break
            steps.append(note)
        plan_notes(self.record, m, steps)
        mind.due = Due(act, note)
        self.record.last_step[m] = min(mind.due)

    def visit_some(self, n_rows: int) -> None:
        """Visit rows up to where something is due for a mind, and do it; at most so many, or 0."""
        rule = self.minds[0].lead.rule
        order = self.order[: self.n_done + n_rows] if n_rows else self.order
        has_room = hinge_epoch_of_pack(
            self.data.rows, self.targets, self.parts, order, self.planes, self.record,
            self.at_hand, rule.grows_rivals,
        )  # fmt: skip
        if not has_room:
            self.at_hand = with_more_entries(self.at_hand)
        for m in np.flatnonzero(self.record.is_due).tolist():
            self._take_note(m)
            if self.record.n_violated[m]:
                self._part(m)
            else:
                self._attend(m)
            self._plan(m)
        if max(mind.lead.planes.owner.size for mind in self.minds) > self.n_lanes:
            self._lay_out()

    def _take_note(self, m: int) -> None:
        """Let the model know how far it has come, and what the loop has noted on the way."""
        lead = self.minds[m].lead
        for n_steps, counts in noted(self.record, m):
            lead.note_at(n_steps, counts)
        lead.n_steps = int(self.record.n_steps[m])

    def _attend(self, m: int) -> None:
        """Do what is due for a mind."""
        mind, before = self.minds[m], self.minds[m].lead.planes
        attend(mind.lead, mind.walk, mind.due, lacks_room(before), NO_CHOICE)
        if mind.lead.planes is not before and mind.lead.planes.owner.size <= self.n_lanes:
            self._put_in_place(m)

    def _part(self, m: int) -> None:
        """Two minds of one: the next row violates the margins of its larger alphas only."""
        mind, n, new = self.minds[m], int(self.record.n_violated[m]), len(self.minds)
        self.minds.append(_Mind(mind.models[n:], mind.walk, mind.left_out))
        del mind.models[n:]
        _follow(self.minds[new].lead, mind.lead)
        for of_mind in (self.record.left_out, self.record.n_steps, self.record.n_visited):
            of_mind[new] = of_mind[m]
        self._put_in_place(new)
        for each in (m, new):
            self._set_alphas(each)
        self._plan(new)

    def unpack(self) -> None:
        """Give the models what they have reached."""
        for m, mind in enumerate(self.minds):
            self._take_note(m)
            for model in reversed(mind.models):  # the lead's own planes at last
                _follow(model, mind.lead)
