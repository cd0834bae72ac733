"""Mixing: shared planes are averaged by steps, new ones united; means and norms stay right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.planes.assignment_by_entropy import new_tally, tally_of
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.mixing import NEW, is_sound, mixed, settled, share_of
from polyplane.engine.planes.planes import (
    CREATED,
    GROWING,
    LANES_USED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    count_planes,
    live_lanes,
    with_classes,
    with_planes,
    zero_planes,
)

pytestmark = pytest.mark.loops
NOTHING = np.empty(0)
N_COLUMNS, N_CLASSES = 4, 3
NEVER = 2.0  # no cosine is as large: nothing is found twice


def planes_of(seed, owner, keeps_average=True, room=1000):
    """Planes of random sums and means."""
    generator = np.random.default_rng(seed)
    owner = np.asarray(owner, np.int64)
    planes = with_classes(zero_planes(N_COLUMNS, keeps_average), N_CLASSES, room)
    planes = with_planes(planes, owner, generator.normal(size=(owner.size, N_COLUMNS + 1)))
    if keeps_average:
        past = generator.normal(size=(N_COLUMNS + 1, owner.size))
        planes.timed_sums[:, : owner.size] = 100 * past
    planes.room_left[:] -= np.bincount(owner, minlength=N_CLASSES)
    planes.counts[MISTAKES] = seed + 3
    return planes


def share(seed, owner, origin, n_steps=20, n_new=10, keeps_average=True):
    return share_of(planes_of(seed, owner, keeps_average), origin, NOTHING, n_steps, n_new)


def means(share):
    """The mean of Theta over steps, by its definition in `planes.py`."""
    return share.sums - share.timed_sums / (share.steps * (share.steps + 1))


def in_any_order(share):
    """Shared planes in their order, new ones sorted by what they hold."""
    columns = np.vstack([share.origin, share.owner, share.sums, share.timed_sums, share.backing])
    new = share.origin == NEW
    by_first = np.lexsort((share.sums[0][new], share.owner[new]))
    return np.hstack([columns[:, ~new], columns[:, new][:, by_first]])


OWNERS = st.lists(st.integers(0, N_CLASSES - 1), max_size=5)


@settings(deadline=None)
@given(new=OWNERS, others=OWNERS, steps=st.tuples(*[st.integers(1, 50)] * 2), went=st.booleans())
def test_equals_the_plain_definition(new, others, steps, went):
    shared = [0, 1, 2, 1]
    first = share(1, shared + new, [0, 1, 2, 3] + [NEW] * len(new), 30 + steps[0], steps[0])
    gone = shared[1:] if went else shared
    places = [1, 2, 3] if went else [0, 1, 2, 3]
    second = share(2, gone + others, places + [NEW] * len(others), 30 + steps[1], steps[1])
    made = mixed(first, second, 4.0, NEVER)
    q = steps[0] / sum(steps), steps[1] / sum(steps)
    t = 30 + q[0] * steps[0] + q[1] * steps[1]
    assert made.steps == pytest.approx(t)
    assert made.weight == sum(steps)
    assert made.owner.tolist() == shared + new + others
    assert made.origin.tolist() == [0, 1, 2, 3] + [NEW] * (len(new) + len(others))
    for words in (lambda one: one.sums, means):
        expected = []
        for plane in range(4):
            total = np.zeros(N_COLUMNS + 1)
            for part, share_of_steps in zip((first, second), q, strict=True):
                for k in np.flatnonzero(part.origin == plane):
                    total += share_of_steps * words(part)[:, k]
            expected.append(total)
        for part in (first, second):
            scaled = words(part)[:, part.origin == NEW] * (t / part.steps)
            expected.extend(scaled.T)
        np.testing.assert_allclose(words(made), np.array(expected).T, rtol=1e-4, atol=1e-4)
    assert made.mistakes == pytest.approx(q[0] * first.mistakes + q[1] * second.mistakes)


@settings(deadline=None)
@given(new=OWNERS, others=OWNERS, alike=st.sampled_from([NEVER, 0.5, -1.0]))
def test_is_commutative_up_to_rounding(new, others, alike):
    first = share(1, [0, 1, *new], [0, 1] + [NEW] * len(new), 17, 7)
    second = share(2, [1, *others], [1] + [NEW] * len(others), 15, 5)
    one, other = mixed(first, second, 2.0, alike), mixed(second, first, 2.0, alike)
    np.testing.assert_allclose(in_any_order(one), in_any_order(other), rtol=1e-5, atol=1e-5)
    assert one.created == other.created
    assert one.steps == pytest.approx(other.steps)


def test_a_tree_of_pairs_is_the_mean_of_all():
    parts = [share(k, [0, 1, 2], [0, 1, 2], 10 + k, k) for k in (1, 2, 3, 4)]
    pairs = mixed(parts[0], parts[1], 3.0, NEVER), mixed(parts[2], parts[3], 3.0, NEVER)
    made = mixed(*pairs, 3.0, NEVER)
    expected = sum(part.weight * part.sums.astype(np.float64) for part in parts) / 10
    np.testing.assert_allclose(made.sums, expected, rtol=1e-5, atol=1e-6)
    assert made.steps == pytest.approx(sum(part.weight * part.steps for part in parts) / 10)


@settings(deadline=None)
@given(new=OWNERS, keeps_average=st.booleans())
def test_one_partition_is_the_identity_bit_for_bit(new, keeps_average):
    before = planes_of(3, [0, 1], keeps_average)
    after = planes_of(4, [0, 1, *new], keeps_average)
    after.squared_norms[0] += 1e-9  # kept by increments, not as if computed anew
    one = share_of(after, [0, 1] + [NEW] * len(new), NOTHING, 25, 5)
    idle = share_of(before, [0, 1], NOTHING, 20, 0)
    for made in (mixed(one, idle, 2.0, 0.9), mixed(idle, one, 2.0, 0.9)):
        planes = settled(before, made)
        for name in planes._fields:
            of_planes, expected = getattr(planes, name), getattr(after, name)
            np.testing.assert_array_equal(of_planes, expected, err_msg=name)


def test_norms_of_a_mixture_are_those_of_its_sums():
    made = mixed(share(1, [0, 1], [0, NEW]), share(2, [0, 2], [0, NEW]), 1.0, NEVER)
    np.testing.assert_allclose(made.squared_norms, np.square(made.sums).sum(axis=0), rtol=1e-6)
    planes = settled(planes_of(3, [0]), made)
    lengths = np.sqrt(planes.squared_norms[:3])
    np.testing.assert_allclose(planes.inverse_lengths[:3], 1 / lengths, rtol=1e-6)


def test_planes_found_twice_become_one_in_proportion_to_the_steps_behind_them():
    first, second = share(1, [0, 1], [NEW, NEW], 9, 9), share(2, [1, 0], [NEW, NEW], 3, 3)
    second.sums[:, 0] = first.sums[:, 1] * np.float32(2)
    made = mixed(first, second, 0.0, 0.999)
    t = (9 * 9 + 3 * 3) / 12
    expected = first.sums[:, 1] * (9 / 12 * t / 9) + second.sums[:, 0] * (3 / 12 * t / 3)
    assert made.owner.tolist() == [0, 1, 0]
    np.testing.assert_allclose(made.sums[:, 1], expected, rtol=1e-5)
    assert made.backing.tolist() == [9, 12, 3]
    assert made.created == 4  # though one was found twice


def test_planes_of_two_classes_are_never_one():
    first, second = share(1, [0], [NEW]), share(1, [1], [NEW])
    assert mixed(first, second, 0.0, 0.5).owner.tolist() == [0, 1]


def test_the_average_of_a_mixture_is_the_mixture_of_averages():
    first, second = share(1, [0, 1], [0, 1], 40, 20), share(2, [0, 1], [0, 1], 40, 20)
    planes = settled(planes_of(3, [0, 1]), mixed(first, second, 2.0, NEVER))
    expected = (means(first) + means(second)) / 2
    np.testing.assert_allclose(mean_sums(planes, 40)[:, :2], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("room", [2, 5])
def test_the_books_balance_and_no_class_has_more_than_it_may(room):
    before = planes_of(3, [0, 1], room=room)
    first = share(1, [0, 1, 0, 0, 2], [0, 1, NEW, NEW, NEW])
    second = share(2, [0, 1, 0, 2], [0, 1, NEW, NEW])
    planes = settled(before, mixed(first, second, 2.0, NEVER))
    lanes = live_lanes(planes)
    n_of_class = np.bincount(planes.owner[lanes], minlength=N_CLASSES)
    assert n_of_class.tolist() == [min(room, 4), 1, 2]
    assert (planes.room_left + n_of_class == room).all()
    assert planes.counts[GROWING] == np.count_nonzero(planes.room_left)
    assert planes.counts[CREATED] - planes.counts[PRUNED] == count_planes(planes) == lanes.size
    assert planes.counts[LANES_USED] == lanes.size
    assert (planes.owner[lanes.size :] == NO_PLANE).all()
    if room == 2:  # the longest stay
        sizes = mixed(first, second, 2.0, NEVER).squared_norms[[0, 2, 3, 5]]
        np.testing.assert_array_equal(
            np.sort(planes.squared_norms[lanes][planes.owner[lanes] == 0]), np.sort(sizes)[-2:]
        )


def test_what_is_not_finite_or_does_not_go_together_is_no_share():
    sound = share(1, [0, 1], [0, NEW])
    assert is_sound(sound)
    assert not is_sound(sound._replace(sums=sound.sums * np.nan))
    assert not is_sound(sound._replace(owner=sound.owner[:1]))
    assert not is_sound(sound._replace(origin=sound.origin - 1))
    assert not is_sound(sound._replace(timed_sums=sound.timed_sums[:2]))
    assert not is_sound(sound._replace(steps=-1.0))


def test_a_tally_is_made_of_its_counts():
    tally = tally_of(np.array([3, 0, 4, 1]), np.array([0, 0, 1, NO_PLANE]))
    assert tally.of_class.tolist() == [3, 4]
    np.testing.assert_allclose(tally.n_log_n, [3 * np.log2(3), 8])
    assert [one.dtype for one in tally] == [one.dtype for one in new_tally(4)]
