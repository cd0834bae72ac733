"""Records of arrays, described once: from its fields' dtypes and axes a record is made and resized.

A record is a named tuple whose fields are annotated by `array`. Compiled loops see it as spans:
`spans_function` makes the tuple of spans and the function that takes them. What is stored of a
record in files, and how it is checked, is `estimator/files`' to say.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import LANES, span

__all__ = [
    "Field",
    "aligned_zeros",
    "array",
    "blank",
    "fields_of",
    "filled",
    "moved_along",
    "spans_function",
]

Record = TypeVar("Record")


class Field(NamedTuple):
    """An array of a record."""

    dtype: Any
    axes: tuple[str, ...]
    fill: float  # what stands where nothing has been put yet
    is_passing: bool  # only of use within a step: it is not kept when the record is resized


def array(dtype: Any, *axes: str, fill: float = 0, is_passing: bool = False) -> Field:
    """Return the annotation of a field: `Annotated[Any, array(np.float32, "feature", "lane")]`."""
    return Field(np.dtype(dtype), axes, fill, is_passing)


_tables: dict[Any, Mapping[str, Field]] = {}


def fields_of(kind: type) -> Mapping[str, Field]:
    """The table of a record."""
    if kind not in _tables:
        hints = get_type_hints(kind, include_extras=True).items()
        _tables[kind] = {
            name: get_args(hint)[1] for name, hint in hints if get_origin(hint) is Annotated
        }
    return _tables[kind]


def filled(kind: type[Record], /, **sizes: int) -> Record:
    """A record of so many elements along each axis, with nothing in it yet."""
    made = {name: blank(field, sizes) for name, field in fields_of(kind).items()}
    return kind(**made)


def blank(field: Field, sizes: Mapping[str, int]) -> Any:
    """An array with nothing in it yet."""
    shape = [sizes[axis] for axis in field.axes]
    if len(shape) == 2 and field.dtype == np.float32:
        return aligned_zeros(*shape)
    return np.full(shape, field.fill, field.dtype)


def aligned_zeros(n_rows: int, n_lanes: int) -> np.ndarray[Any, Any]:
    """Zeroed float32 matrix that starts on a cache line."""
    raw = np.zeros(n_rows * n_lanes + LANES, np.float32)
    skip = -raw.ctypes.data % (4 * LANES) // 4
    return raw[skip : skip + n_rows * n_lanes].reshape(n_rows, n_lanes)


def moved_along(record: Any, axis: str, places: Any, /, **sizes: int) -> Any:
    """A record of other sizes into whose first places along `axis` those named here are moved.

    Fields without that axis stay as they are, and what has no rows gets none.
    """
    made = {}
    for name, field in fields_of(type(record)).items():
        before = getattr(record, name)
        if axis not in field.axes:
            made[name] = before
            continue
        own = dict(zip(field.axes, before.shape, strict=True))
        grown = {k: n for k, n in sizes.items() if k == axis or own.get(k)}
        made[name] = blank(field, own | grown)
        if not field.is_passing and before.size:
            _move(before, places, made[name])
    return type(record)(**made)


def _move(before: Any, places: Any, after: Any) -> None:
    if before.ndim == 1:
        after[: len(places)] = before[places]
    else:
        _move_columns(before, places, after)


@jit
def _move_columns(before: Any, places: Any, after: Any) -> None:
    """All at once would need the memory twice."""
    for f in range(before.shape[0]):
        for k in range(places.size):
            after[f, k] = before[f, places[k]]


def spans_function(kind: type, **derived: str) -> tuple[Any, Any]:
    """The tuple of spans of a record, and the function by which a loop takes those of its argument.

    `derived` are numbers read off the record, by name: expressions in `record`.
    """
    names = [*kind._fields, *derived]  # type: ignore[attr-defined]
    made: Any = NamedTuple(f"{kind.__name__}Spans", [(name, Any) for name in names])  # type: ignore[misc]
    made.__module__ = kind.__module__
    taken = [*(f"span(record.{name})" for name in kind._fields), *derived.values()]  # type: ignore[attr-defined]
    source = f"def spans_of(record):\n    return Spans({', '.join(taken)})\n"
    scope: dict[str, Any] = {"Spans": made, "span": span, "__name__": kind.__module__}
    exec(compile(source, __file__, "exec"), scope)
    return made, inlined(scope["spans_of"])
