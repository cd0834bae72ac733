"""Sums of soft maxima of planes, trained by cross-entropy with given settings.

Problem     minimise  alpha/2 |W|^2 + mean_i log(1 + exp(-margin_i)),  the margin being the score of
            the row's class over that of all other classes together, and the score of a class the
            sum over its units of the log-sum-exp of their planes
Algorithm   stochastic steps over all planes (`engine/steps/softmax.py` with one unit a class,
            `engine/steps/soft_units.py` with several), from planes that start as prototypes of
            their class (`training/soft_planes/prototypes.py`). With loss="squared-hinge" a class
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
            gives each column a length by that (`training/soft_planes/column_weights.py`).
Pruning     planes below `MIN_SHARE_OF_MOVING_PLANE` in every row of their class for a whole
            pass are dropped on the way; in the end those that decide next to nothing
            (`training/soft_planes/compression.py`).
Streams     the first rows are kept until there are enough to start from; until then planes start
            anew whenever there are twice as many. A class met later starts around its first row.

PolyplaneClassifier (`portfolio/`) trains several of these and adds up their scores.
"""

import copy
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import (
    copied,
    count_planes,
    live_lanes,
    sorted_by_owner,
    with_planes,
)
from polyplane.engine.planes.pruning import with_only
from polyplane.engine.rows.storage import count_rows, packed
from polyplane.engine.steps.resting import REST, all_awake
from polyplane.engine.steps.soft_units import unit_epoch, unit_room
from polyplane.engine.steps.softmax import HORIZON, SoftmaxRule, planes_scale, softmax_epoch
from polyplane.engine.steps.squared_hinge import squared_hinge_epoch
from polyplane.engine.targets import rows_of
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
from polyplane.estimator.plane_classifier import PlaneClassifier
from polyplane.estimator.shell import job_of
from polyplane.model.input.column_maps import AS_IS, KINDS, ColumnMap, column_map
from polyplane.model.plane_record import FinishedPlanes
from polyplane.training.job import Job, NewRows, Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, PlaneJob, StreamStart
from polyplane.training.planes.family import PLANES, record_as_seen
from polyplane.training.planes.first_rows import FirstRows
from polyplane.training.planes.models import meet_rows, meet_seen, new_training
from polyplane.training.planes.passes import make_passes, visit
from polyplane.training.planes.state import NO_CHOICE, Course, OwnState, PlaneModel, PlaneTraining
from polyplane.training.rows import TrainingData, weighty
from polyplane.training.soft_planes.column_weights import Importance, importance_of, weights_of
from polyplane.training.soft_planes.compression import compress_model
from polyplane.training.soft_planes.mapped_columns import MappedColumns, written_out
from polyplane.training.soft_planes.prototypes import (
    Prototypes,
    in_units,
    margins_between,
    prototypes_of,
    squared_length_of,
)
from polyplane.training.work.progress import Report, silence

__all__ = [
    "SOFT_PLANES",
    "SoftPlanesClassifier",
    "complete_on",
    "first_planes",
    "measured_importance",
    "scores_as_seen",
    "train_on_all",
    "trained_on",
    "written_out",
]

LEADS_LEFT_ALONE = {  # lead of a row's class at which the row is left as it is, by `learn_from`
    "all": math.inf,
    "most": math.log(0.99 / 0.01),
    "unsure": math.log(0.9 / 0.1),
}
# Planes with less than this share of the best one on their side do not move.
MIN_SHARE_OF_MOVING_PLANE = 0.01
MAX_RESTING_ROWS = 1 << 22  # rows: each model keeps a number of each
# The unit of steps is the margin between so many prototypes of a class.
PROTOTYPES_OF_STEP_UNIT = 16
FIRST_ROWS = 1_000  # of a stream, from which planes start
STEP_FACTOR_AFTER_FIT = 0.1  # of the step of a stream, if it goes on from a fit
FIRST_TRAINING: dict[str, Any] = {  # measures the importance of columns, whatever the fit is to be
    "n_planes": 32,
    "units": 2,
    "shrinkage": 0.3,
    "step_size": 0.3,
    "start_scale": 3.0,
    "max_iter": 12,
    "learn_from": "most",
    "init": "subset",
    "multi_class": "joint",
    "loss": "cross-entropy",
    "relevance": 0.0,
    "alpha": "auto",
    "compress": True,
}
MOST_PLANES = 320  # of all classes together, if there are more than 10 classes
ROWS_SCORED = 4_096  # that are mapped at once to be scored as steps see them
# Spread of the planes of a class that starts from one row, as a share of its length.
SPREAD_AROUND_FIRST_ROW = 0.1


