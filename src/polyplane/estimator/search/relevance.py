"""What columns were worth to a training, so that the next can give each the length it deserves.

Problem     columns that say nothing still cost: planes learn their noise, and prototypes lie apart
            by it. Trees leave such columns out; shrinkage makes all columns smaller alike.
Worth       of column j to trained planes W, over the features f that the map makes of it,
              worth_j^2 = sum_f m_f mean_k (W_fk - mean_k W_fk)^2 / sum_f m_f,
            with m_f the mean square of the feature: how far planes differ along a unit of the
            column. What all planes share decides nothing, and how often a category is met does not
            count: rare ones may be worth much.
Weights     worth^power, at least `LEAST` of the largest length before the power, scaled so that
            rows stay as long as they were: steps and shrinkage keep their meaning. A column of
            weight w learns w^2 times as fast and shrinks that much less: with power 1 this is one
            round of adaptive ridge regression.
Data        tables only: of the pixels of images and the words of texts, weights won nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.planes.planes import Array, live_lanes
from polyplane.engine.rows.storage import matrix_of, packed
from polyplane.estimator.planes.training import PlaneModel
from polyplane.model.input.column_maps import ColumnMap

__all__ = ["POWERS", "Worth", "mean_worth", "weights_of", "worth_of"]

POWERS = 1.0, 2.0  # that are tried
LEAST = 0.03  # of the mean length: less is as good as nothing, and could not come back
ROWS_LOOKED_AT = 5_000


class Worth(NamedTuple):
    """What columns, and directions behind them, were worth, and how long they are."""

    worth: Array  # [column] float64, 1 in the root mean square of the rows
    squared: Array  # [column] float64: mean squared length of its features


def worth_of(
    models: Sequence[PlaneModel],
    scales: Sequence[float],
    columns: ColumnMap,
    rows: Any,
    members: Array,
) -> Worth:
    """Of the columns to these models, whose training saw rows as they are given.

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
    return _scaled(np.sqrt(of_column / np.where(squared > 0, squared, 1)), squared)


def mean_worth(found: Sequence[Worth]) -> Worth:
    """Of several trainings."""
    squared = np.mean([one.squared for one in found], axis=0)
    return _scaled(np.sqrt(np.mean([np.square(one.worth) for one in found], axis=0)), squared)


def _scaled(worth: Array, squared: Array) -> Worth:
    mean_square = float((squared * np.square(worth)).sum() / (squared.sum() or 1.0))
    return Worth(worth / np.sqrt(mean_square) if mean_square > 0 else worth + 1, squared)


def weights_of(found: Worth, power: float, n_mapped: int) -> Array:
    """The factor of each of so many columns; columns behind those that were measured get 1.

    Directions of other rows may be more or fewer.
    """
    weights = np.maximum(found.worth, LEAST) ** power
    mean_square = (found.squared * np.square(weights)).sum() / (found.squared.sum() or 1.0)
    weights = (weights / np.sqrt(mean_square or 1.0))[:n_mapped]
    return np.pad(weights, (0, n_mapped - weights.size), constant_values=1.0)
