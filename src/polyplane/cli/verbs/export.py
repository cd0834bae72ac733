"""`polyplane export`: a model for where there is no polyplane."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyplane.cli.failures import CallError
from polyplane.cli.screen import Screen
from polyplane.estimator.files.exporting import to_c, to_onnx
from polyplane.estimator.files.saving import read_model

__all__ = ["run"]

FUNCTIONS: dict[str, Callable[..., Any]] = {"onnx": to_onnx, "c": to_c}
BY_SUFFIX = {".onnx": "onnx", ".c": "c", ".h": "c"}


def run(screen: Screen, *, model: str, to: str | None, output: str | None) -> None:
    """Write it in another form."""
    if output is None:
        raise CallError("The file to write is missing: name it with -o.")
    target = to or BY_SUFFIX.get(Path(output).suffix.lower())
    if target is None or target not in FUNCTIONS:
        found = f"--to is {to!r}" if to else f"{output!r} states no form"
        raise CallError(f"{found}, expected one of {', '.join(FUNCTIONS)}: say --to.")
    saved = read_model(model)
    names = saved.layout.feature_names[: saved.estimator.n_features_in_] if saved.layout else None
    FUNCTIONS[target](saved.predictor(), output, column_names=names)
    n_bytes = Path(output).stat().st_size
    screen.say(f"Wrote {output}: {n_bytes:,} bytes of {target}.")
    screen.result({"output": output, "to": target, "bytes": n_bytes})
