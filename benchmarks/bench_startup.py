"""Import, and the first fit of a new process with and without cached machine code."""

import statistics
import subprocess
import sys
import tempfile

from benchmarks.race import as_installed, publish, table

IMPORTS = {
    "import polyplane": "import polyplane",
    "from polyplane import AMMClassifier": "from polyplane import AMMClassifier",
    "of which: import sklearn.base": "import sklearn.base",
    "of which: import numba": "import numba",
}
FIRST_FIT = """
import numpy as np
import scipy.sparse as sp
import polyplane
estimator = polyplane.AMMClassifier()
X = sp.random(500, 50, 0.2, "csr", np.float32, random_state=0)
y = np.arange(500) % 2
"""


def seconds(setup: str, statement: str, folder: str, **environment: str) -> float:
    """Wall time of a statement in a new process."""
    code = f"import time\n{setup}\nstart = time.perf_counter()\n{statement}\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(time.perf_counter() - start)"],
        capture_output=True,
        text=True,
        check=True,
        env=as_installed(folder, **environment),
    )
    return float(done.stdout)


def main():
    rows, fit = [], "estimator.fit(X, y)"
    with tempfile.TemporaryDirectory() as folder:
        for name, statement in IMPORTS.items():
            times = [seconds("", statement, folder) for _ in range(6)][1:]  # the first may compile
            rows.append([name, f"{statistics.median(times):.2f}"])
        cold = seconds(FIRST_FIT, fit, folder, NUMBA_CACHE_DIR=folder)
        warm = [seconds(FIRST_FIT, fit, folder, NUMBA_CACHE_DIR=folder) for _ in range(5)]
    rows.append(["first fit on a machine, which compiles", f"{cold:.2f}"])
    rows.append(["first fit of a later process", f"{statistics.median(warm):.2f}"])
    publish(
        "startup",
        "Start-up",
        "Seconds in a new process, median of five. `import polyplane` loads names when they are "
        "first used; an estimator needs scikit-learn and Numba, whose own imports are beside it.",
        table(["what", "seconds"], rows),
    )
