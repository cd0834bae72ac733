"""Metrics, counted as rows come: labels, ranks of scores, and probabilities.

Numbers are those of scikit-learn's functions of the same names, but that what cannot be said, such
as the precision of a class that was never predicted, is NaN and takes no part in means.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array

__all__ = [
    "METRICS",
    "CalibrationBin",
    "ClassQuality",
    "Confusions",
    "Evaluation",
    "as_labels_of",
    "labels_at",
    "other_spellings",
    "place_of",
    "standard_error",
]

METRICS = {  # 1 where less is better, -1 where more is
    "error": 1, "log-loss": 1, "auc": -1, "average-precision": -1, "brier": 1,
}  # fmt: skip
EXACT_SCORES = 1_000_000  # rows times classes, of two classes rows, whose ranks are exact
EXACT_ROWS = 2_000  # at least, of very many classes
MOST_GROUPS, LEAST_GROUPS = 8_192, 64  # of later rows, for a class
BINS = 10  # of a table of calibration
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)  # in a logarithm, as in scikit-learn


def standard_error(error: float, n_rows: int) -> float:
    """Return the standard error of a share of wrong rows."""
    return math.sqrt(error * (1 - error) / n_rows) if n_rows else math.nan


def as_labels_of(y: Array, classes: Array) -> Array:
    """Labels of rows as those of a model: 1, 1.0 and the text 1 are the same, as are spellings."""
    spelt = other_spellings(y, classes)
    if spelt:
        y = np.array([spelt.get(label, label) for label in y.tolist()])
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


def other_spellings(y: Array, classes: Array) -> dict[str, str]:
    """Texts among labels that differ from a class by a dot in the end or blanks around, and it.

    As in files whose test part was written by another program. What could be two classes is none.
    """
    if y.dtype.kind != "U":
        return {}
    texts = [_text_of(label) for label in classes.tolist()]
    by_core: dict[str, list[str]] = {}
    for text in texts:
        by_core.setdefault(_core_of(text), []).append(text)
    new = [label for label in np.unique(y).tolist() if label not in texts]
    found = {label: by_core.get(_core_of(label), []) for label in new}
    return {label: same[0] for label, same in found.items() if len(same) == 1}


def _core_of(text: str) -> str:
    return text.strip().removesuffix(".").rstrip()


def _text_of(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


class ClassQuality(NamedTuple):
    """Precision, recall and F1 of one class; NaN where there is nothing to divide by."""

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

    def add(self, y: Array, predicted: Array) -> Array:
        """Count rows; return the place of each label among `labels`."""
        rows, columns = self._codes(y), self._codes(predicted)
        np.add.at(self.counts, (rows, columns), 1)
        return rows

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
        """Return the quality of each label."""
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


# ---- ranks -------------------------------------------------------------------------------


class Ranking(NamedTuple):
    """Rows by their score for a class, lowest first: how many are of it, and how many are not."""

    scores: Array  # each once
    positives: Array
    negatives: Array

    @property
    def area(self) -> float:
        """Under the ROC curve: the share of pairs in the right order, ties counting one half."""
        below = np.cumsum(self.negatives) - self.negatives
        pairs = float(self.positives.sum()) * float(self.negatives.sum())
        return _share(float(self.positives @ (below + self.negatives / 2)), pairs)

    @property
    def average_precision(self) -> float:
        """The mean over the rows of the class of the precision at their score; NaN without any."""
        positives, negatives = self.positives[::-1], self.negatives[::-1]
        found = np.cumsum(positives)
        precision = found / np.maximum(found + np.cumsum(negatives), 1)
        return _share(float(positives @ precision), float(positives.sum()))

    @property
    def reversed(self) -> "Ranking":
        """Return the ranking for the opposite of the class."""
        return Ranking(-self.scores[::-1], self.negatives[::-1], self.positives[::-1])

    def with_rows(self, scores: Array, is_positive: Array) -> "Ranking":
        """More rows, or the same groups in a new order."""
        return _ranked(
            np.concatenate([self.scores, scores]),
            np.concatenate([self.positives, is_positive.astype(np.float64)]),
            np.concatenate([self.negatives, (~is_positive).astype(np.float64)]),
        )

    def in_groups(self, n_groups: int) -> "Ranking":
        """Neighbours tied, in groups of one n-th of a side at most, unless there are few scores."""
        if self.scores.size <= n_groups:
            return self
        cells = [
            np.floor(n_groups * (np.cumsum(side) - side) / max(float(side.sum()), 1.0))
            for side in (self.positives, self.negatives)
        ]
        is_first = np.ones(self.scores.size, bool)
        is_first[1:] = (np.diff(cells[0]) > 0) | (np.diff(cells[1]) > 0)
        starts = np.flatnonzero(is_first)
        weights = self.positives + self.negatives
        middles = np.add.reduceat(self.scores * weights, starts) / np.add.reduceat(weights, starts)
        sides = (np.add.reduceat(side, starts) for side in (self.positives, self.negatives))
        return _ranked(middles, *sides)


def _ranked(scores: Array, positives: Array, negatives: Array) -> Ranking:
    kinds, places = np.unique(scores, return_inverse=True)
    return Ranking(
        kinds,
        np.bincount(places, positives, minlength=kinds.size),
        np.bincount(places, negatives, minlength=kinds.size),
    )


NO_RANKING = Ranking(np.empty(0), np.empty(0), np.empty(0))


class Ranks:
    """Scores of columns, each for one class, in bounded memory.

    All are kept until there are `EXACT_SCORES` numbers. From then on neighbours are tied in groups:
    areas are off by no more than a few parts in the number of groups.
    """

    def __init__(self, n_columns: int) -> None:
        self.n_exact = max(EXACT_ROWS, EXACT_SCORES // n_columns)  # rows
        self.n_groups = int(np.clip(MOST_GROUPS // n_columns, LEAST_GROUPS, MOST_GROUPS))
        self.is_exact = True
        self._grouped = [NO_RANKING] * n_columns
        self._kept: list[tuple[Array, Array]] = []
        self._n_kept = 0

    def add(self, scores: Array, columns: Array) -> None:
        """Scores, rows by columns, and the column of each row's class; -1 if it has none."""
        largest = float(np.finfo(np.float32).max)
        self._kept.append((np.nan_to_num(scores, posinf=largest, neginf=-largest), columns))
        self._n_kept += len(scores)
        if self._n_kept > self.n_exact:
            whole = [self.of_column(k) for k in range(len(self._grouped))]
            self.is_exact &= all(ranking.scores.size <= self.n_groups for ranking in whole)
            self._grouped = [ranking.in_groups(self.n_groups) for ranking in whole]
            self._kept, self._n_kept = [], 0

    def of_column(self, k: int) -> Ranking:
        """All rows so far."""
        if not self._kept:
            return self._grouped[k]
        scores = np.concatenate([scores[:, k] for scores, _ in self._kept])
        is_positive = np.concatenate([columns == k for _, columns in self._kept])
        return self._grouped[k].with_rows(scores.astype(np.float64), is_positive)


