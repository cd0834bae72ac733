"""Many alphas from one reading of the rows: what they cost beside one, and what "auto" finds.

Both halves look at training rows only, but for the last two columns of the second table: those are
errors of test rows, of the alpha that was found and of the best one on those very rows.
"""

import threading

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV

import polyplane as pp
from benchmarks import sets
from benchmarks.race import publish, race, table
from benchmarks.tuning import error
from polyplane.estimator.planes.hyperplane_classifier import rows_to_try
from polyplane.estimator.planes.packs import new_trial, pass_together
from tests.real_data import a9a, mnist

ALPHAS = [10.0**-k for k in range(2, 10)]
ROUNDS = 7
SEEDS = range(3)
LARGE = 5_000  # rows: sets with as many are tried with alpha="auto"


def silent(n_rows, size, error):
    """No bar."""


def passes(X, y, alphas, n_threads):
    """One pass of these alphas, side by side."""
    reader = pp.AMMClassifier(random_state=0)
    data, labels, seed = rows_to_try(reader, X, y, None)
    parts = np.zeros(len(y), np.int32)

    def job():
        made = [new_trial(reader, {"alpha": a}, data, labels, seed, parts) for a in alphas]
        pass_together(made, data, parts, n_threads, silent)

    return job


def two_fits(X, y, n_threads):
    """Two fits that have nothing to do with each other: what two threads gain at best here."""

    def fit():
        pp.AMMClassifier(alpha=1e-4, random_state=0).fit(X, y)

    def job():
        threads = [threading.Thread(target=fit) for _ in range(2)]
        for k, thread in enumerate(threads):
            thread.start()
            if n_threads == 1 or k == 1:
                thread.join()
        threads[0].join()

    return job


def prices():
    """One pass of eight alphas, a tuned fit, and scikit-learn's search, beside one alpha."""
    digits, digit, _, _ = mnist()
    rows = []
    for name, X, y in (("MNIST 2 vs rest", digits, digit == 2), ("a9a", *a9a()[:2])):
        grid = GridSearchCV(
            SGDClassifier(max_iter=5, tol=None, random_state=0), {"alpha": ALPHAS}, cv=5, n_jobs=2
        )
        path = pp.AMMClassifier(max_iter=5, random_state=0, n_jobs=2)
        jobs = {
            "one": passes(X, y, ALPHAS[2:3], 1),
            "alone": lambda X=X, y=y: [passes(X, y, [a], 1)() for a in ALPHAS],
            "packed": passes(X, y, ALPHAS, 1),
            "threads": passes(X, y, ALPHAS, 2),
            "two fits": two_fits(X, y, 1),
            "two fits in threads": two_fits(X, y, 2),
            "fit": lambda X=X, y=y: pp.AMMClassifier(alpha=1e-4, random_state=0).fit(X, y),
            "tuned": lambda X=X, y=y: pp.AMMClassifier(alpha="auto", random_state=0).fit(X, y),
            "path": lambda X=X, y=y, m=path: pp.alpha_path(m, X, y, alphas=ALPHAS, cv=5),
        }
        took = race(jobs, ROUNDS)
        short = sp.csr_matrix(X)  # scikit-learn's SGD wants indices of 32 bits
        short.indices, short.indptr = short.indices.astype(np.int32), short.indptr.astype(np.int32)
        took |= race({"grid": lambda X=short, y=y, g=grid: g.fit(X, y)}, 1)
        rows.append(
            [
                name,
                f"{1e3 * took['one']:.1f}",
                *(f"{took[each] / took['one']:.2f}" for each in ("alone", "packed", "threads")),
                f"{took['packed'] / took['threads']:.2f}",
                f"{took['two fits'] / took['two fits in threads']:.2f}",
                f"{took['tuned'] / took['fit']:.2f}",
                f"{took['path']:.2f}",
                f"{took['grid']:.2f}",
            ]
        )
        print(rows[-1], flush=True)
    header = [
        "data", "one alpha, ms a pass", "8 one by one, times", "8 packed, times",
        "8 in two threads, times", "gain of two threads",
        "the same of two separate fits", 'alpha="auto", times a fit',
        "path: 8 alphas, 5 folds, s", "GridSearchCV of linear SGD, the same, s",
    ]  # fmt: skip
    return table(header, rows)


def found():
    """The error with the alpha that "auto" finds, and with the best of all."""
    rows = []
    for name in sets.NAMES:
        X, y, X_test, y_test = sets.load(name)
        if len(y) < LARGE:
            continue
        for_auto, of_alpha = [], {alpha: [] for alpha in ALPHAS[:6]}
        for seed in SEEDS:
            model = pp.AMMClassifier(alpha="auto", random_state=seed).fit(X, y)
            for_auto.append(error(model, X_test, y_test))
            for alpha, errors in of_alpha.items():
                model = pp.AMMClassifier(alpha=alpha, random_state=seed).fit(X, y)
                errors.append(error(model, X_test, y_test))
        best = min(of_alpha, key=lambda alpha: np.mean(of_alpha[alpha]))
        rows.append(
            [name, f"{np.mean(for_auto):.2f}", f"{np.mean(of_alpha[best]):.2f}", f"{best:g}"]
        )
        print(rows[-1], flush=True)
    n_near = sum(float(row[1]) <= float(row[2]) + 0.1 for row in rows)
    header = ["data", 'test error % of alpha="auto"', "of the best alpha", "which is"]
    return table(header, rows), f"Within 0.1 points of the best: {n_near} of {len(rows)}."


def main():
    publish(
        "alpha_path",
        "Many alphas in one pass",
        f"AMM, averaged, one thread unless said, medians of {ROUNDS} rounds that take turns "
        "(GridSearchCV: once). Times of one pass are without reading and checking rows; those of "
        "fits are whole. Two separate fits in two threads share nothing: no pack can gain more "
        "than they do.",
        prices(),
        f"Sets with at least {LARGE:,} rows, AMM with ten passes, means of {len(SEEDS)} seeds. The "
        "best alpha is chosen by the test rows themselves: no search can know it.",
        *found(),
    )
