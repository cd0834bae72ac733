"""What boosting libraries make of every data set and raw table, as they come.

`pip install lightgbm xgboost catboost` first: they are rivals, not dependencies. What was measured
is kept in boosters.json and read by `bench_polyplane`; delete an entry to measure it anew.
"""

import json
import time
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler

from benchmarks import sets, tables
from benchmarks.race import RESULTS, publish, table

FILE = RESULTS / "boosters.json"
MOST_COLUMNS = 1_000  # of sparse rows, which boosting takes dense
LONG = {"MNIST", "MNIST, 2 or not"}  # minutes each: left out
N_THREADS = 2


def lightgbm(n_trees):
    from lightgbm import LGBMClassifier  # noqa: PLC0415  rivals need not be installed

    return LGBMClassifier(n_estimators=n_trees, n_jobs=N_THREADS, verbose=-1)


def xgboost():
    from xgboost import XGBClassifier  # noqa: PLC0415

    return XGBClassifier(n_jobs=N_THREADS, enable_categorical=True)


def catboost(categories):
    from catboost import CatBoostClassifier  # noqa: PLC0415

    return CatBoostClassifier(thread_count=N_THREADS, verbose=False, cat_features=categories)


RIVALS = {
    "LightGBM": lambda _: lightgbm(100),
    "LightGBM 400": lambda _: lightgbm(400),
    "XGBoost": lambda _: xgboost(),
    "CatBoost": catboost,
    "HistGB": lambda _: HistGradientBoostingClassifier(categorical_features="from_dtype"),
    "logistic": lambda _: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
}


def data_of(name, rival, fold):
    """Frames for boosting, numbers for logistic regression; labels from 0 on."""
    if name in tables.TABLES:
        of_rival = tables.numbers if rival == "logistic" else tables.frames
        X, y, X_test, y_test = of_rival(name, fold)
        if rival != "logistic":  # LightGBM refuses names with some characters
            X, X_test = (frame.set_axis(range(frame.shape[1]), axis=1) for frame in (X, X_test))
            X, X_test = (frame.add_prefix("column_") for frame in (X, X_test))
        if rival == "CatBoost":
            X, X_test = (with_text(frame) for frame in (X, X_test))
    else:
        X, y, X_test, y_test = sets.load(name)
        if sp.issparse(X):
            X, X_test = X.toarray(), X_test.toarray()
    known = LabelEncoder().fit(np.concatenate([y, y_test]))
    return X, known.transform(y), X_test, known.transform(y_test)


def with_text(frame):
    """Categories as texts, missing ones too, as CatBoost wants them."""
    frame = frame.copy()
    for name in frame:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].astype("object").where(frame[name].notna(), "missing")
    return frame


def measure(name, rival):
    """Error, loss, seconds of a fit and microseconds of a prediction; the mean over folds."""
    n_folds = tables.TABLES[name].n_folds if name in tables.TABLES else 1
    found = [measure_fold(name, rival, fold) for fold in range(n_folds)]
    refused = [one for one in found if "refuses" in one]
    return (
        refused[0] if refused else {key: np.mean([one[key] for one in found]) for key in found[0]}
    )


def measure_fold(name, rival, fold):
    X, y, X_test, y_test = data_of(name, rival, fold)
    columns = getattr(X, "columns", ())
    categories = [column for column in columns if X[column].dtype == object]
    model = RIVALS[rival](categories or None)
    try:
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    except ValueError as error:
        return {"refuses": str(error).splitlines()[0]}
    start = time.perf_counter()
    shares = model.predict_proba(X_test)
    per_row = 1e6 * (time.perf_counter() - start) / len(y_test)
    found = model.classes_[shares.argmax(axis=1)]
    return {
        "error": 100 * float(np.mean(found != y_test)),
        "loss": float(log_loss(y_test, shares, labels=model.classes_)),
        "seconds": seconds,
        "microseconds": per_row,
    }


def names():
    """Sets that boosting can take in minutes, and all tables."""
    known = [
        name
        for name in sets.NAMES
        if name not in LONG
        and not (sp.issparse(sets.load(name)[0]) and sets.load(name)[0].shape[1] > MOST_COLUMNS)
    ]
    return [*tables.TABLES, *known]


def main():
    warnings.filterwarnings("ignore")
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names():
        of_set = found.setdefault(name, {})
        for rival in RIVALS:
            if rival not in of_set:
                of_set[rival] = measure(name, rival)
                FILE.write_text(json.dumps(found, indent=1))
                print(name, rival, of_set[rival], flush=True)
    report(found)


def report(found):
    """The table of what was measured so far."""
    lines = [
        [name, *(cell(of_set.get(rival, {})) for rival in RIVALS)] for name, of_set in found.items()
    ]
    publish(
        "boosters",
        "Boosting as it comes on every data set and raw table",
        "Error % (log-loss; seconds of a fit with two threads; µs a prediction), one run. Tables "
        "with their categories and gaps; logistic regression with one column a category.",
        table(["data", *RIVALS], lines),
    )


def cell(one):
    if "error" not in one:
        return "refuses" if "refuses" in one else ""
    return (
        f"{one['error']:.2f} ({one['loss']:.3f}; {one['seconds']:.1f} s; "
        f"{one['microseconds']:.1f} µs)"
    )


if __name__ == "__main__":
    main()
