"""Scores of finished planes against NumPy, exact on whole numbers; ties go to the first plane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.planes import NO_PLANE, aligned_zeros
from polyplane.engine.rows import dense_rows
from polyplane.engine.scoring import Scorer, best_planes, group_scores, plane_scores

N_COLUMNS, N_GROUPS, SCALE = 3, 4, np.float32(0.5)
X = np.array([[0, 0, 0], [1, 0, 2], [3, 1, 0], [1, 1, 1], [0, 2, 0]])


def scorer_of(sums, group, empty_score=-np.inf, scales=SCALE):
    """Planes as a finished model holds them: lanes ordered by group, padded to whole tiles."""
    n, room = len(group), max(1, -(-len(group) // 16)) * 16
    padded = aligned_zeros(N_COLUMNS + 1, room)
    padded[:, :n] = sums.T
    idle = np.full(room, -np.inf, np.float32)
    idle[:n] = 0
    groups, factors = np.zeros(room, np.int32), np.ones(room, np.float32)
    groups[:n], factors[:n] = group, scales
    scratch = np.empty(room, np.float32)
    return Scorer(padded, idle, groups, factors, scratch, n, np.float32(empty_score))


@st.composite
def models(draw):
    """Planes of small whole numbers, so that scores often tie, and the group of each."""
    n_planes = draw(st.sampled_from([1, 2, 5, 16, 17, 32, 33]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    sums = generator.integers(-1, 2, (n_planes, N_COLUMNS + 1))
    return sums, np.sort(generator.integers(0, N_GROUPS, n_planes))


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
def test_group_scores_are_the_best_of_their_planes(model, order):
    sums, group = model
    out = run(group_scores, model, order, (order.size, N_GROUPS))
    scores = SCALE * exact_scores(sums, order)
    for g in np.unique(group):
        np.testing.assert_array_equal(out[:, g], scores[:, group == g].max(axis=1))


@given(model=models(), order=orders)
@settings(deadline=None)
def test_a_group_without_planes_scores_below_all_planes_and_zero(model, order):
    sums, group = model
    out = run(group_scores, model, order, (order.size, N_GROUPS))
    lowest = np.minimum(SCALE * exact_scores(sums, order).min(axis=1), 0)
    for g in np.setdiff1d(np.arange(N_GROUPS), group):
        assert (out[:, g] < lowest).all()
        assert np.isfinite(out[:, g]).all()


@given(model=models(), order=orders)
@settings(deadline=None)
def test_a_group_without_planes_may_have_a_score_of_its_own(model, order):
    out = run(group_scores, (*model, 0.0), order, (order.size, N_GROUPS))
    for g in np.setdiff1d(np.arange(N_GROUPS), model[1]):
        assert (out[:, g] == 0).all()


@given(model=models(), order=orders)
@settings(deadline=None)
def test_the_group_of_the_deciding_plane_is_the_first_of_the_best_groups(model, order):
    deciding = run(best_planes, model, order, order.size, np.int32)
    by_group = run(group_scores, model, order, (order.size, N_GROUPS))
    np.testing.assert_array_equal(model[1][deciding], by_group.argmax(axis=1))


@given(model=models(), order=orders, data=st.data())
@settings(deadline=None)
def test_every_plane_has_a_scale_of_its_own(model, order, data):
    sums, group = model
    scale = st.sampled_from([0.25, 1.0, 2.0])  # exact
    scales = np.array(data.draw(st.lists(scale, min_size=len(group), max_size=len(group))))
    scaled = sums, group, -np.inf, scales
    expected = scales * exact_scores(sums, order)
    by_plane = run(plane_scores, scaled, order, (order.size, len(group)))
    np.testing.assert_array_equal(by_plane, expected)
    deciding = run(best_planes, scaled, order, order.size, np.int32)
    np.testing.assert_array_equal(deciding, expected.argmax(axis=1))
    by_group = run(group_scores, scaled, order, (order.size, N_GROUPS))
    for g in np.unique(group):
        np.testing.assert_array_equal(by_group[:, g], expected[:, group == g].max(axis=1))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_group_without_planes_stays_below_scores_of_any_size(sign):
    model = np.array([[sign * 1e30, 0, 0, 0]]), np.array([2])
    out = run(group_scores, model, in_place(len(X)), (len(X), N_GROUPS))
    assert (out.argmax(axis=1) == 2).all()
    assert (out[:, [0, 1, 3]] < out[:, [2]]).all()


def test_without_planes_no_plane_decides_and_no_group_wins():
    model = np.empty((0, N_COLUMNS + 1)), np.empty(0, int)
    order = in_place(len(X))
    assert (run(best_planes, model, order, order.size, np.int32) == NO_PLANE).all()
    by_group = run(group_scores, model, order, (order.size, N_GROUPS))
    assert (by_group == by_group[0, 0]).all()
    assert np.isfinite(by_group).all()


def test_planes_whose_scaled_scores_round_to_one_number_tie():
    sums = np.array([[25_165_828, 0, 0, 0], [25_165_830, 0, 0, 0]])  # 1.5 times both: 37_748_744
    scorer = scorer_of(sums, np.array([0, 1]), scales=1.5)
    rows, order = dense_rows(X.astype(np.float32), 1), in_place(1)
    scores, deciding = np.empty((1, 2), np.float32), np.empty(1, np.int32)
    plane_scores(rows, order, scorer, scores)
    best_planes(rows, order, scorer, deciding)
    assert scores.tolist() == [[37_748_744] * 2]
    assert deciding.tolist() == [0]
