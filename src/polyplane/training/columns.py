"""Views of the columns of X by planes and kernels, as values of a training.

A view of columns is one for the steps of a training and one for what predicts, and it makes planes
of the first fit for the second. `Columns` leaves columns as they are. There are two others:
`ProductColumns`, and the maps of `training/soft_planes/mapped_columns.py`. A view is never changed:
what it becomes is another view.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from polyplane.arrays import Array
from polyplane.engine.rows.products import n_mapped, poly2_rows
from polyplane.engine.rows.storage import Rows
from polyplane.model.format.checks import need
from polyplane.model.input.input_rows import check_products
from polyplane.model.prediction import Features, Products
from polyplane.training.job import Job, NewRows
from polyplane.training.rows import TrainingData

__all__ = ["Columns", "ProductColumns"]

LEAST_GAMMA = 1e-30
MOST_EXACT = 1 << 24  # products of columns, a gigabyte for each sixteen planes


@dataclass(frozen=True)
class Columns:
    """Columns as they are."""

    n_features: int  # of planes in training, without the constant
    writes_rows_out: ClassVar[bool] = False  # whether steps see other rows, which are worth keeping

    @classmethod
    def begun(cls, job: Job[Any], rows: NewRows) -> Self:
        """Return the view with which a training begins."""
        return cls(rows.n_columns)

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> Self:
        """Return the view of a finished model, or refuse one of another algorithm."""
        is_plain = features.columns is None and features.products is None
        need(is_plain, "features are of another machine")
        return cls(n_columns)

    def widened(self, n_columns: int, rows: Any) -> Self:
        """Return the same view of more columns, which are those of these rows."""
        return self if n_columns == self.n_features else type(self)(n_columns)

    def of_all_columns(self) -> Self:
        """Return the view in which all columns have features, whatever rows use."""
        return self

    def taken_over(self, before: Any, sums: Array) -> Array:
        """Return planes in training, by feature, of the view that was there before."""
        return sums

    def for_training(self, data: TrainingData) -> TrainingData:
        """Return the data as steps see them."""
        return data

    def for_prediction(self, rows: Any) -> Rows:
        """Return rows as finished planes see them."""
        seen: Rows = rows
        return seen

    def folded(self, sums: Array, constant: float) -> Array:
        """Return planes of the training, by feature, as rows for prediction want them."""
        return sums

    def by_column(self, planes: Array) -> Array:
        """Return finished planes with a place for each column, or for each of its features."""
        return planes

    def features(self, constant: float) -> Features:
        """Return the same view for models by themselves."""
        return Features(constant)


@dataclass(frozen=True)
class ProductColumns(Columns):
    """Columns and products of two of them, or hashes of these (`engine/rows/products.py`)."""

    products: Products

    @classmethod
    def begun(cls, job: Job[Any], rows: NewRows) -> Self:
        """Return the view with gamma, coef0 and n_hash as they are when training begins."""
        gamma, coef0 = float(job.settings.gamma), float(job.settings.coef0)
        return cls._of(Products(gamma, coef0, job.settings.n_hash, rows.n_columns))

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> Self:
        found: Any = features.products
        need(found is not None, "features are of another machine")
        need(LEAST_GAMMA <= found.gamma <= 1 / LEAST_GAMMA, "gamma is out of its range")
        return cls._of(found)

    @classmethod
    def _of(cls, products: Products) -> Self:
        n_features = products.n_hash or n_mapped(products.n_columns)
        if products.n_hash is None and n_features > MOST_EXACT:
            raise ValueError(
                f"Poly2Classifier: {products.n_columns} columns make {n_features} products, above "
                f"{MOST_EXACT}: set n_hash, for example to 1000000, or choose fewer columns."
            )
        return cls(n_features, products)

    def widened(self, n_columns: int, rows: Any) -> Self:
        return self._of(replace(self.products, n_columns=n_columns))

    def for_training(self, data: TrainingData) -> TrainingData:
        return data._replace(rows=self.for_prediction(data.rows))

    def for_prediction(self, rows: Any) -> Rows:
        """Return rows with products, which are formed when a row is visited."""
        gamma, coef0, n_hash, _ = vars(self.products).values()
        check_products(rows, gamma, coef0)
        products: Rows = poly2_rows(rows, gamma, coef0, n_hash or 0)
        return products

    def features(self, constant: float) -> Features:
        return Features(constant, products=self.products)
