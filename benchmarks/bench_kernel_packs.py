"""What blocks of kernel values are worth: an epoch in chunks beside the same epoch row by row."""

import time

from benchmarks import digits
from benchmarks.race import publish, race, table
from polyplane import (
    HullerClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaSVMClassifier,
)

ROWS = 10_000
ROUNDS = 3
OPTIONS = {"gamma": digits.GAMMA, "max_iter": 1, "random_state": 0}
MACHINES = {
    "Huller": lambda: HullerClassifier(**OPTIONS),
    "LaSVM": lambda: LaSVMClassifier(C=1000.0, finishes=False, **OPTIONS),
    "kernel Pegasos": lambda: KernelPegasosClassifier(alpha=1e-5, **OPTIONS),
    "kernel perceptron": lambda: KernelPerceptronClassifier(**OPTIONS),
}


def in_chunks_of(machine, size):
    """The machine with blocks of so many rows."""
    machine._chunk_size = lambda: size
    return machine


def main():
    X, y, _, _ = digits.load()
    X, y = X[:ROWS], y[:ROWS] == 2
    rows = []
    for name, make in MACHINES.items():
        jobs = {size: lambda size=size, make=make: in_chunks_of(make(), size).fit(X, y)
                for size in (1, 16, 64, 256)}  # fmt: skip
        seconds = race(jobs, ROUNDS, time.process_time)
        rows.append([name, *(f"{s:.2f}" for s in seconds.values()),
                     f"{seconds[1] / seconds[256]:.1f}"])  # fmt: skip
        print(rows[-1], flush=True)
    publish(
        "kernel_packs",
        "Blocks of kernel values",
        f"Processor seconds of one pass over {ROWS:,} rows of MNIST, digit 2 against the rest, by "
        "the rows of a block; the result is the same to the last bit. Medians of three.",
        table(["machine", "1 row", "16 rows", "64 rows", "256 rows", "1 / 256"], rows),
    )
