"""What a verb of the command line is: plain values, from which help and parsing are both made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Argument", "Option", "Verb", "spelt"]


@dataclass(frozen=True)
class Argument:
    """Something that stands on the command line by its place."""

    name: str  # as the verb's function calls it
    shown: str  # as help calls it
    help: str
    is_many: bool = False


@dataclass(frozen=True)
class Option:
    """Something that stands on the command line by its name."""

    name: str  # as the verb's function calls it
    help: str
    kind: Any = str  # str, int, bool, or list[str] where it may be said again
    names: Sequence[str] = ()  # on the command line; without any, made of its name
    shown: str = ""  # what stands for its value in help
    default: Any = None  # None is "not given"
    can_be_denied: bool = False  # a flag that also has a --no- form
    choices: Sequence[str] = ()  # what a shell completes
    panel: str = "Options"
    group: str = ""  # options of a group reach the verb's function as one value of that name
    is_hidden: bool = False

    @property
    def key(self) -> str:
        """Its name among all options of a verb; groups may use the same names."""
        return f"{self.group}_{self.name}" if self.group else self.name

    @property
    def spellings(self) -> list[str]:
        """How it is written, without the --no- form."""
        return list(self.names) or [spelt(self.name)]

    @property
    def denial(self) -> str:
        """Its --no- form, or nothing."""
        return self.spellings[-1].replace("--", "--no-", 1) if self.can_be_denied else ""

    def hidden(self) -> "Option":
        """The same, unmentioned in help."""
        return replace(self, is_hidden=True)


@dataclass(frozen=True)
class Verb:
    """A command."""

    name: str
    summary: str  # one sentence
    example: str  # a command line, without the program's name
    module: str  # its function `run` does the work
    arguments: Sequence[Argument] = ()
    options: Sequence[Option] = ()
    details: str = ""
    lists: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)  # more for help
    request: Callable[..., Any] | None = None  # makes what `run` takes of what was asked
    trains: bool = True  # whether it needs estimators, and with them scikit-learn


def spelt(name: str) -> str:
    """A name as an option: --n-planes for n_planes."""
    return "--" + name.replace("_", "-")
