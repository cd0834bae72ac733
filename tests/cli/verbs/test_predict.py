"""Predictions are those of the model, from any source, in any form."""

import csv
import io
import json
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler

from polyplane import AMMClassifier, SoftPlanesClassifier, read
from polyplane.cli.failures import BAD_CALL, BAD_INPUT
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import SavedModel, load, write_model
from tests.cli.documented import check, keys_of


def expected(files, model, X):
    return load(files / model).predict(X).tolist()


def test_a_label_a_line(call, files, rows):
    done = call("predict", files / "named.model", files / "rows.csv")
    assert done.code == 0
    assert done.out.splitlines() == expected(files, "named.model", rows[0])


@pytest.mark.parametrize("columns", ["a,b,c,d,e", "e,d,c,b,a", "a,b,extra,c,d,e"])
def test_columns_are_found_by_name_and_need_no_label(columns, call, files, rows, tmp_path):
    X, names = rows[0], columns.split(",")
    table = np.column_stack([X[:, "abcde".index(n)] if n in "abcde" else X[:, 0] for n in names])
    path = tmp_path / "new.csv"
    np.savetxt(path, table, delimiter=",", header=columns, comments="", fmt="%g")
    done = call("predict", files / "named.model", path)
    assert done.out.splitlines() == expected(files, "named.model", X)


def test_scores_and_planes_are_columns_behind_the_label(call, files, rows):
    done = call("predict", files / "numbered.model", files / "rows.libsvm", "--scores", "--planes")
    header, *lines = csv.reader(io.StringIO(done.out))
    assert header == ["label", "plane", "score_0", "score_1", "score_2"]
    model, X = load(files / "numbered.model"), rows[0]
    assert [int(line[0]) for line in lines] == model.predict(X).tolist()
    assert [int(line[1]) for line in lines] == model.assign(X).tolist()
    scores = np.array([line[2:] for line in lines], np.float32)
    assert np.allclose(scores, model.decision_function(X), rtol=1e-6)


def test_of_two_classes_the_score_is_the_second_ones_lead(call, rows, tmp_path):
    X, y = rows[0], np.where(rows[1] == 0, "no", "yes, it is")
    model = AMMClassifier(random_state=0, max_iter=2).fit(X, y)
    write_model(SavedModel(model), tmp_path / "two.model")
    write(tmp_path / "rows.npy", [Chunk(X, np.empty(0))])
    done = call("predict", tmp_path / "two.model", tmp_path / "rows.npy", "--scores")
    header, *lines = csv.reader(io.StringIO(done.out))
    assert header == ["label", "score_yes, it is"]
    assert [line[0] for line in lines] == model.predict(X).tolist()
    assert np.allclose([float(line[1]) for line in lines], model.decision_function(X), rtol=1e-6)


def test_json_is_an_object_a_line(call, files, rows):
    done = call(
        "predict", files / "named.model", files / "rows.csv", "--json", "--scores", "--planes"
    )
    found = [json.loads(line) for line in done.out.splitlines()]
    keys, _ = keys_of("predict")
    assert all(set(one) == keys - {"probabilities"} for one in found)
    assert [one["label"] for one in found] == expected(files, "named.model", rows[0])
    assert set(found[0]["scores"]) == {"red", "green", "blue"}
    plain = call("predict", files / "named.model", files / "rows.csv", "--json")
    assert set(json.loads(plain.out.splitlines()[0])) == {"label"}


def test_a_file_is_written_whole(call, files, rows, tmp_path):
    out = tmp_path / "labels.txt"
    done = call("predict", files / "named.model", files / "rows.csv", "-o", out, "--json")
    found = check("predict -o", done.out)
    assert found == {"rows": len(rows[0]), "skipped": 0, "output": str(out)}
    assert out.read_text().splitlines() == expected(files, "named.model", rows[0])
    assert os.listdir(tmp_path) == ["labels.txt"]


def test_a_failure_on_the_way_leaves_the_old_file(call, files, tmp_path):
    out, bad = tmp_path / "labels.txt", tmp_path / "bad.csv"
    out.write_text("old")
    bad.write_text("a,b,c,d,e\n1,2,3,4,5\n1,2,x,4,5\n")
    done = call("predict", files / "named.model", bad, "-o", out)
    assert (done.code, out.read_text()) == (BAD_INPUT, "old")
    assert "line 3, column 3" in done.err
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "labels.txt"]
    done = call("predict", files / "named.model", bad, "--on-bad", "skip")
    assert len(done.out.splitlines()) == 1
    assert "1 rows could not be read" in done.err


def test_narrow_rows_are_widened_and_wide_ones_refused(call, files, tmp_path):
    (tmp_path / "narrow.libsvm").write_text("0 1:1 2:3\n1 1:2\n")
    done = call("predict", files / "numbered.model", tmp_path / "narrow.libsvm")
    X = np.array([[1, 3, 0, 0, 0], [2, 0, 0, 0, 0]], np.float32)
    assert [int(line) for line in done.out.splitlines()] == expected(files, "numbered.model", X)
    (tmp_path / "wide.libsvm").write_text("0 1:1 2:3\n1 9:2\n")
    done = call("predict", files / "numbered.model", tmp_path / "wide.libsvm")
    assert done.code == BAD_INPUT
    assert "has a column 9 that the model has never seen, whose last is 5" in done.err


