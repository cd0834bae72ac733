"""Verdicts on problems whose answer is known, with work that is the same each time."""

import io
import json
import os
import re
import signal
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.report.columns import Columns
from polyplane.report.page.page import page_of
from polyplane.tuning import exploration, samples, search
from polyplane.tuning.budget import Budget
from polyplane.tuning.candidates import CANDIDATES
from polyplane.tuning.code import FRAME, GAPS, MATRIX, code_that_makes
from polyplane.tuning.samples import sample_of_file, sample_of_rows
from tests.examples import IS_NIGHT
from tests.real_data import libsvm_set
from tests.tuning import problems

pytestmark = pytest.mark.compiled


QUICK = "majority", "linear", "amm", "additive"  # algorithms


@pytest.fixture
def quick(monkeypatch):
    """Leave out algorithms that take long: for tests to which it does not matter."""
    whole = search.candidates_for

    def quick_ones(X):
        tried, left_out = whole(X)
        return [one for one in tried if one.name in QUICK], left_out

    monkeypatch.setattr(search, "candidates_for", quick_ones)


def explored(X, y, *sizes, **options):
    return pp.explore(X, y, budget=Budget(rows=sizes), n_folds=2, **options)


@pytest.mark.parametrize(
    ("problem", "n_rows", "verdicts"),
    [
        (problems.linear, 1200, {"linear"}),
        (problems.additive, 1200, {"additive"}),
        (problems.rings, 1200, {"additive"}),
        (problems.xor, 1200, {"piecewise-linear"}),
        (problems.board, 1200, {"piecewise-linear", "kernel"}),
        (problems.random_labels, 2400, {"noise"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_problem_gets_the_verdict_that_it_was_made_for(problem, n_rows, verdicts):
    found = explored(*problem(n_rows), n_rows)
    assert found.verdict in verdicts, found.summary
    assert found.advice.machine in found.models
    assert set(found.models) == set(CANDIDATES)
    assert found.summary.startswith(found.advice.sentence)


def planes_with_wrong_labels(share):
    def problem(n, seed):
        X, _ = problems.linear(n, seed)
        clean = (2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2] > 0).astype(np.int64)
        return X, problems.flipped(clean, share, seed)

    return problem


def more_wrong_labels(problem):
    return lambda n, seed: (lambda X, y: (X, problems.flipped(y, 0.1, seed + 7)))(*problem(n, seed))


@pytest.mark.parametrize("seed", range(3 if IS_NIGHT else 1))
@pytest.mark.parametrize(
    ("problem", "verdicts"),
    [
        (planes_with_wrong_labels(0.1), {"linear"}),
        (planes_with_wrong_labels(0.25), {"linear"}),
        (more_wrong_labels(problems.xor), {"piecewise-linear"}),
        (more_wrong_labels(problems.rings), {"additive", "kernel"}),
    ],
    ids=["linear 10%", "linear 25%", "xor 13%", "rings 10%"],
)
def test_wrong_labels_do_not_bend_a_verdict(problem, verdicts, seed):
    found = explored(*problem(1500, seed), 500, 1500, random_state=seed)
    assert found.verdict in verdicts, found.summary


@pytest.mark.usefixtures("quick")
def test_few_rows_ask_for_more():
    found = explored(*problems.xor(50), 50)
    assert found.verdict == "more-data", found.summary


@pytest.mark.usefixtures("quick")
def test_wrong_labels_are_worth_more_than_more_rows():
    X, _ = problems.linear(1500)
    clean = (2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2] > 0).astype(np.int64)
    found = explored(X, problems.flipped(clean, 0.25), 500, 1500)
    assert found.verdict == "linear", found.summary
    assert found.outlook.cleaner_labels == pytest.approx(0.25, abs=0.05)
    assert found.outlook.cleaner_labels > found.outlook.more_rows
    assert "cleaner labels would help more" in found.summary


@pytest.mark.usefixtures("quick")
def test_a_leak_and_drift_are_said():
    X, y = problems.random_labels(600)
    X[:, 1] = y + 0.01 * X[:, 1]
    X[:, 2] += np.linspace(0, 3, 600)
    frame = pd.DataFrame(X, columns=["a", "answer", "clock", "d"])
    found = explored(frame, y, 300)
    kinds = {one.kind: one for one in found.suspicions}
    assert kinds["leak"].columns == found.dropped == ("answer",)
    assert kinds["drift"].columns == ("clock",)
    assert found.summary.startswith("Without “answer”, which nearly decides alone: ")
    assert found.verdict in ("noise", "more-data")
    assert found.models["amm"].n_features_in_ == 3
    assert "answer" in found.code


# ---- real data -----------------------------------------------------------------------------


def test_a9a_is_linear_or_additive():
    X, y, _, _ = libsvm_set("a9a")
    found = explored(X, y, 4000)
    assert found.verdict in ("linear", "additive"), found.summary


def test_ijcnn1_is_nonlinear():
    X, y, _, _ = libsvm_set("ijcnn1")
    found = explored(X, y, 2000)
    assert found.verdict in ("piecewise-linear", "kernel"), found.summary


# ---- the result ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    generator = np.random.default_rng(0)
    X, y = problems.xor(600)
    frame = pd.DataFrame(X, columns=[*"abcd"])
    frame["colour"] = np.array(["red", "green", "blue"])[generator.integers(0, 3, 600)]
    return explored(frame, np.where(y, "yes", "no"), 200, 600)


def test_the_table_has_a_line_for_each_machine(found):
    table = found.table.set_index("machine")
    assert set(table.index) == set(CANDIDATES)
    assert (table.low <= table.error).all()
    assert (table.error <= table.high).all()
    assert (table.drop("majority").bytes > 0).all()
    assert (table.microseconds > 0).all()
    assert table.p.drop("linear").between(0, 1).all()
    assert np.isnan(table.p["linear"])
    assert (table.rows == 600).all()


def test_the_table_is_shown_as_text_where_pandas_is_absent(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    shown = repr(found.table).splitlines()
    assert len(shown) == len(found.models)
    for line, one in zip(shown, found.lines, strict=True):
        assert re.fullmatch(rf"{one['machine']} +[\d.]+% wrong +\S+ µs a row +600 rows", line)


def test_models_predict_tables_as_they_are_laid_out(found):
    model = found.models["polyplane"]
    run = found.runs["polyplane"][-1]
    assert model.predict(np.zeros((3, model.n_features_in_), np.float32)).shape == (3,)
    assert run.held_out.size == 300


@pytest.mark.usefixtures("quick")
def test_lists_are_taken():
    X, y = problems.xor(100)
    assert explored(X.tolist(), y.tolist(), 100).n_rows == 100


def fitted_by(code, **scope):
    exec(code, scope)
    return scope["model"], scope["X"]


def table_with_gaps():
    X, y = problems.linear(400)
    frame = pd.DataFrame(X, columns=[*"abcd"])
    frame["colour"] = np.where(np.arange(400) % 3, "red", None)
    frame.loc[::7, "b"] = np.nan
    return frame, np.where(y, "yes", "no")


@pytest.mark.parametrize("form", [FRAME, GAPS, MATRIX])
@pytest.mark.parametrize("scale", ["maxabs", "none"])
def test_the_code_to_paste_takes_rows_as_they_came(form, scale):
    frame, y = table_with_gaps()
    gaps = frame[[*"abcd"]].to_numpy()
    X = {FRAME: frame, GAPS: gaps, MATRIX: sp.csr_matrix(np.nan_to_num(gaps))}[form]
    code = code_that_makes("PegasosClassifier", {"alpha": 1e-3}, scale, form)
    assert fitted_by(code, X=X, y=y)[0].score(X, y) > 0.7


def test_the_code_to_paste_trains_the_model_that_was_found():
    X, y = problems.xor(400)
    found = explored(X, y, 400)
    assert fitted_by(found.code, X=X, y=y)[0].score(X, y) > 0.8


@pytest.mark.usefixtures("quick")
def test_the_code_to_paste_reads_the_file(tmp_path):
    frame, y = table_with_gaps()
    frame["answer"] = y
    frame["again"] = np.where(np.arange(400) % 50, y, "no")  # leaks
    path = tmp_path / "it's a table.csv"
    frame.to_csv(path, index=False, sep=";")
    found = explored(path, None, 400, label="answer", delimiter=";")
    assert found.dropped == ("again",)
    _, X = fitted_by(found.code)
    assert X.shape[1] == found.models["linear"].n_features_in_
    with path.open("rb") as file:
        assert "pp.read" not in explored(file, None, 400, label="answer").code


@pytest.mark.usefixtures("quick")
def test_the_code_to_paste_leaves_out_what_decides_alone():
    X, y = problems.xor(400)
    X[:, 1] = y
    for rows in (X, pd.DataFrame(X, columns=[*"abcd"])):
        found = explored(rows, y, 400)
        assert fitted_by(found.code, X=rows, y=y)[1].shape == (400, 3)


@pytest.mark.usefixtures("quick")
def test_the_same_work_gives_the_same_words():
    X, y = problems.xor(300)
    one, other = (explored(X, y, 150, 300).content for _ in range(2))
    assert [m["error"] for m in one["machines"]] == [m["error"] for m in other["machines"]]
    assert one["headline"] == other["headline"]


@pytest.mark.usefixtures("quick")
def test_sparse_rows_and_bytes_are_taken():
    X, y = problems.xor(240)
    for rows in (sp.csr_matrix(X), (100 * (X + 1)).astype(np.uint8)):
        found = explored(rows, y, 240)
        assert found.n_rows == 240
        assert not set(found.left_out), found.left_out


@pytest.mark.usefixtures("quick")
def test_tables_of_all_kinds_and_gaps_are_taken():
    X, y = problems.xor(200)
    words = np.array(["x", "y", None], object)[np.arange(200) % 3]
    gaps = X.astype(np.float64)
    gaps[::7, 1] = np.nan
    for rows in (pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words.tolist()}), gaps, 1e12 * X):
        found = explored(rows, y == 1, 200)
        assert {"linear", "amm"} <= set(found.models)
        assert found.to_html()


def test_a_small_file_has_the_columns_of_its_table(tmp_path):
    frame, y = table_with_gaps()
    frame["rare"] = [f"kind {k % 150}" for k in range(400)]
    frame.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    X, _ = pp.read(tmp_path / "rows.csv")
    for sample in (
        sample_of_file(tmp_path / "rows.csv", Budget(60.0), 0), sample_of_rows(frame, y, 0)
    ):  # fmt: skip
        assert sample.X.shape == X.shape


@pytest.mark.usefixtures("quick")
def test_dates_are_told_as_dates():
    X, y = problems.xor(200)
    days = pd.date_range("2024-02-28", periods=200)
    frame = pd.DataFrame({"a": X[:, 0], "when": days, "b": X[:, 1]})
    found = explored(frame, y, 200)
    cells = [cell for one in found.content["rows"]["list"] for cell in one["columns"]]
    assert {cell[1][:5] for cell in cells if cell[0] == "when"} == {"2024-"}
    (curve,) = [one for one in found.content["splines"]["list"] if one["name"].startswith("when")]
    assert curve["name"] == "when, days since 2024-02-28"
    regions = found.content["regions"]
    first, last = map(np.datetime64, regions["ends"][regions["names"].index("when")])
    assert days[0] - first < np.timedelta64(10, "D")
    assert last - days[-1] < np.timedelta64(10, "D")
    columns = Columns(["when"], origins={0: 0.0})
    assert [columns.told(0, day) for day in (59.0, 0.5)] == ["1970-03-01", "1970-01-01 12:00"]
    assert Columns(["x", "when"], origins={1: 0.0}).without([0])[0].told(0, 1.0) == "1970-01-02"


@pytest.mark.usefixtures("quick")
def test_a_file_is_taken_with_options_of_reading(tmp_path):
    X, y = problems.xor(300)
    write(tmp_path / "rows.csv", [Chunk(X, y)], names=[*"abcd"])
    found = pp.explore(tmp_path / "rows.csv", label="label", budget=Budget(rows=(200,)), n_folds=2)
    assert (found.n_rows, found.n_met) == (200, 300)
    assert "rows.csv" in found.to_html()


def test_a_long_file_is_not_read_to_its_end(tmp_path, monkeypatch):
    X, y = problems.xor(4000)
    write(tmp_path / "rows.csv", [Chunk(X, y)])
    ticks = iter(np.arange(10_000) * 1.0)
    budget = Budget(60.0, clock=lambda: next(ticks))
    monkeypatch.setattr(exploration, "explore_sample", lambda sample, *rest, **more: sample)
    sample = pp.explore(tmp_path / "rows.csv", budget=budget, chunk_rows=100)
    assert not sample.is_all
    assert 100 < sample.n_met < 4000
    assert sample.n_rows == sample.n_met


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    n_read = 0

    def readinto(self, room):
        n = super().readinto(room)
        self.n_read += n
        return n


@pytest.mark.parametrize("name", ["rows.csv", "rows.libsvm"])
def test_of_a_large_file_a_part_is_read(tmp_path, name):
    """Bytes are those of the rows that were met, and of some blocks that a thread is ahead."""
    X, y = problems.xor(60_000)
    write(tmp_path / name, [Chunk(X, y)])
    with (tmp_path / name).open("ab") as file:
        rows = (tmp_path / name).read_bytes().partition(b"\n")[2]
        for _ in range(60):
            file.write(rows)
    ticks = iter(np.arange(10_000) * 1.0)
    budget = Budget(60.0, clock=lambda: next(ticks))  # a second for each look at it
    with Counted(tmp_path / name) as file:
        sample = sample_of_file(file, budget, 0, chunk_rows=1_000)
        size = os.path.getsize(tmp_path / name)
        assert not sample.is_all
        assert 1_000 < sample.n_met < 20_000
        assert file.n_read < size // 3
        assert sample.n_met / (61 * 60_000) < file.n_read / size


def test_once_there_are_rows_enough_reading_ends_early(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "MAX_SAMPLE_ROWS", 300)
    monkeypatch.setattr(samples, "MIN_READING_SECONDS", 5.0)
    X, y = problems.xor(4000)
    write(tmp_path / "rows.csv", [Chunk(X, y)])
    met = {}
    for seconds in (60.0, 6_000.0):
        ticks = iter(np.arange(10_000) * 1.0)
        budget = Budget(seconds, clock=lambda ticks=ticks: next(ticks))
        met[seconds] = sample_of_file(tmp_path / "rows.csv", budget, 0, chunk_rows=100).n_met
    assert met[60.0] == met[6_000.0] < 1_000


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros((5, 2)), np.zeros(5), "but one label"),
        (np.zeros((5, 2)), np.arange(4) % 2, "must go together"),
        (np.zeros(5), np.arange(5) % 2, "dimensions"),
        (np.zeros((4, 2)), np.array([0, 1, np.nan, 0]), "missing values"),
        (np.zeros((4, 2)), np.array(["a", None, "b", "a"], object), "missing values"),
        (np.zeros((4, 2)), np.array([0, 1, 0.5, 0]), "looks like a number to predict"),
        (np.zeros((900, 2)), np.arange(900) // 2, "450 different values in 900 rows"),
        (np.eye(40), np.arange(40) == 0, "Only one class"),
        (np.eye(40), np.arange(40), "No class has 6 rows"),
        (np.ones((40, 2)), np.arange(40) % 2, "All rows are the same"),
        (sp.csr_matrix(np.ones((400, 2))), np.arange(400) % 2, "All rows are the same"),
        (np.full((40, 2), 1e300), np.arange(40) % 2, "X contains infinity"),
    ],
)
def test_what_makes_no_sense_is_refused(X, y, words):
    with pytest.raises(ValueError, match=words):
        pp.explore(X, y)


