"""What is in a file, counted and not believed."""

import numpy as np
import pytest

from polyplane import read
from polyplane.cli.failures import BAD_INPUT
from polyplane.estimator.files.saving import load
from tests.cli.documented import check


def test_rows_are_counted(call, files, rows):
    X, y = rows
    found = check("info of rows", call("info", files / "rows.csv", "--json").out)
    assert (found["kind"], found["rows"], found["features"]) == ("rows", *X.shape)
    assert found["names"] == [*"abcde"]
    counts = {one["label"]: one["rows"] for one in found["classes"]}
    names = np.array(["red", "green", "blue"])[y].tolist()
    assert counts == {name: names.count(name) for name in set(names)}
    assert found["density"] == pytest.approx(np.count_nonzero(X) / X.size)
    assert (found["least"], found["greatest"], found["wants_scaling"]) == (0.0, 3.0, False)
    sparse = check("info of rows", call("info", files / "rows.libsvm", "--json").out)
    assert sparse["density"] == found["density"]
    assert (sparse["least"], sparse["greatest"]) == (0.0, 3.0)
    assert sparse["is_sparse"]


def test_scaling_is_advised_where_columns_differ(call, tmp_path):
    (tmp_path / "in.csv").write_text("a,b,label\n0.1,20000,yes\n0.2,30000,no\n")
    done = call("info", tmp_path / "in.csv")
    assert "--scale maxabs" in done.out
    (tmp_path / "in.csv").write_text("a,b,label\n0.1,0.2,yes\n0.2,0.3,no\n")
    assert "--scale" not in call("info", tmp_path / "in.csv").out


def test_a_model_is_described(call, files):
    found = check("info of a model", call("info", files / "named.model", "--json").out)
    model = load(files / "named.model")
    assert (found["kind"], found["algorithm"]) == ("model", "amm")
    assert (found["size"], found["steps"]) == (model.n_planes_, model.n_steps_)
    assert [one["label"] for one in found["classes"]] == ["blue", "green", "red"]
    assert sum(one["size"] for one in found["classes"]) == model.n_planes_
    assert found["largest_norm"] == pytest.approx(np.linalg.norm(model.planes_, axis=1).max())
    assert found["parameters"]["max_iter"] == 3
    assert found["names"] == [*"abcde"]
    told = call("info", files / "named.model").out
    assert "max_iter" in told


def test_a_kernel_model_has_vectors(call, files):
    found = check("info of a model", call("info", files / "kernel.model", "--json").out)
    assert (found["unit"], found["algorithm"]) == ("vectors", "huller")
    assert found["size"] == load(files / "kernel.model").support_.size
    assert "vectors" in call("info", files / "kernel.model").out


def test_a_damaged_model_is_one_sentence(call, files, tmp_path):
    data = (files / "named.model").read_bytes()
    (tmp_path / "cut.model").write_bytes(data[:-100])
    done = call("info", tmp_path / "cut.model")
    assert done.code == BAD_INPUT
    assert "cut.model" in done.err
    assert done.err.count("\n") == 1


def test_bad_rows_are_counted(call, tmp_path):
    (tmp_path / "in.libsvm").write_text("1 1:1\n0 2:x\n0 1:2\n")
    done = call("info", tmp_path / "in.libsvm", "--on-bad", "skip", "--json")
    found = check("info of rows", done.out)
    assert (found["rows"], found["skipped"]) == (2, 1)
    assert read(tmp_path / "in.libsvm", on_bad="skip")[1].size == 2
