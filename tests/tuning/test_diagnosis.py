"""Advice follows from errors: each verdict from numbers that call for it."""

from types import SimpleNamespace

import numpy as np
import pytest

from polyplane.tuning.diagnosis import Advice, advice, outlook
from polyplane.tuning.held_out import Trial
from polyplane.tuning.machines import MACHINES
from polyplane.tuning.runs import Run, lead_of

N = 2000


def run_of(name, is_wrong, sureness=None):
    n = is_wrong.size
    return Run(name, n, 1, Trial(np.arange(n), is_wrong, [1], [1.0]), sureness=sureness)


def runs_of(n=N, **errors):
    """Runs with these errors on rows drawn for each machine."""
    draws = np.random.default_rng(0).random(n)
    made = {}
    for name in MACHINES:
        usual = 0.5 if name == "majority" else errors["others"]
        made[name] = [run_of(name, draws < errors.get(name, usual))]
    return made


TAKEN = Advice("linear", "", "linear")


def labels(n=N):
    return np.arange(n) % 2


@pytest.mark.parametrize(
    ("errors", "verdict", "machine"),
    [
        ({"others": 0.5}, "noise", "linear"),
        ({"others": 0.1}, "linear", "linear"),
        ({"others": 0.2, "amm": 0.05, "huller": 0.05}, "piecewise-linear", "amm"),
        ({"others": 0.2, "polyplane": 0.1, "huller": 0.12}, "piecewise-linear", "polyplane"),
        ({"others": 0.2, "huller": 0.05}, "kernel", "huller"),
        ({"others": 0.2, "poly2": 0.05}, "kernel", "poly2"),
        ({"others": 0.2, "additive": 0.1}, "additive", "additive"),
        ({"others": 0.2, "additive": 0.1, "cpm": 0.02}, "piecewise-linear", "cpm"),
        ({"others": 0.2, "additive": 0.05, "cpm": 0.049}, "additive", "additive"),
        ({"others": 0.2, "cpm": 0.199}, "linear", "linear"),
        ({"others": 0.2, "cpm": 0.196}, "more-data", "linear"),
    ],
)
def test_verdicts_follow_from_errors(errors, verdict, machine):
    found = advice(runs_of(**errors), labels())
    assert (found.verdict, found.machine) == (verdict, machine)
    assert found.sentence.endswith(".")


@pytest.mark.parametrize(("n_wrong", "verdict"), [(18, "linear"), (72, "more-data")])
def test_an_error_of_less_than_half_a_point_asks_for_no_more_rows(n_wrong, verdict):
    """As of 6,000 rows whose classes a plane parts, with a few of them wrong."""
    n = 6_000
    made = {name: [run_of(name, np.arange(n) < n_wrong)] for name in MACHINES}
    made["majority"] = [run_of("majority", labels(n) == 1)]
    made["amm"] = [run_of("amm", np.arange(n) < n_wrong - 4)]
    assert advice(made, labels(n)).verdict == verdict


@pytest.mark.parametrize(("n_planes", "verdict"), [(2, "linear"), (3, "piecewise-linear")])
def test_a_model_of_one_plane_a_class_is_linear_itself(n_planes, verdict):
    made = runs_of(others=0.2, amm=0.05)
    made["amm"][0].model = SimpleNamespace(n_planes_=n_planes, classes_=np.arange(2))
    found = advice(made, labels())
    assert found.verdict == verdict
    assert ("its model is one plane a class" in found.sentence) == (verdict == "linear")


def test_a_lead_that_is_probably_no_luck_is_taken_and_said_to_be_probable():
    """As on titanic: 2.5 points, p = 0.007."""
    n = 891
    wrong = np.arange(n) < 180
    better = wrong.copy()
    better[:50], better[400:428] = False, True
    made = {name: [run_of(name, wrong)] for name in MACHINES}
    made["majority"] = [run_of("majority", np.arange(n) < 340)]
    made["polyplane"] = [run_of("polyplane", better)]
    lead = lead_of(made["polyplane"][0], made["linear"][0])
    assert 0.005 < lead.p < 0.02
    found = advice(made, labels(n))
    assert (found.verdict, found.machine) == ("piecewise-linear", "polyplane")
    assert found.sentence.startswith(f"It is probably piecewise-linear (p = {lead.p:.2g})")


