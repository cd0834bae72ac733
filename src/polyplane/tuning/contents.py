"""Content of a page about runs: plain values, made of fitted models and held-out rows.

The keys are those that `report/page.py` draws; a part that cannot be is a sentence that says why.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.report.columns import Table
from polyplane.report.findings import (
    can_explain,
    confusion_of,
    count_region_columns,
    curves_of,
    history_of,
    important_sources,
    last_step,
    planes_of,
    regions_of,
    rows_explained,
)
from polyplane.report.images import guessed_shape
from polyplane.tuning.runs import Run, lead_of

__all__ = ["EXPLAINED", "Shown", "content_of", "table_of"]

CHANGED_COLUMNS, CHANGED_PIXELS = 6, 3  # of which it is said what would change a label
CURVE_COLUMNS = 9
EXPLAINED = "splines", "regions", "mistakes", "rows"  # parts for which models explain rows
MAX_PICTURE_COLUMNS = 4_096  # columns, above which rows are not looked at as pictures
Runs = Mapping[str, Sequence[Run]]
View = Callable[[Run], Any]  # a model and the rows that it was not fitted on, as a Table; or None


class Shown:
    """Algorithms that are shown in each part of a page."""

    def __init__(self, best: str, beside: str, curved: str | None, planes: str | None) -> None:
        self.best, self.beside, self.curved, self.planes = best, beside, curved, planes


def table_of(
    runs: Runs, beside: str, says: Mapping[str, str], units: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a line for each algorithm: error, interval, lead over another, and prices."""
    lines = []
    for name, all_runs in runs.items():
        run = all_runs[-1]
        sizes = {one.n_rows for one in runs.get(beside, ())}
        common = [one for one in all_runs if one.n_rows in sizes]
        lead = None
        if common and name != beside:
            (other,) = [one for one in runs[beside] if one.n_rows == common[-1].n_rows]
            lead = lead_of(common[-1], other)
        low, high = run.interval
        lines.append(
            {
                "machine": name,
                "what": says.get(name, ""),
                "rows": run.n_rows,
                "error": run.error,
                "low": low,
                "high": high,
                "standard_error": run.trial.standard_error,
                "lead": None if lead is None else lead.points,
                "lead_spread": None if lead is None else lead.spread,
                "p": None if lead is None else lead.p,
                "microseconds": run.microseconds,
                "bytes": run.n_bytes,
                "size": run.trial.size,
                "unit": units.get(name, ""),
                "fit_seconds": run.trial.median_seconds,
            }
        )
    return lines


def content_of(
    runs: Runs,
    view: View,
    y: Array,
    places: Array,
    shown: Shown,
    image_shape: tuple[int, int] | None,
    is_brief: bool = False,
) -> dict[str, Any]:
    """Return the parts of a page that show what models do; a brief one does not explain rows."""
    best = runs[shown.best][-1]
    order = np.argsort(best.trial.rows, kind="stable")
    content: dict[str, Any] = {
        "curves": {
            name: [[run.n_rows, run.error, *run.interval] for run in each]
            for name, each in runs.items()
        },
        "confusion": {
            "machine": shown.best,
            "rows": best.n_rows,
            **confusion_of(y[best.trial.rows[order]], best.predicted[order]),
        },
        "made": time.strftime("%Y-%m-%d %H:%M"),
    }
    content |= _about_planes(runs, view, shown, image_shape)
    if is_brief:
        return content | {"to_come": EXPLAINED}
    content |= _about_rows(runs, view, places, shown, image_shape)
    return content | _about_curves(runs, view, shown)


def _about_planes(
    runs: Runs, view: View, shown: Shown, image_shape: tuple[int, int] | None
) -> dict[str, Any]:
    """Return what planes are for, and how they grew."""
    seen = None if shown.planes is None else view(runs[shown.planes][-1])
    if seen is None:
        return {}
    model, held = seen
    content: dict[str, Any] = {}
    found, machine = planes_of(model, held, image_shape or _shape_of(held)), last_step(model)[1]
    if found:
        n_planes = int(machine.n_planes_)
        content["planes"] = {"machine": shown.planes, "list": found, "n_planes": n_planes}
    if hasattr(machine, "history_"):
        content["history"] = {"machine": shown.planes, "list": history_of(model)}
    return content


def _about_rows(
    runs: Runs, view: View, places: Array, shown: Shown, image_shape: tuple[int, int] | None
) -> dict[str, Any]:
    """Return explained rows, and regions along two columns."""
    explained = _explained(runs, view, shown)
    if explained is None:
        return {}
    run, other = runs[explained][-1], runs[shown.beside][-1]
    model, held = view(run)
    shape = image_shape or _shape_of(held)
    beside, models = view(other), {explained: model}
    if beside is not None and beside[1].columns.same_as(held.columns):
        models = {shown.beside: beside[0]} | models
    n_columns = count_region_columns(run.microseconds + other.microseconds * (len(models) > 1))
    sources = important_sources(model, held, n_columns)
    n_changed = CHANGED_COLUMNS if shape is None else CHANGED_PIXELS
    found = rows_explained(model, held, places[run.held_out], shape, sources[:n_changed])
    return {
        "rows": {"machine": explained, "list": found},
        "regions": regions_of(models, held, sources),
    }


def _about_curves(runs: Runs, view: View, shown: Shown) -> dict[str, Any]:
    """Return scores along columns."""
    seen = None if shown.curved is None else view(runs[shown.curved][-1])
    if seen is None:
        return {}
    model, held = seen
    curves = curves_of(model, held, important_sources(model, held, CURVE_COLUMNS))
    return {"splines": {"machine": shown.curved, "list": curves}}


def _explained(runs: Runs, view: View, shown: Shown) -> str | None:
    """Return the best algorithm that can explain itself."""
    names = [shown.best, *sorted(runs, key=lambda name: runs[name][-1].error)]
    able = (name for name in names if can_explain(runs[name][-1].model))
    return next((name for name in able if view(runs[name][-1]) is not None), None)


def _shape_of(table: Table) -> tuple[int, int] | None:
    if table.columns.source_of is not None or table.X.shape[1] > MAX_PICTURE_COLUMNS:
        return None
    some = table.X[:500]
    return guessed_shape(some if isinstance(some, np.ndarray) else some.toarray())
