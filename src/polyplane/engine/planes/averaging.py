"""The mean of planes over all steps, later ones weighing more, kept by increments.

`timed_sums` holds Phi = sum over updates u_s, made when s rows had been visited, of s (s + 1) u_s:
the mean of Theta over steps 1 ... T with weight t is Theta - Phi / (T (T + 1)), because u_s is part
of Theta after steps s + 1 ... T. Only updates touch it. Weight t beat weight 1 in nearly all
trials.
"""

from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.jit import inlined
from polyplane.engine.planes.planes import Planes

__all__ = ["mean_sums", "time_of"]


@inlined
def time_of(t: Any) -> Any:
    """Return the weight in `timed_sums` of an update made when t rows have been visited."""
    return t * (t + 1.0)


def mean_sums(planes: Planes, n_steps: int) -> Array:
    """Mean of Theta over all steps with weight t, or Theta itself where no average is kept."""
    if len(planes.timed_sums) == 0 or n_steps == 0:
        return np.asarray(planes.sums)
    mean: Array = planes.timed_sums * np.float32(-1 / (n_steps * (n_steps + 1)))
    mean += planes.sums
    return mean
