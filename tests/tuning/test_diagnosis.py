"""Advice follows from errors: each verdict from numbers that call for it."""

import numpy as np
import pytest

from polyplane.tuning.diagnosis import CONTESTANTS, KERNEL, LINEAR, advice
from polyplane.tuning.held_out import Trial

N = 2000
Y = np.arange(N) % 2


def trials_of(**errors):
    """Trials with these errors on rows drawn for each machine."""
    generator = np.random.default_rng(0)
    draws = generator.random(N)
    made = {}
    for name in CONTESTANTS:
        is_wrong = draws < errors.get(name, errors["others"])
        made[name] = Trial(np.arange(N), is_wrong, [1], [1.0])
    return made


@pytest.mark.parametrize(
    ("errors", "verdict", "named"),
    [
        ({"others": 0.5}, "noise", "always saying"),
        ({"others": 0.1}, "linear", "pegasos"),
        ({"others": 0.2, "amm": 0.05, "huller": 0.05}, "piecewise-linear", "take amm"),
        ({"others": 0.2, "polyplane": 0.1, "huller": 0.12}, "piecewise-linear", "polyplane"),
        ({"others": 0.2, "huller": 0.05}, "kernel", "huller"),
        ({"others": 0.2, "cpm": 0.1985}, "more-data", "--rows"),
    ],
)
def test_verdicts_follow_from_errors(errors, verdict, named):
    found = advice(trials_of(**errors), Y)
    assert found.verdict == verdict
    assert named in found.sentence
    assert found.sentence.endswith(".")


def test_a_lead_over_a_common_class_is_no_noise():
    y = (np.arange(N) % 10 == 0).astype(np.int64)
    assert advice(trials_of(others=0.1), y).verdict == "noise"
    assert advice(trials_of(others=0.05), y).verdict == "linear"


def test_a_linear_and_a_kernel_machine_are_among_the_contestants():
    assert {LINEAR, KERNEL} < set(CONTESTANTS)
    for contestant in CONTESTANTS.values():
        machine = contestant.made(random_state=0, n_jobs=1)
        assert machine.random_state == 0
