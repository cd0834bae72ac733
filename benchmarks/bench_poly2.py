"""Degree-2 products and a linear SVM: errors and times beside the linear machine."""

from functools import partial

from benchmarks.race import publish, race, table
from benchmarks.tuning import best, errors_on_test, folds, grid, spread, words
from polyplane import PegasosClassifier, Poly2Classifier
from tests.real_data import libsvm_set

EPOCHS = 20
GAMMAS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]


def main():
    rows = []
    for name, n_hash, goal in (("a9a", 4_096, "14.94"), ("ijcnn1", 256, "2.16")):
        data = libsvm_set(name)
        X, y, _, _ = data
        alphas = [10.0**-k for k in range(3, 9)]
        machines = [
            ("linear", PegasosClassifier(max_iter=EPOCHS), grid(alpha=alphas)),
            ("exact map", Poly2Classifier(max_iter=EPOCHS),
             grid(alpha=alphas, gamma=GAMMAS)),
            (f"hashed to {n_hash:,}", Poly2Classifier(max_iter=EPOCHS, n_hash=n_hash),
             grid(alpha=alphas, gamma=GAMMAS)),
        ]  # fmt: skip
        for kind, machine, settings in machines:
            setting, found = best(machine, settings, X, y, folds(X, y))
            errors, _ = errors_on_test(machine, setting, data)
            machine.set_params(**setting)
            seconds = race({"fit": partial(machine.fit, X, y)}, 5)["fit"]
            per_step = 1e6 * seconds / (EPOCHS * len(y))
            n_features = machine.set_params(max_iter=1).fit(X, y).planes_.shape[1]
            rows.append([name, kind, f"{n_features:,}", spread(errors), f"{found:.2f}",
                         words(setting), f"{per_step:.2f}",
                         goal if kind == "exact map" else ""])  # fmt: skip
            print(rows[-1], flush=True)
    header = ["data", "map", "features", "test error %", "cross-validated %", "chosen setting",
              "µs a step", "AMM paper's Poly2 %"]  # fmt: skip
    publish(
        "poly2",
        "Degree-2 products",
        f"{EPOCHS} epochs, averaged; alpha and gamma chosen by five-fold cross-validation on the "
        "training rows; five seeds. The products are formed row by row, never stored.",
        table(header, rows),
    )
