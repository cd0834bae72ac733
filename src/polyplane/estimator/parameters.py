"""Parameters of an estimator: default, meaning and range, each written once.

An estimator is a dataclass of `parameter` fields, so a subclass names only what it adds. The
constructor, the checks, the docstring and later the command line are all read off the fields.
"""

import dataclasses
import functools
import inspect
import numbers
import operator
import re
import textwrap
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

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
    """Values that a parameter may have: a test, and the words for messages and docstrings."""

    allows: Callable[[Any], bool]
    words: str

    def kind(self) -> str:
        """Return the words as the type of a parameter in a docstring."""
        words = re.sub(r"\ba (?=whole|number|list|dict|function)", "", self.words)
        return words.replace("True or False", "bool").replace(", or", " or")


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
    """Return the range of values that any of the ranges allows."""
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


# ---- the docstring -----------------------------------------------------------------------

SECTION = re.compile(r"^(Attributes|See Also|Notes|References|Examples)\n-+\n", re.MULTILINE)
DOCUMENTED_WIDTH = 84  # characters of a line of a description, its indent included


def docstring_of(cls: Any) -> str:
    """Return the docstring of an estimator with its parameters and fitted attributes.

    The text of the class comes first, then the parameters of its fields, then the attributes that
    it and its bases declare, then the other sections of the class.
    """
    text, sections = _sections(cls)
    parts = [text, _titled("Parameters", _parameter_entries(cls))]
    parts.append(_titled("Attributes", _attribute_entries(cls)))
    parts += [_titled(title, body) for title, body in sections.items() if title != "Attributes"]
    return "\n\n".join(parts) + "\n"


def _titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def _sections(cls: Any) -> tuple[str, dict[str, str]]:
    """Return the text of a class before its sections, and the sections by title."""
    text, *rest = SECTION.split(inspect.cleandoc(vars(cls).get("__doc__") or ""))
    bodies = [body.strip("\n") for body in rest[1::2]]
    return text.strip(), dict(zip(rest[::2], bodies, strict=True))


def _entry(name: str, kind: str, meaning: str) -> str:
    lines = textwrap.wrap(
        meaning, DOCUMENTED_WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    return "\n".join([f"{name} : {kind}", *lines])


def _parameter_entries(cls: Any) -> str:
    return "\n".join(
        _entry(
            field.name,
            f"{field.metadata['allowed'].kind()}, default={field.default!r}",
            field.metadata["meaning"],
        )
        for field in dataclasses.fields(cls)
    )


def _attribute_entries(cls: Any) -> str:
    """Return the attributes that a class and its bases declare in their docstrings.

    A declaration is `name : type`, with the meaning below it or in the docstring of the property
    of that name. Attributes of which a class says that it has none (`NoReturn`) are left out.
    """
    declared: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__):
        lines = _sections(base)[1].get("Attributes", "").splitlines() if base is not object else []
        name = ""
        for line in lines:
            if not line.startswith(" "):
                name, _, kind = line.partition(" : ")
                declared[name] = (kind, "")
            else:
                kind, meaning = declared[name]
                declared[name] = (kind, f"{meaning} {line.strip()}".strip())
    entries = []
    for name, (kind, meaning) in declared.items():
        shown = getattr(cls, name, None)
        if isinstance(shown, property) and shown.fget is not None:
            if shown.fget.__annotations__.get("return") is NoReturn:
                continue
            meaning = meaning or " ".join((shown.__doc__ or "").split())
        entries.append(_entry(name, kind, meaning))
    return "\n".join(entries)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def with_parameters(cls: Class) -> Class:
    """Make a constructor of the `parameter` fields of a class and of those it inherits."""
    made: Any = dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
    return cast(Class, made)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def register(cls: Class) -> Class:
    """Make an estimator of a class with `parameter` fields and enter it in the registry."""
    made = with_parameters(cls)
    made.__doc__ = docstring_of(made)
    REGISTRY[cls.__name__] = made
    return made
