"""Training on a cluster of two workers: ours, dask-ml's Incremental, LightGBM's and XGBoost's Dask.

All get the same dask arrays, cut at the same rows and held by the workers before the clock starts.
They take turns; the fastest of TURNS counts, after a first turn that is told by itself. Traffic is
what all processes send over the loopback device meanwhile, so let nobody else talk there. Peers
that are not installed (`pip install dask-ml lightgbm xgboost`) are left out, with a line.
"""

import importlib
import time
import warnings

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait
from sklearn.linear_model import SGDClassifier

from benchmarks import sets
from benchmarks.race import publish, table
from polyplane import AMMClassifier, PolyplaneClassifier
from polyplane.backends import dask_cluster

NAMES = "ijcnn1", "a9a", "MNIST, 2 or not"
N_WORKERS, N_PARTITIONS = 2, 8
TURNS = 3
PASSES = AMMClassifier().max_iter
TREES = 100  # the default of both


def rows_of(name):
    """Dense float32 in [-1, 1], in random order, classes 0 and 1."""
    X, y, X_test, y_test = sets.load(name)
    X, X_test = (
        np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float32)
        for part in (X, X_test)
    )
    largest = np.abs(X).max()
    order = np.random.default_rng(0).permutation(len(y))
    codes = np.unique(y)
    return (
        X[order] / largest, np.searchsorted(codes, y[order]),
        X_test / largest, np.searchsorted(codes, y_test),
    )  # fmt: skip


# ---- who takes part ----------------------------------------------------------------------
# Each trains on dask arrays and gives what labels rows that are here.


def ours(machine):
    def train(client, X, y):
        return dask_cluster.fit(machine(), X, y, client=client).predict

    return train


def incremental(module, n_passes):
    def train(client, X, y):
        made = module.Incremental(SGDClassifier(random_state=0))
        for _ in range(n_passes):
            made.partial_fit(X, y, classes=[0, 1])
        return made.estimator_.predict

    return train


def lightgbm(module):
    def train(client, X, y):
        made = module.DaskLGBMClassifier(n_estimators=TREES, random_state=0, verbose=-1)
        return made.fit(X, y).to_local().predict

    return train


def xgboost(module):
    def train(client, X, y):
        made = module.DaskXGBClassifier(n_estimators=TREES, random_state=0)
        made.client = client
        booster = made.fit(X, y).get_booster()
        return lambda rows: booster.inplace_predict(rows) > 0.5

    return train


def entries():
    """Names and trainings of all that are here, and a line about those that are not."""
    found = {
        "ours, AMM": ours(lambda: AMMClassifier(random_state=0)),
        "ours, PolyplaneClassifier": ours(lambda: PolyplaneClassifier(random_state=0)),
    }
    peers = {
        "dask_ml.wrappers": lambda module: {
            "dask-ml Incremental, SGDClassifier, 1 pass": incremental(module, 1),
            f"the same, {PASSES} passes": incremental(module, PASSES),
        },
        "lightgbm.dask": lambda module: {f"LightGBM, {TREES} trees": lightgbm(module)},
        "xgboost.dask": lambda module: {f"XGBoost, {TREES} trees": xgboost(module)},
    }
    absent = []
    for name, made in peers.items():
        try:
            found |= made(importlib.import_module(name))
        except ImportError:
            absent.append(name.partition(".")[0])
    return found, f"Not installed here: {', '.join(absent)}." if absent else ""


# ---- a race ------------------------------------------------------------------------------


def bytes_over_loopback():
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def one_turn(train, client, X, y):
    """Seconds, bytes, and what labels rows."""
    before, begin = bytes_over_loopback(), time.perf_counter()
    called = train(client, X, y)
    return time.perf_counter() - begin, bytes_over_loopback() - before, called


def lines_of(client, name, contestants):
    X, y, X_test, y_test = rows_of(name)
    chunk = -(-len(y) // N_PARTITIONS)
    held = client.persist([da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)])
    wait(held)
    turns = {what: [] for what in contestants}
    for _ in range(1 + TURNS):
        for what, train in contestants.items():
            turns[what].append(one_turn(train, client, *held))
    for what, (first, *later) in turns.items():
        seconds, n_bytes, called = min(later, key=lambda turn: turn[0])
        wrong = 100 * np.mean(called(X_test) != y_test)
        yield [name, what, f"{first[0]:.2f}", f"{seconds:.2f}", f"{wrong:.2f}",
               f"{n_bytes / 1e6:.1f}"]  # fmt: skip


def main():
    contestants, absent = entries()
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")  # of peers, about chunks and ports
        lines = [line for name in NAMES for line in lines_of(client, name, contestants)]
    publish(
        "dask_peers",
        "Training on two Dask workers, beside others",
        f"The same rows in {N_PARTITIONS} partitions on {N_WORKERS} workers of one thread each; "
        f"settings are defaults. The first call may compile; of {TURNS} later ones the fastest. "
        "PolyplaneClassifier finds its settings within that time, the others search nothing. "
        "dask-ml's Incremental visits one partition after the other, so that one worker is at work "
        "at a time. MB are those of all processes over the loopback device.",
        *([absent] if absent else []),
        table(["set", "what", "first call, s", "seconds", "test error %", "MB"], lines),
    )
