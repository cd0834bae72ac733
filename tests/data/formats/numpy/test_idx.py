"""IDX files: images and labels as they stand, and no belief in what a header says."""

import gzip
import io
import tracemalloc

import numpy as np
import pytest

from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.numpy.idx import DTYPES, chunks, labels_path_of
from tests.real_data import ROOT, mnist_bytes


def idx(array, code=0x08):
    """The bytes of an IDX file."""
    head = bytes([0, 0, code, array.ndim])
    return head + np.array(array.shape, ">u4").tobytes() + array.astype(DTYPES[code]).tobytes()


def read(images, labels=None, chunk_rows=100, bad=None):
    files = io.BytesIO(images), None if labels is None else io.BytesIO(labels)
    return list(chunks(files[0], "images", chunk_rows, files[1], "labels", bad))


IMAGES = np.arange(5 * 2 * 3).reshape(5, 2, 3)
LABELS = np.arange(5) % 3


def test_mnist_is_read_as_it_is():
    X, y, *_ = mnist_bytes()
    path = ROOT / "mnist" / "train-images-idx3-ubyte.gz"
    with gzip.open(path) as images, gzip.open(labels_path_of(path)) as labels:
        got = list(chunks(images, str(path), 25_000, labels))
    assert [len(chunk.X) for chunk in got] == [25_000, 25_000, 10_000]
    assert got[0].X.dtype == np.uint8
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in got]), X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in got]), y)


@pytest.mark.parametrize("code", DTYPES)
def test_every_type_is_read_and_only_bytes_stay_bytes(code):
    first, second = read(idx(IMAGES, code), idx(LABELS, code), chunk_rows=3)
    assert first.X.dtype == (np.uint8 if code == 0x08 else np.float32)
    assert first.X.flags.writeable
    np.testing.assert_array_equal(np.concatenate([first.X, second.X]), IMAGES.reshape(5, 6))
    assert first.y.dtype == (np.float64 if code >= 0x0D else np.int64)
    assert second.y.tolist() == [0, 1]


def test_without_labels_y_is_empty():
    (chunk,) = read(idx(IMAGES))
    assert chunk.y.shape == (0,)


def test_values_that_are_not_finite_are_bad_rows():
    images = np.array([[1.0], [np.nan], [np.inf], [1e300], [2]])
    with pytest.raises(DataError, match="row 2: found a value that is NaN, infinite"):
        read(idx(images, 0x0E))
    bad = BadRows(skips=True)
    (chunk,) = read(idx(images, 0x0E), idx(LABELS), bad=bad)
    assert chunk.X.tolist() == [[1], [2]]
    assert chunk.y.tolist() == [0, 1]
    assert bad.n_skipped == 3


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (b"", None, "images: found b'' at the beginning"),
        (b"\x1f\x8b\x08\x00abc", None, "expected an IDX file"),
        (b"\0\0\x07\x03", None, "expected an IDX file"),
        (b"\0\0\x08\x00", None, "expected an IDX file"),
        (b"\0\0\x08\x03\0\0\0\x05", None, "found the end in the header, expected 3 dimensions"),
        (idx(IMAGES)[:-1], None, "found the end in row 5, expected 5 rows"),
        (idx(IMAGES) + b"0", None, "found more bytes than its dimensions say"),
        (idx(IMAGES[:, :0]), None, "found images of 0 values"),
        (idx(IMAGES), idx(LABELS[:4]), "labels: found 4 labels, expected 5"),
        (idx(IMAGES), idx(IMAGES), "labels: found 6 values a row, expected one label"),
        (idx(IMAGES), idx(LABELS)[:-1], "labels: found the end in row 5"),
        (idx(IMAGES), idx(LABELS) + b"0", "labels: found more bytes"),
    ],
)
def test_what_is_no_idx_file_or_not_all_of_it_is_an_error(images, labels, words):
    with pytest.raises(DataError, match=words):
        read(images, labels)


def test_false_sizes_allocate_nothing():
    huge = b"\0\0\x0e\x03" + b"\x7f\xff\xff\xff" + b"\0\0\x40\0" * 2 + bytes(1000)
    tracemalloc.start()
    with pytest.raises(DataError, match="found the end in row 1, expected 2147483647 rows"):
        read(huge, chunk_rows=1 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 22


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte.xz"),
    ],
)
def test_labels_are_found_by_name(tmp_path, images, labels):
    assert labels_path_of(tmp_path / images) is None
    (tmp_path / labels).touch()
    assert labels_path_of(tmp_path / images) == tmp_path / labels
    assert labels_path_of(tmp_path / labels) is None
