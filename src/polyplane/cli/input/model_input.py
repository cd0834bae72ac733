"""Models for verbs: read from files, and fed with rows of the width that they know."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.cli.failures import CallError
from polyplane.cli.input.scaling import scaled
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import DataError
from polyplane.estimator.files.saving import SavedModel, read_model

__all__ = ["LoadedModel", "found_settings", "load_model"]


@dataclass
class LoadedModel:
    """A model and what it wants done to rows before it sees them."""

    saved: SavedModel
    source: str  # of the rows, for errors

    @property
    def estimator(self) -> Any:
        """The classifier itself."""
        return self.saved.estimator

    @property
    def name(self) -> str:
        """Of its class."""
        return type(self.estimator).__name__

    @property
    def has_planes(self) -> bool:
        """Whether it can say which plane decided."""
        return hasattr(self.estimator, "assign")

    def rows(self, X: Any) -> Any:
        """Rows as the classifier wants them: as wide as the model, and scaled."""
        width = self.estimator.n_features_in_
        is_sparse = not isinstance(X, np.ndarray)
        if is_sparse:
            X = widened(X, width)
        if X.shape[1] != width:
            raise DataError(self._width_problem(X.shape[1], width, is_sparse), self.source)
        return scaled(self.saved.scaler, X)

    def _width_problem(self, found: int, width: int, is_sparse: bool) -> str:
        if is_sparse:
            return (
                f"has a column {found} that the model has never seen, whose last is {width}: check "
                "that it is the right file, and --base where indices start at 0"
            )
        hint = "check the delimiter and the columns"
        if found == width - 1:
            hint = "say --label none if its rows have no label"
        if found == width + 1:
            hint = "say which column is the label with --label, or leave one out with --drop"
        return f"has rows of {found} columns, expected {width} as the model has them: {hint}"


def load_model(path: str, data: Any, jobs: int | None = None) -> LoadedModel:
    """The model of a file, for rows of a source."""
    model = LoadedModel(read_model(path), data if isinstance(data, str) else data[0])
    if jobs is not None:
        if jobs == 0:
            raise CallError("--jobs is 0, expected a number of threads, or -1 for all cores.")
        model.estimator.n_jobs = jobs
    return model


def found_settings(estimator: Any) -> dict[str, Any]:
    """What a fit has found for the parameters that were left to it; those that were set are not."""
    found: dict[str, Any] = vars(estimator).get("_found", {})
    return {name: value for name, value in found.items() if getattr(estimator, name) == "auto"}
