"""Exploring tells a board from a half-plane."""

import numpy as np
import pytest

from polyplane.data.chunks import Chunk
from polyplane.data.sets.shapes import checkerboard
from polyplane.data.writing import write
from polyplane.tuning.diagnosis import CONTESTANTS
from tests.cli.documented import check

pytestmark = pytest.mark.compiled


def explored(call, path, *words):
    return check("explore", call("explore", path, "--json", *words).out)


def test_a_checkerboard_is_nonlinear(call, tmp_path):
    write(tmp_path / "board.csv", [Chunk(*checkerboard(500, 0.0, fields=2))])
    found = explored(call, tmp_path / "board.csv", "--rows", "400", "--folds", "2")
    assert found["verdict"] in ("piecewise-linear", "kernel")
    assert (found["rows"], found["rows_met"]) == (400, 500)
    assert [one["algorithm"] for one in found["machines"]] == list(CONTESTANTS)
    errors = {one["algorithm"]: one["error"] for one in found["machines"]}
    assert errors["polyplane"] < errors["pegasos"]


def test_a_half_plane_is_linear_and_said_in_a_sentence(call, tmp_path):
    X, _ = checkerboard(400)
    noise = np.random.default_rng(0).normal(scale=0.5, size=400)
    write(tmp_path / "half.csv", [Chunk(X, (X[:, 0] + noise > 0).astype(np.int64))])
    done = call("explore", tmp_path / "half.csv", "--folds", "2")
    assert done.code == 0
    assert all(name in done.out for name in CONTESTANTS)
    assert "It looks linear" in done.out


def test_rows_without_labels_are_refused(call, tmp_path):
    (tmp_path / "in.csv").write_text("1,2\n3,4\n" * 20)
    done = call("explore", tmp_path / "in.csv", "--label", "none")
    assert done.code == 1
    assert "has no labels" in done.err
