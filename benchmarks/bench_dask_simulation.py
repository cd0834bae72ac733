"""How rounds on a Dask cluster scale: simulated from constants that are measured here.

A pass over N rows by k workers takes N / (k r) + m o(k) seconds, where a worker learns r rows a
second, there are m mixtures in the pass, and each of them costs

    o(k) = o2 + s (2 k - 4) + d(k) (b / B + l)

o2 being a round of two workers with 20 rows each that goes on from a whole model, s the scheduler's
time for one more task (two a worker), d(k) = 2 ceil(log2 k) - 2 further hops of a model in the
trees that mix and broadcast, b the bytes of a model on its way, B bytes a second and l seconds from
worker to worker. r, o2, s and b are measured; B and l are those of a network that is stated. The
formula is held beside real runs of 2, 4 and 8 processes, which share the cores of this machine:
there r is that of a core divided by the processes on it. Errors are not simulated: a learner's
depth, rows that it visits, is shown.
"""

import math
import os
import time
from typing import NamedTuple

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks.bench_dask import machine
from benchmarks.race import publish, table
from polyplane.backends import dask_cluster
from polyplane.estimator.files.saving import packed
from tests.real_data import mnist_bytes

PROCESSES = 2, 4, 8
ROWS_OF_WORKER = 60_000
N_PASSES, N_TASKS, N_TINY = 3, 2000, 20
BYTES_A_SECOND, LATENCY = 1.25e9, 1e-3  # 10 Gbit/s, and a message of Dask's
ROWS, WORKERS = (10**9, 10**10, 10**11), (10, 30, 100, 300, 1000)
MIXES = 4
HALF = 0.5  # efficiency below which more workers are no use


class Constants(NamedTuple):
    """What is measured."""

    rows_a_second: float  # of a worker with a core of its own
    round_of_two: float  # seconds
    task: float  # seconds of the scheduler
    model_bytes: int


def rows_of(place):
    """MNIST's training rows in another order: bytes, 784 columns."""
    X, y = mnist_bytes()[:2]
    order = np.random.default_rng(place).permutation(len(y))[:ROWS_OF_WORKER]
    return X[order], y[order]


def seconds_of_a_round(client, model):
    """Of two workers with next to nothing to learn, and the planes of a whole model to mix."""
    X, y = rows_of(0)
    parts = [delayed((X[:20], y[:20])), delayed((X[20:40], y[20:40]))]
    times = []
    dask_cluster.fit(
        model, parts, client=client, rounds=model.n_iter_ + N_TINY, resume=True, mixes=1,
        callback=lambda _: times.append(time.perf_counter()),
    )  # fmt: skip
    return float(np.median(np.diff(times)))


def nothing(k):
    return k


def seconds_of_a_task(client):
    begin = time.perf_counter()
    client.gather(client.map(nothing, range(N_TASKS), pure=False))
    return (time.perf_counter() - begin) / N_TASKS


def seconds_of_a_pass(client, n_workers):
    """Of a pass that is not the first, and the model after it."""
    parts = client.persist([delayed(rows_of)(k) for k in range(n_workers)])
    model, times = machine(), []
    dask_cluster.fit(
        model, parts, client=client, rounds=N_PASSES, learners=n_workers, mixes=MIXES,
        callback=lambda _: times.append(time.perf_counter()),
    )  # fmt: skip
    return float(np.median(np.diff(times))), model


def overhead(constants, n_workers, bytes_a_second, latency):
    """Seconds of a mixture, besides learning."""
    hops = 2 * math.ceil(math.log2(n_workers)) - 2
    travel = hops * (constants.model_bytes / bytes_a_second + latency)
    return constants.round_of_two + constants.task * (2 * n_workers - 4) + travel


def measured():
    """Constants, and real passes beside simulated ones."""
    n_cores, lines, constants = os.cpu_count() or 1, [], None
    for n_workers in PROCESSES:
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            if constants is None:
                alone = seconds_of_a_pass(client, 1)[0]
            seconds, model = seconds_of_a_pass(client, n_workers)
            if constants is None:
                n_bytes, task = packed(model).count_bytes(), seconds_of_a_task(client)
                tiny = seconds_of_a_round(client, model)
                constants = Constants(ROWS_OF_WORKER / alone, tiny, task, n_bytes)
            rate = constants.rows_a_second * min(1, n_cores / n_workers)
            mixing = overhead(constants, n_workers, math.inf, 0.0)
            simulated = ROWS_OF_WORKER / rate + MIXES * mixing
            lines.append(
                [n_workers, f"{seconds:.2f}", f"{simulated:.2f}", f"{simulated / seconds:.2f}"]
            )
    return constants, lines


def simulated(constants):
    for n_rows in ROWS:
        for n_workers in WORKERS:
            learning = n_rows / n_workers / constants.rows_a_second
            mixing = MIXES * overhead(constants, n_workers, BYTES_A_SECOND, LATENCY)
            total = learning + mixing
            yield [
                f"10^{round(math.log10(n_rows))}", f"{n_workers:,}", f"{total / 60:,.1f}",
                f"{learning / total:.0%}", f"{n_rows / n_workers:,.0f}",
                f"{2 * MIXES * n_workers * constants.model_bytes / 1e9:,.2f}",
                f"{n_workers * total / 3600:,.1f}",
            ]  # fmt: skip


def most_workers(constants, n_rows):
    """Workers from which on more than half of the time is mixing."""
    for n_workers in range(2, 10**6):
        learning = n_rows / n_workers / constants.rows_a_second
        mixing = MIXES * overhead(constants, n_workers, BYTES_A_SECOND, LATENCY)
        if learning < HALF * (learning + mixing):
            return n_workers
    return 10**6


def main():
    constants, lines = measured()
    limits = ", ".join(f"{most_workers(constants, n):,} for {n:.0e} rows" for n in ROWS)
    publish(
        "dask_simulation",
        "How a Dask cluster would scale",
        f"Measured here: {constants.rows_a_second:,.0f} rows a second and worker (AMM, 784 bytes a "
        f"row), {1e3 * constants.round_of_two:.0f} ms a round of two workers, "
        f"{1e3 * constants.task:.2f} ms a task of the scheduler, models of "
        f"{constants.model_bytes / 1e6:.2f} MB on their way; a network of 10 Gbit/s. Real passes "
        f"of {ROWS_OF_WORKER:,} rows a process, {MIXES} mixtures each, on {os.cpu_count()} cores, "
        "beside the formula:",
        table(["processes", "seconds of a pass", "simulated", "ratio"], lines),
        f"A pass with {MIXES} mixtures:",
        table(
            ["rows", "workers", "minutes", "learning", "depth of a learner", "GB of traffic",
             "worker hours"],
            list(simulated(constants)),
        ),
        f"More than half of the time is mixing from {limits} workers on: the scheduler's time for "
        "the tasks of a round grows with the workers, and a round's share of the rows falls.",
    )  # fmt: skip