def test_a_table_of_another_width_gets_a_hint(call, files, tmp_path):
    (tmp_path / "few.csv").write_text("1,2,3,4,5\n2,3,4,5,6\n")
    done = call("predict", files / "numbered.model", tmp_path / "few.csv")
    assert done.code == BAD_INPUT
    assert "rows of 4 columns, expected 5" in done.err
    assert "--label none" in done.err
    done = call("predict", files / "numbered.model", tmp_path / "few.csv", "--label", "none")
    assert done.code == 0


def test_rows_are_scaled_as_in_training(call, files, rows, tmp_path):
    X, y = rows
    scaler = MaxAbsScaler().fit(X)
    model = AMMClassifier(random_state=0, max_iter=2).fit(scaler.transform(X), y)
    write_model(SavedModel(model, scaler=scaler), tmp_path / "scaled.model")
    done = call("predict", tmp_path / "scaled.model", files / "rows.libsvm", "--planes")
    lines = list(csv.reader(io.StringIO(done.out)))[1:]
    assert [int(line[0]) for line in lines] == model.predict(scaler.transform(X)).tolist()
    assert [int(line[1]) for line in lines] == model.assign(scaler.transform(X)).tolist()


def test_probabilities_are_columns_of_their_own(call, probable, files):
    model, X = load(probable / "three.model"), probable_rows(files)
    done = call("predict", probable / "three.model", files / "rows.libsvm", "--proba", "--scores")
    header, *lines = csv.reader(io.StringIO(done.out))
    assert header == ["label", *(f"score_{k}" for k in range(3)),
                      *(f"probability_{k}" for k in range(3))]  # fmt: skip
    assert [int(line[0]) for line in lines] == model.predict(X).tolist()
    found = np.array([line[4:] for line in lines], float)
    assert np.allclose(found, model.predict_proba(X), rtol=1e-6)
    done = call("predict", probable / "three.model", files / "rows.libsvm", "--proba", "--json")
    objects = [json.loads(line) for line in done.out.splitlines()]
    assert all(set(one) == {"label", "probabilities"} for one in objects)
    found = np.array([[one["probabilities"][k] for k in "012"] for one in objects])
    assert np.allclose(found, model.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.9, 1.0])
def test_a_threshold_says_when_a_class_is_positive(threshold, call, probable, files):
    model, X = load(probable / "two.model"), probable_rows(files)
    words = "predict", probable / "two.model", files / "rows.libsvm", "--threshold", threshold
    done = call(*words)
    is_positive = model.predict_proba(X)[:, 1] >= threshold
    assert done.out.splitlines() == np.where(is_positive, "yes", "no").tolist()
    assert f"The positive class is yes, predicted from probability {threshold:g} on." in done.err
    done = call(*words, "--positive", "no")
    is_positive = model.predict_proba(X)[:, 0] >= threshold
    assert done.out.splitlines() == np.where(is_positive, "no", "yes").tolist()
    assert "The positive class is no" in done.err


@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        ("three.model", ["--threshold", 0.5], "--threshold is about two classes, and there are 3"),
        ("two.model", ["--threshold", 1.5], "--threshold is 1.5, expected a probability"),
        ("two.model", ["--threshold", "nan"], "expected a probability from 0 to 1"),
        ("two.model", ["--threshold", 0.5, "--positive", "maybe"], "expected one of no, yes"),
        ("two.model", ["--positive", "no"], "give both, or neither"),
        ("hinge.model", ["--threshold", 0.5], "AMMClassifier, which has no probabilities"),
        ("hinge.model", ["--proba"], "AMMClassifier, which has no probabilities"),
    ],
)
def test_probabilities_that_are_not_there_are_refused(model, words, message, call, probable, files):
    done = call("predict", probable / model, files / "rows.libsvm", *words)
    assert done.code == BAD_CALL
    assert message in done.err


def probable_rows(files):
    return read(files / "rows.libsvm")[0]


def test_what_cannot_be_said_is_refused(call, files, tmp_path):
    done = call("predict", files / "kernel.model", files / "rows.libsvm", "--planes")
    assert done.code == BAD_CALL
    assert "HullerClassifier, which has no planes" in done.err
    done = call("predict", files / "named.model", files / "rows.csv", "-o", tmp_path / "x.parquet")
    assert done.code == BAD_CALL
    assert "predictions are text" in done.err
    assert (
        call("predict", files / "named.model", files / "rows.csv", "--jobs", "0").code == BAD_CALL
    )


def test_every_machine_predicts(call, files, rows):
    done = call("predict", files / "kernel.model", files / "rows.libsvm", "--jobs", "2")
    assert [int(k) for k in done.out.split()] == expected(files, "kernel.model", rows[0])


@pytest.mark.compiled
def test_chunks_do_not_matter(call, tmp_path):
    generator = np.random.default_rng(1)
    X = sp.random_array((20_000, 30), density=0.2, random_state=generator, dtype=np.float32).tocsr()
    y = np.asarray(X[:, [0]].toarray() > X[:, [1]].toarray()).ravel().astype(np.int64)
    set_ = {"n_planes": 2, "start_scale": 3.0, "step_size": 0.3, "columns": "plain", "max_iter": 1,
            }  # fmt: skip
    model = SoftPlanesClassifier(random_state=0, **set_).fit(X[:500], y[:500])
    write_model(SavedModel(model), tmp_path / "m.model")
    write(tmp_path / "rows.libsvm.gz", [Chunk(sp.csr_matrix(X), y)])
    done = call("predict", tmp_path / "m.model", tmp_path / "rows.libsvm.gz")
    assert [int(k) for k in done.out.split()] == model.predict(X).tolist()
