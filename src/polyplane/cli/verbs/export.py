"""`polyplane export`: a model for where there is no polyplane."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.input.model_input import layout_of
from polyplane.cli.screen import Screen
from polyplane.model.export.exporting import exported_as_c, exported_as_onnx, exported_of
from polyplane.model.format.prediction_part import read_fitted
from polyplane.model.prediction import FittedModel

__all__ = ["run"]

FUNCTIONS: dict[str, Callable[..., Any]] = {"onnx": exported_as_onnx, "c": exported_as_c}
BY_SUFFIX = {".onnx": "onnx", ".c": "c", ".h": "c"}


def _names(fitted: FittedModel) -> Sequence[str]:
    """Of columns: those of a table, or those with which the model was fitted."""
    layout = layout_of(fitted)
    if layout is not None:
        return layout.feature_names[: fitted.n_columns]
    return (fitted.names if fitted.scaler is None else fitted.scaler.names) or ()


def run(screen: Screen, *, model: str, to: str | None, output: str | None) -> None:
    """Write it in another form."""
    if output is None:
        raise CallError("The file to write is missing: name it with -o.")
    target = to or BY_SUFFIX.get(Path(output).suffix.lower())
    if target is None or target not in FUNCTIONS:
        found = f"--to is {to!r}" if to else f"{output!r} states no form"
        raise CallError(f"{found}, expected one of {', '.join(FUNCTIONS)}: say --to.")
    fitted = read_fitted(model)
    scalers = [] if fitted.scaler is None else [fitted.scaler]
    FUNCTIONS[target](exported_of(fitted, scalers, _names(fitted)), output)
    n_bytes = Path(output).stat().st_size
    screen.say(f"Wrote {output}: {n_bytes:,} bytes of {target}.")
    screen.result({"output": output, "to": target, "bytes": n_bytes})