# ---- probabilities -----------------------------------------------------------------------


class CalibrationBin(NamedTuple):
    """Rows whose probability lies between two bounds: what it was, and what came of it."""

    lower: float
    upper: float
    n_rows: int
    predicted: float  # mean probability; NaN without rows
    observed: float  # share of rows of which it came true


class Probabilities:
    """Quality of probabilities: sums over rows."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._loss = self._squares = 0.0
        self._bins = np.zeros((BINS, 3))  # rows, sum of probabilities, rows of which it came true

    def add(self, probabilities: Array, classes: Array, positive: int | None) -> None:
        """Add probabilities of rows by classes, and the class of each row.

        Of two classes the table of calibration is about the positive one; of several about the
        one that is most probable.
        """
        n_rows = len(classes)
        rows = np.arange(n_rows)
        wide = probabilities.astype(np.float64, copy=False)
        own = np.clip(wide[rows, classes], LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        self.n_rows += n_rows
        self._loss -= float(np.log(own).sum())
        squares = np.square(wide).sum(axis=1) - 2 * wide[rows, classes] + 1
        self._squares += float(squares.sum()) / (2 if wide.shape[1] == 2 else 1)
        told = wide.argmax(axis=1) if positive is None else np.full(n_rows, positive)
        probability, is_true = wide[rows, told], classes == told
        places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
        for column, weights in enumerate((None, probability, is_true)):
            self._bins[:, column] += np.bincount(places, weights, minlength=BINS)

    @property
    def log_loss(self) -> float:
        """Mean of -log of the probability of a row's class, which counts as 2e-16 at least."""
        return _share(self._loss, self.n_rows)

    @property
    def brier(self) -> float:
        """Mean squared distance from what came true; of two classes that of one of them."""
        return _share(self._squares, self.n_rows)

    @property
    def calibration(self) -> list[CalibrationBin]:
        """Ten bins of equal width."""
        return [
            CalibrationBin(k / BINS, (k + 1) / BINS, int(n), _share(told, n), _share(true, n))
            for k, (n, told, true) in enumerate(self._bins)
        ]


