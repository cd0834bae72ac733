"""`make demo`, `polyplane demo`: five algorithms side by side on digits, and a model used.

Nothing is downloaded: the digits are scikit-learn's own, of which every fourth is a test row.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_digits

from polyplane.arrays import Array
from polyplane.cli.output.screen import Screen
from polyplane.estimator.files.exporting import to_c, to_onnx
from polyplane.estimator.files.saving import ModelError, load, save
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.hyperplane.convex_polytope import CPMClassifier
from polyplane.hyperplane.pegasos import PegasosClassifier
from polyplane.kernel.huller import HullerClassifier
from polyplane.portfolio.polyplane_classifier import PolyplaneClassifier
from polyplane.report.pictures import ink, pictures, signs

__all__ = ["run"]

ROWS_TO_COMPILE = 200  # on which loops are compiled before times are taken
SIDE = 8  # of an image, in pixels
ALGORITHMS = {
    "linear SVM": PegasosClassifier,
    "AMM": AMMClassifier,
    "CPM": CPMClassifier,
    "Huller": HullerClassifier,
    "polyplane": PolyplaneClassifier,
}
WORDS = {
    "linear SVM": "one plane a class",
    "AMM": "planes as needed",
    "CPM": "pairs of polytopes",
    "Huller": "kernel SVM, online",
    "polyplane": "ours",
}


class Digits(NamedTuple):
    """Rows to train on and rows to test on."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Outcome(NamedTuple):
    """Result of one algorithm."""

    algorithm: str
    error: float
    size: int  # planes or support vectors
    unit: str
    train_seconds: float
    predict_microseconds: float  # a row
    model: Any


def digits() -> Digits:
    """Return scikit-learn's digits as bytes; every fourth is a test row."""
    X, y = load_digits(return_X_y=True)
    X, is_test = X.astype(np.uint8), np.arange(y.size) % 4 == 3
    return Digits(X[~is_test], y[~is_test], X[is_test], y[is_test])


def compare(rows: Digits) -> Iterator[Outcome]:
    """Train and test the algorithms one after the other, with their defaults, on all cores."""
    for name, estimator in ALGORITHMS.items():
        model: Any = estimator(random_state=0, n_jobs=-1)
        model.fit(rows.X[:ROWS_TO_COMPILE], rows.y[:ROWS_TO_COMPILE])
        model.predict(rows.X_test[:ROWS_TO_COMPILE])
        start = time.perf_counter()
        model.fit(rows.X, rows.y)
        trained = time.perf_counter()
        error = float(np.mean(model.predict(rows.X_test) != rows.y_test))
        seconds = time.perf_counter() - trained
        has_planes = hasattr(model, "n_planes_")
        size = model.n_planes_ if has_planes else model.support_.size
        unit = "planes" if has_planes else "vectors"
        each = 1e6 * seconds / len(rows.y_test)
        yield Outcome(name, error, int(size), unit, trained - start, each, model)


# ---- the show ----------------------------------------------------------------------------


def main() -> None:
    """Say what happens, do it, show it."""
    console = Console(highlight=False)
    rows = digits()
    _heading(console, f"Five algorithms on {rows.y.size:,} digits, tested on {rows.y_test.size}")
    console.print("The digits are scikit-learn's own, of 8 x 8 pixels; nothing is downloaded.")
    pictures(
        console, [ink(_image(row)) for row in rows.X[:5]], [f"a {label}" for label in rows.y[:5]]
    )
    outcomes = _race(console, rows)
    linear, best = outcomes[0], min(outcomes, key=lambda outcome: outcome.error)
    console.print(
        f"The problem is not linear: {best.algorithm} errs {linear.error / best.error:.1f} times "
        "less than a linear SVM. Times are of all cores, without what is compiled once; "
        "polyplane's is mostly the search for its settings."
    )
    by_name = {outcome.algorithm: outcome for outcome in outcomes}
    _show_planes(console, by_name["AMM"].model)
    _use(console, by_name["polyplane"].model, rows)
    _heading(console, "Your turn")
    for line in (
        "polyplane explore DATA            # is your problem nonlinear at all?",
        "polyplane train DATA -m my.model  # LIBSVM text, CSV, Parquet, Arrow, npz, IDX",
        "polyplane predict my.model DATA",
    ):
        console.print(Text(f"  {line}"), soft_wrap=True)


