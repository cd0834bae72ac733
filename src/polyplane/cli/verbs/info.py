"""`polyplane info`: what is in a model, or in rows."""

from pathlib import Path
from typing import Any

import numpy as np

from polyplane.cli.input.model_input import layout_of
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.input.table_words import label_facts, label_words, table_facts, table_lines
from polyplane.cli.output.screen import Screen
from polyplane.data.summary import RowSummary
from polyplane.model.fit_report import expected_words
from polyplane.model.format.model_file import is_model_file
from polyplane.model.format.prediction_part import read_fitted, refusing
from polyplane.model.prediction import FittedModel

__all__ = ["run"]

MOST_CLASSES = 20  # that are shown
LAST_POINTS = 5  # of the history
SCALERS = {"maxabs": "MaxAbsScaler", "minmax": "MinMaxScaler", "standard": "StandardScaler"}


def run(screen: Screen, *, file: str, reading: dict[str, Any]) -> None:
    """A model is known by its first bytes; everything else is rows."""
    if Path(file).is_file() and is_model_file(file):
        _tell_model(screen, file)
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


def _tell_model(screen: Screen, file: str) -> None:
    fitted = read_fitted(file)
    with refusing(file):
        found = _facts_of(fitted)
    screen.say(
        f"{file}: {found['algorithm']}, {found['size']:,} {found['unit']} over "
        f"{found['features']:,} columns, {found['steps']:,} steps, written by polyplane "
        f"{found['version']}"
    )
    scaling = "none" if found["scaling"] is None else found["scaling"]
    screen.say(f"scaling: {scaling}; largest norm {found['largest_norm']:.4g}")
    if found["table"] is not None:
        for name, words in table_lines(found["table"]):
            screen.say(f"{name}: {words}")
        screen.say(f"missing values: {found['table']['missing']}")
    if found["label"] is not None:
        screen.say(f"label: {label_words(found['label'])}")
    if found["expected"] is not None:
        screen.say(f"expected on new rows: {expected_words(found['expected'])}")
    _show_settings(screen, found)
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


def _show_settings(screen: Screen, found: dict[str, Any]) -> None:
    """Show the parameters, and beside "auto" what a fit has found."""
    settings = found["parameters"] | {
        name: f"{value} (auto)" for name, value in found["found"].items()
    }
    screen.table(["parameter", "value"], [[name, value] for name, value in settings.items()])


def _facts_of(model: FittedModel) -> dict[str, Any]:
    norms, layout = model.norms(), layout_of(model)
    sizes = model.sizes().tolist()
    found = {name: one for name, one in model.found.items() if model.parameters[name] == "auto"}
    return {
        "algorithm": model.algorithm,
        "class": model.title,
        "version": model.version,
        "features": model.n_columns,
        "names": [] if layout is None else layout.feature_names,
        "table": None if layout is None else table_facts(layout),
        "label": None if layout is None else label_facts(layout, None, None),
        "classes": [
            {"label": label, "size": size}
            for label, size in zip(model.labels.tolist(), sizes, strict=True)
        ],
        "size": int(norms.size),
        "unit": "planes" if model.has_planes else "vectors",
        "steps": model.n_steps,
        "epochs": model.n_passes,
        "largest_norm": float(norms.max()) if norms.size else 0.0,
        "scaling": None if model.scaler is None else SCALERS[model.scaler.kind],
        "parameters": _said(dict(model.parameters)),
        "found": _said(found),
        "expected": None if model.fit_report is None else model.fit_report.get("expected"),
        "trials": None if model.fit_report is None else model.fit_report.get("trials"),
        "history": _history_of(model),
    }


def _said(value: Any) -> Any:
    """A parameter as JSON can say it."""
    if isinstance(value, dict):
        return {str(key): _said(item) for key, item in value.items()}
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else value.item() if isinstance(value, np.generic) else repr(value)


def _history_of(model: FittedModel) -> list[dict[str, Any]]:
    names = model.history.dtype.names or ()
    return [dict(zip(names, point, strict=True)) for point in model.history.tolist()]
