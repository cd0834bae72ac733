"""Digits without end: row i is a deformed copy of a source digit, a function of (seed, i) alone.

The source is MNIST's training part where $POLYPLANE_DATA holds it, else scikit-learn's own
digits, enlarged to the same 28 x 28 pixels.
"""

import gzip
import math
import operator
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.datasets import load_digits

from polyplane.data.chunks import DataError
from polyplane.data.formats.numpy.idx import chunks, labels_path_of
from polyplane.data.sets.deformation import (
    LARGEST_SIDE,
    deform_rows,
    empty_frame,
    smooth_fields,
    sources_of,
    steps_of,
)

__all__ = ["Deformation", "default_source", "enlarged_digits", "infinite_digits"]

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Source = tuple[Bytes, Labels]

SIDE, INK = 28, 20  # of MNIST's images, and of the box inside them that holds the digit
WEIGHT = 2_000  # half the cube of a tenth is one of these: enlarging is exact
MOST_ROWS, MOST_SEED = 2**62, 2**64 - 1
FEWEST_A_THREAD = 256  # rows: fewer take less time than starting a thread


class Deformation(NamedTuple):
    """How strongly rows are deformed: standard deviations of what is drawn for each."""

    shift: float = 0.02  # of the image's width
    rotation: float = 4.0  # degrees
    shear: float = 0.07
    scale: float = 0.06  # of width and height, each for itself
    elastic: float = 0.02  # of the image's width; a smooth field that pulls pixels apart
    thickness: float = 0.1  # of the way to the next pixel, for the edges of strokes


def infinite_digits(
    n: int,
    start: int = 0,
    seed: int = 0,
    *,
    source: tuple[Any, Any] | None = None,
    deformation: Deformation | None = None,
    n_jobs: int | None = None,
) -> Source:
    """Rows start ... start + n - 1 of the endless stream `seed`, and their labels.

    Of every N rows in turn, N being the number of source digits, each comes from another digit:
    classes are as frequent as in the source. `source` is (X, y) with one square image of bytes a
    row of X.
    """
    images, labels = default_source() if source is None else _checked_source(*source)
    n, start = _whole("n", n, MOST_ROWS), _whole("start", start, MOST_ROWS)
    key = np.uint64(_whole("seed", seed, MOST_SEED))
    side = math.isqrt(images.shape[1])
    steps = _steps(Deformation() if deformation is None else deformation, side)
    fields = _fields(int(key), side)
    X, y = np.empty((n, side * side), np.uint8), np.empty(n, np.int64)

    def fill(a: int, b: int) -> None:
        with np.errstate(over="ignore"):  # keys wrap around, which NumPy notes where none compiles
            sources = sources_of(key, start + a, b - a, len(images))
            frame = empty_frame(side)
            deform_rows(images, sources, key, start + a, steps, fields, frame, X[a:b])
        y[a:b] = labels[sources]

    n_threads = max(1, min(effective_n_jobs(n_jobs), n // FEWEST_A_THREAD))
    cuts = [n * k // n_threads for k in range(n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(fill, cuts[:-1], cuts[1:]))
    return X, y


def _whole(name: str, value: Any, most: int) -> int:
    number = operator.index(value)
    if not 0 <= number <= most:
        raise ValueError(f"{name} is {number}, but must be a whole number from 0 to {most}.")
    return number


def _steps(deformation: Deformation, side: int) -> Any:
    for name, value in deformation._asdict().items():
        most = 90 if name == "rotation" else 1
        if not 0 <= value <= most:
            raise ValueError(f"Deformation.{name} is {value}, but must be from 0 to {most}.")
    return steps_of(
        shift=deformation.shift * side,
        rotation=math.radians(deformation.rotation),
        shear=deformation.shear,
        scale=deformation.scale,
        elastic=deformation.elastic * side,
        thickness=deformation.thickness,
    )


@lru_cache(maxsize=8)
def _fields(seed: int, side: int) -> Any:
    with np.errstate(over="ignore"):
        return smooth_fields(np.uint64(seed), side)


# ---- sources -----------------------------------------------------------------------------


def _checked_source(X: Any, y: Any, path: Any = "source") -> Source:
    images, labels = np.ascontiguousarray(X), np.asarray(y)
    if images.dtype != np.uint8 or images.ndim != 2:
        problem = (
            f"found X of {images.dtype} with {images.ndim} dimensions, expected bytes, one image "
            "a row: X.reshape(len(X), -1).astype(np.uint8)"
        )
        raise DataError(problem, path)
    side = math.isqrt(images.shape[1])
    if side * side != images.shape[1] or not 1 <= side <= LARGEST_SIDE:
        problem = (
            f"found images of {images.shape[1]} pixels, expected squares of at most "
            f"{LARGEST_SIDE} * {LARGEST_SIDE}: cut or pad them"
        )
        raise DataError(problem, path)
    if len(images) == 0 or labels.shape != (len(images),) or labels.dtype.kind not in "iu":
        problem = (
            f"found {len(images)} images and labels of shape {labels.shape} and {labels.dtype}, "
            "expected one image at least and a whole number for each"
        )
        raise DataError(problem, path)
    return images, labels.astype(np.int64)


def default_source() -> Source:
    """MNIST's training digits where $POLYPLANE_DATA holds them, else scikit-learn's digits."""
    folder = os.environ.get("POLYPLANE_DATA")
    for suffix in (".gz", "") if folder else ():
        images = Path(str(folder), "mnist", f"train-images-idx3-ubyte{suffix}")
        labels = labels_path_of(images)
        if images.is_file() and labels is not None:
            return _idx_digits(images, labels)
    return enlarged_digits()


def _opened(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


@lru_cache(maxsize=1)
def _idx_digits(images: Path, labels: Path) -> Source:
    try:
        with _opened(images) as X, _opened(labels) as y:
            found = list(chunks(X, str(images), MOST_ROWS, y, str(labels)))
    except (OSError, EOFError, zlib.error) as problem:
        words = f"found what cannot be read ({problem}), expected IDX: fetch the files anew"
        raise DataError(words, images.parent) from problem
    if not found:
        raise DataError("found no images, expected one at least: fetch the file anew", images)
    return _frozen(*_checked_source(*found[0], path=images))


@lru_cache(maxsize=1)
def enlarged_digits() -> Source:
    """8 x 8 counts of 0 ... 16 as 28 x 28 bytes, the digit in the middle 20 x 20."""
    counts, y = load_digits(return_X_y=True)
    small = counts.astype(np.int64).reshape(-1, 8, 8)
    weights = _cubic_weights(8, INK)
    large = (weights @ small @ weights.T) * 255 // (16 * WEIGHT * WEIGHT)
    X = np.zeros((len(small), SIDE, SIDE), np.uint8)
    margin = (SIDE - INK) // 2
    X[:, margin:-margin, margin:-margin] = np.clip(large, 0, 255)
    return _frozen(X.reshape(len(X), -1), y.astype(np.int64))


def _cubic_weights(n_from: int, n_to: int) -> Any:
    """[to, from] cubic interpolation along a line, times WEIGHT; beyond its ends is no ink."""
    places = (np.arange(n_to) + 0.5) * n_from / n_to - 0.5
    distance = np.abs(places[:, None] - np.arange(n_from))
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
    return np.rint(WEIGHT * weights).astype(np.int64)


def _frozen(X: Bytes, y: Labels) -> Source:
    """The same for every caller, so nobody may write to it."""
    X.flags.writeable = y.flags.writeable = False
    return X, y
