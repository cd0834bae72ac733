"""Steps on the cross-entropy of soft maxima: the loop, its schedule, and the gradient it follows.

The loop works in float32 and keeps W as c V, the reference works in float64 on W itself: after
some hundred steps they differ by less than CLOSE times the largest weight (below 1e-6 here).
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import MISTAKES, with_planes, zero_planes
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.engine.steps.softmax import SoftmaxRule, planes_scale, softmax_epoch
from polyplane.engine.targets import Targets
from tests.exact import random_problem
from tests.examples import examples
from tests.reference import polyplane as reference

pytestmark = pytest.mark.loops

CLOSE = 5e-6
NO_CHOICE = np.empty(0, np.int32)
STEP = 0.3
N_STEPS = 160  # of a schedule
SCHEDULES = {
    "plain": {"n_steps": N_STEPS},
    "shrinking": {"n_steps": N_STEPS, "alpha": 0.1},  # by e^-2.4 over the schedule
    "with a floor": {"n_steps": N_STEPS, "floor": 0.3},
    "until it is enough": {"n_steps": N_STEPS, "enough": 1.7},
    "sharpening": {"n_steps": N_STEPS, "sharpness": 3.0},
    "all at once": {
        "n_steps": N_STEPS, "alpha": 0.1, "floor": 0.1, "enough": 1.7, "sharpness": 3.0,
    },
    "shrinking by 1024^3": {"n_steps": N_STEPS, "alpha": 1.0},  # once in two blocks or more
    "shrinking by 1024^20": {"n_steps": N_STEPS, "alpha": 6.0, "sharpness": 3.0},  # twice in one
    "stream": {},
    "stream shrinking": {"alpha": 0.1, "floor": 0.1},
    "stream shrinking by 1024^6": {"alpha": 1.0, "enough": 1.7},
}  # fmt: skip
every_schedule = pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
LARGE = pytest.mark.compiled
SHAPES = [(1, 1), (3, 4, 2), (16, 1)], [(1, 40), (14, 20, 6)]  # planes of each class
every_shape = pytest.mark.parametrize(
    "shape", [*SHAPES[0], *(pytest.param(shape, marks=LARGE) for shape in SHAPES[1])], ids=str
)


def rule_of(step=STEP, alpha=0.0, start=0, n_steps=0, sharpness=1.0, enough=np.inf, floor=0.0):
    return SoftmaxRule(step, alpha, start, n_steps, sharpness, enough, floor)


def rates_at(rule, t):
    """eta, how much W has shrunk and s, when t rows have been visited."""
    schedule = rule.step, rule.alpha, rule.n_steps, rule.sharpness
    return reference.rates(t - rule.start, *schedule)


class Training:
    """What the loop needs, for planes that start as `start` and belong to `owner`."""

    def __init__(
        self, X, y, start, owner, rule, weights=(), constant=1.0, keeps_average=False, codes=None
    ):
        self.rows = csr_rows(X, constant) if sp.issparse(X) else dense_rows(X, constant)
        codes = np.arange(max(owner.max(), y.max()) + 1) if codes is None else codes
        weights = np.array(weights, np.float32)
        self.targets = Targets(y.astype(np.int32), codes.astype(np.int32), weights)
        self.planes = with_planes(zero_planes(X.shape[1], keeps_average), owner, start)
        self.n_planes, self.rule, self.t = len(owner), rule, rule.start
        self.resting = NO_CHOICE

    def visit(self, order):
        """One call of the loop."""
        order = np.asarray(order, np.int32)
        given = self.rows, self.targets, order, self.planes, self.rule
        self.t = softmax_epoch(*given, self.resting, self.t)
        return self

    @property
    def sums(self):
        """V, planes by features, of which the first is the constant."""
        return self.planes.sums[:, : self.n_planes].T.astype(np.float64)

    @property
    def sharp_planes(self):
        """s W as it is handed out."""
        return planes_scale(self.rule, self.t) * self.sums


class Problem:
    """Rows and planes at random, owners in any order of lanes; feature 0 is a constant of 1."""

    def __init__(self, shape, is_weighted=False, n=90, width=6):
        generator = np.random.default_rng([*shape])
        self.X = generator.normal(size=(n, width)).astype(np.float32)
        self.y = generator.integers(0, len(shape), n)
        self.owner = generator.permutation(np.repeat(np.arange(len(shape)), shape))
        self.start = generator.normal(size=(len(self.owner), 1 + width)).astype(np.float32)
        self.weights = generator.uniform(0.2, 3, n).astype(np.float32) if is_weighted else ()
        self.order = np.resize(generator.permutation(n), N_STEPS)
        self.features = np.insert(self.X, 0, 1, axis=1).astype(np.float64)

    def training(self, rule, **changes):
        return Training(self.X, self.y, self.start, self.owner, rule, self.weights, **changes)

    def reference(self, options, n=N_STEPS):
        """W after each step."""
        weights = self.weights if len(self.weights) else None
        given = self.start, self.owner, self.features, self.y, self.order[:n]
        return reference.train(*given, step=STEP, weights=weights, **options)[1]


def at_present(W, rule, t):
    """s W when t rows have been visited, from W as the last of them has left it."""
    _, shrunk, s = rates_at(rule, t)
    return s * shrunk / rates_at(rule, t - 1)[1] * W


def assert_close(found, expected):
    """To the largest number."""
    assert np.abs(found - expected).max() < CLOSE * np.abs(expected).max()


def assert_same_planes(one, other):
    """To the last bit."""
    for mine, others in zip(one.planes, other.planes, strict=True):
        np.testing.assert_array_equal(mine, others)


# ---- the reference ---------------------------------------------------------------------------


@every_schedule
@every_shape
def test_every_step_is_that_of_the_reference(shape, options):
    problem = Problem(shape, is_weighted=sum(shape) % 2 == 1)
    training = problem.training(rule_of(**options))
    for i, W in zip(problem.order, problem.reference(options), strict=True):
        training.visit([i])
        assert_close(training.sharp_planes, at_present(W, training.rule, training.t))
    assert training.t == N_STEPS


@pytest.mark.compiled
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_a_stream_goes_on_for_long(alpha):
    """Rates fall by half."""
    problem = Problem((2, 3))
    training = problem.training(rule_of(alpha=alpha)).visit(np.resize(problem.order, 30_005))
    W = training.sharp_planes
    training.visit(problem.order)
    given = W, problem.owner, problem.features, problem.y, problem.order
    W, _ = reference.train(*given, step=STEP, alpha=alpha, t=30_005)
    assert_close(training.sharp_planes, at_present(W, training.rule, training.t))
    assert rates_at(training.rule, training.t)[0] == pytest.approx(STEP / 2, rel=0.01)


def test_the_planes_handed_out_are_sharp_in_the_end():
    """V is s W up to c, and s is what it has risen to."""
    scales = [planes_scale(rule_of(n_steps=1_600, sharpness=3.0), t) for t in range(1_601)]
    assert scales[0] == scales[480] == 1
    assert scales[880] == pytest.approx(2)
    assert scales[1_280] == scales[1_600] == 3
    assert (np.diff(scales) >= 0).all()
    assert (np.flatnonzero(np.diff(scales)) % 16 == 15).all()


@every_schedule
@pytest.mark.parametrize("t", [16, 32, 48, 64, 80, 160])
def test_a_shift_changes_no_plane(options, t):
    """Whether or not the step that moves 1024 to V has been made; the row is of no class met."""
    problem = Problem((2, 3))
    problem.y[0] = 2
    training = problem.training(rule_of(**options)).visit(np.resize(np.arange(1, 90), t))
    W = training.sharp_planes
    training.visit([0])
    np.testing.assert_array_equal(training.sharp_planes, W)


# ---- cuts and storages -----------------------------------------------------------------------


@every_schedule
@pytest.mark.parametrize("shape", [(3, 4, 2), pytest.param((14, 20, 6), marks=LARGE)], ids=str)
@settings(deadline=None, max_examples=examples(4))
@given(cuts=st.lists(st.integers(0, 70), max_size=6), start=st.sampled_from([0, 5, 1_000]))
def test_cutting_the_order_anywhere_changes_nothing(shape, options, cuts, start):
    problem = Problem(shape)
    rule = rule_of(**options, start=start)
    whole = problem.training(rule, keeps_average=True).visit(problem.order[:70])
    parts = problem.training(rule, keeps_average=True)
    for part in np.split(problem.order[:70], sorted(cuts)):
        parts.visit(part)
    assert parts.t == whole.t == start + 70
    assert_same_planes(parts, whole)


@every_schedule
@pytest.mark.parametrize("start", [3, 16, 777])
def test_the_schedule_begins_at_any_count(options, start):
    problem = Problem((3, 2))
    early = problem.training(rule_of(**options)).visit(problem.order)
    late = problem.training(rule_of(**options, start=start)).visit(problem.order)
    assert late.t == start + N_STEPS
    assert_same_planes(early, late)
    np.testing.assert_array_equal(early.sharp_planes, late.sharp_planes)


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_the_constant_is_a_column(constant):
    problem = Problem((3, 2))
    problem.features[:, 0] = constant
    options = SCHEDULES["all at once"]
    training = problem.training(rule_of(**options), constant=constant).visit(problem.order)
    W = problem.reference(options)[-1]
    assert_close(training.sharp_planes, at_present(W, training.rule, N_STEPS))


def test_a_model_sees_classes_by_its_codes():
    problem = Problem((3, 2, 2))
    problem.owner = np.minimum(problem.owner, 1)
    rule = rule_of(n_steps=N_STEPS)
    coded = problem.training(rule, codes=np.array([1, 0, 1])).visit(problem.order)
    problem.y = (problem.y != 1).astype(int)
    assert_same_planes(coded, problem.training(rule).visit(problem.order))


def test_lanes_do_not_matter():
    """Planes in any order are the same planes, up to the order of sums."""
    problem, order = Problem((9, 14)), np.random.default_rng(0).permutation(23)
    rule = rule_of(**SCHEDULES["all at once"])
    planes = problem.training(rule).visit(problem.order).sharp_planes[order]
    problem.owner, problem.start = problem.owner[order], problem.start[order]
    assert_close(problem.training(rule).visit(problem.order).sharp_planes, planes)


# ---- averages --------------------------------------------------------------------------------


@every_schedule
@pytest.mark.parametrize("start", [0, 50])
def test_average_kept_equals_the_mean_over_all_steps(options, start):
    """V after step t has weight t: V is W with nothing shrunk, times what has been moved to V.

    Up to the start of the schedule planes are what they are then.
    """
    problem = Problem((3, 4, 2), is_weighted=True)
    rule, end = rule_of(**options, start=start), start + N_STEPS
    training = problem.training(rule, keeps_average=True).visit(problem.order)
    _, shrunk, s = np.transpose([rates_at(rule, t) for t in range(start, end + 1)])
    V = problem.reference(options) / shrunk[:-1, None, None]
    V = np.concatenate([np.repeat(problem.start[None], start, axis=0), V])
    mean = np.average(V, axis=0, weights=np.arange(1, end + 1))
    kept = mean_sums(training.planes, end)[:, : training.n_planes].T
    assert_close(planes_scale(rule, end) * kept, s[-1] * shrunk[-1] * mean)


@every_schedule
def test_keeping_an_average_changes_no_plane(options):
    problem = Problem((3, 20))
    with_average, without = (
        problem.training(rule_of(**options), keeps_average=keeps).visit(problem.order[:60])
        for keeps in (True, False)
    )
    np.testing.assert_array_equal(with_average.sums, without.sums)
    assert with_average.planes.timed_sums[:, :23].any()


def test_idle_lanes_stay_as_they_are():
    problem = Problem((3, 20))
    training = problem.training(rule_of(), keeps_average=True).visit(problem.order)
    assert not training.planes.sums[:, 23:].any()
    assert not training.planes.timed_sums[:, 23:].any()


# ---- single steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 4, 2), (14, 20, 6)], ids=str)
def test_without_a_floor_each_side_moves_by_the_same(shape):
    """Shares of a side add up to 1: the own planes get together what all others lose."""
    problem = Problem(shape)
    training = problem.training(rule_of(step=0.125))
    for i in range(10):
        before, label = training.sums, problem.y[i]
        x = problem.features[i]
        p = 1 / (1 + np.exp(-reference.lead(before, problem.owner, x, label)))
        change = training.visit([i]).sums - before
        is_own = problem.owner == label
        for side, sign in ((is_own, 1), (~is_own, -1)):
            expected = sign * 0.125 * (1 - p) * x
            np.testing.assert_allclose(change[side].sum(axis=0), expected, atol=3e-6)


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.4])
def test_the_floor_is_a_share_of_the_largest_on_its_side(floor):
    """Planes score log 1, 0.5, 0.2, 0.05 on each side, the others 7 more; what stays, stays."""
    parts = np.array([1, 0.5, 0.2, 0.05])
    start = np.concatenate([np.log(parts), 7 + np.log(parts)]).astype(np.float32)[:, None]
    owner, X, y = np.repeat([0, 1], 4), np.empty((2, 0), np.float32), np.array([0, 1])
    for i in range(2):
        training = Training(X, y, start, owner, rule_of(step=1.0, floor=floor)).visit([i])
        lead = 7 if i else -7
        expected = np.where(parts > floor, parts / parts.sum(), 0) / (1 + np.exp(lead))
        change = np.split((training.sums - start)[:, 0], 2)
        np.testing.assert_allclose(change[i], expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(change[1 - i], -expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("enough", "moves"), [(1.9, False), (2.1, True), (np.inf, True)])
def test_rows_far_enough_ahead_are_left_as_they_are(enough, moves):
    """The lead is 2: a plane of 1 + log 2 less than two planes of 3."""
    start = np.array([[1 + np.log(2)], [3], [3]], np.float32)
    X, y, owner = np.empty((1, 0), np.float32), np.array([1]), np.array([0, 1, 1])
    training = Training(X, y, start, owner, rule_of(enough=enough)).visit([0, 0])
    assert (training.sums != start).all() == moves
    assert (training.sums != start).any() == moves


@pytest.mark.parametrize("shape", [(3, 4, 2), (14, 20, 6)], ids=str)
@pytest.mark.parametrize("enough", [-np.inf, np.inf])
def test_the_largest_share_in_a_row_of_its_class_is_noted(shape, enough):
    """As a part of the best plane's; rows that are far enough ahead count, those of others not."""
    problem = Problem(shape)
    options = {"n_steps": N_STEPS, "sharpness": 3.0, "enough": enough, "floor": 0.5}
    training = problem.training(rule_of(**options))
    largest = np.zeros(len(problem.owner))
    path = [problem.start, *problem.reference(options)]
    for t, i in enumerate(problem.order[:100]):
        if t == 60:  # whoever looks at them sets them back
            training.planes.largest_shares[:] = largest[:] = 0
        scores = rates_at(training.rule, t)[2] * path[t] @ problem.features[i]
        own = np.where(problem.owner == problem.y[i], scores, -np.inf)
        largest = np.maximum(largest, np.exp(own - own.max()))
        noted = training.visit([i]).planes.largest_shares
        np.testing.assert_allclose(noted[: largest.size], largest, rtol=1e-4, atol=1e-6)
    assert not noted[largest.size :].any()


