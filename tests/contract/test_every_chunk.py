"""Streams: classes and columns first met in a later chunk, and chunks of every size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from polyplane import AMMClassifier
from tests.contract.sameness import (
    assert_same_model,
    assert_same_scores,
    set_where_there,
    with_given_gamma,
)
from tests.definition import visits

pytestmark = pytest.mark.loops

CORNERS = 9 * np.eye(5, dtype=np.float32)  # row k is far out in column k: any machine parts them


def chunks_of_corners(last):
    """Chunks of all corners up to the last, thrice."""
    return [np.tile(np.arange(last + 1), 10)] * 3


def test_a_class_first_seen_in_a_later_chunk_is_learned(streaming):
    set_where_there(streaming, alpha=0.01, n_landmarks=96)
    for chunk in chunks_of_corners(1):
        streaming.partial_fit(CORNERS[chunk], chunk)
    assert streaming.classes_.tolist() == [0, 1]
    for chunk in chunks_of_corners(3):
        streaming.partial_fit(CORNERS[chunk], chunk)
    assert streaming.classes_.tolist() == [0, 1, 2, 3]
    assert streaming.predict(CORNERS[:4]).tolist() == [0, 1, 2, 3]


def test_classes_are_sorted_in_whatever_order_they_come(streaming):
    set_where_there(streaming, alpha=0.01, n_landmarks=96)
    names = np.array(["d", "b", "c", "a"])
    for last in (0, 1, 3):
        for chunk in chunks_of_corners(last):
            streaming.partial_fit(CORNERS[chunk], names[chunk])
    assert streaming.classes_.tolist() == ["a", "b", "c", "d"]
    assert streaming.decision_function(CORNERS[:4]).argmax(axis=1).tolist() == [3, 1, 2, 0]
    assert streaming.predict(CORNERS[:4]).tolist() == ["d", "b", "c", "a"]


def test_longer_names_of_later_classes_are_kept_whole(streaming_machine):
    streaming_machine.partial_fit(CORNERS[:2], ["a", "b"]).partial_fit(
        CORNERS[2:4], ["chrysalis", "b"]
    )
    assert streaming_machine.classes_.tolist() == ["a", "b", "chrysalis"]


def test_one_class_so_far_is_what_is_predicted(streaming_machine, X):
    model = streaming_machine.partial_fit(X, ["only"] * len(X))
    assert model.classes_.tolist() == ["only"]
    assert set(model.predict(X)) == {"only"}


def test_one_row_is_a_chunk(streaming, X, y):
    for i in range(10):
        streaming.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    assert streaming.n_steps_ == visits(streaming, y[:10])
    assert np.isfinite(streaming.decision_function(X)).all()


def test_an_empty_chunk_is_refused(streaming_machine, X, y):
    with pytest.raises(ValueError, match="0 sample"):
        streaming_machine.partial_fit(X[:0], y[:0])


def test_classes_may_be_named_before_they_are_seen(streaming, X, y):
    model = streaming.partial_fit(X, y, classes=[9, 0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert model.decision_function(X).shape == (len(X), 4)


def skip_knots(estimator):
    """Skip those whose columns are mapped once and for all."""
    if getattr(estimator, "columns", "plain") not in ("auto", "plain"):
        pytest.skip("which cannot widen: tests/model/input/test_column_maps.py")


@pytest.mark.parametrize(
    "convert",
    [np.asarray, sp.csr_array, pytest.param(np.ndarray.tolist, marks=pytest.mark.compiled)],
)
def test_wider_rows_are_welcome(streaming, X, y, convert):
    skip_knots(streaming)
    wide, padded = widened(X)
    streaming.partial_fit(convert(X), y).partial_fit(convert(wide), y)
    assert streaming.n_features_in_ == 15
    scores = streaming.decision_function(convert(wide))
    assert np.isfinite(scores).all()
    assert (scores != streaming.decision_function(convert(padded))).any()


def widened(X):
    """The rows with ten columns more, and with ten columns of zeros more."""
    zeros = np.zeros((len(X), 10), np.float32)
    return np.column_stack([X, X[::-1], X]), np.column_stack([X, zeros])


def test_planes_widen_with_the_rows(streaming_hyperplanes, X, y):
    skip_knots(streaming_hyperplanes)
    model = streaming_hyperplanes.partial_fit(X, y).partial_fit(widened(X)[0], y)
    assert model.planes_.shape == (model.n_planes_, model._training.columns.n_features)
    assert model.planes_[:, 5:].any()


def test_columns_never_seen_are_columns_of_zeros(streaming, X, y):
    if getattr(streaming, "n_planes", 1) != 1:
        pytest.skip("planes that start at random draw one number per column")
    wide, padded = widened(X)
    known_before = clone(with_given_gamma(streaming))
    grown = streaming.partial_fit(X, y).partial_fit(wide, y)
    known_before.partial_fit(padded, y).partial_fit(wide, y)
    assert_same_scores(known_before, grown, wide)


def test_narrower_rows_are_refused(streaming_machine, X, y):
    model = streaming_machine.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"4 features.*expecting 5 features"):
        model.partial_fit(X[:, :4], y)
    with pytest.raises(ValueError, match=r"4 features.*expecting 5 features"):
        model.predict(X[:, :4])


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (["a", "b"], [1, 2], r"^y holds numbers, but earlier labels are text, like .*a.*\.$"),
        ([1, 2], ["a", "b"], r"^y holds text, but earlier labels are numbers, like .*1.*\.$"),
    ],
)
def test_numbers_and_text_do_not_mix_as_labels(streaming_machine, first, second, words):
    model = streaming_machine.partial_fit(CORNERS[:2], first)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(CORNERS[:2], second)
    assert set(model.predict(CORNERS)) <= set(first)


def test_fit_after_partial_fit_starts_anew(streaming, X, y):
    expected = clone(streaming).fit(X, y)
    model = streaming.partial_fit(X, y + 5).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert_same_model(model, expected)


@pytest.mark.parametrize("n_rows", [48, 1])
def test_partial_fit_goes_on_from_fit(streaming, X, y, n_rows):
    model = streaming.fit(X, y)
    n_steps = model.n_steps_
    model.partial_fit(X[:n_rows], y[:n_rows])
    assert model.n_steps_ == n_steps + visits(model, y[:n_rows])
    assert np.isfinite(model.decision_function(X)).all()


def test_batch_training_offers_no_partial_fit(X, y):
    batch = AMMClassifier(mode="batch")
    assert not hasattr(batch, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        batch.partial_fit(X, y)
