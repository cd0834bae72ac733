"""Steps on squared hinges equal those of the plain transcription, whatever the storage and cut."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.planes.planes import MISTAKES, with_planes, zero_planes
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.engine.steps.softmax import SoftmaxRule, planes_scale
from polyplane.engine.steps.squared_hinge import squared_hinge_epoch
from polyplane.engine.targets import Targets
from tests.exact import random_problem, storages
from tests.examples import examples
from tests.reference import polyplane as reference

pytestmark = pytest.mark.loops

N_STEPS = 160
SCHEDULES = {
    "plain": {"n_steps": N_STEPS},
    "shrinking": {"n_steps": N_STEPS, "alpha": 3.0},
    "shrinking by 1024": {"n_steps": N_STEPS, "alpha": 20.0},
    "stream": {"alpha": 1.0},
}
every_schedule = pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())


def rule_of(step=0.01, alpha=0.0, start=0, n_steps=0):
    return SoftmaxRule(step, alpha, start, n_steps, 1.0, np.inf, 0.0)


def trained(X, y, n_classes, rule, cuts, weights=()):
    """Planes by feature after some calls of the loop, and the mistakes."""
    rows = csr_rows(X, 1.0) if sp.issparse(X) else dense_rows(X, 1.0)
    targets = Targets(
        y.astype(np.int32), np.arange(n_classes, dtype=np.int32), np.array(weights, np.float32)
    )
    start = np.zeros((n_classes, X.shape[1] + 1), np.float32)
    planes = with_planes(
        zero_planes(X.shape[1], False), np.arange(n_classes, dtype=np.int32), start
    )
    t = 0
    for order in cuts:
        t = squared_hinge_epoch(rows, targets, np.asarray(order, np.int32), planes, rule, t)
    found = planes.sums[: X.shape[1] + 1, :n_classes] * planes_scale(rule, t)
    return found.T, int(planes.counts[MISTAKES])


@every_schedule
@pytest.mark.parametrize("n_classes", [2, 5, 17])
def test_equals_the_transcription(options, n_classes):
    X, y = random_problem(3, n_classes=n_classes)
    order = np.random.default_rng(0).integers(0, len(y), 150)
    rule = rule_of(**options)
    weights = np.random.default_rng(1).uniform(0.2, 2, len(y))
    found, mistakes = trained(X.astype(np.float32), y, n_classes, rule, [order], weights)
    expected, expected_mistakes = reference.squared_hinge(
        X, y, n_classes, order, rule.step, rule.alpha, rule.n_steps, weights
    )
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    assert mistakes == expected_mistakes


@given(seed=st.integers(0, 99), n_cuts=st.integers(1, 5))
@settings(deadline=None, max_examples=examples(10))
def test_storage_and_cuts_change_nothing(seed, n_cuts):
    X, y = random_problem(seed)
    order = np.random.default_rng(seed).integers(0, len(y), 90)
    rule = rule_of(alpha=1.0, n_steps=N_STEPS)
    first = None
    for rows in storages(X).values():
        found, _ = trained(rows, y, 3, rule, np.array_split(order, n_cuts))
        first = found if first is None else first
        np.testing.assert_array_equal(found, first)


def test_a_step_follows_the_gradient():
    generator = np.random.default_rng(0)
    W, x = generator.standard_normal((4, 6)), generator.standard_normal(6)

    def loss(W):
        signs = np.where(np.arange(4) == 2, 1, -1)
        return (np.maximum(0, 1 - signs * (W @ x)) ** 2).sum() / 2

    tiny = 1e-6
    for k in range(4):
        for j in range(6):
            moved = W.copy()
            moved[k, j] += tiny
            slope = (loss(moved) - loss(W)) / tiny
            np.testing.assert_allclose(-reference.squared_hinge_direction(W, x, 2)[k, j], slope,
                                       atol=1e-4)  # fmt: skip
