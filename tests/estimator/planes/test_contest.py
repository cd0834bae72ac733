"""Who is clearly behind, and who goes on."""

import numpy as np
import pytest

from polyplane.estimator.planes.contest import clearly_behind, later_half, looks_of
from polyplane.hyperplane.amm import AMMClassifier
from tests.searches import looks_at_held_out_rows


def wrong_rows(*shares, n_rows=1_000):
    return np.arange(n_rows) < n_rows * np.array(shares)[:, None]


@pytest.mark.parametrize("has_many_rows", [False, True])
@pytest.mark.parametrize("n_passes", [1, 2, 3, 5, 10, 100])
def test_one_value_is_left_before_the_last_pass_is_over(n_passes, has_many_rows):
    looks = looks_of(n_passes, has_many_rows)
    assert list(looks) == sorted(looks)
    assert 1 <= min(looks) <= max(looks) <= n_passes
    assert list(looks.values()) == sorted(looks.values(), reverse=True)
    assert looks[max(looks)] == 1


def test_recent_looks_are_the_later_half():
    assert [list(later_half(np.arange(n))) for n in (1, 2, 3, 4)] == [[0], [1], [1, 2], [2, 3]]


def test_a_value_is_behind_if_neither_rows_nor_luck_explain_it():
    is_wrong = wrong_rows(0.1, 0.2)
    steady = np.array([[[0.1, 0.1, 0.1]], [[0.2, 0.21, 0.19]]])
    assert clearly_behind(is_wrong, steady).tolist() == [False, True]
    lucky = np.array([[[0.1, 0.1, 0.1]], [[0.4, 0.1, 0.1]]])
    assert clearly_behind(is_wrong, lucky).tolist() == [False, False]
    few = wrong_rows(0.1, 0.2, n_rows=10)
    assert clearly_behind(few, steady).tolist() == [False, False]


def test_of_one_error_nobody_knows_how_much_was_luck():
    assert not clearly_behind(wrong_rows(0.1, 0.9), np.array([[[0.1]], [[0.9]]])).any()


def test_an_early_lead_is_forgotten():
    errors = np.array([[[0.1], [0.3], [0.3], [0.3]], [[0.2], [0.1], [0.1], [0.1]]])
    assert clearly_behind(wrong_rows(0.3, 0.1), errors).tolist() == [True, False]


def test_values_that_have_reached_the_same_are_looked_at_once():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 5 * (2 * y - 1)  # so far apart that small alphas are of one mind
    with looks_at_held_out_rows(AMMClassifier) as seen:
        model = AMMClassifier(alpha="auto", max_iter=2, random_state=0).fit(X, y)
    alphas = {look.machine.alpha for look in seen}
    assert 1e-7 not in alphas
    assert model.alpha_ in alphas
