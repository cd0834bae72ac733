"""NumPy files: arrays as they were saved, never a pickle, and no belief in what a header says."""

import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.numpy.reader import chunks, labels_path_of

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 2, 1])


def joined(got):
    rows = [chunk.X.toarray() if sp.issparse(chunk.X) else chunk.X for chunk in got]
    return np.concatenate(rows), np.concatenate([chunk.y for chunk in got])


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "uint8", "bool", ">i2", "int64", "float16"]
)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("form", ["npy", "npz", "packed npz"])
def test_matrices_of_any_type_and_order_are_read(tmp_path, dtype, order, form):
    stored = np.asarray(X.astype(dtype), order=order)
    path = tmp_path / f"X.{form[-3:]}"
    if form == "npy":
        np.save(path, stored)
        np.save(tmp_path / "y.npy", Y)
    else:
        {"npz": np.savez, "packed npz": np.savez_compressed}[form](path, X=stored, y=Y)
    got = list(chunks(path, 3))
    assert [chunk.X.shape for chunk in got] == [(3, 3), (1, 3)]
    rows, y = joined(got)
    assert rows.dtype == (np.uint8 if dtype in ("uint8", "bool") else np.float32)
    np.testing.assert_array_equal(rows, X.astype(dtype))
    np.testing.assert_array_equal(y, Y)
    assert all(chunk.X.flags.c_contiguous and chunk.X.flags.writeable for chunk in got)


def test_images_become_rows_and_a_part_is_chosen(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = tmp_path / "m.npz"
    np.savez(path, x_train=images, y_train=Y[:2], x_test=images[:1], y_test=Y[3:])
    (train,), (test,) = chunks(path, 9), chunks(path, 9, part="test")
    np.testing.assert_array_equal(train.X, images.reshape(2, 12))
    assert train.y.tolist() == [0, 1]
    assert test.X.shape == (1, 12)
    assert test.y.tolist() == [1]


@pytest.mark.parametrize("save", [sp.save_npz, lambda path, m: sp.save_npz(path, m, False)])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_are_read_by_rows(tmp_path, save, kind):
    path = tmp_path / "s.npz"
    save(path, kind(X))
    (chunk,) = chunks(path, 9)
    assert chunk.y.shape == (0,)
    np.save(tmp_path / "s_y.npy", Y)
    got = list(chunks(path, 3))
    assert got[0].X.dtype == np.float32
    assert got[0].X.indices.dtype == np.int32
    rows, y = joined(got)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)


def test_labels_may_be_text_a_column_or_another_file(tmp_path):
    np.save(tmp_path / "a.npy", X)
    for labels in (np.array(["p", "q", "r", "s"]), Y[:, None], Y.astype("S1"), Y.astype(">f8")):
        np.save(tmp_path / "other.npy", labels)
        (chunk,) = chunks(tmp_path / "a.npy", 9, labels=tmp_path / "other.npy")
        expected = labels.reshape(-1)
        assert chunk.y.dtype.isnative
        assert (
            chunk.y.tolist()
            == (expected.astype(str) if expected.dtype.kind == "S" else expected).tolist()
        )


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ("X.npy", "y.npy"),
        ("X_train.npy", "y_train.npy"),
        ("mnist_x.npy", "mnist_y.npy"),
        ("digits.npy", "digits_y.npy"),
        ("digits.npz", "digits_labels.npy"),
    ],
)
def test_labels_are_found_by_name(tmp_path, rows, labels):
    assert labels_path_of(tmp_path / rows) is None
    (tmp_path / labels).touch()
    assert labels_path_of(tmp_path / rows) == tmp_path / labels


def test_values_and_labels_that_are_not_finite_are_bad_rows(tmp_path):
    rows = np.array([[1, np.nan], [1, 2], [1e39, 0], [3, 4], [5, 6]])
    np.save(tmp_path / "X.npy", rows)
    np.save(tmp_path / "y.npy", [0, 1, 2, np.nan, 4])
    sp.save_npz(tmp_path / "s.npz", sp.csr_matrix(rows))
    np.save(tmp_path / "s_y.npy", [0, 1, 2, np.nan, 4])
    for name in ("X.npy", "s.npz"):
        with pytest.raises(DataError, match="row 1: found a value that is NaN"):
            list(chunks(tmp_path / name, 9))
        bad = BadRows(skips=True)
        got = list(chunks(tmp_path / name, 2, bad))
        rows_read, y = joined(got)
        np.testing.assert_array_equal(rows_read, [[1, 2], [5, 6]])
        assert y.tolist() == [1, 4]
        assert bad.n_skipped == 3
        assert [chunk.X.shape[0] for chunk in got] == [2]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([[1, None]]), "cannot be read"),
        (np.array(["a"]), "found an array of <U1"),
        (np.zeros(3), r"shape \(3,\), expected a matrix of numbers"),
        (np.zeros((2, 2), complex), "found an array of complex128"),
        (np.zeros((2, 0)), "found rows of 0 values"),
        (np.float64(3), r"shape \(\)"),
        (np.zeros(2, [("a", "f4")]), "found an array of"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["npy", "npz"])