# ---- budgets -------------------------------------------------------------------------------


def test_ctrl_c_gives_what_is_done_so_far(tmp_path, monkeypatch):
    X, y = problems.xor(300)
    page = tmp_path / "page.html"
    n_fits = 0
    fit = pp.CPMClassifier.fit

    def interrupted(self, *rest, **more):
        nonlocal n_fits
        n_fits += 1
        signal.raise_signal(signal.SIGINT)
        return fit(self, *rest, **more)

    monkeypatch.setattr(pp.CPMClassifier, "fit", interrupted)
    found = explored(X, y, 300, report=page)
    assert n_fits == 1
    assert found.is_interrupted
    assert set(found.models) == {"majority", "linear", "amm", "polyplane", "additive", "huller"}
    assert "Stopped early" in page.read_text()


def test_a_machine_that_fails_is_left_out_and_said(monkeypatch):
    def refuse(self, *rest, **more):
        raise ValueError("no planes <today>")

    monkeypatch.setattr(pp.CPMClassifier, "fit", refuse)
    found = explored(*problems.xor(200), 200)
    assert found.left_out == {"cpm": "no planes <today>"}
    assert "no planes &lt;today&gt;" in found.to_html()


@pytest.mark.usefixtures("quick")
def test_a_page_is_there_before_the_end(tmp_path, monkeypatch):
    written = []
    to_html = exploration.Report.to_html

    def noted(self, path=None):
        is_brief = "rows" in self.content.get("to_come", ())
        written.append((self.content["is_final"], len(self.models), is_brief))
        assert ('id="rows"' in page_of(self.content)) is not is_brief
        return to_html(self, path)

    monkeypatch.setattr(exploration.Report, "to_html", noted)
    explored(*problems.xor(240), 120, 240, report=tmp_path / "page.html")
    assert [is_final for is_final, *_ in written] == [False, False, True]
    assert written[0][1:] == (3, True)  # as soon as amm is there beside linear, and nothing more
    assert written[1][2] is written[2][2] is False
    assert "Still exploring" not in (tmp_path / "page.html").read_text()


