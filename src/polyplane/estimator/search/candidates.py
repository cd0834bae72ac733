"""How a fit finds its settings: candidates tried on some of its rows.

First come maps of the columns, each with a first guess and with a linear model; then neighbours of
the winner. A trial is judged by the loss of its calibrated probabilities on rows that took no part
in it, which is steadier than their error. Few rows are held out several times.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import Array
from polyplane.engine.rows.storage import packed
from polyplane.estimator.planes.hyperplane_classifier import stratified
from polyplane.estimator.progress import Report
from polyplane.estimator.search.halving import KEPT, Judgement, best_candidate, calibrated
from polyplane.estimator.validation import TrainingData
from polyplane.model.column_maps import KINDS, ColumnMap, column_map
from polyplane.model.decomposition import Decomposition

__all__ = ["Trials"]

MOST_ROWS = 20_000  # to train a trial on
MOST_ROWS_OF_MANY_CLASSES = 10_000
FEW_ROWS = 3_000  # below, they are held out N_SPLITS times
N_SPLITS = 3
FEW_CLASSES = 4  # are tried on more rows
MOST_PLANES, MOST_PLANES_OF_WIDE = (64, 1_280), (16, 640)  # of a class, and of all, at first
MOST_PAIRED = 20  # classes that are taken in pairs
FIRST_RUNGS, SECOND_RUNGS = (6, 18), (12, 40)  # passes; the last are those of a fit
HANDICAPS = {"plain": 1.0, "rank": 1.05, "knots": 1.1}  # of losses: more features learn faster at
# first and overfit later, and they cost more to predict with
LINEAR = {"n_planes": 1, "step_size": 0.03}
STEP_SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
Setting = dict[str, Any]


class Split(NamedTuple):
    """What one trial is trained on, and judged by."""

    data: TrainingData  # rows held out have no weight
    members: Array
    held_out: Array
    kind: str  # of the map of the columns
    columns: ColumnMap
    centres: dict[Any, Array]  # of classes, found by trials of the same split


# trains by settings and returns the scores of the rows held out, and the places of their classes
TryOut = Callable[[Setting, Split, Report], tuple[Array, Array]]


class Trials:
    """Candidates for the settings of a machine, and the rows on which they are tried."""

    SEARCHED = ("columns", "n_planes", "start_scale", "step_size")

    def __init__(
        self, machine: Any, data: TrainingData, members: Array, labels: Array, seed: int
    ) -> None:
        self.machine, self.labels, self.seed = machine, labels, seed
        n_most = MOST_ROWS if labels.size <= FEW_CLASSES else MOST_ROWS_OF_MANY_CLASSES
        chosen = np.sort(np.random.default_rng(seed).permutation(members)[:n_most])
        self.is_sample = chosen.size < members.size
        weights = data.weights[chosen] if data.weights.size else np.ones(chosen.size, np.float32)
        self.data = TrainingData(packed(data.rows, chosen), data.labels[chosen], weights)
        order, share = in_place(chosen.size), machine.validation_fraction
        self.splits = [
            stratified(order, self.data.labels, share, seed + k)
            for k in range(N_SPLITS if chosen.size < FEW_ROWS else 1)
        ]
        self.maps = self._maps(order)
        self.centres: dict[Any, dict[Any, Array]] = {}
        self.first_guess = self._first_guess()

    def _maps(self, order: Array) -> dict[str, ColumnMap]:
        """Those maps of the columns that differ."""
        machine = self.machine
        kinds = KINDS if machine.columns == "auto" else (machine.columns,)
        rows, n_columns = self.data.rows, machine.n_features_in_
        maps = {k: column_map(rows, order, n_columns, k, may_leave_out=True) for k in kinds}
        if not any(columns.has_knots for columns in maps.values()):
            kind = next(iter(maps))
            return {kind: maps[kind]}
        return maps

    def _first_guess(self) -> Setting:
        kind, columns = next(iter(self.maps.items()))
        is_wide = columns.table is None
        is_paired = is_wide and 2 < self.labels.size <= MOST_PAIRED
        return {
            "columns": kind,
            "init": "kmeans" if is_wide else "subset",
            "multi_class": "ovo" if is_paired else "joint",
            "n_planes": self._first_planes(is_wide),
            "start_scale": 3.0,
            "step_size": 0.3,
        }

    def _first_planes(self, is_wide: bool) -> int:
        of_class, of_all = MOST_PLANES_OF_WIDE if is_wide else MOST_PLANES
        return int(np.clip(of_all // self.labels.size, 2, of_class))

    def _first_round(self) -> list[Setting]:
        guesses = [self.first_guess | {"columns": kind} for kind in self.maps]
        return [*guesses, *(guess | LINEAR for guess in guesses if self._is_open(LINEAR))]

    def _second_round(self, best: Setting) -> list[Setting]:
        n_planes, place = best["n_planes"], STEP_SIZES.index(best["step_size"])
        changes: list[Setting] = [{}, *({"step_size": STEP_SIZES[place + k]} for k in (-1, 1))]
        if n_planes > 1:
            changes += [{"n_planes": n_planes * 2}, {"start_scale": 1.0}]
            if not self.is_sample:  # more rows than are tried here carry more planes, not fewer
                changes.append({"n_planes": n_planes // 4})
        return [best | change for change in changes if self._is_open(change)]

    def _is_open(self, change: Setting) -> bool:
        """Whether the user has left open what is to be changed."""
        return all(getattr(self.machine, name) == "auto" for name in change)

    def run(self, try_out: TryOut, n_threads: int, report: Report) -> tuple[Setting, float]:
        """The best setting, and the factor that calibrates its scores."""

        def judge(setting: Setting, n_passes: int, report: Report) -> Judgement:
            return self.judge(try_out, setting, n_passes, report)

        first, _ = best_candidate(judge, self._first_round(), FIRST_RUNGS, n_threads, report)
        best, judgement = best_candidate(
            judge, self._second_round(first), SECOND_RUNGS, n_threads, report
        )
        return best, judgement.calibration

    def count_steps(self) -> int:
        """About how many steps all trials make together."""
        kind = self.machine.multi_class
        kind = self.first_guess["multi_class"] if kind == "auto" else kind
        n_problems = len(Decomposition(kind, "vote", self.labels).problems())
        visits = 2 * n_problems / max(2, self.labels.size) if kind == "ovo" else n_problems
        passes = 0
        for rungs, n_candidates in ((FIRST_RUNGS, 2 * len(self.maps)), (SECOND_RUNGS, 6)):
            for place, n_passes in enumerate(rungs):
                passes += n_passes * -(-n_candidates // KEPT**place)
        return int(visits * passes * sum(members.size for members, _ in self.splits))

    def judge(self, try_out: TryOut, setting: Setting, n_passes: int, report: Report) -> Judgement:
        """Train with a setting, and look at the rows held out."""
        settings = setting | {"max_iter": n_passes}
        judgements = [
            calibrated(*try_out(settings, self.split(setting, place), report))
            for place in range(len(self.splits))
        ]
        loss, log_factor = np.mean([(loss, np.log(factor)) for loss, factor in judgements], axis=0)
        handicap = HANDICAPS[setting["columns"]]
        return Judgement(float(loss) * handicap, float(np.exp(log_factor)))

    def split(self, setting: Setting, place: int) -> Split:
        """What a trial of a setting is trained on and judged by."""
        given = self.machine.columns
        kind = setting["columns"] if given == "auto" else given
        members, held_out = self.splits[place]
        weights = self.data.weights.copy()
        weights[held_out] = 0  # not even to start from
        return Split(
            data=self.data._replace(weights=weights),
            members=members,
            held_out=held_out,
            kind=kind,
            columns=self.maps[kind],
            centres=self.centres.setdefault((kind, place), {}),
        )
