"""Pictures of fitted models as plain values: planes, curves, regions, mistakes and rows.

Nothing is trained here. Rows are those that a model was not fitted on, so that what is shown of it
is what it will do. All texts are as they came; whoever shows them escapes them.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.report.columns import Columns, Table, dense, is_sparse, typical_row, varied
from polyplane.report.images import picture_of_row, picture_of_weights

__all__ = [
    "can_explain", "confusion_of", "count_region_columns", "curves_of", "history_of",
    "important_sources", "last_step", "planes_of", "regions_of", "rows_explained", "text_of",
]  # fmt: skip

MOST_PLANES, MOST_EXEMPLARS = 24, 4
MAX_REFERENCE_ROWS = 200  # for reference, and to see which columns matter
SHOWN_COLUMNS = 8
CURVE_POINTS = 41
MOST_VALUES = 12  # of a category
MAX_CURVES = 4  # classes
REGION_GRID_POINTS = 36
MAX_DOTS = 150
MAX_CONFUSION_CLASSES = 20  # of a table of confusions
MAX_LABEL_LETTERS = 120  # letters of a label or a name
MOST_LABELS = 36  # with colours that can be told apart, more or less
FEWEST_REGIONS, MOST_REGIONS = 6, 40  # columns
REGION_SECONDS = 1.0
REGION_MARGIN_SHARE = 0.04  # of a region, on each side of the values
# Share of a region by which other labels must grow for a pair of columns to be shown instead.
MIN_GAIN_OF_COLUMN_PAIR = 0.1


def text_of(label: Any) -> str:
    """A label, or a name, in words of a bearable length."""
    text = f"{label:g}" if isinstance(label, float) else str(label)
    return text if len(text) <= MAX_LABEL_LETTERS else text[: MAX_LABEL_LETTERS - 1] + "…"


def last_step(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the classifier, and the classifier."""
    *before, last = [step for _, step in getattr(model, "steps", [("", model)])]
    return before, last


def can_explain(model: Any) -> bool:
    """Return True if the classifier can tell what columns gave."""
    return hasattr(last_step(model)[1], "explain")


def _seen(model: Any, X: Any) -> Any:
    for step in last_step(model)[0]:
        X = step.transform(X)
    return X


# ---- columns -----------------------------------------------------------------------------


def important_sources(model: Any, table: Table, most: int) -> list[int]:
    """The columns that matter most to a model; without an explanation those that vary."""
    part = table.part(np.arange(min(MAX_REFERENCE_ROWS, table.y.size)))
    if can_explain(model):
        rows = _seen(model, part.X)
        given = last_step(model)[1].explain(rows, reference=rows).contributions
        weights = np.abs(table.columns.gathered(given)).mean(axis=0)
    else:
        weights = (table.columns.gathered(dense(part.X)).std(axis=0) > 0).astype(float)
    order = np.argsort(-weights, kind="stable")[:most]
    return [int(source) for source in order if weights[source] > 0]


def _grid_of(table: Table, column: int, n_points: int, is_even: bool) -> Array:
    """Values along a column, at even distances or where rows are."""
    values = table.column(column)
    low, high = np.quantile(values, [0.01, 0.99])
    if low == high:
        low, high = float(values.min()), float(values.max())
    even = np.linspace(low, high, n_points)
    if is_even:
        return even
    near: Array = np.unique(np.concatenate([even, np.quantile(values, np.linspace(0, 1, 21))]))
    inside: Array = near[(near >= low) & (near <= high)]
    return inside


def curves_of(model: Any, table: Table, sources: Sequence[int]) -> list[dict[str, Any]]:
    """Return the change of scores along columns, all others being typical."""
    typical, as_sparse = typical_row(table), is_sparse(table.X)
    classes = last_step(model)[1].classes_
    shown, labels = _shown_classes(classes, table.y)
    at = np.array([0])
    start = _scores(model, varied(typical, at, typical[at][None], as_sparse), shown)
    found = []
    for source in sources:
        number = table.columns.number(source)
        entry: dict[str, Any] = {"name": text_of(table.columns.names[source]), "labels": labels}
        if number is not None:
            grid = _grid_of(table, number, CURVE_POINTS, False)
            rows = varied(typical, np.array([number]), grid[:, None], as_sparse)
            deciles = np.quantile(table.column(number), np.linspace(0.1, 0.9, 9))
            entry |= {"x": grid.tolist(), "ticks": deciles.tolist()}
            if source in table.columns.origins:
                entry["name"] += f", days since {table.columns.told(source, 0.0)}"
        elif table.columns.choices(source).size:
            choices, most = _frequent_choices(table, source)
            rows = varied(typical, choices, np.eye(choices.size)[most], as_sparse)
            entry["values"] = [text_of(table.columns.values[choices[k]]) for k in most]
        else:
            continue
        entry["y"] = (_scores(model, rows, shown) - start).T.tolist()
        found.append(entry)
    return found


