"""`polyplane train --cluster` as a user calls it: files in, a model out, stopped and resumed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import polyplane as pp
from polyplane.cli.training.cluster_run import interrupts_stop
from polyplane.cli.training.training_run import Stopped
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import read_model
from tests.cli.verbs.training import DIGITS, PIXELS, call, json_of, written_files

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

from distributed import Client, LocalCluster

from polyplane.backends import dask_cluster

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def address():
    """Of a cluster of two processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return written_files(tmp_path_factory.mktemp("rows"))


def test_one_learner_is_train_without_a_cluster(files, tmp_path, capsys, address):
    words = ["train", files / "train.libsvm", "-a", "amm", "--set", "max_iter=3", "--seed", 1]
    test = ["--test", files / "train.libsvm"]
    here, _ = json_of(capsys, *words, *test, "-m", tmp_path / "here")
    there, err = json_of(
        capsys, *words, *test, "-m", tmp_path / "there", "--cluster", address, "--learners", 1
    )
    for name in ("rows", "features", "classes", "passes", "steps", "planes", "test_error"):
        assert here[name] == there[name], name
    models = [pp.load(tmp_path / name) for name in ("here", "there")]
    np.testing.assert_array_equal(*(model.decision_function(PIXELS) for model in models))
    assert "dashboard: http" in err


def test_tables_keep_their_columns(files, tmp_path, capsys, address):
    path = tmp_path / "model"
    settings = "-a", "soft-planes", "--set", "max_iter=3", "--seed", 1
    words = ["train", files / "table.csv", *settings, "-m", path]
    found, _ = json_of(capsys, *words, "--cluster", address)
    here, _ = json_of(capsys, *words)
    for name in ("rows", "features", "table", "classes", "passes"):
        assert found[name] == here[name], name
    assert found["label"]["name"] == "bought"
    json_of(capsys, *words, "--cluster", address)
    assert read_model(path).layout.feature_names == ["age", "town=Ulm", "town=Bonn", "town=Kiel"]
    code, out, _ = call(capsys, "predict", path, files / "table.csv")
    assert (code, len(out.split())) == (0, 600)


def test_a_finished_model_makes_more_rounds(files, tmp_path, capsys, address):
    path, words = tmp_path / "model", ["train", files / "train.libsvm", "--cluster", address]
    json_of(
        capsys, *words, "-a", "amm", "--set", "max_iter=2", "--seed", 5, "-m", path, "--learners", 1
    )
    found, _ = json_of(capsys, *words, "--resume", path, "--set", "max_iter=3", "--learners", 1)
    assert (found["passes"], found["steps"]) == (5, 5 * 1200)


def test_rounds_of_several_passes_are_counted_as_passes(tmp_path, capsys, address):
    paths = [tmp_path / f"{k}.libsvm" for k in range(2)]  # a learner each
    for k, path in enumerate(paths):
        write(path, [Chunk(PIXELS[k:1200:2], DIGITS[k:1200:2])])
    words = "train", *paths, "--cluster", address
    made = "-a", "amm", "--seed", 5, "-m", tmp_path / "model"
    found, _ = json_of(capsys, *words, *made, "--set", "max_iter=30", "--learners", 2)
    assert found["rows"] == pytest.approx(1200, abs=2)
    assert found["passes"] == 30
    more = "--resume", tmp_path / "model", "--set", "max_iter=30", "--learners", 2
    again, _ = json_of(capsys, *words, *more)
    assert again["rows"] == pytest.approx(1200, abs=2)


def test_a_cascade_is_that_of_python(files, tmp_path, capsys, address):
    words = ["train", files / "train.libsvm", "-a", "lasvm", "--set", "C=5", "--seed", 1]
    path = tmp_path / "model"
    found, _ = json_of(capsys, *words, "--cluster", address, "-m", path)
    with Client(address) as client:
        expected = dask_cluster.fit(
            pp.LaSVMClassifier(C=5, random_state=1), str(files / "train.libsvm"), client=client
        )
    model = pp.load(path)
    np.testing.assert_array_equal(
        model.decision_function(PIXELS), expected.decision_function(PIXELS)
    )
    assert model.evals_result_ == expected.evals_result_
    assert (found["rows"], found["support_vectors"]) == (1200, len(expected.support_))
    n_rounds = len(expected.evals_result_["cascade"]["violators"])
    json_of(capsys, *words[:2], "--cluster", address, "--resume", path)
    assert len(pp.load(path).evals_result_["cascade"]["violators"]) > n_rounds


