"""Rows that rest: what is surely right is asked again only in every fourth pass.

Rows that lead by more than enough move no plane, and yet cost a look at all planes. Those that lead
by `RESTING_LEAD_FACTOR` more are not looked at in the next `REST` passes: few of them are lost so
soon, and those that are wake up in time. A step on a row that rests changes nothing but the count
of steps, and is no mistake.

`resting` holds a number for each row: AWAKE, or so much less as it has passes to rest. It is empty
where none rests, as in streams.
"""

from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined

__all__ = ["AWAKE", "REST", "all_awake", "let_rest", "rests"]

AWAKE = -1  # below 0: a number of 0 or more would be the plane of a row
REST = 3  # passes
RESTING_LEAD_FACTOR = 1.0  # of the lead that is enough


def all_awake(n_rows: int) -> Array:
    """Return the state at the start of a training, in which all rows are visited."""
    return np.full(n_rows, AWAKE, np.int32)


@inlined
def rests(resting: Any, i: Any) -> Any:
    """Return True if a row rests in this pass; if so, there is one less to come."""
    if resting.size == 0 or resting[i] >= AWAKE:
        return False
    resting[i] += 1
    return True


@inlined
def let_rest(resting: Any, i: Any, lead: Any, enough: Any) -> Any:
    """Let a row rest whose class leads by far enough."""
    if resting.size > 0 and lead > enough + RESTING_LEAD_FACTOR:
        resting[i] = AWAKE - REST
