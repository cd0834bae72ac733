"""MM, the multi-hyperplane machine: a fixed number of planes per class.

Problem     minimise  alpha/2 |W|^2 + mean_i max(0, 1 + max_rival - own),     (Eq. 3-6)
            a class's score being the maximum over its planes
Algorithm   the steps of Eq. 11-13 with the best own plane at each step (Eq. 10)
Symbols     lambda = alpha; W = sums / (alpha t) (`engine/planes/planes.py`)
Start       Planes of one class that start equal would stay equal but for the rule that breaks
            ties, so with two or more planes each starts as a random direction as long as the
            first row: one seeded draw per class, whenever the class is met. With one plane per
            class they start at zero, and this is the multi-class SVM. With init="kmeans" or
            "subset" planes start as prototypes of their class
            (`estimator/soft_planes/prototypes.py`), which are trusted as if they had come from one
            pass, Theta = alpha n / margin times them, and at least so much that one step does not
            overthrow them: then alpha n is replaced by the squared length of a prototype.
Departures  (1) online steps instead of the SMO solver of Aiolli and Sperduti;
            (2) their random first assignment of rows is replaced by the random start.
Papers      Aiolli, Sperduti (JMLR 6, 2005, 817-850); Wang, Djuric, Crammer, Vucetic (KDD 2011),
            doi:10.1145/2020408.2020420
"""

from dataclasses import dataclass

import numpy as np

from polyplane.engine.planes.planes import with_planes
from polyplane.engine.rows.storage import length_of_row
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.parameters import at_least, one_of, parameter, register
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import OwnState, PlaneModel, PlaneTraining
from polyplane.estimator.soft_planes.prototypes import margin_of, prototypes_of

__all__ = ["MMClassifier"]


@dataclass
class RandomStart(OwnState):
    """How long planes are that start in random directions."""

    start_length: float = 1.0  # of the first row


@register
class MMClassifier(HyperplaneClassifier):
    """Multi-hyperplane machine with the same fixed number of planes for every class."""

    n_planes: int = parameter(
        default=4,
        allowed=at_least(1),
        meaning="Planes per class; with 1 this is the multi-class SVM.",
    )
    init: str = parameter(
        default="random",
        allowed=one_of("random", "kmeans", "subset"),
        meaning=(
            "How planes start: in random directions, or as prototypes of their class, which are "
            "centres of k-means or rows drawn at random. Prototypes need `fit`."
        ),
    )

    def _least_planes(self, n_codes: int) -> int:
        return self.n_planes * n_codes

    def _check_streamable(self) -> None:
        super()._check_streamable()
        if self.init != "random" and not hasattr(self, "_training"):
            raise ValueError(
                f'init="{self.init}" needs all rows at once, not a stream: leave init="random".'
            )

    def _starts_from_rows(self) -> bool:
        return self.init != "random"

    def _own_of_model(self, training: PlaneTraining) -> RandomStart:
        return RandomStart()

    def _start_classes(self, model: PlaneModel, data: TrainingData, first: int) -> None:
        if first == 0 and self.init != "random" and self.n_planes > 1:
            self._start_from_prototypes(model, data)
            return
        if first == 0 and self.n_planes > 1:
            model.own.start_length = length_of_row(data.rows, model.first_row(data)) or 1.0
        for label in range(first, model.planes.room_left.size):
            start = model.start_of(self.n_planes, label, model.own.start_length)
            model.planes = with_planes(model.planes, np.full(len(start), label), start)

    def _start_from_prototypes(self, model: PlaneModel, data: TrainingData) -> None:
        members = np.flatnonzero(model.visits(data))
        codes = np.arange(model.planes.room_left.size)
        made = prototypes_of(model, data, members, codes, self.n_planes, self.init)
        squared_length = float(np.square(made.planes[:, 1:]).sum(axis=1).mean())
        trusted = max(self._alpha_of_planes(model) * members.size, squared_length)
        scale = trusted / margin_of(model, data, members, made)
        model.planes = with_planes(model.planes, made.owner, made.planes * np.float32(scale))
