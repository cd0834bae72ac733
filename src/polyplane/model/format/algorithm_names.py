"""Names of algorithms in model files and on the command line, whatever their class is called."""

import re

import polyplane

__all__ = ["ALGORITHMS", "class_name_of", "short_name"]


def short_name(class_name: str) -> str:
    """Return the name of a class's algorithm: KernelPegasosClassifier is kernel-pegasos."""
    stem = class_name.removesuffix("Classifier")
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", stem).lower()


_CLASSES = sorted(name for name in polyplane.__all__ if name.endswith("Classifier"))
ALGORITHMS = {short_name(name): name for name in _CLASSES}


def class_name_of(algorithm: str) -> str | None:
    """Return the public name of an algorithm's class, or None if there is none."""
    return ALGORITHMS.get(algorithm)
