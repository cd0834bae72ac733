"""What the command line says about algorithms and readers, taken from where it is defined.

`python -m polyplane.cli.options.facts` writes `parameters.json`, from which options are
declared: so help is there at once, without the estimators and readers, whose import takes a second.
A test compares the file with what the registry says now.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import polyplane
from polyplane.data.formats import which as formats
from polyplane.data.table import layout as table
from polyplane.estimator.parameters import REGISTRY
from polyplane.model.format.algorithm_names import short_name

__all__ = ["FILE", "facts"]

FILE = Path(__file__).with_name("parameters.json")
OWN_WORDS = {"random_state", "verbose", "warm_start", "categorical_features"}  # said otherwise
TRIED = {"whole": (1, 2, 100), "real": (0.25, 0.5, 1.5)}  # some of each lie in every range
READING = {
    "format": "Format of the rows; without it the first bytes or the name say which it is.",
    "n_features": "Number of columns, where rows of a test part may lack the last ones.",
    "base": "Where indices start; without it the first rows tell.",
    "text_labels": "Labels are text even if they look like numbers.",
    "label": (
        "Column of the label: its name, its position (0 is the first, -1 the last), or none. "
        "Without it a column called label, class, target or y, else the last."
    ),
    "drop": "A column that is not read, by name or position; may be said again.",
    "text_columns": "A column that is text even if it looks like numbers; may be said again.",
    "missing": (
        "A value that is missing is filled and told apart, or an error, or zero, or its row is "
        "skipped; without it as the model does, and filled in training."
    ),
    "categories": "Text becomes a column for each value, or is hashed to --n-hash columns.",
    "n_hash": "Columns for hashed text.",
    "delimiter": "What parts fields: one character, or tab; without it the first rows tell.",
    "header": "Whether the first line holds the names of columns; without it the rows tell.",
    "labels": "The file of the labels; without it one beside the rows whose name fits.",
    "part": "The part that is read where a file holds several, such as train and test.",
}
CHOICES = {"format": formats.FORMATS, "base": ("0", "1"), **table.CHOICES}


def facts() -> dict[str, Any]:
    """Plain values: algorithms with their parameters, and options of reading."""
    for name in polyplane.__all__:  # an estimator enters the registry when it is first used
        getattr(polyplane, name)
    classes = sorted(REGISTRY.values(), key=_place)
    return {
        "algorithms": {short_name(made.__name__): _algorithm(made) for made in classes},
        "reading": [_reading_option(field) for field in dataclasses.fields(formats.ReadOptions)],
    }


def _has_planes(made: type) -> bool:
    """Whether it is a hyperplane machine; else it has support vectors."""
    return hasattr(made, "plane_scores")


def _place(made: type) -> tuple[bool, bool, str]:
    """Ours first, then those with planes, then those with kernels."""
    return not _has_planes(made), made.__name__ != "PolyplaneClassifier", made.__name__


def _algorithm(made: Any) -> dict[str, Any]:
    parameters = [field for field in dataclasses.fields(made) if field.name not in OWN_WORDS]
    return {
        "class": made.__name__,
        "module": made.__module__,
        "says": made.__doc__.partition("\n")[0],
        "streams": hasattr(made, "partial_fit"),
        "has_planes": _has_planes(made),
        "parameters": [_parameter(field) for field in parameters],
    }


def _parameter(field: Any) -> dict[str, Any]:
    """A parameter; which kinds of value it takes is found by offering it some."""
    allowed = field.metadata["allowed"]
    takes = [kind for kind, values in TRIED.items() if any(map(allowed.allows, values))]
    words = [word for word in re.findall(r"'([\w-]+)'", allowed.words) if allowed.allows(word)]
    return {
        "name": field.name,
        "is_flag": allowed.allows(True) and allowed.allows(False),
        "number": takes[-1] if takes else None,
        "words": words,
        "takes_none": allowed.allows(None),
        "takes_weights": allowed.allows({"label": 1.0}),
        "default": field.default,
        "range": allowed.words,
        "meaning": field.metadata["meaning"],
    }


def _reading_option(field: Any) -> dict[str, Any]:
    homes = [kind for kind in formats.FORMATS if field.name in formats.OPTIONS[kind]]
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    return {
        "name": field.name,
        "default": default,
        "choices": list(CHOICES.get(field.name, ())),
        "formats": homes,
        "help": READING[field.name],
    }


def as_text(found: dict[str, Any]) -> str:
    """JSON with a line for each parameter and option, so that a change is seen as one."""
    lines = ['{"algorithms": {']
    for name, about in found["algorithms"].items():
        facts_of = {key: value for key, value in about.items() if key != "parameters"}
        lines.append(f'{json.dumps(name)}: {json.dumps(facts_of)[:-1]}, "parameters": [')
        lines += _listed(about["parameters"])
        lines.append("]},")
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join([*lines, '}, "reading": [', *_listed(found["reading"]), "]}"]) + "\n"


def _listed(values: list[Any]) -> list[str]:
    texts = [json.dumps(value) for value in values]
    return [f"{text}," for text in texts[:-1]] + texts[-1:]


if __name__ == "__main__":
    FILE.write_text(as_text(facts()))
    print(f"Wrote {FILE.name}.")