def _shown_classes(classes: Array, y: Array) -> tuple[Array | None, list[str]]:
    """Return the classes to show: of two the second, of several the most frequent."""
    if classes.size == 2:
        return None, [text_of(classes.tolist()[1])]
    counts = np.array([np.sum(y == label) for label in classes])
    most = np.sort(np.argsort(-counts, kind="stable")[:MAX_CURVES])
    return most, [text_of(classes.tolist()[k]) for k in most]


def _scores(model: Any, rows: Any, shown: Array | None) -> Array:
    scores = np.asarray(model.decision_function(rows), np.float64)
    return scores[:, None] if shown is None else scores[:, shown]


def count_region_columns(microseconds: float) -> int:
    """Along how many columns there is time for regions of all pairs, at so much a prediction."""
    n_pairs = (
        1e6 * REGION_SECONDS / (REGION_GRID_POINTS * REGION_GRID_POINTS * max(microseconds, 1e-3))
    )
    return int(np.clip((1 + np.sqrt(1 + 8 * n_pairs)) / 2, FEWEST_REGIONS, MOST_REGIONS))


def regions_of(
    models: Mapping[str, Any], table: Table, sources: Sequence[int]
) -> dict[str, Any] | None:
    """The label that each model gives along pairs of columns, all others being typical.

    `cells` are the labels of all models on a grid for each pair, a byte each, packed: pairs
    (0, 1), (0, 2), ..., each with one model after the other and one line after the other.
    """
    numbers = {s: table.columns.number(s) for s in sources}
    known = [(s, j) for s, j in numbers.items() if j is not None]
    known = [(s, j) for s, j in known if np.ptp(table.column(j)) > 0]
    labels = np.unique(table.y)
    if len(known) < 2 or labels.size > MOST_LABELS:
        return None
    typical, as_sparse = typical_row(table), is_sparse(table.X)
    some = np.arange(min(MAX_DOTS, table.y.size))
    grids = [_with_room(_grid_of(table, j, REGION_GRID_POINTS, True)) for _, j in known]
    cells, start, most_mixed = [], (0, 1), -1
    for a, b in combinations(range(len(known)), 2):
        along = np.stack(
            [np.tile(grids[a], REGION_GRID_POINTS), np.repeat(grids[b], REGION_GRID_POINTS)], axis=1
        )
        places = np.array([known[a][1], known[b][1]])
        rows = varied(typical, places, along, as_sparse)
        cells += [_codes(model.predict(rows), labels) for model in models.values()]
        n_others = REGION_GRID_POINTS * REGION_GRID_POINTS - int(np.bincount(cells[-1]).max())
        if (
            n_others
            > most_mixed + MIN_GAIN_OF_COLUMN_PAIR * REGION_GRID_POINTS * REGION_GRID_POINTS
        ):  # columns that matter more go first
            start, most_mixed = (a, b), n_others
    dots = [table.column(j)[some].astype(np.float64) for _, j in known]
    return {
        "names": [text_of(table.columns.names[s]) for s, _ in known],
        "labels": [text_of(label) for label in labels.tolist()],
        "machines": list(models),
        "start": start,
        "grid": REGION_GRID_POINTS,
        "ranges": [[float(grid[0]), float(grid[-1])] for grid in grids],
        "ends": [
            [_rounded(table.columns, s, float(end)) for end in (grid[0], grid[-1])]
            for (s, _), grid in zip(known, grids, strict=True)
        ],
        "dots": [[float(f"{x:.4g}") for x in each] for each in dots],
        "dot_labels": _codes(table.y[some], labels).tolist(),
        "has_others": len(table.columns.names) > 2,
        "cells": _packed(np.concatenate(cells)),
    }


def _rounded(columns: Columns, source: int, value: float) -> str:
    """In a few digits; of a date the day."""
    is_date = source in columns.origins
    return columns.told(source, round(value) if is_date else float(f"{value:.3g}"))


def _with_room(grid: Array) -> Array:
    """A little more on both sides, so that marks at the ends are seen."""
    room = REGION_MARGIN_SHARE * (grid[-1] - grid[0])
    wider: Array = np.linspace(grid[0] - room, grid[-1] + room, grid.size)
    return wider