# ---- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 4, 2), (16, 1)], ids=str)
def test_a_mistake_is_a_row_without_a_lead(shape):
    problem = Problem(shape)
    options = SCHEDULES["all at once"]
    rule, W, n_mistakes = rule_of(**options), problem.start, 0
    training = problem.training(rule)
    for t, (i, W_next) in enumerate(zip(problem.order, problem.reference(options), strict=True)):
        _, shrunk, s = rates_at(rule, t)
        W = W * shrunk / (rates_at(rule, t - 1)[1] if t else 1)
        n_mistakes += reference.lead(W, problem.owner, problem.features[i], problem.y[i], s) <= 0
        W = W_next
        assert training.visit([i]).planes.counts[MISTAKES] == n_mistakes
    assert 10 < n_mistakes < N_STEPS - 10


def test_no_lead_at_all_is_a_mistake():
    X, y = random_problem(2, n_classes=2)
    start, owner = np.zeros((4, 7), np.float32), np.array([0, 1, 0, 1])
    training = Training(X.astype(np.float32), y, start, owner, rule_of(enough=-1.0))
    training.visit(np.arange(60))
    assert training.planes.counts[MISTAKES] == 60
    assert not training.sums.any()


def test_many_planes_are_more_than_a_better_one():
    """Three planes of 1 against one of 2: log 3 + 1 > 2, a mistake of the class of one."""
    start, owner = np.array([[1], [2], [1], [1]], np.float32), np.array([0, 1, 0, 0])
    X, y = np.empty((2, 0), np.float32), np.array([0, 1])
    for i in range(2):
        training = Training(X, y, start, owner, rule_of()).visit([i])
        assert training.planes.counts[MISTAKES] == i


