"""Rows that rest: the loops beside the reference, and what no rest changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.steps.resting import AWAKE, REST, all_awake
from tests.engine.steps.test_soft_units import Units
from tests.engine.steps.test_softmax import (
    N_STEPS,
    STEP,
    Problem,
    assert_close,
    assert_same_planes,
    at_present,
    rule_of,
)
from tests.examples import examples
from tests.reference import polyplane as reference

pytestmark = pytest.mark.loops

MADE = {"one unit": lambda: Problem((3, 4, 2)), "two units": lambda: Units((2, 1, 1, 3))}
with_both_loops = pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
OPTIONS = {"n_steps": N_STEPS, "alpha": 0.05, "enough": 0.3}
N_ROWS = 20  # so that each has several turns


def in_passes(problem):
    generator = np.random.default_rng(1)
    n_passes = -(-N_STEPS // N_ROWS)
    return np.concatenate([generator.permutation(N_ROWS) for _ in range(n_passes)])[:N_STEPS]


@with_both_loops
def test_every_step_is_that_of_the_reference(made):
    problem, to_rest = made(), np.zeros(N_ROWS, int)
    order, n_units = in_passes(problem), getattr(problem, "n_units", 1)
    given = problem.start, problem.owner, problem.features, problem.y, order
    every_step = reference.train(
        *given, step=STEP, n_units=n_units, to_rest=to_rest, **OPTIONS
    )[1]  # fmt: skip
    training = problem.training(rule_of(**OPTIONS))
    training.resting = all_awake(N_ROWS)
    n_at_rest = 0
    for i, W in zip(order, every_step, strict=True):
        n_at_rest += training.resting[i] < AWAKE
        training.visit([i])
        assert_close(training.sharp_planes, at_present(W, training.rule, training.t))
    np.testing.assert_array_equal(training.resting, AWAKE - to_rest)
    assert N_STEPS / 10 < n_at_rest < N_STEPS
    assert training.resting.min() >= AWAKE - REST


@with_both_loops
@given(cuts=st.lists(st.integers(0, N_STEPS), max_size=4))
@settings(deadline=None, max_examples=examples(8))
def test_cutting_the_order_anywhere_changes_nothing(made, cuts):
    problem = made()
    order = in_passes(problem)
    whole, cut = (problem.training(rule_of(**OPTIONS)) for _ in range(2))
    for training in (whole, cut):
        training.resting = all_awake(N_ROWS)
    whole.visit(order)
    for part in np.split(order, sorted(cuts)):
        cut.visit(part)
    assert_same_planes(whole, cut)
    np.testing.assert_array_equal(whole.resting, cut.resting)


@with_both_loops
def test_where_all_rows_learn_none_rests(made):
    problem = made()
    order = in_passes(problem)
    restless, awake = (problem.training(rule_of(n_steps=N_STEPS)) for _ in range(2))
    awake.resting = all_awake(N_ROWS)
    assert_same_planes(restless.visit(order), awake.visit(order))
    assert (awake.resting == AWAKE).all()
