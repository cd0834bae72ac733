"""Steps of the convex polytope machine: Alg. 1 and 2, the tally, storages, cuts, averages."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit
from polyplane.engine.planes.assignment_by_entropy import (
    add_row,
    entropy_of,
    new_tally,
    spans_of_tally,
    take_row,
)
from polyplane.engine.planes.planes import (
    MISTAKES,
    NO_PLANE,
    with_planes,
    zero_planes,
)
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.engine.steps.polytope import PolytopeRule, polytope_epoch
from polyplane.engine.targets import Targets
from tests.exact import ALPHAS, as_fractions, problems, random_problem
from tests.examples import examples
from tests.reference import convex_polytope

pytestmark = pytest.mark.loops

SHARES = [0.0, 0.3, 0.8, 1.0]  # of log2 K


class Training:
    """What the loop needs, for planes that start as `start` and belong to `owner`."""

    def __init__(self, X, y, start, owner, weights=(), keeps_average=False, remembers=True):
        self.rows = csr_rows(X, 0) if sp.issparse(X) else dense_rows(X, 0)
        weights = np.array(weights, np.float32)
        self.targets = Targets(y.astype(np.int32), np.arange(2, dtype=np.int32), weights)
        self.n_planes, n_columns = len(owner), X.shape[1]
        padded = np.hstack([np.zeros((self.n_planes, 1)), start])  # feature 0 is the constant
        self.planes = with_planes(zero_planes(n_columns, keeps_average), owner, padded)
        self.tally = new_tally(self.planes.owner.size)
        self.chosen = np.full(len(y) if remembers else 0, NO_PLANE, np.int32)
        self.t = 0

    def visit(self, order, alpha, h):
        """One call of the loop."""
        order = np.asarray(order, np.int32)
        state, rule = (self.planes, self.tally), PolytopeRule(alpha, h)
        self.t = polytope_epoch(self.rows, self.targets, order, *state, rule, self.chosen, self.t)
        return self

    @property
    def sums(self):
        """Theta, planes by features."""
        return self.planes.sums[1:, : self.n_planes].T


@st.composite
def starts(draw, width):
    """K planes for one class or for each, in any order of lanes; small whole numbers."""
    K = draw(st.integers(1, 20))
    owner = draw(st.sampled_from([[0], [1], [1, 0]]))
    owner = np.array(draw(st.permutations(np.repeat(owner, K).tolist())))
    cells = draw(st.lists(st.integers(-1, 1), min_size=width, max_size=width * 3))
    return K, owner, np.resize(cells, (len(owner), width)).astype(np.float64)


def reference(X, y, alpha, h, order, start, owner, **options):
    """Alg. 1 and 2 in exact rational arithmetic."""
    exact = as_fractions(X), y, Fraction(alpha), h, order, as_fractions(start), owner
    return convex_polytope.train(*exact, **options)


def unadj_of(model, n_rows):
    """UNADJ of both polytopes in one array: a row is a positive of one of them."""
    both = model.unadj[0] | model.unadj[1]
    return [both.get(i, NO_PLANE) for i in range(n_rows)]


def assert_same_sums(training, model, alpha):
    expected = convex_polytope.sums(model, Fraction(alpha))
    assert training.sums.tolist() == [[float(v) for v in plane] for plane in expected]


@settings(deadline=None, max_examples=examples(50))
@given(
    st.data(), problems(most_classes=2), st.sampled_from(ALPHAS), st.sampled_from(SHARES),
    st.integers(1, 3),
)  # fmt: skip
def test_equals_the_paper_transcribed(data, problem, alpha, share, n_epochs):
    """Planes, UNADJ, its entropies and the mistakes."""
    X, y = problem
    K, owner, start = data.draw(starts(X.shape[1]))
    h = share * np.log2(K)
    epoch = data.draw(st.permutations(range(len(y))))
    training = Training(X, y, start, owner)
    for _ in range(n_epochs):
        training.visit(epoch, alpha, h)
    model = reference(X, y, alpha, h, epoch * n_epochs, start, owner)
    assert_same_sums(training, model, alpha)
    assert training.planes.counts[MISTAKES] == model.mistakes
    assert training.t == model.t
    if h > 0:
        assert training.chosen.tolist() == unadj_of(model, len(y))
        for label in (0, 1):
            expected = convex_polytope.entropy(model.unadj[label])
            assert entropy_of(training.tally, label) == pytest.approx(expected, abs=1e-12)
    else:
        assert (training.chosen == NO_PLANE).all()


@settings(deadline=None, max_examples=examples(20))
@given(st.data(), problems(most_classes=2), st.sampled_from(SHARES[1:]))
def test_without_a_map_every_visit_is_a_new_row(data, problem, share):
    X, y = problem
    K, owner, start = data.draw(starts(X.shape[1]))
    order = np.tile(np.arange(len(y)), 2)
    training = Training(X, y, start, owner, remembers=False)
    training.visit(order, 0.25, share * np.log2(K))
    model = reference(
        X, y, 0.25, share * np.log2(K), order, start, owner, remembers=False
    )  # fmt: skip
    assert_same_sums(training, model, 0.25)


@settings(deadline=None, max_examples=examples(20))
@given(st.data(), problems(most_classes=2), st.sampled_from(SHARES))
def test_weights_multiply_the_updates(data, problem, share):
    X, y = problem
    K, owner, start = data.draw(starts(X.shape[1]))
    n = len(y)
    weights = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), float)
    h = share * np.log2(K)
    training = Training(X, y, start, owner, weights).visit(range(n), 0.25, h)
    model = reference(X, y, 0.25, h, range(n), start, owner, weights=as_fractions([weights])[0])
    assert_same_sums(training, model, 0.25)


@settings(deadline=None, max_examples=examples(20))
@given(problems(most_classes=2), st.sampled_from(ALPHAS), st.integers(2, 5))
def test_two_sides_are_two_machines_of_one_side(problem, alpha, K):
    """Neither polytope sees the other."""
    X, y = problem
    order, h = np.tile(np.arange(len(y)), 2), 0.8 * np.log2(K)
    start = np.resize([1.0, 0, -1, 1, 0], (2 * K, X.shape[1]))
    owner = np.repeat([1, 0], K)
    both = Training(X, y, start, owner).visit(order, alpha, h)
    for label in (0, 1):
        of_label = owner == label
        one = Training(X, y, start[of_label], owner[of_label]).visit(order, alpha, h)
        np.testing.assert_array_equal(one.sums, both.sums[of_label])


@jit
def move_rows(tally, chosen, rows, planes, label):
    """Map each of `rows` to the plane beside it, one after the other."""
    won = spans_of_tally(tally, chosen)
    for i, plane in zip(rows, planes):  # noqa: B905
        if chosen[i] >= 0:
            take_row(won, label, chosen[i])
        add_row(won, label, plane)
        chosen[i] = plane


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 4)), max_size=60))
def test_the_entropy_kept_is_that_of_the_map(moves):
    tally, chosen = new_tally(16), np.full(16, NO_PLANE, np.int32)
    rows, planes = np.array(moves, np.int64).reshape(-1, 2).T
    move_rows(tally, chosen, rows.copy(), planes.copy(), 1)
    counts = np.bincount(chosen[chosen >= 0], minlength=16)
    assert tally.of_plane.tolist() == counts.tolist()
    assert tally.of_class.tolist() == [0, counts.sum()]
    positive = counts[counts > 0]
    np.testing.assert_allclose(tally.n_log_n, [0, positive @ np.log2(positive)], atol=1e-12)
    expected = convex_polytope.entropy(dict(moves))
    assert entropy_of(tally, 1) == pytest.approx(expected, abs=1e-12)
    assert entropy_of(tally, 0) == 0


def test_rounding_of_the_entropy_moves_no_row():
    """Two planes with two rows each are 1 bit, and so they are after one row comes again."""
    start = np.array([[3.0], [2.0], [1.0], [0.0]])
    training = Training(np.ones((4, 1)), np.ones(4, int), start, np.ones(4, int))
    training.chosen[:] = 0, 0, 1, 1
    training.tally.of_plane[:2], training.tally.of_class[1] = 2, 4
    training.tally.n_log_n[1] = 4 + 1e-12
    training.visit([0], 1.0, 1.0)
    assert training.sums.tolist() == [[4], [2], [1], [0]]


def some_training(keeps_average=False, stored=lambda X: X):
    """Twelve planes for each class, on sixty rows of nineteen small whole numbers."""
    X, y = random_problem(1, width=19, n_classes=2)
    start = np.random.default_rng(2).integers(-1, 2, (24, 19))
    owner = np.repeat([1, 0], 12)
    return Training(stored(X), y, start, owner, keeps_average=keeps_average)


def test_idle_lanes_stay_as_they_are():
    training = some_training(keeps_average=True).visit(np.tile(np.arange(60), 3), 0.25, 2.0)
    assert not training.planes.sums[:, 24:].any()
    assert not training.planes.timed_sums[:, 24:].any()


def test_more_entropy_asked_for_is_more_entropy_had():
    X, y = random_problem(4, n=200, n_classes=2)
    start, owner = np.random.default_rng(4).integers(-1, 2, (8, 6)), np.ones(8, int)
    had = []
    for h in (1e-6, 2.5):
        training = Training(X, y, start, owner).visit(np.tile(range(200), 3), 2.0**-7, h)
        had.append(entropy_of(training.tally, 1))
    assert had[0] < 2.5 - 0.1 < had[1]


def test_the_order_of_the_paper_forgets_its_first_row():
    """Why departure 1 is taken: (1 - eta lambda) is 0 at t = 1, and smaller updates follow."""
    X, y = random_problem(5, n=1, n_classes=1)
    start, owner = np.zeros((2, 6)), [1, 0]
    paper = reference(X, y, 0.25, 0.0, [0], start, owner, shrinks_first=False)
    ours = reference(X, y, 0.25, 0.0, [0], start, owner)
    assert not np.any(paper.W)
    assert convex_polytope.sums(ours, Fraction(1, 4))[1].tolist() == X[0].tolist()
