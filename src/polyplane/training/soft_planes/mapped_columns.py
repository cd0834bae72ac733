"""Columns of X as planes see them through a map (`model/input/column_maps.py`)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import CsrRows, Rows, count_rows, packed
from polyplane.model.format.checks import need
from polyplane.model.input.column_maps import ColumnMap
from polyplane.model.prediction import Features
from polyplane.training.columns import Columns
from polyplane.training.rows import TrainingData

__all__ = ["FoldedColumns", "MappedColumns", "written_out"]

MOST_PACKED = 1 << 24  # entries of X, 8 bytes each, that are written out for training


def written_out(columns: ColumnMap, data: TrainingData) -> TrainingData:
    """Return the data as steps see them, mapped once and for all unless they are too large."""
    rows = columns.for_training(data.rows)
    if not isinstance(rows, CsrRows) and columns.count_entries(data.rows) <= MOST_PACKED:
        rows = packed(rows, in_place(count_rows(rows)))
    return data._replace(rows=rows)


@dataclass(frozen=True)
class MappedColumns(Columns):
    """Columns through a map, which in the end is folded into the planes."""

    map: ColumnMap
    writes_rows_out: ClassVar[bool] = True

    @classmethod
    def of_map(cls, columns: ColumnMap) -> Self:
        """Return the view of columns through a map."""
        return cls(int(columns.n_features), columns)

    @classmethod
    def of_features(cls, features: Features, n_columns: int) -> Self:
        columns: Any = features.columns
        need(columns is not None, "features are of another algorithm")
        return cls.of_map(columns)

    def widened(self, n_columns: int, rows: Any) -> Self:
        """Return the same view of more columns; columns of a fit that used few may get features."""
        wide = self.map.widened(n_columns)
        if not wide.knows(rows):
            wide = wide.with_all_columns()
        return self if wide is self.map else self.of_map(wide)

    def of_all_columns(self) -> Self:
        return self if self.map.used is None else self.of_map(self.map.with_all_columns())

    def taken_over(self, before: Any, sums: Array) -> Array:
        """Return planes in training of the view before; they are 0 in columns that are new."""
        if before.map.used is None or self.map.used is not None:
            return sums
        spread: Array = before.map.widened(self.map.n_columns).spread(sums)
        return spread

    def for_training(self, data: TrainingData) -> TrainingData:
        return written_out(self.map, data)

    def for_prediction(self, rows: Any) -> Rows:
        return self.map.for_prediction(rows._replace(constant=np.float32(1)))

    def folded(self, sums: Array, constant: float) -> Array:
        return self.map.folded(sums, constant)

    def by_column(self, planes: Array) -> Array:
        if self.map.used is None:
            return planes
        spread: Array = self.map.spread(np.vstack([planes[:, 0], planes.T]))[1:].T
        return spread

    def features(self, constant: float) -> Features:
        return Features(1.0, columns=self.map.of_prediction())


class FoldedColumns(MappedColumns):
    """Columns through the map of a blend, which is one for prediction already."""

    def features(self, constant: float) -> Features:
        return Features(1.0, columns=self.map)
