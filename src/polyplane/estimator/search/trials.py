"""Trials of settings: the rows on which they are trained, and those by which they are judged.

Of many rows a trial sees a sample; few are held out several times. A trial is judged by the loss of
its calibrated probabilities on rows that took no part in it, which is steadier than their error. It
goes on from where it stopped, and its rows are mapped once for all that see columns alike.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import packed
from polyplane.estimator.fitting.progress import Report
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.input.stratified import stratified
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.search.halving import Judgement, calibrated
from polyplane.estimator.search.relevance import Worth, mean_worth, weights_of
from polyplane.model.input.column_maps import AS_IS, ColumnMap, can_turn, column_map

__all__ = [
    "FEW_ROWS",
    "N_SPLITS",
    "Begin",
    "Begun",
    "Problem",
    "Setting",
    "Split",
    "Trials",
    "View",
    "view_of",
]

Setting = dict[str, Any]
MOST_ROWS = 20_000  # to train a trial on
MOST_ROWS_OF_MANY_CLASSES = 10_000
SHARE_OF_MANY = 3  # of very many rows one in so many, up to twice as many
FEW_ROWS = 3_000  # below, they are held out N_SPLITS times
N_SPLITS = 3
FEW_CLASSES = 4  # are tried on more rows
MANY_CLASSES = 9  # are not tried with fine columns and directions: dear there, and no better
MOST_KNOTTED = 300  # columns with knots: 2,000 rows with 590 took 42 seconds, and 3 without
LEAST_WEIGHED = 0.5  # of the rows must be tried to tell what columns are worth to all of them
TRIED = "plain", "knots", "fine"  # columns; ranks without hats never won
TURNED = "knots", "fine"  # those that are tried with directions


class View(NamedTuple):
    """Which map of the columns."""

    kind: str
    turns: bool
    power: float = 0.0  # of what columns were worth
    place: int = 0  # of the split in which they were, if that counts


class Split(NamedTuple):
    """What one trial is trained on, and judged by."""

    data: TrainingData  # rows held out have no weight
    members: Array
    held_out: Array
    view: View  # the map of the columns
    columns: ColumnMap
    centres: dict[Any, Array]  # of classes, found by trials of the same split
    margins: dict[Any, tuple[float, float]]  # between these


# makes so many more passes, and returns the scores of the rows held out and the places of their
# classes
GoOn = Callable[[int, Report], tuple[Array, Array]]


class Begun(NamedTuple):
    """A training that goes on whenever it is asked to."""

    go_on: GoOn
    worth: Callable[[], Worth]  # of the columns, to the planes that it has now


Begin = Callable[[Setting, Split, int], Begun]  # the last is the place in an ensemble


class Problem(NamedTuple):
    """What is to be fitted."""

    data: TrainingData
    members: Array  # rows with a weight
    labels: Array
    seed: int
    n_passes: int
    most_passes: int  # of a long training


class Trials:
    """Trials of settings on the same rows, each made once."""

    def __init__(
        self, machine: Any, problem: Problem, begin: Begin, takes_all: bool = False
    ) -> None:
        data, members, labels, seed = problem[:4]
        self.machine, self.labels, self.begin = machine, labels, begin
        n_most = MOST_ROWS if labels.size <= FEW_CLASSES else MOST_ROWS_OF_MANY_CLASSES
        n_most = max(n_most, min(members.size // SHARE_OF_MANY, 2 * n_most))
        n_most = members.size if takes_all else n_most
        chosen = self.chosen = np.sort(np.random.default_rng(seed).permutation(members)[:n_most])
        self.n_rows, self.is_sample = members.size, chosen.size < members.size
        self.has_weights = bool(data.weights.size)
        weights = data.weights[chosen] if self.has_weights else np.ones(chosen.size, np.float32)
        self.data = TrainingData(packed(data.rows, chosen), data.labels[chosen], weights)
        order, share = in_place(chosen.size), machine.validation_fraction
        self.splits = [
            stratified(order, self.data.labels, share, seed + k)
            for k in range(N_SPLITS if chosen.size < FEW_ROWS else 1)
        ]
        self.maps = self._maps(order)
        self.centres: dict[Any, dict[Any, Array]] = {}
        self.margins: dict[Any, dict[Any, tuple[float, float]]] = {}
        self.trials: dict[Any, Trial] = {}
        self.judgements: dict[Any, Judgement] = {}
        self.worth: dict[View, list[Worth]] = {}  # of the columns of a map, in each split

    def _maps(self, order: Array) -> dict[View, ColumnMap]:
        """Those maps of the columns that differ."""
        machine = self.machine
        is_set = machine.columns != "auto"
        rows, n_columns = self.data.rows, width_of(machine)

        def mapped(view: View) -> ColumnMap:
            return column_map(rows, order, n_columns, view.kind, True, is_set, view.turns)

        kinds = [machine.columns] if is_set else self._kinds()
        maps = {view: mapped(view) for view in (View(kind, False) for kind in kinds)}
        if not is_set:
            maps = {k: one for k, one in maps.items() if one.count_knotted() <= MOST_KNOTTED}
        if not any(columns.has_knots for columns in maps.values()):
            view, columns = next(iter(maps.items()))
            return {View(AS_IS, False) if columns.is_as_is else view: columns}
        is_open = machine.directions == "auto" and self.labels.size < MANY_CLASSES
        if is_open or machine.directions == "principal":
            turned = [View(view.kind, True) for view, one in maps.items() if can_turn(one)]
            maps |= {view: mapped(view) for view in turned if is_set or view.kind in TURNED}
        return maps

    def _kinds(self) -> list[str]:
        """Of columns that are tried."""
        has_many = self.labels.size >= MANY_CLASSES
        return [kind for kind in TRIED if kind != "fine" or not has_many]

    def is_table(self) -> bool:
        """Whether columns are mapped, and not left alone."""
        return not next(iter(self.maps.values())).is_as_is

    def is_small_sample(self) -> bool:
        """Whether trials saw too few of the rows to speak for all of them."""
        return self.chosen.size < LEAST_WEIGHED * self.n_rows

    def rows_held_out(self) -> Array:
        """Rows by which trials were judged, by their places in the data of the fit."""
        held_out: Array = np.concatenate([held_out for _, held_out in self.splits])
        return self.chosen[held_out]

    def price(self, setting: Setting) -> float:
        """What a step costs, about."""
        n_entries = self.maps[self.even_view(setting)].count_entries(self.data.rows)
        return float(n_entries * setting["n_planes"])

    def even_view(self, setting: Setting) -> View:
        """The map that a setting gets, but for weights: some columns have no directions."""
        view = view_of(setting)
        return view if view in self.maps else View(view.kind, False)

    def judge(
        self,
        setting: Setting,
        n_passes: int,
        report: Report,
        n_members: int = 1,
        n_threads: int = 1,
        n_splits: int = N_SPLITS,
    ) -> Judgement:
        """Let the trials of a setting go on, and look at the rows held out.

        Members of an ensemble differ by less than settings do: one tells enough to choose.
        """
        places = range(min(n_splits, len(self.splits)))
        key = tuple(sorted(setting.items())), n_passes, n_members, len(places)
        if key not in self.judgements:
            trials = [
                [self._trial(setting, place, member) for member in range(n_members)]
                for place in places
            ]
            flat = [trial for members in trials for trial in members]
            for_each(
                lambda k, report: flat[k].go_to(n_passes, report), len(flat), n_threads, report
            )
            weights = [self._weights_held_out(place) for place in places]
            of_splits = zip(trials, weights, strict=True)
            self.judgements[key] = _joined([_judgement(*of, n_passes) for of in of_splits])
        return self.judgements[key]

    def _weights_held_out(self, place: int) -> Array | None:
        """Of the rows by which a split is judged; None if all count alike."""
        return self.data.weights[self.splits[place][1]] if self.has_weights else None

    def _trial(self, setting: Setting, place: int, member: int) -> "Trial":
        key = tuple(sorted(setting.items())), place, member
        if key not in self.trials:
            self.trials[key] = Trial(self.begin(setting, self.split(setting, place), member))
        return self.trials[key]

    def split(self, setting: Setting, place: int) -> Split:
        """What a trial of a setting is trained on and judged by."""
        view = self.even_view(setting)
        columns, worth = self.maps[view], self.worth.get(view)
        if worth and setting["relevance"]:
            power = float(setting["relevance"])
            view = view._replace(power=power, place=place)
            columns = columns.weighed(weights_of(worth[place], power, columns.n_mapped))
        members, held_out = self.splits[place]
        weights = self.data.weights.copy()
        weights[held_out] = 0  # not even to start from
        return Split(
            data=self.data._replace(weights=weights),
            members=members,
            held_out=held_out,
            view=view,
            columns=columns,
            centres=self.centres.setdefault((view, place), {}),
            margins=self.margins.setdefault((view, place), {}),
        )

    def weigh(self, setting: Setting, n_splits: int = N_SPLITS) -> None:
        """Find out what columns were worth to the trials of a setting."""
        places = range(min(n_splits, len(self.splits)))
        found = [self._trial(setting, place, 0).begun.worth() for place in places]
        self.worth[self.even_view(setting)] = found

    def take_as_worth(self, setting: Setting, worth: Worth) -> None:
        """Let trials of a setting weigh columns by what they were worth elsewhere."""
        self.worth[self.even_view(setting)] = [worth] * len(self.splits)

    def worth_for(self, setting: Setting) -> Worth | None:
        """What columns are worth for a fit with the setting."""
        found = self.worth.get(self.even_view(setting))
        return mean_worth(found) if found else None


def view_of(setting: Setting) -> View:
    """The map of the columns that a setting asks for."""
    return View(setting["columns"], setting["directions"] == "principal")


class Trial:
    """A training with one setting on one split of the rows, and what it made of those held out."""

    def __init__(self, begun: Begun) -> None:
        self.begun, self.n_passes = begun, 0
        self.scores: dict[int, tuple[Array, Array]] = {}  # by number of passes, with classes

    def go_to(self, n_passes: int, report: Report) -> None:
        """Make what is missing of so many passes."""
        if n_passes not in self.scores:
            more, self.n_passes = n_passes - self.n_passes, n_passes
            self.scores[n_passes] = self.begun.go_on(more, report)


def _judgement(members: list[Trial], weights: Array | None, n_passes: int) -> Judgement:
    """Of the mean scores of the members of an ensemble."""
    scores = np.mean([trial.scores[n_passes][0] for trial in members], axis=0)
    return calibrated(scores, members[0].scores[n_passes][1], weights)


def _joined(judgements: list[Judgement]) -> Judgement:
    """Of all splits together."""
    loss = float(np.mean([one.loss for one in judgements]))
    log_factor = np.mean([np.log(one.calibration) for one in judgements])
    losses = np.concatenate([one.losses for one in judgements])
    return Judgement(loss, float(np.exp(log_factor)), losses)
