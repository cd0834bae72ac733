"""What a page shows of runs: plain values, made of fitted models and held-out rows.

The keys are those that `report/page.py` draws; a part that cannot be is a sentence that says why.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyplane.engine.planes.planes import Array
from polyplane.report.columns import Table
from polyplane.report.findings import (
    can_explain,
    confusion_of,
    curves_of,
    history_of,
    important_sources,
    last_step,
    planes_of,
    regions_of,
    rows_explained,
)
from polyplane.report.page.images import guessed_shape
from polyplane.tuning.runs import Run, lead_of

__all__ = ["Shown", "content_of", "table_of"]

REGION_COLUMNS, REGION_PIXELS = 6, 3
CURVE_COLUMNS = 9
DENSE_ENOUGH = 4_096  # columns, above which rows are not looked at as pictures
Runs = Mapping[str, Sequence[Run]]


class Shown:
    """Which machine is shown in which part of a page."""

    def __init__(self, best: str, beside: str, curved: str | None, planes: str | None) -> None:
        self.best, self.beside, self.curved, self.planes = best, beside, curved, planes


def table_of(runs: Runs, beside: str, says: Mapping[str, str], units: Mapping[str, str]) -> list[
    dict[str, Any]
]:  # fmt: skip
    """A line for each machine: error, interval, lead over another with its test, and prices."""
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
    table: Table | None,
    y: Array,
    places: Array,
    shown: Shown,
    image_shape: tuple[int, int] | None,
) -> dict[str, Any]:
    """The parts of a page that show what models do."""
    best = runs[shown.best][-1]
    order = np.argsort(best.trial.rows, kind="stable")
    content: dict[str, Any] = {
        "curves": {
            name: [[run.n_rows, run.error, *run.interval] for run in each]
            for name, each in runs.items()
        },
        "path": _paths(runs),
        "confusion": {
            "machine": shown.best,
            "rows": best.n_rows,
            **confusion_of(y[best.trial.rows[order]], best.predicted[order]),
        },
    }
    if table is None:
        return content
    shape = image_shape or _shape_of(table)
    explained = _explained(runs, shown)
    if shown.planes is not None:
        run = runs[shown.planes][-1]
        held = table.part(run.held_out)
        found = planes_of(run.model, held, shape)
        if found:
            n_planes = int(last_step(run.model)[1].n_planes_)
            content["planes"] = {"machine": shown.planes, "list": found, "n_planes": n_planes}
        if hasattr(last_step(run.model)[1], "history_"):
            content["history"] = {"machine": shown.planes, "list": history_of(run.model)}
    if explained is not None:
        run = runs[explained][-1]
        held = table.part(run.held_out)
        n_columns = REGION_COLUMNS if shape is None else REGION_PIXELS
        sources = important_sources(run.model, held, n_columns)
        content["rows"] = {
            "machine": explained,
            "list": rows_explained(run.model, held, places[run.held_out], shape, sources),
        }
        beside = {shown.beside: runs[shown.beside][-1].model}
        models = beside | {explained: run.model}
        content["regions"] = regions_of(models, held, sources)
    if shown.curved is not None:
        run = runs[shown.curved][-1]
        held = table.part(run.held_out)
        sources = important_sources(run.model, held, CURVE_COLUMNS)
        content["splines"] = {"machine": shown.curved, "list": curves_of(run.model, held, sources)}
    content["made"] = time.strftime("%Y-%m-%d %H:%M")
    return content


def _explained(runs: Runs, shown: Shown) -> str | None:
    """The best machine that can explain itself."""
    names = [shown.best, *sorted(runs, key=lambda name: runs[name][-1].error)]
    return next((name for name in names if can_explain(runs[name][-1].model)), None)


def _shape_of(table: Table) -> tuple[int, int] | None:
    if table.columns.source_of is not None or table.X.shape[1] > DENSE_ENOUGH:
        return None
    some = table.X[:500]
    return guessed_shape(some if isinstance(some, np.ndarray) else some.toarray())


def _paths(runs: Runs) -> list[dict[str, Any]]:
    """Errors by alpha, of each sample on which several were tried."""
    found = []
    for name, all_runs in runs.items():
        for run in all_runs:
            points = [[s.alpha, error] for s, error in run.tried if s.alpha is not None]
            if len(points) > 1:
                points.sort()
                chosen = run.setting.alpha
                found.append(
                    {"machine": name, "rows": run.n_rows, "points": points, "chosen": chosen}
                )
    return found
