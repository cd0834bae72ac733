"""Probabilities: log-loss and expected calibration error beside a calibrated SVM and boosting."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import sets
from benchmarks.race import publish, table
from polyplane import PolyplaneClassifier

NAMES = ["magic04", "covtype, 2 or not", "spambase", "pendigits"]
MOST_ROWS = 8_000  # a calibrated SVM is five SVMs
N_BINS = 15


def calibration_error(y, shares, classes):
    """Mean distance between confidence and accuracy over bins of equal width."""
    confidence, right = shares.max(axis=1), classes[shares.argmax(axis=1)] == y
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    return sum(
        np.mean(bins == b) * abs(confidence[bins == b].mean() - right[bins == b].mean())
        for b in np.unique(bins)
    )


def machines():
    svm = CalibratedClassifierCV(SVC(C=10), ensemble=False)
    uncalibrated = PolyplaneClassifier(random_state=0, n_jobs=-1)
    return {
        "SVC, calibrated": make_pipeline(StandardScaler(), svm),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "polyplane": PolyplaneClassifier(random_state=0, n_jobs=-1),
        "polyplane without its factor": uncalibrated,
    }


def main():
    rows = []
    for name in NAMES:
        X, y, X_test, y_test = sets.load(name)
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        for machine, model in machines().items():
            model.fit(X[some], y[some])
            if machine.endswith("factor"):
                model._training.own.calibration = 1.0
            shares = model.predict_proba(X_test)
            error = 100 * np.mean(model.classes_[shares.argmax(axis=1)] != y_test)
            ece = calibration_error(y_test, shares, model.classes_)
            loss = log_loss(y_test, shares, labels=model.classes_)
            rows.append([name, machine, f"{error:.2f}", f"{loss:.4f}", f"{100 * ece:.2f}"])
            print(rows[-1], flush=True)
    publish(
        "calibration",
        "Probabilities",
        f"At most {MOST_ROWS} training rows, one seed; the calibrated SVM has C = 10, its sigmoid "
        "is fitted by five-fold cross-validation, a second model beside the SVM.",
        table(["data", "machine", "test error %", "log-loss", "calibration error %"], rows),
    )
