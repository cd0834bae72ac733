"""Infinite digits: every row is a function of seed and number, and is like its source."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from polyplane.data.chunks import DataError
from polyplane.data.sets.infinite_digits import (
    FEWEST_A_THREAD,
    Deformation,
    default_source,
    infinite_digits,
)
from tests.real_data import ROOT, mnist_bytes

STILL = Deformation(0, 0, 0, 0, 0, 0)


def small_source(n=7, side=5):
    """Random images, each with a label of its own beside its class."""
    X = np.random.default_rng(0).integers(0, 256, (n, side * side)).astype(np.uint8)
    return X, np.arange(n) % 3


SOURCE = small_source()


@given(start=st.integers(0, 40), n=st.integers(0, 25), seed=st.sampled_from([0, 1, 2**64 - 1]))
@settings(deadline=None, max_examples=15)
def test_a_slice_is_the_same_rows_of_the_whole(start, n, seed):
    X, y = infinite_digits(65, 0, seed, source=SOURCE)
    X_part, y_part = infinite_digits(n, start, seed, source=SOURCE)
    np.testing.assert_array_equal(X_part, X[start : start + n])
    np.testing.assert_array_equal(y_part, y[start : start + n])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    n, source = 3 * FEWEST_A_THREAD + 5, small_source(side=2)
    alone, together = (infinite_digits(n, 3, 1, source=source, n_jobs=k) for k in (None, n_jobs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_differ_among_each_other_and_among_seeds():
    X = np.vstack([infinite_digits(40, seed=seed, source=SOURCE)[0] for seed in (0, 1)])
    assert len(np.unique(X, axis=0)) == 80


def test_rows_have_the_bits_they_have_on_every_machine():
    X = (np.arange(4 * 17 * 17) * 37 % 256).astype(np.uint8).reshape(4, -1)
    X, y = infinite_digits(20, 10**12, 5, source=(X, range(4)), deformation=Deformation())
    digest = hashlib.sha256(X.tobytes() + y.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "a2e8ded6b6207618"


def test_every_turn_shows_each_source_digit_once_with_its_label():
    for start in (0, 7, 7 * 10**9):
        X, y = infinite_digits(7, start, source=SOURCE, deformation=STILL)
        order = [int(np.flatnonzero((SOURCE[0] == row).all(axis=1))[0]) for row in X]
        assert sorted(order) == list(range(7))
        np.testing.assert_array_equal(y, SOURCE[1][order])


def test_rows_are_bytes_and_labels_whole_numbers():
    X, y = infinite_digits(3, source=SOURCE)
    assert X.dtype == np.uint8
    assert X.flags.c_contiguous
    assert y.dtype == np.int64
    X, y = infinite_digits(0, source=SOURCE)
    assert X.shape == (0, 25)
    assert y.shape == (0,)


def test_rows_far_out_exist():
    X, _ = infinite_digits(2, 2**62 - 1, source=SOURCE)
    np.testing.assert_array_equal(X[1:], infinite_digits(1, 2**62, source=SOURCE)[0])


def test_the_source_may_have_any_layout_and_is_left_alone():
    X, y = SOURCE
    wide = np.zeros((7, 50), np.uint8)
    wide[:, ::2] = X
    wide.flags.writeable = False
    expected = infinite_digits(9, source=SOURCE)[0]
    for source in ((wide[:, ::2], y.tolist()), (np.asfortranarray(X), y.astype(np.uint8))):
        np.testing.assert_array_equal(infinite_digits(9, source=source)[0], expected)
    np.testing.assert_array_equal(X, small_source()[0])


def test_stronger_deformation_moves_rows_farther_from_their_source():
    side = 12
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    ring = np.clip(255 - 120 * np.abs(np.hypot(x, y) - 3.5), 0, 255).astype(np.uint8).reshape(1, -1)
    distances = [
        np.abs(
            infinite_digits(
                20, source=(ring, [0]), deformation=Deformation(*(k * v for v in Deformation()))
            )[0].astype(int)
            - ring
        ).mean()
        for k in (0, 0.5, 1, 2)
    ]
    assert distances[0] == 0
    assert distances == sorted(distances)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": -1}, "n is -1"),
        ({"start": -3}, "start is -3"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"deformation": Deformation(shift=-0.1)}, "Deformation.shift is -0.1"),
        ({"deformation": Deformation(rotation=100)}, "Deformation.rotation is 100"),
        ({"deformation": Deformation(elastic=float("nan"))}, "Deformation.elastic is nan"),
        ({"source": (np.zeros((2, 4)), [0, 1])}, "X of float64"),
        ({"source": (np.zeros((2, 2, 2), np.uint8), [0, 1])}, "3 dimensions"),
        ({"source": (np.zeros((2, 5), np.uint8), [0, 1])}, "images of 5 pixels"),
        ({"source": (np.zeros((2, 65 * 65), np.uint8), [0, 1])}, "images of 4225 pixels"),
        ({"source": (np.zeros((2, 0), np.uint8), [0, 1])}, "images of 0 pixels"),
        ({"source": (np.zeros((2, 4), np.uint8), [0])}, "2 images and labels"),
        ({"source": (np.zeros((0, 4), np.uint8), [])}, "0 images and labels"),
        ({"source": (np.zeros((1, 4), np.uint8), ["one"])}, "labels of shape .* and <U3"),
        ({"source": (np.zeros((1, 4), np.uint8), [0.5])}, "labels of shape .* and float64"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(change, words):
    with pytest.raises(ValueError, match=words):
        infinite_digits(**{"n": 1, "source": SOURCE, **change})


def test_a_fraction_of_a_row_is_refused():
    with pytest.raises(TypeError, match="integer"):
        infinite_digits(1.5, source=SOURCE)


# ---- where digits come from --------------------------------------------------------------


def write_idx(path, array, opened):
    """An IDX file of bytes."""
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    with opened(path, "wb") as file:
        file.write(header + array.tobytes())


def write_mnist(folder, suffix, opened):
    """A small set in the files of MNIST."""
    X, y = small_source()
    (folder / "mnist").mkdir()
    images = folder / "mnist" / f"train-images-idx3-ubyte{suffix}"
    labels = folder / "mnist" / f"train-labels-idx1-ubyte{suffix}"
    write_idx(images, X.reshape(-1, 5, 5), opened)
    write_idx(labels, y.astype(np.uint8), opened)
    return images, labels


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), ("", open)])
def test_files_of_mnist_are_the_source_where_they_are(tmp_path, monkeypatch, suffix, opened):
    write_mnist(tmp_path, suffix, opened)
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    for found, expected in zip(infinite_digits(9), infinite_digits(9, source=SOURCE), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("is_set", [True, False])
def test_digits_of_scikit_learn_are_the_source_elsewhere(tmp_path, monkeypatch, is_set):
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    if is_set:
        monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    X, y = default_source()
    small, labels = load_digits(return_X_y=True)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (1797, 784)
    assert not X.flags.writeable
    images = X.reshape(-1, 28, 28)
    assert not images[:, :4].any()
    assert not images[:, :, -4:].any()
    ink = X.sum(axis=1, dtype=float) / 255 / 6.25  # an old pixel covers 2.5 * 2.5 new ones
    np.testing.assert_allclose(ink, small.sum(axis=1) / 16, rtol=0.1)


def test_the_default_stream_has_28_by_28_pixels(monkeypatch):
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    X, y = infinite_digits(2)
    assert X.shape == (2, 784)
    assert set(y) <= set(range(10))


def broken(part, change):
    """A change to one of the two files."""
    return pytest.param(part, change, id=f"{('images', 'labels')[part]}-{change.__name__}")


def shortened(path):
    path.write_bytes(path.read_bytes()[:-3])


def emptied(path):
    path.write_bytes(b"")


def without_rows(path):
    write_idx(path, np.zeros((0, 5, 5), np.uint8), gzip.open)


def of_another_kind(path):
    with gzip.open(path, "wb") as file:
        file.write(b"not digits")


def without_a_label(path):
    write_idx(path, np.zeros(6, np.uint8), gzip.open)


def of_oblong_images(path):
    write_idx(path, np.zeros((7, 5, 4), np.uint8), gzip.open)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        broken(0, shortened),
        broken(0, emptied),
        broken(0, without_rows),
        broken(0, of_another_kind),
        broken(0, of_oblong_images),
        broken(1, shortened),
        broken(1, without_a_label),
    ],
)
def test_broken_files_are_named(tmp_path, monkeypatch, part, change):
    paths = write_mnist(tmp_path, ".gz", gzip.open)
    change(paths[part])
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="mnist"):
        infinite_digits(1)


def test_mnist_itself_is_read(monkeypatch):
    X, y, _, _ = mnist_bytes()
    monkeypatch.setenv("POLYPLANE_DATA", str(ROOT))
    found, labels = default_source()
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, y)
