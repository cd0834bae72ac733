"""What algorithms are called in model files and on the command line, whatever their class is."""

import re

import polyplane

__all__ = ["class_name_of", "short_name"]


def short_name(class_name: str) -> str:
    """Of a class: KernelPegasosClassifier is kernel-pegasos."""
    stem = class_name.removesuffix("Classifier")
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", stem).lower()


def class_name_of(algorithm: str) -> str | None:
    """The public name of an algorithm's class; None where there is none."""
    machines = [name for name in polyplane.__all__ if name.endswith("Classifier")]
    return {short_name(name): name for name in machines}.get(algorithm)
