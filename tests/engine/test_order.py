"""Orders: permutations, any of them, reproducible; coins: one for each step, whatever the cuts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import BLOCK, _swap_by, coins_at, in_place, shuffle

pytestmark = pytest.mark.loops


@given(n_rows=st.integers(0, 300), seed=st.integers(0, 2**32))
@settings(deadline=None)
def test_a_shuffled_order_is_a_permutation_and_reproducible(n_rows, seed):
    order, again = in_place(n_rows), in_place(n_rows)
    shuffle(order, np.random.default_rng(seed))
    shuffle(again, np.random.default_rng(seed))
    assert sorted(order) == list(range(n_rows))
    np.testing.assert_array_equal(order, again)


@pytest.mark.parametrize("draw", [0, 1, 2**31, 2**32 - 1])
def test_extreme_draws_stay_inside(draw):
    order = in_place(100)
    _swap_by(np.full(100, draw, np.uint32), order)
    assert sorted(order) == list(range(100))


def test_the_swaps_are_those_of_fisher_and_yates():
    draws = np.random.default_rng(0).integers(0, 2**32, 50, np.uint32)
    order, expected = in_place(50), list(range(50))
    _swap_by(draws, order)
    for k in range(49, 0, -1):
        j = int(draws[k]) * (k + 1) // 2**32
        expected[k], expected[j] = expected[j], expected[k]
    assert order.tolist() == expected


def test_every_order_of_three_rows_occurs():
    generator, met = np.random.default_rng(0), set()
    for _ in range(200):
        order = in_place(3)
        shuffle(order, generator)
        met.add(tuple(order.tolist()))
    assert met == set(itertools.permutations(range(3)))


def test_shuffling_goes_on_from_the_order_at_hand():
    order = np.array([5, 9, 2], np.int32)
    shuffle(order, np.random.default_rng(0))
    assert sorted(order) == [2, 5, 9]


def test_rows_in_place_are_counted_in_int32():
    assert in_place(4).tolist() == [0, 1, 2, 3]
    assert in_place(4).dtype == np.int32


@given(
    seed=st.integers(0, 2**32),
    start=st.integers(0, 3 * BLOCK),
    cuts=st.lists(st.integers(0, 2 * BLOCK), max_size=5),
)
@settings(deadline=None)
def test_the_coin_of_a_step_depends_on_no_cut(seed, start, cuts):
    whole = coins_at(seed, start, 2 * BLOCK)
    bounds = [0, *sorted(cuts), 2 * BLOCK]
    parts = [coins_at(seed, start + a, b - a) for a, b in itertools.pairwise(bounds)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_coins_are_uniform_and_differ_by_seed_and_step():
    coins = coins_at(0, 0, 10 * BLOCK)
    assert coins.dtype == np.float32
    assert coins.min() >= 0
    assert coins.max() < 1
    counts = np.histogram(coins, 64, (0, 1))[0]
    assert np.abs(counts - 640).max() < 6 * np.sqrt(640)
    assert np.unique(coins.reshape(10, BLOCK)[:, :8]).size == 80
    assert np.count_nonzero(coins == coins_at(1, 0, 10 * BLOCK)) < 10
    generator = np.random.default_rng(0)  # what else is drawn with the seed
    assert np.count_nonzero(coins[:BLOCK] == generator.random(BLOCK, np.float32)) < 10
