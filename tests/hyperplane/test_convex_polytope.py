"""CPM: the paper, reductions, its own way to end and to be tuned, and a hexagon."""

import numpy as np
import pytest
from sklearn.base import clone

from polyplane import CPMClassifier, PegasosClassifier
from polyplane.engine.planes.planes import live_lanes
from polyplane.engine.rows.storage import dense_rows, length_of_row
from polyplane.hyperplane.convex_polytope import ENTROPIES, SPEAKS_FOR, START_LENGTH_SHARE
from tests.exact import ALPHAS, only_model, random_problem
from tests.reference import convex_polytope
from tests.searches import looks_at_held_out_rows, lowest_after_looks

pytestmark = pytest.mark.loops

SIDES = ["negative", "positive", "both"]


def start_of(machine, X):
    """Theta before the first step, by the seed that the model drew, and the owners."""
    model = only_model(machine)
    length = START_LENGTH_SHARE * length_of_row(dense_rows(X, model.constant), 0)
    owners = SPEAKS_FOR[machine.sides]
    starts = [model.start_of(machine.n_planes, label, length) for label in owners]
    if machine.n_planes == 1:
        starts = [np.zeros((1, X.shape[1] + 1))] * len(owners)
    return np.concatenate(starts).astype(np.float64), np.repeat(owners, machine.n_planes)


