"""Importance of columns to trained planes, and the lengths that columns get by it.

Problem     uninformative columns still cost: planes learn their noise, and prototypes lie apart by
            it. Trees leave such columns out; shrinkage makes all columns smaller alike.
Importance  of column j to trained planes W, over the features f that the map makes of it,
              importance_j^2 = sum_f m_f mean_k (W_fk - mean_k W_fk)^2 / sum_f m_f,
            with m_f the mean square of the feature: how far planes differ along a unit of the
            column. What all planes share decides nothing, and the frequency of a category does not
            count: rare ones may be important.
Weights     importance^power, at least `LEAST` of the mean length before the power, scaled so that
            rows keep their length: steps and shrinkage keep their meaning. A column of weight w
            learns w^2 times as fast and shrinks that much less: with power 1 this is one round of
            adaptive ridge regression.
Data        tables only: for pixels of images and words of texts, weights won nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.planes.planes import live_lanes
from polyplane.engine.rows.storage import matrix_of, packed
from polyplane.model.input.column_maps import ColumnMap
from polyplane.training.planes.state import PlaneModel

__all__ = ["Importance", "importance_of", "weights_of"]

LEAST = 0.03  # of the mean length: with less a column could not come back
ROWS_LOOKED_AT = 5_000


class Importance(NamedTuple):
    """Importance of columns and of the directions behind them, and their lengths."""

    importance: Array  # [column] float64, 1 in the root mean square of the rows
    squared: Array  # [column] float64: mean squared length of its features


def importance_of(
    models: Sequence[PlaneModel],
    scales: Sequence[float],
    columns: ColumnMap,
    rows: Any,
    members: Array,
) -> Importance:
    """Return the importance of columns to models that were trained on rows mapped by `columns`.

    Planes are the sums of a model times its scale.
    """
    some = members[np.arange(0, members.size, max(1, members.size // ROWS_LOOKED_AT))]
    entries = matrix_of(packed(rows, some), columns.n_features)
    entries.data = np.square(entries.data, dtype=np.float64)
    squares = np.asarray(entries.mean(axis=0)).ravel()
    spread = np.zeros(columns.n_features)
    for model, scale in zip(models, scales, strict=True):
        lanes = live_lanes(model.planes)
        if lanes.size > 0:  # none, where so few rows were left that a class has none
            sums = model.planes.sums[1 : columns.n_features + 1, lanes]
            spread += np.square(scale) * sums.var(axis=1, dtype=np.float64)
    owner = columns.columns_of_features()
    squared = np.bincount(owner, squares, columns.n_mapped)
    of_column = np.bincount(owner, squares * spread, columns.n_mapped)
    importance = np.sqrt(of_column / np.where(squared > 0, squared, 1))
    mean_square = float((squared * np.square(importance)).sum() / (squared.sum() or 1.0))
    if mean_square == 0:
        return Importance(np.ones_like(importance), squared)
    return Importance(importance / np.sqrt(mean_square), squared)


def weights_of(found: Importance, power: float, n_mapped: int) -> Array:
    """Return the factor of each mapped column; columns that were not measured get 1.

    Directions of other rows may be more or fewer.
    """
    weights = np.maximum(found.importance, LEAST) ** power
    mean_square = (found.squared * np.square(weights)).sum() / (found.squared.sum() or 1.0)
    weights = (weights / np.sqrt(mean_square or 1.0))[:n_mapped]
    return np.pad(weights, (0, n_mapped - weights.size), constant_values=1.0)