# ---- extremes --------------------------------------------------------------------------------

infinity_is_meant = pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # in NumPy


@infinity_is_meant
@every_schedule
@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, 1e-30])
def test_planes_stay_finite_whatever_the_scores(options, size):
    problem = Problem((3, 4, 2))
    problem.start *= np.float32(size)
    training = problem.training(rule_of(**options), keeps_average=True).visit(problem.order[:48])
    for array in (training.planes.sums, training.planes.timed_sums, training.sharp_planes):
        assert np.isfinite(array).all()


@infinity_is_meant
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("offset", [-1e4, 0, 1e4])
def test_huge_leads(sign, offset):
    """A row 1e4 ahead moves nothing; one 1e4 behind moves the best plane of each side by eta x.

    One that is 1 behind moves as the reference says, though both sides score 1e4.
    """
    owner, y = np.array([0, 0, 1, 1]), np.array([0])
    X = np.ones((1, 1), np.float32)
    far = np.array([2, 1, -1, -2]) * 5e3 * sign
    near = np.array([0, -0.5, 1, 0.25])
    for scores in (far, near):
        start = np.column_stack([np.zeros(4), scores + offset]).astype(np.float32)
        training = Training(X, y, start, owner, rule_of(), constant=0.0)
        W = reference.train(start, owner, np.array([[0.0, 1.0]]), y, [0], step=STEP)[0]
        np.testing.assert_allclose(training.visit([0]).sums, W, atol=2e-3 if offset else 1e-3)
        assert training.planes.counts[MISTAKES] == (scores is near or sign < 0)


