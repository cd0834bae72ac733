"""Iterative parameter mixing: models that went on from the same planes become one again.

A round    every partition of the rows goes on from the shared planes by steps of its own; then the
           models reached are mixed, and the mixture is what the next round starts from.
Mixture    of models that made n_p steps in the round and now stand at step t_p: with
           q_p = n_p / sum n, Theta = sum_p q_p Theta_p and t = sum_p q_p t_p, so that
           W = Theta / (alpha t) is a weighted mean of the W_p. t counts how deep partitions are,
           not how many rows all of them visited together: each step is as large as its depth
           asks, and the mean takes the noise out of it.
Shared     planes, those that the round began with, are averaged; where a partition has pruned one,
           it counts as zero there, which is what pruning makes of a plane.
New        planes are united. A plane keeps its W, which is that of a whole classifier of margin 1,
           so its sums are multiplied by t / t_p. Two new planes of one class, of two partitions,
           whose cosine is at least `alike` are one plane found twice: they are averaged in
           proportion to the steps behind them. Pairs are formed by falling cosine.
Soft       planes note their largest share of a row; that of a mixture is the largest of any.
Averages   Phi is such that the mean of Theta over all steps (`planes.py`) is the same mixture:
           Phi / (t (t + 1)) is averaged, and multiplied, as Theta is.
A share is what of a model is mixed: planes side by side without gaps. `mixed` takes two, so that a
tree of pairs never holds more; it is commutative up to rounding and the order of new planes.

Paper      McDonald, Hall, Mann (NAACL 2010), https://aclanthology.org/N10-1069, Figure 3; they
           train perceptrons, whose planes are all shared.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import (
    CREATED,
    GROWING,
    LANES_USED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    Planes,
    inverse_length,
    live_lanes,
)
from polyplane.engine.records import filled
from polyplane.engine.tiles import LANES

__all__ = ["NEW", "Share", "is_sound", "mixed", "settled", "share_of"]

NEW = -1  # origin of a plane born in the round


class Share(NamedTuple):
    """Change of a model in a round, by one partition or by several together."""

    sums: Array  # float32 [feature, plane]: Theta
    timed_sums: Array  # float32 [feature, plane]: Phi; without rows where no average is kept
    squared_norms: Array  # float64 [plane]
    owner: Array  # int32 [plane]: class
    origin: Array  # int64 [plane]: its place among the planes that the round began with, or NEW
    backing: Array  # float64 [plane]: steps of the round that stand behind it
    won: Array  # float64 [plane]: rows it has won, where that is counted
    largest: Array  # float32 [plane]: its largest share of a row in the round, where that is noted
    steps: float  # t
    weight: float  # steps of the round
    mistakes: float
    created: float  # planes, in the round and before


def share_of(planes: Planes, origin: Array, won: Array, n_steps: int, n_new_steps: int) -> Share:
    """Return the share of a model after `n_new_steps` of a round; `origin` is by live plane.

    `won` is by lane, or empty.
    """
    lanes = live_lanes(planes)
    return Share(
        sums=planes.sums[:, lanes],
        timed_sums=planes.timed_sums[:, lanes],
        squared_norms=planes.squared_norms[lanes],
        owner=planes.owner[lanes],
        origin=np.asarray(origin, np.int64),
        backing=np.full(lanes.size, float(n_new_steps)),
        won=won[lanes].astype(np.float64) if won.size else np.zeros(lanes.size),
        largest=planes.largest_shares[lanes],
        steps=float(n_steps),
        weight=float(n_new_steps),
        mistakes=float(planes.counts[MISTAKES]),
        created=float(planes.counts[CREATED]),
    )


# ---- two shares become one ---------------------------------------------------------------


def mixed(first: Share, second: Share, n_created_before: float, alike: float) -> Share:
    """The mixture of two shares; one that has made no step changes nothing.

    `n_created_before` counts the planes created before the round, which both have counted.
    """
    if first.weight == 0 or second.weight == 0:
        return second if first.weight == 0 else first
    weight = first.weight + second.weight
    parts = (first, first.weight / weight), (second, second.weight / weight)
    steps = sum(q * part.steps for part, q in parts)
    ways = _ways(first, second, alike)
    n = 1 + max(int(way.place.max(initial=-1)) for way in ways)
    made = [_arrived(part, way, steps, n) for (part, _), way in zip(parts, ways, strict=True)]
    sums = (made[0].sums + made[1].sums).astype(np.float32)
    return Share(
        sums=sums,
        timed_sums=(made[0].timed_sums + made[1].timed_sums).astype(np.float32),
        squared_norms=np.square(sums, dtype=np.float64).sum(axis=0),
        owner=np.maximum(made[0].owner, made[1].owner),
        origin=np.maximum(made[0].origin, made[1].origin),
        backing=made[0].backing + made[1].backing,
        won=made[0].won + made[1].won,
        largest=np.maximum(made[0].largest, made[1].largest),
        steps=float(steps),
        weight=weight,
        mistakes=float(sum(q * part.mistakes for part, q in parts)),
        created=first.created + second.created - n_created_before,
    )


class _Way(NamedTuple):
    """Where each plane of a share goes, and how much of it."""

    place: Array
    factor: Array


def _arrived(share: Share, way: _Way, steps: float, n: int) -> Share:
    """Return the contribution of a share to the n planes of a mixture at step `steps`.

    New planes keep their W; the mean over steps that Phi stands for goes with the sums.
    """
    factor = way.factor * np.where(share.origin == NEW, steps / share.steps, 1.0)
    past = steps * (steps + 1) / (share.steps * (share.steps + 1))

    def put(values: Array, nothing: float = 0.0) -> Array:
        made = np.full((*values.shape[:-1], n), nothing, values.dtype)
        made[..., way.place] = values
        return made

    return share._replace(
        sums=put(share.sums * factor),
        timed_sums=put(share.timed_sums * (past * factor)),
        owner=put(share.owner, NO_PLANE),
        origin=put(share.origin, NEW),
        backing=put(share.backing),
        won=put(share.won * way.factor),
        largest=put(share.largest),
    )


def _ways(first: Share, second: Share, alike: float) -> tuple[_Way, _Way]:
    """Return the ways of both shares: shared planes first, in order, then new ones of the first."""
    shared = np.union1d(first.origin[first.origin != NEW], second.origin[second.origin != NEW])
    new, others = (np.flatnonzero(share.origin == NEW) for share in (first, second))
    pairs = _found_twice(first, second, new, others, alike)
    ways = tuple(
        _Way(
            np.searchsorted(shared, share.origin),
            np.where(share.origin == NEW, 1.0, share.weight / (first.weight + second.weight)),
        )
        for share in (first, second)
    )
    alone = np.setdiff1d(others, [b for _, b in pairs])
    ways[0].place[new] = shared.size + np.arange(new.size)
    ways[1].place[alone] = shared.size + new.size + np.arange(alone.size)
    for a, b in pairs:
        backing = first.backing[a] + second.backing[b]
        ways[1].place[b] = ways[0].place[a]
        ways[0].factor[a] = first.backing[a] / backing
        ways[1].factor[b] = second.backing[b] / backing
    return ways[0], ways[1]


def _found_twice(
    first: Share, second: Share, new: Array, others: Array, alike: float
) -> list[tuple[int, int]]:
    """Pairs of new planes of the two that are the same but for chance, each in one pair at most."""
    cosines = _unit(first, new).T @ _unit(second, others)
    cosines[first.owner[new][:, None] != second.owner[others]] = -np.inf
    a, b = np.nonzero(cosines >= alike)
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for k in np.argsort(-cosines[a, b], kind="stable"):
        one, other = int(new[a[k]]), int(others[b[k]])
        if one not in taken[0] and other not in taken[1]:
            taken[0].add(one)
            taken[1].add(other)
            pairs.append((one, other))
    return pairs


def _unit(share: Share, planes: Array) -> Array:
    """Planes of length 1; one of zeros is like none."""
    sums = share.sums[:, planes].astype(np.float64)
    lengths = np.sqrt(np.square(sums).sum(axis=0))
    return np.asarray(sums / np.where(lengths > 0, lengths, np.inf))


# ---- and a model again -------------------------------------------------------------------


def settled(before: Planes, share: Share, n_units: int = 1) -> Planes:
    """The planes of a share as a model in training, which went into the round with `before`.

    A class that has more planes than it may keeps its longest. Where classes have several units,
    planes belong to these.
    """
    n_classes = before.room_left.size
    living = np.bincount(before.owner[live_lanes(before)] // n_units, minlength=n_classes)
    may_have = before.room_left + living
    kept = _longest(share, may_have, n_units)
    n = kept.size
    n_features, room = len(before.sums), max(before.owner.size, -(-n // LANES) * LANES)
    sizes = {"feature": n_features, "timed feature": len(before.timed_sums), "lane": room}
    planes: Planes = filled(Planes, **sizes, **{"class": n_classes}, count=before.counts.size)
    planes.sums[:, :n], planes.timed_sums[:, :n] = share.sums[:, kept], share.timed_sums[:, kept]
    planes.squared_norms[:n] = share.squared_norms[kept]
    planes.inverse_lengths[:n] = [inverse_length(norm) for norm in planes.squared_norms[:n]]
    planes.owner[:n], planes.idle[:n] = share.owner[kept], 0
    planes.largest_shares[:n] = share.largest[kept]
    planes.room_left[:] = may_have - np.bincount(share.owner[kept] // n_units, minlength=n_classes)
    planes.counts[:] = before.counts
    planes.counts[[LANES_USED, GROWING]] = n, np.count_nonzero(planes.room_left)
    planes.counts[[CREATED, MISTAKES]] = round(share.created), round(share.mistakes)
    planes.counts[PRUNED] = planes.counts[CREATED] - n
    return planes


def _longest(share: Share, may_have: Array, n_units: int) -> Array:
    """Planes of which no class has more than it may, in their order."""
    by_length, labels = np.argsort(-share.squared_norms, kind="stable"), share.owner // n_units
    place = np.empty(by_length.size, np.int64)  # of each plane among those of its class
    for label in np.unique(labels):
        of_class = by_length[labels[by_length] == label]
        place[of_class] = np.arange(of_class.size)
    return np.flatnonzero(place < may_have[labels])


def is_sound(share: Any) -> bool:
    """Return True if a share that arrived has arrays that go together, of finite numbers."""
    n = share.owner.size
    matrices = share.sums, share.timed_sums
    vectors = (
        share.squared_norms,
        share.owner,
        share.origin,
        share.backing,
        share.won,
        share.largest,
    )
    is_like = all(one.ndim == 2 and one.shape[1] == n for one in matrices)
    is_like = is_like and all(one.shape == (n,) for one in vectors)
    is_like = is_like and len(share.timed_sums) in (0, len(share.sums))
    numbers = share.steps, share.weight, share.mistakes, share.created
    is_counted = all(np.isfinite(one) and one >= 0 for one in numbers)
    is_owned = bool((share.owner > NO_PLANE).all() and (share.origin >= NEW).all())
    arrays = (*matrices, share.squared_norms, share.backing, share.won, share.largest)
    return is_like and is_counted and is_owned and all(np.isfinite(one).all() for one in arrays)
