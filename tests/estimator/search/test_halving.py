"""Successive halving finds the best candidate, and the factor that makes scores log-odds."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from polyplane.estimator.search.halving import Judgement, calibrated, final_judgements


def silent(n_rows, n_planes, error):
    pass


class Judge:
    """Knows the loss of each candidate on each rung, and remembers who was judged."""

    def __init__(self, loss, pause=0.0):
        self.loss, self.pause, self.judged, self.lock = loss, pause, [], threading.Lock()

    def __call__(self, candidate, rung, report):
        time.sleep(self.pause * (candidate % 3))  # later ones are ready before earlier ones
        report(1, candidate, 0.0)
        with self.lock:
            self.judged.append((rung, candidate))
        return Judgement(self.loss(candidate, rung), 100.0 * rung + candidate)

    def on(self, rung):
        """Who was judged on it."""
        return sorted(candidate for at, candidate in self.judged if at == rung)


# ---- candidates ------------------------------------------------------------------------------


def losses_of(found):
    return [None if one is None else one.loss for one in found]


def test_the_dearest_begin_first_and_places_stay():
    judge = Judge(lambda candidate, rung: candidate)
    found = final_judgements(judge, range(5), (1,), 1, silent, price=lambda one: one % 3)
    assert [candidate for _, candidate in judge.judged] == [2, 1, 4, 0, 3]
    assert losses_of(found) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10, 27, 28])
@pytest.mark.parametrize("rungs", [(4,), (4, 8), (1, 3, 9, 27)])
def test_each_rung_has_the_best_third_of_the_one_before_and_the_first(n, rungs):
    def loss(candidate, rung):
        return (candidate - 5.2) ** 2

    judge = Judge(loss)
    found = final_judgements(judge, range(n), rungs, 1, silent)
    others = sorted(range(1, n), key=lambda candidate: loss(candidate, 0))
    for rung in rungs:
        assert judge.on(rung) == sorted([0, *others])
        others = others if rung == rungs[-1] else others[: -(-len(others) // 3)]
    for candidate in range(n):
        went_on = candidate == 0 or candidate in others
        expected = Judgement(loss(candidate, 0), 100.0 * rungs[-1] + candidate)
        assert found[candidate] == (expected if went_on else None)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=12))
def test_of_equals_earlier_ones_go_on(losses):
    judge = Judge(lambda candidate, rung: losses[candidate])
    final_judgements(judge, range(len(losses)), (1, 2), 1, silent)
    by_loss = sorted(range(1, len(losses)), key=lambda candidate: losses[candidate])
    assert judge.on(2) == sorted([0, *by_loss[: -(-len(by_loss) // 3)]])


def test_a_loss_that_is_no_number_is_the_worst():
    judge = Judge(lambda candidate, rung: np.nan if candidate in (1, 2) else candidate)
    found = final_judgements(judge, range(5), (1, 2), 1, silent)
    assert losses_of(found) == [0, None, None, 3, 4]


@pytest.mark.parametrize("n_threads", [2, 5, 40])
def test_threads_change_nothing(n_threads):
    def loss(candidate, rung):
        return (candidate * 7 % 10) // 2  # pairs of equals

    alone, together = Judge(loss), Judge(loss, pause=0.002)
    expected = final_judgements(alone, range(10), (1, 2, 3), 1, silent)
    assert final_judgements(together, range(10), (1, 2, 3), n_threads, silent) == expected
    assert sorted(together.judged) == sorted(alone.judged)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_report_is_handed_on(n_threads):
    told = []
    judge = Judge(lambda candidate, rung: candidate)
    final_judgements(judge, range(7), (1, 2), n_threads, lambda *report: told.append(report))
    assert sorted(told) == sorted((1, candidate, 0.0) for _, candidate in judge.judged)
    assert len(told) == 10


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_of_one_candidate_is_raised(n_threads):
    def judge(candidate, rung, report):
        if candidate == 4:
            raise ArithmeticError("the fifth")
        return Judgement(0.0, 1.0)

    with pytest.raises(ArithmeticError, match="the fifth"):
        final_judgements(judge, range(6), (1,), n_threads, silent)


# ---- calibration -----------------------------------------------------------------------------


def mean_loss(factor, scores, labels):
    """Cross-entropy of the labels."""
    return -log_softmax(factor * scores, axis=1)[np.arange(len(labels)), labels].mean()


def loss_with_doubt(factor, scores, labels):
    """The same with one row more, which has the median lead and is wrong."""
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    doubt = np.median(np.abs(others.max(axis=1) - own))
    total = len(labels) * mean_loss(factor, scores, labels) + np.log1p(np.exp(factor * doubt))
    return total / (len(labels) + 1)


def sampled(seed, n, n_classes, size=1.5):
    """Log-odds, and labels drawn from the probabilities that they stand for."""
    generator = np.random.default_rng(seed)
    log_odds = size * generator.normal(size=(n, n_classes))
    noise = generator.gumbel(size=log_odds.shape)
    return log_odds, (log_odds + noise).argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("wrong_by", [0.1, 1.0, 12.0])
def test_the_factor_has_the_least_loss(n_classes, wrong_by):
    log_odds, labels = sampled(1, 200, n_classes)
    scores = wrong_by * log_odds
    found = calibrated(scores, labels)
    assert found.loss == pytest.approx(mean_loss(found.calibration, scores, labels), abs=1e-12)
    grid = found.calibration * np.exp(np.linspace(-2, 2, 401))
    losses = [loss_with_doubt(factor, scores, labels) for factor in grid]
    least = loss_with_doubt(found.calibration, scores, labels)
    assert least <= min(losses) + 1e-9
    assert abs(np.log(found.calibration / grid[np.argmin(losses)])) < 0.01


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n", [20, 200])
def test_rows_that_are_all_right_do_not_make_scores_certain(n_classes, n):
    """The chance of an error is about one in the rows that were looked at."""
    labels = np.arange(n) % n_classes
    scores = 3.0 * np.eye(n_classes)[labels]
    factor = calibrated(scores, labels).calibration
    right = np.exp(log_softmax(factor * scores, axis=1))[0, labels[0]]
    assert 0.3 / n < 1 - right < 3 / n


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_log_odds_need_no_factor(n_classes, seed):
    """Within four standard errors: the Fisher information of the factor, added up over rows."""
    log_odds, labels = sampled(seed, 5_000, n_classes)
    p = np.exp(log_softmax(log_odds, axis=1))
    information = ((p * log_odds**2).sum(axis=1) - (p * log_odds).sum(axis=1) ** 2).sum()
    error = information**-0.5
    assert error < 0.04
    assert calibrated(log_odds, labels).calibration == pytest.approx(1, abs=4 * error)
    assert calibrated(log_odds / 8, labels).calibration == pytest.approx(8, abs=8 * 4 * error)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_of_weight_3_counts_as_three(n_classes):
    log_odds, labels = sampled(3, 2_000, n_classes)
    weights = np.where(labels == 0, 3, 1)
    found = calibrated(log_odds, labels, weights)
    copied = np.arange(labels.size).repeat(weights)
    assert found[:2] == pytest.approx(calibrated(log_odds[copied], labels[copied])[:2], rel=3e-3)
    assert found[:2] != pytest.approx(calibrated(log_odds, labels)[:2], rel=3e-3)
    assert found.losses.mean() == pytest.approx(found.loss)


def test_rows_and_classes_may_come_in_any_order():
    log_odds, labels = sampled(2, 300, 4)
    expected = calibrated(log_odds, labels)
    generator = np.random.default_rng(0)
    rows, columns = generator.permutation(300), generator.permutation(4)
    places = np.argsort(columns)
    found = calibrated(log_odds[rows][:, columns], places[labels[rows]])
    assert found[:2] == pytest.approx(expected[:2], rel=1e-4)
    assert found[:2] != pytest.approx(calibrated(log_odds[rows], labels)[:2], rel=1e-4)


def test_an_offset_of_all_scores_of_a_row_changes_nothing():
    log_odds, labels = sampled(3, 300, 3)
    offsets = 10.0 ** np.linspace(-3, 5, 300)[:, None]
    found = calibrated(log_odds + offsets, labels)
    assert found[:2] == pytest.approx(calibrated(log_odds, labels)[:2], rel=1e-4)


def test_scores_that_are_all_wrong_want_the_least_factor():
    scores = np.eye(3)[np.arange(30) % 3]
    assert calibrated(scores, (np.arange(30) + 1) % 3).calibration == pytest.approx(
        np.exp(-4), rel=1e-3
    )


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_extreme_scores_stay_finite(size):
    log_odds, labels = sampled(4, 50, 3)
    found = calibrated((size * log_odds).astype(np.float32), labels)
    assert np.isfinite(found[:2]).all()
    assert found.losses.mean() == pytest.approx(found.loss, rel=1e-9)


def test_a_change_must_win_a_share_and_more_than_luck():
    generator = np.random.default_rng(0)
    base = Judgement(1.0, 1.0, generator.exponential(size=400))

    def better_by(gain, noise):
        losses = base.losses - gain + noise * generator.standard_normal(400)
        return Judgement(1 - gain, 1.0, losses)

    assert better_by(0.05, 0.1).clearly_beats(base, 0.98)
    assert not better_by(0.01, 0.0).clearly_beats(base, 0.98)
    assert not better_by(0.05, 3.0).clearly_beats(base, 0.98)