@pytest.mark.parametrize("owner", [[0, 0, 0], [1, 1, 1]], ids=["no rival", "no own"])
def test_a_side_without_planes_learns_nothing(owner):
    problem = Problem((2, 1))
    problem.owner = np.array(owner)
    training = problem.training(rule_of(n_steps=N_STEPS), keeps_average=True)
    training.visit(np.flatnonzero(problem.y == 0))
    assert training.t == (problem.y == 0).sum()
    np.testing.assert_array_equal(training.sums, problem.start)
    assert training.planes.counts[MISTAKES] == 0
    assert not training.planes.timed_sums.any()


def test_no_rows_change_nothing():
    problem = Problem((3, 2))
    training = problem.training(rule_of(alpha=1.0)).visit(problem.order[:32])
    before = training.sums
    training.visit([])
    assert training.t == 32
    np.testing.assert_array_equal(training.sums, before)


# ---- the reference itself --------------------------------------------------------------------


def gradient(function, W, h=1e-5):
    """By central differences."""
    out = np.empty_like(W)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = h
        out[place] = (function(W + step) - function(W - step)) / (2 * h)
    return out


@pytest.mark.parametrize("shape", [(1, 1), (3, 4, 2), (1, 8)], ids=str)
@pytest.mark.parametrize("s", [1.0, 3.0])
def test_the_reference_goes_down_the_gradient(shape, s):
    problem = Problem(shape)
    W = problem.start.astype(np.float64) / 2
    for x, label in zip(problem.features[:4], problem.y, strict=False):
        row = problem.owner, x, label, s
        expected = -gradient(lambda W, row=row: reference.loss(W, *row), W) / s
        np.testing.assert_allclose(reference.direction(W, *row, 0.0), expected, atol=1e-9)


