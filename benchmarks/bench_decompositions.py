"""One model of all classes, one-vs-rest, one-vs-one, ensembles: errors and what they cost."""

import time

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.race import publish, table
from benchmarks.tuning import best, error, folds, grid, held_out_parts, spread
from polyplane import AMMClassifier, MMClassifier, PegasosClassifier
from tests.real_data import libsvm_set, mnist

EPOCHS = 20
WAYS = [
    ("joint", 1), ("ovr", 1), ("ovo", 1), ("joint", 8), ("ovr", 8), ("ovo", 4), ("ovo", 8),
]  # fmt: skip


def sets():
    """Name, data with columns in [-1, 1], the parts that choose, seeds, machines, alphas."""
    out = []
    for name, scale in (("pendigits", 100), ("optdigits", 16), ("satimage", 1), ("shuttle", 1)):
        X, y, X_test, y_test = libsvm_set(name)
        data = (X / np.float32(scale), y, X_test / np.float32(scale), y_test)
        machines = [AMMClassifier(), MMClassifier(), PegasosClassifier()]
        alphas = [1e-3, 1e-4, 1e-5, 1e-6]
        out.append((name, data, folds(data[0], y, 3), range(5), machines, alphas))
    data = mnist()
    parts = held_out_parts(data[0], data[1])
    out.append(("MNIST", data, parts, range(3), [AMMClassifier()], [1e-3, 3e-4, 1e-4, 3e-5, 1e-5]))
    return out


def outcome(machine, setting, data, seeds):
    """Errors by votes and margins, planes, seconds of a fit, microseconds of a prediction."""
    X, y, X_test, y_test = data
    by = {"margin": [], "vote": []}
    fit_seconds, predict_seconds = [], []
    for seed in seeds:
        model = clone(machine).set_params(**setting, random_state=seed)
        start = time.perf_counter()
        model.fit(X, y)
        fit_seconds.append(time.perf_counter() - start)
        model.predict(X_test)
        start = time.perf_counter()
        model.predict(X_test)
        predict_seconds.append(time.perf_counter() - start)
        for combine, errors in by.items():
            errors.append(error(model.set_params(combine=combine), X_test, y_test))
    per_row = 1e6 * np.median(predict_seconds) / len(y_test)
    return by, model.n_planes_, np.median(fit_seconds), per_row


def main():
    rows = []
    for name, data, parts, seeds, machines, alphas in sets():
        X, y, _, _ = data
        for machine in machines:
            chosen = {}
            for way, n_estimators in WAYS:
                base = machine.set_params(max_iter=EPOCHS, multi_class=way, n_jobs=1)
                if way not in chosen:
                    single = base.set_params(n_estimators=1)
                    chosen[way], _ = best(single, grid(alpha=alphas), X, y, parts)
                setting = chosen[way] | {"n_estimators": n_estimators}
                with threadpool_limits(1):
                    by, planes, seconds, per_row = outcome(base, setting, data, seeds)
                rows.append(
                    [name, type(machine).__name__.removesuffix("Classifier"), way, n_estimators,
                     spread(by["margin"]), spread(by["vote"]) if way == "ovo" else "",
                     planes, f"{seconds:.2f}", f"{per_row:.2f}", f"{setting['alpha']:g}"]
                )  # fmt: skip
                print(rows[-1], flush=True)
    header = ["data", "machine", "multi_class", "n_estimators", "test error %", "by votes %",
              "planes", "seconds a fit", "µs a prediction", "alpha"]  # fmt: skip
    publish(
        "decompositions",
        "Ways to many classes",
        f"{EPOCHS} epochs on one core; alpha chosen for each way with one model, by three-fold "
        "cross-validation (MNIST: a held-out sixth) on the training rows; mean and deviation over "
        "five seeds (MNIST: three).",
        table(header, rows),
    )
