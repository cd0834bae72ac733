"""The hinge loop as GAMM and SAMM: the papers, what they reduce to, and what is kept up to date."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import coins_at, in_place
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import (
    CLONED,
    CREATED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    live_lanes,
    with_classes,
    with_more_room,
    with_planes,
    zero_planes,
)
from polyplane.engine.planes.pruning import drop_dormant, prune
from polyplane.engine.rows.storage import CsrRows, csr_rows, dense_rows
from polyplane.engine.steps.hinge import UNASSIGNED, HingeRule, SparseRule, hinge_epoch, reassign
from polyplane.engine.targets import Targets
from tests.exact import ALPHAS, as_fractions, problems, random_problem
from tests.examples import examples, with_seeds
from tests.reference import growing_amm, sparse_amm

pytestmark = pytest.mark.loops

NOTHING = np.empty(0, np.float32)
ONLINE = np.empty(0, np.int32)
NEVER = 10**9
MUS = [0.0123, 0.0379, 0.1171, 0.3533]  # nothing to do with square roots of small whole numbers
SAMM = [(mu, 0.0) for mu in MUS] + [(0.0379, 2**-7), (0.1171, 2**-5)]


def rows_of(X, constant=0.0):
    return csr_rows(X, constant) if sp.issparse(X) else dense_rows(X, constant)


def targets_of(y, weights=NOTHING):
    return Targets(y.astype(np.int32), np.arange(y.max() + 1, dtype=np.int32), weights)


def train(rows, targets, order, rule, coins=NOTHING, interval=NEVER, act=None, cuts=(), most=NEVER):
    """Visit all rows of `order`, cut where asked and where room runs out; `act` every interval."""
    n_columns = rows.columns.max() + 1 if isinstance(rows, CsrRows) else rows.values.shape[1]
    planes = with_classes(zero_planes(n_columns, True), targets.codes.max() + 1, most)
    t = 0
    stops = sorted({*range(interval, order.size, interval), *cuts, order.size})
    for stop in stops:
        while t < stop:
            part = slice(t, stop)
            t = hinge_epoch(rows, targets, order[part], planes, rule, coins[part], ONLINE, t)
            if t < stop:
                planes = with_more_room(planes)
        if t % interval == 0:
            act(planes, t)
    return planes


def sums_of(planes):
    """Theta, oldest plane first, without the constant."""
    return planes.sums[1:, live_lanes(planes)].T.tolist()


def owners_of(planes):
    return planes.owner[live_lanes(planes)].tolist()


def assert_same_planes(one, other):
    """To the last bit, wherever the planes live."""
    for name in ("sums", "timed_sums"):
        columns = [getattr(planes, name)[:, live_lanes(planes)] for planes in (one, other)]
        np.testing.assert_array_equal(*columns)
    for name in ("owner", "squared_norms", "inverse_lengths"):
        columns = [getattr(planes, name)[live_lanes(planes)] for planes in (one, other)]
        np.testing.assert_array_equal(*columns)
    np.testing.assert_array_equal(one.counts[1:], other.counts[1:])  # lanes may have gaps


# ---- GAMM ------------------------------------------------------------------------------------


def test_nothing_is_cloned_where_planes_are_chosen():
    X, y = random_problem(1)
    planes = [with_classes(zero_planes(6, True, 64), 3, NEVER) for _ in range(2)]
    rule = HingeRule(0.01, False, clone_probability=1.0)
    for state, coins in zip(planes, (NOTHING, np.zeros(60, np.float32)), strict=True):
        z = np.full(60, UNASSIGNED, np.int32)
        hinge_epoch(rows_of(X), targets_of(y), in_place(60), state, rule, coins, z, 0)
    assert_same_planes(*planes)
    assert planes[0].counts[CLONED] == 0


def test_the_average_of_a_clone_holds_what_it_was_before_the_split():
    """Theta after step t has weight t; a plane not yet born is its parent, or zero."""
    X, y = random_problem(5, n=40, low=-2)
    coins = coins_at(5, 0, 40)
    rule = HingeRule(0.25, False, 1.0, 0.875)
    planes = train(rows_of(X), targets_of(y), in_place(40), rule, coins)
    reference, every_step = growing_amm.online(
        as_fractions(X), y, Fraction(1, 4), range(40), coins, 1, Fraction(7, 8), NEVER, 0, NEVER
    )
    assert len(reference.parent) > 3

    def sums_at(step, plane):
        while plane not in every_step[step] and plane in reference.parent:
            plane = reference.parent[plane]
        return [float(v) for v in every_step[step].get(plane, np.zeros(6))]

    for k, plane in enumerate(reference.W):
        path = [sums_at(step, plane) for step in range(40)]
        expected = np.average(path, axis=0, weights=np.arange(1, 41))
        np.testing.assert_allclose(mean_sums(planes, 40)[1:, k], expected, rtol=1e-4, atol=1e-4)


# ---- SAMM ------------------------------------------------------------------------------------


def train_samm(X, y, alpha, mu, l1, interval=NEVER, grow_rivals=False, n_epochs=2, **options):
    order = np.tile(in_place(len(y)), n_epochs)
    rule = SparseRule(alpha, grow_rivals, mu, l1)
    drop = lambda planes, t: drop_dormant(planes, mu * t)  # noqa: E731
    return train(rows_of(X), targets_of(y), order, rule, NOTHING, interval, drop, **options)


def assert_same_as_samm(planes, reference):
    assert owners_of(planes) == list(reference.owner.values())
    assert sums_of(planes) == [[-float(v) for v in g] for g in reference.G.values()]
    found = planes.counts[[CREATED, PRUNED, MISTAKES]].tolist()
    assert found == [reference.created, reference.dropped, reference.mistakes]


@with_seeds(3)
@pytest.mark.parametrize("grow_rivals", [False, True])
@pytest.mark.parametrize(("mu", "l1"), SAMM)
def test_samm_equals_dual_averaging(seed, grow_rivals, mu, l1):
    X, y = random_problem(seed, n=40, width=5, low=-2)
    alpha = ALPHAS[seed + 1]
    planes = train_samm(X, y, alpha, mu, l1, 30, grow_rivals)
    order = np.tile(in_place(40), 2)
    numbers = [Fraction(number) for number in (alpha, mu, l1)]
    reference = sparse_amm.online(as_fractions(X), y, *numbers, order, 30, grow_rivals)
    assert_same_as_samm(planes, reference)
    assert mu < 0.1 or reference.woken > 0


@settings(deadline=None, max_examples=examples(40))
@given(problems(), st.sampled_from(ALPHAS), st.sampled_from([0, 2**-8, 2**-3]), st.booleans())
def test_samm_with_components_alone_equals_dual_averaging(problem, alpha, l1, grow_rivals):
    """Without lengths all numbers are rational, and ties are real."""
    X, y = problem
    planes = train_samm(X, y, alpha, 0.0, float(l1), NEVER, grow_rivals)
    order = np.tile(in_place(len(y)), 2)
    numbers = [Fraction(number) for number in (alpha, 0, l1)]
    reference = sparse_amm.online(as_fractions(X), y, *numbers, order, NEVER, grow_rivals)
    assert_same_as_samm(planes, reference)


def test_samm_with_hardly_any_shrinkage_of_planes_is_amm():
    """On rows without ties: of these SAMM gives those at zero to the zero plane."""
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(80, 12)), generator.integers(0, 3, 80)
    assert_same_planes(*(train_samm(X, y, 0.01, mu, 0.0) for mu in (0.0, 1e-30)))


# three dormant planes, of classes 0, 0, 1, at 10 steps of mu = 1
DORMANT = np.array([[0, 1, 0], [0, 3, 0], [0, 0, 2]], np.float32)


@pytest.mark.parametrize(
    ("x", "room", "grow_rivals", "expected"),
    [
        ([1, 0], 5, False, [[1, 0], [4, 0], [0, 2]]),  # the largest Theta x
        ([0, 1], 5, False, [[1, 0], [3, 0], [0, 2], [0, 1]]),  # none is positive
        ([-1, 1], 5, True, [[1, 0], [3, 0], [0, 2], [-1, 1], [1, -1]]),
        ([1, 1], 5, True, [[1, 0], [4, 1], [0, 2], [-1, -1]]),
        ([1, 0], 0, False, [[1, 0], [4, 0], [-1, 2]]),  # without room a rival is what it is
        ([-1, 0], 0, False, [[0, 0], [3, 0], [1, 2]]),
    ],
)
def test_an_update_wakes_a_dormant_plane_or_creates_one(x, room, grow_rivals, expected):
    planes = with_planes(with_classes(zero_planes(2, False), 2, room), [0, 0, 1], DORMANT)
    X, y = np.array([x], np.float64), np.array([0])
    rule = SparseRule(0.5, grow_rivals, 1.0)
    targets = Targets(y.astype(np.int32), np.arange(2, dtype=np.int32), NOTHING)
    hinge_epoch(rows_of(X), targets, in_place(1), planes, rule, NOTHING, ONLINE, 10)
    assert sums_of(planes) == expected


# ---- both ------------------------------------------------------------------------------------

RULES = {
    "gamm": HingeRule(2.0**-7, False, 0.5, 0.875),
    "gamm_with_rivals": HingeRule(2.0**-4, True, 1.0, 1.0),
    "samm": SparseRule(2.0**-7, False, 0.0379),
    "samm_with_rivals": SparseRule(2.0**-4, True, 0.1171, 2.0**-6),
}
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def acts(rule):
    if isinstance(rule, SparseRule):
        return lambda planes, t: drop_dormant(planes, rule.mu * t)
    return lambda planes, t: prune(planes, 4.0)


@rules
def test_the_constant_is_a_column_of_ones(rule):
    X, y = random_problem(2, n=80, low=-2)
    order, coins = in_place(80), coins_at(2, 0, 80)
    common = targets_of(y), order, rule, coins, 50, acts(rule)
    planes = train(rows_of(X, 1.0), *common)
    wide = train(rows_of(np.insert(X, 0, 1.0, axis=1)), *common)
    assert planes.sums[:, live_lanes(planes)].T.tolist() == sums_of(wide)


@rules
def test_a_model_sees_classes_by_its_codes(rule):
    X, y = random_problem(9, n=100)
    order, coins = in_place(100), coins_at(9, 0, 100)
    coded = Targets(y.astype(np.int32), np.array([1, 0, 1], np.int32), NOTHING)
    plain = Targets((y != 1).astype(np.int32), np.array([0, 1], np.int32), NOTHING)
    results = [train(rows_of(X), targets, order, rule, coins) for targets in (coded, plain)]
    assert_same_planes(*results)


@pytest.mark.parametrize("seed", range(3))
def test_reassigned_rows_take_the_best_plane_of_their_class(seed):
    X, y = random_problem(seed, n=60, low=-2)
    order, chosen = in_place(60), np.full(60, UNASSIGNED, np.int32)
    planes = train(rows_of(X), targets_of(y), order, HingeRule(0.01, False))
    assert reassign(rows_of(X), targets_of(y), order, planes, chosen) == 60
    assert reassign(rows_of(X), targets_of(y), order, planes, chosen) == 0
    scores = X @ planes.sums[1:]
    for i, lane in enumerate(chosen):
        own = np.where(planes.owner == y[i], scores[i], -np.inf)
        assert lane == (np.argmax(own) if own.max() >= 0 else NO_PLANE)


def test_a_full_state_returns_early_and_goes_on_as_if_nothing_had_happened():
    X, y = random_problem(3, n=120, low=-2)
    rule = HingeRule(2.0**-4, True, 1.0, 1.0)
    coins, order = coins_at(0, 0, 120), in_place(120)
    tight = train(rows_of(X), targets_of(y), order, rule, coins)
    roomy = with_classes(zero_planes(6, True, 512), 3, NEVER)
    assert hinge_epoch(rows_of(X), targets_of(y), order, roomy, rule, coins, ONLINE, 0) == 120
    short = with_classes(zero_planes(6, True), 3, NEVER)
    assert 0 < hinge_epoch(rows_of(X), targets_of(y), order, short, rule, coins, ONLINE, 0) < 120
    assert_same_planes(tight, roomy)
