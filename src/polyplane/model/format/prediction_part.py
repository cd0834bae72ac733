"""The prediction part of a model file: what `docs/model_files.md` describes, field by field.

Tables name what other programs may rely on. A change here is a new format (`model_file.py`).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.inspection import column_facts
from polyplane.engine.rows.leveled import LevelTable
from polyplane.engine.rows.products import n_mapped
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.rows.turned import Turn, n_directions
from polyplane.engine.support.gram import (
    squared_lengths,
)
from polyplane.engine.tiles import LANES
from polyplane.model.format.checks import need, need_starts
from polyplane.model.format.model_file import ModelError, read_file
from polyplane.model.format.schema import (
    Count,
    Flag,
    Json,
    Labels,
    Many,
    Maybe,
    Nested,
    Number,
    Numbers,
    Reader,
    Settings,
    Table,
    Text,
    Wholes,
    Word,
    Writer,
)
from polyplane.model.input.column_maps import ColumnMap, hats_at_knots
from polyplane.model.input.scaling import SCALER
from polyplane.model.kernels.kernel_formulas import FORMULAS, entry_of
from polyplane.model.kernels.kernel_record import Expansion, KernelRecord
from polyplane.model.kernels.kernel_values import FormulaKernel, GivenKernel, Kernel, KernelRows
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import PlaneRecord
from polyplane.model.prediction import HISTORY, Features, FittedModel, Products

__all__ = [
    "MOST_UNITS",
    "ROWS",
    "SUPPORT",
    "read_fitted",
    "read_prediction",
    "refusing",
    "write_prediction",
]

MOST_UNITS = 1 << 16
KERNELS = *sorted(FORMULAS), "precomputed"


# ---- rows and columns --------------------------------------------------------------------


def _check_rows(rows: CsrRows) -> None:
    need_starts(rows.starts, rows.values.size, "rows begin nowhere")
    need(column_facts(rows.columns, rows.starts)[2], "columns of a row do not rise")


ROWS = Table(
    CsrRows,
    {
        "values": Numbers("float32", ("entry",)),
        "columns": Wholes("int32", ("entry",)),
        "starts": Wholes("int64", ("row + 1",)),
        "constant": Number(dtype=np.float32),
    },
    check=_check_rows,
)


def _check_knots(starts: Array, knots: Array) -> None:
    """Demand that each column has no knots, or two and more."""
    need_starts(starts, knots.size, "knots begin nowhere")
    need(not (np.diff(starts) == 1).any(), "knots begin nowhere")
    need(_rises(knots, starts), "knots do not rise")


def _rises(values: Array, starts: Array) -> bool:
    falls = np.diff(values) < 0
    inner = np.setdiff1d(np.arange(falls.size), starts[1:-1] - 1)
    return not falls[inner].any()


KNOTS = {  # of columns: each has none, or two and more
    "knot_starts": Wholes("int32", ("column + 1",)),
    "knots": Numbers("float32", ("knot",)),
}


def _hats(knot_starts: Array, knots: Array) -> LevelTable:
    """Check the knots before an array of their number is made."""
    _check_knots(knot_starts, knots)
    return hats_at_knots(knot_starts, knots)


HATS = Table(_hats, KNOTS)


def _check_turn(turn: Turn) -> None:
    n_knots = np.diff(turn.knot_starts)
    _check_knots(turn.knot_starts, turn.knots)
    need(_rises(turn.ranks, turn.knot_starts), "ranks do not rise")
    need(len(turn.weights) == (n_knots > 0).sum(), "directions are of other columns")


TURN = Table(
    Turn,
    {
        **KNOTS,
        "ranks": Numbers("float32", ("knot",)),
        "weights": Numbers("float32", ("ranked", "direction")),
    },
    check=_check_turn,
)


def _column_map(
    table: LevelTable | None, n_columns: int, used: Array | None, turn: Turn | None
) -> ColumnMap:
    """The map for finished planes, if all that it consists of is of the same columns."""
    n_mapped = n_columns + n_directions(turn)
    if turn is not None:
        is_of_columns = turn.knot_starts.size == n_columns + 1 and table is not None
        need(is_of_columns, "directions are of other columns")
    if used is not None:
        is_rising = bool((used[1:] > used[:-1]).all()) and used.size > 0
        is_within = is_rising and int(used[-1]) < n_columns
        need(table is None and is_within, "columns do not rise")
        return ColumnMap(None, n_columns, used.size, 1.0, used)
    need(table is None or table.shifts.size == n_mapped, "a map is of other columns")
    n_knots = 0 if table is None else table.knots.size
    return ColumnMap(table, n_columns, n_mapped + n_knots, 1.0, turn=turn)


COLUMN_MAP = Table(
    _column_map,
    {
        "columns": Count(),
        "used": Maybe(Wholes("int32", ("feature",))),
        "hats": Maybe(Nested(HATS)),
        "turn": Maybe(Nested(TURN)),
    },
    {"columns": "n_columns", "hats": "table"},
)

PRODUCTS = Table(
    Products,
    {
        "columns": Count(),
        "gamma": Number(0),
        "coef0": Number(0),
        "hashed": Maybe(Count(1, 1 << 31)),
    },
    {"columns": "n_columns", "hashed": "n_hash"},
)

FEATURES = Table(
    Features,
    {
        "constant": Number(),
        "columns": Maybe(Nested(COLUMN_MAP)),
        "products": Maybe(Nested(PRODUCTS)),
    },
    check=lambda features: need(
        features.columns is None or features.products is None, "features are of two kinds"
    ),
)


# ---- classifiers -------------------------------------------------------------------------

DECOMPOSITION = Table(
    Decomposition,
    {
        "kind": Word(("joint", "ovr", "ovo")),
        "combine": Word(("margin", "vote", "soft")),
        "ranks": Wholes("int32", ("class",), 0, "class"),
    },
    check=lambda found: need(np.unique(found.ranks).size == found.ranks.size, "ranks meet twice"),
)


def _plane_record(**fields: Any) -> PlaneRecord:
    starts, decomposition = fields.pop("group_starts"), fields["decomposition"]
    n_groups = fields["n_estimators"] * decomposition.n_groups() * fields["n_units"]
    need(starts.size == n_groups + 1, "planes are of other problems")
    need_starts(starts, fields["scales"].size, "groups of planes begin nowhere")
    weights = fields["group_weights"]
    need(weights is None or weights.size == n_groups, "weights are of other groups of planes")
    group = np.repeat(np.arange(n_groups, dtype=np.int32), np.diff(starts))
    return PlaneRecord(group=group, **fields)


def _check_planes(record: PlaneRecord) -> None:
    room = record.sums.shape[1]
    need(room % LANES == 0 and room >= record.n_planes, f"there is room for {room} planes")
    need(room > 0, "there is room for no planes")
    need(not record.sums[:, record.n_planes :].any(), "a plane lives beyond the last")
    need(bool((record.plane_class < record.decomposition.n_classes).all()), "a plane has no class")
    need(bool((np.abs(record.plane_sign) == 1).all()), "a plane is neither for nor against")
    is_known = record.empty_score in (0.0, -np.inf)
    need(is_known, "the score of a class without planes is neither 0 nor -inf")


PLANES = Table(
    _plane_record,
    {
        "sums": Numbers("float32", ("feature", "lane")),
        "scales": Numbers("float32", ("plane",)),
        "classes": Wholes("int32", ("plane",)),
        "signs": Wholes("int32", ("plane",), -1, 2),
        "group_starts": Wholes("int64", ("group + 1",)),
        "decomposition": Nested(DECOMPOSITION),
        "estimators": Count(1),
        "units": Count(1, MOST_UNITS),
        "group_weights": Maybe(Numbers("float32", ("group",))),
        "empty_score": Number(may_be_endless=True),
        "soft": Flag(),
        "calibration": Number(),
    },
    {
        "classes": "plane_class",
        "signs": "plane_sign",
        "estimators": "n_estimators",
        "units": "n_units",
        "soft": "is_soft",
    },
    before=lambda record: _Grouped(record),
    check=_check_planes,
)


class _Grouped:
    """A record, and where its groups of planes begin."""

    def __init__(self, record: PlaneRecord) -> None:
        self.record = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)

    @property
    def group_starts(self) -> Array:
        return np.searchsorted(self.record.group, np.arange(self.record.n_groups + 1))


@dataclass(frozen=True)
class _KernelText:
    """A kernel in words and numbers."""

    name: str
    columns: int
    gamma: float
    coef0: float
    degree: int


def _kernel_text(kernel: Kernel) -> _KernelText:
    if isinstance(kernel, GivenKernel):
        return _KernelText("precomputed", kernel.n_columns, 0.0, 0.0, 0)
    if not isinstance(kernel, FormulaKernel):
        function = getattr(kernel, "function", kernel)
        raise ModelError(f"kernel is {function!r}, which a model file cannot hold")
    formula = kernel.formula
    name = entry_of(formula).name
    gamma, coef0 = getattr(formula, "gamma", 0.0), getattr(formula, "coef0", 0.0)
    return _KernelText(name, kernel.n_columns, gamma, coef0, getattr(formula, "degree", 0))


def _kernel(name: str, columns: int, gamma: Any, coef0: Any, degree: int) -> Kernel:
    if name == "precomputed":
        return GivenKernel(offset=0.0, n_columns=columns)
    formula = FORMULAS[name].made(gamma, coef0, degree, np.float32(0))
    return FormulaKernel(formula=formula, n_columns=columns)


KERNEL = Table(
    _kernel,
    {
        "name": Word(KERNELS),
        "columns": Count(),
        "gamma": Number(dtype=np.float32),
        "coef0": Number(dtype=np.float32),
        "degree": Count(),
    },
    before=_kernel_text,
)


def _support(entries: CsrRows, numbers: Array, labels: Array) -> KernelRows:
    need(numbers.size == entries.starts.size - 1, "support vectors are counted wrongly")
    return KernelRows(entries, squared_lengths(entries), numbers, labels)


SUPPORT = Table(
    _support,
    {
        "rows": Nested(ROWS),
        "numbers": Wholes("int64", ("row",)),
        "classes": Wholes("int32", ("row",)),
    },
    {"rows": "entries", "classes": "labels"},
)


class _Joined:
    """A record of kernels whose expansions stand one after the other."""

    def __init__(self, record: KernelRecord) -> None:
        self.kernel, self.support = record.kernel, record.support
        self.decomposition, self.intercepts = record.decomposition, record.intercepts
        sizes = [expansion.place.size for expansion in record.expansions]
        self.problem_starts = np.cumsum([0, *sizes])
        self.places = np.concatenate([expansion.place for expansion in record.expansions])
        self.coefficients = np.concatenate([expansion.coef for expansion in record.expansions])


def _kernel_record(
    kernel: Kernel,
    support: KernelRows,
    decomposition: Decomposition,
    problem_starts: Array,
    places: Array,
    coefficients: Array,
    intercepts: Array,
) -> KernelRecord:
    n_problems, starts = decomposition.n_problems(), problem_starts
    need(starts.size == n_problems + 1, "problems are missing")
    need(intercepts.size == n_problems, "problems are missing")
    need_starts(starts, places.size, "problems begin nowhere")
    need(bool((places < support.size).all()), "a coefficient has no support vector")
    bounds = starts.tolist()
    expansions = [
        Expansion(places[a:b], coefficients[a:b], intercept)
        for a, b, intercept in zip(bounds[:-1], bounds[1:], intercepts.tolist(), strict=True)
    ]
    columns, n_columns = support.entries.columns, kernel.n_columns
    need(columns.size == 0 or int(columns.max()) < n_columns, "a column is out of range")
    is_given = isinstance(kernel, GivenKernel)
    numbers = support.numbers
    need(not is_given or bool((numbers < n_columns).all()), "a number of a row is out of range")
    need(bool((support.labels < decomposition.n_classes).all()), "a support vector has no class")
    return KernelRecord(kernel, support, expansions, decomposition)


SUPPORT_VECTORS = Table(
    _kernel_record,
    {
        "kernel": Nested(KERNEL),
        "support": Nested(SUPPORT),
        "decomposition": Nested(DECOMPOSITION),
        "problem_starts": Wholes("int64", ("problem + 1",)),
        "places": Wholes("int32", ("coefficient",)),
        "coefficients": Numbers("float64", ("coefficient",)),
        "intercepts": Numbers("float64", ("problem",)),
    },
    before=_Joined,
)


# ---- the whole ---------------------------------------------------------------------------


class _Points:
    """The points of a history, as two arrays."""

    def __init__(self, history: Array) -> None:
        names = [name for name in history.dtype.names or () if name != "error"]
        columns = [history[name] for name in names]
        self.counts = np.stack(columns, axis=1) if columns else np.empty((0, 5), np.int64)
        self.errors = history["error"]


def _history(counts: Array, errors: Array) -> Array:
    made = np.empty(errors.size, HISTORY)
    for k, name in enumerate(name for name in HISTORY.names or () if name != "error"):
        made[name] = counts[:, k]
    made["error"] = errors
    return made


POINTS = Table(
    _history,
    {
        "counts": Wholes("int64", ("point", "5")),
        "errors": Numbers("float64", ("point",)),
    },
    before=_Points,
)


def _check_model(model: FittedModel) -> None:
    record, features, n_columns = model.record, model.features, model.n_columns
    need(record.decomposition.n_classes == model.labels.size, "classes and labels differ")
    need(model.names is None or len(model.names) == n_columns, "names of columns are too many")
    need(
        model.scaler is None or model.scaler.n_columns == n_columns, "a scaler is of other columns"
    )
    need(model.call is not None, "there is no record of how it was trained")
    n_models = record.decomposition.n_problems() * getattr(record, "n_estimators", 1)
    if isinstance(record, PlaneRecord) and record.group_weights is not None:
        n_models = record.n_groups  # of a blend, in which each model has a group at least
    need(bool((model.history["model"] < n_models).all()), "a history is of no model")
    if isinstance(record, KernelRecord):
        need(features is None, "support vectors have features")
        need(record.kernel.n_columns == n_columns, "the number of columns is unclear")
        need(
            record.decomposition.kind != "joint",
            "an algorithm of kernels with all classes in one problem",
        )
        return
    need(features is not None, "planes have no features")
    assert features is not None
    widths = [one.n_columns for one in (features.columns, features.products) if one is not None]
    need(widths in ([], [n_columns]), "the number of columns is unclear")
    n_features = n_columns
    if features.columns is not None:
        n_features = features.columns.n_features
    if features.products is not None:
        n_features = features.products.n_hash or n_mapped(n_columns)
    need(len(record.sums) == n_features + 1, "planes have other features")


def _fitted(planes: Any, support_vectors: Any, **fields: Any) -> FittedModel:
    need((planes is None) != (support_vectors is None), "there are not planes or support vectors")
    return FittedModel(record=planes or support_vectors, **fields)


class _Parted:
    """A model whose record is of one of two kinds."""

    def __init__(self, model: FittedModel) -> None:
        self.model = model
        self.planes = model.record if model.has_planes else None
        self.support_vectors = None if model.has_planes else model.record

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


PREDICTION = Table(
    _fitted,
    {
        "algorithm": Text(),
        "labels": Labels(),
        "columns": Count(0, 1 << 31),
        "names": Maybe(Many(Text())),
        "planes": Maybe(Nested(PLANES)),
        "features": Maybe(Nested(FEATURES)),
        "support_vectors": Maybe(Nested(SUPPORT_VECTORS)),
        "probabilities": Flag(),
        "dense": Flag(),
        "scaler": Maybe(Nested(SCALER)),
        "parameters": Settings(),
        "found": Settings(),
        "steps": Count(),
        "passes": Count(),
        "alpha": Maybe(Number(0)),
        "gamma": Maybe(Number(0)),
        "history": Nested(POINTS),
        "version": Text(),
        "table": Json(),
        "call": Json(),
        "fit_report": Json(),
    },
    {
        "columns": "n_columns",
        "probabilities": "has_probabilities",
        "dense": "is_dense",
        "steps": "n_steps",
        "passes": "n_passes",
    },
    before=_Parted,
    check=_check_model,
)


def write_prediction(model: FittedModel, out: Writer) -> dict[str, Any]:
    """The prediction part as JSON; its arrays go to `out`."""
    return PREDICTION.write(model, "prediction", out)


def read_prediction(values: dict[str, Any], source: Reader) -> FittedModel:
    """The prediction part of a file's values."""
    need(isinstance(values, dict) and "prediction" in values, "there is no prediction part")
    model: FittedModel = PREDICTION.read(values["prediction"], "prediction", source)
    return model


@contextlib.contextmanager
def refusing(path: Any) -> Iterator[None]:
    """Raise any error while a file is put together as one sentence about the file."""
    try:
        yield
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelError(f"is damaged or made by hand: {words}", path) from error


def read_fitted(path: Any) -> FittedModel:
    """The model of a file, of which only the prediction part is looked at."""
    values, arrays = read_file(path)
    with refusing(path):
        return read_prediction(values, Reader(arrays))