def _codes(said: Array, labels: Array) -> Array:
    return np.searchsorted(labels, said).astype(np.uint8)


def _packed(codes: Array) -> str:
    """Regions are mostly of one colour: packed, a hundred pairs take some kilobytes."""
    return base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()


# ---- planes ------------------------------------------------------------------------------


def planes_of(
    model: Any, table: Table, shape: tuple[int, int] | None
) -> list[dict[str, Any]] | None:
    """Return facts about each plane: the rows it decides, how well, and its columns."""
    estimator = last_step(model)[1]
    if not hasattr(estimator, "assign"):
        return None
    rows = _seen(model, table.X)
    deciding, predicted = estimator.assign(rows), estimator.predict(rows)
    planes, labels = estimator.planes_, estimator.plane_classes_.tolist()
    fits = planes.shape[1] == table.X.shape[1]
    spread = _spread_of(rows) if fits else None
    scores = estimator.plane_scores(rows)
    n_rows = np.bincount(deciding[deciding >= 0], minlength=len(planes))
    signs = estimator.plane_signs_
    found = []
    for plane in np.argsort(-n_rows, kind="stable")[:MOST_PLANES].tolist():
        own = np.flatnonzero(deciding == plane)
        if not own.size:
            continue
        best = own[np.argsort(-scores[own, plane], kind="stable")]
        entry: dict[str, Any] = {
            "number": plane,
            "label": text_of(labels[plane]),
            "against": bool(signs[plane] < 0),
            "rows": int(own.size),
            "share": own.size / table.y.size,
            "error": float(np.mean(predicted[own] != table.y[own])),
            "columns": [],
        }
        if fits and spread is not None:
            entry["columns"] = _largest(planes[plane] * spread, table)
            if shape is not None:
                entry["picture"] = picture_of_weights(planes[plane] * spread, shape)
        looked_at = [one.pop() for one in entry["columns"]]
        entry["exemplars"] = [
            _exemplar(table, int(row), shape, looked_at) for row in best[:MOST_EXEMPLARS]
        ]
        found.append(entry)
    return found or None


def _spread_of(rows: Any) -> Array:
    if not is_sparse(rows):
        return np.asarray(rows.std(axis=0))
    square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
    variance = square - np.asarray(rows.mean(axis=0)).ravel() ** 2
    spread: Array = np.sqrt(np.maximum(variance, 0))
    return spread


def _largest(weights: Array, table: Table) -> list[list[Any]]:
    """Columns of X by the size of their weight in units of their deviation; and their sources."""
    columns, order = table.columns, np.argsort(-np.abs(weights))[:5]
    found = []
    for j in order:
        if weights[j] == 0:
            continue
        source = int(j if columns.source_of is None else columns.source_of[j])
        value = columns.values[j] if columns.values else ""
        name = columns.names[source] + (f" = {value}" if value else "")
        found.append([text_of(name), float(weights[j]), source])
    return found


def _exemplar(
    table: Table, row: int, shape: tuple[int, int] | None, looked_at: Sequence[int]
) -> dict[str, Any]:
    """A row that a plane decides, with its cells in the columns that the plane looks at."""
    sources = list(dict.fromkeys(looked_at))[:3]
    cells = [[text_of(table.columns.names[s]), table.cell(row, s)] for s in sources]
    entry: dict[str, Any] = {"label": text_of(table.y.tolist()[row]), "cells": cells}
    if shape is not None:
        entry["picture"] = picture_of_row(_dense_row(table.X, row), shape)
    return entry


def _dense_row(X: Any, row: int) -> Array:
    return dense(X[[row]]).ravel()


def history_of(model: Any) -> list[dict[str, float]]:
    """Steps, planes now, created and pruned, and the error, of the first of its models."""
    estimator = last_step(model)[1]
    notes = estimator.history_
    notes = notes[notes["model"] == 0]
    names = ("step", "planes", "created", "pruned", "error")
    return [{name: float(note[name]) for name in names} for note in notes]


# ---- mistakes and rows -------------------------------------------------------------------


def confusion_of(y: Array, predicted: Array) -> dict[str, Any]:
    """True by predicted labels; of many classes the most frequent, and the rest together."""
    labels, counts = np.unique(np.concatenate([y, predicted]), return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:MAX_CONFUSION_CLASSES])
    to = np.full(labels.size, kept.size)
    to[kept] = np.arange(kept.size)
    size = kept.size + int(labels.size > kept.size)
    table = np.zeros((size, size), np.int64)
    truth, said = (to[np.searchsorted(labels, one)] for one in (y, predicted))
    np.add.at(table, (truth, said), 1)
    names = [text_of(label) for label in labels[kept].tolist()]
    return {"labels": names + ["others"] * (size - kept.size), "counts": table.tolist()}


