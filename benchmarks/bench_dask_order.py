"""Two learners beside one process at several alphas, with rows in an order and with mixed rows."""

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import AMMClassifier
from polyplane.backends import dask_cluster
from tests.real_data import libsvm_set

ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6)
PASSES, N_PARTITIONS, N_LEARNERS, SEEDS = (5, 10), 4, 2, range(4)
HELD_OUT_SHARE = 0.25  # of the training rows


def order_table(client):
    """Errors at several alphas of one process, and of two learners of ordered and mixed rows."""
    X, y, _, _ = libsvm_set("ijcnn1")
    order = np.random.default_rng(0).permutation(y.size)
    n_held = int(HELD_OUT_SHARE * y.size)
    held, kept = order[:n_held], np.sort(order[n_held:])  # training rows keep their order
    parts = [delayed((X[part], y[part])) for part in np.array_split(kept, N_PARTITIONS)]
    mixed = dask_cluster.mix_rows(parts)

    def errors(alpha, n_passes, rows):
        found = []
        for seed in SEEDS:
            model = AMMClassifier(alpha=alpha, max_iter=n_passes, random_state=seed)
            if rows is None:
                model.fit(X[kept], y[kept])
            else:
                dask_cluster.fit(model, rows, client=client, learners=N_LEARNERS)
            found.append(error(model, X[held], y[held]))
        return f"{np.mean(found):.2f} ± {np.std(found):.2f}"

    return table(
        ["alpha", "passes", "one process", "two learners, ordered rows", "two, mixed rows"],
        [
            [f"{alpha:g}", n, *(errors(alpha, n, rows) for rows in (None, parts, mixed))]
            for alpha in ALPHAS
            for n in PASSES
        ],
    )


def main():
    with (
        LocalCluster(
            n_workers=N_LEARNERS, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        errors = order_table(client)
    publish(
        "dask_order",
        "Two learners at several alphas, with ordered and with mixed rows",
        f"AMM on three quarters of the training rows of ijcnn1, which stand in an order of time, "
        f"in {N_PARTITIONS} partitions; errors in percent on the other quarter, mean and standard "
        f"deviation of {len(SEEDS)} seeds.",
        errors,
    )