@dataclass
class Margins(OwnState):
    """State of a model beside its planes: the units of its lengths and steps."""

    margin: float = 1.0  # between classes, of the prototypes from which planes start
    wide_margin: float = 1.0  # the same between few prototypes
    is_squared: bool = False  # whether planes follow squared hinges, since they started


@dataclass
class Start(OwnState):
    """State of a training beside its models: the prototypes from which they start."""

    starts: bool = True  # whether new models start from the rows that they are shown
    centres: dict[Any, Array] = field(default_factory=dict)  # of classes, found by k-means
    margins: dict[Any, tuple[float, float]] = field(default_factory=dict)  # between these

    def end_meeting(self) -> None:
        self.centres, self.margins = {}, {}


# ---- steps -------------------------------------------------------------------------------


def steps(model: PlaneModel, data: TrainingData, order: Array, chosen: Array) -> int:
    """Visit rows in `order`."""
    n_steps: int
    n_units = model.n_units
    visited = data.rows, model.targets(data), order, model.planes
    if model.own.is_squared:
        n_steps = squared_hinge_epoch(*visited, model.rule, model.n_steps)
    elif n_units == 1:
        n_steps = softmax_epoch(*visited, model.rule, chosen, model.n_steps)
    else:
        room = unit_room(model.planes, n_units, int(model.codes.max()) + 1)
        n_steps = unit_epoch(*visited, room, model.rule, chosen, model.n_steps)
    return n_steps


def begin(model: PlaneModel, settings: Settings, n_steps: int) -> None:
    """Make rates of the steps to come; of a stream, whose length nobody knows, n_steps is 0."""
    if model.rule is not None:  # let V be W, so that another rule can go on from here
        scale = planes_scale(model.rule, model.n_steps)
        model.planes = copied(model.planes)
        model.planes.sums[:] *= scale
        model.planes.timed_sums[:] *= scale
    step = settings.step_size / model.own.wide_margin
    step /= math.sqrt(model.n_units)  # each plane gets a larger share of each row
    if n_steps > 0 and settings.is_open("alpha"):
        n_rows = n_steps / settings.max_iter
        model.alpha = settings.shrinkage / (step * n_rows)
    if n_steps == 0 and model.rule is not None:  # small ones, as at the end of the fit
        step *= STEP_FACTOR_AFTER_FIT / math.sqrt(1 + model.n_steps / HORIZON)
    is_linear = settings.n_planes == 1
    model.rule = SoftmaxRule(
        step=step,
        alpha=model.alpha,
        start=model.n_steps,
        n_steps=n_steps,
        sharpness=1 / float(settings.temperature),
        enough=LEADS_LEFT_ALONE["all" if is_linear else settings.learn_from],
        floor=MIN_SHARE_OF_MOVING_PLANE,
    )


def choices(settings: Settings, n_rows: int) -> Array:
    """Return who rests: rows that are surely right, if those that are right are left alone."""
    if settings.learn_from != "unsure" or settings.n_planes == 1 or n_rows > MAX_RESTING_ROWS:
        return NO_CHOICE
    awake: Array = all_awake(n_rows)
    return awake


def end_pass(
    model: PlaneModel, data: TrainingData, settings: Settings, course: Course, order: Array
) -> bool:
    """Drop planes that had next to nothing of any row in the pass: they will not come back.

    Where rows rest, it takes some passes until all have been asked.
    """
    if course.chosen.size == 0 or course.n_passes % (1 + REST) == 1:
        end_round(model, settings)
    return False


def end_round(model: PlaneModel, settings: Settings) -> None:
    """Drop planes that had next to nothing of any row."""
    if model.own.is_squared:
        return
    lanes = live_lanes(model.planes)
    shares, owner = model.planes.largest_shares[lanes], model.planes.owner[lanes]
    is_used = shares > MIN_SHARE_OF_MOVING_PLANE
    if model.n_units > 1:  # an empty unit would add nothing that can be compared
        is_used |= shares == _largest_of_each(shares, owner)[owner]
    model.planes.largest_shares[:] = 0
    if settings.compress and not is_used.all():
        model.planes = with_only(model.planes, lanes[is_used])


def _largest_of_each(shares: Array, owner: Array) -> Array:
    """The largest share in each unit."""
    largest = np.zeros(owner.max() + 1, shares.dtype)
    np.maximum.at(largest, owner, shares)
    return largest


