"""The classes that a training has met, and how its problems make one classifier of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.model.decomposition import Decomposition

__all__ = ["ClassesMet"]


@dataclass
class ClassesMet:
    """What every training knows, of hyperplane and of kernel machines."""

    kind: str  # of its decomposition
    seed: int
    labels: Array  # of all classes met, in the order in which they were met

    @cached_property
    def classes(self) -> Array:
        """The labels, sorted."""
        return np.sort(self.labels)

    @cached_property
    def ranks(self) -> Array:
        """Place of each label among the sorted ones."""
        return np.searchsorted(self.classes, self.labels).astype(np.int32)

    def decomposition(self, combine: str) -> Decomposition:
        """How the problems make one classifier."""
        return Decomposition(self.kind, combine, self.ranks)

    def forget_results(self) -> None:
        """Called whenever training goes on: what was derived is no longer true."""
        for derived in ("classes", "ranks", "_record"):
            self.__dict__.pop(derived, None)
