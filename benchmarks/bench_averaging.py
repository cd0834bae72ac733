"""Whether averaged planes predict better than the last ones: why `average=True` is the default."""

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.race import publish, table
from polyplane import AMMClassifier
from tests.real_data import a9a, mnist

ALPHAS = [1e-2, 1e-3, 1e-4, 1e-5]
EPOCHS = (1, 5, 20)


def held_out_errors(X, y, epochs, alpha, seeds):
    """Mean held-out error in percent of the last and of the averaged planes."""
    X_train, X_held, y_train, y_held = train_test_split(
        X, y, test_size=0.2, random_state=0, stratify=y
    )
    errors = {average: [] for average in (False, True)}
    for seed in seeds:
        for average, found in errors.items():
            model = AMMClassifier(
                alpha=alpha, max_iter=epochs, average=average, fit_intercept=False,
                random_state=seed,
            )  # fmt: skip
            found.append(100 * np.mean(model.fit(X_train, y_train).predict(X_held) != y_held))
    return np.mean(errors[False]), np.mean(errors[True])


def main():
    X, y, _, _ = mnist()
    A, labels, _, _ = a9a()
    sets = [
        ("a9a", A, labels, range(3)),
        ("MNIST 2 vs rest", X, y == 2, range(3)),
        ("MNIST ten classes", X, y, range(2)),
    ]
    rows, n_lower, n_cells = [], 0, 0
    for name, X, y, seeds in sets:
        for epochs in EPOCHS:
            cells = []
            for alpha in ALPHAS:
                last, averaged = held_out_errors(X, y, epochs, alpha, seeds)
                n_lower += averaged < last
                n_cells += 1
                cells.append(f"{last:.2f} / {averaged:.2f}")
            rows.append([name, epochs, *cells])
    publish(
        "averaging",
        "Last planes against averaged planes",
        f"AMM online, held-out error in percent, last / averaged. Averaged is lower in {n_lower} "
        f"of {n_cells} settings.",
        table(["data", "epochs", *(f"alpha {alpha:g}" for alpha in ALPHAS)], rows),
    )
