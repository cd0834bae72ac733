"""The convex polytope machine: MNIST errors, and the paper's Figure 2."""

import time

import numpy as np

from benchmarks.pictures import draw
from benchmarks.race import publish, table
from benchmarks.tuning import (
    best,
    error,
    errors_on_test,
    folds,
    grid,
    held_out_parts,
    spread,
    words,
)
from polyplane import CPMClassifier
from tests.real_data import mnist

ENTROPIES = [0.8, 0.9, 0.95, 0.98]
STEPS = 2_000_000


def two_vs_rest():
    """MNIST's digit 2 against the others."""
    X, y, X_test, y_test = mnist()
    return X, y == 2, X_test, y_test == 2


def tune(machine, X, y):
    """The best setting without and with entropy, on three held-out sixths of the rows."""
    parts, alphas = folds(X, y, 6)[:3], [3e-4, 1e-4, 5e-5, 2e-5]
    plain = grid(alpha=alphas, entropy=[0.0])
    guarded = grid(alpha=alphas, entropy=ENTROPIES)
    return [best(machine, settings, X, y, parts) for settings in (plain, guarded)]


def accuracy():
    """Two-sided machines on 2-vs-rest, h = 0 beside the chosen h; then ensembles of these."""
    data = two_vs_rest()
    X, y, _, _ = data
    rows = []
    for planes in (16, 64):
        machine = CPMClassifier(n_planes=planes, max_steps=STEPS)
        plain, guarded = tune(machine, X, y)
        trials = [(1, *plain), (1, *guarded)]
        if planes > 16:
            trials.append((4, guarded[0], None))
        for n_estimators, setting, held_out in trials:
            machine.set_params(n_estimators=n_estimators)
            start = time.perf_counter()
            errors, _ = errors_on_test(machine, setting, data)
            seconds = (time.perf_counter() - start) / len(errors)
            rows.append(
                [planes, n_estimators, words(setting), f"{held_out:.3f}" if held_out else "",
                 f"{np.mean(errors):.3f} ± {np.std(errors, ddof=1):.3f}", f"{seconds:.1f}"]
            )  # fmt: skip
            print(rows[-1], flush=True)
    header = ["K", "models", "setting", "held-out %", "test error %", "seconds a fit"]
    return table(header, rows)


def figure_2():
    """Error against T and against K, h = 0 and h = 0.95 of log2 K."""
    data = two_vs_rest()
    budgets = (125_000, 250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
    counts = (1, 2, 4, 8, 16, 32, 64, 128)

    def curve(settings, entropy):
        found = [
            errors_on_test(CPMClassifier(alpha=1e-4, entropy=entropy, **s), {}, data, range(3))[0]
            for s in settings
        ]
        return [np.mean(e) for e in found], [np.std(e, ddof=1) for e in found]

    by_steps, by_planes = {}, {}
    for name, entropy in (("h = 0", 0.0), ("h = 0.95 log2 K", 0.95)):
        by_steps[name] = (budgets, *curve([{"n_planes": 64, "max_steps": t} for t in budgets],
                                          entropy))  # fmt: skip
        by_planes[name] = (counts, *curve([{"n_planes": k, "max_steps": STEPS} for k in counts],
                                          entropy))  # fmt: skip
    draw(
        "convex_polytope",
        [
            ("MNIST 2 vs rest, K = 64", "steps T", by_steps, True),
            ("MNIST 2 vs rest, T = 2 million", "planes K of each side", by_planes, True),
        ],
    )
    rows = []
    for label, curves in (("T", by_steps), ("K", by_planes)):
        for name, (x, mean, deviation) in curves.items():
            cells = [f"{m:.2f} ± {d:.2f}" for m, d in zip(mean, deviation, strict=True)]
            rows += [[f"{name}, {label} =", *(f"{v:,}" for v in x)], ["", *cells]]
    width = max(len(row) for row in rows)
    return table([""] * width, [row + [""] * (width - len(row)) for row in rows])


def ten_classes():
    """One-vs-one on all digits, by votes and by margins."""
    data = mnist()
    X, y, X_test, y_test = data
    parts = held_out_parts(X, y)
    rows = []
    setting, held_out = {}, None
    for planes, epochs, n_estimators in ((16, 10, 1), (32, 40, 1), (16, 40, 1), (16, 40, 4)):
        machine = CPMClassifier(n_planes=planes, max_iter=epochs, n_estimators=n_estimators)
        if n_estimators == 1:  # several models have the setting chosen for one
            settings = grid(alpha=[3e-4, 1e-4, 3e-5], entropy=[0.9, 0.95])
            setting, held_out = best(machine, settings, X, y, parts)
        found = {"vote": [], "margin": []}
        seconds = []
        for seed in range(3):
            model = machine.set_params(**setting, random_state=seed)
            start = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - start)
            for combine, errors in found.items():
                errors.append(error(model.set_params(combine=combine), X_test, y_test))
        rows.append([planes, epochs, n_estimators, words(setting), f"{held_out:.2f}",
                     spread(found["vote"]), spread(found["margin"]),
                     f"{np.median(seconds):.0f}"])  # fmt: skip
        print(rows[-1], flush=True)
    header = ["K", "epochs", "models", "setting", "held-out %", "votes: test %",
              "margins: test %", "seconds a fit, one core"]  # fmt: skip
    return table(header, rows)


def main():
    publish(
        "convex_polytope",
        "The convex polytope machine on MNIST",
        f"MNIST 2-vs-rest, two sides, T = {STEPS:,}: alpha and entropy chosen on three held-out "
        "sixths of the training rows; test errors of five seeds after training on all "
        "rows. Several models have the setting chosen for one. The paper has 0.38 (h = 0: "
        "0.46), its RBF-SVM 0.35; goal 0.36, moonshot 0.30.",
        accuracy(),
        "Figure 2 of the paper from our runs (alpha 1e-4, three seeds): "
        "[picture](../../docs/pictures/convex_polytope.svg).",
        figure_2(),
        "MNIST ten classes, one-vs-one (45 two-sided machines), alpha and entropy chosen on a held-"
        "out sixth, three seeds. The paper has 1.61 in 7 min 20 s, its RBF-SVM 1.47; goal 1.55 in "
        "20 s, moonshot 1.40.",
        ten_classes(),
    )
