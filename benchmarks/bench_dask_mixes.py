"""How often learners of a cluster should be mixed in a pass: errors on a part of training rows."""

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks import sets
from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import AMMClassifier
from polyplane.backends import dask_cluster

NAMES, SEEDS, PASSES = ("ijcnn1", "a9a"), range(4), 5
N_PARTITIONS, LEARNERS, MIXES = 8, (2, 8), (1, 4, 10)
HELD_OUT = 4  # one row in so many


def errors_of(name, seed, client):
    """Of one process, and of all numbers of learners and mixes."""
    X, y = sets.load(name)[:2]
    order = np.random.default_rng(seed).permutation(y.size)
    held_out, rows = order[: y.size // HELD_OUT], order[y.size // HELD_OUT :]
    parts = [delayed((X[part], y[part])) for part in np.array_split(rows, N_PARTITIONS)]
    models = [AMMClassifier(random_state=seed, max_iter=PASSES).fit(X[rows], y[rows])]
    for learners in LEARNERS:
        for mixes in MIXES:
            model = AMMClassifier(random_state=seed, max_iter=PASSES)
            dask_cluster.fit(model, parts, client=client, learners=learners, mixes=mixes)
            models.append(model)
    return [error(model, X[held_out], y[held_out]) for model in models]


def main():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        means = {name: np.mean([errors_of(name, s, client) for s in SEEDS], axis=0)
                 for name in NAMES}  # fmt: skip
    heads = [f"{n} learners, mixed {m} times" for n in LEARNERS for m in MIXES]
    publish(
        "dask_mixes",
        "How often learners are mixed in a pass",
        f"AMM, {PASSES} passes over three quarters of the training rows in {N_PARTITIONS} "
        f"partitions; error % on the other quarter, means of {len(SEEDS)} seeds.",
        table(
            ["data", "one process", *heads],
            [[name, *(f"{mean:.2f}" for mean in found)] for name, found in means.items()],
        ),
    )
