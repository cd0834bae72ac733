"""Algorithms and their parameters as the command line knows them, without importing any."""

import functools
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.declarations import spelt

__all__ = ["ALGORITHM", "Algorithm", "Parameter", "algorithm_of", "algorithms", "stored_facts"]

ALGORITHM = "polyplane"  # unless another is named
RENAMED = {"max_iter": "--epochs", "n_jobs": "--jobs", "n_hash": "--poly2-n-hash"}


@functools.cache
def stored_facts() -> Any:
    """What `polyplane.cli.options.facts` has written down."""
    return json.loads(Path(__file__).with_name("parameters.json").read_text())


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm."""

    name: str
    is_flag: bool
    number: str | None  # "whole", "real" or none at all
    words: list[str]
    takes_none: bool
    takes_weights: bool
    default: Any
    range: str
    meaning: str

    @property
    def option(self) -> str:
        """How it is spelt; --n-hash is an option of reading already."""
        return RENAMED.get(self.name) or spelt(self.name)

    @property
    def shown(self) -> str:
        """What stands for its value in help."""
        kinds = [{"whole": "WHOLE", "real": "NUMBER"}[self.number]] if self.number else []
        kinds += [*self.words, *["LABEL=WEIGHT,.."] * self.takes_weights]
        return "|".join([*kinds, *["none"] * self.takes_none])

    @property
    def expected(self) -> str:
        """Its range in words of the command line."""
        if self.takes_weights:
            return "balanced, none, or weights such as yes=2,no=1"
        return self.range.replace("'", "").replace("None", "none")

    def value_of(self, text: str) -> Any:
        """What a text on the command line means."""
        if text in self.words:
            return text
        if self.takes_none and text.lower() == "none":
            return None
        try:
            if self.takes_weights and "=" in text:
                return _weights_of(text)
            if self.number is not None:
                return _number_of(text, self.number == "whole")
        except ValueError:
            pass
        raise CallError(f"{self.option} is {text!r}, expected {self.expected}.")

    def text_of(self, value: Any) -> str:
        """The option that sets it to a value, as a shell reads it."""
        if self.is_flag:
            return self.option if value else self.option.replace("--", "--no-", 1)
        if isinstance(value, dict):
            value = ",".join(f"{label}={weight:g}" for label, weight in value.items())
        return f"{self.option} {'none' if value is None else shlex.quote(str(value))}"


def _number_of(text: str, is_whole: bool) -> float | int:
    """A number; 1e6 is a whole one, too."""
    number = float(text)
    if not is_whole:
        return number
    if number != int(number):
        raise ValueError
    return int(text) if text.strip("+-").isdecimal() else int(number)


def _weights_of(text: str) -> dict[Any, float]:
    """Labels with weights, such as yes=2,no=0.5; labels that look like whole numbers are those."""
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    return {_label_of(label.strip()): float(weight) for label, _, weight in pairs}


def _label_of(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() else text


@dataclass(frozen=True)
class Algorithm:
    """An estimator by its short name."""

    name: str
    class_name: str
    module: str
    says: str
    streams: bool
    has_planes: bool  # or else support vectors
    parameters: Mapping[str, Parameter]

    def values_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of the texts and flags given for them, all of which it must have."""
        values = {}
        for name, text in given.items():
            if name not in self.parameters:
                raise CallError(_not_its_own(self, name))
            is_text = isinstance(text, str)
            values[name] = self.parameters[name].value_of(text) if is_text else text
        return values


def _not_its_own(algorithm: Algorithm, name: str) -> str:
    homes = [other for other in algorithms().values() if name in other.parameters]
    option = homes[0].parameters[name].option
    names = ", ".join(other.name for other in homes)
    return (
        f"{option} is no option of --algorithm {algorithm.name}, but of {names}: leave it out, or "
        "name another algorithm."
    )


@functools.cache
def algorithms() -> Mapping[str, Algorithm]:
    """All algorithms by their short names, ours first."""
    return {name: _algorithm(name, about) for name, about in stored_facts()["algorithms"].items()}


def _algorithm(name: str, about: Any) -> Algorithm:
    parameters = {plain["name"]: Parameter(**plain) for plain in about["parameters"]}
    return Algorithm(
        name,
        about["class"],
        about["module"],
        about["says"],
        about["streams"],
        about["has_planes"],
        parameters,
    )


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of a short name, or of the name of its class."""
    for known in algorithms().values():
        if name in (known.name, known.class_name):
            return known
    names = ", ".join(algorithms())
    raise CallError(f"--algorithm is {name!r}, expected one of {names}.")
