"""How often learners of a cluster should be mixed: errors on a part of training rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks import sets
from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import AMMClassifier, PolyplaneClassifier
from polyplane.backends import dask_cluster

N_PARTITIONS = 8
HELD_OUT = 4  # one row in so many
SHORT, LONG = 5, 20  # passes of AMM


class Case(NamedTuple):
    """A set and what is trained on it."""

    name: str
    machine: Callable

    def split(self, seed):
        """Rows to train on, and others."""
        X, y = sets.load(self.name)[:2]
        order = np.random.default_rng(seed).permutation(y.size)
        held_out, rows = np.split(order, [y.size // HELD_OUT])
        return (X[rows], y[rows]), (X[held_out], y[held_out])


def amm(n_passes):
    return lambda seed: AMMClassifier(random_state=seed, max_iter=n_passes)


def polyplane(seed):
    return PolyplaneClassifier(random_state=seed)


SHORT_CASES = [Case("ijcnn1", amm(SHORT)), Case("a9a", amm(SHORT))]
SHORT_WAYS = [(learners, mixes) for learners in (2, 8) for mixes in (1, 4, 10)]
LONG_CASES = [
    Case("ijcnn1", amm(LONG)),
    Case("a9a", amm(LONG)),
    *(Case(name, polyplane) for name in ("ijcnn1", "a9a", "MNIST, 2 or not")),
]
LONG_WAYS = [(2, 4), (2, 1), (2, None), (2, 1 / 8), (8, 1), (8, None), (8, 1 / 8)]


def errors_of(case, ways, seed, client):
    """Of one process, and of all numbers of learners and mixes."""
    (X, y), held_out = case.split(seed)
    parts, workers = [], sorted(client.nthreads())
    for k, cut in enumerate(np.array_split(np.arange(y.size), N_PARTITIONS)):
        near = workers[k * len(workers) // N_PARTITIONS]  # to learners that are neighbours
        parts += client.persist([delayed((X[cut], y[cut]))], workers=[near])
    models = [case.machine(seed).fit(X, y)]
    for learners, mixes in ways:
        model = case.machine(seed)
        dask_cluster.fit(model, parts, client=client, learners=learners, mixes=mixes)
        models.append(model)
    return [error(model, *held_out) for model in models]


def table_of(cases, ways, seeds, client):
    heads = [f"{learners} learners, {_said(mixes)}" for learners, mixes in ways]
    rows = []
    for case in cases:
        found = np.mean([errors_of(case, ways, seed, client) for seed in seeds], axis=0)
        machine = case.machine(0)
        kind = type(machine).__name__.removesuffix("Classifier")
        rows.append([case.name, kind, machine.max_iter, *(f"{mean:.2f}" for mean in found)])
    return table(["data", "machine", "passes", "one process", *heads], rows)


def _said(mixes):
    if mixes is None:
        return "20 mixes in all"
    return (
        f"{mixes} mix{'es' * (mixes > 1)}"
        if mixes >= 1
        else f"a mix every {round(1 / mixes)} passes"
    )


def main():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        short = table_of(SHORT_CASES, SHORT_WAYS, range(4), client)
        long = table_of(LONG_CASES, LONG_WAYS, range(3), client)
    publish(
        "dask_mixes",
        "How often learners are mixed",
        f"Three quarters of the training rows in {N_PARTITIONS} partitions; error % on the other "
        "quarter. Mixes are those of a pass where nothing else is said.",
        "Short trainings, means of 4 seeds:",
        short,
        "Long ones, means of 3 seeds; `auto` is 40 passes or fewer, and up to 120 where the search "
        "finds that they are worth it:",
        long,
    )
