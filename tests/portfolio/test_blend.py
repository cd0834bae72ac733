"""Weights of recipes, calibration, and the error to expect."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss, roc_auc_score

from polyplane.portfolio.blend import (
    STEPS,
    calibration_of,
    log_losses,
    matching_factor,
    weights_of_recipes,
)
from polyplane.portfolio.expected import Expected, cross_fitted, score_of

pytestmark = pytest.mark.compiled


def some_scores(n_recipes=4, n_rows=60, n_classes=3, seed=0):
    """Scores that know something of labels, each recipe with noise of its own."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, n_classes, n_rows)
    scores = generator.normal(size=(n_recipes, n_rows, n_classes))
    scores[:, np.arange(n_rows), labels] += np.linspace(0, 2, n_recipes)[:, None]
    return scores, labels


def selected_one_by_one(scores, labels, row_weights=None):
    """The selection of Caruana et al., as it is written down."""
    chosen, best, least = [], None, np.inf
    for _ in range(STEPS):
        losses = []
        for k in range(len(scores)):
            mean = scores[[*chosen, k]].mean(axis=0)
            of_rows = -log_softmax(mean, axis=1)[np.arange(labels.size), labels]
            losses.append(np.average(np.minimum(of_rows, -np.log(1e-6)), weights=row_weights))
        chosen.append(int(np.argmin(losses)))
        if min(losses) < least - 1e-6:
            least, best = min(losses), list(chosen)
    return np.bincount(best, minlength=len(scores)) / len(best)


def pruned_one_by_one(weights, scores, labels, row_weights=None):
    """Members left out, the least important first, while the loss is 0.2% larger at most."""

    def loss_of(some):
        mean = sum(weight * one for weight, one in zip(some, scores, strict=True)) / sum(some)
        of_rows = -log_softmax(mean, axis=1)[np.arange(labels.size), labels]
        return np.average(np.minimum(of_rows, -np.log(1e-6)), weights=row_weights)

    left, limit = list(weights), 1.002 * loss_of(weights)
    while sum(weight > 0 for weight in left) > 1:
        without = [
            [0 if j == k else weight for j, weight in enumerate(left)]
            for k in range(len(left))
            if left[k] > 0
        ]
        best = min(without, key=loss_of)
        if loss_of(best) > limit:
            break
        left = best
    return np.array(left) / sum(left)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_weights_are_those_of_the_selection_written_down(n_classes, is_weighted):
    n_pruned = 0
    for seed in range(20):
        scores, labels = some_scores(n_classes=n_classes, seed=seed)
        generator = np.random.default_rng(seed)
        alike = scores + 0.1 * generator.normal(size=scores.shape)
        scores = np.concatenate([scores, alike])
        weights = generator.uniform(0, 3, labels.size) if is_weighted else None
        found = weights_of_recipes(scores, labels, weights)
        selected = selected_one_by_one(scores, labels, weights)
        n_pruned += np.count_nonzero(found) < np.count_nonzero(selected)
        np.testing.assert_allclose(found, pruned_one_by_one(selected, scores, labels, weights))
        assert found.sum() == pytest.approx(1)
    assert n_pruned > 0


def test_losses_are_those_of_scikit_learn():
    scores, labels = some_scores()
    for one in scores:
        expected = log_loss(labels, softmax(one, axis=1), labels=[0, 1, 2])
        assert log_losses(one, labels).mean() == pytest.approx(expected)


def test_calibration_finds_the_factor_with_which_scores_were_spoilt():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(20_000, 3))
    labels = (scores + generator.gumbel(size=scores.shape)).argmax(axis=1)
    for factor in (0.3, 1.0, 4.0):
        assert calibration_of(scores * factor, labels) == pytest.approx(1 / factor, rel=0.05)


def test_few_rows_that_are_all_right_are_not_certain():
    scores = np.eye(2)[np.tile([0, 1], 10)]
    labels = np.tile([0, 1], 10)
    p = softmax(calibration_of(scores, labels) * scores, axis=1)[:, 0].max()
    assert 0.9 < p < 0.99


def test_matching_makes_scores_as_sure_as_others():
    scores, _ = some_scores(n_recipes=1, n_rows=500)
    assert matching_factor(3 * scores[0], scores[0]) == pytest.approx(1 / 3, rel=1e-2)
    assert matching_factor(scores[0] + 5, scores[0]) == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_score_is_what_scikit_learn_says(n_classes):
    scores, labels = some_scores(n_rows=400, n_classes=n_classes)
    found = score_of(scores[2], labels)
    shares = softmax(scores[2], axis=1)
    assert found.error == np.mean(scores[2].argmax(axis=1) != labels)
    assert found.log_loss == pytest.approx(log_loss(labels, shares))
    if n_classes == 2:
        assert found.auc == pytest.approx(roc_auc_score(labels, shares[:, 1]))
    assert found.error_se == pytest.approx(np.sqrt(found.error * (1 - found.error) / 400))
    low, high = found.interval("error")
    assert low < found.error < high


def test_rows_of_weight_two_count_as_two():
    scores, labels = some_scores(n_rows=50)
    weights = np.random.default_rng(0).integers(1, 4, 50)
    once = score_of(scores[0], labels, weights.astype(float))
    often = score_of(np.repeat(scores[0], weights, axis=0), np.repeat(labels, weights))
    assert once.error == pytest.approx(often.error)
    assert once.log_loss == pytest.approx(often.log_loss)


def test_many_recipes_that_know_nothing_are_expected_to_err_like_chance():
    """The best of 40 looks much better than chance on the rows that chose it."""
    errors, losses = [], []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        labels = generator.integers(0, 2, 100)
        scores = generator.normal(size=(40, 100, 2))
        found = cross_fitted(scores, labels, None, None, seed, 100)
        errors.append(found.error)
        losses.append(found.log_loss)
    assert np.mean(errors) > 0.45
    assert np.mean(losses) > np.log(2) - 0.01


def test_few_rows_to_try_widen_the_standard_errors_of_an_expectation():
    """With a quarter as many judged rows as tried ones, the variance is larger by a quarter."""
    scores, labels = some_scores()
    n_rows = labels.size
    few, many = (cross_fitted(scores, labels, None, 0, 0, n) for n in (4 * n_rows, 10**9))
    assert few.error == many.error
    for one, other in ((few.model, many.model), (few.linear, many.linear)):
        assert one.error_se == pytest.approx(1.25**0.5 * other.error_se)
        assert one.log_loss_se == pytest.approx(1.25**0.5 * other.log_loss_se)


def test_an_expectation_survives_plain_values():
    scores, labels = some_scores()
    found = cross_fitted(scores, labels, None, 0, 0, 400)
    assert Expected.from_dict(found.to_dict()) == found
    assert f"{found.error:.1%}" in str(found)
    assert f"{found.linear.error:.1%}" in str(found)
