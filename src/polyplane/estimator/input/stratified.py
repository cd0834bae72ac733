"""Some of the rows held out, of every class alike."""

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import shuffle

__all__ = ["stratified"]


def stratified(members: Array, labels: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to keep and rows to hold out: of every class about the same share, at random."""
    mixed = members.copy()
    shuffle(mixed, np.random.default_rng(seed))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    place = np.floor(np.arange(by_class.size) * share)
    is_held_out = np.diff(place, append=np.floor(by_class.size * share)) > 0
    is_held_out[-1] |= not is_held_out.any()  # of few rows one at least
    return by_class[~is_held_out], by_class[is_held_out]
