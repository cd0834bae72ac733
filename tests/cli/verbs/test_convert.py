"""Rows stay the same rows in every format."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from polyplane import import_model, load, read
from polyplane.cli.failures import BAD_CALL, BAD_INPUT
from tests.cli.documented import check

NAMES = ["out.libsvm", "out.libsvm.gz", "out.csv", "out.csv.bz2", "out.parquet", "out.arrow",
         "out.npz"]  # fmt: skip


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["rows.csv", "rows.libsvm"])
def test_every_format_to_every_format_and_back(source, name, call, files, tmp_path):
    X, y = read(files / source)
    done = call("convert", files / source, tmp_path / name, "--json")
    found = check("convert", done.out)
    assert (found["rows"], found["features"]) == X.shape
    assert sorted(os.listdir(tmp_path)) == [name]
    back, labels = read(tmp_path / name)
    assert np.array_equal(dense(back), dense(X))
    assert labels.tolist() == y.tolist()
    assert call("convert", tmp_path / name, tmp_path / "again.libsvm").code == 0
    again, labels = read(tmp_path / "again.libsvm")
    assert np.array_equal(dense(again), dense(X))
    assert labels.tolist() == y.tolist()


def test_dense_rows_become_npy_with_labels_beside_it(call, files, tmp_path):
    assert call("convert", files / "rows.csv", tmp_path / "out.npy").code == 0
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "out_y.npy"]
    X, y = read(files / "rows.csv")
    back, labels = read(tmp_path / "out.npy")
    assert np.array_equal(back, X)
    assert labels.tolist() == y.tolist()
    done = call("convert", files / "rows.libsvm", tmp_path / "sparse.npy")
    assert done.code == BAD_CALL
    assert "write npz" in done.err


def test_names_of_columns_are_kept(call, files, tmp_path):
    for name in ("out.csv", "out.parquet", "out.arrow"):
        assert call("convert", files / "rows.csv", tmp_path / name).code == 0
    assert (tmp_path / "out.csv").read_text().startswith("a,b,c,d,e,label\n")
    assert call("convert", tmp_path / "out.parquet", tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()


def test_categories_become_columns_with_names(call, tmp_path):
    (tmp_path / "in.csv").write_text("size,colour,label\n1,red,yes\n2,blue,no\n0,red,no\n")
    assert call("convert", tmp_path / "in.csv", tmp_path / "out.csv").code == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines == ["size,colour=red,colour=blue,label", "1,1,0,yes", "2,0,1,no", "0,1,0,no"]


def test_files_that_grow_wider_are_as_wide_as_the_last(call, tmp_path):
    (tmp_path / "a.libsvm").write_text("1 1:1\n0 2:1\n")
    (tmp_path / "b.libsvm").write_text("1 4:1\n")
    for name in ("out.csv", "out.arrow", "out.npz"):
        assert (
            call("convert", tmp_path / "a.libsvm", tmp_path / "b.libsvm", tmp_path / name).code == 0
        )
        X, y = read(tmp_path / name)
        assert dense(X).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
        assert y.tolist() == [1, 0, 1]


def test_standard_output_takes_text_and_arrow_streams(call, files):
    done = call("convert", files / "rows.csv", "-", "--to", "csv")
    assert done.out == (files / "rows.csv").read_text()
    done = call("convert", files / "rows.csv", "-", "--to", "npz")
    assert done.code == BAD_CALL
    assert "npz cannot be written to a pipe" in done.err


def test_a_failure_leaves_the_old_file(call, files, tmp_path):
    (tmp_path / "bad.libsvm").write_text("1 1:1\n0 2:x\n")
    for name in ("out.csv", "out.parquet", "out.npz", "out.arrow", "out.libsvm"):
        (tmp_path / name).write_text("old")
        done = call("convert", tmp_path / "bad.libsvm", tmp_path / name)
        assert done.code == BAD_INPUT
        assert "line 2" in done.err
        assert (tmp_path / name).read_text() == "old"
    assert len(os.listdir(tmp_path)) == 6


def test_a_place_that_cannot_be_written_is_told(call, files, tmp_path):
    for place in (tmp_path / "absent" / "out.csv", tmp_path):
        done = call("convert", files / "rows.csv", place, "--to", "csv")
        assert done.code == BAD_INPUT
        assert str(place) in done.err


def test_a_device_is_not_replaced_by_a_file(call, files):
    before = os.stat(os.devnull)
    done = call("convert", files / "rows.csv", os.devnull, "--to", "csv")
    assert done.code == BAD_INPUT
    assert "is a pipe or a device" in done.err
    assert os.stat(os.devnull).st_ino == before.st_ino


@pytest.mark.parametrize("name", ["iris_svm.model", "iris_linear.model"])
def test_a_model_of_another_program_becomes_ours(name, call, tmp_path):
    source = Path(__file__).parents[2] / "model" / "foreign" / "files" / name
    done = call("convert", source, tmp_path / "our.model", "--json")
    found = check("convert of a model", done.out)
    loaded, imported = load(tmp_path / "our.model"), import_model(source)
    rows = np.eye(found["features"], dtype=np.float32)
    np.testing.assert_array_equal(loaded.decision_function(rows), imported.decision_function(rows))
    assert call("convert", source, "-").code == BAD_CALL


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_of_a_table_stay_columns_where_text_became_many(form, call, tmp_path):
    towns = ["Ulm", "Bonn", "Kiel"]
    lines = [f"{k % 7},{towns[k % 3]},{'yes' if k % 2 else 'no'}" for k in range(60)]
    source, target = tmp_path / "rows.csv", tmp_path / f"rows.{form}"
    source.write_text("\n".join(["age,town,bought", *lines]))
    assert call("convert", source, target, "--label", "bought").code == 0
    if form == "parquet":
        names = pq.read_schema(target).names
    else:
        with pa.ipc.open_file(target) as file:
            names = file.schema.names
    assert names[0] == "age"
    assert names[-1] == "label"
    assert all("town" in name for name in names[1:-1])
    assert len(names) == 5
    X, y = read(target)
    X_before, y_before = read(source, label="bought")
    np.testing.assert_array_equal(X, X_before.toarray())
    np.testing.assert_array_equal(y, y_before)
