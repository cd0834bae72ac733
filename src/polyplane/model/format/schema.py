"""Records described once: a table of fields, from which writing, reading and checking are made.

Values   a record is an object of JSON with its fields by name. Numbers that are not finite are
         the texts "inf" and "-inf".
Arrays   are no part of the JSON: field f of the object at the path a.b is the array `a.b.f`.
Axes     of arrays have names, and a name means the same length throughout a record; "row + 1" is
         one more than "row". Whole numbers that point into an axis are bounded by its length.
Tables   name fields as files do. Where the class behind a record calls a field otherwise,
         `attributes` says how: so a class can be renamed and regrouped, and files stay.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.inspection import largest_magnitude
from polyplane.engine.records import blank, fields_of
from polyplane.model.format.checks import LARGEST_COUNT, need, need_within
from polyplane.model.format.model_file import CODES, ModelError

__all__ = [
    "Count", "Flag", "Generator", "GeneratorState", "Json", "Kind", "Labels", "Many", "Maybe",
    "Nested", "Number", "Numbers", "Plain", "Reader", "Settings", "Table", "Text", "Whole",
    "Wholes", "Word", "Writer", "table_of",
]  # fmt: skip

DEEPEST = 20  # nested plain values; parameters need two or three
WIDEST_TEXT = 256  # bytes of a label that may be spare room
NOTHING: Any = object()  # in place of JSON where a value is an array, or none


class Writer:
    """Collects the arrays of what is written."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}


class Reader:
    """Hands out the arrays of a file."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays

    def has(self, path: str) -> bool:
        """Return True if there is such an array."""
        return path in self.arrays

    def array(self, path: str) -> Array:
        """One of them."""
        need(path in self.arrays, f"the array {path} is missing")
        return self.arrays[path]


@dataclass(frozen=True)
class Kind:
    """Kind of a field; the simplest kinds are JSON as they are."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        """The value as JSON; arrays go to `out`."""
        return value

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        """The value, once it has been looked at."""
        raise NotImplementedError

    def finish(self, value: Any, path: str, sizes: Mapping[str, int]) -> None:
        """Look at what depends on the lengths of the record's other arrays."""


# ---- single values -----------------------------------------------------------------------


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    low: int = -LARGEST_COUNT
    high: int = LARGEST_COUNT  # the first that is too large

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return int(value)

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        is_whole = isinstance(plain, int) and not isinstance(plain, bool)
        words = f"{path} is {_said(plain)}, which is not a whole number in its range"
        need(is_whole and self.low <= plain < self.high, words)
        return plain


@dataclass(frozen=True)
class Count(Whole):
    """A whole number of at least 0."""

    low: int = 0


@dataclass(frozen=True)
class Number(Kind):
    """A number, finite unless it may be endless."""

    low: float = -math.inf
    high: float = math.inf
    may_be_endless: bool = False
    dtype: Any = float

    def write(self, value: Any, path: str, out: Writer) -> Any:
        number = float(value)
        return number if math.isfinite(number) else str(number)

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        if self.may_be_endless and plain in ("inf", "-inf"):
            plain = float(plain)
        is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
        need(is_number, f"{path} is {_said(plain)}, which is not a number")
        number = float(plain)
        is_right = self.may_be_endless or math.isfinite(self.dtype(number))
        need(is_right and self.low <= number <= self.high, f"{path} is {number}, out of its range")
        return self.dtype(number)


