"""`polyplane info`: what is in a model, or in rows."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from polyplane.cli.input.model_input import found_settings
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.options.algorithms import algorithm_of
from polyplane.cli.screen import Screen
from polyplane.data.summary import RowSummary
from polyplane.estimator.files.saving import SavedModel, is_model_file, read_model

__all__ = ["run"]

MOST_CLASSES = 20  # that are shown
LAST_POINTS = 5  # of the history


def run(screen: Screen, *, file: str, reading: dict[str, Any]) -> None:
    """A model is known by its first bytes; everything else is rows."""
    if Path(file).is_file() and is_model_file(file):
        _tell_model(screen, file, read_model(file))
    else:
        _tell_rows(screen, file, reading)


# ---- rows --------------------------------------------------------------------------------


def _tell_rows(screen: Screen, file: str, reading: dict[str, Any]) -> None:
    rows = open_rows(file, reading)
    summary = RowSummary()
    for chunk in chunks_of(rows, screen, "Reading"):
        summary.add(chunk)
    lows, highs = summary.ranges()
    low, high = float(lows.min()), float(highs.max())
    reach = summary.reaches()
    storage = f"{'sparse' if summary.is_sparse else 'dense'} {summary.dtype}"
    screen.say(f"{file}: {summary.n_rows:,} rows of {summary.n_features:,} columns, {storage}")
    screen.say(
        f"{summary.density:.2%} of the values are not zero; they reach from {low:g} to {high:g}"
    )
    if summary.classes:
        _show_classes(screen, summary)
    names = rows.layout.feature_names[: summary.n_features]
    if names:
        screen.say(f"columns: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}")
    if summary.wants_scaling:
        screen.say(
            f"Columns reach from {reach.min():g} to {reach.max():g}: train with --scale maxabs, "
            "unless the algorithm is polyplane, which scales by itself."
        )
    screen.result(
        {
            "kind": "rows",
            "rows": summary.n_rows,
            "features": summary.n_features,
            "classes": [{"label": k, "rows": n} for k, n in sorted(summary.classes.items())],
            "density": summary.density,
            "is_sparse": summary.is_sparse,
            "dtype": summary.dtype,
            "least": low,
            "greatest": high,
            "wants_scaling": summary.wants_scaling,
            "names": names,
            "skipped": rows.bad.n_skipped,
        }
    )


def _show_classes(screen: Screen, summary: RowSummary) -> None:
    most = sorted(summary.classes.items(), key=lambda item: -item[1])[:MOST_CLASSES]
    shown = [[label, f"{n:,}", f"{n / summary.n_rows:.2%}"] for label, n in most]
    n_classes = len(summary.classes)
    first = f", the {MOST_CLASSES} largest" if n_classes > MOST_CLASSES else ""
    screen.table(["class", "rows", "share"], shown, f"{n_classes:,} classes{first}")


# ---- models ------------------------------------------------------------------------------


def _tell_model(screen: Screen, file: str, saved: SavedModel) -> None:
    found = _facts_of(saved)
    screen.say(
        f"{file}: {found['algorithm']}, {found['size']:,} {found['unit']} over "
        f"{found['features']:,} columns, {found['steps']:,} steps, written by polyplane "
        f"{found['version']}"
    )
    scaling = "none" if found["scaling"] is None else found["scaling"]
    screen.say(f"scaling: {scaling}; largest norm {found['largest_norm']:.4g}")
    _show_settings(screen, saved.estimator, found)
    screen.table(
        ["class", found["unit"]],
        [[one["label"], one["size"]] for one in found["classes"][:MOST_CLASSES]],
        f"{len(found['classes'])} classes",
    )
    if found["history"]:
        screen.table(
            ["step", "planes", "created", "pruned", "error"],
            [
                [f"{p['step']:,}", p["planes"], p["created"], p["pruned"], f"{p['error']:.2%}"]
                for p in found["history"][-LAST_POINTS:]
            ],
            "History, the last points",
        )
    screen.result({"kind": "model", **found})


def _show_settings(screen: Screen, estimator: Any, found: dict[str, Any]) -> None:
    """Parameters that are not at their defaults, and what a fit has found."""
    defaults = {one.name: one.default for one in dataclasses.fields(estimator)}
    lines = [
        [name, value, defaults.get(name)]
        for name, value in found["parameters"].items()
        if value != defaults.get(name)
    ]
    lines += [[name, value, "auto"] for name, value in found["found"].items()]
    if lines:
        screen.table(["parameter", "value", "default"], lines, "Settings other than the defaults")
    else:
        screen.say("all parameters are at their defaults")


def _facts_of(saved: SavedModel) -> dict[str, Any]:
    estimator = saved.estimator
    has_planes = hasattr(estimator, "planes_")
    sizes = estimator.planes_per_class_ if has_planes else estimator.n_support_
    vectors = estimator.planes_ if has_planes else estimator.support_vectors_
    squares = vectors.multiply(vectors) if hasattr(vectors, "multiply") else vectors * vectors
    norms = np.sqrt(np.asarray(squares.sum(axis=1)).reshape(-1))
    names = saved.layout.feature_names if saved.layout else []
    return {
        "algorithm": algorithm_of(type(estimator).__name__).name,
        "class": type(estimator).__name__,
        "version": saved.version,
        "features": int(estimator.n_features_in_),
        "names": names,
        "classes": [
            {"label": label, "size": int(size)}
            for label, size in zip(estimator.classes_.tolist(), sizes, strict=True)
        ],
        "size": int(norms.size),
        "unit": "planes" if has_planes else "vectors",
        "steps": int(estimator.n_steps_),
        "epochs": int(estimator.n_iter_),
        "largest_norm": float(norms.max()) if norms.size else 0.0,
        "scaling": None if saved.scaler is None else type(saved.scaler).__name__,
        "parameters": {name: _said(value) for name, value in estimator.get_params().items()},
        "found": _said(found_settings(estimator)),
        "history": _history_of(estimator),
    }


def _said(value: Any) -> Any:
    """A parameter as JSON can say it."""
    if isinstance(value, dict):
        return {str(key): _said(item) for key, item in value.items()}
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else value.item() if isinstance(value, np.generic) else repr(value)


def _history_of(estimator: Any) -> list[dict[str, Any]]:
    points = getattr(estimator, "history_", None)
    if points is None:
        return []
    return [dict(zip(points.dtype.names, point.tolist(), strict=True)) for point in points]
