"""Scores of finished planes against NumPy, exact on whole numbers; ties go to the first plane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.planes import NO_PLANE, aligned_zeros
from polyplane.engine.rows import dense_rows
from polyplane.engine.scoring import Scorer, best_planes, class_scores, plane_scores

N_COLUMNS, N_CLASSES, SCALE = 3, 4, np.float32(0.5)
X = np.array([[0, 0, 0], [1, 0, 2], [3, 1, 0], [1, 1, 1], [0, 2, 0]])


def scorer_of(sums, owner):
    """Planes as a finished model holds them: lanes ordered by class, padded to whole tiles."""
    n, room = len(owner), max(1, -(-len(owner) // 16)) * 16
    padded = aligned_zeros(N_COLUMNS + 1, room)
    padded[:, :n] = sums.T
    idle = np.full(room, -np.inf, np.float32)
    idle[:n] = 0
    owners = np.zeros(room, np.int32)
    owners[:n] = owner
    return Scorer(padded, idle, owners, np.empty(room, np.float32), n, SCALE)


@st.composite
def models(draw):
    """Planes of small whole numbers, so that scores often tie, and the class of each."""
    n_planes = draw(st.sampled_from([1, 2, 5, 16, 17, 32, 33]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    sums = generator.integers(-1, 2, (n_planes, N_COLUMNS + 1))
    return sums, np.sort(generator.integers(0, N_CLASSES, n_planes))


orders = st.lists(st.integers(0, len(X) - 1), max_size=6).map(lambda rows: np.array(rows, np.int32))


def run(loop, model, order, shape, dtype=np.float32):
    out = np.empty(shape, dtype)
    loop(dense_rows(X.astype(np.float32), 1), order, scorer_of(*model), out)
    return out


def exact_scores(sums, order):
    return X[order] @ sums[:, 1:].T + sums[:, 0]


@given(model=models(), order=orders)
@settings(deadline=None)
def test_plane_scores_are_exact_on_whole_numbers(model, order):
    out = run(plane_scores, model, order, (order.size, len(model[1])))
    np.testing.assert_array_equal(out, SCALE * exact_scores(model[0], order))


@given(model=models(), order=orders)
@settings(deadline=None)
def test_the_first_of_the_best_planes_decides(model, order):
    out = run(best_planes, model, order, order.size, np.int32)
    np.testing.assert_array_equal(out, exact_scores(model[0], order).argmax(axis=1))


@given(model=models(), order=orders)
@settings(deadline=None)
def test_class_scores_are_the_best_of_their_planes(model, order):
    sums, owner = model
    out = run(class_scores, model, order, (order.size, N_CLASSES))
    scores = SCALE * exact_scores(sums, order)
    for c in np.unique(owner):
        np.testing.assert_array_equal(out[:, c], scores[:, owner == c].max(axis=1))


@given(model=models(), order=orders)
@settings(deadline=None)
def test_a_class_without_planes_scores_below_all_planes_and_zero(model, order):
    sums, owner = model
    out = run(class_scores, model, order, (order.size, N_CLASSES))
    lowest = np.minimum(SCALE * exact_scores(sums, order).min(axis=1), 0)
    for c in np.setdiff1d(np.arange(N_CLASSES), owner):
        assert (out[:, c] < lowest).all()
        assert np.isfinite(out[:, c]).all()


@given(model=models(), order=orders)
@settings(deadline=None)
def test_the_class_of_the_deciding_plane_is_the_first_of_the_best_classes(model, order):
    deciding = run(best_planes, model, order, order.size, np.int32)
    by_class = run(class_scores, model, order, (order.size, N_CLASSES))
    np.testing.assert_array_equal(model[1][deciding], by_class.argmax(axis=1))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_class_without_planes_stays_below_scores_of_any_size(sign):
    model = np.array([[sign * 1e30, 0, 0, 0]]), np.array([2])
    out = run(class_scores, model, in_place(len(X)), (len(X), N_CLASSES))
    assert (out.argmax(axis=1) == 2).all()
    assert (out[:, [0, 1, 3]] < out[:, [2]]).all()


def test_without_planes_no_plane_decides_and_no_class_wins():
    model = np.empty((0, N_COLUMNS + 1)), np.empty(0, int)
    order = in_place(len(X))
    assert (run(best_planes, model, order, order.size, np.int32) == NO_PLANE).all()
    by_class = run(class_scores, model, order, (order.size, N_CLASSES))
    assert (by_class == by_class[0, 0]).all()
    assert np.isfinite(by_class).all()


def test_planes_whose_scaled_scores_round_to_one_number_tie():
    sums = np.array([[25_165_828, 0, 0, 0], [25_165_830, 0, 0, 0]])  # 1.5 times both: 37_748_744
    scorer = scorer_of(sums, np.array([0, 1]))._replace(scale=np.float32(1.5))
    rows, order = dense_rows(X.astype(np.float32), 1), in_place(1)
    scores, deciding = np.empty((1, 2), np.float32), np.empty(1, np.int32)
    plane_scores(rows, order, scorer, scores)
    best_planes(rows, order, scorer, deciding)
    assert scores.tolist() == [[37_748_744] * 2]
    assert deciding.tolist() == [0]
