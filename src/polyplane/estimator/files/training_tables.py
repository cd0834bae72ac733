"""The training part of a model file: a table for each record that a training consists of.

Names are those of files, not of classes: a class that is renamed or regrouped changes the right
side of its table, and files stay. A change of names on the left side is a new format
(`model/format/model_file.py`). What can be derived is not stored: cached kernel
values, norms of support rows, the scores of the row at hand; nor what the prediction part says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes.assignment_by_entropy import Tally
from polyplane.engine.planes.planes import (
    CREATED,
    GROWING,
    LANES_USED,
    N_COUNTS,
    NO_PLANE,
    PRUNED,
    Planes,
)
from polyplane.engine.rows.leveled import LevelTable
from polyplane.engine.steps.polytope import PolytopeRule
from polyplane.engine.support.gram import squared_lengths
from polyplane.engine.support.support_set import (
    ACTIVE,
    FREE,
    N_TOTALS,
    NOT_THERE,
    SLOTS,
    SupportSet,
    with_room,
)
from polyplane.engine.support.support_set import N_COUNTS as N_SET_COUNTS
from polyplane.engine.tiles import LANES
from polyplane.estimator.fitting.streams import StreamCourse
from polyplane.model.format.checks import LARGEST_COUNT, need, need_ranges_within
from polyplane.model.format.prediction_part import MOST_UNITS, ROWS, SUPPORT
from polyplane.model.format.schema import (
    Count,
    Flag,
    Generator,
    GeneratorState,
    Kind,
    Many,
    Maybe,
    Nested,
    Number,
    Numbers,
    Reader,
    Table,
    Text,
    Whole,
    Wholes,
    Writer,
    table_of,
)
from polyplane.model.input.column_maps import ColumnMap
from polyplane.model.kernels.kernel_values import KernelRows
from polyplane.model.many_classes.decomposition import Problem
from polyplane.training.kernels.state import KernelCourse, KernelModel, SupportRows
from polyplane.training.planes.first_rows import FirstRows
from polyplane.training.planes.state import (
    LEAST_CHOICE,
    Course,
    PlaneModel,
    PlaneTraining,
    Snapshot,
)
from polyplane.training.rows import TrainingData
from polyplane.training.soft_planes.mapped_columns import MappedColumns
from polyplane.training.state import EarlyStopping
from polyplane.training.work.interruption import SeenRows

__all__ = [
    "KERNEL_TRAINING", "PLANE_TRAINING", "TABLES", "Curve", "KernelState", "PlaneState",
    "columns_in_training",
]  # fmt: skip

LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Rule(Kind):
    """Settings of steps: numbers by name, which the algorithm knows (`learning.py`)."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return {name: _plain_number(one) for name, one in value._asdict().items()}

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, dict), f"{path} is not a rule")
        return {name: self._number(one, f"{path}.{name}", source) for name, one in plain.items()}

    def _number(self, plain: Any, path: str, source: Reader) -> Any:
        if isinstance(plain, bool):
            return plain
        kind = Whole() if isinstance(plain, int) else Number(may_be_endless=True)
        return kind.read(plain, path, source, {})


