"""Settings of algorithms on the command line: `--set name=value` and `--list-settings`."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import polyplane
from polyplane.cli.failures import CallError
from polyplane.cli.output.screen import Screen
from polyplane.model.format.algorithm_names import ALGORITHMS, short_name

__all__ = ["estimator_class", "parsed_settings", "show_settings"]

# Parameters that have an option of their own, or that the command line sets by itself.
NOT_SETTINGS = {
    "random_state",
    "n_jobs",
    "verbose",
    "warm_start",
    "categorical_features",
    "recipes",
}
SUGGESTIONS = 3
INDENT, MIN_WIDTH = "    ", 40
WORDS = {"none": None, "true": True, "yes": True, "false": False, "no": False}


def estimator_class(algorithm: str) -> Any:
    """Return the class of an algorithm, by its short name."""
    return getattr(polyplane, ALGORITHMS[algorithm])


def parsed_settings(kind: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that texts such as "n_planes=16" set, each within its range."""
    fields = _fields(kind)
    found = {}
    for text in texts:
        name, has_value, value = text.partition("=")
        if not has_value:
            raise CallError(f"--set is {text!r}, expected NAME=VALUE, such as n_planes=16.")
        if name not in fields:
            raise CallError(_unknown(kind, name, list(fields)))
        allowed = fields[name].metadata["allowed"]
        values = [one for one in _readings(value) if allowed.allows(one)]
        if not values:
            raise CallError(f"--set {text}: {name} must be {allowed.words}.")
        found[name] = values[0]
    return found


def _fields(kind: Any) -> dict[str, Any]:
    fields = dataclasses.fields(kind)
    return {field.name: field for field in fields if field.name not in NOT_SETTINGS}


def _unknown(kind: Any, name: str, known: Sequence[str]) -> str:
    algorithm = short_name(kind.__name__)
    close = get_close_matches(name, known, SUGGESTIONS)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return (
        f"--set {name}: {algorithm} has no such setting.{hint} See `polyplane train --algorithm "
        f"{algorithm} --list-settings`."
    )


def _readings(text: str) -> Iterator[Any]:
    """Yield what a text may mean, the most likely first."""
    if text.lower() in WORDS:
        yield WORDS[text.lower()]
    for kind in (int, _whole, float, _weights):
        try:
            yield kind(text)
        except (ValueError, OverflowError):
            continue
    yield text


def _whole(text: str) -> int:
    """Return a whole number that is written as 1e6."""
    number = float(text)
    if number != int(number):
        raise ValueError
    return int(number)


def _weights(text: str) -> dict[Any, float]:
    """Return labels with weights, such as yes=2,no=0.5; labels may be whole numbers."""
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    return {_label(label.strip()): float(weight) for label, _, weight in pairs}


def _label(text: str) -> int | str:
    if not text:
        raise ValueError
    return int(text) if text.removeprefix("-").isdecimal() else text


def show_settings(screen: Screen, algorithm: str) -> None:
    """Show name, default, range and meaning of the settings of an algorithm."""
    fields = _fields(estimator_class(algorithm)).values()
    for field in fields:
        screen.say(f"{field.name} = {field.default}")
        meaning = f"{field.metadata['allowed'].words}. {field.metadata['meaning']}"
        for line in textwrap.wrap(meaning, max(screen.out.width, MIN_WIDTH) - len(INDENT)):
            screen.say(f"{INDENT}{line}")
    screen.result(
        {
            "algorithm": algorithm,
            "settings": [
                {
                    "name": field.name,
                    "default": field.default,
                    "range": field.metadata["allowed"].words,
                    "meaning": field.metadata["meaning"],
                }
                for field in fields
            ],
        }
    )
