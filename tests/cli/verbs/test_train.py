"""`polyplane train` as a user calls it: files in, a model out, stopped and resumed on the way."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import polyplane as pp
from polyplane.cli.main import main
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import read_model
from tests.cli.documented import check
from tests.cli.verbs import training
from tests.cli.verbs.training import call, written_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return written_files(tmp_path_factory.mktemp("rows"))


def json_of(capsys, *words):
    return training.json_of(capsys, *words)[0]


def test_a_model_is_trained_tested_and_written(files, tmp_path, capsys):
    path = tmp_path / "digits.model"
    found = json_of(
        capsys, "train", files / "train.libsvm", "--test", files / "test.libsvm", "-a", "amm",
        "--model", path, "--seed", 3, "--set", "max_iter=4", "--set", "alpha=1e-3",
    )  # fmt: skip
    model = pp.AMMClassifier(alpha=1e-3, max_iter=4, random_state=3)
    X, y = pp.read(files / "train.libsvm")
    X_test, y_test = pp.read(files / "test.libsvm", n_features=X.shape[1])
    model.fit(X, y)
    assert found["test_error"] == np.mean(model.predict(X_test) != y_test)
    assert found["test_rows"] == len(y_test)
    assert found["rows"] == 1200
    assert found["planes"] == model.n_planes_ == sum(found["per_class"])
    assert found["passes"] == 4
    assert found["model_bytes"] == path.stat().st_size
    np.testing.assert_array_equal(pp.load(path).decision_function(X), model.decision_function(X))


def test_a_test_says_what_evaluate_says(files, tmp_path, capsys):
    path = tmp_path / "model"
    (tmp_path / "half.csv").write_text((files / "table.csv").read_text()[:2000].rpartition("\n")[0])
    chosen = ["--threshold", 0.3, "--positive", "no"]
    found = json_of(
        capsys, "train", files / "table.csv", "--test", tmp_path / "half.csv", "-m", path,
        "-a", "soft-planes", "--set", "max_iter=2", *chosen,
    )  # fmt: skip
    code, out, err = call(capsys, "evaluate", path, tmp_path / "half.csv", *chosen, "--json")
    assert code == 0, err
    evaluated = check("evaluate", out)
    assert found["test"].items() <= evaluated.items()
    assert evaluated.keys() - found["test"].keys() == {"planes", "planes_used", "skipped"}
    assert found["test"]["error"] == found["test_error"]
    words = ["train", files / "table.csv", "--test", tmp_path / "half.csv", "-a", "soft-planes"]
    shown = call(capsys, *words, "--set", "max_iter=1", "--set", "columns=plain")[1]
    for title in ("Confusions", "log-loss", "Calibration of the probability of yes"):
        assert title in shown


def test_words_for_people(files, tmp_path, capsys):
    code, out, err = call(
        capsys, "train", files / "train.libsvm", "-a", "huller", "-m", tmp_path / "model"
    )
    assert code == 0
    for word in ("HullerClassifier", "1,200 rows, 64", "support vectors", "rows/s", "model"):
        assert word in out
    assert "Reading" in err
    assert call(capsys, "train", files / "train.libsvm", "-a", "pegasos", "--quiet")[2] == ""


@pytest.mark.parametrize("scale", ["maxabs", "standard"])
@pytest.mark.parametrize("stream", [[], ["--stream", "--chunk-rows", "300"]])
def test_scaling_is_part_of_the_model(files, tmp_path, capsys, scale, stream):
    path = tmp_path / "model"
    found = json_of(
        capsys, "train", files / "train.libsvm", "--test", files / "test.libsvm", "-a", "amm",
        "-m", path, "--scale", scale, "--seed", 1, *stream,
    )  # fmt: skip
    X_test, y_test = pp.read(files / "test.libsvm", n_features=found["features"])
    model = pp.load(path)
    assert np.mean(model.predict(X_test) != y_test) == found["test_error"] < 0.2
    X, _ = pp.read(files / "train.libsvm")
    scaled = model[0].transform(X)
    if scale == "maxabs":
        assert abs(scaled).max() == pytest.approx(1)
    else:
        spread = scaled.toarray().std(axis=0)
        assert spread[spread > 0] == pytest.approx(1, abs=1e-3)


def test_a_table_keeps_its_columns(files, tmp_path, capsys):
    path = tmp_path / "model"
    json_of(capsys, "train", files / "table.csv", "-m", path, "-a", "mm", "--seed", 1)
    saved = read_model(path)
    assert saved.layout.feature_names == ["age", "town=Ulm", "town=Bonn", "town=Kiel"]
    again = tmp_path / "again.csv"
    again.write_text("town,age\nKiel,1\nParis,2\n")
    code, out, _ = call(capsys, "predict", path, again)
    assert code == 0
    assert len(out.split()) >= 2


def test_a_stream_gives_the_model_of_python(files, tmp_path, capsys):
    found = json_of(
        capsys, "train", files / "train.libsvm", "--stream", "--chunk-rows", 256, "-a", "amm",
        "--set", "max_iter=2", "--seed", 5, "-m", tmp_path / "model",
    )  # fmt: skip
    rows = pp.stream(files / "train.libsvm", chunk_rows=256)
    model = pp.AMMClassifier(max_iter=2, random_state=5).fit(rows)
    X, _ = pp.read(files / "train.libsvm")
    loaded = pp.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert found["rows"] == 1200


@pytest.mark.parametrize("stream", [[], ["--stream", "--chunk-rows", "100"]])
def test_checkpoints_change_nothing(files, tmp_path, capsys, stream):
    words = ["train", files / "train.libsvm", "-a", "amm", "--set", "max_iter=3", *stream]
    words += ["--seed", 5]
    json_of(capsys, *words, "-m", tmp_path / "plain")
    found = json_of(capsys, *words, "-m", tmp_path / "kept", "--checkpoint", 500)
    assert found["checkpoints"] >= 4
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_finished_model_learns_more(files, tmp_path, capsys):
    path = tmp_path / "model"
    words = ["train", files / "train.libsvm"]
    json_of(capsys, *words, "-a", "amm", "--set", "max_iter=2", "--seed", 5, "-m", path)
    found = json_of(capsys, *words, "--resume", path, "--set", "max_iter=3")
    assert found["steps"] == 5 * 1200
    assert pp.load(path).n_steps_ == 5 * 1200


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["no-such-file.csv"], 1, "no-such-file.csv"),
        (["train.libsvm", "--checkpoint", "100"], 2, "--checkpoint needs a file"),
        (["train.libsvm", "-m", "."], 2, "is a folder"),
        (["train.libsvm", "-m", "no-folder/model"], 2, "no such folder"),
        (["train.libsvm", "-a", "amm", "--set", "alpha=-1"], 2, "alpha must be"),
        (["train.libsvm", "-a", "nothing"], 2, "nothing"),
        (["train.libsvm", "--set", "entropy=0.5", "-a", "amm"], 2, "entropy"),
        (["train.libsvm", "-a", "amm", "--stream", "--set", "alpha=auto"], 1, "alpha"),
        (["train.libsvm", "--resume", "train.libsvm"], 1, "is not a model file"),
        (["train.libsvm", "--threshold", "0.5"], 2, "--threshold is about test rows"),
        (
            ["train.libsvm", "--test", "train.libsvm", "-a", "amm", "--threshold", "0.5"],
            2,
            "no probabilities",
        ),
        (["train.libsvm", "--test", "train.libsvm", "--threshold", "0.5"], 2, "there are 10"),
        (["age.csv"], 1, "different numbers for labels"),
        (["one.csv"], 1, "has only the label 2"),
    ],
)
def test_errors_are_one_sentence(files, tmp_path, capsys, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    os.symlink(files / "train.libsvm", "train.libsvm")
    numbers = "\n".join(f"{k},{k * k}" for k in range(300))
    (tmp_path / "age.csv").write_text(f"size,age\n{numbers}\n")
    (tmp_path / "one.csv").write_text("a,b\n1,2\n2,2\n")
    found, out, err = call(capsys, "train", *words, "--quiet")
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == ["age.csv", "one.csv", "train.libsvm"]


# ---- processes that are stopped ----------------------------------------------------------

pytestmark = pytest.mark.compiled


def started(*words, **options):
    command = [sys.executable, "-m", "polyplane", *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            **options)  # fmt: skip


def wait_for(path, process):
    deadline = time.monotonic() + 300
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


LONG = ["-a", "amm", "--seed", "7", "--stream", "--chunk-rows", "100", "--set", "shuffle=true"]


def test_after_kill_9_the_training_resumes_to_the_same_model(files, tmp_path, capsys):
    epochs = ["--set", "max_iter=60"]
    json_of(capsys, "train", files / "train.libsvm", *LONG, *epochs, "-m", tmp_path / "whole")
    path = tmp_path / "killed"
    words = ["train", files / "train.libsvm", *LONG, *epochs, "-m", path, "--checkpoint", 1000]
    process = started(*words)
    wait_for(path, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    saved = read_model(path)
    assert saved.training["finished"] is False
    assert 0 <= saved.estimator.n_iter_ < 60
    code, _, err = call(capsys, "train", files / "train.libsvm", "--resume", path)
    assert code == 0, err
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_ctrl_c_saves_the_model_and_says_how_to_go_on(files, tmp_path, capsys, number):
    path = tmp_path / "stopped"
    words = ["train", files / "train.libsvm", "-a", "amm", "--seed", 7, "-m", path]
    process = started(*words, "--set", "max_iter=100000", "--checkpoint", 2000)
    wait_for(path, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert out == ""
    assert f"--resume {path}" in err
    assert "Traceback" not in err
    n_passes = read_model(path).estimator.n_iter_
    assert n_passes < 100_000
    code, _, err = call(
        capsys, "train", files / "train.libsvm", "--resume", path, "--set", "alpha=0.5", "--quiet"
    )
    assert code == 2
    assert "alpha cannot change" in err


def test_where_indices_start_is_remembered(tmp_path, capsys):
    """A file from 0 whose rows do not use feature 0 reads like one from 1."""
    rows = [f"{k % 2} 0:{k % 3} {1 + k % 2}:1" for k in range(40)]
    (tmp_path / "train.libsvm").write_text("\n".join(rows))
    json_of(capsys, "train", tmp_path / "train.libsvm", "-a", "mm", "-m", tmp_path / "model",
            "--seed", 1)  # fmt: skip
    (tmp_path / "new.libsvm").write_text("0 1:1\n1 2:1\n")
    code, out, _ = call(capsys, "predict", tmp_path / "model", tmp_path / "new.libsvm")
    assert (code, out.split()) == (0, ["0", "1"])
    code, _, err = call(
        capsys, "predict", tmp_path / "model", tmp_path / "new.libsvm", "--base", 1, "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert (tmp_path / "out").read_text().split() != ["0", "1"]


@pytest.mark.parametrize("stream", [[], ["--stream", "--chunk-rows", "100"]])
@pytest.mark.parametrize("algorithm", ["amm", "huller", "polyplane", "pegasos"])
def test_no_error_of_coin_flips_is_low(algorithm, stream, tmp_path, capsys):
    """An error that is shown without test rows is one of rows that were new."""
    generator = np.random.default_rng(0)
    X, y = generator.random((400, 3)), generator.integers(0, 2, 400)
    path = tmp_path / "coins.csv"
    write(path, [Chunk(X.astype(np.float32), y)])
    found = json_of(capsys, "train", path, "-a", algorithm, "--seed", 0, *stream)
    if algorithm == "polyplane" and not stream:
        assert found["progressive_error"] is None  # it starts from these rows
    else:
        assert found["progressive_error"] > 0.4
        assert found["progressive_rows"] <= 400


def test_a_training_that_goes_on_shows_no_error_of_rows_it_may_have_met(files, tmp_path, capsys):
    model = tmp_path / "m.model"
    json_of(capsys, "train", files / "train.libsvm", "-a", "amm", "-m", model)
    found = json_of(capsys, "train", files / "train.libsvm", "--resume", model)
    assert found["progressive_error"] is None


def test_what_was_set_is_not_reported_as_found(files, tmp_path, capsys):
    model = tmp_path / "m.model"
    found = json_of(
        capsys, "train", files / "train.libsvm", "-a", "samm", "--set", "mu=auto",
        "--set", "alpha=0.01", "-m", model,
    )  # fmt: skip
    assert set(found["settings"]) == {"mu"}
    main(["info", str(model), "--json"])
    assert set(json.loads(capsys.readouterr().out)["found"]) == {"mu"}


def test_the_flagship_says_what_to_expect(files, tmp_path, capsys):
    model = tmp_path / "m.model"
    words = ["train", str(files / "train.libsvm"), "--seed", "0", "-m", str(model)]
    found = json_of(capsys, *words)
    fitted = pp.load(model)
    assert found["expected"] == fitted.expected_.to_dict()
    assert [one["recipe"] for one in found["trials"]] == fitted.trials_["recipe"].tolist()
    main(words)
    said = capsys.readouterr().out
    assert f"error {fitted.expected_.error:.1%}" in said
    assert "recipes" in said
    main(["info", str(model)])
    assert f"expected on new rows: error {fitted.expected_.error:.1%}" in capsys.readouterr().out
