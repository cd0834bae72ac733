"""`polyplane predict`: labels of rows, written as they come."""

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyplane.arrays import Array
from polyplane.cli.failures import CallError
from polyplane.cli.input.model_input import LoadedModel, load_model
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.output.printable import printable
from polyplane.cli.output.screen import Screen, as_json
from polyplane.data.formats.which import format_by_name
from polyplane.data.writing import text_file
from polyplane.report.metrics import labels_at

__all__ = ["run"]

BREAK = re.compile("[\r\n]")


def run(
    screen: Screen,
    *,
    model: str,
    data: Sequence[str],
    output: str | None,
    scores: bool,
    proba: bool,
    threshold: float | None,
    positive: str | None,
    planes: bool,
    jobs: int | None,
    reading: dict[str, Any],
) -> None:
    """Label rows, chunk by chunk."""
    loaded = load_model(model, data, jobs)
    if planes and not loaded.fitted.has_planes:
        name = loaded.fitted.title
        raise CallError(f"--planes: the model is {name}, which has no planes: leave it out.")
    if proba and not loaded.fitted.has_probabilities:
        name = loaded.fitted.title
        raise CallError(f"--proba: the model is {name}, which has no probabilities: use --scores.")
    place = loaded.check_choice(threshold, positive)
    if threshold is not None:
        label = loaded.classes.tolist()[place]
        screen.note(f"The positive class is {label}, predicted from probability {threshold:g} on.")
    elif positive is not None:
        raise CallError("--positive says for which class --threshold is: give both, or neither.")
    rows = open_rows(data, reading, layout=loaded.layout, base=loaded.fitted.call.get("base"))
    wanted = Wanted(scores, proba, planes, threshold, place)
    form = _Form(loaded, wanted, is_json=screen.json and output is None)
    with _destination(output) as out:
        out.write(form.header())
        n_rows = 0
        for chunk in chunks_of(rows, screen, "Predicting"):
            out.write(form.lines(loaded.rows(chunk.X)))
            n_rows += chunk.X.shape[0]
        out.flush()
    if output is not None:
        screen.say(f"Wrote {n_rows:,} predictions to {output}.")
        screen.result({"rows": n_rows, "skipped": rows.bad.n_skipped, "output": output})


@contextlib.contextmanager
def _destination(output: str | None) -> Iterator[Any]:
    """Standard output as bytes, or a file that appears when it is whole."""
    if output is None or output == "-":
        yield _Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        return
    named = format_by_name(output)
    if named not in (None, "csv"):
        raise CallError(f"--output is {output!r}, but predictions are text: name it .csv or .txt.")
    with text_file(Path(output)) as file:
        yield file


class _Terminal:
    """Standard output where a person reads it: nothing in a label moves the cursor."""

    def write(self, lines: bytes) -> None:
        """Whole lines."""
        sys.stdout.writelines(printable(line) + "\n" for line in lines.decode().split("\n")[:-1])

    def flush(self) -> None:
        """Nothing waits."""
        sys.stdout.flush()


class Wanted(NamedTuple):
    """Columns that are written for each row beside its label."""

    scores: bool = False
    proba: bool = False
    planes: bool = False
    threshold: float | None = None  # of the probability of the positive class
    positive: int = 1

    @property
    def is_label_alone(self) -> bool:
        """Return True if a line is a label."""
        return not (self.scores or self.proba or self.planes)


class _Form:
    """Format of the lines that predictions are written in."""

    def __init__(self, model: LoadedModel, wanted: Wanted, is_json: bool) -> None:
        self.model, self.wanted, self.is_json = model, wanted, is_json
        self.classes = model.classes.tolist()
        self.scored = self.classes[1:] if len(self.classes) == 2 else self.classes
        self.of_class = np.array([_one_line(label) for label in self.classes], object)

    def header(self) -> bytes:
        """Names of columns, where there are several."""
        wanted = self.wanted
        if self.is_json or wanted.is_label_alone:
            return b""
        names = ["label", *["plane"] * wanted.planes]
        names += [f"score_{label}" for label in self.scored * wanted.scores]
        names += [f"probability_{label}" for label in self.classes * wanted.proba]
        return _csv([names])

    def lines(self, X: Any) -> bytes:
        """A line for each row."""
        fitted, n_jobs, wanted = self.model.fitted, self.model.n_jobs, self.wanted
        needs_proba = wanted.proba or wanted.threshold is not None
        probabilities = fitted.predict_proba(X, n_jobs) if needs_proba else np.empty(0)
        if wanted.threshold is None:
            found = fitted.predict(X, n_jobs)
        else:
            found = labels_at(probabilities, fitted.labels, wanted.positive, wanted.threshold)
        if wanted.is_label_alone and not self.is_json:
            return b"".join(self.of_class[np.searchsorted(fitted.labels, found)].tolist())
        parts: dict[str, list[Any]] = {"label": found.tolist()}
        if wanted.planes:
            parts["plane"] = fitted.assign(X, n_jobs).tolist()
        if wanted.scores:
            scores = fitted.decision_function(X, n_jobs).reshape(len(found), -1)
            parts["scores"] = _rounded(scores.astype(np.float32))
        if wanted.proba:
            parts["probabilities"] = _rounded(probabilities)
        return self._objects(parts) if self.is_json else self._table(parts)

    def _table(self, parts: dict[str, list[Any]]) -> bytes:
        return _csv(
            [
                [cell for part in row for cell in (part if isinstance(part, list) else [part])]
                for row in zip(*parts.values(), strict=True)
            ]
        )

    def _objects(self, parts: dict[str, list[Any]]) -> bytes:
        keys = {"scores": self.scored, "probabilities": self.classes}
        lines = []
        for row in zip(*parts.values(), strict=True):
            found = dict(zip(parts, row, strict=True))
            for name in keys.keys() & found.keys():
                found[name] = dict(zip(keys[name], found[name], strict=True))
            lines.append(as_json(found) + "\n")
        return "".join(lines).encode()


def _rounded(numbers: Array) -> list[list[float]]:
    """Seven digits, which is what scores have."""
    return [[float(f"{number:.7g}") for number in line] for line in numbers.tolist()]


def _one_line(label: Any) -> bytes:
    """A label as a line; line breaks in it are written as \\n and \\r: line i is row i."""
    return _csv([[BREAK.sub(lambda found: repr(found[0])[1:-1], str(label))]])


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()
