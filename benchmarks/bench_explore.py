"""Explorations of a minute: the verdict, the time it took, and when there was a first page.

One is of a table of 5 GB in a temporary file, of which the bytes that were read are counted.
"""

import contextlib
import io
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import polyplane as pp
from benchmarks.race import publish, table
from tests.real_data import mnist_bytes, raw_table

BUDGET = 60.0
LARGE, LARGE_ROWS = 5_000_000_000, 250_000  # bytes of the large table, and rows written at once
LEAKS = ["reservation_status", "reservation_status_date"]


def sets():
    """Name, and what is given to `explore`."""
    X, y, _, _ = mnist_bytes()
    hotels = raw_table("hotel_bookings/hotel_bookings.csv.gz")
    return [
        ("MNIST, 60,000 rows", (X, y), {}),
        ("hotel_bookings, raw", (hotels,), {"label": "is_canceled"}),
        ("the same without its leaks", (hotels,), {"label": "is_canceled", "drop": LEAKS}),
    ]


class FirstPage:
    """Notes when a file appears."""

    def __init__(self, path):
        self.path, self.seconds, self.is_over = path, float("nan"), threading.Event()
        self.start = time.perf_counter()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self.is_over.wait(0.05):
            if self.path.exists():
                self.seconds = time.perf_counter() - self.start
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.is_over.set()
        self.thread.join()


def some_rows(n_rows, generator):
    """Fields of a board that are taken by turns, among numbers and words that say nothing."""
    numbers = generator.uniform(-1, 1, (n_rows, 8)).round(4)
    fields = np.floor(2 * (numbers[:, :2] + 1)).astype(int).sum(axis=1) % 2
    words = np.array(["red", "green", "blue", "a long word that stands for nothing"])
    columns = {f"x{k}": numbers[:, k] for k in range(8)}
    columns |= {"word": words[generator.integers(0, words.size, n_rows)], "label": fields}
    return pa.table(columns)


@contextlib.contextmanager
def large_table():
    """A file of `LARGE` bytes, as long as it is needed."""
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        with path.open("wb") as file:
            while file.tell() < LARGE:
                options = pyarrow.csv.WriteOptions(include_header=file.tell() == 0)
                pyarrow.csv.write_csv(some_rows(LARGE_ROWS, generator), file, options)
        yield path


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    n_read = 0

    def readinto(self, room):
        n = super().readinto(room)
        self.n_read += n or 0
        return n


def main():
    with large_table() as path, Counted(path) as file:
        rows = [*explored(sets()), *explored([("5 GB of CSV", (file,), {"label": "label"})])]
        size, n_read = os.path.getsize(path), file.n_read
    publish(
        "explore",
        "Exploring for a minute",
        f"`pp.explore` with a budget of {BUDGET:.0f} seconds on all cores: its verdict, seconds "
        "it took, seconds until there was a first page, rows of the largest sample, the lowest "
        "error in percent, megabytes of the page, and what was found suspicious.",
        table(
            ["data", "verdict", "seconds", "first page", "rows", "best", "MB", "suspicious"], rows
        ),
        f"Of the {size / 1e9:.1f} GB of the last table, whose labels are the fields of a "
        f"checkerboard, {n_read / 1e9:.2f} GB were read.",
    )


def explored(given_sets):
    """A line of the table for each set."""
    rows = []
    for name, given, reading in given_sets:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.html"
            with FirstPage(path) as first:
                found = pp.explore(*given, budget=BUDGET, report=path, **reading)
                seconds = time.perf_counter() - first.start
            size = os.path.getsize(path)
        best = min(found.table, key=lambda line: line["error"])
        rows.append(
            [
                name, found.verdict, f"{seconds:.0f}", f"{first.seconds:.0f}", f"{found.n_rows:,}",
                f"{best['machine']} {100 * best['error']:.2f}", f"{size / 1e6:.2f}",
                ", ".join(sorted({one.kind for one in found.suspicions})),
            ]
        )  # fmt: skip
    return rows