def picked_rows(y: Array, predicted: Array, sureness: Array) -> list[int]:
    """Rows worth a look: the surest mistakes, the closest calls, and some at random."""
    sure = np.nan_to_num(sureness)
    wrong = np.flatnonzero(y != predicted)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")[:12]]
    closest = np.argsort(sure, kind="stable")[:6]
    others = np.random.default_rng(0).permutation(y.size)[:12]
    return list(dict.fromkeys([*worst.tolist(), *closest.tolist(), *others.tolist()]))


def rows_explained(
    model: Any, table: Table, places: Array, shape: tuple[int, int] | None, sources: Sequence[int]
) -> list[dict[str, Any]]:
    """Some held-out rows, what decided them, and what would change that."""
    rows, (_, estimator) = _seen(model, table.X), last_step(model)
    predicted = np.asarray(model.predict(table.X))
    sureness = _certainty(model, table.X)
    picked = picked_rows(table.y, predicted, sureness)
    n_reference = min(MAX_REFERENCE_ROWS, table.y.size)
    found = estimator.explain(rows[picked], reference=rows[:n_reference])
    given = table.columns.gathered(found.contributions)
    lead, labels = found.lead, table.y.tolist()
    chances = np.asarray(model.predict_proba(table.X)).max(axis=1) if _tells(model) else None
    entries = []
    for k, row in enumerate(picked):
        order = np.argsort(-np.abs(given[k]), kind="stable")[:SHOWN_COLUMNS]
        entry: dict[str, Any] = {
            "row": int(places[row]) + 1,
            "label": text_of(labels[row]),
            "winner": text_of(found.winner.tolist()[k]),
            "runner_up": text_of(found.runner_up.tolist()[k]),
            "is_wrong": bool(predicted[row] != table.y[row]),
            "lead": float(lead[k]),
            "base": float(found.base[k]),
            "rest": float(given[k].sum() - given[k][order].sum()),
            "planes": [int(plane) for plane in found.planes[k]],
            "sure": float(sureness[row]),
            "chance": None if chances is None else float(chances[row]),
            "columns": [
                [text_of(table.columns.names[s]), table.cell(row, int(s)), float(given[k][s])]
                for s in order
                if given[k][s] != 0
            ],
            "changes": _changes(model, table, row, predicted[row], sources),
        }
        if shape is not None:
            entry["picture"] = picture_of_row(_dense_row(table.X, row), shape)
            entry["heat"] = picture_of_weights(given[k], shape)
        entries.append(entry)
    return entries


def _tells(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def _certainty(model: Any, X: Any) -> Array:
    scores = np.asarray(model.decision_function(X), np.float64)
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)
    lead: Array = best[:, -1] - best[:, -2]
    return lead


def _changes(
    model: Any, table: Table, row: int, predicted: Any, sources: Sequence[int]
) -> list[list[str]]:
    """Values of single columns, met in other rows, with which the label would be another."""
    line, found = _dense_row(table.X, row).astype(np.float64), []
    for source in sources:
        places, values, told = _other_values(table, line, source)
        if not told:
            continue
        said = np.asarray(model.predict(varied(line, places, values, is_sparse(table.X))))
        other = np.flatnonzero(said != predicted)
        if other.size:
            label = text_of(said.tolist()[other[0]])
            found.append([text_of(table.columns.names[source]), told[other[0]], label])
    return found[:3]


def _other_values(table: Table, line: Array, source: int) -> tuple[Array, Array, list[str]]:
    """Where a column is in X, what else it might be there, the nearest first, and in words.

    Of values of a category none is near, so the most frequent go first.
    """
    number = table.columns.number(source)
    if number is not None:
        grid = _grid_of(table, number, 21, True)
        grid = grid[np.argsort(np.abs(grid - line[number]), kind="stable")]
        return (
            np.array([number]),
            grid[:, None],
            [table.columns.told(source, float(value)) for value in grid],
        )
    choices, most = _frequent_choices(table, source)
    told = [text_of(table.columns.values[choices[k]]) for k in most]
    return choices, np.eye(choices.size)[most], told


def _frequent_choices(table: Table, source: int) -> tuple[Array, Array]:
    """Columns of X that stand for values of a category, and which of them are met most."""
    choices = table.columns.choices(source)
    counts = np.asarray((table.X[:, choices] != 0).sum(axis=0)).ravel()
    return choices, np.argsort(-counts, kind="stable")[:MOST_VALUES]
