"""Members of a blend folded into one model: one map of the columns, one set of planes.

Map      Between two knots of a column all that a member makes of it is straight. On the union of
         all members' knots each plane of each member is therefore described by its values at the
         knots, whatever features it was trained on, and a row costs two knots a column. A column
         without knots in any member stays as it is. Where some members have knots and others see
         the value itself, the value is cut at the outermost knots.
Planes   A member's soft maxima become units of the classes for which they speak, with the weight of
         the member; planes of "the rest" in a problem of one class against the rest speak against
         the class, with a negative weight. Scores of classes are the weighted sums of their units.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.records import aligned_zeros
from polyplane.engine.tiles import LANES
from polyplane.model.input.column_maps import ColumnMap, folded_map
from polyplane.model.many_classes.decomposition import REST, Decomposition
from polyplane.model.plane_record import FinishedPlanes, PlaneRecord

__all__ = ["Folded", "folded"]

WEIGHT_OF_NO_PLANES = 1e3  # of a score below those of all planes


class Folded(NamedTuple):
    """The one model that a blend is."""

    record: PlaneRecord
    columns: ColumnMap  # of finished planes


class _Unit(NamedTuple):
    """Planes of a class that make one soft maximum."""

    rank: int  # of the class
    weight: float
    sums: Array  # [feature, plane], folded


def folded(members: Sequence[Any], ranks: Array) -> Folded:
    """Return the model that members of a blend make together, of classes with these ranks."""
    maps = [_map_of(member) for member in members]
    columns = folded_map(maps)
    units = [
        unit
        for member, own in zip(members, maps, strict=True)
        for unit in _units_of(member, own, columns, ranks)
    ]
    return Folded(_record_of(units, ranks), columns)


def _map_of(member: Any) -> ColumnMap:
    columns: ColumnMap = member.training.columns.map
    return columns


def _units_of(member: Any, own: ColumnMap, columns: ColumnMap, ranks: Array) -> Sequence[_Unit]:
    """Return the soft maxima of a member, by the class that each speaks for or against."""
    models = member.training.models
    n_estimators = 1 + max(model.estimator for model in models)
    weight = member.weight / n_estimators
    units = []
    for model in models:
        finished: FinishedPlanes = member.estimator.algorithm.planes_of(model)
        sums = columns.spread_knots(
            own, own.folded(finished.sums * finished.scales, model.constant)
        )
        for owner in np.unique(finished.owner):
            code, is_own = int(owner) // finished.n_units, finished.owner == owner
            sides = model.problem.classes if ranks.size > 2 else ()
            sides = sides or tuple(range(ranks.size))
            if code >= len(sides):
                continue  # of a class that has no name yet
            label = sides[code] if sides[code] != REST else max(sides)
            sign = -1.0 if sides[code] == REST else 1.0
            units.append(_Unit(int(ranks[label]), sign * weight, sums[:, is_own]))
    return units


def _record_of(units: Sequence[_Unit], ranks: Array) -> PlaneRecord:
    """Put units side by side; classes with fewer units than others get empty ones of weight 0."""
    n_classes = ranks.size
    by_class = [[unit for unit in units if unit.rank == rank] for rank in range(n_classes)]
    n_units = max(1, *(len(own) for own in by_class))
    n_planes = sum(unit.sums.shape[1] for unit in units)
    n_features = len(units[0].sums)
    sums = aligned_zeros(n_features, max(1, -(-n_planes // LANES)) * LANES)
    group, signs = np.empty(n_planes, np.int32), np.empty(n_planes, np.int32)
    weights = np.zeros(n_classes * n_units, np.float32)
    first = 0
    for rank, own in enumerate(by_class):
        for place, unit in enumerate(own):
            lanes = slice(first, first + unit.sums.shape[1])
            sums[:, lanes] = unit.sums
            group[lanes] = rank * n_units + place
            signs[lanes] = 1 if unit.weight > 0 else -1
            weights[rank * n_units + place] = unit.weight
            first = lanes.stop
        if not own:  # a class without rows must not win
            weights[rank * n_units : (rank + 1) * n_units] = WEIGHT_OF_NO_PLANES
    return PlaneRecord(
        sums=sums,
        scales=np.ones(n_planes, np.float32),
        group=group,
        plane_class=(group // n_units).astype(np.int32),
        plane_sign=signs,
        decomposition=Decomposition("joint", "soft", ranks),
        n_estimators=1,
        empty_score=-np.inf,
        is_soft=True,
        n_units=n_units,
        group_weights=weights,
    )
