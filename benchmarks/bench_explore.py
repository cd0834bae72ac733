"""Explorations of a minute: the verdict, the time it took, and when there was a first page."""

import os
import tempfile
import threading
import time
from pathlib import Path

import polyplane as pp
from benchmarks.race import publish, table
from tests.real_data import mnist_bytes, raw_table

BUDGET = 60.0
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


def main():
    rows = []
    for name, given, reading in sets():
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
    publish(
        "explore",
        "Exploring for a minute",
        f"`pp.explore` with a budget of {BUDGET:.0f} seconds on all cores: its verdict, seconds "
        "it took, seconds until there was a first page, rows of the largest sample, the lowest "
        "error in percent, megabytes of the page, and what was found suspicious.",
        table(
            ["data", "verdict", "seconds", "first page", "rows", "best", "MB", "suspicious"], rows
        ),
    )
