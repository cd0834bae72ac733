"""Errors are counted as scikit-learn counts them."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from polyplane.cli.failures import BAD_INPUT
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
    none.write_text("\n".join([lines[0], *(line + "." for line in lines[1:])]))
    done = call("evaluate", files / "named.model", some)
    assert "1 of 120 rows have labels ('pink') that are not classes of the model" in done.err
    done = call("evaluate", files / "named.model", none)
    assert "none of its labels ('blue.', 'green.', 'red.') is a class of the model" in done.err
    found = check("evaluate", call("evaluate", files / "named.model", none, "--json").out)
    assert found["unknown_labels"] == ["blue.", "green.", "red."]
    assert (
        "class of the model" not in call("evaluate", files / "named.model", files / "rows.csv").err
    )
