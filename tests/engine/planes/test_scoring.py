"""Scores of finished planes against NumPy, exact on whole numbers; ties go to the first plane."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.planes.scoring import (
    MAX_PLANES_BY_LANE,
    Scorer,
    best_planes,
    group_scores,
    plane_scores,
    soft_group_scores,
    soft_winners,
)
from polyplane.engine.records import aligned_zeros
from polyplane.engine.rows.storage import csr_rows, dense_rows
from tests.examples import examples

pytestmark = pytest.mark.loops

N_COLUMNS, N_GROUPS, SCALE = 3, 4, np.float32(0.5)
X = np.array([[0, 0, 0], [1, 0, 2], [3, 1, 0], [1, 1, 1], [0, 2, 0]])


def scorer_of(sums, group, empty_score=-np.inf, scales=SCALE, n_groups=N_GROUPS):
    """Planes as a finished model holds them: lanes ordered by group, padded to whole tiles."""
    n, room = len(group), max(1, -(-len(group) // 16)) * 16
    padded = aligned_zeros(N_COLUMNS + 1, room)
    padded[:, :n] = sums.T
    idle = np.full(room, -np.inf, np.float32)
    idle[:n] = 0
    groups, factors = np.full(room, NO_PLANE, np.int32), np.ones(room, np.float32)
    groups[:n], factors[:n] = group, scales
    starts = np.searchsorted(group, np.arange(n_groups + 1)).astype(np.int32)
    scratch = np.empty(room, np.float32)
    return Scorer(padded, idle, groups, starts, factors, scratch, n, np.float32(empty_score))


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


# ---- groups of many sizes ------------------------------------------------------------------

SIZES = [
    0,
    0,
    1,
    1,
    2,
    3,
    MAX_PLANES_BY_LANE,
    MAX_PLANES_BY_LANE + 1,
    15,
    16,
    17,
    40,
]  # of a group: few and many, tiles and parts
VALUES = [-100.0, -3.7, -0.25, 0.0, 0.25, 1.0, 5.0, 60.0]  # of planes: some groups are clear
SOFT_TOLERANCE = {"rtol": 3e-7, "atol": 2e-6}  # the sum and its logarithm, and the last rounding


@st.composite
def sized_models(draw):
    """Groups of any sizes; planes of few values, often the same, some moved by a few units."""
    sizes = [draw(st.sampled_from(SIZES)) for _ in range(draw(st.integers(1, 6)))]
    group = np.repeat(np.arange(len(sizes)), sizes)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    sums = np.zeros((len(group), N_COLUMNS + 1), np.float32)
    sums[:, 0] = generator.choice(values, len(group))
    for _ in range(draw(st.integers(0, 3))):
        sums[:, 0] = np.nextafter(sums[:, 0], generator.choice([-9e9, 9e9], len(group)))
    sums[:, 1:] = generator.integers(-1, 2, (len(group), N_COLUMNS)) * draw(st.integers(0, 1))
    return sums, group, -np.inf, 1, len(sizes)


def soften(model, order, rows=None):
    """Soft scores of all groups, and the winners, of the rows of `order`."""
    rows = dense_rows(X.astype(np.float32), 1) if rows is None else rows
    scores, winners = np.empty((order.size, model[4]), np.float32), np.empty(order.size, np.int32)
    soft_group_scores(rows, order, scorer_of(*model), scores)
    soft_winners(rows, order, scorer_of(*model), winners)
    return scores, winners


def scores_of_planes(model):
    """Of all rows, as float32 has them."""
    order = in_place(len(X))
    return run(plane_scores, model, order, (len(X), len(model[1]))).astype(np.float64)


@given(model=sized_models())
@settings(deadline=None, max_examples=examples(60))
def test_best_scores_of_groups_of_any_size(model):
    by_plane = scores_of_planes(model)
    found = run(group_scores, model, in_place(len(X)), (len(X), model[4]))
    for g in np.unique(model[1]):
        np.testing.assert_array_equal(found[:, g], by_plane[:, model[1] == g].max(axis=1))


@given(model=sized_models())
@settings(deadline=None, max_examples=examples(60))
def test_soft_scores_are_logs_of_sums_of_exponentials(model):
    by_plane = scores_of_planes(model)
    found, _ = soften(model, in_place(len(X)))
    for g in np.unique(model[1]):
        expected = logsumexp(by_plane[:, model[1] == g], axis=1)
        np.testing.assert_allclose(found[:, g], expected, **SOFT_TOLERANCE)


@given(model=sized_models(), empty_score=st.sampled_from([-np.inf, -2.0, 0.0, 3.0]))
@settings(deadline=None, max_examples=examples(60))
def test_groups_without_planes_score_the_same_where_groups_are_soft(model, empty_score):
    model = (*model[:2], empty_score, *model[3:])
    best = run(group_scores, model, in_place(len(X)), (len(X), model[4]))
    found, _ = soften(model, in_place(len(X)))
    without = np.setdiff1d(np.arange(model[4]), model[1])
    np.testing.assert_array_equal(found[:, without], best[:, without])


@given(model=sized_models(), empty_score=st.sampled_from([-np.inf, -np.inf, 0.0, 3.0]))
@settings(deadline=None, max_examples=examples(100))
def test_the_short_cut_never_changes_a_winner(model, empty_score):
    scores, winners = soften((*model[:2], empty_score, *model[3:]), in_place(len(X)))
    np.testing.assert_array_equal(winners, scores.argmax(axis=1))


@pytest.mark.parametrize("n_leaders", [1, 2])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    "base",
    [0.0, *(pytest.param(x, marks=pytest.mark.compiled) for x in (-3.0, 1e3, 2.0**24, -1e30))],
)
def test_leads_of_just_what_a_group_can_gain(base, is_first, n_leaders):
    """Many equal planes against one that is ahead by the logarithm of their number, or nearly.

    The logarithms of 7 and 37 (NumPy) and of 3100 (C library) are rounded up by more than half.
    """
    for n_planes in (1, 2, 3, 7, MAX_PLANES_BY_LANE, MAX_PLANES_BY_LANE + 1, 37, 64, 3100):
        lead = np.float32(base + np.log(n_planes))
        for units in range(-4, 5):
            ahead = lead + np.float32(units) * np.spacing(lead)
            values = [[base] * n_planes, [ahead] * n_leaders]
            values = values if is_first else values[::-1]
            sums = np.zeros((n_planes + n_leaders, N_COLUMNS + 1), np.float32)
            sums[:, 0] = np.concatenate(values)
            model = sums, np.repeat([0, 1], [len(part) for part in values]), -np.inf, 1, 2
            scores, winners = soften(model, in_place(1))
            assert winners[0] == scores.argmax(axis=1)[0]


@pytest.mark.parametrize("n_planes", [1, 3, 40])
def test_a_clear_leader_loses_to_a_group_with_a_score_of_its_own(n_planes):
    sums = np.zeros((n_planes + 1, N_COLUMNS + 1))
    sums[:, 0] = [-20] * n_planes + [-90]
    model = sums, np.array([0] * n_planes + [2]), 0.0, 1, 3
    scores, winners = soften(model, in_place(1))
    assert scores[0, 1] == 0
    assert winners.tolist() == [1]


def test_a_lead_that_rounding_takes_back_is_none():
    """Numbers near 2**24 differ by 2: log 3 is less than the lead, and rounds up to it."""
    sums = np.zeros((4, N_COLUMNS + 1))
    sums[:, 0] = [2.0**24] * 3 + [2.0**24 + 2]
    scores, winners = soften((sums, np.array([0, 0, 0, 1]), -np.inf, 1, 2), in_place(1))
    assert scores.tolist() == [[2.0**24 + 2] * 2]
    assert winners.tolist() == [0]


def test_many_planes_outvote_a_better_one():
    sums = np.zeros((20, N_COLUMNS + 1))
    sums[:, 0] = [2] + [1] * 19
    model = sums, np.array([0] + [1] * 19), -np.inf, 1, 2
    scores, winners = soften(model, in_place(1))
    np.testing.assert_allclose(scores, [[2, 1 + np.log(19)]], **SOFT_TOLERANCE)
    assert winners.tolist() == [1]


def test_one_plane_a_group_scores_what_it_scores():
    model = np.random.default_rng(0).normal(size=(20, N_COLUMNS + 1)), np.arange(20), -np.inf, 1, 20
    scores, winners = soften(model, in_place(len(X)))
    np.testing.assert_array_equal(scores, scores_of_planes(model))
    assert winners.tolist() == scores_of_planes(model).argmax(axis=1).tolist()


@pytest.mark.parametrize("n_planes", [MAX_PLANES_BY_LANE, MAX_PLANES_BY_LANE + 1, 40])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1e4, 1e30, np.inf])
def test_soft_scores_of_any_size_are_numbers(n_planes, sign, size):
    """Infinite ones too: a score can be too large for float32."""
    sums = np.zeros((n_planes + 20, N_COLUMNS + 1))
    sums[:n_planes, 0], sums[n_planes:, 0] = sign * size, 1
    model = sums, np.repeat([0, 2], [n_planes, 20]), -np.inf, 1, 3
    with np.errstate(over="ignore"):
        scores, winners = soften(model, in_place(1))
    expected = sign * size + (np.log(n_planes) if size == 1e4 else 0)
    np.testing.assert_allclose(scores[0, [0, 2]], [expected, 1 + np.log(20)], **SOFT_TOLERANCE)
    assert scores[0, 1] < min(1, expected) or scores[0, 1] == expected == -np.inf
    assert winners.tolist() == [0 if sign > 0 else 2]


def test_without_planes_the_first_group_wins():
    model = np.empty((0, N_COLUMNS + 1)), np.empty(0, int), -np.inf, 1, 3
    scores, winners = soften(model, in_place(len(X)))
    assert (scores == scores[0, 0]).all()
    assert np.isfinite(scores).all()
    assert (winners == 0).all()


@given(model=sized_models(), order=orders)
@settings(deadline=None, max_examples=examples(40))
def test_storage_and_company_change_no_soft_score(model, order):
    """To the last bit."""
    whole = soften(model, in_place(len(X)))
    stored = [
        dense_rows(X.astype(np.uint8), 1),
        csr_rows(sp.csr_array(X.astype(np.float32)), 1),
    ]
    for rows in (None, *stored):
        for found, expected in zip(soften(model, order, rows), whole, strict=True):
            np.testing.assert_array_equal(found, expected[order])