def scale(model: PlaneModel) -> float:
    """Return W / V, where V are the sums that steps change."""
    return 1.0 if model.rule is None else float(planes_scale(model.rule, model.n_steps))


def schedule(model: PlaneModel, n_rows: int, n_done: int, n_parts: int) -> None:
    """Let steps fall over parts of so many rows each."""
    first, n_steps = model.n_steps - n_done * n_rows, n_parts * n_rows
    if (first, n_steps) != (model.rule.start, model.rule.n_steps):
        before = scale(model)
        model.rule = model.rule._replace(start=first, n_steps=n_steps)
        model.planes.sums[:] *= np.float32(before / scale(model))


# ---- columns -----------------------------------------------------------------------------


class SoftColumns(MappedColumns):
    """Columns as the parameters map them, with lengths by their importance."""

    @classmethod
    def begun(cls, job: PlaneJob, rows: NewRows) -> Self:
        """Return the view with which a training begins."""
        data, settings = rows.data, job.settings
        columns = _column_map(settings, rows)
        if settings.relevance > 0 and not rows.is_chunk and not columns.is_as_is:
            seen = written_out(columns, data)
            members = weighty(in_place(data.labels.size), data.weights)
            found = measured_importance(seen, rows.labels, columns, members, rows.seed)
            columns = columns.weighed(weights_of(found, settings.relevance, columns.n_mapped))
        return cls.of_map(columns)


def _column_map(settings: Settings, rows: NewRows) -> ColumnMap:
    """Return the map that the parameters ask for; rows of a stream are not the whole data."""
    data, kind = rows.data, settings.columns
    if kind == "auto":
        kind = "plain" if rows.is_chunk else "fine"
    return column_map(
        data.rows,
        weighty(in_place(count_rows(data.rows)), data.weights),
        rows.n_columns,
        kind,
        may_leave_out=not rows.is_chunk,
        must_map=settings.columns != "auto",
        turns=settings.directions == "principal",
        scores=settings.scores,
    )


def search(job: PlaneJob, rows: NewRows) -> dict[str, Any]:
    """Find nothing, but demand rows of two classes that are visited."""
    members = weighty(in_place(rows.data.labels.size), rows.data.weights)
    if np.unique(rows.data.labels[members]).size < 2:
        raise ValueError(
            f"{job.settings.name} needs rows of at least 2 classes; those with a weight "
            "above 0 are all of one class."
        )
    return {}


# ---- start -------------------------------------------------------------------------------


def _count_units(settings: Settings) -> int:
    """One plane a class is one unit."""
    return int(min(settings.units, settings.n_planes))


def first_planes_of_model(settings: Settings, n_classes: int) -> int:
    """Return how many planes a model starts with."""
    return max(int(settings.n_planes), _count_units(settings)) * n_classes


def starts_from_rows(settings: Settings) -> bool:
    """Return True: planes are prototypes."""
    return True


def start(
    training: PlaneTraining, model: PlaneModel, data: TrainingData, settings: Settings, first: int
) -> None:
    """Start all classes of a model together, from prototypes."""
    if not training.own.starts or count_planes(model.planes) > 0:
        return
    members = np.flatnonzero(model.visits(data))
    codes = np.unique(model.codes[data.labels[members]])
    n_planes, init, known = settings.n_planes, settings.init, training.own.margins
    made = prototypes_of(model, data, members, codes, n_planes, init, training.own.centres)
    key = (*model.codes.tolist(), n_planes, init, model.seed)
    if key not in known:
        known[key] = margins_between(model, data, members, made, PROTOTYPES_OF_STEP_UNIT)
    margins: Margins = model.own
    margins.margin, margins.wide_margin = known[key]
    n_units = model.n_units = _count_units(settings)
    if settings.loss == "squared-hinge" and n_planes == 1:
        margins.is_squared = True
        margins.wide_margin = squared_length_of(model, data, members)
        made = made._replace(planes=np.zeros_like(made.planes))
    length = np.float32(settings.start_scale / margins.margin / n_units)
    made = in_units(made, n_units)
    model.planes = with_planes(model.planes, made.owner, made.planes * length)


# ---- end ---------------------------------------------------------------------------------


def finish(model: PlaneModel) -> FinishedPlanes:
    """Return the planes that a model has reached."""
    lanes = live_lanes(model.planes)
    sums = mean_sums(model.planes, model.n_steps)[: model.n_features + 1, lanes]
    owner, ones = model.planes.owner[lanes], np.ones(lanes.size, np.float32)
    return FinishedPlanes(sums * scale(model), owner, ones, model.n_units)


