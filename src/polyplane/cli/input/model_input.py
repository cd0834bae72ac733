"""Models for verbs that only look: read from files, and fed with rows of the width they know."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.cli.failures import CallError
from polyplane.data.chunk_sizes import widened
from polyplane.data.chunks import DataError
from polyplane.data.table.layout import Layout
from polyplane.model.format.prediction_part import read_fitted, refusing
from polyplane.model.prediction import FittedModel, n_threads
from polyplane.report.metrics import Evaluation, place_of

__all__ = ["LoadedModel", "check_choice", "layout_of", "load_model"]


@dataclass
class LoadedModel:
    """A model and what it wants done to rows before it sees them."""

    fitted: FittedModel
    source: str  # of the rows, for errors
    layout: Layout | None = None  # of the columns of a table
    n_jobs: int = 1

    @property
    def classes(self) -> Array:
        """Its labels."""
        return self.fitted.labels

    def predict(self, X: Any) -> Array:
        """Labels of rows that `rows` has made."""
        return self.fitted.predict(X, self.n_jobs)

    def predict_with_values(self, X: Any) -> tuple[Array, Array]:
        """Return labels of rows, and how sure they are: probabilities, or else scores."""
        fitted = self.fitted
        if fitted.has_probabilities:
            return self.predict(X), fitted.predict_proba(X, self.n_jobs)
        scores = fitted.decision_function(X, self.n_jobs)
        if fitted.has_planes:
            return self.predict(X), scores
        winners = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes[winners.astype(np.intp)], scores  # kernels would be computed again

    def evaluation(self, threshold: float | None, positive: str | None) -> Evaluation:
        """Nothing evaluated yet."""
        self.check_choice(threshold, positive)
        has_probabilities = self.fitted.has_probabilities
        return Evaluation(self.classes, has_probabilities, positive, threshold)

    def check_choice(self, threshold: float | None, positive: str | None) -> int:
        """The place of the positive class of two; options that the model has no use for fail."""
        fitted = self.fitted
        return check_choice(
            threshold, positive, self.classes, fitted.has_probabilities, fitted.title
        )

    def rows(self, X: Any) -> Any:
        """Rows as the classifier wants them: as wide as the model, and scaled."""
        width = self.fitted.n_columns
        is_sparse = not isinstance(X, np.ndarray)
        if is_sparse:
            X = widened(X, width)
        if X.shape[1] != width:
            raise DataError(self._width_problem(X.shape[1], width, is_sparse), self.source)
        return self.fitted.scaled(X)

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


def check_choice(
    threshold: float | None,
    positive: str | None,
    classes: Array | None,
    has_probabilities: bool,
    title: str,
) -> int:
    """The place of the positive class of two, as --threshold and --positive say.

    What does not fit the model is an error; classes that are not known yet are not looked at.
    """
    if threshold is None and positive is None:
        return 1
    option = "--positive" if threshold is None else "--threshold"
    if threshold is not None and not 0 <= threshold <= 1:
        raise CallError(f"--threshold is {threshold:g}, expected a probability from 0 to 1.")
    if threshold is not None and not has_probabilities:
        raise CallError(
            f"--threshold: the model is {title}, which has no probabilities: take the algorithm "
            "polyplane, or --scores and a threshold of your own."
        )
    if classes is None:
        return 1
    if classes.size != 2:
        raise CallError(
            f"{option} is about two classes, and there are {classes.size}: leave it out."
        )
    try:
        return 1 if positive is None else place_of(positive, classes)
    except ValueError:
        labels = ", ".join(map(str, classes.tolist()))
        raise CallError(f"--positive is {positive!r}, expected one of {labels}.") from None


def layout_of(model: FittedModel) -> Layout | None:
    """Return the layout of the table that a model was fitted to, which takes no new categories."""
    return None if model.table is None else Layout.from_dict(model.table, is_frozen=True)


def load_model(path: str, data: Any, jobs: int | None = None) -> LoadedModel:
    """The model of a file, for rows of a source."""
    fitted = read_fitted(path)
    with refusing(path):
        layout = layout_of(fitted)
        jobs = fitted.parameters.get("n_jobs") if jobs is None else jobs
        n_jobs = 0 if jobs == 0 else n_threads(jobs)
    if n_jobs == 0:
        raise CallError("--jobs is 0, expected a number of threads, or -1 for all cores.")
    return LoadedModel(fitted, data if isinstance(data, str) else data[0], layout, n_jobs)
