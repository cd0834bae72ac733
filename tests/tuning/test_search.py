"""What there is no time for is left out and said; what is clearly behind stops growing."""

import itertools

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import polyplane as pp
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.tuning.budget import Budget
from polyplane.tuning.candidates import CANDIDATES
from polyplane.tuning.exploration import LACKING, Findings, explore_sample
from polyplane.tuning.held_out import Trial
from polyplane.tuning.runs import Run
from polyplane.tuning.samples import sample_of_rows
from polyplane.tuning.search import NO_TIME, NO_TIME_TO_COMPILE, Search
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


def test_machines_for_which_time_is_up_are_left_out_and_said(sample, monkeypatch):
    monkeypatch.setattr(Search, "compile_seconds", 0.0)  # whether or not loops were on disk
    clock = Clock()

    def watch(run):
        clock.now = 1e6 if run.machine == "linear" else clock.now

    found = explore_sample(sample, Budget(60.0, clock=clock), 2, watch=watch)
    assert set(found.models) == {"majority", "linear"}
    assert found.left_out == dict.fromkeys(set(CANDIDATES) - set(found.models), NO_TIME)
    assert f"huller was left out: {NO_TIME}" in found.to_html()


LOOPS = {DummyClassifier: 0.0, PegasosClassifier: 2.0, AMMClassifier: 0.0}  # seconds
OTHER_LOOPS, LOOPS_OF_PAGE = 3.0, 1.5
FIRST_ROWS = 333  # of a budget of 10 seconds


class Cold:
    """A machine where nothing has been compiled yet, by a clock that only compilation moves."""

    def __init__(self, monkeypatch, read_seconds):
        self.clock, self.seconds, self.known = Clock(), 0.0, set()
        self.read_seconds = read_seconds
        estimator, result = Search._estimator, Findings.result

        def estimator_cold(search, candidate):
            kind = candidate.setting(search.sample.X).kind
            self.compile(kind, LOOPS.get(kind, OTHER_LOOPS))
            return estimator(search, candidate)

        def result_cold(found, *args, is_brief=False, **rest):
            self.compile("page", 0.0 if is_brief else LOOPS_OF_PAGE)
            return result(found, *args, is_brief=is_brief, **rest)

        ticks = itertools.count()

        def tick(*_):  # fits take next to no time, however busy the machine is
            return 1e-4 * next(ticks)

        monkeypatch.setattr(Search, "_now", tick)
        monkeypatch.setattr(Search, "_estimator", estimator_cold)
        monkeypatch.setattr(Search, "compile_seconds", property(lambda _: self.seconds))
        monkeypatch.setattr(Findings, "result", result_cold)

    def compile(self, what, seconds):
        """The first time, it takes so long."""
        if what not in self.known and seconds:
            self.known.add(what)
            self.clock.now, self.seconds = self.clock.now + seconds, self.seconds + seconds

    def explore(self, problem, seconds, **options):
        """Within so many seconds, of which reading has taken some."""
        budget = Budget(seconds, clock=self.clock)
        self.clock.now += self.read_seconds
        return explore_sample(sample_of_rows(*problem, 0), budget, 2, **options)


@pytest.mark.parametrize("read_seconds", [0.0, 2.0, 4.0, 6.0])
def test_compilation_is_within_the_budget_and_leaves_something_to_say(
    read_seconds, monkeypatch, tmp_path
):
    cold = Cold(monkeypatch, read_seconds)
    found = cold.explore(problems.xor(3_000), 10.0, report=tmp_path / "page.html")
    assert cold.clock.now <= 10.0
    assert {"linear", "amm"} <= set(found.models)
    assert found.n_rows > FIRST_ROWS  # what is compiled goes on to larger samples
    assert found.verdict == "piecewise-linear"


def test_machines_that_there_was_no_time_to_compile_are_said_and_no_verdict_goes_without_them(
    monkeypatch,
):
    cold = Cold(monkeypatch, 4.0)
    found = cold.explore(problems.linear(3_000), 10.0)
    assert found.left_out["polyplane"] == NO_TIME_TO_COMPILE
    assert found.verdict == "more-data"
    assert LACKING in found.summary
    with_time = Cold(monkeypatch, 4.0).explore(problems.linear(3_000), 60.0)
    assert "polyplane" in with_time.models
    assert with_time.verdict == "linear"


def test_loops_on_disk_are_no_measure_of_those_that_are_not(monkeypatch):
    """A second exploration: the linear machine's loops are there, and others take their time."""
    cold = Cold(monkeypatch, 0.0)
    cold.known |= {PegasosClassifier, "page"}
    found = cold.explore(problems.xor(600), 10.0)
    assert {"linear", "amm", "polyplane"} <= set(found.models)
    assert cold.clock.now <= 10.0


def test_what_a_page_has_compiled_is_not_kept_back_for_the_next(monkeypatch, tmp_path):
    cold, rows_after_page = Cold(monkeypatch, 4.0), []

    def watch(run):
        if "page" in cold.known:
            rows_after_page.append(run.n_rows)

    cold.explore(problems.xor(3_000), 10.0, report=tmp_path / "page.html", watch=watch)
    assert max(rows_after_page) == 3_000


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
