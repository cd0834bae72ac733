"""Training from a file that need not fit in memory: speed beside parsing and beside memory."""

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.bench_libsvm_text import seconds_of
from benchmarks.race import publish, table
from polyplane import AMMClassifier
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.data.reading import read, stream
from polyplane.estimator.fitting.streams import fit_stream
from tests.real_data import mnist

SPEED_MEGABYTES = 1_000  # of text, on disk; its rows take 0.6 as much in memory, and in the cache
MEMORY_MEGABYTES = 5_000
ROUNDS = 5
FEATURES = {"n_features": 784}
ROWS_AT_ONCE = 10_000
PARTS = 10  # of a pass, each with its own peak of memory

CHILD = """
import json, sys, time
from polyplane import AMMClassifier
from polyplane.data.reading import stream
from polyplane.estimator.fitting.streams import fit_stream
path, source, shuffle = sys.argv[1], sys.argv[2], sys.argv[3] == "shuffled"
rows = stream(path, cache=source == "cache", n_features=784)
model = AMMClassifier(max_iter=1, shuffle=shuffle, random_state=0)
first = next(iter(stream(path, n_features=784, chunk_rows=500)))
model.partial_fit(*first)  # loads the compiled code
def mib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
def new_peak():
    open("/proc/self/clear_refs", "w").write("5")  # the high-water mark starts anew
def note(n_passes, n_rows):
    peaks.append(mib("VmHWM"))
    new_peak()
new_peak()
before, peaks, start = mib("VmRSS"), [], time.perf_counter()
fit_stream(model, rows, report=note)
print(json.dumps({"before": before, "peaks": peaks, "seconds": time.perf_counter() - start}))
"""


def write_text(path, megabytes):
    """MNIST as LIBSVM text, pixels between 0 and 1, as often as it takes."""
    X, y, _, _ = mnist()
    block = io.BytesIO()
    for start in range(0, len(y), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        libsvm_text.write(block, X[part], y[part])
    lines, size = block.getvalue(), megabytes * 1_000_000
    with open(path, "wb") as file:
        while size > 0:
            end = len(lines) if size > len(lines) else lines.index(b"\n", size) + 1
            file.write(lines[:end])
            size -= end


class TwoOrNot:
    """A stream whose digits are 2 or not."""

    is_once = False

    def __init__(self, chunks):
        self.chunks = chunks

    def __iter__(self):
        return (chunk._replace(y=chunk.y == 2) for chunk in self.chunks)

    def shuffled(self, seed):
        return (chunk._replace(y=chunk.y == 2) for chunk in self.chunks.shuffled(seed))


def pass_over(path, **options):
    """Read all chunks and drop them."""
    for _ in stream(path, **FEATURES, **options):
        pass


def speed_lines(path):
    """By classes and order: speed of parsing, training from text, from cache and in memory."""
    X, y = read(path, **FEATURES)
    pass_over(path, cache=True)
    lines, megabytes = [], path.stat().st_size / 1e6
    for classes, labels, wrapped in (
        ("ten digits", y, lambda chunks: chunks),
        ("2 or not", y == 2, TwoOrNot),
    ):
        for shuffle in (False, True):
            model = AMMClassifier(max_iter=1, shuffle=shuffle, random_state=0)

            def from_file(cache, model=model, wrapped=wrapped):
                fit_stream(model, wrapped(stream(path, cache=cache, **FEATURES)))

            jobs = {
                "parsing": lambda: pass_over(path),
                "text": lambda run=from_file: run(False),
                "cache": lambda run=from_file: run(True),
                "memory": lambda model=model, labels=labels: model.fit(X, labels),
            }
            seconds = {
                job: np.median(found, axis=1) for job, found in seconds_of(jobs, ROUNDS).items()
            }
            elapsed, of_all, of_training = (
                {job: found[clock] for job, found in seconds.items()} for clock in range(3)
            )
            lines.append(
                [
                    classes,
                    "shuffled" if shuffle else "in order",
                    *(f"{megabytes / elapsed[job]:.0f} ({of_all[job]:.2f})" for job in jobs),
                    f"{elapsed['parsing'] / elapsed['text']:.0%}",
                    f"{elapsed['memory'] / elapsed['cache']:.0%}",
                    f"{of_training['memory'] / of_training['cache']:.0%}",
                ]
            )
    return lines


def memory_lines(path):
    """MiB of a process of its own: before training, and its peak in each part of the pass."""
    lines = []
    for source in ("text", "cache"):
        for order in ("in order", "shuffled"):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(path), source, order],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            facts = json.loads(done.stdout)
            peaks = [part.max() for part in np.array_split(facts["peaks"], PARTS)]
            speed = path.stat().st_size / 1e6 / facts["seconds"]
            lines.append([source, order, *(f"{x:.0f}" for x in (speed, facts["before"], *peaks))])
    return lines


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.libsvm"
        write_text(path, SPEED_MEGABYTES)
        speed = speed_lines(path)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.libsvm"
        write_text(path, MEMORY_MEGABYTES)
        pass_over(path, cache=True)
        memory = memory_lines(path)
    publish(
        "streaming",
        "Training from a file",
        f"MNIST rows repeated to {SPEED_MEGABYTES:,} MB of LIBSVM text; one pass of AMM. Megabytes "
        "of text per elapsed second (seconds of the processor, all threads, in brackets), medians "
        f"of {ROUNDS} rounds that take turns; memory is `fit` on all rows. Where other work has a "
        "core, nothing runs beside training, and elapsed seconds are those of the processor; the "
        "last column, of the training thread alone, is what a free core for the reader gives.",
        table(
            [
                "classes", "rows", "parsing alone", "training from text", "from the cache",
                "in memory", "text / parsing", "cache / memory", "cache / memory, training thread",
            ],
            speed,
        ),
        f"The same of {MEMORY_MEGABYTES:,} MB, each in a process of its own: megabytes of text per "
        "elapsed second, then MiB of the process: with all libraries loaded, and its peak in each "
        f"{PARTS}th of the pass.",
        table(
            ["from", "rows", "MB/s", "before", *(f"{k}" for k in range(1, PARTS + 1))], memory
        ),
    )  # fmt: skip
