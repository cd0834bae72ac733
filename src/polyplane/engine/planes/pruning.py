"""Pruning of the smallest planes, of dormant ones, and of planes chosen elsewhere.

A pruned plane only leaves its lane idle; gaps are closed when lanes run out.
"""

from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import (
    GROWING,
    LANES_USED,
    NO_PLANE,
    PRUNED,
    Planes,
    copied,
    live_lanes,
    resized,
)
from polyplane.engine.tiles import LANES

__all__ = ["drop_dormant", "prune", "with_only"]


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


def with_only(planes: Planes, lanes: Array) -> Planes:
    """Only the planes in these lanes, in no more room than they need."""
    goes = np.setdiff1d(live_lanes(planes), lanes)
    planes = copied(planes)
    planes.owner[goes] = NO_PLANE
    planes.idle[goes] = -np.inf
    planes.counts[PRUNED] += goes.size
    return resized(planes, len(planes.sums), -(-len(lanes) // LANES) * LANES)
