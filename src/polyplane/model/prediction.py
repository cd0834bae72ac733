"""A fitted classifier by itself: enough to predict, to export and to tell what it is.

It knows nothing of estimators and of training. `estimator/` makes it of what was trained, model
files hold it (`format/prediction_part.py`), and programs that only predict need nothing else.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.products import poly2_rows
from polyplane.engine.rows.storage import Rows, count_rows
from polyplane.model.format.algorithm_names import class_name_of
from polyplane.model.input.column_maps import ColumnMap
from polyplane.model.input.input_rows import check_products, check_scores, checked_rows
from polyplane.model.input.scaling import Scaler
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.plane_record import PlaneRecord

__all__ = ["HISTORY", "Features", "FittedModel", "Products", "n_threads"]

HISTORY = np.dtype(
    [
        ("model", "i8"),
        ("step", "i8"),
        ("planes", "i8"),
        ("created", "i8"),
        ("pruned", "i8"),
        ("error", "f8"),
    ]
)


@dataclass(frozen=True)
class Products:
    """Rows become products of two columns (`engine/rows/products.py`)."""

    gamma: float
    coef0: float
    n_hash: int | None
    n_columns: int


@dataclass(frozen=True)
class Features:
    """Rows as planes see them: columns as they are, some of them, mapped ones or products."""

    constant: float  # of rows, before they become products
    columns: ColumnMap | None = None
    products: Products | None = None

    def seen(self, rows: Any) -> Rows:
        """The rows as planes see them."""
        if self.products is not None:
            gamma, coef0 = self.products.gamma, self.products.coef0
            check_products(rows, gamma, coef0)
            products: Rows = poly2_rows(rows, gamma, coef0, self.products.n_hash or 0)
            return products
        return rows if self.columns is None else self.columns.for_prediction(rows)


@dataclass(frozen=True)
class FittedModel:
    """A classifier that no longer learns."""

    algorithm: str  # its short name
    labels: Array  # of classes, sorted
    n_columns: int
    names: list[str] | None  # of columns, where the classifier was fitted with some
    record: PlaneRecord | KernelRecord
    features: Features | None  # of planes
    has_probabilities: bool
    is_dense: bool  # how users hold their rows
    parameters: Mapping[str, Any]
    found: Mapping[str, Any]  # for parameters that were left to the fit
    n_steps: int
    n_passes: int
    alpha: float | None  # the one in use, of planes
    gamma: float | None  # the one in use, of kernels
    history: Array  # HISTORY
    version: str  # of the program that wrote it
    scaler: Scaler | None = None
    table: Mapping[str, Any] | None = None  # how columns of a table become those of X
    call: Mapping[str, Any] = field(default_factory=dict)  # how it was trained on the command line
    fit_report: Mapping[str, Any] | None = None  # what a fit knows: trials, the error to expect

    @property
    def title(self) -> str:
        """Return the name of the algorithm for sentences."""
        return class_name_of(self.algorithm) or self.algorithm

    @property
    def has_planes(self) -> bool:
        """Return True if planes decide; else support vectors do."""
        return isinstance(self.record, PlaneRecord)

    # ---- prediction ----------------------------------------------------------------------

    def scaled(self, X: Any) -> Any:
        """Rows of X, an array or a CSR matrix, on the scale of the classifier."""
        if self.scaler is None:
            return X
        return self.scaler.scaled(X.astype(np.float32) if X.dtype == np.uint8 else X)

    def predict(self, X: Any, n_jobs: int = 1) -> Array:
        """Label of the class that scores highest on each row, which has been scaled."""
        labels: Array = self.labels[self.record.classes_of(*self._seen(X), n_jobs)]
        return labels

    def decision_function(self, X: Any, n_jobs: int = 1) -> Array:
        """Score of each class, or with two classes the second one's lead over the first."""
        scores = self.record.class_scores(*self._seen(X), n_jobs)
        check_scores(self.title, scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def assign(self, X: Any, n_jobs: int = 1) -> Array:
        """The plane that decides each row, -1 where there is none."""
        return self._planes().deciding_planes(*self._seen(X), n_jobs)

    def predict_proba(self, X: Any, n_jobs: int = 1) -> Array:
        """Probability of each class."""
        return self._planes().probabilities(*self._seen(X), n_jobs)

    def _planes(self) -> PlaneRecord:
        if not isinstance(self.record, PlaneRecord):
            raise TypeError(f"{self.title} has no planes.")
        return self.record

    def _seen(self, X: Any) -> tuple[Rows, Array]:
        if X.shape[1:] != (self.n_columns,):
            raise ValueError(
                f"{self.title}: X has {X.shape[-1]} columns, but the model was trained on "
                f"{self.n_columns}."
            )
        rows = checked_rows(X, 0.0 if self.features is None else self.features.constant)
        if self.features is not None:
            rows = self.features.seen(rows)
        return rows, in_place(count_rows(rows))

    # ---- what it consists of -------------------------------------------------------------

    @property
    def plane_labels(self) -> Array:
        """Label of each plane's class."""
        labels: Array = self.labels[self._planes().plane_class]
        return labels

    def sizes(self) -> Array:
        """Planes that speak for each class, or support vectors of it."""
        record, n_classes = self.record, self.labels.size
        if isinstance(record, PlaneRecord):
            return np.bincount(record.plane_class[record.plane_sign > 0], minlength=n_classes)
        ranks = record.decomposition.ranks[record.support.labels]
        return np.bincount(ranks, minlength=n_classes)

    def norms(self) -> Array:
        """Length of each plane, or of each support vector."""
        if isinstance(self.record, PlaneRecord):
            norms: Array = np.sqrt(np.square(self.record.planes()).sum(axis=1))
            return norms
        lengths: Array = np.sqrt(self.record.support.lengths)
        return lengths

    def of_all_columns(self) -> "FittedModel":
        """Return the model with planes that have a feature for each column."""
        columns = None if self.features is None else self.features.columns
        if columns is None or columns.used is None:
            return self
        record = self._planes()
        return replace(
            self,
            record=replace(record, sums=columns.spread(record.sums)),
            features=Features(1.0, columns.with_all_columns()),
        )


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of a number of jobs: -1 is one a core, None is one."""
    if n_jobs is None:
        return 1
    if n_jobs > 0:
        return n_jobs
    is_known = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
    return max(1, n_cores + 1 + n_jobs)
