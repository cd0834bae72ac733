"""Planes in the sum representation: feature-major, sixteen to a tile, with room to grow.

Pegasos-style steps on W become plain signed sums of rows: Theta = lambda t W obeys
Theta <- Theta +- x, so nothing shrinks, and W is read off at the end. `timed_sums` holds
Phi = sum over updates u_s, made when s rows had been visited, of s (s + 1) u_s: the mean of
Theta over steps 1 ... T with weight t is Theta - Phi / (T (T + 1)), because u_s is part of Theta
after steps s + 1 ... T. Only updates touch it. Weight t beat weight 1 in nearly all trials.

A lane is a column of `sums`. Lanes fill in the order in which planes are born, so that the
lowest lane is the oldest plane. A pruned plane only leaves its lane idle; gaps are closed when
lanes run out, or when that is cheap and saves a tile: moving columns touches every feature.
A clone is a plane born with the sums and the past of another: until then the two were one.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import LANES, at, put, span

__all__ = [
    "CLONED",
    "CREATED",
    "LANES_USED",
    "MISTAKES",
    "NO_PLANE",
    "PRUNED",
    "Array",
    "Planes",
    "aligned_zeros",
    "clone_plane",
    "copied",
    "count_planes",
    "count_up",
    "drop_dormant",
    "growing_rival",
    "has_idle_tile",
    "inverse_length",
    "is_full",
    "live_lanes",
    "mean_sums",
    "new_plane",
    "prune",
    "resized",
    "rivals_may_grow",
    "spans_of",
    "tiles_used",
    "with_classes",
    "with_features",
    "with_more_room",
    "with_only",
    "with_planes",
    "zero_planes",
]

Array = np.ndarray[Any, Any]
NO_PLANE = -1  # owner of an idle lane, and the plane of a row that has none
LANES_USED, GROWING, CREATED, PRUNED, MISTAKES, CLONED, N_COUNTS = range(7)  # in `counts`
MOST_MOVED = 1 << 18  # elements: a tile less for the next rows pays for moving so many
MOST_BIRTHS = 2  # planes born in one step: one for the row's class, one for a rival
LEAST_SQUARED_NORM = 1e-60  # a plane of zeros has the inverse length 1e30: nothing turns to NaN


class Planes(NamedTuple):
    """All planes of one model while it is trained."""

    sums: Any  # [feature, lane] float32: Theta; feature 0 is the constant
    timed_sums: Any  # [feature, lane] float32: Phi, or without rows when no average is kept
    squared_norms: Any  # [lane] float64: of each column of `sums`, kept by increments
    inverse_lengths: Any  # [lane] float32: 1 / |Theta|, and 0 where the lane is idle
    owner: Any  # [lane] int32: class of the plane
    idle: Any  # [lane] float32: 0 where a plane lives, minus infinity elsewhere
    room_left: Any  # [class] int64: planes that the class may still create
    counts: Any  # int64: lanes used, classes that may grow, planes created, pruned, ...
    scores: Any  # [lane] float32: Theta x of the row at hand
    shrunk_scores: Any  # [lane] float32: the same of shrunk planes, where planes are shrunk
    largest_shares: Any  # [lane] float32: in a row since last set to 0, where rows are shared


class PlaneSpans(NamedTuple):
    """The same as spans, for use inside a loop; lane k of feature f is at f * stride + k."""

    sums: Any
    timed_sums: Any
    squared_norms: Any
    inverse_lengths: Any
    owner: Any
    idle: Any
    room_left: Any
    counts: Any
    scores: Any
    shrunk_scores: Any
    largest_shares: Any
    stride: Any
    n_features: Any
    keeps_average: Any


def aligned_zeros(n_rows: int, n_lanes: int) -> Array:
    """Zeroed float32 matrix that starts on a cache line."""
    raw = np.zeros(n_rows * n_lanes + LANES, np.float32)
    skip = -raw.ctypes.data % (4 * LANES) // 4
    return raw[skip : skip + n_rows * n_lanes].reshape(n_rows, n_lanes)


def zero_planes(n_columns: int, keeps_average: bool, room: int = LANES) -> Planes:
    """No planes yet, no classes yet."""
    n_features = n_columns + 1
    return Planes(
        sums=aligned_zeros(n_features, room),
        timed_sums=aligned_zeros(n_features if keeps_average else 0, room),
        squared_norms=np.zeros(room),
        inverse_lengths=np.zeros(room, np.float32),
        owner=np.full(room, NO_PLANE, np.int32),
        idle=np.full(room, -np.inf, np.float32),
        room_left=np.zeros(0, np.int64),
        counts=np.zeros(N_COUNTS, np.int64),
        scores=np.zeros(room, np.float32),
        shrunk_scores=np.zeros(room, np.float32),
        largest_shares=np.zeros(room, np.float32),
    )


@inlined
def spans_of(planes: Any) -> Any:
    """The planes as a loop sees them; `planes` must be its argument."""
    return PlaneSpans(
        span(planes.sums),
        span(planes.timed_sums),
        span(planes.squared_norms),
        span(planes.inverse_lengths),
        span(planes.owner),
        span(planes.idle),
        span(planes.room_left),
        span(planes.counts),
        span(planes.scores),
        span(planes.shrunk_scores),
        span(planes.largest_shares),
        planes.owner.size,
        planes.sums.shape[0],
        planes.timed_sums.size > 0,
    )


@inlined
def tiles_used(spans: Any) -> Any:
    """Tiles that hold planes."""
    return (at(spans.counts, LANES_USED) + LANES - 1) // LANES


@inlined
def is_full(spans: Any) -> Any:
    """True where one more step could run out of lanes."""
    return at(spans.counts, LANES_USED) + MOST_BIRTHS > spans.stride


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


@inlined
def drop(planes: Any, lane: Any) -> Any:
    """Leave the lane idle; its class may create a plane in its stead."""
    label = planes.owner[lane]
    planes.counts[GROWING] += planes.room_left[label] == 0
    planes.counts[PRUNED] += 1
    planes.room_left[label] += 1
    planes.owner[lane] = NO_PLANE
    planes.idle[lane] = -np.inf
    planes.inverse_lengths[lane] = 0


@jit
def prune(planes: Any, budget: Any) -> None:
    """Thm 3: drop the smallest planes while their squared norms add up to at most budget**2."""
    spent = 0.0
    while True:
        smallest = NO_PLANE
        for lane in range(planes.counts[LANES_USED]):  # of equal norms the oldest goes first
            if planes.owner[lane] != NO_PLANE and (
                smallest == NO_PLANE or planes.squared_norms[lane] < planes.squared_norms[smallest]
            ):
                smallest = lane
        if smallest == NO_PLANE or spent + planes.squared_norms[smallest] > budget * budget:
            return
        spent += planes.squared_norms[smallest]
        drop(planes, smallest)


@jit
def drop_dormant(planes: Any, threshold: Any) -> None:
    """Drop the planes with |Theta| <= threshold, which is mu t: SAMM has shrunk them to zero."""
    for lane in range(planes.counts[LANES_USED]):
        is_dormant = planes.squared_norms[lane] <= threshold * threshold
        if planes.owner[lane] != NO_PLANE and is_dormant:
            drop(planes, lane)


def count_planes(planes: Planes) -> int:
    """How many planes there are."""
    return int(planes.counts[CREATED] - planes.counts[PRUNED])


def live_lanes(planes: Planes) -> Array:
    """Lanes of the planes, oldest first."""
    return np.flatnonzero(planes.owner != NO_PLANE)


@jit
def _move_columns(source: Any, lanes: Any, target: Any) -> None:
    for f in range(source.shape[0]):
        for k in range(lanes.size):
            target[f, k] = source[f, lanes[k]]


def _padded(vector: Array, size: int, fill: float) -> Array:
    out = np.full(size, fill, vector.dtype)
    out[: len(vector)] = vector
    return out


def resized(planes: Planes, n_features: int, room: int) -> Planes:
    """The same planes without gaps between them, with room for more features and planes."""
    lanes = live_lanes(planes)

    def moved(matrix: Array) -> Array:
        out = aligned_zeros(n_features if len(matrix) else 0, room)
        _move_columns(matrix, lanes, out)
        return out

    counts = planes.counts.copy()
    counts[LANES_USED] = lanes.size
    return Planes(
        sums=moved(planes.sums),
        timed_sums=moved(planes.timed_sums),
        squared_norms=_padded(planes.squared_norms[lanes], room, 0.0),
        inverse_lengths=_padded(planes.inverse_lengths[lanes], room, 0.0),
        owner=_padded(planes.owner[lanes], room, NO_PLANE),
        idle=_padded(planes.idle[lanes], room, -np.inf),
        room_left=planes.room_left,
        counts=counts,
        scores=np.zeros(room, np.float32),
        shrunk_scores=np.zeros(room, np.float32),
        largest_shares=_padded(planes.largest_shares[lanes], room, 0.0),
    )


def with_more_room(planes: Planes) -> Planes:
    """What a full loop asks for: gaps closed if that is enough, else a quarter more lanes."""
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
    room_left = _padded(planes.room_left, n_classes, room_per_class)
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


def with_only(planes: Planes, lanes: Array) -> Planes:
    """Only the planes in these lanes, in no more room than they need."""
    goes = np.setdiff1d(live_lanes(planes), lanes)
    planes = copied(planes)
    planes.owner[goes] = NO_PLANE
    planes.idle[goes] = -np.inf
    planes.counts[PRUNED] += goes.size
    return resized(planes, len(planes.sums), -(-len(lanes) // LANES) * LANES)


def copied(planes: Planes) -> Planes:
    """The planes as they are now, to return to."""
    return Planes(*(array.copy() for array in planes))


def mean_sums(planes: Planes, n_steps: int) -> Array:
    """Mean of Theta over all steps with weight t, or Theta itself where no average is kept."""
    if len(planes.timed_sums) == 0 or n_steps == 0:
        return np.asarray(planes.sums)
    mean: Array = planes.timed_sums * np.float32(-1 / (n_steps * (n_steps + 1)))
    mean += planes.sums
    return mean
