"""`polyplane evaluate`: a model on labelled rows, chunk by chunk."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyplane.cli.input.model_input import LoadedModel, load_model
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.output.evaluation_report import plain_evaluation, show_evaluation
from polyplane.cli.output.screen import Screen
from polyplane.data.chunks import DataError
from polyplane.report.metrics import Confusions, as_labels_of, other_spellings

__all__ = ["run", "tell_of_labels"]

N_BUSIEST_PLANES = 5  # planes
MOST_NAMED = 5  # labels in a sentence


def run(
    screen: Screen,
    *,
    model: str,
    data: Sequence[str],
    threshold: float | None,
    positive: str | None,
    jobs: int | None,
    reading: dict[str, Any],
) -> None:
    """Count errors, confusions and planes, and rank scores."""
    loaded = load_model(model, data, jobs)
    found = loaded.evaluation(threshold, positive)
    rows = open_rows(data, reading, layout=loaded.layout, base=loaded.fitted.call.get("base"))
    busy = _Planes(loaded)
    spelt: dict[str, str] = {}
    for chunk in chunks_of(rows, screen, "Evaluating"):
        if not chunk.y.size:
            raise DataError("has no labels, which an evaluation needs", data[0])
        spelt |= other_spellings(chunk.y, loaded.classes)
        X = loaded.rows(chunk.X)
        found.add(as_labels_of(chunk.y, loaded.classes), *loaded.predict_with_values(X))
        busy.add(X)
    tell_of_labels(screen, found.tally, spelt, data[0])
    show_evaluation(screen, found)
    _show_planes(screen, busy)
    screen.result(plain_evaluation(found) | _plain(busy, rows.bad.n_skipped))


def tell_of_labels(
    screen: Screen, tally: Confusions, spelt: Mapping[str, str], source: str
) -> None:
    """Warn of labels that were matched to classes by their spelling, and of unknown labels."""
    if spelt:
        screen.warn(
            f"{source}: the labels {some_labels(list(spelt))} count as the classes "
            f"{some_labels(list(spelt.values()))}, from which they differ by a dot or blanks."
        )
    _tell_of_unknown_labels(screen, tally, source)


def _tell_of_unknown_labels(screen: Screen, tally: Confusions, source: str) -> None:
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
    """Number of rows that each plane has decided."""

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
        order = np.argsort(-self.counts[:-1], kind="stable")[:N_BUSIEST_PLANES]
        classes = self.model.fitted.plane_labels.tolist()
        return [(int(k), classes[k], int(self.counts[k])) for k in order if self.counts[k]]


def _plain(planes: _Planes, n_skipped: int) -> dict[str, Any]:
    return {
        "planes": planes.counts.size - 1 if planes.are_there else None,
        "planes_used": planes.n_used if planes.are_there else None,
        "skipped": n_skipped,
    }


def _show_planes(screen: Screen, planes: _Planes) -> None:
    if planes.are_there:
        screen.table(
            ["plane", "class", "rows"],
            planes.busiest(),
            f"Planes: {planes.n_used} of {planes.counts.size - 1} decided rows; the busiest",
        )