# ---- all of it ---------------------------------------------------------------------------


class Evaluation:
    """A model on labelled rows, chunk by chunk: labels, ranks and, if it has them, probabilities.

    Rows of classes that the model has never met count as errors; ranks and probabilities are those
    of the other rows. Of two classes the second is the positive one unless another is named.
    """

    def __init__(
        self,
        classes: Array,
        has_probabilities: bool,
        positive: Any = None,
        threshold: float | None = None,
    ) -> None:
        self.classes, self.threshold = classes, threshold
        self._positive: int | None = None
        if classes.size == 2:
            self._positive = 1 if positive is None else place_of(positive, classes)
        self.tally = Confusions.of(classes)
        self.at_threshold = Confusions.of(classes) if threshold is not None else None
        self.probabilities = Probabilities() if has_probabilities else None
        self.ranks = Ranks(1 if classes.size == 2 else classes.size)
        self.n_scored = 0
        self._found: tuple[int, list[tuple[float, float]]] | None = None

    @property
    def positive(self) -> Any:
        """The label of the positive class of two; None of several."""
        return None if self._positive is None else self.classes.tolist()[self._positive]

    def add(self, y: Array, predicted: Array, values: Array) -> None:
        """Labels of rows, as the model's classes, what was predicted, and how surely.

        `values` are probabilities, rows by classes, or else what `decision_function` returns.
        """
        codes = self.tally.add(y, predicted)
        if self.at_threshold is not None:
            self.at_threshold.add(y, self.labels_at(values))
        is_known = codes < self.classes.size
        codes, values = codes[is_known], values[is_known]
        self.n_scored += codes.size
        if self.probabilities is not None:
            self.probabilities.add(values, codes, self._positive)
        if self._positive is None:
            self.ranks.add(values, codes)
        else:
            lead = values if self._positive == 1 else -values
            lead = values[:, self._positive] if values.ndim == 2 else lead
            self.ranks.add(lead[:, None], np.where(codes == self._positive, 0, -1))

    def labels_at(self, probabilities: Array) -> Array:
        """Predictions of two classes at the threshold."""
        assert self._positive is not None
        assert self.threshold is not None
        return labels_at(probabilities, self.classes, self._positive, self.threshold)

    def over_classes(self) -> list[tuple[float, float]]:
        """Area under the ROC curve and average precision of each class against the rest.

        They are asked for again and again, and sorting takes a while: of the same rows they are
        found once.
        """
        if self._found is None or self._found[0] != self.n_scored:
            found = [(ranking.area, ranking.average_precision) for ranking in self._rankings()]
            self._found = self.n_scored, found
        return self._found[1]

    def _rankings(self) -> Iterator[Ranking]:
        """Rows by their score for each class."""
        if self._positive is None:
            yield from map(self.ranks.of_column, range(self.classes.size))
            return
        ranking = self.ranks.of_column(0)
        for code in range(2):
            yield ranking if code == self._positive else ranking.reversed

    @property
    def area(self) -> float:
        """Under the ROC curve of the positive class of two; of several classes the mean."""
        return self._mean_of(0)

    @property
    def average_precision(self) -> float:
        """Return average precision of the positive class; of several classes the mean."""
        return self._mean_of(1)

    def _mean_of(self, which: int) -> float:
        """Over the classes that rows have: of others nothing is known."""
        found = self.over_classes()
        if self._positive is not None:
            return found[self._positive][which]
        known = [values[which] for values in found if not math.isnan(values[which])]
        return float(np.mean(known)) if known else math.nan

    def value_of(self, metric: str) -> float:
        """One of METRICS; NaN where the model or the rows have no such thing."""
        if metric == "error":
            return self.tally.error
        if metric == "auc":
            return self.area
        if metric == "average-precision":
            return self.average_precision
        if self.probabilities is None:
            return math.nan
        return self.probabilities.log_loss if metric == "log-loss" else self.probabilities.brier


def place_of(label: Any, classes: Array) -> int:
    """The place of a label among classes, where 1, 1.0 and the text 1 are the same."""
    (same,) = as_labels_of(np.array([label]), classes).tolist()
    if same not in classes.tolist():
        raise ValueError(f"{label!r} is none of the classes {classes.tolist()}.")
    place: int = classes.tolist().index(same)
    return place


def labels_at(probabilities: Array, classes: Array, positive: int, threshold: float) -> Array:
    """Return the positive class where its probability reaches the threshold, else the other one."""
    is_positive = probabilities[:, positive] >= threshold
    labels: Array = classes[np.where(is_positive, positive, 1 - positive)]
    return labels


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan
