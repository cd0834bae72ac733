"""Rows of a class spread over its planes by entropy, of Kantchelian et al. (NIPS 2014), Alg. 2.

Left alone, most rows of a class crowd on few of its planes. ASSIGN is the cure: UNADJ maps each row
to the plane that won it, and while the entropy of that map is below h, rows go to planes that raise
it. With n_k rows on plane k, n in all and S = sum of n_k log2 n_k, the entropy is log2 n - S / n
bits. One more row on plane k adds growth(n_k) to S, so whether that row raises the entropy is a
comparison of two growths.
Silent in the paper: if no plane raises the entropy, the row keeps the plane that won it.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.records import array, filled
from polyplane.engine.tiles import (
    LANES,
    at,
    put,
    span,
)

__all__ = [
    "Tally",
    "entropy_of",
    "new_tally",
    "plane_by_entropy",
    "spans_of_tally",
    "tally_of",
]

# Bits. A row put back where it was changes the entropy by nothing, and rounding must not call that
# a rise. Growths of n and n + 1 differ by more than 1 / (n + 1): this tells them apart up to 1e9.
TOLERANCE = 1e-9
BITS = 1 / np.log(2)


class Tally(NamedTuple):
    """Number of rows that each plane has won, by the map UNADJ of Alg. 2."""

    of_plane: Annotated[Any, array(np.int64, "lane")]  # rows mapped to the plane
    of_class: Annotated[Any, array(np.int64, "class")]  # their sum over the planes of the class
    n_log_n: Annotated[Any, array(np.float64, "class")]  # S, kept by increments


class TallySpans(NamedTuple):
    """A tally as spans, with the map itself, for use inside a loop."""

    of_plane: Any
    of_class: Any
    n_log_n: Any
    chosen_planes: Any
    is_remembered: Any


def new_tally(n_lanes: int) -> Tally:
    """No rows yet, for the planes of two classes."""
    return filled(Tally, lane=n_lanes, **{"class": 2})


def tally_of(of_plane: Any, owner: Any) -> Tally:
    """The tally of planes that have won so many rows each; by lane, of two classes."""
    tally = new_tally(of_plane.size)
    tally.of_plane[:] = of_plane
    for label in range(2):
        n = of_plane[owner == label].astype(np.float64)
        tally.of_class[label] = n.sum()
        tally.n_log_n[label] = (n * np.log2(np.maximum(n, 1))).sum()
    return tally


@inlined
def spans_of_tally(tally: Any, chosen_planes: Any) -> Any:
    """The tally as a loop sees it; both must be its arguments. An empty map is not kept."""
    return TallySpans(
        span(tally.of_plane),
        span(tally.of_class),
        span(tally.n_log_n),
        span(chosen_planes),
        chosen_planes.size > 0,
    )


@inlined
def entropy_in_bits(n: Any, n_log_n: Any) -> Any:
    """Entropy of the planes of n rows; none have entropy 0."""
    return np.log2(n) - n_log_n / n if n > 0 else 0.0


@jit
def entropy_of(tally: Any, label: Any) -> Any:
    """Entropy, in bits, of the planes to which the rows of a class are mapped."""
    return entropy_in_bits(tally.of_class[label], tally.n_log_n[label])


@inlined
def growth(n: Any) -> Any:
    """(n + 1) log2 (n + 1) - n log2 n, without the difference of two large numbers."""
    return np.log2(n + 1.0) + n * np.log1p(1.0 / n) * BITS if n > 0 else 0.0


@inlined
def growth_of_equal_entropy(tally: Any, label: Any, before: Any) -> Any:
    """The growth of S at which UNADJ + (x, k) has the entropy of UNADJ; below it, more."""
    if before != NO_PLANE:  # back to its plane
        return growth(at(tally.of_plane, before) - 1)
    n = at(tally.of_class, label)
    return (n + 1) * np.log1p(1.0 / n) * BITS + at(tally.n_log_n, label) / n if n > 0 else 0.0


@inlined
def take_row(tally: Any, label: Any, plane: Any) -> Any:
    """One row less on a plane."""
    n = at(tally.of_plane, plane) - 1
    put(tally.of_plane, plane, n)
    put(tally.of_class, label, at(tally.of_class, label) - 1)
    put(tally.n_log_n, label, at(tally.n_log_n, label) - growth(n))


@inlined
def add_row(tally: Any, label: Any, plane: Any) -> Any:
    """One row more on a plane."""
    n = at(tally.of_plane, plane)
    put(tally.of_plane, plane, n + 1)
    put(tally.of_class, label, at(tally.of_class, label) + 1)
    put(tally.n_log_n, label, at(tally.n_log_n, label) + growth(n))


@inlined
def best_of_slower_growth(
    planes: Any, n_tiles: Any, tally: Any, label: Any, limit: Any, otherwise: Any
) -> Any:
    """The plane of K_inc with the highest score; `otherwise` if K_inc is empty."""
    plane, best = otherwise, np.float32(-np.inf)
    for lane in range(n_tiles * LANES):
        score = at(planes.scores, lane)
        if (
            score > best
            and at(planes.owner, lane) == label
            and growth(at(tally.of_plane, lane)) < limit - TOLERANCE
        ):
            plane, best = lane, score
    return plane


@inlined
def plane_by_entropy(
    planes: Any, n_tiles: Any, tally: Any, label: Any, i: Any, unadjusted: Any, entropy: Any
) -> Any:
    """ASSIGN of Alg. 2 for row i, which plane `unadjusted` wins; `entropy` is h in bits."""
    before = np.int64(at(tally.chosen_planes, i)) if tally.is_remembered else np.int64(NO_PLANE)
    limit = growth_of_equal_entropy(tally, label, before)
    if before != NO_PLANE:
        take_row(tally, label, before)
    n = at(tally.of_class, label) + 1
    n_log_n = at(tally.n_log_n, label) + growth(at(tally.of_plane, unadjusted))
    plane = unadjusted
    if entropy_in_bits(n, n_log_n) < entropy - TOLERANCE:
        plane = best_of_slower_growth(planes, n_tiles, tally, label, limit, unadjusted)
    add_row(tally, label, unadjusted)  # UNADJ <- UNADJ + (x, k_unadj)
    if tally.is_remembered:
        put(tally.chosen_planes, i, np.int32(unadjusted))
    return plane