@dataclass(frozen=True)
class Flag(Kind):
    """True or false."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return bool(value)

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, bool), f"{path} is {_said(plain)}, which is not true or false")
        return plain


@dataclass(frozen=True)
class Text(Kind):
    """A text."""

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, str), f"{path} is {_said(plain)}, which is not a text")
        return plain


@dataclass(frozen=True)
class Word(Kind):
    """One of a few texts."""

    words: tuple[str, ...]

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        is_known = isinstance(plain, str) and plain in self.words
        need(is_known, f"{path} is {_said(plain)}, which is not one of {', '.join(self.words)}")
        return plain


@dataclass(frozen=True)
class Labels(Kind):
    """Labels of classes: numbers, truth values or texts, and their type in NumPy."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        values = value.tolist()
        is_text = value.dtype.kind == "U" or value.dtype == object
        if is_text and not all(isinstance(one, str) for one in values):
            raise ModelError("labels are objects other than text, which a model file cannot hold")
        if not is_text and value.dtype.name not in CODES:
            raise ModelError(f"labels are {value.dtype.name}, which a model file cannot hold")
        return {"values": values, "type": _text_type(value) if is_text else value.dtype.name}

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, dict), "there are no labels")
        values, kind = plain.get("values"), plain.get("type")
        need(isinstance(values, list) and isinstance(kind, str), "there are no labels")
        labels = _texts(values, kind) if kind.startswith("text") else _numbers(values, kind)
        is_sorted = labels.size > 0 and bool((labels[1:] > labels[:-1]).all())
        need(is_sorted, "labels are not there, or not in order")
        sizes["class"] = labels.size
        return labels


def _text_type(labels: Array) -> str:
    return "text" if labels.dtype == object else f"text {labels.dtype.itemsize // 4}"


def _texts(values: list[Any], kind: str) -> Array:
    """Return texts as wide as they were, unless that is absurd."""
    need(all(isinstance(value, str) for value in values), "a label is not a text")
    if kind == "text":
        return np.array(values, object)
    exact = np.array(values, np.str_)
    width = int(kind.removeprefix("text "))
    return exact.astype(f"<U{width}") if exact.itemsize <= 4 * width <= WIDEST_TEXT else exact


def _numbers(values: list[Any], kind: str) -> Array:
    need(kind in CODES, f"labels are {_said(kind)}, which is not a type of labels")
    wanted = bool if kind == "bool" else int if "int" in kind else float
    need(all(type(value) is wanted for value in values), f"a label is not of the type {kind}")
    labels = np.array(values, kind)
    need(labels.tolist() == values and np.isfinite(labels).all(), f"a label does not fit in {kind}")
    return labels


# ---- arrays ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers(Kind):
    """An array of finite numbers, of a dtype or of one of "several|dtypes"."""

    dtype: str
    axes: tuple[str, ...]

    def write(self, value: Any, path: str, out: Writer) -> Any:
        array = np.asarray(value)
        known = self.dtype.split("|")
        out.arrays[path] = array if array.dtype.name in known else array.astype(known[-1])
        return NOTHING

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        array = source.array(path)
        known = self.dtype.split("|")
        is_right = array.dtype.name in known and array.ndim == len(self.axes)
        wanted = f"{' or '.join(known)} in {len(self.axes)} dimensions"
        need(is_right, f"the array {path} is not of {wanted}")
        for axis, length in zip(self.axes, array.shape, strict=True):
            name, _, more = axis.partition(" + ")
            size = length - int(more or 0)
            expected = int(name) if name.isdecimal() else sizes.setdefault(name, size)
            words = f"the array {path} has length {length} instead of {expected + int(more or 0)}"
            need(size == expected and size >= 0, words)
        is_finite = array.dtype.kind != "f" or np.isfinite(largest_magnitude(array))
        need(is_finite, f"the array {path} holds NaN or infinity")
        return array


@dataclass(frozen=True)
class Wholes(Numbers):
    """An array of whole numbers from `low` up to, but not including, `below`: a number or axis."""

    low: int = 0
    below: int | str = LARGEST_COUNT

    def finish(self, value: Any, path: str, sizes: Mapping[str, int]) -> None:
        below = sizes[self.below] if isinstance(self.below, str) else self.below
        need_within(value, self.low, below, f"{path} is")


