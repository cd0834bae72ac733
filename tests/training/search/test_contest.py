"""Who is clearly behind, and who goes on."""

import numpy as np
import pytest

from polyplane.hyperplane.amm import AMMClassifier
from polyplane.training.search import best_value, contest
from polyplane.training.search.contest import (
    Contender,
    Rules,
    best_as_fitted,
    clearly_behind,
    later_half,
    looks_of,
    winner,
)
from polyplane.training.search.trials import NO_PART
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


def test_values_that_have_reached_the_same_are_looked_at_once(monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 5 * (2 * y - 1)  # so far apart that small alphas are alike
    monkeypatch.setattr(best_value, "MANY_ROWS", 10)
    with looks_at_held_out_rows() as seen:
        model = AMMClassifier(alpha="auto", max_iter=2, random_state=0).fit(X, y)
    alphas = {look.settings.alpha for look in seen}
    assert 1e-7 not in alphas
    assert model.alpha_ in alphas


# ---- contests of made-up trials ------------------------------------------------------------


class MadeUp:
    """A trial that knows which rows it gets wrong after each pass, and whom it equals."""

    def __init__(self, is_wrong, left_out=1, planes=None):
        self.is_wrong, self.left_out, self.planes, self.n_passes = is_wrong, left_out, planes, 0


@pytest.fixture
def made_up(monkeypatch):
    """Contests of such trials; a list that fills with the trials of each pass."""
    passes = []

    def pass_side_by_side(trials, *rest):
        passes.append(list(trials))
        for trial in trials:
            trial.n_passes += 1

    monkeypatch.setattr(contest, "pass_side_by_side", pass_side_by_side)
    monkeypatch.setattr(
        contest, "wrong_rows", lambda trial, data, rows: trial.is_wrong(trial.n_passes)[rows]
    )
    monkeypatch.setattr(contest, "take_hinge_steps", lambda trials: True)
    monkeypatch.setattr(contest, "count_passes", lambda trials: 4)
    monkeypatch.setattr(
        Contender,
        "equals",
        lambda one, other: (
            one.trials[0].planes(one.trials[0].n_passes)
            == other.trials[0].planes(other.trials[0].n_passes)
        ),
    )
    return passes


def rules_of(judged_by, more_rows=()):
    return Rules(None, None, judged_by, np.array(more_rows, np.int64), 1, None)


def test_equals_go_on_together_until_they_part(made_up):
    """Number 1 equals number 0 until the third pass, after which it is better."""
    wrong = wrong_rows(0.3, 0.1, 0.5, n_rows=100)
    trials = [
        MadeUp(lambda n: wrong[0], planes=lambda n: 0),
        MadeUp(lambda n: wrong[1] if n > 2 else wrong[0], planes=lambda n: 0 if n < 3 else 1),
        MadeUp(lambda n: wrong[2], planes=lambda n: 2),
    ]
    contenders = [Contender([trial]) for trial in trials]
    assert winner(contenders, {1: 2, 2: 1, 4: 1}, rules_of({1: np.arange(100)})) == 1
    assert [len(trials) for trials in made_up] == [3, 3, 2, 2]


def test_what_is_close_in_the_end_is_judged_by_more_rows(made_up):
    """Of the first hundred rows one is a little better, of all of them the other."""
    generator = np.random.default_rng(0)
    first = np.concatenate([np.arange(100) < 10, generator.random(900) < 0.3])
    second = np.concatenate([np.arange(100) < 12, generator.random(900) < 0.1])
    for more_rows, best in (((), 0), (range(100, 1000), 1)):
        contenders = [
            Contender([MadeUp(lambda n, w=w: w, planes=lambda n, k=k: k)])
            for k, w in enumerate((first, second))
        ]
        assert winner(contenders, {1: 1}, rules_of({1: np.arange(100)}, more_rows)) == best


def test_the_model_that_a_fit_would_leave_is_judged(made_up):
    """The first value is better by its parts, but its model of all rows has bad luck.

    The second learns rows by heart: what it gets wrong of them says nothing. The last has no hope,
    and is tried with the first part alone.
    """
    n, parts = 900, np.arange(900) % 3
    judged_by = {k: np.flatnonzero(parts == k) for k in range(3)}
    of_value = {0: (0.2, 0.2, 0.4), 1: (0.35, 0.0, 0.0), 2: (0.25, 0.24, 0.24), 3: (0.9, 0.8, 0.8)}
    draws = np.random.default_rng(0).random(n)

    def new(k, left_out):
        left, kept, whole = of_value[k]
        shares = (
            np.full(n, whole) if left_out == NO_PART else np.where(parts == left_out, left, kept)
        )
        trial = MadeUp(lambda n: draws < shares, left_out)
        trial.value = k
        return trial

    assert best_as_fitted(4, new, rules_of(judged_by)) == 2
    tried = [[trial.value for trial in trials] for trials in made_up[::4]]
    assert tried[0] == tried[1] == [0, 1, 2, 3]
    assert all(3 not in values and 2 in values for values in tried[2:])
    assert {trial.left_out for trials in made_up for trial in trials} == {NO_PART, 0, 1, 2}
