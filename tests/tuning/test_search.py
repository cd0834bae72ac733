"""What there is no time for is left out and said; what is clearly behind stops growing."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier

import polyplane as pp
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.hyperplane.polyplane import PolyplaneClassifier
from polyplane.tuning import search
from polyplane.tuning.budget import Budget
from polyplane.tuning.contents import _paths
from polyplane.tuning.exploration import LACKING, Findings, explore_sample
from polyplane.tuning.held_out import Trial
from polyplane.tuning.machines import MACHINES, Setting
from polyplane.tuning.runs import Run
from polyplane.tuning.samples import sample_of_rows
from polyplane.tuning.search import NO_TIME, NO_TIME_TO_COMPILE, Search, _contenders
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
    assert found.left_out == dict.fromkeys(set(MACHINES) - set(found.models), NO_TIME)
    assert f"huller was left out: {NO_TIME}" in found.to_html()


def test_loops_for_which_there_is_no_time_are_not_compiled(sample, monkeypatch):
    def compile_linear(self, setting):
        return setting.kind is PegasosClassifier

    monkeypatch.setattr(Search, "_compile", compile_linear)
    found = explore_sample(sample, Budget(60.0, clock=Clock()), 2)
    assert set(found.models) == {"linear"}
    assert found.left_out["amm"] == NO_TIME_TO_COMPILE


LOOPS = {DummyClassifier: 0.0, PegasosClassifier: 2.0, AMMClassifier: 0.0}  # seconds
OTHER_LOOPS, LOOPS_OF_PAGE = 3.0, 1.5
FIRST_ROWS = 333  # of a budget of 10 seconds


class Cold:
    """A machine where nothing has been compiled yet, by a clock that only compilation moves."""

    def __init__(self, monkeypatch, read_seconds):
        self.clock, self.seconds, self.known = Clock(), 0.0, set()
        self.read_seconds = read_seconds
        made, result = Search._made, Findings.result

        def made_cold(search, setting):
            self.compile(setting.kind, LOOPS.get(setting.kind, OTHER_LOOPS))
            return made(search, setting)

        def result_cold(found, *args, is_brief=False, **rest):
            self.compile("page", 0.0 if is_brief else LOOPS_OF_PAGE)
            return result(found, *args, is_brief=is_brief, **rest)

        ticks = itertools.count()

        def tick(*_):  # fits take next to no time, however busy the machine is
            return 1e-4 * next(ticks)

        monkeypatch.setattr(Search, "_now", tick)
        monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=tick))
        monkeypatch.setattr(Search, "_made", made_cold)
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


def test_a_machine_that_is_dear_on_few_rows_is_not_tried_on_many(sample, monkeypatch):
    fits = []
    fit = AMMClassifier.fit

    def counted(self, X, y, **more):
        fits.append(X.shape[0])
        return fit(self, X, y, **more)

    try_few = Search._try_few

    def dear(self, setting, n_rows):
        done = try_few(self, setting, n_rows)
        if setting.kind is AMMClassifier:
            self._seen[setting.kind, None, None] = n_rows, 1e3
        return done

    monkeypatch.setattr(AMMClassifier, "fit", counted)
    monkeypatch.setattr(Search, "_try_few", dear)
    found = explore_sample(sample, Budget(60.0, clock=Clock()), 2)
    assert max(fits) < 100
    assert found.left_out["amm"].startswith(NO_TIME)
    assert "cpm" in found.models


def run_of(name, is_wrong, tried=()):
    n = is_wrong.size
    trial = Trial(np.arange(n), is_wrong, [1], [1.0, 1.0])
    return Run(name, n, 1, trial, fit_seconds=1.0, tried=list(tried))


@pytest.mark.parametrize(("wrong", "grows"), [(0.5, False), (0.11, True), (0.1, True)])
def test_what_is_clearly_behind_stops_growing_unless_it_is_cheap(sample, wrong, grows):
    search = Search(sample, Budget(60.0), 2, 0, None)
    draws = np.random.default_rng(0).random(2000)
    search.runs = {
        "polyplane": [run_of("polyplane", draws < 0.1)],
        "cpm": [run_of("cpm", draws < wrong)],
    }
    assert search._may_grow(MACHINES["cpm"], 30.0) == grows
    assert search._may_grow(MACHINES["cpm"], 0.1)
    assert search._may_grow(MACHINES["polyplane"], 30.0)


def test_settings_that_were_clearly_behind_are_not_tried_again():
    good, close, bad = (Setting(AMMClassifier, {"alpha": a}) for a in (1e-4, 1e-3, 1e-2))
    tried = [(good, 0.1), (close, 0.11), (bad, 0.4)]
    assert _contenders(run_of("amm", np.zeros(2000, bool), tried)) == [good, close]


def test_what_a_page_takes_is_kept_back():
    clock = Clock()
    budget = Budget(60.0, clock=clock)
    before = budget.left
    budget.page_seconds = 10.0
    assert budget.left < before - 5


def test_an_exploration_by_the_clock_does_all_that_one_by_rows_does():
    found = pp.explore(*problems.xor(ROWS), budget=1e6, n_folds=2)
    assert set(found.models) == set(MACHINES)
    assert not found.left_out


def test_a_machine_that_has_run_is_judged_by_its_price_not_by_few_rows(sample):
    search = Search(sample, Budget(60.0, clock=Clock()), 2, 0, None)
    setting = MACHINES["amm"].settings(sample.X)[0]
    search._compiled.add((setting.kind, None, None))
    search._seen[setting.kind, None, None] = 40, 1e3
    assert not search._has_time(MACHINES["amm"], setting, ROWS)
    search.runs = {"amm": [run_of("amm", np.zeros(ROWS, bool))]}
    assert search._has_time(MACHINES["amm"], setting, ROWS)


def test_a_linear_machine_tries_early_settings_first_and_the_others_after_amm(sample):
    search, order = Search(sample, Budget(rows=(ROWS,)), 2, 0, None), []
    for run in search.work():
        order.append((run.machine, run.setting.kind.__name__, len(run.tried)))
    linear = [k for k, (name, _, _) in enumerate(order) if name == "linear"]
    assert [name for name, _, _ in order[:3]] == ["majority", "linear", "amm"]
    assert order[1][1:] == ("PegasosClassifier", 5)
    assert linear in ([1], [1, 3])  # the second time only if another setting is better
    (run,) = search.runs["linear"]
    assert len(run.tried) == len(MACHINES["linear"].settings(sample.X))


def test_other_settings_are_judged_if_they_are_better(sample, monkeypatch):
    monkeypatch.setattr(PegasosClassifier, "predict", lambda self, X: np.full(X.shape[0], 7))
    search = Search(sample, Budget(rows=(ROWS,)), 2, 0, None)
    order = [run.machine for run in search.work()]
    assert order[:4] == ["majority", "linear", "amm", "linear"]
    (run,) = search.runs["linear"]
    assert run.setting.kind is pp.PolyplaneClassifier
    assert run.error < 1


def test_alphas_of_a_larger_sample_are_tried_side_by_side_as_if_alone(monkeypatch):
    sample = sample_of_rows(*problems.linear(2 * ROWS), 0)
    together = Search(sample, Budget(rows=(ROWS, 2 * ROWS)), 2, 0, None)
    list(together.work())
    monkeypatch.setattr(Search, "_try_path", lambda *_: False)
    alone = Search(sample, Budget(rows=(ROWS, 2 * ROWS)), 2, 0, None)
    list(alone.work())
    for name in ("linear", "amm"):
        run = together.runs[name][-1]
        assert all(one in run.tried for one in alone.runs[name][-1].tried)
        assert run.setting == alone.runs[name][-1].setting
        assert run.error == alone.runs[name][-1].error
    paths = {one["rows"]: one["points"] for one in _paths({"amm": together.runs["amm"]})}
    assert [len(points) for points in paths.values()] == [5, 5]


def test_a_linear_machine_that_fails_whenever_it_is_tried_is_left_out_and_said(sample, monkeypatch):
    def refuse(self, *rest, **more):
        raise ValueError("no planes today")

    monkeypatch.setattr(PegasosClassifier, "fit", refuse)
    monkeypatch.setattr(PolyplaneClassifier, "fit", refuse)
    found = explore_sample(sample, Budget(60.0, clock=Clock()), 2)
    assert found.left_out["linear"] == "no planes today"
    assert "amm" in found.models


def words(n_rows, generator):
    """Counts of 300 words in texts of two kinds."""
    y = generator.integers(0, 2, n_rows)
    often = np.where(np.arange(300) % 7 == 0, 0.3, 0.03)
    X = generator.poisson(np.where(y[:, None] == 1, often, often[::-1]))
    return sp.csr_array(X.astype(np.float32)), y


def test_texts_are_not_standardised():
    X, y = words(200, np.random.default_rng(0))
    linear = MACHINES["linear"].settings(X)
    softmax = [one.parameters["columns"] for one in linear if one.kind is PolyplaneClassifier]
    assert softmax == ["as-is"] * 2
    found = explore_sample(sample_of_rows(X, y, 0), Budget(1e6, clock=Clock()), 2)
    assert found.runs["polyplane"][-1].setting.parameters["columns"] == "as-is"
