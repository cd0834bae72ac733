"""The classes that a training has met, and how its problems make one classifier of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.model.many_classes.decomposition import Decomposition

__all__ = ["ClassesMet", "KnownClasses", "known_classes"]


class KnownClasses(NamedTuple):
    """Labels with what follows from them: made together, so that it is never of other labels."""

    labels: Array  # of all classes met, in the order in which they were met
    classes: Array  # the labels, sorted
    ranks: Array  # place of each label among the sorted ones


def known_classes(labels: Array) -> KnownClasses:
    """What follows from labels."""
    classes = np.sort(labels)
    return KnownClasses(labels, classes, np.searchsorted(classes, labels).astype(np.int32))


@dataclass
class ClassesMet:
    """What every training knows, of hyperplane and of kernel machines."""

    kind: str  # of its decomposition
    seed: int
    known: KnownClasses

    @property
    def labels(self) -> Array:
        """Of all classes met, in the order in which they were met."""
        return self.known.labels

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.known.classes

    @property
    def ranks(self) -> Array:
        """Place of each label among the sorted ones."""
        return self.known.ranks

    def decomposition(self, combine: str) -> Decomposition:
        """How the problems make one classifier."""
        return Decomposition(self.kind, combine, self.ranks)
