"""Estimators of what stands on the command line."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.options.algorithms import algorithm_of

__all__ = ["allows", "estimator_class", "made"]


def estimator_class(name: str) -> Any:
    """The class of an algorithm, by its short name or by that of the class."""
    algorithm = algorithm_of(name)
    return getattr(importlib.import_module(algorithm.module), algorithm.class_name)


def made(name: str, parameters: Mapping[str, Any]) -> Any:
    """The estimator, of which every parameter lies in its range."""
    algorithm, kind = algorithm_of(name), estimator_class(name)
    for key, value in parameters.items():
        if key in algorithm.parameters and not allows(kind, key, value):
            parameter = algorithm.parameters[key]
            said = "none" if value is None else value
            raise CallError(f"{parameter.option} is {said}, expected {parameter.expected}.")
    return kind(**parameters)


def allows(kind: Any, name: str, value: Any) -> bool:
    """Whether a parameter may have a value."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    return bool(fields[name].metadata["allowed"].allows(value))
