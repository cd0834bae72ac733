"""Steps on sums of several soft maxima: the loop, the gradient it follows, and one unit as before.

The loop works in float32 and keeps W as c V, the reference works in float64 on W itself.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.planes.planes import MISTAKES, with_planes, zero_planes
from polyplane.engine.rows.storage import dense_rows
from polyplane.engine.steps.soft_units import unit_epoch, unit_room
from polyplane.engine.steps.softmax import planes_scale
from polyplane.engine.targets import Targets
from tests.engine.steps.test_softmax import (
    LARGE,
    N_STEPS,
    NO_CHOICE,
    STEP,
    Problem,
    assert_close,
    assert_same_planes,
    at_present,
    every_schedule,
    rule_of,
)
from tests.reference import polyplane as reference

pytestmark = pytest.mark.loops

SHAPES = [(2, 1, 1, 3), (3, 2, 2, 5, 1, 1)]  # planes of each unit, two units a class
every_shape = pytest.mark.parametrize(
    "shape", [*SHAPES, pytest.param((16, 20, 9, 40), marks=LARGE)], ids=str
)


class Units(Problem):
    """Rows of few classes, and planes ordered by unit."""

    def __init__(self, shape, n_units=2, **options):
        super().__init__(shape, **options)
        self.n_units, self.n_groups = n_units, len(shape)
        self.owner = np.repeat(np.arange(len(shape)), shape)
        self.y = self.y % (len(shape) // n_units)

    def training(self, rule, **changes):
        return Training(self, rule, **changes)

    def reference(self, options, n=N_STEPS):
        weights = self.weights if len(self.weights) else None
        given = self.start, self.owner, self.features, self.y, self.order[:n]
        options = options | {"n_units": self.n_units}
        return reference.train(*given, step=STEP, weights=weights, **options)[1]


class Training:
    """What the loop needs."""

    def __init__(self, problem, rule, rows=None, keeps_average=False):
        self.problem, self.rule, self.t = problem, rule, rule.start
        self.resting = NO_CHOICE
        self.rows = dense_rows(problem.X, 1.0) if rows is None else rows
        codes = np.arange(problem.n_groups // problem.n_units, dtype=np.int32)
        weights = np.array(problem.weights, np.float32)
        self.targets = Targets(problem.y.astype(np.int32), codes, weights)
        width = problem.start.shape[1] - 1
        empty = zero_planes(width, keeps_average)
        self.planes = with_planes(empty, problem.owner, problem.start)

    def visit(self, order):
        n_units = self.problem.n_units
        room = unit_room(self.planes, n_units, self.problem.n_groups // n_units)
        given = self.rows, self.targets, np.asarray(order, np.int32), self.planes, room
        self.t = unit_epoch(*given, self.rule, self.resting, self.t)
        return self

    @property
    def sharp_planes(self):
        n = len(self.problem.owner)
        sums = self.planes.sums[:, :n].T.astype(np.float64)
        return planes_scale(self.rule, self.t) * sums


@every_schedule
@every_shape
def test_every_step_is_that_of_the_reference(shape, options):
    problem = Units(shape, is_weighted=sum(shape) % 2 == 1)
    training = problem.training(rule_of(**options))
    for i, W in zip(problem.order, problem.reference(options), strict=True):
        training.visit([i])
        assert_close(training.sharp_planes, at_present(W, training.rule, training.t))


@every_schedule
@pytest.mark.parametrize("shape", [(3, 4, 2), pytest.param((16, 40), marks=LARGE)], ids=str)
def test_one_unit_a_class_is_one_soft_maximum(shape, options):
    units, plain = Units(shape, n_units=1), Problem(shape)
    plain.owner = units.owner
    training = units.training(rule_of(**options)).visit(units.order)
    expected = plain.training(rule_of(**options)).visit(units.order)
    assert_close(training.sharp_planes, expected.sharp_planes)
    shares = expected.planes.largest_shares
    np.testing.assert_allclose(training.planes.largest_shares, shares, rtol=1e-5, atol=1e-6)
    assert training.planes.counts[MISTAKES] == expected.planes.counts[MISTAKES]


@pytest.mark.parametrize("n_units", [1, 2, 3])
def test_a_step_follows_the_gradient(n_units):
    """Of the loss, by differences in float64."""
    problem = Units((3,) * 6, n_units=n_units)
    W, x, label = problem.start.astype(np.float64), problem.features[0], problem.y[0]
    found = reference.direction(W, problem.owner, x, label, 1.0, 0.0, n_units)
    for place in np.ndindex(W.shape):
        change = np.zeros_like(W)
        change[place] = 1e-6
        up, down = (
            reference.loss(W + sign * change, problem.owner, x, label, n_units=n_units)
            for sign in (1, -1)
        )
        assert found[place] == pytest.approx((down - up) / 2e-6, abs=1e-7)


@every_schedule
@settings(deadline=None, max_examples=4)
@given(cuts=st.lists(st.integers(0, 70), max_size=6))
def test_cutting_the_order_anywhere_changes_nothing(options, cuts):
    problem = Units((3, 2, 2, 5))
    whole = problem.training(rule_of(**options), keeps_average=True).visit(problem.order[:70])
    parts = problem.training(rule_of(**options), keeps_average=True)
    for part in np.split(problem.order[:70], sorted(cuts)):
        parts.visit(part)
    assert_same_planes(parts, whole)


def test_a_class_without_planes_takes_no_part():
    problem = Units((3, 2, 2, 2))
    three = Units((3, 2, 2, 2))
    three.n_groups = 6
    expected = problem.training(rule_of()).visit(problem.order)
    assert_same_planes(three.training(rule_of()).visit(problem.order), expected)
    before = three.training(rule_of())
    three.y[:] = 2
    after = three.training(rule_of()).visit(problem.order[:5])
    np.testing.assert_array_equal(after.planes.sums, before.planes.sums)
