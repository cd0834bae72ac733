"""Endless digits: row i is a deformed copy of a source digit, a function of (seed, i) alone."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from benchmarks.deformation import (
    deform_rows,
    empty_frame,
    smooth_fields,
    sources_of,
    steps_of,
)

__all__ = ["Deformation", "infinite_digits"]

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Source = tuple[Bytes, Labels]

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
    source: Source,
    deformation: Deformation | None = None,
    n_jobs: int | None = None,
) -> Source:
    """Return the rows from `start` to `start + n - 1` of the endless stream `seed`, and labels.

    Of every N rows in turn, N being the number of source digits, each comes from another digit:
    classes are as frequent as in the source. `source` is (X, y) with one square image of bytes a
    row of X, and whole numbers.
    """
    images, labels = np.ascontiguousarray(source[0]), np.asarray(source[1], np.int64)
    key = np.uint64(seed)
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


def _steps(deformation: Deformation, side: int) -> Any:
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
