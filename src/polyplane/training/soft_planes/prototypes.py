"""Planes that start as prototypes: the best one is that of the nearest prototype.

A prototype c stands for the plane (c, -|c|^2 / 2): since |x - c|^2 = |x|^2 - 2 (c x - |c|^2 / 2),
the class of the best plane is that of the nearest c. Prototypes are rows of the class drawn at
random, or the centres that mini-batch k-means finds among some of its rows.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus
from threadpoolctl import threadpool_limits

from polyplane.arrays import Array
from polyplane.engine.rows.storage import Rows, matrix_of, packed, products
from polyplane.training.planes.state import PlaneModel
from polyplane.training.rows import TrainingData

__all__ = [
    "Prototypes",
    "groups_of_few",
    "in_units",
    "margin_of",
    "margins_between",
    "prototypes_of",
    "squared_length_of",
]

ROWS_PER_CENTRE = 40  # that k-means looks at, and LEAST_ROWS of them in all
LEAST_ROWS = 3_000
MOST_DENSE = 1 << 22  # numbers of a matrix that is written out for k-means
POINTS_TO_START, ROUNDS = 10, 8  # of k-means: points a centre, and rounds
ROWS_FOR_MARGIN = 3_000


class Prototypes(NamedTuple):
    """Planes of prototypes, and the code of each one's class."""

    planes: Array  # [plane, 1 + feature] float32
    owner: Array  # [plane] int32


def prototypes_of(
    model: PlaneModel,
    data: TrainingData,
    members: Array,
    codes: Array,
    n_planes: int,
    init: str,
    found_before: dict[Any, Array] | None = None,
) -> Prototypes:
    """Prototypes of those classes, called `codes` by the model, that have rows among `members`.

    A class draws the same ones in every model with the same seed; `found_before` keeps them for
    other models of the same rows.
    """
    known = {} if found_before is None else found_before
    planes, owner = [], []
    code_of_row = model.codes[data.labels[members]]
    for code in codes:
        rows = members[code_of_row == code]
        if rows.size == 0:
            continue
        classes = np.flatnonzero(model.codes == code)
        key = (*classes.tolist(), n_planes, init, model.seed)
        if key not in known:
            generator = np.random.default_rng([model.seed, int(classes[0])])
            known[key] = _centres(data.rows, rows, n_planes, init, model.n_features, generator)
        planes.append(_as_planes(known[key], float(data.rows.constant)))
        owner.append(np.full(len(known[key]), code, np.int32))
    return Prototypes(np.concatenate(planes), np.concatenate(owner))


def _as_planes(centres: Array, constant: float) -> Array:
    """With a constant feature of 0 instead of `constant`, planes go through the origin."""
    offsets = -0.5 * np.square(centres, dtype=np.float64).sum(axis=1)
    offsets = offsets / constant if constant else np.zeros_like(offsets)
    return np.column_stack([offsets, centres]).astype(np.float32)


def _centres(
    rows: Rows,
    members: Array,
    n_planes: int,
    init: str,
    n_features: int,
    generator: np.random.Generator,
) -> Array:
    """At most n_planes points; one plane stands for the mean of its class."""
    n_wanted = max(LEAST_ROWS, ROWS_PER_CENTRE * n_planes)
    if init == "subset" and n_planes > 1:
        n_wanted = n_planes
    drawn = generator.permutation(members)[:n_wanted]
    points = matrix_of(packed(rows, drawn), n_features)
    if n_planes == 1:
        return np.asarray(points.mean(axis=0), np.float32).reshape(1, -1)
    if init == "subset" or drawn.size <= n_planes:
        return np.asarray(points[:n_planes].toarray(), np.float32)
    return _k_means(points, n_planes, int(generator.integers(2**31)))


def _k_means(points: sp.csr_matrix, n_centres: int, seed: int) -> Array:
    """Centres; one thread, so that sums are always made in one order."""
    with threadpool_limits(1):
        if points.shape[0] * points.shape[1] <= MOST_DENSE:
            return _lloyd(points.toarray(), n_centres, np.random.default_rng(seed))
        search = MiniBatchKMeans(
            n_centres, n_init=1, batch_size=1_024, max_iter=30, random_state=seed
        )
        return np.asarray(search.fit(points).cluster_centers_, np.float32)


