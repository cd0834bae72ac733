"""Fitted models written for other programs: as ONNX, or as a header of C."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyplane import __version__
from polyplane.engine.rows.storage import dense_rows
from polyplane.model.export.c_header import c_header
from polyplane.model.export.content import Exported, Planes, Scaling, planes_of
from polyplane.model.export.table_input import TableInput
from polyplane.model.format.model_file import ModelError
from polyplane.model.input.scaling import Scaler
from polyplane.model.kernels.kernel_record import KernelRecord
from polyplane.model.plane_record import PlaneRecord
from polyplane.model.prediction import FittedModel
from polyplane.whole_files import whole_file

__all__ = ["exported_as_c", "exported_as_onnx", "exported_of"]

Path_ = str | os.PathLike[str] | None


def exported_of(
    model: FittedModel,
    scalers: Sequence[Scaler],
    column_names: Sequence[str],
    table: TableInput | None = None,
) -> Exported:
    """What is exported of a model behind some scalers; columns may have no names.

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
    """What a scaler does, as (x - shift) / divisor."""
    limits = (scaler.low, scaler.high) if scaler.clips else None
    scale = None if scaler.scale is None else scaler.scale.astype(np.float64)
    shift = None if scaler.shift is None else scaler.shift.astype(np.float64)
    if scaler.kind == "minmax" and scale is not None and shift is not None:
        return Scaling(-shift / scale if shift.any() else None, 1 / scale, limits)
    return Scaling(shift, scale, limits)


def exported_as_onnx(exported: Exported, path: Path_ = None) -> Any:
    """As an `onnx.ModelProto`, written to `path` where one is given."""
    try:
        from polyplane.model.export.onnx_model import onnx_model  # noqa: PLC0415 an extra, slow to load
    except ImportError as error:
        problem = "the model cannot be written as ONNX: `pip install polyplane[onnx]` first"
        raise ModelError(problem) from error
    _check_unicode(exported)
    made = onnx_model(exported, __version__)
    if path is not None:
        _write(path, made.SerializeToString())
    return made


def _check_unicode(exported: Exported) -> None:
    """ONNX holds text as UTF-8 alone."""
    table = [] if exported.table is None else exported.table.columns
    texts = [("label", label) for label in exported.classes.tolist()]
    texts += [("column", name) for name in exported.column_names]
    texts += [("category", value) for column in table for value in column.values]
    for what, text in texts:
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise ModelError(
                f"{what} {text!r} is not Unicode, which ONNX cannot hold: rename it before fitting"
            ) from None


def exported_as_c(exported: Exported, path: Path_ = None, name: str | None = None) -> str:
    """As a header of C99 or C++, written to `path` where one is given."""
    text = c_header(exported, _c_name(path, name), __version__)
    if path is not None:
        _write(path, text.encode())
    return text


def _c_name(path: Path_, name: str | None) -> str:
    """With what names of functions begin: as given, or made of the file's name."""
    if name is None:
        stem = "polyplane" if path is None else Path(path).name.split(".")[0]
        name = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = name if name[:1].isalpha() else f"model_{name}"
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ModelError(
            f"name is {name!r}, with which names in C cannot begin: use letters, digits and "
            "underscores, a letter first"
        )
    return name


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        with whole_file(Path(path)) as file:
            file.write(content)
    except OSError as error:
        problem = f"cannot be written ({error.strerror}); nothing was changed"
        raise ModelError(problem, path) from error
