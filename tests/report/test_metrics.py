"""Counts of errors, chunk by chunk, are those of all rows at once."""

import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from polyplane.report.metrics import Confusions, as_labels_of, standard_error


@pytest.fixture
def labels():
    generator = np.random.default_rng(0)
    return generator.integers(0, 4, 200), generator.integers(0, 4, 200)


def test_chunks_do_not_matter(labels):
    y, predicted = labels
    tally = Confusions.of(np.arange(4))
    for part in np.split(np.arange(200), [1, 50, 50, 180]):
        tally.add(y[part], predicted[part])
    assert np.array_equal(tally.counts, confusion_matrix(y, predicted))
    assert (tally.n_rows, tally.n_errors) == (200, int((y != predicted).sum()))
    assert tally.error == np.mean(y != predicted)


def test_labels_that_are_met_late_get_a_row_of_their_own():
    tally = Confusions.of(np.array(["a", "b"]))
    tally.add(np.array(["a", "b"]), np.array(["a", "a"]))
    tally.add(np.array(["c", "a"]), np.array(["b", "a"]))
    assert tally.labels == ["a", "b", "c"]
    assert tally.counts.tolist() == [[2, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert tally.confusions(5) == [("b", "a", 1), ("c", "b", 1)]
    never = tally.qualities[2]
    assert (never.n_rows, never.n_predicted, never.recall) == (1, 0, 0.0)
    assert math.isnan(never.precision)


def test_nothing_counted_is_no_error_at_all():
    tally = Confusions.of(np.arange(2))
    assert math.isnan(tally.error)
    assert math.isnan(tally.macro_f1)
    assert math.isnan(standard_error(0.5, 0))
    assert tally.confusions(3) == []


def test_the_most_frequent_confusions_come_first(labels):
    y, predicted = labels
    tally = Confusions.of(np.arange(4))
    tally.add(y, predicted)
    found = tally.confusions(3)
    counts = [n for _, _, n in found]
    wrong = confusion_matrix(y, predicted) * (1 - np.eye(4, dtype=int))
    assert counts == sorted(wrong.ravel().tolist(), reverse=True)[:3]


def test_standard_errors_are_those_of_shares():
    draws = np.random.default_rng(0).binomial(100, 0.2, 20_000) / 100
    assert standard_error(0.2, 100) == pytest.approx(draws.std(), rel=0.02)


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        (np.array([1, 2]), np.array([1, 2]), [1, 2]),
        (np.array([1.0, 2.5]), np.array(["1", "2.5"]), ["1", "2.5"]),
        (np.array(["1", "2"]), np.array([1, 2]), [1, 2]),
        (np.array(["1", "x"]), np.array([1, 2]), ["1", "x"]),
        (np.array(["a"]), np.array(["a", "b"]), ["a"]),
    ],
)
def test_a_number_and_its_text_are_the_same_label(y, classes, expected):
    assert as_labels_of(y, classes).tolist() == expected
