"""Figure 6 of the Huller paper: training time against the size of the kernel cache."""

import time

import numpy as np
from matplotlib.figure import Figure
from sklearn.svm import SVC

from benchmarks import digits
from benchmarks.pictures import PICTURES
from benchmarks.race import publish, race, table
from polyplane import HullerClassifier

SIZES = (16, 32, 64, 128, 256)
DIGITS = (1, 2, 8)  # the fewest support vectors, many, the most
ROUNDS = 1
ROWS_OF_SOLVER = 10_000  # LIBSVM on all rows needs minutes for each point


def seconds_of_huller(digit, n_passes, data):
    """Median seconds by size of the cache, taking turns."""
    X, y, _, _ = data
    jobs = {
        size: lambda size=size: HullerClassifier(
            gamma=digits.GAMMA, max_iter=n_passes, cache_mb=size, random_state=0
        ).fit(X, y == digit)
        for size in SIZES
    }
    return race(jobs, ROUNDS, time.process_time)


def seconds_of_solver(digit, data):
    """Seconds of SVC on fewer rows, whose cache is cut in the same proportion to its need."""
    X, y, _, _ = data
    part = X[:ROWS_OF_SOLVER].toarray().astype(np.float64)
    out = {}
    for size in SIZES:
        start = time.process_time()
        SVC(C=1000, gamma=digits.GAMMA, cache_size=size / 16).fit(part, y[:ROWS_OF_SOLVER] == digit)
        out[size] = time.process_time() - start
    return out


def main():
    data = digits.load()
    X, y, _, _ = data
    HullerClassifier(gamma=digits.GAMMA).fit(X[:500], y[:500] == 2)
    found = {}
    for digit in DIGITS:
        for n_passes in (1, 2):
            found[f"Huller x{n_passes}, digit {digit}"] = seconds_of_huller(digit, n_passes, data)
        name = f"LIBSVM, digit {digit}, {ROWS_OF_SOLVER:,} rows, cache / 16"
        found[name] = seconds_of_solver(digit, data)
        print(found, flush=True)
    figure = Figure(figsize=(6, 4), layout="constrained")
    panel = figure.subplots()
    for name, seconds in found.items():
        relative = [seconds[size] / seconds[SIZES[-1]] for size in SIZES]
        panel.semilogx(SIZES, relative, "o--" if "LIBSVM" in name else "o-", base=2, label=name)
    panel.set(xlabel="cache, MB", ylabel="time, relative to 256 MB")
    panel.grid(alpha=0.3)
    panel.legend(frameon=False, fontsize="small")
    figure.savefig(PICTURES / "huller_cache.svg", metadata={"Date": None})
    rows = [
        [name, *(f"{seconds[size]:.2f}" for size in SIZES),
         f"{max(seconds.values()) / min(seconds.values()):.2f}"]
        for name, seconds in found.items()
    ]  # fmt: skip
    publish(
        "huller_cache",
        "Training time by size of the cache (Figure 6)",
        "Processor seconds, one thread, after a round to warm up; 60,000 rows for the Huller. What "
        "the cache holds changes no bit of the result. LIBSVM caches lines of all rows: on "
        f"{ROWS_OF_SOLVER:,} rows it has a sixteenth of the megabytes given.",
        table(["machine", *(f"{size} MB" for size in SIZES), "most / least"], rows),
        "![Figure 6](../../docs/pictures/huller_cache.svg)",
    )
