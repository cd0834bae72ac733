"""What training leaves, taken apart into plain values and arrays, and put together again.

Values are JSON. What JSON does not know is an object with one key that says what it is: an array
is named, a record holds its fields. Only the records listed here, and the rules of the machine at
hand, are ever made of a file, and each is looked at before anything is done with it
(`soundness.py`). What can be derived is not stored: cached kernel values, norms of support rows,
the scores of the row at hand.
"""

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes import hinge, softmax
from polyplane.engine.planes.assignment import Tally
from polyplane.engine.planes.planes import NO_PLANE, Array, Planes
from polyplane.engine.rows.mapped import ColumnTable
from polyplane.engine.rows.storage import CsrRows
from polyplane.engine.support import gram
from polyplane.engine.support.gram import squared_lengths
from polyplane.engine.support.support_set import NOT_THERE, SupportSet, with_room
from polyplane.estimator.kernels.kernel_training import (
    KernelCourse,
    KernelModel,
    KernelTraining,
    SupportRows,
)
from polyplane.estimator.planes.stream_start import FirstRows
from polyplane.estimator.planes.training import Course, Model, Snapshot, Training, Watch
from polyplane.estimator.resuming import SeenRows
from polyplane.estimator.streams import StreamCourse
from polyplane.estimator.validation import TrainingData
from polyplane.model.column_maps import ColumnMap
from polyplane.model.decomposition import Problem
from polyplane.model.file import CODES, ModelError
from polyplane.model.kernels import FormulaKernel, GivenKernel, KernelRows

__all__ = ["Packer", "Unpacker"]

RECORDS = (
    Training, Model, Planes, Problem, Course, Watch, Snapshot, SeenRows, StreamCourse,
    ColumnMap, ColumnTable, Tally, FirstRows, TrainingData, CsrRows,
    KernelTraining, KernelModel, KernelCourse, SupportSet, SupportRows, FormulaKernel, GivenKernel,
    gram.LinearKernel, gram.PolynomialKernel, gram.RbfKernel, gram.SigmoidKernel,
    hinge.HingeRule, hinge.SparseRule, softmax.SoftmaxRule,
)  # fmt: skip
DEEPEST = 40  # nested values; a model needs a dozen
WIDEST_TEXT = 256  # bytes of a label that may be spare room


class Half(NamedTuple):
    """How a kind of record is stored, where that is not simply its fields."""

    apart: Callable[[Any], dict[str, Any]]
    together: Callable[..., Any]


def _fields_of(record: Any) -> dict[str, Any]:
    if isinstance(record, tuple):
        return record._asdict()  # type: ignore[attr-defined,no-any-return]
    names = [field.name for field in dataclasses.fields(record) if field.init]
    names += ["generator"] if hasattr(record, "generator") else []
    return {name: getattr(record, name) for name in names}


def _made_of(kind: Any, fields: dict[str, Any]) -> Any:
    generator = fields.pop("generator", None)
    made = kind(**fields)
    if generator is not None and hasattr(made, "generator"):
        made.generator = generator
    return made


def _is_record(kind: type) -> bool:
    """Rules of machines are not listed, but they are named tuples of ours."""
    is_tuple = issubclass(kind, tuple) and kind.__module__.startswith("polyplane.")
    return kind in RECORDS or is_tuple


def _without(record: Any, *derived: str) -> dict[str, Any]:
    return {name: value for name, value in _fields_of(record).items() if name not in derived}


def _kernel_training(pool: SupportRows, **fields: Any) -> KernelTraining:
    training: KernelTraining = _made_of(KernelTraining, {**fields, "pool": pool})
    numbers = training.support.numbers.tolist()
    training.places = {number: place for place, number in enumerate(numbers)}
    return training


def _support_rows(entries: CsrRows, numbers: Array, labels: Array) -> SupportRows:
    return SupportRows(KernelRows(entries, squared_lengths(entries), numbers, labels))


def _first_rows(room: int, n_rows: int, parts: list[TrainingData]) -> FirstRows:
    made = FirstRows(room)
    made.n_rows, made.parts = n_rows, parts
    return made


def _planes(**fields: Any) -> Planes:
    owner = fields["owner"]
    return Planes(
        **fields,
        idle=np.where(owner == NO_PLANE, np.float32(-np.inf), np.float32(0)),
        scores=np.zeros(owner.size, np.float32),
        shrunk_scores=np.zeros(owner.size, np.float32),
    )


def _support_set(**fields: Any) -> SupportSet:
    n_slots = fields["place"].size
    return SupportSet(
        **fields,
        gram=np.zeros((0, n_slots), np.float32),
        line=np.full(n_slots, NOT_THERE, np.int32),
        owner=np.empty(0, np.int32),
        used=np.empty(0, np.int64),
    )


STORED: dict[type, Half] = {
    Training: Half(
        lambda training: _without(training, "centres"), lambda **kept: _made_of(Training, kept)
    ),
    Planes: Half(lambda planes: _without(planes, "idle", "scores", "shrunk_scores"), _planes),
    FirstRows: Half(vars, _first_rows),
    ColumnMap: Half(  # older programs read maps of all columns
        lambda columns: _without(columns, *(["used"] if columns.used is None else [])),
        lambda **kept: _made_of(ColumnMap, kept),
    ),
    SupportRows: Half(lambda pool: _without(pool.rows, "lengths"), _support_rows),
    SupportSet: Half(
        lambda held: _without(with_room(held, held.place.size, 0), "gram", "line", "owner", "used"),
        _support_set,
    ),
    KernelTraining: Half(
        lambda training: _without(training, "places", "n_learned"), _kernel_training
    ),
}


