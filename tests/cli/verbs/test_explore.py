"""Exploring tells a board from a half-plane."""

import numpy as np
import pytest

import polyplane as pp
from benchmarks.shapes import checkerboard
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.tuning import samples
from polyplane.tuning.candidates import CANDIDATES
from tests.cli.documented import check

pytestmark = pytest.mark.compiled


def explored(call, path, *words):
    return check("explore", call("explore", path, "--json", *words).out)


def test_a_checkerboard_is_nonlinear(call, tmp_path):
    write(tmp_path / "board.csv", [Chunk(*checkerboard(500, 0.0, fields=2))])
    found = explored(call, tmp_path / "board.csv", "--rows", "400", "--folds", "2")
    assert found["verdict"] in ("piecewise-linear", "kernel")
    assert (found["rows"], found["rows_met"]) == (400, 500)
    assert [one["machine"] for one in found["machines"]] == list(CANDIDATES)
    errors = {one["machine"]: one["error"] for one in found["machines"]}
    assert errors["polyplane"] < errors["linear"]
    assert found["steps"][0]["below"] == "linear"
    assert "polyplane" in found["code"]
    assert not found["interrupted"]


def test_a_half_plane_is_linear_and_said_in_a_sentence(call, tmp_path):
    X, _ = checkerboard(400)
    noise = np.random.default_rng(0).normal(scale=0.5, size=400)
    write(tmp_path / "half.csv", [Chunk(X, (X[:, 0] + noise > 0).astype(np.int64))])
    done = call("explore", tmp_path / "half.csv", "--folds", "2")
    assert done.code == 0
    assert all(name in done.out for name in CANDIDATES)
    assert "It looks linear" in done.out


def test_it_is_said_that_not_all_rows_were_read(call, tmp_path, monkeypatch):
    write(tmp_path / "long.csv", [Chunk(*checkerboard(9_000, 0.0, fields=2))])
    monkeypatch.setattr(samples, "SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(samples, "MAX_SHARE_OF_READING", 0.0)
    done = call("explore", tmp_path / "long.csv", "--rows", "100", "--folds", "2")
    assert "100 of the 8,192 rows that there was time to read" in " ".join(done.out.split())


def test_a_page_is_written_and_a_leak_is_said(call, tmp_path):
    X, y = checkerboard(300, 0.0, fields=2)
    X[:, 1] = y
    write(tmp_path / "leak.csv", [Chunk(X, y)], names=["a", "<b>"])
    page = tmp_path / "page.html"
    found = explored(call, tmp_path / "leak.csv", "--report", page, "--folds", "2")
    assert found["suspicions"][0]["kind"] == "leak"
    assert found["suspicions"][0]["columns"] == ["<b>"]
    assert found["report"] == str(page)
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "<b>" not in text.replace("<b>leak</b>", "")
    assert "leak.csv" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "soon"], "--budget is 'soon', expected a time such as 60s"),
        (["--report", "no/such/folder/page.html"], "whose folder is not there"),
    ],
)
def test_calls_that_make_no_sense(call, tmp_path, words, said):
    done = call("explore", tmp_path / "absent.csv", *words)
    assert done.code == 2
    assert said in done.err


def test_ctrl_c_leaves_the_page_of_what_is_done(call, tmp_path, monkeypatch):
    write(tmp_path / "board.csv", [Chunk(*checkerboard(300, 0.0, fields=2))])

    def interrupted(self, *rest, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(pp.CPMClassifier, "fit", interrupted)
    done = call("explore", tmp_path / "board.csv", "--report", tmp_path / "page.html")
    assert done.code == 130
    assert "Verdict: " in done.out
    assert "Stopped early" in (tmp_path / "page.html").read_text()


def test_rows_without_labels_are_refused(call, tmp_path):
    (tmp_path / "in.csv").write_text("1,2\n3,4\n" * 20)
    done = call("explore", tmp_path / "in.csv", "--label", "none")
    assert done.code == 1
    assert "has no labels" in done.err
