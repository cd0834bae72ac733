"""Planes: room, gaps, new columns and classes leave every plane as it was; pruning obeys Thm 3."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import (
    CLONED,
    CREATED,
    GROWING,
    LANES_USED,
    MOST_BIRTHS,
    NO_PLANE,
    PRUNED,
    clone_plane,
    copied,
    growing_rival,
    has_idle_tile,
    inverse_length,
    is_full,
    live_lanes,
    new_plane,
    rivals_may_grow,
    spans_of,
    tiles_used,
    with_classes,
    with_features,
    with_more_room,
    with_planes,
    zero_planes,
)
from polyplane.engine.planes.pruning import drop_dormant, prune
from polyplane.engine.records import aligned_zeros

pytestmark = pytest.mark.loops


@jit
def fill(planes, label):
    """Create planes of one class until the state is full; return how many tiles are used."""
    spans = spans_of(planes)
    while not is_full(spans):
        new_plane(spans, label)
    return tiles_used(spans)


@jit
def clone(planes, plane):
    """Clone one plane; return the lane of the clone."""
    return clone_plane(spans_of(planes), plane)


@jit
def rivals_of(planes, label):
    """Whether another class may grow, and the lowest such class."""
    spans = spans_of(planes)
    may = rivals_may_grow(spans, label)
    return may, growing_rival(spans, label) if may else NO_PLANE


def planes_of(norms, keeps_average=True):
    """One plane for each squared norm, of classes 0, 1, 2 in turn, in whole numbers."""
    n = len(norms)
    labels = np.arange(n) % 3
    planes = with_classes(zero_planes(4, keeps_average), 3, 10)
    planes = with_planes(planes, labels, np.arange(5 * n, dtype=np.float32).reshape(n, 5))
    planes.squared_norms[:n] = norms
    planes.inverse_lengths[:n] = [inverse_length(float(norm)) for norm in norms]
    planes.timed_sums[:, :n] = -planes.sums[: len(planes.timed_sums), :n]
    return planes


def content(planes):
    """Every plane, oldest first: class, squared norm, sums and timed sums of four columns."""
    assert np.array_equal(np.flatnonzero(planes.idle == 0), live_lanes(planes))
    assert np.array_equal(np.flatnonzero(planes.inverse_lengths), live_lanes(planes))
    for lane in live_lanes(planes):
        assert planes.inverse_lengths[lane] == inverse_length(planes.squared_norms[lane])
    return [
        (
            int(planes.owner[lane]),
            float(planes.squared_norms[lane]),
            planes.sums[:5, lane].tolist(),
            planes.timed_sums[:5, lane].tolist(),
        )
        for lane in live_lanes(planes)
    ]


def survivors(norms, budget):
    """Plain definition: the smallest go, of equals the oldest, while their sum is in budget."""
    spent, kept = 0, set(range(len(norms)))
    for plane in sorted(range(len(norms)), key=lambda k: (norms[k], k)):
        spent += norms[plane]
        if spent > budget**2:
            break
        kept.remove(plane)
    return sorted(kept)


whole_norms = st.lists(st.integers(0, 6), max_size=40)
budgets = st.integers(0, 12)


# ---- pruning ---------------------------------------------------------------------------------


@given(norms=whole_norms, budget=budgets)
@settings(deadline=None)
def test_pruning_drops_the_smallest_while_their_squares_are_in_budget(norms, budget):
    planes = planes_of(norms)
    prune(planes, budget)
    assert live_lanes(planes).tolist() == survivors(norms, budget)


@given(norms=whole_norms, budget=budgets)
@settings(deadline=None)
def test_dormant_planes_are_those_no_longer_than_the_threshold(norms, budget):
    planes = planes_of(norms)
    threshold = budget / 4
    drop_dormant(planes, threshold)
    assert live_lanes(planes).tolist() == [k for k, n in enumerate(norms) if n > threshold**2]


@pytest.mark.parametrize("drops", [prune, drop_dormant])
@given(norms=whole_norms, budget=budgets)
@settings(deadline=None)
def test_dropping_planes_balances_the_books(drops, norms, budget):
    planes = planes_of(norms)
    drops(planes, budget / 2)
    kept = live_lanes(planes)
    assert planes.counts[CREATED] - planes.counts[PRUNED] == kept.size
    assert planes.counts[LANES_USED] == len(norms)
    gone = np.setdiff1d(np.arange(len(norms)), kept)
    np.testing.assert_array_equal(planes.room_left, 10 + np.bincount(gone % 3, minlength=3))
    assert np.isneginf(planes.idle[gone]).all()
    assert not planes.inverse_lengths[gone].any()


def test_budget_0_drops_only_planes_of_zeros():
    planes = planes_of([0, 1, 0, 2, 1e-300])
    prune(planes, 0.0)
    assert live_lanes(planes).tolist() == [1, 3, 4]


@pytest.mark.parametrize("drops", [prune, drop_dormant])
def test_dropping_a_plane_reopens_a_class_that_was_full(drops):
    planes = planes_of([1, 9, 9])
    planes.room_left[0], planes.counts[GROWING] = 0, 2
    drops(planes, 1.0)
    assert planes.room_left[0] == 1
    assert planes.counts[GROWING] == 3


def test_pruning_nothing_is_allowed():
    planes = planes_of([])
    prune(planes, 100.0)
    assert live_lanes(planes).size == 0


# ---- room ------------------------------------------------------------------------------------


@given(norms=whole_norms, budget=budgets, keeps_average=st.booleans())
@settings(deadline=None)
def test_more_room_keeps_every_plane_and_its_age(norms, budget, keeps_average):
    planes = planes_of(norms, keeps_average)
    prune(planes, budget)
    before = content(planes)
    roomy = with_more_room(planes)
    assert content(roomy) == before
    assert live_lanes(roomy).tolist() == list(range(len(before)))  # no gaps
    assert roomy.counts[LANES_USED] == len(before)
    assert roomy.owner.size % 16 == 0
    assert roomy.owner.size - len(before) >= MOST_BIRTHS


@given(norms=whole_norms, budget=budgets, n_columns=st.integers(1, 20))
@settings(deadline=None)
def test_more_columns_keep_every_plane_and_are_zero(norms, budget, n_columns):
    planes = planes_of(norms)
    prune(planes, budget)
    before = content(planes)
    wide = with_features(planes, n_columns)
    assert content(wide) == before
    assert len(wide.sums) == len(wide.timed_sums) > max(n_columns, 4)
    lanes = live_lanes(wide)
    assert not wide.sums[5:, lanes].any()
    assert not wide.timed_sums[5:, lanes].any()


def test_columns_that_fit_change_nothing():
    planes = planes_of([1, 2])
    assert with_features(planes, 4) is planes


def test_new_lanes_are_clean_after_gaps_are_closed():
    planes = planes_of([0, 5, 5, 0, 5])
    prune(planes, 0.0)
    roomy = with_more_room(planes)
    assert not roomy.sums[:, 3:].any()
    assert not roomy.timed_sums[:, 3:].any()
    assert not roomy.squared_norms[3:].any()
    assert (roomy.owner[3:] == NO_PLANE).all()


@given(norms=whole_norms, budget=budgets)
@settings(deadline=None)
def test_a_tile_is_idle_where_fewer_would_hold_all_planes(norms, budget):
    planes = planes_of(norms)
    prune(planes, budget)
    n_live = live_lanes(planes).size
    assert has_idle_tile(planes) == (-(-n_live // 16) < -(-len(norms) // 16))


def test_a_model_without_average_stays_without():
    planes = planes_of([1] * 20, keeps_average=False)
    for larger in (with_more_room(planes), with_features(planes, 9)):
        assert len(larger.timed_sums) == 0


@given(norms=whole_norms, n_new=st.integers(0, 3), room=st.sampled_from([0, 5]))
@settings(deadline=None)
def test_more_classes_keep_every_plane_and_have_room(norms, n_new, room):
    planes = planes_of(norms)
    more = with_classes(planes, 3 + n_new, room)
    assert content(more) == content(planes)
    assert more.room_left.tolist() == [10] * 3 + [room] * n_new
    assert more.counts[GROWING] == np.count_nonzero(more.room_left)
    assert planes.counts[GROWING] == 3


@given(first=whole_norms, second=whole_norms)
@settings(deadline=None)
def test_planes_added_later_are_younger(first, second):
    planes = planes_of(first)
    before = content(planes)
    starts = np.arange(1, 2 * len(second) + 1, dtype=np.float32).reshape(len(second), 2)
    planes = with_planes(planes, np.arange(len(second)) % 3, starts)
    after = content(planes)
    assert after[: len(first)] == before
    for (label, norm, sums, _), k in zip(after[len(first) :], range(len(second)), strict=True):
        assert label == k % 3
        assert sums == [*starts[k].tolist(), 0, 0, 0]
        assert norm == np.square(starts[k]).sum()
    assert planes.counts[CREATED] == len(first) + len(second)
    assert planes.owner.size - len(after) >= MOST_BIRTHS


def test_a_copy_shares_nothing():
    planes = planes_of([1, 2])
    for array, copy in zip(planes, copied(planes), strict=True):
        np.testing.assert_array_equal(array, copy)
        assert not np.shares_memory(array, copy)


@pytest.mark.parametrize("shape", [(1, 16), (7, 48)])
def test_matrices_start_on_a_cache_line(shape):
    matrix = aligned_zeros(*shape)
    assert matrix.shape == shape
    assert matrix.ctypes.data % 64 == 0
    assert matrix.flags.c_contiguous
    assert not matrix.any()


# ---- births ----------------------------------------------------------------------------------


def test_a_new_plane_is_zero_and_the_youngest_of_its_class():
    planes = planes_of([1, 2, 3])
    before = content(planes)
    assert fill(planes, 2) == 1
    after = content(planes)
    assert after[:3] == before
    assert len(after) == 16 - MOST_BIRTHS + 1
    assert {(label, *sums) for label, _, sums, _ in after[3:]} == {(2, 0, 0, 0, 0, 0)}
    assert planes.counts[CREATED] == len(after)


@pytest.mark.parametrize("keeps_average", [False, True])
def test_a_clone_is_the_youngest_plane_and_equals_its_original(keeps_average):
    planes = planes_of([1, 2, 3], keeps_average)
    planes.scores[:3] = [4, 5, 6]
    before = content(planes)
    assert clone(planes, 1) == 3
    assert content(planes) == [*before, before[1]]
    assert planes.scores[:4].tolist() == [4, 5, 6, 5]
    assert planes.counts[[LANES_USED, CREATED, CLONED]].tolist() == [4, 4, 1]
    assert planes.room_left.tolist() == [10, 9, 10]


def test_a_plane_of_zeros_has_a_finite_inverse_length():
    assert np.isfinite(inverse_length(0.0))
    assert inverse_length(-1e-9) == inverse_length(0.0)  # squared norms kept by increments drift
    assert inverse_length(16.0) == 0.25


def test_a_class_that_used_up_its_room_no_longer_grows():
    planes = with_classes(zero_planes(4, keeps_average=False), 2, 15)
    fill(planes, 1)
    assert planes.room_left.tolist() == [15, 0]
    assert planes.counts[GROWING] == 1


@pytest.mark.parametrize(
    ("room_left", "label", "rival"),
    [
        ([0, 0, 0], 1, NO_PLANE),
        ([0, 5, 0], 1, NO_PLANE),
        ([0, 5, 1], 1, 2),
        ([3, 0, 1], 1, 0),
        ([3, 0, 1], 0, 2),
    ],
)
def test_the_growing_rival_is_the_lowest_class_with_room(room_left, label, rival):
    planes = with_classes(zero_planes(4, keeps_average=False), 3, 1)
    planes.room_left[:] = room_left
    planes.counts[GROWING] = np.count_nonzero(room_left)
    assert rivals_of(planes, label) == (rival != NO_PLANE, rival)


# ---- the average -----------------------------------------------------------------------------


def test_the_mean_of_sums_weighs_each_step_by_its_number():
    updates = np.random.default_rng(0).integers(-8, 9, (8, 5, 4)).astype(np.float64)
    steps = np.arange(8)
    timed = np.tensordot(steps * (steps + 1.0), updates, 1)
    planes = planes_of([0] * 4)
    planes.sums[:, :4], planes.timed_sums[:, :4] = updates.sum(axis=0), timed
    after_steps = np.cumsum(updates, axis=0)  # 1 to 8
    expected = np.average(after_steps, axis=0, weights=steps + 1)
    n_roundings = 3  # of the factor, the product and the sum
    bound = n_roundings * np.finfo(np.float32).eps * (np.abs(timed) / 72 + np.abs(expected))
    assert (np.abs(mean_sums(planes, 8)[:, :4] - expected) <= bound).all()


def test_without_an_average_or_steps_the_mean_is_the_sums():
    planes = planes_of([1, 2], keeps_average=False)
    assert mean_sums(planes, 8) is planes.sums
    planes = planes_of([1, 2])
    assert mean_sums(planes, 0) is planes.sums