def _heading(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, style="bold"))


def _image(row: Array) -> Array:
    return np.asarray(row, np.float64).reshape(SIDE, SIDE)


def _race(console: Console, rows: Digits) -> list[Outcome]:
    """Show a table that grows as algorithms finish."""
    outcomes: list[Outcome] = []
    waiting = Spinner("dots", "training; the first run compiles loops for this machine, once")
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        live.update(waiting)
        for outcome in compare(rows):
            outcomes.append(outcome)
            live.update(Group(_table(outcomes), waiting))
        live.update("")
    console.print(_table(outcomes))
    return outcomes


def _table(outcomes: list[Outcome]) -> Table:
    table = Table()
    table.add_column("algorithm", no_wrap=True)
    table.add_column("what it is")
    for heading in ("error", "size", "training", "a row"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        table.add_row(
            outcome.algorithm,
            WORDS[outcome.algorithm],
            f"{outcome.error:.1%}",
            f"{outcome.size:,} {outcome.unit}",
            f"{outcome.train_seconds:.2f} s",
            f"{outcome.predict_microseconds:.1f} µs",
        )
    return table


def _show_planes(console: Console, model: Any) -> None:
    """The planes of the class that has most of them, as pictures."""
    label = model.classes_[np.argmax(model.planes_per_class_)]
    mine = np.flatnonzero((model.plane_classes_ == label) & (model.plane_signs_ > 0))[:5]
    _heading(console, f"What AMM has learned of {label}: a class is the best of its planes")
    images = [signs(_image(plane)) for plane in model.planes_[mine]]
    pictures(console, images, [f"plane {k}" for k in mine])
    console.print("Warm pixels speak for the digit, cold ones against it.")


def _use(console: Console, model: Any, rows: Digits) -> None:
    """Save, load, export, predict."""
    _heading(console, "A model in files")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "digits.model")
        save(model, path)
        loaded = load(path)
        is_same = np.array_equal(
            model.decision_function(rows.X_test), loaded.decision_function(rows.X_test)
        )
        console.print(
            f"saved    {_kilobytes(path)}; loaded again it predicts "
            f"{'the same bits' if is_same else 'SOMETHING ELSE, which is a bug'}"
        )
        for name, export in (("onnx", to_onnx), ("h", to_c)):
            exported = path.with_suffix(f".{name}")
            try:
                export(loaded, exported)
                console.print(f"{exported.name.ljust(12)} {_kilobytes(exported)}")
            except ModelError as error:
                console.print(f"{exported.name.ljust(12)} not written: {error}")
    row = int(np.argmax(loaded.predict(rows.X_test[:200]) == rows.y_test[:200]))
    chances = loaded.predict_proba(rows.X_test[row : row + 1])[0]
    best = np.argsort(-chances)[:3]
    words = ", ".join(f"{loaded.classes_[k]} {chances[k]:.1%}" for k in best)
    pictures(console, [ink(_image(rows.X_test[row]))], [""])
    console.print(f"The model's probabilities: {words}.")


def _kilobytes(path: Path) -> str:
    return f"{path.stat().st_size / 1000:,.0f} kB"


def run(screen: Screen) -> None:
    """Show it; with --json only the numbers."""
    if not screen.json:
        main()
        return
    outcomes = [outcome._asdict() for outcome in compare(digits())]
    for outcome in outcomes:
        del outcome["model"]
    screen.result({"outcomes": outcomes})
