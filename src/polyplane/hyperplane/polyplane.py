"""Our own machine: prototype planes trained by cross-entropy on sums of soft maxima.

Problem     minimise  alpha/2 |W|^2 + mean_i log(1 + exp(-lead_i)),  the lead being the own class's
            score over that of all others together, and a class's score the sum over its units of
            the log-sum-exp of their planes
Algorithm   stochastic steps over all planes (`engine/steps/softmax.py` with one unit a class,
            `engine/steps/soft_units.py` with several), from planes that start as prototypes of
            their class (`estimator/search/prototypes.py`); for texts, planes that start from
            zero and follow squared hinges are tried as well (`engine/steps/squared_hinge.py`)
Columns     real ones are standardised and, unless plain, there as ranks and hats as well; 0/1
            columns, texts and images are left alone (`model/input/column_maps.py`). In the end
            all of it is folded into the planes, which then apply to X itself or to two hats a
            column.
Shrinkage   alpha = shrinkage / (step * rows): planes shrink as much in a pass of any fit, so that
            what suits a short one suits a long one.
Margins     start_scale is in units of 1 / margin, the median distance between the scores of the
            best own and the best other prototype, and step_size likewise with 16 prototypes a
            class: so much alike are the steps that then suit different data that few are tried.
Fewer       planes below `FLOOR` in every row of their class for a whole pass are dropped on the
            way; in the end those that decide next to nothing (`estimator/search/compression.py`).
Settings    what is 'auto' is found on held-out rows (`estimator/search/searched_fit.py`), whose
            scores also give the factor that calibrates probabilities. One candidate has a single
            plane per class: multinomial logistic regression.
Streams     the first rows are kept until there are enough to start from; until then planes start
            anew whenever there are twice as many. A class met later starts around its first row.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from polyplane.engine.order import in_place
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import (
    Array,
    count_planes,
    live_lanes,
    sorted_by_owner,
    with_planes,
)
from polyplane.engine.planes.pruning import with_only
from polyplane.engine.rows.storage import (
    Rows,
    count_rows,
    with_own_page,
)
from polyplane.engine.steps.resting import REST, all_awake
from polyplane.engine.steps.soft_units import unit_epoch, unit_starts
from polyplane.engine.steps.softmax import HORIZON, SoftmaxRule, planes_scale, softmax_epoch
from polyplane.engine.steps.squared_hinge import squared_hinge_epoch
from polyplane.engine.targets import rows_of
from polyplane.estimator.fitting.progress import Report, silence
from polyplane.estimator.fitting.side_by_side import for_each
from polyplane.estimator.fitting.thread_safety import reads
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData, weighty
from polyplane.estimator.parameters import (
    at_least,
    between,
    closed,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    register,
)
from polyplane.estimator.planes.stream_start import FirstRows
from polyplane.estimator.planes.training import NO_CHOICE, OwnState, PlaneModel, PlaneTraining
from polyplane.estimator.search.compression import compress_model
from polyplane.estimator.search.prototypes import (
    Prototypes,
    in_units,
    margins_between,
    prototypes_of,
    squared_length_of,
)
from polyplane.estimator.search.searched_fit import SearchedFit, written_out
from polyplane.model.format.checks import need
from polyplane.model.input.column_maps import AS_IS, KINDS, ColumnMap, column_map
from polyplane.model.plane_record import FinishedPlanes
from polyplane.model.prediction import Features, FittedModel

__all__ = ["PolyplaneClassifier"]

ENOUGH = {  # lead of a row's class at which the row is left as it is, by `learn_from`
    "all": math.inf, "most": math.log(0.99 / 0.01), "unsure": math.log(0.9 / 0.1),
}  # fmt: skip
FLOOR = 0.01  # planes with less than this share of the best one on their side stay
MOST_RESTING = 1 << 22  # rows: each model keeps a number of each
FEW = 16  # prototypes of a class, between which the margin is measured that is the unit of steps
FIRST_ROWS = 1_000  # of a stream, from which planes start
AFTER_FIT = 0.1  # of the step of a stream, if it goes on from a fit
IN_STREAM = {
    "n_planes": 16, "start_scale": 3.0, "step_size": 0.3, "columns": "plain", "max_iter": 1,
    "multi_class": "joint", "init": "subset", "units": 1, "shrinkage": 0.0, "learn_from": "unsure",
    "directions": "none", "relevance": 0.0, "loss": "cross-entropy", "n_estimators": 1,
}  # fmt: skip
SPREAD = 0.1  # of the planes of a class that starts from one row, as a share of its length
AUTO = one_of("auto")


@dataclass
class Margins(OwnState):
    """What a model keeps beside its planes: what its lengths and steps are measured in."""

    columns: ColumnMap | None  # those of the training
    margin: float = 1.0  # between classes, of the prototypes from which planes start
    wide_margin: float = 1.0  # the same between few prototypes
    n_units: int = 1  # soft maxima of a class, since it started
    is_squared: bool = False  # whether planes follow squared hinges, since they started


@dataclass
class Start(OwnState):
    """What a training keeps beside its models: what they start from and how they see rows."""

    columns: ColumnMap | None = None  # until the first rows
    calibration: float = 1.0  # factor of class scores that makes them log-odds
    first_rows: FirstRows | None = None  # of a stream
    starts: bool = True  # whether new models start from the rows that they are shown
    centres: dict[Any, Array] = field(default_factory=dict)  # of classes, found by k-means
    margins: dict[Any, tuple[float, float]] = field(default_factory=dict)  # between these


def start_of(training: PlaneTraining) -> Start:
    """What a training of this machine keeps beside its models."""
    start: Start = training.own
    return start


def columns_of(training: PlaneTraining) -> ColumnMap:
    """How a training that has begun maps columns."""
    columns: ColumnMap = training.own.columns
    return columns


@register
class PolyplaneClassifier(SearchedFit):
    """Nonlinear classifier at the price of a linear one, with probabilities and nothing to set.

    Each class is the soft maximum of a few planes. Columns are scaled inside, and what is 'auto'
    is found by the fit itself.
    """

    alpha: float | str = parameter(
        default="auto",
        allowed=either(closed(0, 1e10), AUTO),
        meaning=(
            "Regularisation, the weight of half the squared planes beside the mean loss. 'auto' "
            "is what `shrinkage` says, and 0 in a stream."
        ),
    )
    shrinkage: float | str = parameter(
        default="auto",
        allowed=either(closed(0, 100), AUTO),
        meaning=(
            "Regularisation by what it does: planes shrink by e^-shrinkage in the first pass, and "
            "by less as steps fall. It is what data differ in most: 0.03 for clean data, 1 for "
            "noisy tables. It does nothing if alpha is set."
        ),
    )
    n_planes: int | str = parameter(
        default="auto",
        allowed=either(at_least(1), AUTO),
        meaning="Planes per class; with 1 this is multinomial logistic regression.",
    )
    units: int | str = parameter(
        default="auto",
        allowed=either(at_least(1), AUTO),
        meaning=(
            "A class's planes make so many soft maxima, which are added up: a sum of four of 16 "
            "planes has many more corners than one of 64."
        ),
    )
    n_estimators: int | str = parameter(  # type: ignore[assignment]
        default="auto",
        allowed=either(at_least(1), AUTO),
        meaning=(
            "Models that differ in seed and order of rows; their scores are averaged. 'auto' is "
            "two, or four of tables of several classes and of long trainings; and one if n_planes "
            "is set, of linear models, of images of several classes and in a stream."
        ),
    )
    learn_from: str = parameter(
        default="auto",
        allowed=one_of("auto", *ENOUGH),
        meaning=(
            "Rows that move planes: 'all', those that are not yet right with more than 99% "
            "('most'), which costs less time and no accuracy, or 90% ('unsure'), which suits clean "
            "data such as digits and costs accuracy on noisy tables. From one plane a class, "
            "all rows learn."
        ),
    )
    loss: str = parameter(
        default="auto",
        allowed=one_of("auto", "cross-entropy", "squared-hinge"),
        meaning=(
            "What steps make smaller; 'squared-hinge', of each class against all others, is for "
            "linear models of texts (n_planes=1), and 'auto' tries it there."
        ),
    )
    init: str = parameter(
        default="auto",
        allowed=one_of("auto", "kmeans", "subset"),
        meaning=(
            "Prototypes from which planes start: centres of k-means, or rows drawn at random, "
            "which costs nothing. 'auto' is k-means for data that are left as they are, such as "
            "images and texts, where it pays."
        ),
    )
    columns: str = parameter(
        default="auto",
        allowed=one_of("auto", AS_IS, *KINDS),
        meaning=(
            "What real columns become: standardised ('plain'), that and their ranks ('rank'), that "
            "and eight hat functions along them ('knots'), or hats at up to 128 knots ('fine'); "
            "unless plain, columns of 3 to 8 values become categories. Columns of 0 and 1 are left "
            "as they are. 'as-is' leaves all columns alone; 'auto' does so with data in which many "
            "columns are of one kind and without a sign, such as texts and images."
        ),
    )
    directions: str = parameter(
        default="auto",
        allowed=one_of("auto", "none", "principal"),
        meaning=(
            "'principal' gives planes the principal directions of real columns as well, mapped "
            "like columns: for columns that say more together than alone, such as length, width "
            "and depth. Plain columns have none."
        ),
    )
    relevance: float | str = parameter(
        default="auto",
        allowed=either(closed(0, 4), AUTO),
        meaning=(
            "Columns count by what they were worth to a first training, to this power: with 0 all "
            "alike, with 1 or 2 planes spend themselves on columns that matter. Images, texts and "
            "streams are left alone."
        ),
    )
    max_iter: int | str = parameter(
        default="auto",
        allowed=either(at_least(1), AUTO),
        meaning=(
            "Passes over the rows; 'auto' makes 40, fewer where there are many rows, and up to 120 "
            "where they are found to be worth it."
        ),
    )
    start_scale: float | str = parameter(
        default="auto",
        allowed=either(positive(), AUTO),
        meaning="Length of the planes at the start, in units that suit the data.",
    )
    step_size: float | str = parameter(
        default="auto",
        allowed=either(positive(), AUTO),
        meaning="First step, in units that suit the data; noisy data want less, clean ones more.",
    )
    temperature: float = parameter(
        default=1.0,
        allowed=positive(),
        meaning=(
            "Softness of the maximum at the end of a fit, 1 being that of its start: below 1, "
            "planes share their rows less and less."
        ),
    )
    compress: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning="Remove planes that the fit turns out not to need: prediction costs planes.",
    )
    multi_class: str = parameter(
        default="auto",
        allowed=one_of("auto", "joint", "ovr", "ovo"),
        meaning=(
            "More than two classes by one model of all ('joint'), one of each class against the "
            "rest ('ovr') or one of each pair ('ovo'). 'auto' takes each against the rest for "
            "images and other wide data of up to 20 classes, finds out for tables, and takes "
            "'joint' in a stream."
        ),
    )
    combine: str = parameter(
        default="soft",
        allowed=one_of("soft", "vote", "margin"),
        meaning=(
            "How pairs of classes decide: by their probabilities, by one vote each, or by their "
            "margins, cut to [-1, 1] and added."
        ),
    )
    average: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning=(
            "In a stream, predict with the mean of the planes over all steps, later ones weighing "
            "more. The steps of `fit` end at 0: it needs no mean."
        ),
    )
    search: bool = parameter(
        default=True,
        allowed=is_flag(),
        meaning=(
            "Find what is 'auto' on held-out rows, and calibrate probabilities on them. Without, "
            "first guesses are taken: several times faster, and good enough for a first look."
        ),
    )
    validation_fraction: float = parameter(
        default=0.2,
        allowed=between(0, 1),
        meaning="Share of the rows held out by early stopping and to find what is 'auto'.",
    )

    # ---- steps -----------------------------------------------------------------------------

    def _is_soft(self) -> bool:
        return True

    def _least_planes(self, n_codes: int) -> int:
        return max(int(self._setting("n_planes")), self._n_units()) * n_codes

    def _n_units(self) -> int:
        """One plane a class is one unit."""
        n_planes = int(self._setting("n_planes"))
        return min(int(self._setting("units")), n_planes)

    def _follows_squared_hinges(self) -> bool:
        return self._setting("loss") == "squared-hinge" and int(self._setting("n_planes")) == 1

    def _keeps_average(self, training: PlaneTraining) -> bool:
        return bool(self.average) and start_of(training).first_rows is not None

    def _alpha_of(self, model: PlaneModel) -> float:
        return 0.0 if self.alpha == "auto" else float(self.alpha)

    def _starts_from_rows(self) -> bool:
        return True

    def _first_choice(self, data: TrainingData) -> Array:
        """Who rests: rows that are surely right, if those that are right are left alone."""
        is_large = data.labels.size > MOST_RESTING
        if self._setting("learn_from") != "unsure" or self._setting("n_planes") == 1 or is_large:
            return NO_CHOICE
        return all_awake(data.labels.size)

    def _begin(self, model: PlaneModel, n_steps: int) -> None:
        """Rates of the steps to come; of a stream, whose length nobody knows, without n_steps."""
        if model.rule is not None:  # let V be W, so that another rule can go on from here
            scale = planes_scale(model.rule, model.n_steps)
            model.planes.sums[:] *= scale
            model.planes.timed_sums[:] *= scale
        step = float(self._setting("step_size")) / model.own.wide_margin
        step /= math.sqrt(model.own.n_units)  # each plane gets a larger share of each row
        if n_steps > 0 and self.alpha == "auto":
            n_rows = n_steps / int(self._setting("max_iter"))
            model.alpha = float(self._setting("shrinkage")) / (step * n_rows)
        if n_steps == 0 and model.rule is not None:  # small ones, as at the end of the fit
            step *= AFTER_FIT / math.sqrt(1 + model.n_steps / HORIZON)
        is_linear = self._setting("n_planes") == 1
        model.rule = SoftmaxRule(
            step=step,
            alpha=model.alpha,
            start=model.n_steps,
            n_steps=n_steps,
            sharpness=1 / float(self.temperature),
            enough=ENOUGH["all" if is_linear else self._setting("learn_from")],
            floor=FLOOR,
        )

    def _rule(self, model: PlaneModel) -> SoftmaxRule | None:
        rule: SoftmaxRule | None = model.rule  # made by `_begin`
        return rule

    def _rule_like(self, model: PlaneModel) -> SoftmaxRule:
        return SoftmaxRule(0.0, 0.0, 0, 0, 0.0, 0.0, 0.0)

    def _steps(self, model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
        n_steps: int
        n_units = model.own.n_units
        visited = data.rows, model.targets(data), order, model.planes
        if model.own.is_squared:
            n_steps = squared_hinge_epoch(*visited, model.rule, model.n_steps)
        elif n_units == 1:
            n_steps = softmax_epoch(*visited, model.rule, chosen, model.n_steps)
        else:
            starts = unit_starts(model.planes, n_units * (int(model.codes.max()) + 1))
            n_steps = unit_epoch(*visited, starts, n_units, model.rule, chosen, model.n_steps)
        return n_steps

    def _end_pass(
        self, model: PlaneModel, data: TrainingData, n_passes: int, order: Array, chosen: Array
    ) -> bool:
        """Drop planes that had next to nothing of any row in the pass: they will not come back.

        Where rows rest, it takes some passes until all have been asked.
        """
        if chosen.size == 0 or n_passes % (1 + REST) == 1:
            self._end_pass_of_all(model)
        return False

    # ---- rounds of several learners --------------------------------------------------------

    _writes_rows_out = True

    def _view_of_sample(
        self, training: PlaneTraining, data: TrainingData, is_all: bool
    ) -> TrainingData:
        seen = self._training_view(training, data)
        if is_all or columns_of(training).used is None:
            return seen
        _take_all_columns(training)  # other rows may use any
        return self._training_view(training, data)

    def _mean_weight(self, weights: Array, n_rows: Array) -> float:
        has_weight = weights > 0
        return float(np.average(weights[has_weight], weights=n_rows[has_weight]))

    def _scale_of(self, model: PlaneModel) -> float:
        return 1.0 if model.rule is None else float(planes_scale(model.rule, model.n_steps))

    def _schedule(self, model: PlaneModel, n_rows: int, n_done: int, n_parts: int) -> None:
        start, n_steps = model.n_steps - n_done * n_rows, n_parts * n_rows
        if (start, n_steps) != (model.rule.start, model.rule.n_steps):
            scale = self._scale_of(model)
            model.rule = model.rule._replace(start=start, n_steps=n_steps)
            model.planes.sums[:] *= np.float32(scale / self._scale_of(model))

    def _end_pass_of_all(self, model: PlaneModel) -> None:
        if model.own.is_squared:
            return
        lanes = live_lanes(model.planes)
        shares, owner = model.planes.largest_shares[lanes], model.planes.owner[lanes]
        is_used = shares > FLOOR
        if model.own.n_units > 1:  # an empty unit would add nothing that can be compared
            is_used |= shares == _largest_of_each(shares, owner)[owner]
        model.planes.largest_shares[:] = 0
        if self.compress and not is_used.all():
            model.planes = with_only(model.planes, lanes[is_used])

    # ---- start -----------------------------------------------------------------------------

    def _own_of_model(self, training: PlaneTraining) -> Margins:
        return Margins(columns_of(training))

    def _own_of_training(self) -> Start:
        return Start(calibration=vars(self).get("_calibration", 1.0))

    def _features_of(self, training: PlaneTraining) -> int:
        return int(columns_of(training).n_features)

    def _weighed(self, data: TrainingData) -> TrainingData:
        """Weights of mean 1: their unit must not change the steps."""
        has_weight = data.weights > 0
        if not has_weight.any():
            return data
        mean = data.weights[has_weight].mean(dtype=np.float64)
        return data._replace(weights=(data.weights / mean).astype(np.float32))

    def _training_view(self, training: PlaneTraining, data: TrainingData) -> TrainingData:
        start, n_columns = start_of(training), width_of(self)
        if start.columns is None:
            members = weighty(in_place(count_rows(data.rows)), data.weights)
            kind = self._setting("columns")
            is_whole = start.first_rows is None  # a stream may come to any column
            is_known = is_whole or self.columns != "auto"  # a search has found what they are
            turns = self._setting("directions") == "principal"
            columns = column_map(data.rows, members, n_columns, kind, is_whole, is_known, turns)
            start.columns = self._weighed_columns(columns)
        start.columns = start.columns.widened(n_columns)
        if not start.columns.knows(data.rows):
            _take_all_columns(training)
        return written_out(start.columns, data)

    def _introduce(self, model: PlaneModel, training: PlaneTraining, data: TrainingData) -> None:
        model.own.columns = columns_of(training)
        super()._introduce(model, training, data)
        is_to_start = start_of(training).starts and count_planes(model.planes) == 0
        if is_to_start and model.visits(data).any():
            self._start(model, training, data)

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        """Nothing yet: `_introduce` starts all classes of a model together."""

    def _start(self, model: PlaneModel, training: PlaneTraining, data: TrainingData) -> None:
        members = np.flatnonzero(model.visits(data))
        codes = np.unique(model.codes[data.labels[members]])
        n_planes = int(self._setting("n_planes"))
        init = self._setting("init")
        centres = start_of(training).centres
        made = prototypes_of(model, data, members, codes, n_planes, init, centres)
        margins: Margins = model.own
        known = start_of(training).margins
        key = (*model.codes.tolist(), n_planes, init, model.seed)
        if key not in known:
            known[key] = margins_between(model, data, members, made, FEW)
        margins.margin, margins.wide_margin = known[key]
        n_units = margins.n_units = self._n_units()
        if self._follows_squared_hinges():
            margins.is_squared = True
            margins.wide_margin = squared_length_of(model, data, members)
            made = made._replace(planes=np.zeros_like(made.planes))
        scale = np.float32(float(self._setting("start_scale")) / margins.margin / n_units)
        made = in_units(made, n_units)
        model.planes = with_planes(model.planes, made.owner, made.planes * scale)

    def _start_from(
        self, training: PlaneTraining, columns: ColumnMap, centres: Any, margins: Any
    ) -> None:
        start = start_of(training)
        start.columns, start.centres, start.margins = columns, centres, margins

    def _columns_of(self, training: PlaneTraining) -> ColumnMap:
        return columns_of(training)

    # ---- end -------------------------------------------------------------------------------

    def _finish(self, model: PlaneModel) -> FinishedPlanes:
        seen = self._finish_as_seen(model)
        return seen._replace(sums=model.own.columns.folded(seen.sums, model.constant))

    def _finish_as_seen(self, model: PlaneModel) -> FinishedPlanes:
        lanes = live_lanes(model.planes)
        sums = mean_sums(model.planes, model.n_steps)[: model.n_features + 1, lanes]
        owner, ones = model.planes.owner[lanes], np.ones(lanes.size, np.float32)
        return FinishedPlanes(sums * self._scale_of(model), owner, ones, model.own.n_units)

    def _prediction_rows(self, training: PlaneTraining, rows: Any) -> Rows:
        seen: Rows = columns_of(training).for_prediction(rows._replace(constant=np.float32(1)))
        return seen

    def _features(self, training: PlaneTraining) -> Features:
        return Features(1.0, columns=columns_of(training).of_prediction())

    def _by_column(self, training: PlaneTraining, planes: Array) -> Array:
        columns = columns_of(training)
        if columns.used is None:
            return planes
        spread: Array = columns.spread(np.vstack([planes[:, 0], planes.T]))[1:].T
        return spread

    def _calibration_of(self, training: PlaneTraining) -> float:
        return start_of(training).calibration

    def _own_of_fitted(self, model: FittedModel) -> Start:
        features: Any = model.features
        record: Any = model.record
        return Start(features.columns if features else None, record.calibration)

    def _take_features(self, model: FittedModel) -> None:
        is_mapped = model.features is not None and model.features.columns is not None
        need(is_mapped, "features are of another machine")
        self._calibration = model.record.calibration  # type: ignore[union-attr]

    def _complete(self, training: PlaneTraining, data: TrainingData, members: Array) -> None:
        start_of(training).centres, start_of(training).margins = {}, {}
        if self.compress:
            models, n_threads = training.models, effective_n_jobs(self.n_jobs)
            views = [data._replace(rows=with_own_page(data.rows)) for _ in models]

            def compress(k: int, report: Report) -> None:
                model = models[k]
                compress_model(model, views[k], members, self._scale_of(model), model.own.n_units)

            for_each(compress, len(models), n_threads, silence)

    # ---- what users ask --------------------------------------------------------------------

    @property
    def settings_(self) -> dict[str, Any]:
        """What was set, or found where it was 'auto'."""
        check_is_fitted(self)
        settings = {name: self._setting(name) for name in IN_STREAM}
        columns = start_of(self._training).columns
        if columns is not None and columns.is_as_is:  # as a stream finds out by itself
            settings["columns"] = AS_IS
        return settings

    # ---- probabilities ---------------------------------------------------------------------

    @reads
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class."""
        return self._record().probabilities(*self._read(X))

    @reads
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class."""
        return self._record().log_probabilities(*self._read(X))

    # ---- streams ---------------------------------------------------------------------------

    def _check_streamable(self) -> None:
        if not self._found:
            self._found = dict(IN_STREAM)
            self._calibration = 1.0

    def _meet_chunk(
        self, data: TrainingData, labels: Array, members: Array
    ) -> tuple[TrainingData, Array]:
        if not self._training.models:
            start_of(self._training).first_rows = FirstRows(FIRST_ROWS)
        first = start_of(self._training).first_rows
        if first is not None and not first.is_full:
            n_before, first = first.n_rows, first.copied()  # of bad input nothing must be left
            first.take(data, members)
            n_first = first.last_start()
            if n_first > n_before:
                self._training = self._started_anew(first.data(n_first), labels)
                members = members[n_first - n_before :]
            if first.is_full:
                first.forget()
        start = start_of(self._training)
        start.starts = False
        if start.columns is not None and start.columns.used is not None:
            start.columns = start.columns.widened(width_of(self))
            _take_all_columns(self._training)
        view = self._training_view(self._training, data)
        self._meet(self._training, labels, view)
        start.first_rows = first
        return view, members

    def _started_anew(self, data: TrainingData, labels: Array) -> PlaneTraining:
        """A training that has visited these rows, from which it starts."""
        training = self._new_training(self._training.seed)
        start_of(training).first_rows = start_of(self._training).first_rows
        view = self._training_view(training, data)
        self._meet(training, labels, view)
        for model in training.models:
            order = rows_of(in_place(view.labels.size), model.targets(view))
            self._follow(model, view, order, silence)
        return training

    def _follow(self, model: PlaneModel, data: TrainingData, order: Array, report: Report) -> None:
        """Visit rows; a class without planes starts at its first row."""
        done = 0
        while done < order.size:
            has_planes = np.zeros(model.codes.max() + 1, bool)
            has_planes[model.planes.owner[live_lanes(model.planes)] // model.own.n_units] = True
            is_new = ~has_planes[model.codes[data.labels[order[done:]]]]
            n_known = int(np.argmax(is_new)) if is_new.any() else is_new.size
            if n_known == 0:
                self._start_late(model, data, int(order[done]))
            elif model.rule is None or model.rule.n_steps > 0:
                self._begin(model, 0)
            super()._follow(model, data, order[done : done + n_known], report)
            done += n_known

    def _start_late(self, model: PlaneModel, data: TrainingData, row: int) -> None:
        """Planes around the row, for its class."""
        code = int(model.codes[data.labels[row]])
        made = prototypes_of(model, data, np.array([row]), np.array([code]), 1, "subset")
        length = np.linalg.norm(made.planes[0, 1:])
        if count_planes(model.planes) == 0:
            model.own.margin = model.own.wide_margin = float(length**2) or 1.0
            model.own.n_units = self._n_units()
        generator = np.random.default_rng([model.seed, code])
        n_planes = int(self._setting("n_planes"))
        noise = generator.standard_normal((n_planes, made.planes.shape[1]))
        noise *= SPREAD * length / math.sqrt(noise.shape[1])
        noise[:, 0] = 0
        scale = float(self._setting("start_scale")) / model.own.margin / model.own.n_units
        if model.rule is not None:
            scale /= planes_scale(model.rule, model.n_steps)
        planes = (scale * (made.planes + noise)).astype(np.float32)
        made = in_units(Prototypes(planes, np.full(n_planes, code)), model.own.n_units)
        model.planes = sorted_by_owner(with_planes(model.planes, made.owner, made.planes))


def _largest_of_each(shares: Array, owner: Array) -> Array:
    """The largest share in each unit."""
    largest = np.zeros(owner.max() + 1, shares.dtype)
    np.maximum.at(largest, owner, shares)
    return largest


def _take_all_columns(training: PlaneTraining) -> None:
    """Give features to columns that the fit did not meet, whose planes are 0 there."""
    columns = columns_of(training)
    start_of(training).columns = columns.with_all_columns()
    for model in training.models:
        timed = model.planes.timed_sums
        model.planes = model.planes._replace(
            sums=columns.spread(model.planes.sums),
            timed_sums=columns.spread(timed) if len(timed) else timed,
        )
        model.own.columns = columns_of(training)
        model.n_features = model.own.columns.n_features
