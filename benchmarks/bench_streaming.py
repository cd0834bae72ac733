"""Training from a file that need not fit in memory: speed beside parsing and beside memory."""

import io
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.race import publish, table, times
from polyplane import AMMClassifier
from polyplane.data import libsvm_text
from polyplane.data.reading import read, stream
from polyplane.estimator.streams import fit_stream
from tests.real_data import mnist

MEGABYTES = 5_000  # of text, on disk; its rows take 0.6 as much in memory, and in the cache
ROUNDS = 5
FEATURES = {"n_features": 784}
ROWS_AT_ONCE = 10_000

CHILD = """
import json, sys
from polyplane import AMMClassifier
from polyplane.data.reading import stream
from polyplane.estimator.streams import fit_stream
path, source, shuffle = sys.argv[1], sys.argv[2], sys.argv[3] == "shuffled"
rows = stream(path, cache=source == "cache", n_features=784)
model = AMMClassifier(max_iter=1, shuffle=shuffle, random_state=0)
first = next(iter(stream(path, n_features=784, chunk_rows=500)))
model.partial_fit(*first)  # loads the compiled code
def mib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
open("/proc/self/clear_refs", "w").write("5")  # the high-water mark starts anew
before, peaks = mib("VmRSS"), []
fit_stream(model, rows, report=lambda n_passes, n_rows: peaks.append(mib("VmHWM")))
print(json.dumps({
    "before": before,
    "early": peaks[len(peaks) // 5],
    "late": max(peaks[-1], mib("VmHWM")),
    "model": model.planes_.nbytes / 2**20,
}))
"""


def write_text(path):
    """MNIST as LIBSVM text, pixels between 0 and 1, as often as it takes."""
    X, y, _, _ = mnist()
    block = io.BytesIO()
    for start in range(0, len(y), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        libsvm_text.write(block, X[part], y[part])
    lines, size = block.getvalue(), MEGABYTES * 1_000_000
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
    """By classes and order: seconds of parsing, training from text, from cache and in memory."""
    X, y = read(path, **FEATURES)
    pass_over(path, cache=True)
    lines = []
    for classes, labels, wrapped in (
        ("ten digits", y, lambda chunks: chunks),
        ("2 or not", y == 2, TwoOrNot),
    ):
        for shuffle in (False, True):
            model = AMMClassifier(max_iter=1, shuffle=shuffle, random_state=0)

            def from_file(cache, model=model, wrapped=wrapped):
                fit_stream(model, wrapped(stream(path, cache=cache, **FEATURES)))

            seconds = times(
                {
                    "parsing": lambda: pass_over(path),
                    "text": lambda run=from_file: run(False),
                    "cache": lambda run=from_file: run(True),
                    "memory": lambda model=model, labels=labels: model.fit(X, labels),
                },
                ROUNDS,
            )
            median = {job: statistics.median(found) for job, found in seconds.items()}
            lines.append(
                [
                    classes,
                    "shuffled" if shuffle else "in order",
                    *(f"{path.stat().st_size / 1e6 / median[job]:.0f}" for job in median),
                    f"{median['parsing'] / median['text']:.0%}",
                    f"{median['memory'] / median['cache']:.0%}",
                ]
            )
    return lines


def memory_lines(path):
    """MiB of a process of its own: before training, and its peak early and late."""
    lines = []
    for source in ("text", "cache"):
        for order in ("in order", "shuffled"):
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(path), source, order],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            facts = json.loads(done.stdout)
            grown = facts["late"] - facts["before"]
            lines.append([source, order, *(f"{mib:.0f}" for mib in (*facts.values(), grown))])
    return lines


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.libsvm"
        write_text(path)
        size = path.stat().st_size / 1e6
        speed, memory = speed_lines(path), memory_lines(path)
    publish(
        "streaming",
        "Training from a file",
        f"MNIST rows repeated to {size:,.0f} MB of LIBSVM text; one pass of AMM. Megabytes of text "
        f"a second, medians of {ROUNDS} rounds that take turns; memory is `fit` on all rows.",
        table(
            [
                "classes", "rows", "parsing alone", "training from text", "from the cache",
                "in memory", "text / parsing", "cache / memory",
            ],
            speed,
        ),
        "Memory of the process, MiB: with all libraries loaded, at its peak after a fifth of the "
        "pass and at the end, and how much training has added.",
        table(["from", "rows", "before", "early peak", "late peak", "model", "added"], memory),
    )  # fmt: skip
