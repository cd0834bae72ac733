"""A Dask cluster of two workers beside one process: rows a second, traffic, overhead.

Digits come from `infinite_digits`, each worker making its own as it learns them; POLYPLANE_ROWS
sets how many. Neither keeps them. The two take turns, TURNS times each, and the fastest counts.
"""

import os
import tempfile
import time
from operator import itemgetter
from pathlib import Path

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks.infinite_digits import infinite_digits
from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import AMMClassifier, save
from polyplane.backends import dask_cluster
from polyplane.backends.dask_cluster import bytes_sent
from polyplane.estimator.files.saving import packed
from tests.real_data import mnist_bytes

ROWS = int(os.environ.get("POLYPLANE_ROWS", 8_100_000))
CHUNK = 60_000
EVERY = 4  # chunks of a learner between mixtures
N_WORKERS = 2
ALPHA = 1e-6 * 255.0**2  # for pixels in [0, 1]; rows are bytes
TURNS = 3
TINY_ROUNDS = 50  # of two rows, whose time is overhead


def digits(start, n):
    """Rows that a worker makes by itself, from MNIST's training rows."""
    return infinite_digits(n, start, source=mnist_bytes()[:2], n_jobs=1)


def machine():
    return AMMClassifier(alpha=ALPHA, random_state=0, shuffle=False)


def in_one_process():
    """The model after one pass, and its seconds, making rows included."""
    model, begin = machine(), time.perf_counter()
    for start in range(0, ROWS, CHUNK):
        X, y = digits(start, min(CHUNK, ROWS - start))
        model.partial_fit(X, y, classes=np.arange(10))
    return model, time.perf_counter() - begin


def on_the_cluster(client):
    """The same, the bytes that workers handed out and the number of rounds."""
    starts = range(0, ROWS, CHUNK)
    parts = [delayed(digits)(start, min(CHUNK, ROWS - start)) for start in starts]
    model, before, rounds, begin = machine(), bytes_sent(client), [], time.perf_counter()
    dask_cluster.partial_fit(
        model, parts, classes=np.arange(10), client=client, learners=N_WORKERS, every=EVERY,
        callback=rounds.append,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    return model, seconds, bytes_sent(client) - before, len(rounds)


def bytes_of_file(model):
    """Of the model file."""
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        return (Path(folder) / "model").stat().st_size


def seconds_of_a_tiny_round(client):
    """What a round costs besides learning."""
    X, y = digits(0, 20)
    parts = [delayed((X, y)), delayed((X, y))]
    dask_cluster.fit(machine(), parts, client=client, rounds=2)
    begins = []
    dask_cluster.fit(
        machine(), parts, client=client, rounds=TINY_ROUNDS,
        callback=lambda _: begins.append(time.perf_counter()), mixes=1,
    )  # fmt: skip
    return float(np.median(np.diff(begins)))


def speed_table(client):
    _, _, X_test, y_test = mnist_bytes()
    warm = [delayed(digits)(k, 500) for k in (0, 500)]  # code and sources, before all is timed
    dask_cluster.partial_fit(machine(), warm, classes=np.arange(10), client=client, every=1)
    machine().partial_fit(*digits(0, 500))
    both = [(in_one_process(), on_the_cluster(client)) for _ in range(TURNS)]
    alone, seconds = min((one for one, _ in both), key=itemgetter(1))
    together, seconds_together, n_bytes, n_rounds = min((two for _, two in both), key=itemgetter(1))
    n_model = bytes_of_file(together)
    shared = packed(together).count_bytes()  # to one worker, which hands it on, in each round
    rows = [
        ["one process", f"{ROWS / seconds:,.0f}", f"{error(alone, X_test, y_test):.2f}",
         alone.n_planes_, "", "", ""],
        [f"{N_WORKERS} workers, {n_rounds} rounds", f"{ROWS / seconds_together:,.0f}",
         f"{error(together, X_test, y_test):.2f}", together.n_planes_,
         f"{(n_bytes / n_rounds + shared) / 1e6:.2f}", f"{n_model / 1e6:.2f}",
         f"{1e3 * seconds_of_a_tiny_round(client):.0f}"],
        ["ratio", f"{seconds / seconds_together:.2f}", "", "", "", "", ""],
    ]  # fmt: skip
    return table(
        ["what", "rows/s", "test error %", "planes", "MB a round", "MB of the model",
         "overhead of a round, ms"],
        rows,
    )  # fmt: skip


def main():
    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        digits_table = speed_table(client)
    publish(
        "dask",
        "A Dask cluster of two workers on one machine",
        f"{ROWS:,} digits, made as they are learned, AMM, one pass, errors on MNIST's test rows; "
        f"making rows is part of the time; the fastest of {TURNS} turns.",
        digits_table,
    )
