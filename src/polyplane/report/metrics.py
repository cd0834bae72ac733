"""Errors, confusions and the quality of each class, counted as rows come."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes.planes import Array

__all__ = ["ClassQuality", "Confusions", "as_labels_of", "standard_error"]


def standard_error(error: float, n_rows: int) -> float:
    """Of a share of wrong rows among so many."""
    return math.sqrt(error * (1 - error) / n_rows) if n_rows else math.nan


def as_labels_of(y: Array, classes: Array) -> Array:
    """Labels of rows in the type of a model's classes: 1, 1.0 and the text 1 are the same."""
    if (y.dtype.kind == "U") == (classes.dtype.kind == "U"):
        return y
    if classes.dtype.kind == "U":
        kinds, places = np.unique(y, return_inverse=True)
        texts: Array = np.array([_text_of(kind) for kind in kinds.tolist()])
        return texts[places]
    by_text = {_text_of(label): label for label in classes.tolist()}
    if all(label in by_text for label in np.unique(y).tolist()):
        return np.array([by_text[label] for label in y.tolist()], classes.dtype)
    return y


def _text_of(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


class ClassQuality(NamedTuple):
    """How well a model knows one class; NaN where there is nothing to divide by."""

    label: Any
    n_rows: int
    n_predicted: int
    precision: float
    recall: float
    f1: float


@dataclass
class Confusions:
    """True labels by predicted ones: the model's classes first, then others that rows have."""

    labels: list[Any]
    counts: Array  # [true, predicted]
    n_known: int  # of the labels are classes of the model

    @staticmethod
    def of(classes: Array) -> "Confusions":
        """Nothing counted yet."""
        return Confusions(
            classes.tolist(), np.zeros((classes.size, classes.size), np.int64), classes.size
        )

    def add(self, y: Array, predicted: Array) -> None:
        """Count rows."""
        rows, columns = self._codes(y), self._codes(predicted)
        np.add.at(self.counts, (rows, columns), 1)

    def _codes(self, labels: Array) -> Array:
        kinds, places = np.unique(labels, return_inverse=True)
        new = [label for label in kinds.tolist() if label not in self.labels]
        self.labels += new
        self.counts = np.pad(self.counts, ((0, len(new)), (0, len(new))))
        codes: Array = np.array([self.labels.index(label) for label in kinds.tolist()], np.intp)
        return codes[places]

    @property
    def unknown(self) -> list[tuple[Any, int]]:
        """Labels that the model has never met, which it cannot predict, and their rows."""
        n_rows = self.counts.sum(axis=1)[self.n_known :].tolist()
        return list(zip(self.labels[self.n_known :], n_rows, strict=True))

    @property
    def n_rows(self) -> int:
        """Rows counted."""
        return int(self.counts.sum())

    @property
    def n_errors(self) -> int:
        """Rows whose label is another than was predicted."""
        return self.n_rows - int(np.trace(self.counts))

    @property
    def error(self) -> float:
        """The share of those."""
        return self.n_errors / self.n_rows if self.n_rows else math.nan

    @property
    def qualities(self) -> list[ClassQuality]:
        """Of each label."""
        right, n_rows = np.diag(self.counts), self.counts.sum(axis=1)
        n_predicted = self.counts.sum(axis=0)
        return [
            ClassQuality(
                label,
                int(n_rows[k]),
                int(n_predicted[k]),
                _share(right[k], n_predicted[k]),
                _share(right[k], n_rows[k]),
                _share(2 * right[k], n_rows[k] + n_predicted[k]),
            )
            for k, label in enumerate(self.labels)
        ]

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that rows have or that were predicted."""
        found = [quality.f1 for quality in self.qualities if not math.isnan(quality.f1)]
        return float(np.mean(found)) if found else math.nan

    def confusions(self, most: int) -> list[tuple[Any, Any, int]]:
        """The most frequent mistakes: true label, predicted label, rows."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = [divmod(int(place), len(self.labels)) for place in order]
        return [(self.labels[t], self.labels[p], int(wrong[t, p])) for t, p in pairs if wrong[t, p]]


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan
