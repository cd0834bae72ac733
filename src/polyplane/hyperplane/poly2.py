"""Pegasos under the polynomial map of degree 2: an SVM with a quadratic kernel, without the kernel.

Problem     that of Pegasos, with phi(x) in place of x, where phi(x) phi(z) = (gamma x z + r)^2
Algorithm   a linear SVM on the mapped rows, whose products are formed when a row is visited and
            never stored
Symbols     lambda = alpha, r = coef0; W = sums / (alpha t). Columns of the planes are those of
            phi in the order of `engine/rows/products.py`, or hashes of them
Two classes as in Pegasos, of two opposite planes each is half of w, and twice the alpha makes up
            for that
Departures  (1) those of Pegasos, which stands here for the paper's dual coordinate descent;
            (2) with n_hash the columns of phi are hashed, with signs.
Papers      Chang, Hsieh, Chang, Ringgaard, Lin (2010), https://jmlr.org/papers/v11/chang10a.html;
            Shalev-Shwartz, Singer, Srebro, Cotter (2011), doi:10.1007/s10107-010-0420-4
"""

from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.products import n_mapped, poly2_rows
from polyplane.engine.rows.storage import Rows
from polyplane.estimator.input.tables import width_of
from polyplane.estimator.input.validation import TrainingData
from polyplane.estimator.parameters import (
    Range,
    at_least,
    check_parameters,
    either,
    is_whole,
    one_of,
    parameter,
    positive,
    register,
)
from polyplane.estimator.planes.hyperplane_classifier import HyperplaneClassifier
from polyplane.estimator.planes.training import PlaneModel, PlaneTraining
from polyplane.model.format.checks import need
from polyplane.model.input.input_rows import check_products
from polyplane.model.prediction import Features, FittedModel, Products

__all__ = ["Poly2Classifier"]

MOST_EXACT = 1 << 24  # mapped columns, a gigabyte for each sixteen planes
MOST_HASHED = (1 << 31) - 1


@register
class Poly2Classifier(HyperplaneClassifier):
    """SVM with the kernel (gamma x z + coef0)^2: one plane per class over products of columns.

    Products are formed as rows are visited, so that memory grows with the columns only: n of
    them give n (n + 3) / 2 columns of the planes, or `n_hash` if that is set.
    """

    gamma: float = parameter(
        default=1.0,
        allowed=positive(1e-30, 1e30),
        meaning="Factor of x z in the kernel: larger gives products more weight.",
    )
    coef0: float = parameter(
        default=1.0,
        allowed=at_least(0, whole=False),
        meaning="Constant in the kernel: larger gives single columns more weight; 0, none.",
    )
    n_hash: int | None = parameter(
        default=None,
        allowed=either(
            one_of(None),
            Range(
                lambda v: is_whole(v) and 1 <= v <= MOST_HASHED,
                f"a whole number from 1 to {MOST_HASHED}",
            ),
        ),
        meaning=(
            "How many features the planes have, to which columns and products are hashed: fewer "
            "take less memory and confuse more. None keeps all apart."
        ),
    )

    def _alpha_of_planes(self, model: PlaneModel) -> float:
        return model.alpha_of_opposite_planes

    def _read_training(
        self,
        X: Any,
        y: Any,
        classes: Any,
        sample_weight: Any,
        goes_on: bool,
        is_chunk: bool = False,
    ) -> tuple[TrainingData, Array]:
        if not goes_on:
            self._first_map = self.gamma, self.coef0, self.n_hash
        return super()._read_training(X, y, classes, sample_weight, goes_on, is_chunk)

    def _map(self) -> tuple[float, float, int | None]:
        """gamma, coef0 and n_hash as they were when training began: the planes depend on them."""
        made: tuple[float, float, int | None] = vars(self).get(
            "_first_map", (self.gamma, self.coef0, self.n_hash)
        )
        return made

    def _features(self, training: PlaneTraining) -> Features:
        gamma, coef0, n_hash = self._map()
        products = Products(float(gamma), float(coef0), n_hash, int(width_of(self)))
        return Features(training.constant, products=products)

    def _take_features(self, model: FittedModel) -> None:
        found: Any = model.features and model.features.products
        need(found is not None, "features are of another machine")
        self._first_map = found.gamma, found.coef0, found.n_hash
        check_parameters(Poly2Classifier(gamma=found.gamma, coef0=found.coef0, n_hash=found.n_hash))

    def _mapped_rows(self, rows: Rows) -> Rows:
        gamma, coef0, n_hash = self._map()
        self._count_features(width_of(self))
        check_products(rows, gamma, coef0)
        mapped: Rows = poly2_rows(rows, gamma, coef0, n_hash or 0)
        return mapped

    def _count_features(self, n_columns: int) -> int:
        n_hash = self._map()[2]
        if n_hash is not None:
            return n_hash
        if n_mapped(n_columns) > MOST_EXACT:
            raise ValueError(
                f"Poly2Classifier: {n_columns} columns make {n_mapped(n_columns)} products, above "
                f"{MOST_EXACT}: set n_hash, for example to 1000000, or choose fewer columns."
            )
        return n_mapped(n_columns)

    @property
    def intercepts_(self) -> Array:
        """Constant term of each plane: what it makes of coef0, the constant of phi."""
        return super().intercepts_ * np.float32(self._map()[1])