def test_processes_of_its_own(files, tmp_path, capsys):
    words = ["train", files / "train.libsvm", "-a", "pegasos", "--set", "max_iter=1", "--quiet"]
    found, err = json_of(capsys, *words, "--cluster", "local:1")
    assert found["rows"] == 1200
    assert err == ""


def interrupted(command, path):
    """What a call says that gets Ctrl-C, as all its processes do, once there is a model."""
    process = subprocess.Popen(
        [sys.executable, "-m", "polyplane", *map(str, command)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_at_a_terminal_stops_workers_of_its_own_without_a_word_of_theirs(files, tmp_path):
    path = tmp_path / "model"
    command = ["train", files / "train.libsvm", "--cluster", "local:2", "-a", "amm"]
    command += ["--set", "max_iter=2000"]
    code, out, err = interrupted([*command, "-m", path, "--checkpoint", 5000], path)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert read_model(path).estimator.n_iter_ >= 1


def test_ctrl_c_leaves_the_last_round_to_go_on_from(files, tmp_path, capsys, address):
    path, words = tmp_path / "model", ["train", files / "train.libsvm", "--cluster", address]
    settings = ["-a", "amm", "--seed", 7, "--set", "max_iter=2000"]
    command = [*words, *settings, "-m", path, "--checkpoint", 5000]
    code, out, err = interrupted(command, path)
    assert (code, out) == (130, "")
    assert f"--resume {path} --cluster {address}" in err
    assert "Traceback" not in err
    n_rounds = read_model(path).estimator.n_iter_
    assert 1 <= n_rounds < 2000
    code, _, err = call(capsys, "train", files / "train.libsvm", "--resume", path)
    assert code == 2
    assert "name one with --cluster" in err


class Dying:
    """Gets what its maker asks for while Python lets go of it."""

    def __init__(self, last_act):
        self.last_act = last_act

    def __del__(self):
        self.last_act()


def test_ctrl_c_while_python_lets_go_of_an_object_stops_all_the_same(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(lost.exc_type))

    def work(last_act):
        with interrupts_stop() as stop_if_asked:
            Dying(last_act)
            stop_if_asked()

    with pytest.raises(Stopped):
        work(lambda: signal.raise_signal(signal.SIGINT))
    assert reported == []
    work(lambda: 1 / 0)
    assert reported == [ZeroDivisionError]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["gone.csv", "--cluster", "HERE"], 1, "gone.csv"),
        (["train.libsvm", "--cluster", "nonsense"], 2, "no scheduler answers"),
        (["train.libsvm", "--cluster", "local:0"], 2, "a number of processes"),
        (["train.libsvm", "--cluster", "HERE", "--stream"], 2, "--stream is not for --cluster"),
        (["train.libsvm", "--cluster", "HERE", "--scale", "maxabs"], 2, "--scale is not for"),
        (["-", "--cluster", "HERE"], 2, "A pipe cannot be read"),
        (["train.libsvm", "--learners", "2"], 2, "--learners is about a cluster"),
        (["train.libsvm", "--cluster", "HERE", "--learners", "0"], 2, "expected 1 or more"),
        (["train.libsvm", "--cluster", "HERE", "-a", "gamm"], 2, "polyplane: GAMMClassifier"),
        (["train.libsvm", "--cluster", "HERE", "-a", "kernel-pegasos"], 2, "a cascade needs"),
        (["gone.csv", "--cluster", "local:2"], 1, "there is no such file"),
        (["train.libsvm", "empty.csv", "--cluster", "local:2"], 1, "is empty"),
        (
            ["train.libsvm", "-a", "amm", "--cluster", "HERE", "--set", "early_stopping=true"],
            1,
            "evaluate",
        ),
    ],
)
def test_errors_are_one_sentence(files, capsys, address, monkeypatch, words, code, said):
    monkeypatch.chdir(files)
    if "local:2" in words:
        monkeypatch.delattr("distributed.LocalCluster")  # none is started
    words = [address if word == "HERE" else word for word in words]
    found, out, err = call(capsys, "train", *words, "--quiet")
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_is_lost_stops_the_next_round(
    files, tmp_path, capsys, address, monkeypatch
):
    """Python drops what is raised while it lets go of an object."""

    class Going:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    fit = dask_cluster.fit

    def fit_while_something_goes(*given, **more):
        Going()
        return fit(*given, **more)

    monkeypatch.setattr(dask_cluster, "fit", fit_while_something_goes)
    words = ["train", files / "train.libsvm", "-a", "amm", "--set", "max_iter=3"]
    words += ["--cluster", address]
    code, _, err = call(capsys, *words, "-m", tmp_path / "model")
    assert code == 130, err
