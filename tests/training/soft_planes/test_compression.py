"""Planes that a model can do without: which go, which stay, and what that costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from polyplane.training.soft_planes.compression import needed_planes


def probabilities(scores, owner, labels, n_units=1):
    """Of the rows' classes, where a class scores the sum over its units of log-sum-exps."""
    units = [logsumexp(scores[:, owner == unit], axis=1) for unit in range(owner.max() + 1)]
    of_class = np.stack(units, axis=1).reshape(len(scores), -1, n_units).sum(axis=2)
    own = of_class[np.arange(len(labels)), labels]
    return np.exp(own - logsumexp(of_class, axis=1))


def mean_change(scores, owner, labels, kept, n_units=1):
    """Of these probabilities, without all other planes."""
    before = probabilities(scores, owner, labels, n_units)
    return np.abs(probabilities(scores[:, kept], owner[kept], labels, n_units) - before).mean()


def some_scores(seed, n_planes, n_classes, size, n=25):
    """Random scores of planes of random classes, each class with one at least; and labels."""
    generator = np.random.default_rng(seed)
    owner = np.append(np.arange(n_classes), generator.integers(0, n_classes, n_planes))
    owner = generator.permutation(owner).astype(np.int32)
    scores = size * generator.normal(size=(n, owner.size))
    return scores, owner, generator.integers(0, n_classes, n).astype(np.int32)


def labels_by_best(scores, owner):
    return owner[scores.argmax(axis=1)]


# ---- for any scores --------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    n_planes=st.integers(0, 40),
    n_classes=st.integers(2, 4),
    size=st.sampled_from([0.1, 1, 10, 60]),
    most_change=st.sampled_from([0, 1e-6, 1e-3, 0.1, 0.4]),
)
def test_probabilities_change_by_no_more_than_asked(seed, n_planes, n_classes, size, most_change):
    scores, owner, labels = some_scores(seed, n_planes, n_classes, size)
    kept = needed_planes(scores, owner, labels, most_change)
    assert (np.diff(kept) > 0).all()
    assert set(owner[kept]) == set(range(n_classes))
    assert mean_change(scores, owner, labels, kept) <= most_change + 1e-12
    for k in range(kept.size):  # and no single one more could go
        fewer = np.delete(kept, k)
        if owner[kept[k]] in owner[fewer]:
            assert mean_change(scores, owner, labels, fewer) > most_change - 1e-12


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_planes=st.integers(0, 40),
    n_units=st.integers(2, 3),
    most_change=st.sampled_from([0, 1e-3, 0.1]),
)
def test_units_keep_a_plane_each_and_change_as_little(seed, n_planes, n_units, most_change):
    scores, owner, labels = some_scores(seed, n_planes, 2 * n_units, 3)
    owner, labels = np.sort(owner), labels % 2
    kept = needed_planes(scores, owner, labels, most_change, n_units)
    assert set(owner[kept]) == set(range(2 * n_units))
    assert mean_change(scores, owner, labels, kept, n_units) <= most_change + 1e-12
    for k in range(kept.size):
        fewer = np.delete(kept, k)
        if owner[kept[k]] in owner[fewer]:
            assert mean_change(scores, owner, labels, fewer, n_units) > most_change - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_whatever_may_change_one_plane_of_each_class_stays(seed):
    scores, owner, labels = some_scores(seed, 30, 3, 2)
    kept = needed_planes(scores, owner, labels, 1.0)
    assert sorted(owner[kept]) == [0, 1, 2]


def test_a_last_plane_stays_though_it_does_harm():
    """Class 1 has no rows, and its only plane scores high everywhere."""
    scores = np.column_stack([np.zeros((10, 3)), np.full(10, 5.0)])
    owner, labels = np.array([0, 0, 0, 1]), np.zeros(10, int)
    assert needed_planes(scores, owner, labels, 1.0)[-1] == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_of_all_scores_of_a_row_changes_nothing(dtype):
    scores, owner, labels = some_scores(3, 20, 3, 4)
    offsets = 1024 * np.arange(len(scores))[:, None]
    scores = np.round(scores * 64) / 64  # exact in float32, with the offset
    kept = needed_planes(scores, owner, labels, 0.01)
    moved = needed_planes((scores + offsets).astype(dtype), owner, labels, 0.01)
    assert moved.tolist() == kept.tolist()
    assert kept.size < owner.size


