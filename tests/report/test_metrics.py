"""Numbers counted chunk by chunk are those of all rows at once, and those of scikit-learn."""

import math
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

from polyplane.report import metrics
from polyplane.report.metrics import (
    METRICS,
    Confusions,
    Evaluation,
    as_labels_of,
    place_of,
    standard_error,
)


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
        (np.array(["<=50K.", " >50K "]), np.array(["<=50K", ">50K"]), ["<=50K", ">50K"]),
        (np.array(["<=50K"]), np.array(["<=50K.", ">50K."]), ["<=50K."]),
        (np.array(["a", "a..", "a b"]), np.array(["a.", "b"]), ["a.", "a..", "a b"]),
        (np.array(["a ", "a.", "a"]), np.array(["a", "a."]), ["a ", "a.", "a"]),
        (np.array(["1.", "2"]), np.array([1, 2]), [1, 2]),
    ],
)
def test_a_number_its_text_and_other_spellings_are_the_same_label(y, classes, expected):
    assert as_labels_of(y, classes).tolist() == expected


# ---- ranks and probabilities -------------------------------------------------------------

A_FEW_SCORES = st.integers(-3, 3).map(float)  # ties are the rule
SCORES = st.one_of(A_FEW_SCORES, st.floats(-1e6, 1e6, width=32))


@st.composite
def scored_rows(draw):
    """Labels of two classes, possibly only one of them, and scores with ties."""
    n_rows = draw(st.integers(1, 40))
    y = draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    scores = draw(st.lists(SCORES, min_size=n_rows, max_size=n_rows))
    return np.array(y), np.array(scores)


@st.composite
def probable_rows(draw):
    """Labels of two to five classes, of which some may be absent, and probabilities with ties."""
    n_classes, n_rows = draw(st.integers(2, 5)), draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, n_classes, n_rows)
    weights = generator.integers(1, 4, (n_rows, n_classes)) ** draw(st.sampled_from([1, 8]))
    return y, weights / weights.sum(axis=1, keepdims=True)


def evaluated(y, values, classes, cuts=(), **choice):
    evaluation = Evaluation(classes, values.ndim == 2 and choice.pop("is_proba", True), **choice)
    for part in np.split(np.arange(y.size), cuts):
        predicted = values[part] > 0 if values.ndim == 1 else values[part].argmax(axis=1)
        evaluation.add(y[part], classes[predicted.astype(int)], values[part])
    return evaluation


def same(ours, theirs):
    return ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def brier_score(y, probabilities):
    """The mean square of what probabilities lack: of one class of two, of all of more."""
    lacks = np.eye(probabilities.shape[1])[y] - probabilities
    return np.square(lacks[:, 1:] if lacks.shape[1] == 2 else lacks).sum(axis=1).mean()


@settings(deadline=None)
@given(scored_rows(), st.integers(0, 40))
def test_ranks_of_two_classes_are_those_of_scikit_learn(rows, cut):
    y, scores = rows
    found = evaluated(y.astype(int), scores, np.arange(2), [cut])
    assert found.probabilities is None
    if y.all() or not y.any():
        assert math.isnan(found.area)
    else:
        assert same(found.area, roc_auc_score(y, scores))
    if y.any():
        assert same(found.average_precision, average_precision_score(y, scores))
    else:
        assert math.isnan(found.average_precision)


@settings(deadline=None)
@given(scored_rows())
def test_the_first_class_may_be_the_positive_one(rows):
    y, scores = rows
    found = evaluated(y.astype(int), scores, np.arange(2), positive="0")
    assert found.positive == 0
    if not y.all():
        assert same(found.average_precision, average_precision_score(~y, -scores))
    if y.any():  # the other class of two is known as well
        assert same(found.over_classes()[1][1], average_precision_score(y, scores))


@settings(deadline=None)
@given(probable_rows(), st.integers(0, 40))
def test_probabilities_are_judged_as_by_scikit_learn(rows, cut):
    y, probabilities = rows
    classes = np.arange(probabilities.shape[1])
    found = evaluated(y, probabilities, classes, [cut])
    assert found.n_scored == y.size
    assert same(found.value_of("log-loss"), log_loss(y, probabilities, labels=classes))
    assert same(found.value_of("brier"), brier_score(y, probabilities))
    if "labels" in signature(brier_score_loss).parameters:  # scikit-learn 1.7 or newer
        two = probabilities[:, 1] if classes.size == 2 else probabilities
        assert same(found.value_of("brier"), brier_score_loss(y, two, labels=classes))
    present = [k for k in classes if 0 < (y == k).sum() < y.size]
    for k in present:
        area, precision = found.over_classes()[k]
        assert same(area, roc_auc_score(y == k, probabilities[:, k]))
        assert same(precision, average_precision_score(y == k, probabilities[:, k]))
    if classes.size > 2 and present:
        areas = [found.over_classes()[k][0] for k in present]
        assert same(found.area, np.mean(areas))
    if classes.size > 2 and len(present) == classes.size:
        assert same(found.area, roc_auc_score(y, probabilities, multi_class="ovr"))


