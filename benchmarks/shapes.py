"""Generated problems in the plane."""

import numpy as np
import numpy.typing as npt

__all__ = ["checkerboard"]

Rows = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


def checkerboard(n: int, noise: float = 0.0, seed: int = 0, *, fields: int = 4) -> Rows:
    """Return n rows in [-1, 1]² and the two classes of the fields of a board of fields * fields.

    `noise` moves each row after it got its class, by a normal number of that deviation. The first
    rows of a longer draw are those of a shorter one.
    """
    places = np.random.default_rng([seed, 0]).random((n, 2))
    classes = np.floor(places * fields).astype(np.int64).sum(axis=1) % 2
    moved = 2 * places - 1
    if noise:
        moved += noise * np.random.default_rng([seed, 1]).standard_normal((n, 2))
    return moved.astype(np.float32), classes
