"""Files are written whole or not at all, and read back the same."""

import io
import os

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane import whole_files
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.reading import read, stream
from polyplane.data.writing import WRITTEN, write, write_to
from polyplane.engine.inspection import LARGEST

pytestmark = pytest.mark.loops

X = np.array([[1, 0, 0.1], [0, 9e9, 0], [-0.5, 0, 1e-45], [6, 7, 8]], np.float32)
Y = np.array([1, 0, 1, 2])
TEXT_NAMES = ["rows.libsvm", "rows.svm", "rows.libsvm.gz", "rows.svm.bz2", "rows.libsvm.XZ",
              "rows.svmlight.zst"]  # fmt: skip
CSV_NAMES = ["rows.csv", "rows.csv.gz", "rows.csv.zst"]
TABLE_NAMES = ["rows.parquet", "rows.pq", "rows.arrow", "rows.feather", "rows.npz"]
NAMES = [*TEXT_NAMES, *CSV_NAMES, *TABLE_NAMES]


def pieces(is_sparse=True, y=Y):
    for k in range(0, 4, 2):
        rows = X[k : k + 2]
        yield Chunk(sp.csr_matrix(rows) if is_sparse else rows, y[k : k + 2])


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_read_back_as_they_were_written(name, is_sparse, tmp_path):
    path = tmp_path / name
    assert write(path, pieces(is_sparse)) == 4
    found, y = read(path)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    assert dense.tobytes() == X.tobytes()
    assert y.tolist() == Y.tolist()
    assert os.listdir(tmp_path) == [name]


def test_npy_has_its_labels_beside_it(tmp_path):
    assert write(tmp_path / "rows.npy", pieces(False)) == 4
    assert sorted(os.listdir(tmp_path)) == ["rows.npy", "rows_y.npy"]
    assert np.load(tmp_path / "rows.npy").tobytes() == X.tobytes()
    found, y = read(tmp_path / "rows.npy")
    assert found.tobytes() == X.tobytes()
    assert y.tolist() == Y.tolist()


