"""Theorems 2 and 3 as functions: hand-worked values, and the directions the paper argues from."""

import math

import pytest

from polyplane.report.bounds import generalization_bound, pruning_gap


def test_theorem_2_by_hand():
    """Planes 1 and 2 with their zero planes: b = (2, 3), B = 5 + 1 + 9 - 3 - 2, K = 6."""
    n, delta = 100, 0.1
    inner = 0.5 * 10 * math.log(400 * math.e) * math.log(400) + math.log(2 * 200**6 / delta)
    assert generalization_bound(n, 0.5, [1, 2], delta) == pytest.approx(130 / n * inner)


def test_theorem_3_by_hand():
    first = 18 * (math.log(1_000) + 1) / (0.01 * 1_000)
    assert pruning_gap(1_000, 0.01, 50, 10) == pytest.approx(first + 2 * 14 * 10 / (50 * 0.01))


def test_without_pruning_theorem_3_is_theorem_1():
    assert pruning_gap(500, 0.1, 10, 0) == pytest.approx(8 * (math.log(500) + 1) / 50)


def test_more_planes_larger_norms_and_fewer_rows_loosen_the_bound():
    bound = generalization_bound(1_000, 1.0, [2, 2])
    assert generalization_bound(1_000, 1.0, [2, 3]) > bound
    assert generalization_bound(1_000, 2.0, [2, 2]) > bound
    assert generalization_bound(500, 1.0, [2, 2]) > bound


def test_harder_pruning_widens_the_gap():
    gap = pruning_gap(1_000, 0.01, 100, 1)
    assert pruning_gap(1_000, 0.01, 100, 2) > gap
    assert pruning_gap(1_000, 0.01, 50, 1) > gap
    assert pruning_gap(2_000, 0.01, 100, 1) < gap


def test_senseless_values_are_refused_with_what_is_needed():
    with pytest.raises(ValueError, match="two classes or more"):
        generalization_bound(10, 1.0, [3])
    with pytest.raises(ValueError, match="alpha > 0"):
        pruning_gap(10, 0.0)
