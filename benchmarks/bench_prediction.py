"""Prediction: cost by planes, storages and threads, beside scikit-learn's linear model."""

import numpy as np
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks.race import publish, race, table
from polyplane import MMClassifier
from tests.real_data import mnist, mnist_bytes

ROUNDS = 15


def main():
    X, y, X_test, _ = mnist()
    bytes_test = mnist_bytes()[2]
    dense_test = X_test.toarray()
    is_two = (y == 2).astype(int)
    peer = SGDClassifier(max_iter=1, tol=None).fit(X, is_two)
    jobs = {"linear": lambda: peer.decision_function(X_test)}
    for planes in (16, 32, 64, 128):
        model = MMClassifier(n_planes=planes // 2, max_iter=1, random_state=0)
        model.fit(X[:2_000], is_two[:2_000])
        jobs[f"{planes} csr"] = lambda model=model: model.decision_function(X_test)
        jobs[f"{planes} predict"] = lambda model=model: model.predict(X_test)
        jobs[f"{planes} dense"] = lambda model=model: model.decision_function(dense_test)
        jobs[f"{planes} bytes"] = lambda model=model: model.decision_function(bytes_test)
        threaded = MMClassifier(**model.get_params()).set_params(n_jobs=-1)
        threaded.fit(X[:2_000], is_two[:2_000])
        jobs[f"{planes} threads"] = lambda model=threaded: model.decision_function(X)
    with threadpool_limits(1):
        seconds = race(jobs, ROUNDS)
    n_rows = {name: (X if "threads" in name else X_test).shape[0] for name in jobs}
    per_row = {name: 1e6 * s / n_rows[name] for name, s in seconds.items()}
    rows = [
        [
            planes,
            *(f"{per_row[f'{planes} {job}']:.3f}"
              for job in ("csr", "predict", "dense", "bytes", "threads")),
            f"{per_row[f'{planes} csr'] / per_row['linear']:.2f}",
        ]
        for planes in (16, 32, 64, 128)
    ]  # fmt: skip
    header = [
        "planes", "decision_function, CSR", "predict, CSR", "dense float32", "bytes",
        "CSR, all cores, 60,000 rows", "CSR beside linear SGD",
    ]  # fmt: skip
    publish(
        "prediction",
        "Prediction on MNIST's test rows",
        f"Microseconds a row, one thread unless said, {np.shape(X_test)[0]:,} rows, validation "
        f"included. scikit-learn's linear `decision_function` on the same CSR rows: "
        f"{per_row['linear']:.3f} µs.",
        table(header, rows),
    )