LABELS = {
    "whole": Y,
    "negative": Y - 1,
    "fractions": Y + 0.5,
    "text": np.array(["yes", "no", "yes", "ünknown"]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["rows.libsvm", "rows.csv", *TABLE_NAMES, "rows.npy"])
def test_labels_keep_their_kind(name, kind, tmp_path):
    write(tmp_path / name, pieces(False, LABELS[kind]))
    _, y = read(tmp_path / name)
    assert y.tolist() == LABELS[kind].tolist()
    assert y.dtype.kind == LABELS[kind].dtype.kind


def test_labels_that_need_quotes_get_them(tmp_path):
    labels = np.array(["a,b", 'say "x"', "two\nlines", "ü"])
    for name in ("rows.csv", "rows.parquet", "rows.arrow", "rows.npz"):
        write(tmp_path / name, pieces(False, labels))
        assert read(tmp_path / name)[1].tolist() == labels.tolist()


@pytest.mark.parametrize("label", ["", "NA", "?", " a"])
def test_labels_that_csv_would_read_otherwise_are_refused(label, tmp_path):
    with pytest.raises(DataError, match="missing value, or without its blanks"):
        write(tmp_path / "rows.csv", pieces(False, np.array(["a", "b", "c", label])))
    write(tmp_path / "rows.npz", pieces(False, np.array(["a", "b", "c", label])))
    assert read(tmp_path / "rows.npz")[1].tolist() == ["a", "b", "c", label]


def test_bytes_stay_bytes(tmp_path):
    rows = np.array([[0, 255], [7, 1]], np.uint8)
    for name in ("rows.npy", "rows.npz", "rows.parquet", "rows.arrow"):
        write(tmp_path / name, [Chunk(rows, Y[:2])])
        found, _ = read(tmp_path / name)
        assert found.dtype == np.uint8
        assert found.tolist() == rows.tolist()


def test_every_float_is_read_back_to_the_last_bit(tmp_path):
    bits = np.random.default_rng(0).integers(0, 1 << 32, (4000, 3), np.uint32)
    rows = bits.view(np.float32).copy()
    rows[~np.isfinite(rows)] = 0.1
    small = np.where(np.abs(rows) > LARGEST, np.float32(0.1), rows)  # tables scale larger numbers
    for name, X in (("rows.npz", rows), ("rows.csv", small), ("rows.arrow", small)):
        write(tmp_path / name, [Chunk(X, np.arange(4000) % 2)])
        assert read(tmp_path / name)[0].tobytes() == X.tobytes()


def test_archives_are_compressed_as_their_names_say(tmp_path):
    marks = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
    for suffix, mark in marks.items():
        path = tmp_path / f"rows.libsvm{suffix}"
        write(path, pieces())
        assert path.read_bytes().startswith(mark)


@pytest.mark.parametrize("name", [*TEXT_NAMES, "rows.csv.gz", "rows.npz", "rows.arrow"])
def test_the_same_rows_are_the_same_bytes(name, tmp_path):
    write(tmp_path / name, pieces())
    first = (tmp_path / name).read_bytes()
    write(tmp_path / name, pieces())
    assert (tmp_path / name).read_bytes() == first


def test_a_format_may_be_stated(tmp_path):
    write(tmp_path / "rows.txt", pieces(), format="libsvm")
    assert (tmp_path / "rows.txt").read_bytes().startswith(b"1 1:1 3:0.1\n0 2:9000000000\n")
    write(tmp_path / "rows", pieces(), format="parquet")
    assert (tmp_path / "rows").read_bytes().startswith(b"PAR1")
    write(tmp_path / "table", pieces(), format="csv")
    assert (tmp_path / "table").read_bytes().startswith(b"x0,x1,x2,label\n1,0,0.1,1\n")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.arrow"])
def test_names_are_those_of_columns(name, tmp_path):
    write(tmp_path / name, pieces(False), names=["a", "b, or c", "d"])
    table = stream(tmp_path / name)
    list(table)
    assert table.layout.feature_names == ["a", "b, or c", "d"]


def test_names_that_cannot_be_written_are_refused(tmp_path):
    for name in ("rows.libsvm", "rows.npz", "rows.npy"):
        with pytest.raises(ValueError, match=r"names are given, but .* has none"):
            write(tmp_path / name, pieces(False), names=["a", "b", "c"])
    for names in (["a"], ["a", "a", "b"], ["a", "b", "label"]):
        with pytest.raises(ValueError, match="expected 3 different ones, none 'label'"):
            write(tmp_path / "rows.csv", pieces(False), names=names)
    with pytest.raises(ValueError, match="would take the header for a row"):
        write(tmp_path / "rows.csv", pieces(False), names=["a", "1e3", "b"])
    assert os.listdir(tmp_path) == []


def test_a_file_is_written_from_a_stream_of_itself(tmp_path):
    for name in ("rows.libsvm", "rows.csv"):
        write(tmp_path / name, pieces())
        write(tmp_path / name, stream(tmp_path / name, chunk_rows=1))
        found, _ = read(tmp_path / name)
        assert np.asarray(found.toarray() if sp.issparse(found) else found).tobytes() == X.tobytes()


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.gz"])
def test_a_name_that_states_no_format_to_write_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=f"the name '{name}' states no format, expected one of"):
        write(tmp_path / name, pieces())
    with pytest.raises(ValueError, match="format is 'idx', expected one of libsvm, csv, parquet"):
        write(tmp_path / name, pieces(), format="idx")
    with pytest.raises(ValueError, match=r"the name 'rows\.idx' states the format idx, expected"):
        write(tmp_path / "rows.idx", pieces())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["rows.parquet.gz", "rows.npz.xz", "rows.arrow.zst"])
def test_nothing_is_compressed_twice(name, tmp_path):
    with pytest.raises(ValueError, match=r"compressed twice: leave .* out"):
        write(tmp_path / name, pieces())


def test_a_place_where_nothing_can_be_written_is_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    places = {"": "is a folder", "absent/rows.libsvm": "no such folder", "pipe": "is a pipe"}
    for name, words in places.items():
        for kind in WRITTEN:
            with pytest.raises(DataError, match=words) as caught:
                write(tmp_path / name, pieces(False), format=kind)
            assert caught.value.path == str(tmp_path / name)
    assert os.listdir(tmp_path) == ["pipe"]


def failing():
    yield from pieces(False)
    raise DataError("the source ends here")


def interrupted():
    yield from pieces(False)
    raise KeyboardInterrupt


FAILURES = [
    (failing, DataError),
    (interrupted, KeyboardInterrupt),
    (lambda: [], ValueError),
    (lambda: [Chunk(X, Y[:1])], ValueError),
    (lambda: [Chunk(X, Y), Chunk(X, Y[:0])], ValueError),
    (lambda: [Chunk(X, Y), Chunk(X * np.float32(np.inf), Y)], ValueError),
]


@pytest.mark.parametrize("name", [*NAMES, "rows.npy"])
def test_a_failure_leaves_the_old_file_and_nothing_else(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"old")
    is_table = name.endswith(("parquet", "pq", "arrow", "feather"))
    for chunks, error in FAILURES[: -1 if is_table else None]:
        with pytest.raises(error), np.errstate(invalid="ignore"):
            write(path, chunks())
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == [name]