def complete(model: PlaneModel, data: TrainingData, settings: Settings, members: Array) -> None:
    """Remove planes that decide next to nothing."""
    if settings.compress:
        compress_model(model, data, members, scale(model), model.n_units)


# ---- streams -----------------------------------------------------------------------------


def begin_chunk(
    job: PlaneJob, before: PlaneTraining | None, rows: NewRows, members: Array
) -> tuple[PlaneTraining, TrainingData, Array]:
    """Start anew while the first rows are few; return the rest of the rows as steps see them."""
    training = before
    first = before.first_rows if before is not None and before.models else FirstRows(FIRST_ROWS)
    if first is not None and not first.is_full:
        n_before, first = first.n_rows, first.copied()  # of bad input nothing must be left
        first.take(rows.data, members)
        n_first = first.last_start()
        if n_first > n_before:
            training = _started_anew(job, rows._replace(data=first.data(n_first)), first)
            training.n_passes = 0 if before is None else before.n_passes
            members = members[n_first - n_before :]
        if first.is_full:
            first.forget()
    training = copy.copy(training or new_training(job, rows))
    training.own, training.first_rows = Start(starts=False), first
    columns = training.columns.widened(rows.n_columns, rows.data.rows).of_all_columns()
    training, seen = meet_rows(job, training, rows, columns)
    return training, seen, members


def _started_anew(job: PlaneJob, rows: NewRows, first: FirstRows) -> PlaneTraining:
    """Return a training that has visited these rows, from which it starts."""
    training = new_training(job, rows)
    training.first_rows = first
    training, seen = meet_rows(job, training, rows)
    for model in training.models:
        order = rows_of(in_place(seen.labels.size), model.targets(seen))
        follow(job, model, seen, order, silence)
    return training