def test_arrays_that_are_no_rows_are_refused(tmp_path, array, words, form):
    path = tmp_path / f"a.{form}"
    np.save(path, array) if form == "npy" else np.savez(path, X=array)
    with pytest.raises(DataError, match=words) as caught:
        list(chunks(path, 9))
    assert caught.value.path == path


def test_labels_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", X)
    for labels, words in (
        (Y[:3], "found 3 labels, expected 4"),
        (np.zeros((4, 2)), "expected one label a row"),
        (np.array(0), "expected one label a row"),
    ):
        np.save(tmp_path / "y.npy", labels)
        with pytest.raises(DataError, match=words) as caught:
            list(chunks(tmp_path / "X.npy", 9))
        assert caught.value.path == tmp_path / "y.npy"


def test_archives_without_rows_say_what_they_hold(tmp_path):
    np.savez(tmp_path / "a.npz", weights=X, bias=Y)
    with pytest.raises(DataError, match="found arrays called bias, weights, expected X and y"):
        list(chunks(tmp_path / "a.npz", 9))
    sp.save_npz(tmp_path / "b.npz", sp.csc_matrix(X))
    with pytest.raises(DataError, match="store it by rows"):
        list(chunks(tmp_path / "b.npz", 9))


@pytest.mark.parametrize(
    "broken",
    [
        {"indices": [0, 9, 1]},
        {"indices": [0, -1, 1]},
        {"indptr": [0, 2, 1, 3]},
        {"indptr": [1, 1, 2, 3]},
        {"indptr": [0, 1, 2, 4]},
        {"shape": [9, 2]},
        {"shape": [3]},
        {"data": [1.0]},
    ],
    ids=str,
)
def test_broken_sparse_matrices_are_refused(tmp_path, broken):
    sound = {"data": [1.0, 2, 3], "indices": [0, 1, 1], "indptr": [0, 1, 2, 3], "shape": [3, 2]}
    for name, arrays in (("a.npz", sound), ("b.npz", sound | broken)):
        np.savez(tmp_path / name, format=b"csr", **arrays)
    assert len(list(chunks(tmp_path / "a.npz", 9))) == 1
    with pytest.raises(DataError, match="cannot be read"):
        list(chunks(tmp_path / "b.npz", 9))


def test_a_file_of_no_rows_yields_nothing(tmp_path):
    np.save(tmp_path / "a.npy", X[:0])
    np.savez(tmp_path / "a.npz", X=X[:0], y=Y[:0])
    assert list(chunks(tmp_path / "a.npy", 9)) == list(chunks(tmp_path / "a.npz", 9)) == []


def test_false_sizes_allocate_nothing(tmp_path):
    np.save(tmp_path / "a.npy", X)
    content = (tmp_path / "a.npy").read_bytes().replace(b"(4, 3), }      ", b"(9999999, 300)}")
    assert b"9999999" in content
    (tmp_path / "b.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("X.npy", content)
    for name in ("b.npy", "b.npz"):
        tracemalloc.start()
        with pytest.raises(DataError, match="cannot be read"):
            list(chunks(tmp_path / name, 1 << 30))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1 << 23


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [0, 4])
def test_bytes_after_an_array_are_refused(tmp_path, order, n_rows):
    np.save(tmp_path / "a.npy", np.array(X[:n_rows], order=order))
    with open(tmp_path / "a.npy", "ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="1 byte follows the array"):
        list(chunks(tmp_path / "a.npy", 2))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.write(tmp_path / "a.npy", "X.npy")
    with pytest.raises(DataError, match="follow"):
        list(chunks(tmp_path / "a.npz", 2))


@pytest.mark.parametrize("name", ["data", "indices", "indptr", "shape", "format"])
def test_bytes_after_a_part_of_a_sparse_matrix_are_refused(tmp_path, name):
    sp.save_npz(tmp_path / "a.npz", sp.csr_matrix(X))
    with (
        zipfile.ZipFile(tmp_path / "a.npz") as whole,
        zipfile.ZipFile(tmp_path / "b.npz", "w") as longer,
    ):
        for member in whole.namelist():
            longer.writestr(member, whole.read(member) + b"xyz" * (member == f"{name}.npy"))
    with pytest.raises(DataError, match="follow"):
        list(chunks(tmp_path / "b.npz", 2))
