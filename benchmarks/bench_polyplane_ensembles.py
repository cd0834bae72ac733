"""PolyplaneClassifier, one model and several that are averaged: errors and what they cost."""

import time

import numpy as np

from benchmarks import sets
from benchmarks.race import publish, table
from benchmarks.tuning import error, spread
from polyplane import PolyplaneClassifier

SETS = {"pendigits": range(5), "satimage": range(5), "MNIST": range(2)}  # and their seeds


def main():
    rows = []
    for name, seeds in SETS.items():
        X, y, X_test, y_test = sets.load(name)
        for n_estimators in (1, 4, 8):
            errors, seconds = [], []
            for seed in seeds:
                model = PolyplaneClassifier(n_estimators=n_estimators, random_state=seed, n_jobs=-1)
                start = time.perf_counter()
                model.fit(X, y)
                seconds.append(time.perf_counter() - start)
                errors.append(error(model, X_test, y_test))
            rows.append(
                [name, n_estimators, spread(errors), model.n_planes_, f"{np.median(seconds):.1f}"]
            )
            print(rows[-1], flush=True)
    publish(
        "polyplane_ensembles",
        "Ensembles of PolyplaneClassifier",
        "Nothing else is set; mean and deviation over five seeds (MNIST: two), two threads, "
        "search included.",
        table(["data", "n_estimators", "test error %", "planes", "seconds"], rows),
    )
