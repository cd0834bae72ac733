"""What others make of every data set: a linear SVM, a tuned RBF-SVM, boosting as it comes.

Kept apart because it takes an hour and depends on nothing of ours; the table is read by
`bench_polyplane`.
"""

import itertools
import json
import time

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks import sets
from benchmarks.race import RESULTS, publish, table
from benchmarks.tuning import error, spread

FILE = RESULTS / "peers.json"
ROWS_TO_TUNE = 4_000
ROWS_OF_MANY_CLASSES = 1_500  # of more than 20, where an SVM is thousands of pairs
SEEDS = range(3)


def with_short_columns(X):
    """The same matrix with 32-bit columns, which LIBLINEAR insists on."""
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_matrix(parts, shape=X.shape)


def scaled(name):
    """Columns standardised unless they are 0/1, sparse or bytes, as an SVM wants them."""
    X, y, X_test, y_test = sets.load(name)
    if sp.issparse(X):
        return with_short_columns(X), y, with_short_columns(X_test), y_test
    if X.dtype == np.uint8:
        return X / np.float32(255), y, X_test / np.float32(255), y_test
    scaler = StandardScaler().fit(X)
    is_binary = ((X == 0) | (X == 1)).all(axis=0)
    scaler.mean_[is_binary], scaler.scale_[is_binary] = 0, 1
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def some_rows(y):
    """At most so many rows that tuning takes minutes."""
    order = np.random.default_rng(0).permutation(len(y))
    return np.sort(order[: ROWS_OF_MANY_CLASSES if len(np.unique(y)) > 20 else ROWS_TO_TUNE])


def tuned(make, choices, X, y):
    """The setting with the best cross-validated accuracy on some of the training rows."""
    part = some_rows(y)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = [
        cross_val_score(make(**setting), X[part], y[part], cv=folds, n_jobs=1).mean()
        for setting in choices
    ]
    return choices[int(np.argmax(scores))]


def linear(data):
    """LinearSVC, C chosen."""
    X, y, X_test, y_test = data
    make = lambda **setting: LinearSVC(max_iter=2_000, **setting)  # noqa: E731
    setting = tuned(make, [{"C": c} for c in (0.01, 0.1, 1.0, 10.0)], X, y)
    return {"error": error(make(**setting).fit(X, y), X_test, y_test), "setting": setting}


def rbf(data):
    """SVC, C and gamma chosen."""
    X, y, X_test, y_test = data
    part = X[some_rows(y)]
    mean_square = part.multiply(part).sum() if sp.issparse(part) else np.square(part).sum()
    unit = float(part.shape[0] / mean_square)  # 1 / mean squared length
    choices = [
        {"C": c, "gamma": g * unit}
        for c, g in itertools.product((1.0, 10.0, 100.0), (0.25, 1.0, 4.0, 16.0))
    ]
    make = lambda **setting: SVC(cache_size=2_000, **setting)  # noqa: E731
    setting = tuned(make, choices, X, y)
    start = time.perf_counter()
    model = make(**setting).fit(X, y)
    seconds = time.perf_counter() - start
    n = min(len(y_test), 2_000)
    start = time.perf_counter()
    model.predict(X_test[:n])
    per_row = 1e6 * (time.perf_counter() - start) / n
    return {
        "error": error(model, X_test, y_test), "setting": setting, "seconds": seconds,
        "microseconds": per_row, "vectors": int(model.n_support_.sum()),
    }  # fmt: skip


def boosting(data):
    """HistGradientBoostingClassifier as it comes."""
    X, y, X_test, y_test = data
    if sp.issparse(X):
        if X.shape[1] > 1_000:
            return None  # it takes dense rows only
        X, X_test = X.toarray(), X_test.toarray()
    errors, seconds = [], []
    for seed in SEEDS:
        model = HistGradientBoostingClassifier(random_state=seed)
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        errors.append(error(model, X_test, y_test))
        if seconds[0] > 60:
            break
    start = time.perf_counter()
    model.predict(X_test)
    per_row = 1e6 * (time.perf_counter() - start) / len(y_test)
    return {"errors": errors, "seconds": float(np.median(seconds)), "microseconds": per_row}


def measure(name, found):
    """All peers on one set; `found` is kept on disk after each."""
    of_set = found.setdefault(name, {})
    for peer in (linear, boosting, rbf):
        if peer.__name__ not in of_set:
            data = sets.load(name) if peer is boosting else scaled(name)
            of_set[peer.__name__] = peer(data)
            FILE.write_text(json.dumps(found, indent=1))
            print(name, peer.__name__, of_set[peer.__name__], flush=True)


def row(name, of_set):
    boosted, svm = of_set["boosting"], of_set["rbf"]
    settings = ", ".join(f"{k} {v:.3g}" for k, v in svm["setting"].items())
    if boosted is None:
        of_boosting = ["", "", ""]
    else:
        errors = boosted["errors"]
        of_boosting = [
            spread(errors) if len(errors) > 1 else f"{errors[0]:.2f}",
            f"{boosted['seconds']:.2f}", f"{boosted['microseconds']:.1f}",
        ]  # fmt: skip
    return [
        name, f"{of_set['linear']['error']:.2f}", f"{svm['error']:.2f}", settings,
        f"{svm['seconds']:.2f}", f"{svm['microseconds']:.1f}", svm["vectors"], *of_boosting,
    ]  # fmt: skip


def main():
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in sets.NAMES:
        measure(name, found)
    header = [
        "data", "linear SVM %", "RBF-SVM %", "setting", "seconds of its fit", "µs a prediction",
        "support vectors", "boosting %", "seconds of its fit", "µs a prediction",
    ]  # fmt: skip
    publish(
        "peers",
        "Linear SVM, tuned RBF-SVM and boosting on every data set",
        "LinearSVC and SVC with C (and gamma) chosen by three-fold cross-validation on at most "
        f"{ROWS_TO_TUNE} training rows, then fitted to all of them; "
        "HistGradientBoostingClassifier as it comes, three seeds (one where a fit takes over a "
        "minute). What was measured before is kept in peers.json: delete it to start anew. Times "
        "above 15 s were taken while another thread was at work.",
        table(header, [row(name, found[name]) for name in sets.NAMES]),
    )
