"""Planes of prototypes: the nearest one wins, and where they come from."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.engine.planes.planes import zero_planes
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.model.many_classes.decomposition import Problem
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData
from polyplane.training.soft_planes import prototypes
from polyplane.training.soft_planes.prototypes import (
    Prototypes,
    groups_of_few,
    margin_of,
    margins_between,
    matrix_of,
    prototypes_of,
)

INITS = ["subset", "kmeans"]
every_init = pytest.mark.parametrize("init", INITS)
NOT_WEIGHTED = np.empty(0, np.float32)


def model_of(n_features, codes, seed=0, constant=1.0):
    codes, planes = np.array(codes, np.int32), zero_planes(n_features, False)
    return PlaneModel(Problem(), 0, planes, 0.0, constant, seed, n_features, codes)


def data_of(X, y, constant=1.0):
    rows = csr_rows(X, constant) if sp.issparse(X) else dense_rows(X, constant)
    return TrainingData(rows, y.astype(np.int32), NOT_WEIGHTED)


def clustered(seed=0, n=240, width=5, n_clusters=6, spread=0.5):
    """Clusters at whole numbers, two classes that share them out; every third entry is a zero."""
    generator = np.random.default_rng(seed)
    centres = generator.integers(-9, 10, (n_clusters, width))
    cluster = generator.integers(0, n_clusters, n)
    X = centres[cluster] + spread * generator.normal(size=(n, width))
    X[:, ::3] = 0
    return X.astype(np.float32), cluster % 2


def made_of(X, y, n_planes, init, codes=(0, 1), seed=0, constant=1.0, members=None):
    """Prototypes of all classes."""
    members = np.arange(len(y)) if members is None else members
    model = model_of(X.shape[1], codes, seed, constant)
    wanted = np.unique(np.array(codes))
    return prototypes_of(model, data_of(X, y, constant), members, wanted, n_planes, init)


def centres_of(made):
    return made.planes[:, 1:]


def squared_distances(X, centres):
    """Rows by centres."""
    return np.square(X[:, None, :] - centres[None]).astype(np.float64).sum(axis=2)


def is_among(points, X):
    """For each point, whether it is one of the rows."""
    return (points[:, None, :] == X[None]).all(axis=2).any(axis=1)


# ---- planes ----------------------------------------------------------------------------------


@every_init
@pytest.mark.parametrize("constant", [1.0, 0.25])
@pytest.mark.parametrize("n_planes", [1, 2, 7])
def test_the_best_plane_is_that_of_the_nearest_prototype(init, constant, n_planes):
    X, y = clustered()
    made = made_of(X, y, n_planes, init, constant=constant)
    rows = np.random.default_rng(1).uniform(-9, 9, (300, 5))
    scores = rows @ centres_of(made).T + constant * made.planes[:, 0]
    nearest = squared_distances(rows, centres_of(made)).argmin(axis=1)
    assert scores.argmax(axis=1).tolist() == nearest.tolist()
    assert len(set(nearest)) > n_planes
    assert made.owner.tolist() == [0] * n_planes + [1] * n_planes


@every_init
def test_a_score_is_half_of_what_the_square_of_the_row_exceeds_the_distance_by(init):
    X, y = clustered()
    made = made_of(X, y, 4, init, constant=0.25)
    scores = X @ centres_of(made).T + 0.25 * made.planes[:, 0]
    expected = np.square(X).sum(axis=1)[:, None] - squared_distances(X, centres_of(made))
    np.testing.assert_allclose(2 * scores, expected, rtol=1e-3, atol=1e-3)


@every_init
@pytest.mark.parametrize("n_planes", [1, 5])
def test_without_an_intercept_there_is_no_offset(init, n_planes):
    X, y = clustered()
    made = made_of(X, y, n_planes, init, constant=0.0)
    assert not made.planes[:, 0].any()
    np.testing.assert_array_equal(centres_of(made), centres_of(made_of(X, y, n_planes, init)))


@every_init
@pytest.mark.parametrize("n_planes", [1, 6])
def test_planes_are_float32_of_the_width_of_the_model(init, n_planes):
    X, y = clustered()
    made = prototypes_of(
        model_of(8, [0, 1]), data_of(sp.csr_matrix(X), y), np.arange(len(y)), [0, 1], n_planes, init
    )  # columns that no row has yet
    assert made.planes.shape == (2 * n_planes, 9)
    assert not made.planes[:, 6:].any()
    assert (made.planes.dtype, made.owner.dtype) == (np.float32, np.int32)


# ---- where they come from --------------------------------------------------------------------


@every_init
def test_one_plane_is_the_mean_of_its_class(init):
    X, y = clustered()
    made = made_of(X, y, 1, init)
    expected = [X[y == label].mean(axis=0) for label in (0, 1)]
    np.testing.assert_allclose(centres_of(made), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_planes", [2, 16, 60])
def test_a_subset_consists_of_different_rows_of_the_class(n_planes):
    X, y = clustered()
    made = made_of(X, y, n_planes, "subset")
    for label in (0, 1):
        drawn = centres_of(made)[made.owner == label]
        assert is_among(drawn, X[y == label]).all()
        assert len(np.unique(drawn, axis=0)) == n_planes


def test_a_subset_is_drawn_anew_for_each_seed_and_evenly():
    X = np.arange(1, 41, dtype=np.float32)[:, None]
    y = np.zeros(40, int)
    counts = np.zeros(41)
    for seed in range(200):
        counts[centres_of(made_of(X, y, 10, "subset", [0], seed)).astype(int).ravel()] += 1
    assert counts[0] == 0
    assert counts[1:].min() > 50 - 5 * (200 * 0.25 * 0.75) ** 0.5
    assert counts[1:].max() < 50 + 5 * (200 * 0.25 * 0.75) ** 0.5


@every_init
@pytest.mark.parametrize("n_planes", [1, 2, 8])
def test_only_members_count(init, n_planes):
    X, y = clustered()
    members = np.arange(0, 240, 3)
    made = made_of(X, y, n_planes, init, members=members)
    X[np.setdiff1d(np.arange(240), members)] = 1e6
    again = made_of(X, y, n_planes, init, members=members)
    np.testing.assert_array_equal(again.planes, made.planes)
    assert np.bincount(made.owner).tolist() == [n_planes, n_planes]


@every_init
@pytest.mark.parametrize("n_planes", [2, 12])
def test_a_seed_determines_all(init, n_planes):
    X, y = clustered()
    one, same, other = (made_of(X, y, n_planes, init, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.planes, same.planes)
    assert (one.planes != other.planes).any()


@every_init
def test_a_class_starts_the_same_whoever_starts_beside_it(init):
    X, y = clustered()
    model, data, members = model_of(5, [0, 1]), data_of(X, y), np.arange(len(y))
    both = prototypes_of(model, data, members, np.array([0, 1]), 4, init)
    one = prototypes_of(model, data, members, np.array([1]), 4, init)
    np.testing.assert_array_equal(one.planes, both.planes[both.owner == 1])
    assert one.owner.tolist() == [1] * 4


@every_init
@pytest.mark.parametrize("n_planes", [1, 4])
def test_storage_changes_nothing(init, n_planes):
    X, y = clustered()
    dense, sparse = (made_of(stored, y, n_planes, init) for stored in (X, sp.csr_matrix(X)))
    np.testing.assert_array_equal(dense.planes, sparse.planes)


@every_init
def test_a_model_sees_classes_by_its_codes(init):
    """Class 0 is called 0, all others 1."""
    X, y = clustered(n_clusters=9)
    y = np.arange(240) % 3
    made = made_of(X, y, 5, init, codes=(0, 1, 1))
    plain = made_of(X, (y != 0).astype(int), 5, init)
    np.testing.assert_array_equal(made.planes, plain.planes)
    assert made.owner.tolist() == plain.owner.tolist() == [0] * 5 + [1] * 5


# ---- few rows --------------------------------------------------------------------------------


@every_init
@pytest.mark.parametrize("n_rows", [1, 3, 5])
def test_a_class_of_few_rows_has_few_planes(init, n_rows):
    X, _ = clustered()
    y = (np.arange(240) >= n_rows).astype(int)
    made = made_of(X, y, 5, init)
    assert np.bincount(made.owner).tolist() == [n_rows, 5]
    drawn = centres_of(made)[:n_rows]
    assert sorted(drawn.tolist()) == sorted(X[:n_rows].tolist())


@every_init
@pytest.mark.parametrize("n_planes", [1, 5])
def test_a_class_without_rows_has_no_planes(init, n_planes):
    X, _ = clustered()
    made = made_of(X, np.ones(240, int), n_planes, init, codes=(0, 1, 2))
    assert made.owner.tolist() == [1] * n_planes
    assert made.planes.shape == (n_planes, 6)


@every_init
def test_equal_rows_are_no_reason_to_complain(init):
    X = np.tile(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), (30, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = made_of(X, np.zeros(60, int), 4, init, codes=(0,))
    assert made.planes.shape == (4, 3)
    assert squared_distances(centres_of(made), X[:2]).min(axis=1).max() < 0.1


# ---- k-means ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_planes", [3, 8])
def test_k_means_is_nearer_to_its_rows_than_a_subset(n_planes, seed):
    X, y = clustered(seed, n=600, width=10, n_clusters=8, spread=1.0)
    within = {}
    for init in INITS:
        made = made_of(X, y, n_planes, init, seed=seed)
        within[init] = [
            squared_distances(X[y == label], centres_of(made)[made.owner == label]).min(axis=1)
            for label in (0, 1)
        ]
    for label in (0, 1):
        assert within["kmeans"][label].mean() < 0.9 * within["subset"][label].mean()


def test_k_means_looks_at_so_many_rows(monkeypatch):
    """Forty for a centre, 3,000 at least, and not at all of a large class."""
    seen = []

    def look(points, n_centres, seed):
        seen.append((points.shape[0], n_centres))
        return np.zeros((n_centres, points.shape[1]), np.float32)

    monkeypatch.setattr(prototypes, "_k_means", look)
    X = np.ones((5_000, 1), np.float32)
    for n_planes in (10, 100):
        made_of(X, np.zeros(5_000, int), n_planes, "kmeans", codes=(0,))
    assert seen == [(3_000, 10), (4_000, 100)]


# ---- margins ---------------------------------------------------------------------------------


def margin_by_loop(X, codes_of_rows, made, constant):
    margins = []
    for x, code in zip(X, codes_of_rows, strict=True):
        own, other = [], []
        for plane, owner in zip(made.planes, made.owner, strict=True):
            score = sum(w * v for w, v in zip(plane[1:], x, strict=True)) + constant * plane[0]
            (own if owner == code else other).append(score)
        if own and other and max(own) != max(other):
            margins.append(abs(max(own) - max(other)))
    return np.median(margins)


@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("codes", [(0, 1, 2), (1, 0, 1)])
def test_the_margin_is_the_median_between_sides(constant, codes):
    X, _ = clustered(n=90, n_clusters=9)
    y = np.arange(90) % 3
    model, data = model_of(5, codes, constant=constant), data_of(X, y, constant)
    members = np.arange(0, 90, 2)
    made = prototypes_of(model, data, members, np.unique(codes), 4, "subset")
    expected = margin_by_loop(X[members], np.array(codes)[y[members]], made, constant)
    assert margin_of(model, data, members, made) == pytest.approx(expected, rel=1e-4)


def test_rows_between_sides_do_not_count():
    """Margins 0, 0, 2, 6 of planes x and -x."""
    X, y = np.array([[0.0], [0.0], [1.0], [-3.0]], np.float32), np.zeros(4)
    made = Prototypes(np.array([[0, 1], [0, -1]], np.float32), np.array([0, 1], np.int32))
    assert margin_of(model_of(1, [0, 1]), data_of(X, y), np.arange(4), made) == 4


@pytest.mark.parametrize("owner", [[0, 0], [0, 1]])
def test_without_margins_it_is_the_squared_length_of_prototypes(owner):
    """Planes of one side, or rows that are all between two; of prototypes at the origin it is 1."""
    X, y = np.zeros((4, 1), np.float32), np.zeros(4)
    owner, model = np.array(owner, np.int32), model_of(1, [0, 1])
    for centre, expected in (2.0, 4.0), (0.0, 1.0):
        planes = np.array([[0, centre], [0, -centre]], np.float32)
        found = margin_of(model, data_of(X, y), np.arange(4), Prototypes(planes, owner))
        assert found == expected


@pytest.mark.parametrize("n_few", [1, 2, 3, 10])
def test_groups_hold_few_of_each_class(n_few):
    owner = np.array([1, 0, 1, 1, 0, 2, 1, 0, 2], np.int32)
    groups = groups_of_few(owner, n_few)
    n_groups = max(1, 2 // n_few)  # the smallest class has two
    place = np.array([(owner[:k] == owner[k]).sum() for k in range(9)])
    expected = [one // n_few if one // n_few < n_groups else -1 for one in place]
    assert groups.tolist() == expected


@pytest.mark.parametrize("n_few", [1, 2, 4])
def test_between_few_it_is_the_mean_of_their_margins(n_few):
    X, _ = clustered(n=90, n_clusters=9)
    y = np.arange(90) % 3
    model, data, members = model_of(5, (0, 1, 2)), data_of(X, y), np.arange(90)
    made = prototypes_of(model, data, members, np.arange(3), 4, "subset")
    of_all, of_few = margins_between(model, data, members, made, n_few)
    groups = groups_of_few(made.owner, n_few)
    parts = [Prototypes(made.planes[groups == g], made.owner[groups == g]) for g in set(groups)]
    assert len(parts) == 4 // n_few
    assert of_all == margin_of(model, data, members, made)
    assert of_few == pytest.approx(
        np.mean([margin_by_loop(X, y, part, 1.0) for part in parts]), rel=1e-4
    )


def test_of_many_rows_some_tell_the_margin():
    """Deterministic, and a median of rows: margins are 1 to 20,000."""
    X = np.arange(0.5, 10_000.5, 0.5, dtype=np.float32)[:, None]
    made = Prototypes(np.array([[0, 1], [0, -1]], np.float32), np.array([0, 1], np.int32))
    model, data = model_of(1, [0, 1]), data_of(X, np.zeros(len(X)))
    found = margin_of(model, data, np.arange(len(X)), made)
    assert found == margin_of(model, data, np.arange(len(X)), made)
    assert found != np.median(2 * X)
    assert found == pytest.approx(np.median(2 * X), rel=0.1)


def test_packed_rows_are_a_matrix():
    X, y = clustered(n=20)
    rows = prototypes.packed(data_of(X, y).rows, np.array([3, 1, 1]))
    np.testing.assert_array_equal(matrix_of(rows, 5).toarray(), X[[3, 1, 1]])
    assert matrix_of(rows, 9).shape == (3, 9)
