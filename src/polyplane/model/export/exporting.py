"""Fitted models written for other programs, in one of `export_formats.py`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyplane.engine.rows.storage import dense_rows
from polyplane.model.export.content import Exported, Planes, Scaling, planes_of
from polyplane.model.export.export_formats import ExportFormat
from polyplane.model.export.table_input import TableInput
from polyplane.model.format.model_file import ModelError
from polyplane.model.input.scaling import Scaler
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.plane_record import PlaneRecord
from polyplane.model.prediction import FittedModel
from polyplane.whole_files import whole_file

__all__ = ["export", "exported_of"]


def exported_of(
    model: FittedModel,
    scalers: Sequence[Scaler],
    column_names: Sequence[str],
    table: TableInput | None = None,
) -> Exported:
    """Return the content of an export of a model behind some scalers.

    Where the model was learned from a table, names are those of the columns that are read.
    """
    if table is not None:
        column_names = [column.name for column in table.columns]
    elif len(column_names) not in (0, model.n_columns):
        raise ModelError(
            f"{len(column_names)} column names are given for {model.n_columns} columns: give one "
            "for each"
        )
    wide = model.of_all_columns()
    record = wide.record
    scorer: Planes | KernelRecord
    if isinstance(record, PlaneRecord):
        assert wide.features is not None
        zeros = dense_rows(np.zeros((1, model.n_columns), np.float32), wide.features.constant)
        scorer = planes_of(record, wide.features.seen(zeros))
        calibration = record.calibration if model.has_probabilities else None
    else:
        scorer, calibration = record, None
    return Exported(
        title=model.title,
        n_columns=model.n_columns,
        column_names=[str(name) for name in column_names],
        classes=model.labels,
        table=table,
        scalings=[_scaling(scaler) for scaler in scalers],
        scorer=scorer,
        decomposition=record.decomposition,
        calibration=calibration,
    )


def _scaling(scaler: Scaler) -> Scaling:
    """Return the map of a scaler as (x - shift) / divisor."""
    limits = (scaler.low, scaler.high) if scaler.clips else None
    scale = None if scaler.scale is None else scaler.scale.astype(np.float64)
    shift = None if scaler.shift is None else scaler.shift.astype(np.float64)
    if scaler.kind == "minmax" and scale is not None and shift is not None:
        return Scaling(-shift / scale if shift.any() else None, 1 / scale, limits)
    return Scaling(shift, scale, limits)


def export(
    exported: Exported, to: ExportFormat, path: str | os.PathLike[str] | None, **options: Any
) -> Any:
    """Return the model in a format, written to `path` unless that is None."""
    known = [option.name for option in to.options]
    for name in options:
        if name not in known:
            raise ModelError(f"{to.title} has no option {name!r}, expected one of {known}")
    try:
        make = to.maker()
    except ImportError as error:
        problem = f"the model cannot be written as {to.title}"
        raise ModelError(f"{problem}: `pip install polyplane[{to.extra}]` first") from error
    if to.is_unicode:
        _check_unicode(exported, to.title)
    made = make(exported, path, **options)
    if path is not None:
        _write(path, made.encode() if isinstance(made, str) else made.SerializeToString())
    return made


def _check_unicode(exported: Exported, title: str) -> None:
    """Refuse texts that UTF-8 does not have."""
    table = [] if exported.table is None else exported.table.columns
    texts = [("label", label) for label in exported.classes.tolist()]
    texts += [("column", name) for name in exported.column_names]
    texts += [("category", value) for column in table for value in column.values]
    for what, text in texts:
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise ModelError(
                f"{what} {text!r} is not Unicode, which {title} cannot hold: rename it before "
                "fitting"
            ) from None


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        with whole_file(Path(path)) as file:
            file.write(content)
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); nothing was changed"
        raise ModelError(problem, path) from error
