"""Files are written whole or not at all, and read back the same."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane.data import writing
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.reading import read, stream
from polyplane.data.writing import write

X = np.array([[1, 0, 0.1], [0, 3.4e38, 0], [-0.5, 0, 1e-45], [6, 7, 8]], np.float32)
Y = np.array([1, 0, 1, 2])
TEXT_NAMES = ["rows.libsvm", "rows.svm", "rows.libsvm.gz", "rows.svm.bz2", "rows.libsvm.XZ",
              "rows.svmlight.zst"]  # fmt: skip


def pieces(is_sparse=True, y=Y):
    for k in range(0, 4, 2):
        rows = X[k : k + 2]
        yield Chunk(sp.csr_matrix(rows) if is_sparse else rows, y[k : k + 2])


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("name", [*TEXT_NAMES, "rows.parquet", "rows.pq"])
def test_rows_are_read_back_as_they_were_written(name, is_sparse, tmp_path):
    path = tmp_path / name
    assert write(path, pieces(is_sparse)) == 4
    found, y = read(path)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    assert dense.tobytes() == X.tobytes()
    assert y.tolist() == Y.tolist()
    assert os.listdir(tmp_path) == [name]


def test_archives_are_compressed_as_their_names_say(tmp_path):
    marks = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
    for suffix, mark in marks.items():
        path = tmp_path / f"rows.libsvm{suffix}"
        write(path, pieces())
        first = path.read_bytes()
        assert first.startswith(mark)
        write(path, pieces())
        assert path.read_bytes() == first


def test_a_format_may_be_stated(tmp_path):
    write(tmp_path / "rows.txt", pieces(), format="libsvm")
    assert (tmp_path / "rows.txt").read_bytes().startswith(b"1 1:1 3:0.1\n0 2:3.4e+38\n")
    write(tmp_path / "rows", pieces(), format="parquet")
    assert (tmp_path / "rows").read_bytes().startswith(b"PAR1")


def test_names_are_those_of_columns_of_parquet(tmp_path):
    write(tmp_path / "rows.parquet", pieces(False), names=["a", "b", "c"])
    table = stream(tmp_path / "rows.parquet")
    list(table)
    assert table.layout.feature_names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="LIBSVM text has none"):
        write(tmp_path / "rows.libsvm", pieces(), names=["a", "b", "c"])


def test_a_file_is_written_from_a_stream_of_itself(tmp_path):
    path = tmp_path / "rows.libsvm"
    write(path, pieces())
    write(path, stream(path, chunk_rows=1))
    assert read(path)[0].toarray().tobytes() == X.tobytes()


@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.npz", "rows.gz"])
def test_a_name_that_states_no_format_to_write_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=f"the name '{name}' states no format, expected one of"):
        write(tmp_path / name, pieces())
    with pytest.raises(ValueError, match="format is 'csv', expected one of libsvm, parquet"):
        write(tmp_path / name, pieces(), format="csv")
    assert os.listdir(tmp_path) == []


def test_parquet_is_not_compressed_twice(tmp_path):
    with pytest.raises(ValueError, match=r"compressed twice: leave \.gz out"):
        write(tmp_path / "rows.parquet.gz", pieces())


def test_a_place_where_nothing_can_be_written_is_told(tmp_path):
    for name, words in {"": "is a folder", "absent/rows.libsvm": "no such folder"}.items():
        with pytest.raises(DataError, match=words) as caught:
            write(tmp_path / name, pieces(), format="libsvm")
        assert caught.value.path == str(tmp_path / name)


def failing():
    yield from pieces()
    raise DataError("the source ends here")


def interrupted():
    yield from pieces()
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", [*TEXT_NAMES, "rows.parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"old")
    for chunks, error in (
        (failing(), DataError),
        (interrupted(), KeyboardInterrupt),
        ([], ValueError),
        ([Chunk(X, Y[:1])], ValueError),
    ):
        with pytest.raises(error):
            write(path, chunks)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == [name]


def test_rows_without_labels_are_no_libsvm_text(tmp_path):
    with pytest.raises(ValueError, match="Rows have no labels"):
        write(tmp_path / "rows.libsvm", [Chunk(X, np.empty(0))])
    write(tmp_path / "rows.parquet", [Chunk(X, np.empty(0))])
    assert read(tmp_path / "rows.parquet")[1] is None


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", fail)
    for name in ("rows.libsvm", "rows.parquet"):
        with pytest.raises(OSError, match="No space"):
            write(tmp_path / name, pieces())
    assert os.listdir(tmp_path) == []


def test_zstd_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "zstandard", None)
    with pytest.raises(DataError, match=r"rows.libsvm.zst: .*pip install polyplane\[zstd\]"):
        write(tmp_path / "rows.libsvm.zst", pieces())
    assert os.listdir(tmp_path) == []
