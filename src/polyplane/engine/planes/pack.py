"""Several models of the same rows in one matrix: one reading of a row serves them all.

Models that differ only in alpha, or in the rows they leave out, visit the same rows in the same
order. Their planes lie side by side in the lanes of one record, each model in tiles of its own, so
that they never meet in an argmax. A row is opened once and scored against all tiles in use, four
at a time; then each model takes its own step (`hinge.py`) on its lanes. Sums are added in the same
order as for a model alone: each is, to the bit, what it would have become by itself.

The loop ends where a model is due: it has made as many steps as it may, or its lanes are full.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.planes.hinge import NO_COIN, ROWS_AHEAD, UNASSIGNED, HingeRule, hinge_step
from polyplane.engine.planes.planes import (
    LANES_USED,
    MOST_BIRTHS,
    N_COUNTS,
    Array,
    Planes,
    PlanesSpans,
    is_full,
    spans_of,
    tiles_used,
)
from polyplane.engine.records import array, blank, fields_of, filled, spans_function
from polyplane.engine.rows.storage import open_row, page_of, score_listed_tiles
from polyplane.engine.targets import spans_of_targets
from polyplane.engine.tiles import LANES, at, put, shifted

__all__ = [
    "NO_PART", "Members", "counts_of", "hinge_epoch_of_pack", "is_due", "members_of", "packed",
    "put_back", "taken_out",
]  # fmt: skip

NO_PART = -1  # what a model leaves out that visits every row


class Members(NamedTuple):
    """The models of a pack."""

    first_lane: Annotated[Any, array(np.int64, "border")]  # of each model; the last is the end
    alpha: Annotated[Any, array(np.float64, "model")]
    n_steps: Annotated[Any, array(np.int64, "model")]
    last_step: Annotated[Any, array(np.int64, "model")]  # where something is due
    left_out: Annotated[Any, array(np.int32, "model")]  # the part of the rows it does not visit
    tiles: Annotated[Any, array(np.int64, "tile", is_passing=True)]  # first lanes of those in use


_, _spans_of_members = spans_function(Members, n_models="record.alpha.size")


def members_of(planes: Sequence[Planes]) -> Members:
    """The models with these planes, in this order; their steps and alphas are yet to be set."""
    rooms = [each.owner.size for each in planes]
    sizes = {"border": len(rooms) + 1, "model": len(rooms), "tile": sum(rooms) // LANES}
    members = filled(Members, **sizes)
    members.first_lane[1:] = np.cumsum(rooms)
    return members


def packed(planes: Sequence[Planes]) -> Planes:
    """The planes of all models in one record."""
    made = {}
    for name, field in fields_of(Planes).items():
        parts = [getattr(each, name) for each in planes]
        sizes = dict(zip(field.axes, parts[0].shape, strict=True))
        sizes[field.axes[-1]] = sum(part.shape[-1] for part in parts)
        made[name] = blank(field, sizes)
        np.concatenate(parts, axis=-1, out=made[name])
    return Planes(**made)


def taken_out(pack: Planes, members: Members, k: int) -> Planes:
    """The planes of one model, in arrays of their own."""
    made = {}
    for name, field in fields_of(Planes).items():
        part = getattr(pack, name)[..., _place(pack, members, name, k)]
        made[name] = blank(field, dict(zip(field.axes, part.shape, strict=True)))
        made[name][...] = part
    return Planes(**made)


def put_back(pack: Planes, members: Members, k: int, planes: Planes) -> None:
    """Give a model planes again that have been taken out; their room is still the same."""
    for name in fields_of(Planes):
        getattr(pack, name)[..., _place(pack, members, name, k)] = getattr(planes, name)


def counts_of(pack: Planes, members: Members, k: int) -> Array:
    """The counts of one model."""
    own: Array = pack.counts[_place(pack, members, "counts", k)].copy()
    return own


def is_due(pack: Planes, members: Members, k: int) -> bool:
    """Whether a model has made its last step for now, or needs more lanes."""
    n_lanes = pack.counts[k * N_COUNTS + LANES_USED]
    room = members.first_lane[k + 1] - members.first_lane[k]
    return bool(members.n_steps[k] == members.last_step[k] or n_lanes + MOST_BIRTHS > room)


def _place(pack: Planes, members: Members, name: str, k: int) -> slice:
    """What of an array belongs to a model."""
    if fields_of(Planes)[name].axes[-1] == "lane":
        return slice(members.first_lane[k], members.first_lane[k + 1])
    n = getattr(pack, name).size // members.alpha.size
    return slice(k * n, (k + 1) * n)


@inlined
def _spans_of_model(pack: Any, members: Any, k: Any, n_classes: Any) -> Any:
    """The planes of one model as a loop sees them."""
    lane = at(members.first_lane, k)
    return PlanesSpans(
        shifted(pack.sums, lane),
        shifted(pack.timed_sums, lane),
        shifted(pack.squared_norms, lane),
        shifted(pack.inverse_lengths, lane),
        shifted(pack.owner, lane),
        shifted(pack.idle, lane),
        shifted(pack.room_left, k * n_classes),
        shifted(pack.counts, k * N_COUNTS),
        shifted(pack.scores, lane),
        shifted(pack.shrunk_scores, lane),
        shifted(pack.largest_shares, lane),
        pack.stride,
        at(members.first_lane, k + 1) - lane,
        pack.n_features,
        pack.keeps_average,
    )


@inlined
def _list_tiles(pack: Any, members: Any, n_classes: Any) -> Any:
    """Note the tiles that hold planes; return how many."""
    n = 0
    for k in range(members.n_models):
        first = at(members.first_lane, k)
        used = tiles_used(_spans_of_model(pack, members, k, n_classes))
        for o in range(first, first + used * LANES, LANES):
            put(members.tiles, n, o)
            n += 1
    return n


@jit
def hinge_epoch_of_pack(
    rows: Any, targets: Any, parts: Any, order: Any, state: Any, record: Any, grows_rivals: Any
) -> Any:
    """Let all models visit rows in `order`, up to where one is due; return how many rows.

    `parts` is the part that each row belongs to. No model may be due before the first row.
    """
    page = page_of(rows)
    wanted = spans_of_targets(targets)
    pack = spans_of(state)
    members = _spans_of_members(record)
    n_classes = state.room_left.size // members.n_models
    n_tiles = _list_tiles(pack, members, n_classes)
    last = order.size - 1
    for k in range(order.size):
        i = order[k]
        part = parts[i]
        a, b, ahead = open_row(page, i, order[min(k + ROWS_AHEAD, last)])
        score_listed_tiles(page, a, b, ahead, pack, members.tiles, n_tiles)
        is_due, is_listed = False, True
        for m in range(members.n_models):
            if at(members.left_out, m) == part:
                continue
            planes = _spans_of_model(pack, members, m, n_classes)
            t, tiles = at(members.n_steps, m), tiles_used(planes)
            rule = HingeRule(at(members.alpha, m), grows_rivals, 0.0, 1.0)
            hinge_step(
                rule, page, a, b, planes, planes.scores, wanted, i, UNASSIGNED, True, NO_COIN, t
            )
            put(members.n_steps, m, t + 1)
            is_listed &= tiles_used(planes) == tiles
            is_due |= t + 1 == at(members.last_step, m) or is_full(planes)
        if is_due:
            return k + 1
        if not is_listed:
            n_tiles = _list_tiles(pack, members, n_classes)
    return order.size