# ---- records -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A record: how it is made of its fields, and which these are."""

    make: Callable[..., Any]
    fields: Mapping[str, Kind]
    attributes: Mapping[str, str] = field(default_factory=dict)  # where they have other names
    derived: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    before: Callable[[Any], Any] = lambda record: record  # what is written in its place
    check: Callable[[Any], None] = lambda record: None  # what the fields cannot say

    def attribute(self, name: str) -> str:
        """Return the name of a field in the record."""
        return self.attributes.get(name, name)

    def write(self, record: Any, path: str, out: Writer) -> dict[str, Any]:
        """The record as JSON; its arrays go to `out`."""
        record, plain = self.before(record), {}
        for name, kind in self.fields.items():
            written = kind.write(getattr(record, self.attribute(name)), f"{path}.{name}", out)
            if written is not NOTHING:
                plain[name] = written
        return plain

    def read(self, plain: Any, path: str, source: Reader) -> Any:
        """The record, once it has been looked at."""
        need(isinstance(plain, dict), f"{path} is {_said(plain)}, which is not a record")
        sizes: dict[str, int] = {}
        values = {
            name: kind.read(plain.get(name), f"{path}.{name}", source, sizes)
            for name, kind in self.fields.items()
        }
        for name, kind in self.fields.items():
            kind.finish(values[name], f"{path}.{name}", sizes)
        made = {self.attribute(name): value for name, value in values.items()}
        for name, derive in self.derived.items():
            made[name] = derive(made)
        record = self.make(**made)
        self.check(record)
        return record


def table_of(
    record: type,
    bounds: Mapping[str, tuple[int, int | str]],
    axes: Mapping[str, str],
    left_out: Collection[str] = (),
    **more: Any,
) -> Table:
    """The table of a record of arrays, whose dtypes and axes `engine/records.py` knows.

    `bounds` are of whole numbers, `axes` those that files call otherwise or that have a length
    which is fixed. What is `left_out` of files is read as arrays with nothing in them yet, as is
    what only matters within a step; `more` is what tables have beside fields.
    """
    known = fields_of(record)
    names = {name: file_name for file_name, name in more.get("attributes", {}).items()}
    empty = [name for name in known if name in left_out or known[name].is_passing]
    kinds: dict[str, Kind] = {}
    for name, one in known.items():
        own_axes = tuple(axes.get(axis, axis) for axis in one.axes)
        if name in empty:
            continue
        if one.dtype.kind == "f":
            kinds[names.get(name, name)] = Numbers(one.dtype.name, own_axes)
        else:
            low, below = bounds.get(name, (0, LARGEST_COUNT))
            kinds[names.get(name, name)] = Wholes(one.dtype.name, own_axes, low, below)

    def nothing(name: str) -> Callable[[Mapping[str, Any]], Any]:
        def made_of(made: Mapping[str, Any]) -> Any:
            sizes = dict.fromkeys(known[name].axes, 0)
            for other, array in made.items():
                sizes |= dict(zip(known[other].axes, array.shape, strict=True))
            return blank(known[name], sizes)

        return made_of

    derived = {name: nothing(name) for name in empty} | dict(more.pop("derived", {}))
    return Table(record, kinds, derived=derived, **more)


@dataclass(frozen=True)
class Nested(Kind):
    """A record within a record."""

    table: Table

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return self.table.write(value, path, out)

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        return self.table.read(plain, path, source)


@dataclass(frozen=True)
class Maybe(Kind):
    """Something, or null."""

    kind: Kind

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return None if value is None else self.kind.write(value, path, out)

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        is_there = source.has(path) if isinstance(self.kind, Numbers) else plain is not None
        return self.kind.read(plain, path, source, sizes) if is_there else None

    def finish(self, value: Any, path: str, sizes: Mapping[str, int]) -> None:
        if value is not None:
            self.kind.finish(value, path, sizes)


@dataclass(frozen=True)
class Many(Kind):
    """A list of things without arrays of the record's own axes."""

    kind: Kind

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return [self.kind.write(one, f"{path}.{k}", out) for k, one in enumerate(value)]

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, list), f"{path} is {_said(plain)}, which is not a list")
        return [self.kind.read(one, f"{path}.{k}", source, sizes) for k, one in enumerate(plain)]