def test_wide_rows_leave_machines_out_and_say_why():
    generator = np.random.default_rng(0)
    X = sp.random(200, 4000, 0.01, "csr", np.float32, random_state=0)
    found = explored(X, generator.integers(0, 2, 200), 200)
    assert set(found.left_out) == {"additive", "poly2"}
    assert "too many products" in found.to_html()


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_values_of_categories_do_not_keep_numbers_from_their_curves(store):
    X, _ = problems.additive(500)
    table = np.hstack([X, np.eye(400, dtype=np.float32)[np.arange(500) % 400]])
    assert not CANDIDATES["additive"].why_not(store(table))
    wide = X @ np.ones((4, 400), np.float32)
    wide[3] = np.nan
    assert CANDIDATES["additive"].why_not(store(wide))


class Clock:
    """Seconds that fits take, by what they are given."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_samples_grow_within_the_budget(power):
    clock = Clock()
    budget = Budget(60.0, clock=clock)
    n_rows, sizes = budget.first_rows(10**6), []
    while n_rows is not None:
        clock.now += 0.5 * (n_rows / 1000) ** power
        sizes.append(n_rows)
        n_rows = budget.next_rows(n_rows, 10**6, lambda n: 0.5 * (n / 1000) ** power)
    assert sizes == sorted(set(sizes))
    assert 0.5 * 60 < clock.now <= 60


@pytest.mark.parametrize(
    ("n_rows", "first"), [(150, 150), (500, 200), (891, 223), (3_000, 750), (60_000, 1_000)]
)
def test_few_rows_begin_with_a_part_as_well(n_rows, first):
    budget = Budget(60.0)
    assert budget.first_rows(n_rows) == first
    if first < n_rows <= 4_000:
        assert budget.next_rows(first, n_rows, lambda n: 0.0) == n_rows


def test_the_last_few_rows_need_no_sample_of_their_own():
    assert Budget(60.0).next_rows(1_000, 5_000, lambda n: 0.0) == 5_000
    assert Budget(60.0).next_rows(1_000, 5_500, lambda n: 0.0) == 4_000


def test_the_same_sizes_each_time_with_rows():
    budget = Budget(rows=(10, 30, 100))
    assert budget.first_rows(1000) == 10
    assert budget.next_rows(10, 1000, lambda n: 1e9) == 30
    assert budget.next_rows(30, 50, lambda n: 1e9) == 50
    assert budget.next_rows(50, 50, lambda n: 1e9) is None
    assert budget.allows(1e9)


@pytest.mark.parametrize("bad", ["soon", "-3s", "0", True, None])
def test_bad_budgets_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="budget is"):
        pp.explore(np.zeros((4, 1)), [0, 1, 0, 1], budget=bad)


def test_the_content_of_a_page_is_plain(found):
    assert json.loads(json.dumps(found.content, default=str))


def test_a_result_is_a_few_lines_at_a_prompt(found):
    shown = repr(found)
    assert shown.startswith(f"Exploration: {found.verdict}\n{found.summary}\n")
    assert len(shown) < 2_000
    for name in found.models:
        assert f"\n{name} " in shown