class Packer:
    """Takes values apart; arrays are named by where they stand, and each is stored once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}

    def pack(self, value: Any, name: str) -> Any:
        """The value as JSON; arrays in it are put aside."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, name)
        if isinstance(value, np.generic):
            return {"scalar": value.dtype.name, "value": self.pack(value.item(), name)}
        if isinstance(value, list):
            return [self.pack(item, f"{name}.{k}") for k, item in enumerate(value)]
        if isinstance(value, dict):
            pairs = [[key, item] for key, item in value.items()]
            return {"dict": self.pack(pairs, name)}
        if type(value) is tuple:
            return {"tuple": self.pack(list(value), name)}
        if isinstance(value, np.random.Generator):
            return {"generator": self.pack(value.bit_generator.state, name)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.pack(value.get_state(legacy=False), name)}
        return self._pack_record(value, name)

    def _pack_record(self, value: Any, name: str) -> Any:
        kind = type(value)
        if not _is_record(kind):
            raise ModelError(f"{name} is {value!r}, which a model file cannot hold")
        fields = STORED[kind].apart(value) if kind in STORED else _fields_of(value)
        packed = {field: self.pack(item, f"{name}.{field}") for field, item in fields.items()}
        return {"record": kind.__name__, "fields": packed}

    def _pack_array(self, array: Array, name: str) -> Any:
        if array.dtype.kind == "U" or array.dtype == object:
            texts = array.tolist()
            if array.ndim != 1 or not all(isinstance(text, str) for text in texts):
                raise ModelError(f"{name} holds objects that are no text")
            return {"texts": texts, "dtype": array.dtype.str}
        if array.dtype.name not in CODES:
            raise ModelError(f"{name} holds {array.dtype.name}, which a model file cannot hold")
        if id(array) not in self._names:
            self._names[id(array)] = name
            self.arrays[name] = array
        return {"array": self._names[id(array)]}


class Unpacker:
    """Puts values together, of arrays and of records that `check` has looked at."""

    def __init__(self, arrays: Mapping[str, Array], check: Callable[[Any], None]) -> None:
        self.arrays, self._check = arrays, check
        self.records: dict[str, Any] = {kind.__name__: kind for kind in RECORDS}

    def allow_rules_of(self, machine: type) -> None:
        """Named tuples of the modules that make up a machine are its rules."""
        for kind in machine.__mro__:
            if kind.__module__.startswith("polyplane."):
                for name, value in vars(sys.modules[kind.__module__]).items():
                    if isinstance(value, type) and issubclass(value, tuple):
                        self.records.setdefault(name, value)

    def unpack(self, packed: Any, depth: int = 0) -> Any:
        """The value that was packed."""
        if depth > DEEPEST:
            raise ValueError("values are nested too deeply")
        if isinstance(packed, list):
            return [self.unpack(item, depth + 1) for item in packed]
        if not isinstance(packed, dict):
            return packed
        kind = next(iter(packed), None)
        rest = packed.get(kind) if kind is not None else None
        match kind:
            case "float":
                return float(str(rest))
            case "scalar":
                return np.dtype(_known(rest, CODES)).type(self.unpack(packed["value"], depth + 1))
            case "tuple":
                return tuple(self.unpack(list(rest), depth + 1))  # type: ignore[arg-type]
            case "dict":
                return {key: value for key, value in self.unpack(list(rest), depth + 1)}  # type: ignore[arg-type]
            case "array":
                return self.arrays[rest]  # type: ignore[index]
            case "texts":
                return _texts(packed)
            case "generator" | "random_state":
                return _random(kind, self.unpack(rest, depth + 1))
            case "record":
                return self._unpack_record(packed, depth)
        raise ValueError(f"there is a value of unknown kind, {kind!r}")

    def _unpack_record(self, packed: dict[str, Any], depth: int) -> Any:
        kind = self.records[_known(packed["record"], self.records)]
        fields = {
            str(name): self.unpack(value, depth + 1) for name, value in packed["fields"].items()
        }
        made = STORED[kind].together(**fields) if kind in STORED else _made_of(kind, fields)
        self._check(made)
        return made


def _known(name: Any, names: Any) -> str:
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"there is something of unknown kind, {name!r}")
    return name


def _texts(packed: dict[str, Any]) -> Array:
    """Labels or names, as wide as they were unless that is absurd."""
    texts = [str(text) for text in packed["texts"]]
    if packed["dtype"] == "|O":
        return np.array(texts, object)
    exact = np.array(texts, np.str_)
    width = int(packed["dtype"].removeprefix("<U"))
    return exact.astype(f"<U{width}") if exact.itemsize <= 4 * width <= WIDEST_TEXT else exact


def _random(kind: str, state: dict[str, Any]) -> Any:
    if kind == "generator":
        generator = np.random.default_rng(0)
        generator.bit_generator.state = state
        return generator
    made = np.random.RandomState(0)
    made.set_state(state)
    return made
