"""`polyplane evaluate`: a model on labelled rows, chunk by chunk."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane.cli.input.model_input import LoadedModel, load_model
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.screen import Screen
from polyplane.data.chunks import DataError
from polyplane.report.metrics import Confusions, as_labels_of, standard_error

__all__ = ["run", "tell_of_unknown_labels"]

CORNER = "true \\ predicted"
BUSIEST = 5  # planes
MOST_NAMED = 5  # labels in a sentence


def run(
    screen: Screen,
    *,
    model: str,
    data: Sequence[str],
    jobs: int | None,
    reading: dict[str, Any],
) -> None:
    """Count errors, confusions and planes."""
    loaded = load_model(model, data, jobs)
    rows = open_rows(data, reading, layout=loaded.layout, base=loaded.fitted.call.get("base"))
    tally = Confusions.of(loaded.classes)
    busy = _Planes(loaded)
    for chunk in chunks_of(rows, screen, "Evaluating"):
        if not chunk.y.size:
            raise DataError("has no labels, without which there are no errors", data[0])
        X = loaded.rows(chunk.X)
        tally.add(as_labels_of(chunk.y, loaded.classes), loaded.predict(X))
        busy.add(X)
    tell_of_unknown_labels(screen, tally, data[0])
    _show(screen, tally, busy)
    screen.result(_plain(tally, busy, rows.bad.n_skipped))


def tell_of_unknown_labels(screen: Screen, tally: Confusions, source: str) -> None:
    """A model cannot be right on rows of classes that it has never met."""
    if not tally.unknown:
        return
    n_rows = sum(n for _, n in tally.unknown)
    unknown = some_labels([label for label, _ in tally.unknown])
    known = some_labels(tally.labels[: tally.n_known])
    if n_rows == tally.n_rows:
        screen.warn(
            f"{source}: none of its labels ({unknown}) is a class of the model ({known}), so every "
            "row counts as an error: check the column of the label (--label) and its spelling."
        )
    else:
        screen.warn(
            f"{source}: {n_rows:,} of {tally.n_rows:,} rows have labels ({unknown}) that are not "
            f"classes of the model ({known}) and count as errors."
        )


def some_labels(labels: Sequence[Any]) -> str:
    """The first labels, for a sentence."""
    shown = ", ".join(repr(label) for label in labels[:MOST_NAMED])
    return f"{shown}, ..." if len(labels) > MOST_NAMED else shown


class _Planes:
    """How many rows each plane has decided."""

    def __init__(self, model: LoadedModel) -> None:
        self.model, self.are_there = model, model.fitted.has_planes
        n_planes = model.fitted.plane_labels.size if self.are_there else 0
        self.counts = np.zeros(n_planes + 1, np.int64)  # the last: no plane at all

    def add(self, X: Any) -> None:
        """More rows."""
        if self.are_there:
            decided = self.model.fitted.assign(X, self.model.n_jobs)
            self.counts += np.bincount(decided, minlength=self.counts.size)

    @property
    def n_used(self) -> int:
        """Planes that decided a row."""
        return int(np.count_nonzero(self.counts[:-1]))

    def busiest(self) -> list[tuple[int, Any, int]]:
        """Number, class and rows of the planes that decided most."""
        order = np.argsort(-self.counts[:-1], kind="stable")[:BUSIEST]
        classes = self.model.fitted.plane_labels.tolist()
        return [(int(k), classes[k], int(self.counts[k])) for k in order if self.counts[k]]


def _plain(tally: Confusions, planes: _Planes, n_skipped: int) -> dict[str, Any]:
    return {
        "rows": tally.n_rows,
        "errors": tally.n_errors,
        "error": tally.error,
        "standard_error": standard_error(tally.error, tally.n_rows),
        "macro_f1": tally.macro_f1,
        "classes": tally.labels,
        "unknown_labels": [label for label, _ in tally.unknown],
        "confusion": tally.counts,
        "per_class": [
            {
                "label": quality.label,
                "rows": quality.n_rows,
                "predicted": quality.n_predicted,
                "precision": quality.precision,
                "recall": quality.recall,
                "f1": quality.f1,
            }
            for quality in tally.qualities
        ],
        "planes": planes.counts.size - 1 if planes.are_there else None,
        "planes_used": planes.n_used if planes.are_there else None,
        "skipped": n_skipped,
    }


def _show(screen: Screen, tally: Confusions, planes: _Planes) -> None:
    spread = standard_error(tally.error, tally.n_rows)
    screen.say(
        f"{tally.n_rows:,} rows, {tally.n_errors:,} errors: {tally.error:.2%} ± {spread:.2%}"
    )
    names = [str(label) for label in tally.labels]
    matrix = [[name, *counts] for name, counts in zip(names, tally.counts.tolist(), strict=True)]
    if screen.fits([CORNER, *names], matrix):
        screen.table([CORNER, *names], matrix, "Confusions")
    elif tally.n_errors:
        worst = [[f"{t} as {p}", n] for t, p, n in tally.confusions(10)]
        screen.table(["confusion", "rows"], worst, "Most frequent confusions")
    screen.table(
        ["class", "rows", "predicted", "precision", "recall", "F1"],
        [
            [q.label, q.n_rows, q.n_predicted, *(f"{v:.3f}" for v in (q.precision, q.recall, q.f1))]
            for q in tally.qualities
        ],
        "Classes",
    )
    if planes.are_there:
        screen.table(
            ["plane", "class", "rows"],
            planes.busiest(),
            f"Planes: {planes.n_used} of {planes.counts.size - 1} decided rows; the busiest",
        )