def theta(machine):
    """The sums in training, planes by features, the constant first."""
    model = only_model(machine)
    return model.planes.sums[: model.n_features + 1, live_lanes(model.planes)].T


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("n_planes", "entropy"), [(1, 0.0), (3, 0.0), (3, 0.8), (5, 0.95)])
def test_equals_the_paper_transcribed(sides, n_planes, entropy):
    """On rows that are not whole numbers scores do not tie, and rounding does not decide."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(100, 4)), generator.integers(0, 2, 100)
    for alpha in (1e-1, 1e-3):
        model = CPMClassifier(
            alpha=alpha, n_planes=n_planes, entropy=entropy, sides=sides, max_iter=2,
            shuffle=False, average=False, random_state=1,
        ).fit(X, y)  # fmt: skip
        rows = np.hstack([np.ones((100, 1)), X])
        start, owner = start_of(model, X)
        h = entropy * np.log2(n_planes)
        order = np.tile(np.arange(100), 2)
        reference = convex_polytope.train(rows, y, alpha, h, order, start, owner)
        expected = np.array(convex_polytope.sums(reference, alpha))
        np.testing.assert_allclose(theta(model), expected, rtol=1e-4, atol=1e-4)
        scores = rows @ expected.T
        best = [scores[:, owner == c].max(axis=1) if c in owner else np.zeros(100) for c in (0, 1)]
        assert model.predict(X).tolist() == (best[1] > best[0]).astype(int).tolist()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_plane_around_one_class_is_pegasos(alpha, average):
    X, y = random_problem(2, n=100, n_classes=2, low=-2)
    common = {"alpha": alpha, "average": average, "random_state": 0}
    linear = PegasosClassifier(**common).fit(X, y)
    polytope = CPMClassifier(n_planes=1, sides="negative", **common).fit(X, y)
    np.testing.assert_array_equal(polytope.decision_function(X), linear.decision_function(X))
    np.testing.assert_array_equal(polytope.planes_[0], linear.planes_[1] - linear.planes_[0])
    np.testing.assert_array_equal(polytope.planes_[0], 2 * linear.planes_[1])


def test_one_plane_around_the_other_class_or_both_is_pegasos_too():
    X, y = random_problem(3, n=100, n_classes=2, low=-2)
    common = {"alpha": 2**-7, "random_state": 0}
    expected = PegasosClassifier(**common).fit(X, y).decision_function(X)
    for sides, times in (("positive", 1), ("both", 2)):
        model = CPMClassifier(n_planes=1, sides=sides, **common).fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), times * expected)


def test_average_kept_equals_the_mean_over_all_steps():
    """Theta after step t has weight t; the start is part of each."""
    X, y = random_problem(5, n=40, n_classes=2, low=-2)
    model = CPMClassifier(n_planes=3, alpha=0.25, random_state=0)
    mean = 0.0
    for t in range(1, 41):
        model.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[0, 1])
        mean = mean + theta(model).astype(np.float64) * t / sum(range(1, 41))
    found = np.column_stack([model.intercepts_, model.planes_])
    np.testing.assert_allclose(found, mean / (0.25 * 40), rtol=1e-5, atol=1e-6)


def test_rows_of_a_polytope_have_no_planes_and_those_outside_have():
    X, y = random_problem(6, n=200, n_classes=2, low=-2)
    for sides, speaking in (("negative", [1]), ("positive", [0]), ("both", [0, 1])):
        model = CPMClassifier(n_planes=3, sides=sides, random_state=0).fit(X, y)
        assert np.unique(model.plane_classes_).tolist() == speaking
        assert model.n_planes_ == 3 * len(speaking)
        inside = np.setdiff1d([0, 1], speaking)
        np.testing.assert_array_equal(model.assign(X) == -1, np.isin(model.predict(X), inside))


def test_planes_start_apart_even_if_the_first_row_is_zero():
    model = CPMClassifier(n_planes=4, fit_intercept=False, random_state=0)
    planes = model.partial_fit(np.zeros((2, 5)), [0, 1]).planes_  # which moves nothing
    assert len(np.unique(planes, axis=0)) == len(planes) == 8


# ---- the end of training ---------------------------------------------------------------------


@pytest.mark.parametrize("max_steps", [1, 37, 100, 101, 250])
def test_training_ends_after_so_many_steps(max_steps):
    X, y = random_problem(8, n=100, n_classes=2)
    machine = CPMClassifier(n_planes=3, entropy=0.0, shuffle=False, random_state=0)
    stream = np.resize(np.arange(100), max_steps)
    expected = clone(machine).partial_fit(X[stream], y[stream], classes=[0, 1])
    model = machine.set_params(max_steps=max_steps, max_iter=1).fit(X, y)
    assert model.n_steps_ == max_steps
    assert model.n_iter_ == -(-max_steps // 100)
    np.testing.assert_array_equal(model.planes_, expected.planes_)


def test_every_pair_makes_as_many_steps_whatever_its_rows():
    X, y = random_problem(9, n=100)
    y[:60] = 0
    model = CPMClassifier(n_planes=2, max_steps=150, random_state=0).fit(X, y)
    assert [part.n_steps for part in model._training.models] == [150] * 3


def test_a_pair_without_rows_makes_no_steps():
    X, y = random_problem(10, n=100)
    model = CPMClassifier(n_planes=2, max_steps=150, random_state=0)
    model.fit(X, y, sample_weight=(y == 0).astype(float))
    steps = {part.problem.classes: part.n_steps for part in model._training.models}
    assert steps == {(0, 1): 150, (0, 2): 150, (1, 2): 0}
    assert (model.predict(X) == 0).all()


# ---- tuning ----------------------------------------------------------------------------------


@pytest.mark.compiled  # many fits, whose loops other tests look into
@pytest.mark.parametrize("max_steps", [None, 120])
def test_automatic_settings_are_from_the_grids_and_train_as_if_given(max_steps):
    X, y = random_problem(11, n=50)
    machine = CPMClassifier(n_planes=3, max_iter=2, max_steps=max_steps, random_state=0)
    found = clone(machine).set_params(alpha="auto", entropy="auto").fit(X, y)
    T = max_steps or 2 * 50 * 2 / 3  # a pair of three classes has about two thirds of the rows
    assert any(found.alpha_ == pytest.approx(10.0**k / T, rel=1e-12) for k in range(5))
    assert found.entropy_ in ENTROPIES
    given_both = machine.set_params(alpha=found.alpha_, entropy=found.entropy_).fit(X, y)
    np.testing.assert_array_equal(found.planes_, given_both.planes_)
    assert found.n_steps_ == given_both.n_steps_
    again = clone(found).fit(X, y)
    assert (again.alpha_, again.entropy_) == (found.alpha_, found.entropy_)


def test_settings_are_searched_one_after_the_other_on_held_out_rows():
    """Section 5.1: first alpha without entropy, then entropy with the alpha found."""
    X, y = random_problem(12, n=100)
    model = CPMClassifier(n_planes=3, max_iter=2, alpha="auto", entropy="auto", random_state=0)
    with looks_at_held_out_rows() as seen:
        model.fit(X, y)
    assert {look.is_wrong.size for look in seen} == {33, 34}
    assert ENTROPIES[0] == 0
    n_first = next(k for k, look in enumerate(seen) if look.settings.entropy > 0) - 3
    first, then = seen[:n_first], seen[n_first:]  # three looks at each value, the first being 0
    n_steps = 2 * 100 * 2 / 3  # of a pair of three classes, about
    alphas = [look.settings.alpha for look in first[:15:3]]
    np.testing.assert_allclose(alphas, [10.0**k / n_steps for k in range(5)])
    assert {look.settings.entropy for look in first} == {0.0}
    assert model.alpha_ == lowest_after_looks(first, "alpha")
    assert {look.settings.alpha for look in then} == {model.alpha_}
    assert model.entropy_ == lowest_after_looks(then, "entropy")


# ---- a hexagon -------------------------------------------------------------------------------

ANGLES = np.arange(6) * np.pi / 3
NORMALS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def hexagon(seed):
    """Rows inside a regular hexagon of height 2 (class 0) and around it, none near its edge."""
    X = np.random.default_rng(seed).uniform(-2, 2, (9_000, 2))
    distance = (X @ NORMALS.T).max(axis=1) - 1
    clear = np.flatnonzero(np.abs(distance) > 0.1)[:3_000]
    return X[clear], (distance[clear] > 0).astype(int)


def fitted(seed, **parameters):
    return CPMClassifier(sides="negative", random_state=seed, **parameters).fit(*hexagon(seed))


def count_faces(model, seed):
    """Planes that decide one row in a hundred of those outside, or more."""
    X, y = hexagon(seed)
    planes = model.assign(X[y == 1])
    counts = np.bincount(planes[planes >= 0], minlength=model.n_planes_)
    return int((counts >= 0.01 * (y == 1).sum()).sum())


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_planes": 8, "entropy": 0.9, "alpha": 1e-4, "max_iter": 20},
        {"n_planes": 16, "entropy": 0.0, "alpha": 1e-5, "max_iter": 100},
    ],
    ids=str,
)
def test_a_hexagon_is_found_with_its_six_faces(parameters, seed):
    """Planes that are not needed decide nothing."""
    model = fitted(seed, **parameters)
    assert model.score(*hexagon(seed)) == 1
    assert count_faces(model, seed) == 6
    decided = np.unique(model.assign(hexagon(seed)[0]))
    directions = model.planes_[decided[decided >= 0]] @ NORMALS.T
    assert np.sort(directions.argmax(axis=1)).tolist() == list(range(6))  # one each way


@pytest.mark.compiled
def test_planes_left_alone_lose_faces_that_entropy_keeps():
    """With six planes and not one to spare: 4 of 12 hexagons whole without it, 10 with it."""
    settings_ = {"n_planes": 6, "alpha": 1e-5, "max_iter": 100}
    alone = [count_faces(fitted(seed, entropy=0.0, **settings_), seed) for seed in range(6)]
    spread = [count_faces(fitted(seed, entropy=0.95, **settings_), seed) for seed in range(6)]
    assert sum(spread) >= sum(alone) + 3


@pytest.mark.compiled
def test_full_entropy_keeps_more_planes_at_work_than_there_are_faces():
    model = fitted(0, n_planes=16, entropy=1.0, alpha=1e-4, max_iter=20)
    assert count_faces(model, 0) > 8