def follow(
    job: PlaneJob, model: PlaneModel, data: TrainingData, order: Array, report: Report
) -> None:
    """Visit rows of a stream; a class without planes starts at its first row."""
    done = 0
    while done < order.size:
        has_planes = np.zeros(model.codes.max() + 1, bool)
        has_planes[model.planes.owner[live_lanes(model.planes)] // model.n_units] = True
        is_new = ~has_planes[model.codes[data.labels[order[done:]]]]
        n_known = int(np.argmax(is_new)) if is_new.any() else is_new.size
        if n_known == 0:
            _start_late(model, data, job.settings, int(order[done]))
        elif model.rule is None or model.rule.n_steps > 0:
            begin(model, job.settings, 0)
        visit(job, model, data, order[done : done + n_known], report)
        done += n_known


def _start_late(model: PlaneModel, data: TrainingData, settings: Settings, row: int) -> None:
    """Planes around the row, for its class."""
    code = int(model.codes[data.labels[row]])
    made = prototypes_of(model, data, np.array([row]), np.array([code]), 1, "subset")
    length = np.linalg.norm(made.planes[0, 1:])
    if count_planes(model.planes) == 0:
        model.own.margin = model.own.wide_margin = float(length**2) or 1.0
        model.n_units = _count_units(settings)
    generator = np.random.default_rng([model.seed, code])
    n_planes = settings.n_planes
    noise = generator.standard_normal((n_planes, made.planes.shape[1]))
    noise *= SPREAD_AROUND_FIRST_ROW * length / math.sqrt(noise.shape[1])
    noise[:, 0] = 0
    start_scale = settings.start_scale / model.own.margin / model.n_units
    if model.rule is not None:
        start_scale /= planes_scale(model.rule, model.n_steps)
    planes = (start_scale * (made.planes + noise)).astype(np.float32)
    made = in_units(Prototypes(planes, np.full(n_planes, code)), model.n_units)
    model.planes = sorted_by_owner(with_planes(model.planes, made.owner, made.planes))


SOFT_PLANES = PlaneAlgorithm(
    steps=steps,
    rule_kept=SoftmaxRule(0.0, 0.0, 0, 0, 0.0, 0.0, 0.0),
    search=search,
    columns=SoftColumns,
    start=start,
    first_planes=first_planes_of_model,
    starts_from_rows=starts_from_rows,
    begin=begin,
    choices=choices,
    own=Margins,
    own_of_training=Start,
    stream=StreamStart(begin_chunk, follow),
    end_pass=end_pass,
    complete=complete,
    finish=finish,
    is_soft=True,
    scale=scale,
    schedule=schedule,
    end_round=end_round,
)


@register
class SoftPlanesClassifier(PlaneClassifier):
    """Sum of soft maxima of planes over mapped columns, with given settings.

    Each class is a sum of units, and each unit the soft maximum of a few planes. This is the
    algorithm that PolyplaneClassifier trains with several settings; use it where you know the
    settings, and for streams.

    See Also
    --------
    PolyplaneClassifier : Tries several settings and blends the best.
    MMClassifier : A hard maximum of planes per class, without probabilities.

    Notes
    -----
    The score of a class c on a row x, its probability, and the problem are::

        g_c(x) = sum_u log sum_{j in unit u} exp(w_cj phi(x))
        P(c | x) = exp(g_c(x)) / sum_k exp(g_k(x))
        minimise  alpha/2 |W|^2 - mean_i log P(y_i | x_i)

    phi is the map of the columns (`columns`): standardised values, ranks, and hat functions. The
    algorithm is polyplane's own; docs/polyplane.md describes and measures it.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    >>> from polyplane import SoftPlanesClassifier
    >>> model = SoftPlanesClassifier(n_planes=8, random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> model.predict_proba(X_test).shape
    (200, 2)
    """

    algorithm: ClassVar[PlaneAlgorithm] = SOFT_PLANES

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
        allowed=one_of(*LEADS_LEFT_ALONE),
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


# ---- as one of several -------------------------------------------------------------------


def measured_importance(
    seen: TrainingData, labels: Array, columns: ColumnMap, members: Array, seed: int
) -> Importance:
    """Train on rows as steps see them, and return how important columns are to the planes."""
    n_planes = first_planes(FIRST_TRAINING["n_planes"], labels.size)
    classifier = SoftPlanesClassifier(**FIRST_TRAINING | {"n_planes": n_planes})
    training = trained_on(classifier, seen, labels, columns, members, seed)
    scales = [scale(model) for model in training.models]
    return importance_of(training.models, scales, columns, seen.rows, members)


def first_planes(n_planes: int, n_classes: int) -> int:
    """Return planes per class, fewer where there are many classes."""
    return int(np.clip(MOST_PLANES // n_classes, 2, n_planes))


def trained_on(
    classifier: SoftPlanesClassifier,
    seen: TrainingData,
    labels: Array,
    columns: ColumnMap,
    members: Array,
    seed: int,
    report: Report = silence,
) -> PlaneTraining:
    """Make all passes of a fit over `members` of rows that are mapped by `columns` already."""
    classifier.n_features_in_ = columns.n_columns
    job, rows = job_of(classifier, {}), NewRows(seen, labels, columns.n_columns, seed)
    training = meet_seen(job, new_training(job, rows, SoftColumns.of_map(columns)), rows)
    classifier._training = training
    make_passes(job, training, seen, members, report)
    return training


def scores_as_seen(classifier: SoftPlanesClassifier, rows: Any) -> Array:
    """Return class scores, by rank, of all rows, which are mapped for training."""
    record = record_as_seen(SOFT_PLANES, classifier._training, classifier.combine)
    order = in_place(count_rows(rows))
    parts = [order[first : first + ROWS_SCORED] for first in range(0, order.size, ROWS_SCORED)]
    return np.concatenate(
        [record.class_scores(packed(rows, part), in_place(part.size)) for part in parts]
    )


def train_on_all(
    classifier: SoftPlanesClassifier, view: dict[str, Any], views: Any, report: Report
) -> None:
    """Make all passes, or those that are left, over rows that `views` maps as `view` asks."""
    training: PlaneTraining | None = vars(classifier).get("_training")
    if training is None:
        columns = views.columns(view)
        seen = views.seen(columns)
        trained_on(classifier, seen, views.labels, columns, views.members, views.seed, report)
    elif training.is_unfinished or training.n_steps == 0:
        seen = views.seen(_map_of(training))
        make_passes(job_of(classifier, {}), training, seen, views.members, report)


def complete_on(classifier: SoftPlanesClassifier, data: TrainingData) -> None:
    """Compress the models of a recipe by some rows."""
    job: Job[PlaneAlgorithm] = job_of(classifier, {})
    seen = written_out(_map_of(classifier._training), data)
    PLANES.complete(job, classifier._training, seen, in_place(data.labels.size))


def _map_of(training: Any) -> ColumnMap:
    """Return the map of columns of a training that has begun."""
    columns: ColumnMap = training.columns.map
    return columns
