"""Primitives of tiles against NumPy, lane by lane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.jit import jit, jit_is_disabled
from polyplane.engine.tiles import LANES, by_owner, exponential, load, span, store

pytestmark = pytest.mark.loops

# Units in the last place by which an exponential may be off; NumPy's own of float32 is worse.
MOST_UNITS = 3 if jit_is_disabled() else 2
LEAST, MOST = np.float32(-87), np.float32(88)


@jit
def raise_all(numbers, out):
    """`out` = e to the power of `numbers`, a whole number of tiles."""
    source, target = span(numbers), span(out)
    for o in range(0, numbers.size, LANES):
        store(target, o, exponential(load(source, o)))


@jit
def choose_all(first, second, owner, label, out):
    """`out` = `first` in the lanes of `label`, `second` elsewhere."""
    one, other, owners, target = span(first), span(second), span(owner), span(out)
    for o in range(0, out.size, LANES):
        store(target, o, by_owner(load(one, o), load(other, o), owners, o, np.int32(label)))


def exponentials(numbers):
    """Of any number of numbers; lanes left over hold zero."""
    padded = np.zeros(-(-len(numbers) // LANES) * LANES, np.float32)
    padded[: len(numbers)] = numbers
    out = np.full_like(padded, np.nan)
    raise_all(padded, out)
    return out[: len(numbers)]


def units_off(numbers):
    """By how many units in the last place exponentials differ from those in float64."""
    exact = np.exp(np.asarray(numbers, np.float32).astype(np.float64))
    return np.abs(exponentials(numbers) - exact) / np.spacing(exact.astype(np.float32))


def test_exponentials_are_off_by_few_units_in_the_last_place():
    """An even grid, and numbers on both sides of every odd half of log 2, where n changes."""
    halves = (np.arange(-125, 127) + 0.5) * np.log(2)
    near = (halves[:, None] + np.linspace(-1e-4, 1e-4, 21)).ravel()
    tiny = np.concatenate([sign * np.logspace(-30, 0, 200) for sign in (1, -1)])
    for numbers in (np.linspace(LEAST, MOST, 200_001), near, tiny, [LEAST, MOST]):
        assert units_off(numbers).max() <= MOST_UNITS


@given(numbers=st.lists(st.floats(float(LEAST), float(MOST), width=32), min_size=1, max_size=40))
@settings(deadline=None)
def test_an_exponential_does_not_depend_on_its_lane(numbers):
    found = exponentials(numbers)
    assert units_off(numbers).max() <= MOST_UNITS
    np.testing.assert_array_equal(found, exponentials(numbers[::-1])[::-1])


def test_the_exponential_of_zero_is_one():
    assert exponentials([0.0, -0.0]).tolist() == [1, 1]


def test_exponentials_of_numbers_up_to_zero_are_one_at_most():
    """Sums of n of them are then n at most, on which a short cut of `scoring` relies."""
    assert exponentials(-np.logspace(-12, 1.9, 10_000)).max() <= 1


def test_exponentials_below_the_least_are_zero():
    numbers = [np.nextafter(LEAST, np.float32(-np.inf)), -88, -104, -1e4, -3e38, -np.inf]
    assert exponentials(numbers).tolist() == [0] * len(numbers)


def test_exponentials_above_the_most_are_that_of_the_most():
    numbers = [np.nextafter(MOST, np.float32(np.inf)), 89, 1e4, 3e38, np.inf]
    assert exponentials(numbers).tolist() == exponentials([MOST]).tolist() * len(numbers)


@pytest.mark.parametrize("label", [-1, 0, 1, 7])
def test_lanes_are_chosen_by_their_owner(label):
    owner = np.random.default_rng(0).choice([-1, 0, 1, 7], 3 * LANES).astype(np.int32)
    first, second = np.arange(3 * LANES, dtype=np.float32), np.full(3 * LANES, -np.inf, np.float32)
    out = np.full(3 * LANES, np.nan, np.float32)
    choose_all(first, second, owner, label, out)
    np.testing.assert_array_equal(out, np.where(owner == label, first, second))
