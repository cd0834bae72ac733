"""Infinite digits: rows a second beside a plain copy, what they teach, and what they look like."""

import statistics
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.race import publish, race, table
from polyplane import AMMClassifier
from polyplane.data.sets.infinite_digits import Deformation, infinite_digits
from tests.real_data import mnist_bytes

ROUNDS, N_ROWS = 15, 60_000
SEEDS = range(3)
N_STEPS, CHUNK, N_HELD_OUT = 600_000, 50_000, 10_000
FACTORS = 0.5, 1.0, 1.5, 2.0
MACHINES = {
    "joint": {"alpha": 1e-4},
    "one-vs-rest": {"alpha": 1e-5, "multi_class": "ovr"},
}
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "infinite_digits.png"
SIDE, GAP, N_COPIES, ZOOM = 28, 2, 15, 2


def draw_sheet(source):
    """One line a digit: an original, then rows made of it."""
    X, y = source
    cell = SIDE + GAP
    sheet = np.full((10 * cell, (N_COPIES + 1) * cell), 128, np.uint8)
    for digit in range(10):
        original = X[np.flatnonzero(y == digit)[:1]]
        rows, _ = infinite_digits(N_COPIES, source=(original, [digit]), seed=digit)
        for k, image in enumerate(np.vstack([original, rows])):
            line, column = digit * cell, k * cell
            sheet[line : line + SIDE, column : column + SIDE] = 255 - image.reshape(SIDE, SIDE)
    height, width = sheet.shape
    figure = Figure(figsize=(ZOOM * width / 100, ZOOM * height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_axis_off()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Software": None})


def speed_table(source):
    """Rows a second, on one core and on two."""
    X = source[0]
    chosen = np.random.default_rng(0).permutation(len(X))[:N_ROWS]
    jobs = {
        "X[chosen], a copy of rows": lambda: X[chosen],
        "infinite_digits, one core": lambda: infinite_digits(N_ROWS, source=source, n_jobs=1),
        "infinite_digits, two cores": lambda: infinite_digits(N_ROWS, source=source, n_jobs=2),
    }
    seconds, of_processor = race(jobs, ROUNDS), {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            of_processor[name].append(time.process_time() - start)
    copy = seconds["X[chosen], a copy of rows"]
    return table(
        ["what", "rows/s", "µs a row", "beside the copy", "processor's µs a row"],
        [
            [
                name,
                f"{N_ROWS / s:,.0f}",
                f"{1e6 * s / N_ROWS:.2f}",
                f"{s / copy:.2f}",
                f"{1e6 * statistics.median(of_processor[name]) / N_ROWS:.2f}",
            ]
            for name, s in seconds.items()
        ],
    )


def originals(source, seed):
    """The source's rows again and again, each pass in a new order."""
    return stream(source, Deformation(0, 0, 0, 0, 0, 0), seed)


def stream(source, deformation, seed):
    """Chunks of deformed rows, pixels between 0 and 1."""
    for start in range(0, N_STEPS, CHUNK):
        X, y = infinite_digits(CHUNK, start, seed, source=source, deformation=deformation, n_jobs=1)
        yield X * np.float32(1 / 255), y


def error(chunks, X_test, y_test, parameters):
    """Percent wrong after one pass over the chunks."""
    model = AMMClassifier(n_jobs=1, random_state=0, **parameters)
    for X, y in chunks:
        model.partial_fit(X, y, classes=np.arange(10))
    return 100 * float(np.mean(model.predict(X_test * np.float32(1 / 255)) != y_test))


def errors_of(name, source, X_test, y_test, chunks_of):
    """A line of the table: mean error and deviation of each machine over the seeds."""
    cells = [name]
    for parameters in MACHINES.values():
        found = [error(chunks_of(source, seed), X_test, y_test, parameters) for seed in SEEDS]
        cells.append(f"{np.mean(found):.2f} ± {np.std(found):.2f}")
    return cells


def times(factor):
    """The default deformation, every part times the factor."""
    return Deformation(*(factor * strength for strength in Deformation()))


def main():
    X, y, X_test, y_test = mnist_bytes()
    draw_sheet((X, y))
    speed = speed_table((X, y))
    first = X[:-N_HELD_OUT], y[:-N_HELD_OUT]
    held_out = X[-N_HELD_OUT:], y[-N_HELD_OUT:]
    header = ["rows", *MACHINES]
    choice = [errors_of("originals", first, *held_out, originals)]
    for factor in FACTORS:
        deformed = times(factor)
        choice.append(
            errors_of(
                f"deformed, {factor} times the default",
                first,
                *held_out,
                lambda source, seed, d=deformed: stream(source, d, seed),
            )
        )
    test = [
        errors_of("originals, 10 passes", (X, y), X_test, y_test, originals),
        errors_of(
            "deformed, one pass",
            (X, y),
            X_test,
            y_test,
            lambda source, seed: stream(source, Deformation(), seed),
        ),
    ]
    publish(
        "infinite_digits",
        "Infinite digits made of MNIST",
        f"Speed: {N_ROWS:,} rows of 784 bytes, medians of {ROUNDS} rounds in turn. The copy is "
        "NumPy's, of as many rows in random order. The processor's time leaves out the time that "
        "other programs had the cores.",
        speed,
        f"AMM online, {N_STEPS:,} steps in chunks of {CHUNK:,}, one pass over deformed rows or as "
        "many steps over the originals in a new order each pass; joint with alpha 1e-4, "
        f"one-vs-rest with 1e-5; error %, mean and deviation of {len(SEEDS)} seeds. First on the "
        f"last {N_HELD_OUT:,} training rows, which chose the strength; the others are the source:",
        table(header, choice),
        "Then on the test rows, with all training rows as the source:",
        table(header, test),
    )
