"""What there is no time for is left out and said; what is clearly behind stops growing."""

import time

import numba
import numpy as np
import pytest

import polyplane as pp
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.tuning.budget import Budget
from polyplane.tuning.candidates import CANDIDATES
from polyplane.tuning.exploration import explore_sample
from polyplane.tuning.held_out import Trial
from polyplane.tuning.runs import Run
from polyplane.tuning.samples import sample_of_rows
from polyplane.tuning.search import NO_TIME, Search
from tests.tuning import problems

pytestmark = pytest.mark.compiled
ROWS = 240


class Clock:
    """It moves when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def sample():
    return sample_of_rows(*problems.xor(ROWS), 0)


def test_machines_for_which_time_is_up_are_left_out_and_said(sample):
    clock = Clock()

    def watch(run):
        clock.now = 1e6 if run.machine == "linear" else clock.now

    found = explore_sample(sample, Budget(60.0, clock=clock), 2, watch=watch)
    assert set(found.models) == {"majority", "linear"}
    assert found.left_out == dict.fromkeys(set(CANDIDATES) - set(found.models), NO_TIME)
    assert f"huller was left out: {NO_TIME}" in found.to_html()


def test_compilation_is_no_part_of_a_budget():
    @numba.njit
    def fresh(x):
        return np.sort(x)[::-1] + 1

    budget = Budget(60.0)
    with budget.without_compilation():
        assert budget.compile_seconds == 0
        before, start = budget.elapsed, time.perf_counter()
        fresh(np.zeros(3))
        passed, whole = budget.elapsed - before, time.perf_counter() - start
        assert budget.compile_seconds > 0
        assert passed == pytest.approx(whole - budget.compile_seconds, abs=0.01)
        known = budget.compile_seconds
        fresh(np.zeros(3))
        assert budget.compile_seconds == known


def test_an_algorithm_that_is_slow_on_few_rows_is_not_tried_on_many(sample, monkeypatch):
    seconds = Search._seconds_of_few

    def slow(self, candidate, n_few):
        found = seconds(self, candidate, n_few)
        return 1e3 if candidate.name == "huller" else found

    monkeypatch.setattr(Search, "_seconds_of_few", slow)
    found = explore_sample(sample, Budget(60.0, clock=Clock()), 2)
    assert found.left_out["huller"].startswith(NO_TIME)
    assert "cpm" in found.models


def run_of(name, is_wrong):
    n = is_wrong.size
    return Run(name, n, 1, Trial(np.arange(n), is_wrong, [1], [1.0, 1.0]), total_seconds=2.0)


@pytest.mark.parametrize(("wrong", "grows"), [(0.5, False), (0.11, True), (0.1, True)])
def test_what_is_clearly_behind_stops_growing_unless_it_is_cheap(sample, wrong, grows):
    search = Search(sample, Budget(60.0), 2, 0, None)
    draws = np.random.default_rng(0).random(2000)
    search.runs = {
        "polyplane": [run_of("polyplane", draws < 0.1)],
        "cpm": [run_of("cpm", draws < wrong)],
    }
    assert search._may_grow("cpm", 30.0) == grows
    assert search._may_grow("cpm", 0.1)
    assert search._may_grow("polyplane", 30.0)


def test_what_a_page_takes_is_kept_back():
    clock = Clock()
    budget = Budget(60.0, clock=clock)
    before = budget.left
    budget.page_seconds = 10.0
    assert budget.left < before - 5


def test_an_exploration_by_the_clock_does_all_that_one_by_rows_does():
    found = pp.explore(*problems.xor(ROWS), budget=1e6, n_folds=2)
    assert set(found.models) == set(CANDIDATES)
    assert not found.left_out


def test_a_price_grows_as_it_has_grown(sample):
    search = Search(sample, Budget(60.0), 2, 0, None)
    small, large = run_of("amm", np.zeros(100, bool)), run_of("amm", np.zeros(400, bool))
    large.total_seconds = 4.0  # the square root of the rows
    search.runs = {"amm": [small, large]}
    assert search._price(CANDIDATES["amm"], 1_600) == pytest.approx(8.0)
    search.runs = {"amm": [small]}
    expected = 2.0 * 4 ** CANDIDATES["amm"].growth
    assert search._price(CANDIDATES["amm"], 400) == pytest.approx(expected)


def test_a_linear_machine_that_fails_whenever_it_is_tried_is_left_out_and_said(sample, monkeypatch):
    def refuse(self, *rest, **more):
        raise ValueError("no planes today")

    monkeypatch.setattr(PegasosClassifier, "fit", refuse)
    found = explore_sample(sample, Budget(60.0, clock=Clock()), 2)
    assert found.left_out["linear"] == "no planes today"
    assert "amm" in found.models
