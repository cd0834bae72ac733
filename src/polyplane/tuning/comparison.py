"""`polyplane.compare`: classifiers that somebody brings, on the same folds, tested and priced."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from polyplane.arrays import Array
from polyplane.data.table.frames import frame_of
from polyplane.estimator.input.tables import TableRows, layout_of, without_layout
from polyplane.estimator.online_classifier import OnlineClassifier
from polyplane.report.columns import Columns, Table, is_sparse
from polyplane.report.findings import last_step
from polyplane.tuning.code import code_of_model
from polyplane.tuning.contents import Shown, content_of, table_of
from polyplane.tuning.diagnosis import CLEAR_LEAD_STANDARD_ERRORS
from polyplane.tuning.exploration import Lines, Report
from polyplane.tuning.held_out import folds_of
from polyplane.tuning.runs import Run, lead_of, run_folds
from polyplane.tuning.samples import columns_of, is_table

__all__ = ["compare"]

FOLDS = 5
LONGEST_NAME = 60
OF_EXPLORATIONS = "steps", "learning"  # parts of a page about samples


def compare(
    models: Any,
    X: Any,
    y: Any,
    *,
    n_folds: int = FOLDS,
    random_state: int = 0,
    report: Any = None,
    image_shape: tuple[int, int] | None = None,
) -> Report:
    """Judge classifiers of scikit-learn's kind on the same held-out rows.

    The first classifier is the one that the others are compared with. Ctrl-C ends it with the
    models that have been judged.

    Parameters
    ----------
    models : dict or list
        Classifiers by name, or classifiers; none of them is fitted itself.
    X : array-like, sparse matrix or table of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Labels.
    n_folds : int, default=5
        Parts of the rows, each judged by models of the others.
    random_state : int, default=0
        Seed of the folds.
    report : path, optional
        Page to write.
    image_shape : tuple of int, optional
        Height and width: rows and planes are shown as pictures.

    Returns
    -------
    Report
        Result with `verdict`, `summary`, `table`, `models` and `to_html(path)`. The verdict is the
        name of the model with the lowest error, or "a tie" if its lead over the next may be chance.

    See Also
    --------
    explore : Compare algorithms of different kinds.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> import polyplane as pp
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> models = {"linear": LogisticRegression(), "planes": pp.AMMClassifier(random_state=0)}
    >>> pp.compare(models, X, y).verdict
    'planes'
    """
    named = _named(models)
    if n_folds < 2:
        raise ValueError(f"n_folds is {n_folds}, expected 2 or more.")
    labels = np.asarray(y)
    if np.unique(labels).size < 2:
        raise ValueError("y has but one label, expected two classes at least.")
    start = time.perf_counter()
    splits = folds_of(labels, n_folds, random_state)
    runs: dict[str, list[Run]] = {}
    is_interrupted = False
    for name, model in named.items():
        run = Run(name, labels.size, n_folds)
        try:
            list(run_folds(run, partial(clone, model), X, labels, splits))
        except KeyboardInterrupt:
            if not runs:
                raise
            is_interrupted = True
            break
        except Exception as error:
            error.add_note(f"{name} is the model that failed.")
            raise
        runs[name] = [run]
    result = _report(runs, named, X, labels, n_folds, image_shape, time.perf_counter() - start)
    result.content = {**result.content, "is_interrupted": is_interrupted}
    if report is not None:
        result.to_html(report)
    return result


def _named(models: Any) -> dict[str, Any]:
    """Return the classifiers, each with a name of its own."""
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        named = {}
        for model in models if isinstance(models, Sequence) else [models]:
            kind, number = type(model).__name__, 1
            while (name := kind if number == 1 else f"{kind} {number}") in named:
                number += 1
            named[name] = model
    if not named:
        raise ValueError("There is no model to compare.")
    for name, model in named.items():
        if not (hasattr(model, "fit") and hasattr(model, "predict")):
            raise TypeError(f"{name} is {model!r}, expected a classifier with fit and predict.")
    return named


def _report(
    runs: Mapping[str, Sequence[Run]],
    named: Mapping[str, Any],
    X: Any,
    y: Array,
    n_folds: int,
    image_shape: tuple[int, int] | None,
    seconds: float,
) -> Report:
    order = sorted(runs, key=lambda name: runs[name][-1].error)
    best, first = order[0], next(iter(runs))
    verdict, sentence = _verdict(runs, order)
    says = {name: type(model).__name__ for name, model in named.items()}
    table = table_of(runs, first, says, {})
    planes = next((n for n in order if hasattr(_last(runs[n][-1].model), "assign")), None)
    curved = next((n for n in order if _is_additive(_last(runs[n][-1].model))), None)
    shown = Shown(best, first if best != first else order[-1], curved, planes)
    view = partial(_of_table, X, y) if is_table(X) else partial(_of_matrix, _table(X, y))
    content = content_of(runs, view, y, np.arange(y.size), shown, image_shape)
    n_columns = len(frame_of(X).names) if is_table(X) else np.shape(X)[1]
    content |= {
        "kind": "comparison",
        "absent": OF_EXPLORATIONS,
        "title": "comparison",
        "verdict": verdict,
        "headline": sentence,
        "best": best,
        "beside": first,
        "machines": table,
        "n_rows": y.size,
        "n_met": y.size,
        "is_all": True,
        "n_columns": n_columns,
        "n_folds": n_folds,
        "seconds": seconds,
        "code": code_of_model(named[best]),
    }
    models = {name: each[-1].model for name, each in runs.items()}
    return Report(verdict, sentence, Lines(table), models, content)


def _verdict(runs: Mapping[str, Sequence[Run]], order: Sequence[str]) -> tuple[str, str]:
    best = runs[order[0]][-1]
    if len(order) == 1:
        return order[0], f"{order[0]} has {best.error:.1%} wrong."
    lead = lead_of(best, runs[order[1]][-1])
    points = f"{100 * lead.points:.2f} ± {100 * lead.spread:.2f} points"
    words = (
        f"{order[0][:LONGEST_NAME]} has the lowest error, {best.error:.1%}; "
        f"{order[1][:LONGEST_NAME]} is next, behind by {points}"
    )
    if lead.z > CLEAR_LEAD_STANDARD_ERRORS:
        return order[0], f"{words}, which is more than luck."
    return "a tie", f"{words}, which may be chance (p = {lead.p:.2f})."


def _last(model: Any) -> Any:
    return getattr(model, "steps", [("", model)])[-1][1]


def _is_additive(model: Any) -> bool:
    """Return True if a class is one plane, so that what columns add is all there is."""
    return hasattr(model, "n_planes_") and model.n_planes_ <= max(2, model.classes_.size)


def _table(X: Any, y: Array) -> Table:
    """Return the rows of a matrix as a report looks at them."""
    rows = sp.csr_matrix(X) if is_sparse(X) else np.asarray(X)
    return Table(rows, y, Columns([f"column {k + 1}" for k in range(rows.shape[1])]))


def _of_matrix(table: Table, run: Run) -> tuple[Any, Table]:
    return run.model, table.part(run.held_out)


def _of_table(X: Any, y: Array, run: Run) -> tuple[Any, Table] | None:
    """Return a model of ours without the steps before it, and rows as these steps make them."""
    before, machine = last_step(run.model)
    if not isinstance(machine, OnlineClassifier):
        return None
    rows, labels = _safe_indexing(X, run.held_out), y[run.held_out]
    for step in before:
        rows = step.transform(rows)
    layout = layout_of(machine)
    if layout is not None:
        rows = TableRows(layout).transform(rows)
        return without_layout(machine), Table(rows, labels, columns_of(layout))
    names = _names_out(before, rows.shape[1])
    rows = rows if is_sparse(rows) else np.asarray(rows)
    return machine, Table(rows, labels, Columns(names))


def _names_out(steps: Sequence[Any], width: int) -> list[str]:
    """Return what the last step calls its columns, if it says so."""
    with contextlib.suppress(AttributeError, ValueError, NotImplementedError, IndexError):
        return [str(name) for name in steps[-1].get_feature_names_out()]
    return [f"column {k + 1}" for k in range(width)]