# ---- random numbers ----------------------------------------------------------------------


@dataclass(frozen=True)
class GeneratorState(Kind):
    """The state of a NumPy generator, as it says it itself."""

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        return _generator(plain, path).bit_generator.state


@dataclass(frozen=True)
class Generator(Kind):
    """A generator of random numbers."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return value.bit_generator.state

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        return _generator(plain, path)


def _generator(state: Any, path: str) -> Any:
    made = np.random.default_rng(0)
    need(isinstance(state, dict), f"{path} is {_said(state)}, which is not a generator")
    try:
        made.bit_generator.state = state
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        need(False, f"{path} is not a generator")
    return made


# ---- what users have set -----------------------------------------------------------------


@dataclass(frozen=True)
class Plain(Kind):
    """Any value that a parameter may have.

    What JSON does not know is an object with one key that says what it is: `float` ("inf",
    "-inf", "nan"), `tuple`, `dict` (pairs), `scalar` (of NumPy, with its value) or `random_state`.
    """

    def write(self, value: Any, path: str, out: Writer) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.generic) and value.dtype.name in CODES:
            return {"scalar": [value.dtype.name, self.write(value.item(), path, out)]}
        if isinstance(value, list):
            return [self.write(one, path, out) for one in value]
        if type(value) is tuple:
            return {"tuple": self.write(list(value), path, out)}
        if isinstance(value, dict):
            return {"dict": [self.write([*pair], path, out) for pair in value.items()]}
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            inner = {**state["state"], "key": state["state"]["key"].tolist()}
            return {"random_state": {**state, "state": inner}}
        name = path.rpartition(".")[2]
        raise ModelError(f"{name} is {value!r}, which a model file cannot hold")

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        return self._read(plain, path, 0)

    def _read(self, plain: Any, path: str, depth: int) -> Any:
        need(depth < DEEPEST, "values are nested too deeply")
        if isinstance(plain, list):
            return [self._read(one, path, depth + 1) for one in plain]
        if not isinstance(plain, dict):
            return plain
        need(len(plain) == 1, f"{path} is of unknown kind")
        ((kind, inner),) = plain.items()
        match kind:
            case "float":
                need(inner in ("inf", "-inf", "nan"), f"{path} is not a number")
                return float(inner)
            case "scalar":
                name, value = self._read(list(inner), path, depth + 1)
                need(isinstance(name, str) and name in CODES, f"{path} is of unknown kind")
                return np.dtype(name).type(value)
            case "tuple":
                return tuple(self._read(list(inner), path, depth + 1))
            case "dict":
                return {key: value for key, value in self._read(list(inner), path, depth + 1)}
            case "random_state":
                return _random_state(inner)
        need(False, f"{path} is of unknown kind, {_said(kind)}")


@dataclass(frozen=True)
class Settings(Kind):
    """Parameters by name."""

    def write(self, value: Any, path: str, out: Writer) -> Any:
        return {name: Plain().write(one, f"{path}.{name}", out) for name, one in value.items()}

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        need(isinstance(plain, dict), f"{path} is {_said(plain)}, which is not a record")
        return {
            name: Plain().read(one, f"{path}.{name}", source, sizes) for name, one in plain.items()
        }


@dataclass(frozen=True)
class Json(Kind):
    """An object of JSON as it is, or null."""

    def read(self, plain: Any, path: str, source: Reader, sizes: dict[str, int]) -> Any:
        is_one = plain is None or isinstance(plain, dict)
        need(is_one, f"{path} is {_said(plain)}, which is not a record")
        return plain


def _random_state(plain: Any) -> Any:
    made = np.random.RandomState(0)
    state = {**plain, "state": {**plain["state"], "key": np.array(plain["state"]["key"], "u4")}}
    made.set_state(state)
    return made


def _said(value: Any) -> str:
    """A value for a sentence."""
    return f"{value!r}"[:60]
