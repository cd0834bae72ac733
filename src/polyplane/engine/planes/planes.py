"""Planes in the sum representation: feature-major, sixteen to a tile, with room to grow.

Pegasos-style steps on W become plain signed sums of rows: Theta = lambda t W obeys
Theta <- Theta +- x, so nothing shrinks, and W is read off at the end. What `timed_sums` holds is
said in `averaging.py`, which planes go in `pruning.py`.

A lane is a column of `sums`. Lanes fill in the order in which planes are born, so that the
lowest lane is the oldest plane. A pruned plane only leaves its lane idle; gaps are closed when
lanes run out, or when that is cheap and saves a tile: moving columns touches every feature.
A clone is a plane born with the sums and the past of another: until then the two were one.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined, jit
from polyplane.engine.records import array, fields_of, filled, moved_along, spans_function
from polyplane.engine.tiles import LANES, at, put

__all__ = [
    "CLONED",
    "CREATED",
    "LANES_USED",
    "MISTAKES",
    "MOST_BIRTHS",
    "NO_PLANE",
    "N_COUNTS",
    "PRUNED",
    "Planes",
    "PlanesSpans",
    "clone_plane",
    "copied",
    "count_planes",
    "count_up",
    "growing_rival",
    "has_idle_tile",
    "inverse_length",
    "is_full",
    "live_lanes",
    "new_plane",
    "resized",
    "rivals_may_grow",
    "same_bits",
    "sorted_by_owner",
    "spans_of",
    "tiles_used",
    "with_classes",
    "with_features",
    "with_more_room",
    "with_planes",
    "zero_planes",
]


NO_PLANE = -1  # owner of an idle lane, and the plane of a row that has none
LANES_USED, GROWING, CREATED, PRUNED, MISTAKES, CLONED, N_COUNTS = range(7)  # in `counts`
MOST_MOVED = 1 << 18  # elements: a tile less for the next rows pays for moving so many
MOST_BIRTHS = 2  # planes born in one step: one for the row's class, one for a rival
LEAST_SQUARED_NORM = 1e-60  # a plane of zeros has the inverse length 1e30: nothing turns to NaN


class Planes(NamedTuple):
    """All planes of one model while it is trained."""

    sums: Annotated[Any, array(np.float32, "feature", "lane")]  # Theta; feature 0 is the constant
    timed_sums: Annotated[Any, array(np.float32, "timed feature", "lane")]  # Phi; may have no rows
    squared_norms: Annotated[Any, array(np.float64, "lane")]  # of columns of `sums`, by increments
    inverse_lengths: Annotated[Any, array(np.float32, "lane")]  # 1 / |Theta|; 0 in idle lanes
    owner: Annotated[Any, array(np.int32, "lane", fill=NO_PLANE)]  # class of the plane
    idle: Annotated[Any, array(np.float32, "lane", fill=-np.inf)]  # 0 where a plane lives
    room_left: Annotated[Any, array(np.int64, "class")]  # planes that the class may still create
    counts: Annotated[Any, array(np.int64, "count")]  # lanes used, classes that may grow, ...
    scores: Annotated[Any, array(np.float32, "lane", is_passing=True)]  # Theta x, of this row
    shrunk_scores: Annotated[Any, array(np.float32, "lane", is_passing=True)]  # of shrunk planes
    largest_shares: Annotated[Any, array(np.float32, "lane")]  # in a row since last set to 0


# lane k of feature f is at f * stride + k
PlanesSpans, spans_of = spans_function(
    Planes,
    stride="record.owner.size",
    room="record.owner.size",
    n_features="record.sums.shape[0]",
    keeps_average="record.timed_sums.size > 0",
)


def zero_planes(n_columns: int, keeps_average: bool, room: int = LANES) -> Planes:
    """No planes yet, no classes yet."""
    sizes = {"feature": n_columns + 1, "timed feature": keeps_average * (n_columns + 1)}
    return filled(Planes, **sizes, lane=room, **{"class": 0}, count=N_COUNTS)


@inlined
def tiles_used(spans: Any) -> Any:
    """Tiles that hold planes."""
    return (at(spans.counts, LANES_USED) + LANES - 1) // LANES


@inlined
def is_full(spans: Any) -> Any:
    """True where one more step could run out of lanes."""
    return at(spans.counts, LANES_USED) + MOST_BIRTHS > spans.room


@inlined
def count_up(spans: Any, place: Any) -> Any:
    """One more in that place of `counts`."""
    put(spans.counts, place, at(spans.counts, place) + 1)


@inlined
def rivals_may_grow(spans: Any, label: Any) -> Any:
    """True where a class other than `label` still has its zero plane."""
    return at(spans.counts, GROWING) > (at(spans.room_left, label) > 0)


@inlined
def growing_rival(spans: Any, label: Any) -> Any:
    """The lowest class other than `label` that still has its zero plane: they all score 0."""
    rival = 0
    while rival == label or at(spans.room_left, rival) == 0:
        rival += 1
    return rival


@jit
def inverse_length(squared_norm: Any) -> Any:
    """1 / |Theta| of a plane with this squared norm."""
    return np.float32(1.0 / np.sqrt(max(squared_norm, LEAST_SQUARED_NORM)))


@inlined
def new_plane(spans: Any, label: Any) -> Any:
    """The lane of a new zero plane of class `label`; its score is 0."""
    lane = at(spans.counts, LANES_USED)
    count_up(spans, LANES_USED)
    count_up(spans, CREATED)
    room_left = at(spans.room_left, label) - 1
    put(spans.room_left, label, room_left)
    if room_left == 0:
        put(spans.counts, GROWING, at(spans.counts, GROWING) - 1)
    put(spans.owner, lane, np.int32(label))
    put(spans.idle, lane, np.float32(0))
    put(spans.inverse_lengths, lane, inverse_length(0.0))
    put(spans.scores, lane, np.float32(0))
    return lane


@inlined
def clone_plane(spans: Any, plane: Any) -> Any:
    """The lane of a new plane like this one, whose past it shares."""
    lane = new_plane(spans, at(spans.owner, plane))
    count_up(spans, CLONED)
    for o in range(0, spans.n_features * spans.stride, spans.stride):
        put(spans.sums, o + lane, at(spans.sums, o + plane))
        if spans.keeps_average:
            put(spans.timed_sums, o + lane, at(spans.timed_sums, o + plane))
    put(spans.squared_norms, lane, at(spans.squared_norms, plane))
    put(spans.inverse_lengths, lane, at(spans.inverse_lengths, plane))
    put(spans.scores, lane, at(spans.scores, plane))
    return lane


def count_planes(planes: Planes) -> int:
    """Return the number of planes."""
    return int(planes.counts[CREATED] - planes.counts[PRUNED])


def live_lanes(planes: Planes) -> Array:
    """Lanes of the planes, oldest first."""
    return np.flatnonzero(planes.owner != NO_PLANE)


def resized(planes: Planes, n_features: int, room: int) -> Planes:
    """Return the planes without gaps between them, with room for more features and planes."""
    lanes = live_lanes(planes)
    sizes = {"feature": n_features, "timed feature": n_features, "lane": room}
    counts = planes.counts.copy()
    counts[LANES_USED] = lanes.size
    made: Planes = moved_along(planes, "lane", lanes, **sizes)
    return made._replace(counts=counts)


def with_more_room(planes: Planes) -> Planes:
    """Return planes with room to grow: gaps are closed, or else there are a quarter more lanes."""
    room = planes.owner.size
    if count_planes(planes) + MOST_BIRTHS > room:
        room += max(LANES, room // (4 * LANES) * LANES)
    return resized(planes, len(planes.sums), room)


def has_idle_tile(planes: Planes) -> bool:
    """True where closing the gaps saves a tile, and little has to be moved for it."""
    n_lanes = int(planes.counts[LANES_USED])
    n_gaps = n_lanes - count_planes(planes)
    return planes.sums.size <= MOST_MOVED and n_gaps > (n_lanes - 1) % LANES


def with_features(planes: Planes, n_columns: int) -> Planes:
    """Room for columns never seen before, and spare, since more may follow."""
    if n_columns < len(planes.sums):
        return planes
    n_features = max(n_columns + 1, len(planes.sums) * 3 // 2)
    return resized(planes, n_features, planes.owner.size)


def with_classes(planes: Planes, n_classes: int, room_per_class: int) -> Planes:
    """Classes never seen before, each with room for so many planes."""
    n_new = n_classes - planes.room_left.size
    counts = planes.counts.copy()
    counts[GROWING] += n_new if room_per_class > 0 else 0
    room_left: Array = np.full(n_classes, room_per_class, np.int64)
    room_left[: planes.room_left.size] = planes.room_left
    return planes._replace(room_left=room_left, counts=counts)


def with_planes(planes: Planes, labels: Array, start: Array) -> Planes:
    """More planes: row k of `start`, a sum over features, belongs to class `labels[k]`."""
    first, n = int(planes.counts[LANES_USED]), len(labels)
    room = -(-(first + n + MOST_BIRTHS) // LANES) * LANES
    if room > planes.owner.size:
        planes = resized(planes, len(planes.sums), room)
        first = int(planes.counts[LANES_USED])
    lanes = slice(first, first + n)
    planes.sums[: start.shape[1], lanes] = start.T
    planes.squared_norms[lanes] = np.square(start, dtype=np.float64).sum(axis=1)
    planes.inverse_lengths[lanes] = [inverse_length(x) for x in planes.squared_norms[lanes]]
    planes.owner[lanes] = labels
    planes.idle[lanes] = 0
    planes.counts[[LANES_USED, CREATED]] += n
    return planes


def sorted_by_owner(planes: Planes) -> Planes:
    """Return the planes with those of an owner side by side, older ones first."""
    lanes = live_lanes(planes)
    lanes = lanes[np.argsort(planes.owner[lanes], kind="stable")]
    counts = planes.counts.copy()
    counts[LANES_USED] = lanes.size
    made: Planes = moved_along(planes, "lane", lanes, lane=planes.owner.size)
    return made._replace(counts=counts)


def copied(planes: Planes) -> Planes:
    """The planes as they are now, to return to."""
    return Planes(*(array.copy() for array in planes))


def same_bits(planes: Planes, others: Planes) -> bool:
    """Return True if both are the same in all that steps go by, in the same lanes."""
    kept = [name for name, field in fields_of(Planes).items() if not field.is_passing]
    return all(_same_bits(getattr(planes, name), getattr(others, name)) for name in kept)


def _same_bits(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool((one.view(np.uint8) == other.view(np.uint8)).all())