def _plain_number(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return Number().write(value, "", Writer())


SEEN_ROWS = Table(SeenRows, {"rows": Count(), "checksum": Count()}, {"rows": "n_rows"})
PROBLEM = Table(
    lambda classes: Problem(tuple(classes)),
    {"classes": Many(Whole(-1))},
    check=lambda problem: need(len(problem.classes) in (0, 2), "a problem is not of two sides"),
)


# ---- planes ------------------------------------------------------------------------------


def _check_planes(planes: Planes) -> None:
    room, is_live = planes.owner.size, planes.owner != NO_PLANE
    need(room > 0 and room % LANES == 0, f"there is room for {room} planes, no multiple of {LANES}")
    is_like = len(planes.timed_sums) in (0, len(planes.sums))
    need(is_like, "means have another size than their planes")
    need(planes.counts[LANES_USED] <= room, "more lanes are used than there are")
    need(not is_live[planes.counts[LANES_USED] :].any(), "a plane lives beyond the used lanes")
    n_planes = planes.counts[CREATED] - planes.counts[PRUNED]
    need(is_live.sum() == n_planes, "planes are counted wrongly")
    need((planes.room_left > 0).sum() == planes.counts[GROWING], "classes are counted wrongly")


def _idle(made: Mapping[str, Any]) -> Any:
    return np.where(made["owner"] == NO_PLANE, np.float32(-np.inf), np.float32(0))


PLANES = table_of(
    Planes,
    bounds={"owner": (NO_PLANE, 1 << 31), "room_left": (0, 1 << 63)},
    axes={"count": str(N_COUNTS)},
    left_out=["idle"],
    attributes={"classes": "owner"},
    derived={"idle": _idle},
    check=_check_planes,
)

TALLY = table_of(Tally, bounds={}, axes={"class": "2"})

SNAPSHOT = Table(
    Snapshot,
    {
        "planes": Nested(PLANES),
        "tally": Maybe(Nested(TALLY)),
        "steps": Count(),
        "mistakes_noted": Count(),
        "notes": Count(),
    },
    {"tally": "own", "steps": "n_steps", "notes": "n_notes"},
    check=lambda state: _check_tally(state.own, state.planes),
)


def _check_tally(tally: Any, planes: Planes) -> None:
    is_of = tally is None or tally.of_plane.size == planes.owner.size
    need(is_of, "a tally is of other planes")


# what single algorithms keep of a model and of a training (`OwnState`): files tell it of all, and
# where an algorithm keeps no such thing, as it stands here
OWN_OF_MODEL = {
    "start_length": 1.0,
    "margin": 1.0,
    "wide_margin": 1.0,
    "is_squared": False,
    "tally": None,
}
OWN_OF_TRAINING = {"columns": None, "starts": True}


def _model_as_told(model: PlaneModel) -> Any:
    """A model beside its algorithm's own state; a rule that settings tell is left out."""
    made = SimpleNamespace(**{**OWN_OF_MODEL, **vars(model.own), **vars(model)})
    made.rule = None if isinstance(model.rule, PolytopeRule) else model.rule
    return made


def _training_as_told(training: PlaneTraining) -> Any:
    """A training beside its algorithm's own state, and its map of columns."""
    made = SimpleNamespace(**{**OWN_OF_TRAINING, **vars(training.own), **vars(training)})
    made.columns = training.columns.map if isinstance(training.columns, MappedColumns) else None
    return made


def _own_apart(fields: dict[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record whose own state is left to its algorithm, as a dict."""
    own = {name: fields.pop(name) for name in names}
    return fields | {"own": own}


def _model(generator: Any, **fields: Any) -> PlaneModel:
    made = PlaneModel(n_features=0, **_own_apart(fields, OWN_OF_MODEL))
    made.generator = generator
    _check_tally(made.own["tally"], made.planes)
    return made


MODEL = Table(
    _model,
    {
        "problem": Nested(PROBLEM),
        "estimator": Count(),
        "planes": Nested(PLANES),
        "alpha": Number(0),
        "constant": Number(),
        "seed": Count(),
        "steps": Count(),
        "mistakes_noted": Count(),
        "start_length": Number(LEAST),
        "margin": Number(LEAST),
        "wide_margin": Number(LEAST),
        "units": Count(1, MOST_UNITS),
        "squared_hinge": Flag(),
        "tally": Maybe(Nested(TALLY)),
        "rule": Maybe(Rule()),
        "generator": Generator(),
    },
    {"steps": "n_steps", "units": "n_units", "squared_hinge": "is_squared"},
    before=_model_as_told,
)

COURSE = Table(
    Course,
    {
        "rows": Count(),
        "chosen": Wholes("int32", ("row",), LEAST_CHOICE, 1 << 31),
        "passes": Count(),
        "over": Flag(),
        "first_step": Count(),
        "mixed_by": Maybe(GeneratorState()),
    },
    {"rows": "n_rows", "passes": "n_passes", "over": "is_over"},
)

WATCH = Table(
    EarlyStopping,
    {
        "best": Number(may_be_endless=True),
        "since_best": Count(),
        "snapshots": Many(Nested(SNAPSHOT)),
    },
)

PART = Table(
    TrainingData,
    {
        "rows": Nested(ROWS),
        "classes": Wholes("int32", ("row",)),
        "weights": Numbers("float32", ("row",)),
    },
    {"classes": "labels"},
    check=lambda part: need(part.labels.size == part.rows.starts.size - 1, "rows lack classes"),
)


def _first_rows(room: int, n_rows: int, parts: list[TrainingData]) -> FirstRows:
    made = FirstRows(room)
    made.n_rows, made.parts = n_rows, parts
    return made


FIRST_ROWS = Table(
    _first_rows,
    {"room": Count(), "rows": Count(), "parts": Many(Nested(PART))},
    {"rows": "n_rows"},
)


SCALES = Table(  # of a `LevelTable` without its knots, which the prediction part has
    dict,
    {
        "shifts": Numbers("float32", ("column",)),
        "factors": Numbers("float32", ("column",)),
        "places": Numbers("float32", ("level", "knot")),
        "n_hats": Wholes("int32", ("level", "column"), 0, 1 << 16),
        "first_hat": Wholes("int32", ("level", "column")),
        "heights": Numbers("float32", ("level", "column")),
    },
)

COLUMNS = Table(  # what the prediction part does not say of them
    dict,
    {"constant": Number(), "scales": Maybe(Nested(SCALES))},
    {"scales": "table"},
)


def columns_in_training(folded: ColumnMap, told: Mapping[str, Any]) -> ColumnMap:
    """The map of a training whose finished planes see columns through `folded`."""
    made = replace(folded, constant=told["constant"])
    if told["table"] is None:
        need(folded.table is None, "a map is of other columns")
        return made
    need(folded.table is not None, "a map is of other columns")
    assert folded.table is not None
    table = folded.table._replace(**told["table"])
    _check_levels(table)
    return replace(made, table=table, n_features=folded.n_mapped + int(table.n_hats.sum()))


def _check_levels(table: LevelTable) -> None:
    n_columns, n_knots = table.knot_starts.size - 1, np.diff(table.knot_starts)
    is_of_columns = table.shifts.size == n_columns and table.places.shape[1] == table.knots.size
    need(is_of_columns, "a map is of other columns")
    need(not ((table.n_hats > 0) & (n_knots < 2)).any(), "there are hats without knots")
    of_knot = np.repeat(np.arange(n_columns), n_knots)
    for places, n_hats in zip(table.places, table.n_hats[:, of_knot], strict=True):
        is_on_scale = (n_hats < 2) | ((places >= 0) & (places <= n_hats - 1))
        need(bool(is_on_scale.all()), "a knot is beyond all hats")
    last = n_columns + int(table.n_hats.sum())
    need_ranges_within(table.first_hat, table.n_hats, n_columns, last, "hats end nowhere")


@dataclass
class PlaneState:
    """State of a training of planes beside the prediction part."""

    seed: int
    constant: float
    models: list[PlaneModel]
    rows_seen: SeenRows
    split_seed: int
    courses: list[Course]
    watch: EarlyStopping
    first_rows: FirstRows | None
    own: dict[str, Any]  # of OWN_OF_TRAINING


PLANE_TRAINING = Table(
    lambda **fields: PlaneState(**_own_apart(fields, OWN_OF_TRAINING)),
    {
        "seed": Count(),
        "constant": Number(),
        "models": Many(Nested(MODEL)),
        "rows_seen": Nested(SEEN_ROWS),
        "split_seed": Count(),
        "courses": Many(Nested(COURSE)),
        "watch": Nested(WATCH),
        "columns": Maybe(Nested(COLUMNS)),
        "first_rows": Maybe(Nested(FIRST_ROWS)),
        "starts": Flag(),
    },
    before=_training_as_told,
)


# ---- kernels -----------------------------------------------------------------------------


def _check_slots(held: SupportSet) -> None:
    slots = held.place.size
    n_active, n_slots, n_free = (int(held.counts[k]) for k in (ACTIVE, SLOTS, FREE))
    is_right = min(n_active, n_slots, n_free) >= 0 and n_active + n_free == n_slots <= slots
    need(is_right, "support vectors are counted wrongly")
    active, free = held.active[:n_active], held.free[:n_free]
    used = np.sort(np.concatenate([active, free]))
    need(np.array_equal(used, np.arange(n_slots)), "a slot is used twice, or not at all")
    position = np.full(slots, NOT_THERE, np.int32)
    position[active] = np.arange(n_active)
    need(np.array_equal(held.position, position), "slots do not stand where they should")


ANY_SLOT = -(1 << 31), 1 << 31  # where a list ends before its room, anything may stand

SUPPORT_SET = table_of(
    SupportSet,
    bounds={
        "place": (0, 1 << 31),
        "side": (0, 2),
        "row": (-LARGEST_COUNT, LARGEST_COUNT),
        "active": ANY_SLOT,
        "position": (NOT_THERE, 1 << 31),
        "free": ANY_SLOT,
        "counts": (-1, LARGEST_COUNT),
    },
    axes={"kind": "coefficient", "count": str(N_SET_COUNTS), "total": str(N_TOTALS)},
    left_out=["gram", "line", "owner", "used"],  # the cache of kernel values
    before=lambda held: with_room(held, held.place.size, 0),
    check=_check_slots,
)


def _support_rows(entries: Any, numbers: Any, labels: Any) -> SupportRows:
    need(numbers.size == entries.starts.size - 1, "support rows are counted wrongly")
    need(np.unique(numbers).size == numbers.size, "a support vector is there twice")
    return SupportRows(KernelRows(entries, squared_lengths(entries), numbers, labels))


SUPPORT_ROWS = Table(
    _support_rows,
    SUPPORT.fields,
    SUPPORT.attributes,
    before=lambda pool: pool.rows,
)


def _kernel_model(generator: Any, **fields: Any) -> KernelModel:
    made = KernelModel(**fields)
    made.generator = generator
    return made


KERNEL_MODEL = Table(
    _kernel_model,
    {
        "problem": Nested(PROBLEM),
        "set": Nested(SUPPORT_SET),
        "seed": Count(),
        "rule": Maybe(Rule()),
        "steps": Count(),
        "over": Flag(),
        "generator": Generator(),
    },
    {"set": "held", "steps": "n_steps", "over": "is_over"},
)

KERNEL_COURSE = Table(
    KernelCourse,
    {
        "rows_seen": Nested(SEEN_ROWS),
        "first_number": Count(),
        "mixed_by": Maybe(GeneratorState()),
        "visited": Count(),
    },
    {"visited": "n_visited"},
)


@dataclass
class KernelState:
    """State of a training of kernels beside the prediction part."""

    seed: int
    cache_bytes: int
    offset: float  # of the kernel
    models: list[KernelModel]
    pool: SupportRows
    n_seen: int
    course: KernelCourse | None
    generator: Any


KERNEL_TRAINING = Table(
    KernelState,
    {
        "seed": Count(),
        "cache_bytes": Count(),
        "offset": Number(0, 1),
        "models": Many(Nested(KERNEL_MODEL)),
        "support": Nested(SUPPORT_ROWS),
        "seen": Count(),
        "course": Maybe(Nested(KERNEL_COURSE)),
        "generator": Generator(),
    },
    {"support": "pool", "seen": "n_seen"},
)

STREAM_COURSE = Table(
    StreamCourse,
    {"seed": Count(), "passes": Count(), "chunks": Count()},
    {"passes": "n_passes", "chunks": "n_chunks"},
)


class Curve(NamedTuple):
    """A loss, or the share of wrong rows, on one set after each pass."""

    set: str  # as `eval_set` numbers them
    measure: str
    values: list[float]


CURVE = Table(
    Curve,
    {"set": Text(), "measure": Text(), "values": Many(Number(may_be_endless=True))},
)

# the one place where records of files meet our classes; a test holds the names of each version
TABLES: Mapping[str, Table] = {
    "planes": PLANE_TRAINING,
    "kernel": KERNEL_TRAINING,
    "stream": STREAM_COURSE,
    "evaluations": CURVE,
}