@pytest.mark.parametrize("errors", [{"others": 0.5}, {"others": 0.3, "cpm": 0.25}])
def test_few_rows_do_not_tell(errors):
    n = 60
    generator = np.random.default_rng(1)
    made = {
        name: [run_of(name, generator.random(n) < errors.get(name, errors["others"]))]
        for name in MACHINES
    }
    made["majority"] = [run_of("majority", labels(n) == 1)]
    assert advice(made, labels(n)).verdict == "more-data"


def test_a_large_lead_that_cannot_be_ruled_out_asks_for_more_rows():
    n = 500
    draws = np.random.default_rng(2).random((2, n))
    made = {name: [run_of(name, draws[0] < 0.18)] for name in MACHINES}
    made["majority"] = [run_of("majority", labels(n) == 1)]
    made["amm"] = [run_of("amm", np.where(draws[1] < 0.5, draws[0] < 0.18, draws[1] < 0.58))]
    assert 0 < lead_of(made["amm"][0], made["linear"][0]).z < 3
    assert advice(made, labels(n)).verdict == "more-data"


def test_a_lead_that_would_not_matter_is_not_taken_however_sure():
    n = 200_000
    found = advice(runs_of(n, others=0.2, amm=0.197), labels(n))
    assert found.verdict == "linear"
    assert found.steps[1].lead.z > 3


@pytest.mark.parametrize(
    ("imitated", "verdict"),
    [(0.1, "linear"), (0.2, "piecewise-linear"), (None, "piecewise-linear")],
)
def test_a_machine_that_a_plane_can_imitate_is_linear(imitated, verdict):
    """It leads because labels are wrong, not because the border is bent."""
    made = runs_of(others=0.2, amm=0.1)
    if imitated is not None:
        made["amm"][0].imitated["linear"] = runs_of(others=imitated)["linear"][0].trial
    found = advice(made, labels())
    assert found.verdict == verdict
    assert ("with wrong labels" in found.sentence) == (verdict == "linear")


def test_what_a_plane_can_imitate_asks_for_no_more_rows():
    made = runs_of(others=0.2, cpm=0.196)
    assert advice(made, labels()).verdict == "more-data"
    made["cpm"][0].imitated["linear"] = made["cpm"][0].trial
    assert advice(made, labels()).verdict == "linear"


def test_of_a_step_above_curves_it_counts_whether_curves_can_imitate_it():
    made = runs_of(others=0.3, additive=0.2, cpm=0.1)
    made["cpm"][0].imitated["linear"] = made["cpm"][0].trial
    assert advice(made, labels()).verdict == "piecewise-linear"
    made["cpm"][0].imitated["additive"] = made["cpm"][0].trial
    assert advice(made, labels()).verdict == "additive"


def test_a_large_lead_that_may_be_luck_is_no_noise():
    """As after a few seconds: some points over the most frequent label, with 333 rows."""
    n = 333
    usual, linear = np.arange(n) % 100 < 24, np.roll(np.arange(n) % 100 < 20, 9)
    runs = {"majority": [run_of("majority", usual)], "linear": [run_of("linear", linear)]}
    lead = lead_of(runs["linear"][0], runs["majority"][0])
    assert 0.03 < lead.points < 2.5 * lead.spread
    assert advice(runs, labels(n)).verdict == "more-data"


def test_what_only_a_linear_machine_has_tried_is_no_noise():
    """It could be a checkerboard."""
    every = runs_of(others=0.5)
    few = {name: every[name] for name in ("majority", "linear")}
    assert advice(every, labels()).verdict == "noise"
    assert advice(few, labels()).verdict == "more-data"


