"""Sums of soft maxima of planes, trained by cross-entropy with given settings.

Problem     minimise  alpha/2 |W|^2 + mean_i log(1 + exp(-margin_i)),  the margin being the score of
            the row's class over that of all other classes together, and the score of a class the
            sum over its units of the log-sum-exp of their planes
Algorithm   stochastic steps over all planes (`engine/steps/softmax.py` with one unit a class,
            `engine/steps/soft_units.py` with several), from planes that start as prototypes of
            their class (`estimator/soft_planes/prototypes.py`). With loss="squared-hinge" a class
            is one plane that starts from zero (`engine/steps/squared_hinge.py`).
Columns     of numbers are standardised and, unless plain, there as ranks and hats as well; columns
            of 0 and 1, texts and images are left alone (`model/input/column_maps.py`). In the end
            the map is folded into the planes, which then apply to X itself or to two hats a
            column.
Shrinkage   alpha = shrinkage / (step * rows): planes shrink as much in a pass of any fit, so that
            what suits a short fit suits a long one.
Margin      start_scale is in units of 1 / margin, the median distance between the scores of the
            best own and the best other prototype, and step_size likewise with 16 prototypes a
            class: in these units few values suit most data.
Relevance   with relevance > 0 a first training measures how important each column is, and the fit
            gives each column a length by that (`estimator/soft_planes/column_weights.py`).
Pruning     planes below `FLOOR` in every row of their class for a whole pass are dropped on the
            way; in the end those that decide next to nothing (`estimator/soft_planes/
            compression.py`).
Streams     the first rows are kept until there are enough to start from; until then planes start
            anew whenever there are twice as many. A class met later starts around its first row.

PolyplaneClassifier (`portfolio/`) trains several of these and adds up their scores.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import count_planes, live_lanes, sorted_by_owner, with_planes
from polyplane.engine.planes.pruning import with_only
from polyplane.engine.rows.storage import (
    CsrRows,
    Rows,
    count_rows,
    packed,
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
    closed,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    register,
)
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.stream_start import FirstRows
from polyplane.estimator.planes.training import NO_CHOICE, OwnState, PlaneModel, PlaneTraining
from polyplane.estimator.soft_planes.column_weights import Importance, importance_of, weights_of
from polyplane.estimator.soft_planes.compression import compress_model
from polyplane.estimator.soft_planes.prototypes import (
    Prototypes,
    in_units,
    margins_between,
    prototypes_of,
    squared_length_of,
)
from polyplane.model.format.checks import need
from polyplane.model.input.column_maps import AS_IS, KINDS, ColumnMap, column_map
from polyplane.model.plane_record import FinishedPlanes
from polyplane.model.prediction import Features, FittedModel

__all__ = [
    "SoftPlanesClassifier", "complete_on", "first_planes", "mean_weight_is_one",
    "measured_importance", "scores_as_seen", "train_on_all", "trained_on", "written_out",
]  # fmt: skip

ENOUGH = {  # lead of a row's class at which the row is left as it is, by `learn_from`
    "all": math.inf, "most": math.log(0.99 / 0.01), "unsure": math.log(0.9 / 0.1),
}  # fmt: skip
FLOOR = 0.01  # planes with less than this share of the best one on their side stay
MOST_RESTING = 1 << 22  # rows: each model keeps a number of each
FEW = 16  # prototypes of a class, between which the margin is measured that is the unit of steps
FIRST_ROWS = 1_000  # of a stream, from which planes start
AFTER_FIT = 0.1  # of the step of a stream, if it goes on from a fit
FIRST_TRAINING: dict[str, Any] = {  # measures the importance of columns, whatever the fit is to be
    "n_planes": 32, "units": 2, "shrinkage": 0.3, "step_size": 0.3, "start_scale": 3.0,
    "max_iter": 12, "learn_from": "most", "init": "subset", "multi_class": "joint",
    "loss": "cross-entropy", "relevance": 0.0, "alpha": "auto", "compress": True,
}  # fmt: skip
MOST_PLANES = 320  # of all classes together, if there are more than 10 classes
ROWS_SCORED = 4_096  # that are mapped at once to be scored as steps see them
MOST_PACKED = 1 << 24  # entries of X, 8 bytes each, that are written out for training
SPREAD = 0.1  # of the planes of a class that starts from one row, as a share of its length


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
    first_rows: FirstRows | None = None  # of a stream
    starts: bool = True  # whether new models start from the rows that they are shown
    centres: dict[Any, Array] = field(default_factory=dict)  # of classes, found by k-means
    margins: dict[Any, tuple[float, float]] = field(default_factory=dict)  # between these


def start_of(training: PlaneTraining) -> Start:
    """Return what a training of this algorithm keeps beside its models."""
    start: Start = training.own
    return start


def columns_of(training: PlaneTraining) -> ColumnMap:
    """How a training that has begun maps columns."""
    columns: ColumnMap = training.own.columns
    return columns


@register
class SoftPlanesClassifier(HyperplaneClassifier):
    """Sum of soft maxima of planes over mapped columns, with given settings.

    Each class is a sum of units, and each unit the soft maximum of a few planes. This is the
    algorithm that PolyplaneClassifier trains with several settings; use it where you know the
    settings, and for streams.
    """

    alpha: float | str = parameter(
        default="auto",
        allowed=either(closed(0, 1e10), one_of("auto")),
        meaning=(
            "Regularisation, the weight of half the squared planes beside the mean loss. 'auto' "
            "is what `shrinkage` says, and 0 in a stream."
        ),
    )
    shrinkage: float = parameter(
        default=0.3,
        allowed=closed(0, 100),
        meaning=(
            "Regularisation by its effect: planes shrink by e^-shrinkage in the first pass, and "
            "by less as steps fall. 0.03 suits clean data, 1 noisy tables. It has no effect if "
            "alpha is a number."
        ),
    )
    n_planes: int = parameter(
        default=32,
        allowed=at_least(1),
        meaning="Planes per class; with 1 this is multinomial logistic regression.",
    )
    units: int = parameter(
        default=2,
        allowed=at_least(1),
        meaning=(
            "Soft maxima per class, which share its planes and are added up: a sum of four of 16 "
            "planes has many more corners than one of 64."
        ),
    )
    learn_from: str = parameter(
        default="most",
        allowed=one_of(*ENOUGH),
        meaning=(
            "Rows that move planes: 'all', those that are not yet right with more than 99% "
            "('most'), which costs less time and no accuracy, or 90% ('unsure'), which suits clean "
            "data such as digits and costs accuracy on noisy tables. With one plane a class, all "
            "rows do."
        ),
    )
    loss: str = parameter(
        default="cross-entropy",
        allowed=one_of("cross-entropy", "squared-hinge"),
        meaning=(
            "Loss that steps reduce; 'squared-hinge', of each class against all others, is for "
            "linear models of texts (n_planes=1), and its probabilities are not calibrated."
        ),
    )
    init: str = parameter(
        default="subset",
        allowed=one_of("kmeans", "subset"),
        meaning=(
            "Prototypes from which planes start: rows drawn at random ('subset'), or centres of "
            "k-means, which is slower and suits images and texts."
        ),
    )
    columns: str = parameter(
        default="auto",
        allowed=one_of("auto", AS_IS, *KINDS),
        meaning=(
            "What columns of numbers become: standardised ('plain'), that and their ranks "
            "('rank'), that and eight hat functions along them ('knots'), or hats at up to 128 "
            "knots ('fine'); unless plain, columns of 3 to 8 values become categories. Columns of "
            "0 and 1 are left as they are. 'as-is' leaves all columns alone. 'auto' is 'as-is' for "
            "data in which many columns are of one kind and without a sign, such as texts and "
            "images, else 'fine', and 'plain' in a stream."
        ),
    )
    scores: str = parameter(
        default="values",
        allowed=one_of("values", "normal"),
        meaning=(
            "Scale of the columns that are mapped with ranks: their 'values', or their 'normal' "
            "scores, which are ranks through the normal quantile function and suit heavy tails."
        ),
    )
    directions: str = parameter(
        default="none",
        allowed=one_of("none", "principal"),
        meaning=(
            "'principal' gives planes the principal directions of columns of numbers as well, "
            "mapped like columns: for columns that say more together than alone, such as length, "
            "width and depth. Plain columns have none."
        ),
    )
    relevance: float = parameter(
        default=0.0,
        allowed=closed(0, 4),
        meaning=(
            "Columns get a length by their importance in a first training, to this power: with 0 "
            "all are alike, with 1 or 2 planes learn from columns that matter. It has no effect "
            "on images, texts and streams."
        ),
    )
    max_iter: int = parameter(default=12, allowed=at_least(1), meaning="Passes over the rows.")
    start_scale: float = parameter(
        default=3.0,
        allowed=positive(),
        meaning="Length of the planes at the start, in units that suit the data.",
    )
    step_size: float = parameter(
        default=0.3,
        allowed=positive(),
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

    FOUND_ON_ALL_ROWS = ()
    COMPUTED_FROM_ROWS = ("alpha", "columns")

    # ---- steps -----------------------------------------------------------------------------

    def _is_soft(self) -> bool:
        return True

    def _least_planes(self, n_codes: int) -> int:
        return max(self.n_planes, self._n_units()) * n_codes

    def _n_units(self) -> int:
        """One plane a class is one unit."""
        return min(self.units, self.n_planes)

    def _follows_squared_hinges(self) -> bool:
        return self.loss == "squared-hinge" and self.n_planes == 1

    def _keeps_average(self, training: PlaneTraining) -> bool:
        return bool(self.average) and start_of(training).first_rows is not None

    def _alpha_of(self, model: PlaneModel) -> float:
        return 0.0 if self.alpha == "auto" else float(self.alpha)

    def _starts_from_rows(self) -> bool:
        return True

    def _first_choice(self, data: TrainingData) -> Array:
        """Who rests: rows that are surely right, if those that are right are left alone."""
        is_large = data.labels.size > MOST_RESTING
        if self.learn_from != "unsure" or self.n_planes == 1 or is_large:
            return NO_CHOICE
        return all_awake(data.labels.size)

    def _begin(self, model: PlaneModel, n_steps: int) -> None:
        """Rates of the steps to come; of a stream, whose length nobody knows, without n_steps."""
        if model.rule is not None:  # let V be W, so that another rule can go on from here
            scale = planes_scale(model.rule, model.n_steps)
            model.planes.sums[:] *= scale
            model.planes.timed_sums[:] *= scale
        step = self.step_size / model.own.wide_margin
        step /= math.sqrt(model.own.n_units)  # each plane gets a larger share of each row
        if n_steps > 0 and self.alpha == "auto":
            n_rows = n_steps / self.max_iter
            model.alpha = self.shrinkage / (step * n_rows)
        if n_steps == 0 and model.rule is not None:  # small ones, as at the end of the fit
            step *= AFTER_FIT / math.sqrt(1 + model.n_steps / HORIZON)
        is_linear = self.n_planes == 1
        model.rule = SoftmaxRule(
            step=step,
            alpha=model.alpha,
            start=model.n_steps,
            n_steps=n_steps,
            sharpness=1 / float(self.temperature),
            enough=ENOUGH["all" if is_linear else self.learn_from],
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

    # ---- columns ---------------------------------------------------------------------------

    def _better_settings(
        self, data: TrainingData, labels: Array, seed: int, n_to_come: int | None = None
    ) -> dict[str, Any]:
        """Measure the importance of columns; there are no settings to find."""
        members = weighty(in_place(data.labels.size), data.weights)
        if np.unique(data.labels[members]).size < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes; those with a weight "
                "above 0 are all of one class."
            )
        if self.relevance > 0 and not (self.warm_start and hasattr(self, "_training")):
            columns = self._column_map(data, is_whole=True)
            if not columns.is_as_is:
                seen = written_out(columns, data)
                found = measured_importance(seen, labels, columns, members, seed)
                columns = columns.weighed(weights_of(found, self.relevance, columns.n_mapped))
            self._columns_given = columns
        return {}

    def _column_map(self, data: TrainingData, is_whole: bool) -> ColumnMap:
        """Return the map that the parameters ask for; of a stream it is not the whole data."""
        kind = self.columns
        if kind == "auto":
            kind = "fine" if is_whole else "plain"
        return column_map(
            data.rows,
            weighty(in_place(count_rows(data.rows)), data.weights),
            width_of(self),
            kind,
            may_leave_out=is_whole,
            must_map=self.columns != "auto",
            turns=self.directions == "principal",
            scores=self.scores,
        )

    # ---- start -----------------------------------------------------------------------------

    def _own_of_model(self, training: PlaneTraining) -> Margins:
        return Margins(columns_of(training))

    def _own_of_training(self) -> Start:
        state: Any = vars(self)
        return Start(columns=state.pop("_columns_given", None))

    def _features_of(self, training: PlaneTraining) -> int:
        return int(columns_of(training).n_features)

    def _weighed(self, data: TrainingData) -> TrainingData:
        """Weights of mean 1: their unit must not change the steps."""
        return mean_weight_is_one(data)

    def _training_view(self, training: PlaneTraining, data: TrainingData) -> TrainingData:
        start, n_columns = start_of(training), width_of(self)
        if start.columns is None:
            start.columns = self._column_map(data, is_whole=start.first_rows is None)
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
        n_planes = self.n_planes
        init = self.init
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
        scale = np.float32(self.start_scale / margins.margin / n_units)
        made = in_units(made, n_units)
        model.planes = with_planes(model.planes, made.owner, made.planes * scale)

    # ---- end -------------------------------------------------------------------------------

    def _finish(self, model: PlaneModel) -> FinishedPlanes:
        seen = self.planes_as_seen(model)
        return seen._replace(sums=model.own.columns.folded(seen.sums, model.constant))

    def planes_as_seen(self, model: PlaneModel) -> FinishedPlanes:
        """Return the planes that a model has reached, for rows that are mapped for training."""
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

    def _own_of_fitted(self, model: FittedModel) -> Start:
        features: Any = model.features
        return Start(features.columns if features else None)

    def _take_features(self, model: FittedModel) -> None:
        is_mapped = model.features is not None and model.features.columns is not None
        need(is_mapped, "features are of another algorithm")

    def _complete(
        self, training: PlaneTraining, data: TrainingData, members: Array, share: float = 1.0
    ) -> None:
        """Compress models; with a small share in a blend they need less precision."""
        start_of(training).centres, start_of(training).margins = {}, {}
        if self.compress:
            models, n_threads = training.models, effective_n_jobs(self.n_jobs)
            views = [data._replace(rows=with_own_page(data.rows)) for _ in models]

            def compress(k: int, report: Report) -> None:
                model = models[k]
                compress_model(
                    model, views[k], members, self._scale_of(model), model.own.n_units, share
                )

            for_each(compress, len(models), n_threads, silence)

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
        n_planes = self.n_planes
        noise = generator.standard_normal((n_planes, made.planes.shape[1]))
        noise *= SPREAD * length / math.sqrt(noise.shape[1])
        noise[:, 0] = 0
        scale = self.start_scale / model.own.margin / model.own.n_units
        if model.rule is not None:
            scale /= planes_scale(model.rule, model.n_steps)
        planes = (scale * (made.planes + noise)).astype(np.float32)
        made = in_units(Prototypes(planes, np.full(n_planes, code)), model.own.n_units)
        model.planes = sorted_by_owner(with_planes(model.planes, made.owner, made.planes))


def measured_importance(
    seen: TrainingData, labels: Array, columns: ColumnMap, members: Array, seed: int
) -> Importance:
    """Train on rows as steps see them, and return how important columns are to the planes."""
    n_planes = first_planes(FIRST_TRAINING["n_planes"], labels.size)
    algorithm = SoftPlanesClassifier(**FIRST_TRAINING | {"n_planes": n_planes})
    training = trained_on(algorithm, seen, labels, columns, members, seed)
    scales = [algorithm._scale_of(model) for model in training.models]
    return importance_of(training.models, scales, columns, seen.rows, members)


def first_planes(n_planes: int, n_classes: int) -> int:
    """Return planes per class, fewer where there are many classes."""
    return int(np.clip(MOST_PLANES // n_classes, 2, n_planes))


def trained_on(
    algorithm: SoftPlanesClassifier,
    seen: TrainingData,
    labels: Array,
    columns: ColumnMap,
    members: Array,
    seed: int,
    report: Report = silence,
) -> PlaneTraining:
    """Make all passes of a fit over `members` of rows that are mapped by `columns` already."""
    algorithm.n_features_in_, algorithm._found = columns.n_columns, {}
    algorithm._columns_given = columns
    training = algorithm._training = algorithm._new_training(seed)
    algorithm._meet(training, labels, seen)
    algorithm._make_passes(training, seen, members, None, report)
    return training


def scores_as_seen(algorithm: SoftPlanesClassifier, rows: Any) -> Array:
    """Return class scores, by rank, of all rows, which are mapped for training."""
    training = algorithm._training
    record = training.record(algorithm.planes_as_seen, algorithm.combine, -np.inf, True, 1.0)
    order = in_place(count_rows(rows))
    parts = [order[first : first + ROWS_SCORED] for first in range(0, order.size, ROWS_SCORED)]
    return np.concatenate(
        [record.class_scores(packed(rows, part), in_place(part.size)) for part in parts]
    )


def train_on_all(
    algorithm: SoftPlanesClassifier, view: dict[str, Any], views: Any, report: Report
) -> None:
    """Make all passes, or those that are left, over rows that `views` maps as `view` asks."""
    training: PlaneTraining | None = vars(algorithm).get("_training")
    if training is None:
        columns = views.columns(view)
        seen = views.seen(columns)
        trained_on(algorithm, seen, views.labels, columns, views.members, views.seed, report)
    elif training.is_unfinished or training.n_steps == 0:
        seen = views.seen(columns_of(training))
        algorithm._make_passes(training, seen, views.members, None, report)


def complete_on(algorithm: SoftPlanesClassifier, data: TrainingData, share: float) -> None:
    """Compress the models of a recipe by some rows; `share` is that of the recipe in a blend."""
    training: PlaneTraining = algorithm._training
    seen = written_out(columns_of(training), data)
    algorithm._complete(training, seen, in_place(data.labels.size), share)


def mean_weight_is_one(data: TrainingData) -> TrainingData:
    """Return the data with weights whose mean is 1: their unit must not change the steps."""
    has_weight = data.weights > 0
    if not has_weight.any():
        return data
    mean = data.weights[has_weight].mean(dtype=np.float64)
    return data._replace(weights=(data.weights / mean).astype(np.float32))


def written_out(columns: ColumnMap, data: TrainingData) -> TrainingData:
    """Return the data as steps see them, mapped once and for all unless they are too large."""
    rows = columns.for_training(data.rows)
    if not isinstance(rows, CsrRows) and columns.count_entries(data.rows) <= MOST_PACKED:
        rows = packed(rows, in_place(count_rows(rows)))
    return data._replace(rows=rows)


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