def test_the_loss_is_the_cross_entropy_of_all_planes():
    """Minus the logarithm of the own planes' part in the softmax of all; a rival gets its own."""
    problem = Problem((3, 4, 2))
    W = problem.start.astype(np.float64) / 2
    for x, label in zip(problem.features[:4], problem.y, strict=False):
        parts = np.exp(W @ x) / np.exp(W @ x).sum()
        is_own = problem.owner == label
        row = W, problem.owner, x, label
        assert reference.loss(*row) == pytest.approx(-np.log(parts[is_own].sum()))
        pulls = parts[is_own] / parts[is_own].sum() - parts[is_own]
        direction = reference.direction(*row, 1.0, 0.0)
        np.testing.assert_allclose(direction[is_own], np.outer(pulls, x), atol=1e-12)
        np.testing.assert_allclose(direction[~is_own], -np.outer(parts[~is_own], x), atol=1e-12)


@pytest.mark.parametrize("scores", [[3.0], [1.0, 2.0, -700.0], [1e4, -1e4, 1e4 - 1]])
def test_shares_of_a_side_sum_to_one_before_the_floor(scores):
    scores = np.array(scores)
    shares = reference.shares(scores, 0.0)
    assert shares.sum() == pytest.approx(1)
    cut = reference.shares(scores, 0.5)
    assert cut.tolist() == np.where(shares > 0.5 * shares.max(), shares, 0).tolist()


@pytest.mark.parametrize("n_steps", [0, N_STEPS])
def test_the_reference_shrinks_as_the_sum_of_its_rates(n_steps):
    """In closed form the sum is an integral, and rates are held: within one block of it."""
    etas, shrunk, _ = np.transpose(
        [reference.rates(t, STEP, 0.01, n_steps, 1.0) for t in range(N_STEPS + 1)]
    )
    off = -np.log(shrunk) / 0.01 - np.insert(np.cumsum(etas), 0, 0)[:-1]
    assert np.abs(off).max() < 16 * STEP
