"""`polyplane predict`: labels of rows, written as they come."""

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyplane.cli.failures import CallError
from polyplane.cli.input.model_input import LoadedModel, load_model
from polyplane.cli.input.row_input import chunks_of, open_rows
from polyplane.cli.printable import printable
from polyplane.cli.screen import Screen, as_json
from polyplane.data.formats import format_by_name
from polyplane.data.writing import text_file

__all__ = ["run"]

BREAK = re.compile("[\r\n]")


def run(
    screen: Screen,
    *,
    model: str,
    data: Sequence[str],
    output: str | None,
    scores: bool,
    planes: bool,
    jobs: int | None,
    reading: dict[str, Any],
) -> None:
    """Label rows, chunk by chunk."""
    loaded = load_model(model, data, jobs)
    if planes and not loaded.fitted.has_planes:
        name = loaded.fitted.title
        raise CallError(f"--planes: the model is {name}, which has no planes: leave it out.")
    rows = open_rows(data, reading, layout=loaded.layout, base=loaded.fitted.call.get("base"))
    form = _Form(loaded, scores, planes, is_json=screen.json and output is None)
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


class _Form:
    """How predictions are written."""

    def __init__(self, model: LoadedModel, scores: bool, planes: bool, is_json: bool) -> None:
        self.model, self.scores, self.planes, self.is_json = model, scores, planes, is_json
        classes = model.classes.tolist()
        self.scored = classes[1:] if len(classes) == 2 else classes
        self.of_class = np.array([_one_line(label) for label in classes], object)

    def header(self) -> bytes:
        """Names of columns, where there are several."""
        if self.is_json or not (self.scores or self.planes):
            return b""
        names = ["label", *["plane"] * self.planes]
        return _csv([[*names, *(f"score_{label}" for label in self.scored * self.scores)]])

    def lines(self, X: Any) -> bytes:
        """A line for each row."""
        fitted, n_jobs = self.model.fitted, self.model.n_jobs
        found = fitted.predict(X, n_jobs)
        if not (self.is_json or self.scores or self.planes):
            return b"".join(self.of_class[np.searchsorted(fitted.labels, found)].tolist())
        labels = found.tolist()
        planes = fitted.assign(X, n_jobs).tolist() if self.planes else []
        scores: list[Any] = []
        if self.scores:
            found = fitted.decision_function(X, n_jobs)
            numbers = found.reshape(len(labels), -1).astype(np.float32).tolist()
            scores = [[float(f"{number:.7g}") for number in line] for line in numbers]
        if self.is_json:
            return self._objects(labels, planes, scores)
        columns = [[label] for label in labels]
        for column, plane in zip(columns, planes, strict=False):
            column.append(plane)
        for column, numbers in zip(columns, scores, strict=False):
            column += numbers
        return _csv(columns)

    def _objects(self, labels: list[Any], planes: list[Any], scores: list[Any]) -> bytes:
        lines = []
        for place, label in enumerate(labels):
            found: dict[str, Any] = {"label": label}
            if planes:
                found["plane"] = planes[place]
            if scores:
                found["scores"] = dict(zip(self.scored, scores[place], strict=True))
            lines.append(as_json(found) + "\n")
        return "".join(lines).encode()


def _one_line(label: Any) -> bytes:
    """A label as a line; line breaks in it are written as \\n and \\r: line i is row i."""
    return _csv([[BREAK.sub(lambda found: repr(found[0])[1:-1], str(label))]])


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()
