"""How planes and kernels see the columns of X: as a value of the training.

A view of columns is one for the steps of a training and one for what predicts, and it makes planes
of the first fit for the second. There are three: `AsIs`, `ProductColumns`, and the maps of
`training/soft_planes/mapped_columns.py`.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from polyplane.arrays import Array
from polyplane.engine.rows.products import n_mapped, poly2_rows
from polyplane.engine.rows.storage import Rows
from polyplane.model.format.checks import need
from polyplane.model.input.input_rows import check_products
from polyplane.model.prediction import Features, Products
from polyplane.training.job import Job, NewRows
from polyplane.training.rows import TrainingData

__all__ = ["AsIs", "Columns", "ProductColumns"]

LEAST_GAMMA = 1e-30
MOST_EXACT = 1 << 24  # products of columns, a gigabyte for each sixteen planes


class Columns(Protocol):
    """A view of the columns of X. It is never changed: what it becomes is another view."""

    writes_rows_out: bool  # whether training data are other rows, which are worth keeping

    @classmethod
    def begun(cls, job: Job[Any], rows: NewRows) -> Self:
        """Return the view with which a training begins."""

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> Self:
        """Return the view of a finished model, or refuse one of another algorithm."""

    @property
    def n_features(self) -> int:
        """Features of planes in training, without the constant."""

    def widened(self, n_columns: int, rows: Any) -> Self:
        """Return the same view of more columns, which are those of these rows."""

    def of_all_columns(self) -> Self:
        """Return the view in which all columns have features, whatever rows use."""

    def taken_over(self, before: Any, sums: Array) -> Array:
        """Return planes in training, by feature, of the view that was there before."""

    def for_training(self, data: TrainingData) -> TrainingData:
        """Return the data as steps see them."""

    def for_prediction(self, rows: Any) -> Rows:
        """Return rows as finished planes see them."""

    def folded(self, sums: Array, constant: float) -> Array:
        """Return planes of the training, by feature, as rows for prediction want them."""

    def by_column(self, planes: Array) -> Array:
        """Return finished planes with a place for each column, or for each of its features."""

    def features(self, constant: float) -> Features:
        """Return the same view for models by themselves."""


@dataclass(frozen=True)
class AsIs:
    """Columns as they are."""

    n_features: int
    writes_rows_out = False

    @classmethod
    def begun(cls, job: Job[Any], rows: NewRows) -> "AsIs":
        """Return the view of so many columns."""
        return cls(rows.n_columns)

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> "AsIs":
        """Return the view of a finished model."""
        is_plain = features.columns is None and features.products is None
        need(is_plain, "features are of another machine")
        return cls(n_columns)

    def widened(self, n_columns: int, rows: Any) -> "AsIs":
        """Return the same view of more columns."""
        return self if n_columns == self.n_features else AsIs(n_columns)

    def of_all_columns(self) -> Self:
        """Return this view."""
        return self

    def taken_over(self, before: Any, sums: Array) -> Array:
        """Return the planes as they are: new columns come last."""
        return sums

    def for_training(self, data: TrainingData) -> TrainingData:
        """Return the data as they are."""
        return data

    def for_prediction(self, rows: Any) -> Rows:
        """Return the rows as they are."""
        seen: Rows = rows
        return seen

    def folded(self, sums: Array, constant: float) -> Array:
        """Return the planes as they are."""
        return sums

    def by_column(self, planes: Array) -> Array:
        """Return the planes as they are."""
        return planes

    def features(self, constant: float) -> Features:
        """Return the same view for models by themselves."""
        return Features(constant)


@dataclass(frozen=True)
class ProductColumns(AsIs):
    """Columns and products of two of them, or hashes of these (`engine/rows/products.py`)."""

    products: Products

    @classmethod
    def begun(cls, job: Job[Any], rows: NewRows) -> "ProductColumns":
        """Return the view with gamma, coef0 and n_hash as they are when training begins."""
        settings = job.settings
        gamma, coef0 = float(settings.gamma), float(settings.coef0)
        return cls._of(Products(gamma, coef0, settings.n_hash, rows.n_columns))

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> "ProductColumns":
        """Return the view of a finished model."""
        found = features.products
        need(found is not None, "features are of another machine")
        assert found is not None
        need(LEAST_GAMMA <= found.gamma <= 1 / LEAST_GAMMA, "gamma is out of its range")
        need(found.coef0 >= 0, "coef0 is out of its range")
        return cls._of(found)

    @classmethod
    def _of(cls, products: Products) -> "ProductColumns":
        n_features = products.n_hash or n_mapped(products.n_columns)
        if products.n_hash is None and n_features > MOST_EXACT:
            raise ValueError(
                f"Poly2Classifier: {products.n_columns} columns make {n_features} products, above "
                f"{MOST_EXACT}: set n_hash, for example to 1000000, or choose fewer columns."
            )
        return cls(n_features, products)

    def widened(self, n_columns: int, rows: Any) -> "ProductColumns":
        """Return the same view of more columns."""
        products = self.products
        if n_columns == products.n_columns:
            return self
        return ProductColumns._of(replace(products, n_columns=n_columns))

    def for_training(self, data: TrainingData) -> TrainingData:
        """Return the data with products, which are formed when a row is visited."""
        return data._replace(rows=self.for_prediction(data.rows))

    def for_prediction(self, rows: Any) -> Rows:
        """Return rows with products, which are formed when a row is scored."""
        gamma, coef0, n_hash, _ = vars(self.products).values()
        check_products(rows, gamma, coef0)
        products: Rows = poly2_rows(rows, gamma, coef0, n_hash or 0)
        return products

    def features(self, constant: float) -> Features:
        """Return the same view for models by themselves."""
        return Features(constant, products=self.products)