# ---- for scores that say which ---------------------------------------------------------------


@pytest.mark.parametrize("n_far", [1, 7, 50])
@pytest.mark.parametrize("n_needed", [6, 60])
@pytest.mark.parametrize("depth", [40.0, 2_000.0])
def test_planes_far_below_all_others_go(n_far, n_needed, depth):
    """Needed ones, each the only one for some rows, among those that never matter."""
    needed = np.where(np.eye(n_needed, dtype=bool), 10.0, 0.0)[np.arange(60) % n_needed]
    scores = np.hstack([needed, np.full((60, n_far), -depth)])
    owner = np.arange(n_needed + n_far) % 3
    labels = labels_by_best(scores, owner)
    order = np.random.default_rng(n_far).permutation(owner.size)
    kept = needed_planes(scores[:, order], owner[order], labels, 1e-6)
    assert sorted(order[kept]) == list(range(n_needed))


def test_a_class_that_never_matters_keeps_a_plane():
    """Three of fifteen planes are its own and would go at once, being far below all others."""
    scores = np.where(np.eye(15, dtype=bool), 10.0, 0.0)[np.arange(48) % 12]
    scores[:, 12:] = -50
    owner = np.repeat([0, 1, 2], [6, 6, 3])
    kept = needed_planes(scores, owner, labels_by_best(scores, owner), 1e-6)
    assert kept.tolist() == [*range(12), 14]


@pytest.mark.parametrize("n_planes", [2, 6, 40])
def test_where_all_planes_are_needed_all_stay(n_planes):
    """Each is the only one for some rows."""
    scores = np.where(np.eye(n_planes, dtype=bool), 10.0, 0.0)[np.arange(3 * n_planes) % n_planes]
    owner = np.arange(n_planes) % 2
    kept = needed_planes(scores, owner, labels_by_best(scores, owner), 0.0)
    assert kept.tolist() == list(range(n_planes))


def test_of_equal_planes_one_stays():
    """Four planes far ahead on their rows, each of them three times."""
    scores = np.where(np.eye(4, dtype=bool), 12.0, 0.0)[np.arange(40) % 4]
    owner = np.array([0, 1, 0, 1])
    labels = labels_by_best(scores, owner)
    kept = needed_planes(np.tile(scores, 3), np.tile(owner, 3), labels, 1e-3)
    assert sorted(kept % 4) == [0, 1, 2, 3]


def test_a_change_for_the_better_is_a_change():
    """A plane of class 0 that wins one row in ten, of class 1: its 0.05 would become 0.99."""
    scores = np.repeat([[5.0, 0, 0], [0, 5.0, 8.0]], [9, 1], axis=0)
    task = scores, np.array([0, 1, 0]), np.repeat([0, 1], [9, 1])
    assert needed_planes(*task, 0.09).tolist() == [0, 1, 2]
    assert needed_planes(*task, 0.1).tolist() == [0, 1]


def test_changes_do_not_cancel():
    """With one plane of class 0 less, one row is more probable by 0.11 and the other less."""
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    owner, labels = np.array([0, 0, 1]), np.array([0, 1])
    assert needed_planes(scores, owner, labels, 0.1).tolist() == [0, 1, 2]
    assert needed_planes(scores, owner, labels, 0.12).tolist() == [1, 2]


def test_those_of_least_use_go_first():
    """Planes of class 0, each alone on its rows: the later, the fewer rows."""
    counts = [8, 4, 2, 1]
    rows = np.repeat(np.arange(4), counts)
    scores = np.hstack([np.where(np.eye(4, dtype=bool), 6.0, 0.0)[rows], np.full((15, 1), 1.0)])
    owner, labels = np.array([0, 0, 0, 0, 1]), np.zeros(15, int)
    found = [needed_planes(scores, owner, labels, most).tolist() for most in (0, 0.05, 0.2, 0.4)]
    assert found == [[0, 1, 2, 3, 4], [0, 1, 2, 4], [0, 1, 4], [0, 4]]


def test_other_classes_than_the_first_few_may_own_planes():
    scores, owner, labels = some_scores(5, 20, 3, 4)
    kept = needed_planes(scores, owner, labels, 0.05)
    names = np.array([7, 2, 4], np.int32)
    assert needed_planes(scores, names[owner], names[labels], 0.05).tolist() == kept.tolist()
