"""Tuning tries what an algorithm has, and says what it found as options."""

import json
import shlex

import numpy as np
import pytest

from polyplane.cli.failures import BAD_CALL
from polyplane.cli.input.estimators import allows, estimator_class
from polyplane.cli.options.algorithms import algorithms
from polyplane.cli.verbs.tune import usual_values
from polyplane.data.chunks import Chunk
from polyplane.data.sets.shapes import checkerboard
from polyplane.data.writing import write
from polyplane.report.metrics import METRICS
from tests.cli.documented import check


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "board.csv"
    write(path, [Chunk(*checkerboard(400, 0.02))])
    return path


def test_best_settings_are_options_that_train_takes(call, board):
    words = ["tune", board, "-a", "amm", "--try", "alpha=1e-2,1e-4", "--try", "epochs=1,4",
             "--average", "--json", "--seed", 3]  # fmt: skip
    found = check("tune", call(*words).out)
    tried = [(one["parameter"], one["value"]) for one in found["trials"]]
    assert tried == [("alpha", 0.01), ("alpha", 1e-4), ("max_iter", 1), ("max_iter", 4)]
    by_alpha = {one["value"]: one["error"] for one in found["trials"][:2]}
    assert found["best"]["alpha"] == min(by_alpha, key=by_alpha.get)
    assert found["error"] == min(one["error"] for one in found["trials"][2:])
    options = shlex.split(found["options"])
    assert {"--average", "--algorithm", "--alpha", "--epochs"} <= set(options)
    assert call(*words).out.partition('"trials"')[0].count(found["options"]) == 1


def test_table_curve_and_command_are_shown(call, board):
    words = ["tune", board, "-a", "amm", "--try", "alpha=1e-2,1e-4", "--folds", 2, "--rows", 200]
    done = call(*words, "--scale", "maxabs", "--epochs", 1)
    assert "amm on 200 of 400 rows" in done.out
    assert "--alpha" in done.out
    assert done.out.count("●") == 2
    last = done.out.splitlines()[-1]
    assert last.startswith(f"polyplane train {board} --algorithm amm --epochs 1 --alpha")
    assert last.endswith("--scale maxabs")


@pytest.mark.parametrize("metric", METRICS)
def test_the_metric_says_what_is_best(metric, call, board):
    words = ["tune", board, "-a", "polyplane", "--no-search", "--try", "n-planes=1,2,6",
             "--metric", metric, "--epochs", 3, "--folds", 2, "--rows", 300]  # fmt: skip
    found = check("tune", call(*words, "--json").out)
    key = metric.replace("-", "_")
    values = {one["value"]: METRICS[metric] * one[key] for one in found["trials"]}
    assert found["best"]["n_planes"] == min(values, key=values.get)
    assert (found["metric"], found["value"]) == (metric, METRICS[metric] * min(values.values()))
    assert found["evaluation"][key] == found["value"]
    shown = call(*words, "--threshold", 0.3).out
    assert f"{metric} on held-out rows decides" in shown
    for title in ("The best of them, on held-out rows", "Calibration", "from probability 0.3 on"):
        assert title in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "log-loss"], "--metric log-loss is about probabilities, which amm has not"),
        (["--metric", "f1"], "--metric is 'f1', expected one of error, log-loss"),
        (["--threshold", 0.5], "AMMClassifier, which has no probabilities"),
        (["--positive", "x"], "--positive is 'x', expected one of"),
    ],
)
def test_metrics_that_a_machine_does_not_have_are_refused(words, message, call, board):
    done = call("tune", board, "-a", "amm", "--try", "alpha=1e-2", *words)
    assert done.code == BAD_CALL
    assert message in done.err


def test_machines_without_probabilities_are_ranked_by_scores(call, board):
    words = ["tune", board, "-a", "amm", "--try", "alpha=1e-2,1e-4", "--metric", "auc"]
    found = check("tune", call(*words, "--json").out)
    assert found["value"] == max(one["auc"] for one in found["trials"])
    assert {one["log_loss"] for one in found["trials"]} == {None}


@pytest.mark.parametrize("name", algorithms())
def test_usual_values_are_allowed_and_hold_the_default(name):
    algorithm, kind = algorithms()[name], estimator_class(name)
    sample = Chunk(np.eye(4, dtype=np.float32), np.arange(4))
    grid = usual_values(algorithm, {}, sample)
    assert grid or name == "kernel-perceptron"
    for key, values in grid.items():
        assert all(allows(kind, key, value) for value in values)
        default = algorithm.parameters[key].default
        assert default in values or default == "scale"
    assert "alpha" not in usual_values(algorithm, {"alpha": 1.0}, sample)


def test_each_algorithm_is_tuned_by_its_own_parameters():
    sample = Chunk(np.eye(4, dtype=np.float32), np.arange(4))
    expected = {
        "amm": {"alpha"}, "cpm": {"alpha", "n_planes", "entropy"}, "samm": {"alpha", "mu"},
        "huller": {"gamma", "C"}, "kernel-perceptron": {"gamma"},
    }  # fmt: skip
    for name, parameters in expected.items():
        assert set(usual_values(algorithms()[name], {}, sample)) == parameters
    factors = np.array(usual_values(algorithms()["huller"], {}, sample)["gamma"])
    variance = np.eye(4).var()
    assert np.allclose(factors[2], 1 / (4 * variance), rtol=0.05)


@pytest.mark.compiled
def test_the_command_that_is_printed_can_be_run(call, tmp_path):
    """Options of reading and the seed are part of it: without them the rows are others."""
    path = tmp_path / "my rows.csv"
    lines = [
        f"{k % 5};{'' if k % 9 == 0 else k % 3};{'yes' if k % 5 > 2 else 'no'};{k}"
        for k in range(90)
    ]
    path.write_text("\n".join(["a;b;bought;id", *lines]))
    done = call(
        "tune", path, "--label", "bought", "--drop", "id", "--missing", "zero", "--seed", 3,
        "--scale", "maxabs", "-a", "amm", "--try", "alpha=0.1,0.01",
    )  # fmt: skip
    command = shlex.split(done.out.strip().splitlines()[-1])
    assert command[:3] == ["polyplane", "train", str(path)]
    again = call(*command[1:], "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["classes"] == ["no", "yes"]
    for words in ("--label bought", "--drop id", "--missing zero", "--seed 3", "--scale maxabs"):
        assert words in " ".join(command)
