"""Errors of a Dask cluster beside one process: few and many partitions, shuffled and sorted.

Rows that are sorted are mixed first, as the documentation says. POLYPLANE_SETS names some of the
sets, by commas.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

from benchmarks.race import publish, table
from benchmarks.tuning import error
from polyplane import AMMClassifier, PolyplaneClassifier
from polyplane.backends import dask_cluster
from tests.real_data import libsvm_set, mnist_bytes

SEEDS, PARTITIONS, LEARNERS = range(3), (1, 2, 8, 32), 2
ALPHA_OF_DIGITS = 1e-6 * 255.0**2  # for pixels in [0, 1]; rows are bytes


def mnist_2():
    """Twos against all other digits."""
    X, y, X_test, y_test = mnist_bytes()
    return X, (y == 2).astype(int), X_test, (y_test == 2).astype(int)


class Case(NamedTuple):
    """A set and what is trained on it."""

    name: str
    rows: Callable
    machine: Callable


CASES = [
    Case("ijcnn1", lambda: libsvm_set("ijcnn1"), AMMClassifier),
    Case("adult", lambda: libsvm_set("a9a"), AMMClassifier),
    Case("MNIST-2", mnist_2, lambda **s: AMMClassifier(alpha=ALPHA_OF_DIGITS, **s)),
    Case("ijcnn1", lambda: libsvm_set("ijcnn1"), PolyplaneClassifier),
    Case("adult", lambda: libsvm_set("a9a"), PolyplaneClassifier),
]


def cut(X, y, n_partitions, is_sorted, seed):
    order = np.random.default_rng(seed).permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")] if is_sorted else order
    parts = [delayed((X[part], y[part])) for part in np.array_split(order, n_partitions)]
    return dask_cluster.mix_rows(parts, seed=seed) if is_sorted else parts


def mean_error(client, case, data, n_partitions, is_sorted):
    X, y, X_test, y_test = data
    errors = []
    for seed in SEEDS:
        model = case.machine(random_state=seed)
        parts = client.persist(cut(X, y, n_partitions, is_sorted, seed))
        dask_cluster.fit(model, parts, client=client, learners=LEARNERS)
        errors.append(error(model, X_test, y_test))
    return float(np.mean(errors))


def lines(client, case):
    X, y, X_test, y_test = data = case.rows()
    alone = [error(case.machine(random_state=s).fit(X, y), X_test, y_test) for s in SEEDS]
    name = type(case.machine()).__name__.removesuffix("Classifier")
    for is_sorted in (False, True):
        found = [mean_error(client, case, data, n, is_sorted) for n in PARTITIONS]
        cells = [f"{one:.2f} ({one - np.mean(alone):+.2f})" for one in found]
        order = "sorted, then mixed" if is_sorted else "shuffled"
        spread = f"{np.mean(alone):.2f} ({min(alone):.2f}–{max(alone):.2f})"
        yield [case.name, name, order, spread, *cells]


def main():
    named = os.environ.get("POLYPLANE_SETS")
    cases = [case for case in CASES if named is None or case.name in named.split(",")]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        rows = [line for case in cases for line in lines(client, case)]
    heads = [f"{n} partition{'s' * (n > 1)}" for n in PARTITIONS]
    publish(
        "dask_accuracy",
        "Errors of a Dask cluster beside one process",
        f"{LEARNERS} learners, as many passes as one process makes, errors in percent on test "
        f"rows, means of {len(SEEDS)} seeds; in brackets the range of one process, and the "
        "difference to its mean.",
        table(["set", "machine", "rows", "one process", *heads], rows),
    )
