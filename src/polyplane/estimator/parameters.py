"""Parameters of an estimator: default, meaning and range, each written once.

An estimator is a dataclass of `parameter` fields, so a subclass names only what it adds. The
constructor, the checks, the docstring and later the command line are all read off the fields.
"""

import dataclasses
import functools
import numbers
import operator
import textwrap
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast, dataclass_transform

__all__ = [
    "REGISTRY",
    "Range",
    "at_least",
    "between",
    "check_parameters",
    "closed",
    "either",
    "is_flag",
    "is_whole",
    "one_of",
    "parameter",
    "parameters_of",
    "positive",
    "register",
    "whole",
    "with_parameters",
]

REGISTRY: dict[str, type] = {}
_CHECKED: Any = weakref.WeakKeyDictionary()  # the parameters of estimators when they were checked
Class = TypeVar("Class", bound=type)


@dataclasses.dataclass(frozen=True)
class Range:
    """What a parameter may be: a test, and the words for the error message."""

    allows: Callable[[Any], bool]
    words: str


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """A whole number, which truth values are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def positive(low: float = 1e-15, high: float = 1e15) -> Range:
    """A number above zero with which products stay within float32, which ends at 3e38.

    Planes are sums of rows over alpha, and scores are rows times planes: with values of X up to
    1e10, the largest that are accepted, 1e20 / alpha leaves room for rows of a thousand columns.
    """
    return closed(low, high)


def at_least(low: int, whole: bool = True) -> Range:
    """A whole (or any) number from `low` on."""
    is_kind, kind = (is_whole, "a whole number") if whole else (_is_number, "a number")
    return Range(lambda v: is_kind(v) and low <= v < float("inf"), f"{kind} of at least {low}")


def whole(low: int, high: int) -> Range:
    """A whole number from `low` to `high`."""
    words = f"a whole number from {low} to {high}"
    return Range(lambda v: is_whole(v) and low <= v <= high, words)


def between(low: float, high: float) -> Range:
    """A number strictly between two."""
    return Range(lambda v: _is_number(v) and low < v < high, f"a number between {low} and {high}")


def closed(low: float, high: float) -> Range:
    """A number from `low` to `high`."""
    words = f"a number from {low:g} to {high:g}".replace("e+", "e")
    return Range(lambda v: _is_number(v) and low <= v <= high, words)


def one_of(*values: Any) -> Range:
    """One of a few values."""
    return Range(
        lambda v: any(v is x or (isinstance(v, str) and v == x) for x in values),
        " or ".join(repr(x) for x in values),
    )


def is_flag() -> Range:
    """True or False."""
    return Range(lambda v: isinstance(v, bool) or type(v).__name__ == "bool", "True or False")


def either(*ranges: Range) -> Range:
    """What any of the ranges allows."""
    return Range(lambda v: any(r.allows(v) for r in ranges), ", or ".join(r.words for r in ranges))


def parameter(*, default: Any, allowed: Range, meaning: str) -> Any:
    """A field of an estimator."""
    return dataclasses.field(
        default=default, metadata={"allowed": allowed, "meaning": meaning}, kw_only=True
    )


@functools.cache
def parameters_of(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of all parameters, of those too that a kind has fixed, and their reader."""
    kinds = [base for base in kind.__mro__ if dataclasses.is_dataclass(base)]
    names = tuple({field.name: None for base in kinds for field in dataclasses.fields(base)})
    return names, operator.attrgetter(*names)


def check_parameters(estimator: Any) -> None:
    """Every parameter lies in its range, or one sentence says which does not."""
    kind: Any = type(estimator)
    values = parameters_of(kind)[1](estimator)
    known = _CHECKED.get(estimator)
    if known is not None and all(map(operator.is_, known, values)):
        return  # they have been looked at: single rows are learned in less time than that takes
    for field in dataclasses.fields(estimator):
        value, allowed = getattr(estimator, field.name), field.metadata["allowed"]
        if not allowed.allows(value):
            raise ValueError(
                f"{type(estimator).__name__}: {field.name} must be {allowed.words}; got {value!r}."
            )
    _CHECKED[estimator] = values


def _parameter_section(cls: Any) -> str:
    lines = ["Parameters", "----------"]
    for field in dataclasses.fields(cls):
        allowed = field.metadata["allowed"].words
        lines.append(f"{field.name} : {allowed}; default {field.default!r}")
        lines += textwrap.wrap(
            field.metadata["meaning"], 84, initial_indent="    ", subsequent_indent="    "
        )
    return "\n".join(lines)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def with_parameters(cls: Class) -> Class:
    """Make a constructor of the `parameter` fields of a class and of those it inherits."""
    made: Any = dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
    return cast(Class, made)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def register(cls: Class) -> Class:
    """Make an estimator of a class with `parameter` fields and enter it in the registry."""
    made = with_parameters(cls)
    made.__doc__ = f"{textwrap.dedent(cls.__doc__ or '').strip()}\n\n{_parameter_section(made)}\n"
    REGISTRY[cls.__name__] = made
    return made
