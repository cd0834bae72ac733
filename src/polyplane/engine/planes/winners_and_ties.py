"""Choice of the plane that answers for a row: the best of its class, the best of all others.

Scores are found first, planes only when they are needed: most rows ask for no update.
Equal scores go to the lowest lane, which is the oldest plane; so they do in `scoring.py`.
"""

from typing import Any

import numpy as np

from polyplane.engine.jit import inlined
from polyplane.engine.tiles import (
    LANES,
    horizontal_max,
    lane_of,
    load,
    maximum,
    select_other,
    select_own,
    splat,
)

__all__ = ["best_scores", "plane_of_other", "plane_of_own"]


@inlined
def best_scores(scores: Any, owner: Any, n_tiles: Any, label: Any) -> Any:
    """Highest score of the planes of `label` and of all other planes; minus infinity if none."""
    own = rival = splat(np.float32(-np.inf))
    for o in range(0, n_tiles * LANES, LANES):
        tile = load(scores, o)
        own = maximum(own, select_own(tile, owner, o, label))
        rival = maximum(rival, select_other(tile, owner, o, label))
    return horizontal_max(own), horizontal_max(rival)


@inlined
def plane_of_own(scores: Any, owner: Any, n_tiles: Any, label: Any, score: Any) -> Any:
    """Oldest plane of `label` that has this score."""
    for o in range(0, n_tiles * LANES, LANES):
        lane = lane_of(select_own(load(scores, o), owner, o, label), score)
        if lane < LANES:
            return o + lane
    return -1


@inlined
def plane_of_other(scores: Any, owner: Any, n_tiles: Any, label: Any, score: Any) -> Any:
    """Oldest plane of another class than `label` that has this score."""
    for o in range(0, n_tiles * LANES, LANES):
        lane = lane_of(select_other(load(scores, o), owner, o, label), score)
        if lane < LANES:
            return o + lane
    return -1