def test_rows_without_labels_are_no_libsvm_text(tmp_path):
    rows = [Chunk(X, np.empty(0))]
    with pytest.raises(ValueError, match="Rows have no labels"):
        write(tmp_path / "rows.libsvm", rows)
    for name in ("rows.parquet", "rows.arrow", "rows.npz", "rows.npy"):
        write(tmp_path / name, rows)
        found, y = read(tmp_path / name)
        assert y is None
        assert found.tobytes() == X.tobytes()
    write(tmp_path / "rows.csv", rows)
    assert read(tmp_path / "rows.csv", label=None)[0].tobytes() == X.tobytes()


def test_rows_without_labels_do_not_take_those_of_others(tmp_path):
    write(tmp_path / "rows.npy", pieces(False))
    for name in ("rows.npy", "rows.npz"):
        with pytest.raises(DataError, match=r"rows_y\.npy beside it would be read as its own"):
            write(tmp_path / name, [Chunk(X, np.empty(0))])
    assert sorted(os.listdir(tmp_path)) == ["rows.npy", "rows_y.npy"]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_files.os, "fsync", fail)
    for name in ("rows.libsvm", "rows.csv", "rows.parquet", "rows.arrow", "rows.npz", "rows.npy"):
        with pytest.raises(OSError, match="No space"):
            write(tmp_path / name, pieces(False))
    assert os.listdir(tmp_path) == []


# ---- width -------------------------------------------------------------------------------


def growing():
    yield Chunk(sp.csr_matrix(X[:2, :1]), Y[:2])
    yield Chunk(sp.csr_matrix(X[2:]), Y[2:])


@pytest.mark.parametrize("name", ["rows.libsvm", "rows.parquet", "rows.arrow", "rows.npz"])
def test_sparse_rows_may_grow_wider(name, tmp_path):
    write(tmp_path / name, growing())
    found, _ = read(tmp_path / name)
    assert found.shape == (4, 3)
    assert found.toarray()[2:].tobytes() == X[2:].tobytes()


def test_csv_must_know_how_wide_rows_are(tmp_path):
    with pytest.raises(ValueError, match="A chunk has 3 columns, but the header 1: state n_feat"):
        write(tmp_path / "rows.csv", growing())
    write(tmp_path / "rows.csv", growing(), n_features=4)
    found, _ = read(tmp_path / "rows.csv")
    assert found.shape == (4, 4)
    assert (found[:, 3] == 0).all()
    wide = sp.csr_matrix((1, 1 << 20), dtype=np.float32)
    with pytest.raises(ValueError, match="most of them zeros"):
        write(tmp_path / "rows.csv", [Chunk(wide, Y[:1])])


def test_a_width_that_is_stated_is_kept_by_arrow(tmp_path):
    write(tmp_path / "rows.arrow", growing(), n_features=9)
    assert read(tmp_path / "rows.arrow")[0].shape == (4, 9)


@pytest.mark.parametrize("name", ["rows.csv", "rows.npz", "rows.npy", "rows.arrow"])
def test_dense_rows_of_another_width_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="columns"):
        write(tmp_path / name, [Chunk(X, Y), Chunk(X[:, :2], Y)])
    assert os.listdir(tmp_path) == []


def test_rows_of_two_forms_are_refused(tmp_path):
    mixed = [Chunk(X, Y), Chunk(sp.csr_matrix(X), Y)]
    for name in ("rows.npz", "rows.arrow", "rows.npy"):
        for chunks in (mixed, mixed[::-1]):
            with pytest.raises(ValueError, match=r"spars|columns"):
                write(tmp_path / name, chunks)


def test_a_matrix_is_what_scipy_reads(tmp_path):
    write(tmp_path / "rows.npz", growing())
    with np.load(tmp_path / "rows.npz") as arrays:
        assert arrays["y"].tolist() == Y.tolist()
    assert sp.load_npz(tmp_path / "rows.npz").shape == (4, 3)


# ---- pipes -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["libsvm", "csv", "arrow"])
def test_pipes_are_written_to_as_files_are(kind):
    out = io.BytesIO()
    assert write_to(out, pieces(), kind) == 4
    out.seek(0)
    found, y = read(out, format=kind)
    assert np.asarray(found.toarray() if sp.issparse(found) else found).tobytes() == X.tobytes()
    assert y.tolist() == Y.tolist()


def test_formats_that_end_at_their_beginning_need_a_file():
    for kind in ("parquet", "npy", "npz"):
        with pytest.raises(ValueError, match="cannot be written to a pipe"):
            write_to(io.BytesIO(), pieces(), kind)