def test_a_lead_over_a_common_class_is_no_noise():
    y = (np.arange(N) % 10 == 0).astype(np.int64)
    usual = [run_of("majority", y == 1)]
    same = runs_of(others=0.1) | {"majority": usual}
    assert advice(same, y).verdict == "noise"
    better = {name: [run_of(name, (y == 1) & (np.arange(N) % 20 == 0))] for name in MACHINES}
    assert advice(better | {"majority": usual}, y).verdict == "linear"


def test_machines_are_compared_on_the_largest_sample_that_both_have_reached():
    made = runs_of(others=0.2, huller=0.05)
    small = runs_of(400, others=0.2, huller=0.05)
    made["huller"] = small["huller"]
    for name in set(MACHINES) - {"huller"}:
        made[name] = [*small[name], *made[name]]
    found = advice(made, labels())
    assert found.verdict == "kernel"
    assert found.steps[-1].below.n_rows == 400


def test_an_error_on_rows_that_the_advised_machine_never_saw_is_said():
    runs = runs_of(others=0.2, additive=0.1, polyplane=0.1)
    assert "no time to try" not in advice(runs, labels()).sentence
    is_wrong = np.arange(4 * N) < 0.02 * 4 * N
    runs["polyplane"].append(run_of("polyplane", is_wrong))
    said = advice(runs, labels())
    assert said.machine == "additive"
    assert f"polyplane has 2.0% wrong on {4 * N:,} rows" in said.sentence


def test_an_error_is_said_with_the_rows_on_which_it_was_compared():
    runs = runs_of(others=0.2, amm=0.1)
    runs["amm"].append(run_of("amm", np.arange(4 * N) < 0.05 * 4 * N))
    sentence = advice(runs, labels()).sentence
    assert f"on {N:,} rows: a lead of" in sentence
    assert sentence.endswith(f"On {4 * N:,} rows it has 5.0%.")


def test_leads_are_measured_row_by_row():
    generator = np.random.default_rng(0)
    wrong = generator.random(400) < 0.3
    better = wrong & (generator.random(400) < 0.5)
    order = generator.permutation(400)
    first, second = run_of("linear", wrong), run_of("amm", better)
    second.trial.rows, second.trial.is_wrong = order, better[order]
    lead = lead_of(second, first)
    assert lead.points == pytest.approx(first.error - second.error)
    assert lead.spread == pytest.approx((wrong.astype(float) - better).std() / 20)
    assert lead_of(first, second).points == pytest.approx(-lead.points)
    assert lead.p == lead_of(first, second).p < 0.01


def test_curves_that_fall_promise_more_than_flat_ones():
    def of(errors):
        sizes = [1000, 4000, 16000]
        return [run_of("linear", np.arange(n) < e * n) for n, e in zip(sizes, errors, strict=True)]

    steep = outlook({"linear": of([0.4, 0.2, 0.1])}, TAKEN)
    flat = outlook({"linear": of([0.2, 0.2, 0.2])}, TAKEN)
    assert steep.more_rows == pytest.approx(0.1 * (1 - 2**-0.5), rel=0.01)
    assert flat.more_rows == pytest.approx(0, abs=1e-9)
    assert outlook({"linear": of([0.2, 0.2, 0.2])[:1]}, TAKEN).more_rows is None


def test_errors_where_a_machine_is_sure_are_labels():
    n = 1000
    sureness = np.linspace(0, 1, n)
    at_the_border = run_of("linear", sureness < 0.2, sureness)
    everywhere = run_of("linear", np.arange(n) % 5 == 0, sureness)
    assert outlook({"linear": [at_the_border]}, TAKEN).cleaner_labels == 0
    assert outlook({"linear": [everywhere]}, TAKEN).cleaner_labels == pytest.approx(0.2)
