"""Errors are counted as scikit-learn counts them."""

import json

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)

from polyplane.cli.failures import BAD_CALL, BAD_INPUT
from polyplane.estimator.files.saving import load
from tests.cli.documented import check


def test_numbers_are_those_of_scikit_learn(call, files, rows):
    X, y = rows
    done = call("evaluate", files / "numbered.model", files / "rows.libsvm", "--json")
    found = check("evaluate", done.out)
    model = load(files / "numbered.model")
    predicted = model.predict(X)
    assert (found["rows"], found["errors"]) == (y.size, int((predicted != y).sum()))
    assert found["confusion"] == confusion_matrix(y, predicted).tolist()
    assert found["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    expected = precision_recall_fscore_support(y, predicted)
    for name, values in zip(("precision", "recall", "f1", "rows"), expected, strict=True):
        assert [one[name] for one in found["per_class"]] == pytest.approx(values.tolist())
    assert found["planes"] == model.n_planes_
    assert found["planes_used"] == np.unique(model.assign(X)).size
    share = found["error"]
    assert found["standard_error"] == pytest.approx(np.sqrt(share * (1 - share) / y.size))


def test_tables_say_the_same(call, files):
    done = call("evaluate", files / "named.model", files / "rows.csv")
    assert done.code == 0
    for words in ("120 rows", "Confusions", "red", "precision", "planes", "decided rows"):
        assert words in done.out.replace("Planes", "planes")
    kernel = call("evaluate", files / "kernel.model", files / "rows.libsvm")
    assert "decided" not in kernel.out


def test_labels_of_another_type_are_the_same_labels(call, files, tmp_path):
    text = (files / "rows.libsvm").read_text()
    (tmp_path / "floats.libsvm").write_text(text.replace("\n", " # comment\n"))
    plain = call("evaluate", files / "numbered.model", files / "rows.libsvm", "--json")
    as_text = call(
        "evaluate", files / "numbered.model", tmp_path / "floats.libsvm", "--text-labels", "--json"
    )
    assert as_text.out == plain.out


def test_labels_that_the_model_does_not_know_are_errors(call, files, tmp_path):
    (tmp_path / "new.csv").write_text("a,b,c,d,e,label\n1,2,3,0,1,violet\n0,1,2,0,0,violet\n")
    done = call("evaluate", files / "named.model", tmp_path / "new.csv", "--json")
    found = check("evaluate", done.out)
    assert (found["error"], found["classes"][-1]) == (1.0, "violet")
    assert found["per_class"][-1]["recall"] == 0.0
    assert found["per_class"][-1]["precision"] is None


def test_rows_without_labels_are_refused(call, files, tmp_path):
    (tmp_path / "new.csv").write_text("a,b,c,d,e\n1,2,3,0,1\n")
    done = call("evaluate", files / "named.model", tmp_path / "new.csv")
    assert done.code == BAD_INPUT
    assert "has no labels" in done.err


def test_labels_that_the_model_has_never_met_are_remarked_upon(call, files, tmp_path):
    lines = (files / "rows.csv").read_text().splitlines()
    some, none = tmp_path / "some.csv", tmp_path / "none.csv"
    some.write_text("\n".join([*lines[:-1], lines[-1].rpartition(",")[0] + ",pink"]))
    none.write_text("\n".join([lines[0], *(line + "!" for line in lines[1:])]))
    done = call("evaluate", files / "named.model", some)
    assert "1 of 120 rows have labels ('pink') that are not classes of the model" in done.err
    done = call("evaluate", files / "named.model", none)
    assert "none of its labels ('blue!', 'green!', 'red!') is a class of the model" in done.err
    found = check("evaluate", call("evaluate", files / "named.model", none, "--json").out)
    assert found["unknown_labels"] == ["blue!", "green!", "red!"]
    assert (
        "class of the model" not in call("evaluate", files / "named.model", files / "rows.csv").err
    )


def test_probabilities_of_several_classes_are_judged_as_by_scikit_learn(
    call, files, probable, rows
):
    X, y = rows
    done = call("evaluate", probable / "three.model", files / "rows.libsvm", "--json")
    found = check("evaluate", done.out)
    probabilities = load(probable / "three.model").predict_proba(X)
    assert found["log_loss"] == pytest.approx(log_loss(y, probabilities))
    lacks = np.eye(3)[y] - probabilities  # the Brier score of scikit-learn 1.6 knows two classes
    assert found["brier"] == pytest.approx(np.square(lacks).sum(axis=1).mean())
    assert found["auc"] == pytest.approx(roc_auc_score(y, probabilities, multi_class="ovr"))
    assert found["average_precision"] == pytest.approx(average_precision_score(y, probabilities))
    areas = [roc_auc_score(y == k, probabilities[:, k]) for k in range(3)]
    assert [one["auc"] for one in found["per_class"]] == pytest.approx(areas)
    assert sum(one["rows"] for one in found["calibration"]) == y.size == found["scored_rows"]
    assert (found["positive"], found["threshold"], found["ranks_are_exact"]) == (None, None, True)


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_two_classes_at_a_threshold(positive, call, probable, rows):
    X, y = rows
    is_positive = (y == 0) == (positive == "yes")
    done = call("evaluate", probable / "two.model", probable / "words.libsvm", "--text-labels",
                "--threshold", 0.3, "--positive", positive, "--json")  # fmt: skip
    found = check("evaluate", done.out)
    chances = load(probable / "two.model").predict_proba(X)[:, int(positive == "yes")]
    assert found["positive"] == positive
    assert found["auc"] == pytest.approx(roc_auc_score(is_positive, chances))
    assert found["average_precision"] == pytest.approx(
        average_precision_score(is_positive, chances)
    )
    assert found["brier"] == pytest.approx(brier_score_loss(is_positive, chances))
    is_told = chances >= 0.3
    assert found["threshold_error"] == pytest.approx(np.mean(is_told != is_positive))
    counts = confusion_matrix(is_positive, is_told)
    if positive == "no":
        counts = counts[::-1, ::-1]
    assert found["threshold_confusion"] == counts.tolist()


def test_scores_without_probabilities_are_only_ranked(call, probable, rows):
    X, y = rows
    words = "evaluate", probable / "hinge.model", probable / "words.libsvm", "--text-labels"
    found = check("evaluate", call(*words, "--json").out)
    scores = load(probable / "hinge.model").decision_function(X)
    assert found["auc"] == pytest.approx(roc_auc_score(y == 0, scores))
    assert found["average_precision"] == pytest.approx(average_precision_score(y == 0, scores))
    assert (found["log_loss"], found["brier"], found["calibration"]) == (None, None, [])
    shown = call(*words).out
    assert "AUC" in shown
    for word in ("log-loss", "Brier", "Calibration", "nan"):
        assert word not in shown
    refused = call(*words, "--threshold", 0.5)
    assert refused.code == BAD_CALL
    assert "has no probabilities" in refused.err


def test_kernel_machines_predict_as_they_score(call, files, rows):
    X, y = rows
    found = check(
        "evaluate", call("evaluate", files / "kernel.model", files / "rows.libsvm", "--json").out
    )
    model = load(files / "kernel.model")
    assert found["confusion"] == confusion_matrix(y, model.predict(X)).tolist()
    scores = model.decision_function(X)
    areas = [roc_auc_score(y == k, scores[:, k]) for k in range(3)]
    assert [one["auc"] for one in found["per_class"]] == pytest.approx(areas)


def test_probabilities_are_shown_in_tables(call, probable):
    done = call("evaluate", probable / "two.model", probable / "words.libsvm", "--text-labels",
                "--threshold", 0.3)  # fmt: skip
    assert done.code == 0, done.err
    for words in ("log-loss", "Brier score", "AUC", "(ranks: of yes)",
                  "yes from probability 0.3 on: 120 rows", "Calibration of the probability of yes",
                  "0.5 to 0.6"):  # fmt: skip
        assert words in done.out


def test_labels_with_a_dot_in_the_end_are_the_same_and_that_is_said(call, tmp_path):
    rows = [f"{k},{'<=50K' if k < 30 else '>50K'}" for k in range(60)]
    (tmp_path / "train.csv").write_text("\n".join(["x,label", *rows]))
    (tmp_path / "test.csv").write_text("\n".join(["x,label", *(f"{row}." for row in rows)]))
    model = tmp_path / "m.model"
    words = "train", tmp_path / "train.csv", "--test", tmp_path / "test.csv", "--seed", 1
    done = call(*words, "-a", "amm", "--scale", "maxabs", "--model", model, "--json")
    assert done.code == 0, done.err
    assert "count as the classes '<=50K', '>50K', from which they differ by a dot" in done.err
    assert json.loads(done.out)["test"]["unknown_labels"] == []
    done = call("evaluate", model, tmp_path / "test.csv", "--json")
    assert "the labels '<=50K.', '>50K.' count as the classes" in done.err
    assert json.loads(done.out)["unknown_labels"] == []
    same = call("evaluate", model, tmp_path / "train.csv", "--json")
    assert "count as" not in same.err
    assert json.loads(same.out)["confusion"] == json.loads(done.out)["confusion"]
