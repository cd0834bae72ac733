"""MNIST's digits for the kernel machines: CSR rows of pixels in [0, 1], and LIBSVM's figures.

LIBSVM needs minutes a digit, so that its figures are measured once and kept with the machine they
were measured on; times are compared on that machine only. They are seconds of one processor, so
that what else the machine did meanwhile does not count.
"""

import json
import time

import numpy as np
from sklearn.svm import SVC

from benchmarks.race import RESULTS, processor
from tests.real_data import mnist

FILE = RESULTS / "libsvm_digits.json"
GAMMA = 0.005
DIGITS = range(10)


def load():
    """X, y, X_test, y_test."""
    return mnist()


def libsvm(digit):
    """Seconds, support vectors and test error (%) of SVC on one digit against the rest."""
    found = json.loads(FILE.read_text()) if FILE.exists() else {"machine": processor()}
    if found["machine"] != processor():
        raise RuntimeError(f"{FILE.name} is of another machine: remove it, and wait an hour.")
    if str(digit) not in found:
        found[str(digit)] = _measure(digit)
        FILE.write_text(json.dumps(found, indent=1))
    return found[str(digit)]


def _measure(digit):
    X, y, X_test, y_test = (np.asarray(part.toarray() if hasattr(part, "toarray") else part)
                            for part in load())  # fmt: skip
    start = time.process_time()
    model = SVC(C=1000, gamma=GAMMA, cache_size=256).fit(X.astype(np.float64), y == digit)
    seconds = time.process_time() - start
    wrong = model.predict(X_test.astype(np.float64)) != (y_test == digit)
    return {
        "seconds": seconds, "vectors": int(model.support_.size),
        "error": 100 * float(np.mean(wrong)),
    }  # fmt: skip
