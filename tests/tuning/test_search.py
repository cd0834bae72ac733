"""What there is no time for is left out and said; what is clearly behind stops growing."""

import numpy as np
import pytest

import polyplane as pp
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.tuning.budget import Budget
from polyplane.tuning.contents import _paths
from polyplane.tuning.exploration import explore_sample
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


def test_machines_for_which_time_is_up_are_left_out_and_said(sample):
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