@settings(deadline=None)
@given(probable_rows())
def test_calibration_counts_every_row_once(rows):
    y, probabilities = rows
    found = evaluated(y, probabilities, np.arange(probabilities.shape[1]))
    table = found.probabilities.calibration
    assert sum(one.n_rows for one in table) == y.size
    told = probabilities.argmax(axis=1) if found.positive is None else np.ones(y.size, int)
    probability = probabilities[np.arange(y.size), told]
    for one in table:
        is_here = (probability * 10).astype(int).clip(max=9) == round(one.lower * 10)
        assert one.n_rows == is_here.sum()
        if one.n_rows:
            assert same(one.predicted, probability[is_here].mean())
            assert same(one.observed, (y == told)[is_here].mean())


def test_a_threshold_moves_rows_from_one_class_to_the_other():
    y = np.array(["no", "yes", "yes", "no"])
    positive = np.array([0.2, 0.3, 0.9, 0.6])
    values = np.stack([1 - positive, positive], axis=1)
    found = Evaluation(np.array(["no", "yes"]), True, threshold=0.3)
    found.add(y, np.array(["no", "no", "yes", "yes"]), values)
    assert found.tally.counts.tolist() == [[1, 1], [1, 1]]
    assert found.at_threshold.counts.tolist() == [[1, 1], [0, 2]]
    other = Evaluation(np.array(["no", "yes"]), True, positive="no", threshold=0.5)
    other.add(y, y, values)
    assert other.at_threshold.counts.tolist() == [[1, 1], [1, 1]]


def test_labels_that_the_model_does_not_know_have_no_probability():
    y = np.array(["a", "c", "b"])
    values = np.array([[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]])
    found = Evaluation(np.array(["a", "b"]), True)
    found.add(y, np.array(["a", "a", "b"]), values)
    assert (found.tally.n_errors, found.n_scored) == (1, 2)
    assert same(found.value_of("log-loss"), log_loss(["a", "b"], values[[0, 2]]))
    assert found.area == 1.0


def test_nothing_evaluated_is_not_known():
    found = Evaluation(np.arange(3), True)
    assert all(math.isnan(found.value_of(metric)) for metric in METRICS)
    with pytest.raises(ValueError, match="'d' is none of the classes"):
        place_of("d", np.array(["a", "b"]))


def test_a_class_without_planes_scores_least():
    scores = np.array([[-np.inf, 1, 2], [-np.inf, 3, 1], [-np.inf, 0, 0]], np.float32)
    found = evaluated(np.array([2, 1, 0]), scores, np.arange(3), is_proba=False)
    assert found.over_classes()[0][0] == 0.5
    assert found.over_classes()[1][0] == 1.0


@pytest.mark.parametrize("is_sorted", [False, True])
def test_beyond_the_exact_ranks_groups_are_close(is_sorted, monkeypatch):
    """Each group holds a 500th of a side at most, so that areas are as close."""
    monkeypatch.setattr(metrics, "EXACT_SCORES", 3_000)
    monkeypatch.setattr(metrics, "MOST_GROUPS", 500)
    generator = np.random.default_rng(0)
    y = (generator.random(40_000) < 0.05).astype(int)
    if is_sorted:
        y.sort()
    scores = generator.standard_normal(y.size) + 1.5 * y
    found = evaluated(y, scores, np.arange(2), range(1_000, y.size, 1_000))
    assert not found.ranks.is_exact
    assert found.ranks.of_column(0).scores.size <= 2 * 500 + 3_000
    assert found.area == pytest.approx(roc_auc_score(y, scores), abs=1 / 500)
    expected = average_precision_score(y, scores)
    assert found.average_precision == pytest.approx(expected, abs=5 / 500)


def test_few_different_scores_stay_exact(monkeypatch):
    monkeypatch.setattr(metrics, "EXACT_SCORES", 2_000)
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 9_000)
    scores = np.round(generator.standard_normal(y.size) + y, 1)
    found = evaluated(y, scores, np.arange(2), range(500, y.size, 500))
    assert found.ranks.is_exact
    assert same(found.area, roc_auc_score(y, scores))
    assert same(found.average_precision, average_precision_score(y, scores))
