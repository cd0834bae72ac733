"""Generated problems in the plane, for tests and pictures.

Every function returns n rows, float32 [n, 2], and their classes 0, 1, ... as int64. The first
rows of a longer draw are those of a shorter one. `noise` moves each row after it got its class, by
a normal number of that deviation; 1 is the half width of the picture, [-1, 1] each way.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["blobs", "checkerboard", "polygons", "spirals"]

Rows = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]
PLACES, NOISE, PLAN = 0, 1, 2  # what is drawn with a seed, each on its own
RADIUS = 0.9  # within which polygons, arms and centres of blobs lie


def checkerboard(n: int, noise: float = 0.0, seed: int = 0, *, fields: int = 4) -> Rows:
    """Two classes on the fields of a board of fields * fields."""
    _check(n, noise, fields=(fields, 1))
    places = _uniform(n, 2, seed)
    classes = np.floor(places * fields).astype(np.int64).sum(axis=1) % 2
    return _moved(2 * places - 1, classes, noise, seed)


def polygons(
    n: int, noise: float = 0.0, seed: int = 0, *, corners: int = 5, n_polygons: int = 1
) -> Rows:
    """Class 1 inside convex polygons with random corners on a circle, class 0 outside."""
    _check(n, noise, corners=(corners, 3), n_polygons=(n_polygons, 1))
    places = 2 * _uniform(n, 2, seed) - 1
    plan = np.random.default_rng([seed, PLAN])
    columns = int(np.ceil(np.sqrt(n_polygons)))
    is_inside = np.zeros(n, bool)
    for k in range(n_polygons):
        line, column = divmod(k, columns)
        centre = (2 * np.array([column, line]) + 1) / columns - 1
        turns = (np.arange(corners) + 0.6 * plan.random(corners)) / corners
        is_inside |= _is_in_polygon(places, centre, RADIUS / columns * _on_circle(turns))
    return _moved(places, is_inside.astype(np.int64), noise, seed)


def _is_in_polygon(places: Any, centre: Any, corners: Any) -> Any:
    """Left of every edge; corners go round anticlockwise about the centre."""
    edges = np.roll(corners, -1, axis=0) - corners
    offsets = (places - centre)[:, None, :] - corners
    return (edges[:, 0] * offsets[..., 1] >= edges[:, 1] * offsets[..., 0]).all(axis=1)


def spirals(
    n: int, noise: float = 0.0, seed: int = 0, *, turns: float = 1.5, arms: int = 2
) -> Rows:
    """One class an arm; the arms wind around the origin side by side."""
    _check(n, noise, turns=(turns, 0.0), arms=(arms, 1))
    draws = _uniform(n, 2, seed)
    classes = np.floor(draws[:, 0] * arms).astype(np.int64)
    along = np.sqrt(draws[:, 1])  # evenly along the arm, whose length grows with the square
    directions = _on_circle(turns * along + classes / arms)
    return _moved(RADIUS * along[:, None] * directions, classes, noise, seed)


def blobs(
    n: int,
    noise: float = 0.0,
    seed: int = 0,
    *,
    n_classes: int = 2,
    per_class: int = 3,
    deviation: float = 0.08,
) -> Rows:
    """Normal clouds, several for each class, around random centres that keep apart."""
    _check(n, noise, n_classes=(n_classes, 1), per_class=(per_class, 1), deviation=(deviation, 0.0))
    n_blobs = n_classes * per_class
    columns = int(np.ceil(np.sqrt(n_blobs)))
    plan = np.random.default_rng([seed, PLAN])
    fields = plan.permutation(columns * columns)[:n_blobs]
    places = np.stack(np.divmod(fields, columns), axis=1) + 0.25 + 0.5 * plan.random((n_blobs, 2))
    centres = RADIUS * (2 * places / columns - 1)
    chosen = np.floor(_uniform(n, 1, seed)[:, 0] * n_blobs).astype(np.int64)
    spread = np.hypot(deviation, noise)
    return _moved(centres[chosen], chosen % n_classes, float(spread), seed)


def _check(n: int, noise: float, **least: tuple[float, float]) -> None:
    for name, (value, lowest) in {"n": (n, 0), "noise": (noise, 0.0), **least}.items():
        if not value >= lowest:
            raise ValueError(f"{name} is {value}, but must be {lowest} or more.")


def _uniform(n: int, width: int, seed: int) -> Any:
    """[n, width] numbers from 0 to 1."""
    return np.random.default_rng([seed, PLACES]).random((n, width))


def _on_circle(turns: Any) -> Any:
    """Points of the unit circle, so many turns from the right."""
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)


def _moved(places: Any, classes: Any, noise: float, seed: int) -> Rows:
    steps = np.random.default_rng([seed, NOISE]).standard_normal(places.shape)
    return (places + noise * steps).astype(np.float32), classes