def _lloyd(points: Array, n_centres: int, generator: np.random.Generator) -> Array:
    """A few rounds from some points far apart: as good to start from, in a third of the time."""
    some = generator.permutation(points)[: POINTS_TO_START * n_centres]
    seed = int(generator.integers(2**31))
    centres: Array = kmeans_plusplus(some, n_centres, random_state=seed)[0].astype(np.float32)
    everyone = np.arange(len(points))
    for _ in range(ROUNDS):
        lengths = np.square(centres).sum(axis=1)
        nearest = (lengths - 2 * (points @ centres.T)).argmin(axis=1)
        ones = np.ones(len(points), np.float32)
        of_centre = sp.csr_matrix((ones, (nearest, everyone)), (n_centres, len(points)))
        n_points = np.bincount(nearest, minlength=n_centres)
        has_points = n_points > 0  # a centre without points stays where it is
        sums = of_centre @ points
        centres[has_points] = sums[has_points] / n_points[has_points, None]
    return centres


def in_units(prototypes: Prototypes, n_units: int) -> Prototypes:
    """The prototypes of each class dealt out to its units, with units as their owners.

    Classes have one prototype for each unit at least: theirs are taken again where they are fewer.
    """
    chosen, owner = [], []
    for code in np.unique(prototypes.owner):
        own = np.flatnonzero(prototypes.owner == code)
        own = np.resize(own, max(own.size, n_units))
        chosen.append(own)
        owner.append(code * n_units + np.arange(own.size) * n_units // own.size)
    places = np.concatenate(chosen)
    return Prototypes(prototypes.planes[places], np.concatenate(owner).astype(np.int32))


def margin_of(
    model: PlaneModel, data: TrainingData, members: Array, prototypes: Prototypes
) -> float:
    """Median distance, over some rows, between the best own and the best other plane's score.

    The more prototypes there are, the smaller it is.
    """
    return margins_between(model, data, members, prototypes, len(prototypes.owner))[0]


def margins_between(
    model: PlaneModel, data: TrainingData, members: Array, prototypes: Prototypes, n_few: int
) -> tuple[float, float]:
    """The margin between all prototypes, and its mean between `n_few` of each class at a time.

    What is measured between few depends on which: several groups are steadier than one.
    """
    generator = np.random.default_rng([model.seed, len(prototypes.owner)])
    some = np.sort(generator.permutation(members)[:ROWS_FOR_MARGIN])
    scores = products(data.rows, some, prototypes.planes.T)
    codes = model.codes[data.labels[some]]

    def margin(is_in: Array) -> float:
        found = _median_margin(scores[:, is_in], prototypes.owner[is_in], codes)
        planes = prototypes.planes[is_in, 1:]
        return found or float(np.square(planes).sum(axis=1).mean()) or 1.0

    of_all = margin(np.ones(len(prototypes.owner), bool))
    group = groups_of_few(prototypes.owner, n_few)
    n_groups = int(group.max()) + 1
    if n_groups == 1 and (group == 0).all():
        return of_all, of_all
    return of_all, float(np.mean([margin(group == g) for g in range(n_groups)]))


def _median_margin(scores: Array, owner: Array, codes: Array) -> float:
    """0 where there is none: rows are of one class, or all alike."""
    is_own = owner == codes[:, None]
    own = np.where(is_own, scores, -np.inf).max(axis=1)
    other = np.where(is_own, -np.inf, scores).max(axis=1)
    margins = np.abs(own - other)
    margins = margins[np.isfinite(margins) & (margins > 0)]
    return float(np.median(margins)) if margins.size else 0.0


def groups_of_few(owner: Array, n_few: int) -> Array:
    """The group of each prototype, with at most so many of each class; -1 of what is left over."""
    place = np.zeros(owner.size, int)
    for code in np.unique(owner):
        is_own = owner == code
        place[is_own] = np.arange(is_own.sum())
    counts = np.bincount(owner)[np.unique(owner)]
    n_groups = max(1, int(counts.min()) // n_few)
    group = place // n_few
    return np.where(group < n_groups, group, -1)


def squared_length_of(model: PlaneModel, data: TrainingData, members: Array) -> float:
    """Mean squared length of some rows, with their constant."""
    generator = np.random.default_rng(model.seed)
    some = np.sort(generator.permutation(members)[:ROWS_FOR_MARGIN])
    values = packed(data.rows, some).values
    squared = float(np.square(values, dtype=np.float64).sum()) / some.size
    return squared + float(data.rows.constant) ** 2 or 1.0
