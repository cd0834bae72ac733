"""Real data sets for tests, from $POLYPLANE_DATA; a set that is absent skips with its name."""

import functools
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

ROOT = Path(os.environ.get("POLYPLANE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def _need(*paths):
    for path in paths:
        if not path.exists():
            words = f"{path.parent.name} is not in POLYPLANE_DATA ({path} is absent)"
            if os.environ.get("POLYPLANE_REQUIRE_DATA"):
                pytest.fail(words)
            pytest.skip(words)


N_FEATURES = {
    "a9a": 123,
    "covtype-20k": 54,
    "dna": 180,
    "farm-ads": 54_877,
    "ijcnn1": 22,
    "magic04": 10,
    "mushrooms": 112,
    "optdigits": 64,
    "pendigits": 16,
    "reuters-acq": 9_947,
    "reuters-lasvm": 8_315,
    "satimage": 36,
    "sector": 55_197,
    "shuttle": 9,
    "skin_nonskin": 3,
    "spambase": 57,
    "splice": 60,
    "svmguide1": 4,
    "w7a": 300,
    "w8a": 300,
}
HAVE_NO_TEST_PART = {
    "covtype-20k", "farm-ads", "magic04", "mushrooms", "skin_nonskin", "spambase", "w8a",
}  # fmt: skip


def _libsvm(path, name):
    _need(path)
    with lzma.open(path) as file:
        return load_svmlight_file(file, n_features=N_FEATURES[name], dtype=np.float32)


@functools.cache
def libsvm_set(name):
    """X, y, X_test, y_test of a set of LIBSVM text, as CSR float32.

    Of sets without a test part a quarter of the rows, always the same ones, is one.
    """
    X, y = _libsvm(ROOT / name / "train.libsvm.xz", name)
    if name in HAVE_NO_TEST_PART:
        order = np.random.default_rng(12345).permutation(len(y))
        train, test = np.split(order, [len(y) * 3 // 4])
        return X[train], y[train], X[test], y[test]
    return X, y, *_libsvm(ROOT / name / "test.libsvm.xz", name)


def a9a():
    """0/1 features, labels -1 and 1."""
    return libsvm_set("a9a")


def _idx(path, offset):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


@functools.cache
def mnist_bytes():
    """X, y, X_test, y_test: pixels as bytes, digits 0 to 9."""
    folder = ROOT / "mnist"
    names = [
        (folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz")
        for part in ("train", "t10k")
    ]
    _need(*names[0], *names[1])
    out = []
    for images, labels in names:
        out += [_idx(images, 16).reshape(-1, 784), _idx(labels, 8)]
    return tuple(out)


@functools.cache
def mnist():
    """The same with pixels between 0 and 1, as CSR float32."""
    X, y, X_test, y_test = mnist_bytes()
    scaled = [sp.csr_matrix(part.astype(np.float32) / np.float32(255)) for part in (X, X_test)]
    return scaled[0], y, scaled[1], y_test


def raw_table(file):
    """Where a raw table lies, as its public repository holds it."""
    path = ROOT / "tables" / file
    _need(path)
    return path
