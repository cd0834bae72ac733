"""Import, and the first work of a new process with and without cached machine code."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.race import as_installed, publish, table

IMPORTS = {
    "import polyplane": "import polyplane",
    "from polyplane import AMMClassifier": "from polyplane import AMMClassifier",
    "of which: import sklearn.base": "import sklearn.base",
    "of which: import numba": "import numba",
}
TIMES, COLD_TIMES = 5, 3  # in new processes, of which the median is told
ROWS = 20_000  # of a table with numbers and words
BUDGET = 10  # seconds of an exploration
FIRST_FIT = """
import numpy as np
import scipy.sparse as sp
import polyplane
estimator = polyplane.AMMClassifier()
X = sp.random(500, 50, 0.2, "csr", np.float32, random_state=0)
y = np.arange(500) % 2
"""
TABLE = """
import pandas as pd
import polyplane as pp
X = pd.read_csv({path!r})
y = X.pop("y")
machine = pp.PolyplaneClassifier(random_state=0)
"""
FIT, SAVE = "machine.fit(X, y)", "pp.save(machine, {model!r})"
PREDICT = "pp.load({model!r}).predict(X[:5])"
EXPLORE = "pp.explore({path!r}, label='y', budget={budget})"


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


def cold_and_warm(setup: str, statement: str, folder: str) -> list[str]:
    """Medians where nothing has been compiled, and where all has."""
    cold, warm = [], []
    for _ in range(COLD_TIMES):
        with tempfile.TemporaryDirectory() as empty:
            cold.append(seconds(setup, statement, folder, NUMBA_CACHE_DIR=empty))
            times = max(1, TIMES // COLD_TIMES)
            warm += [seconds(setup, statement, folder, NUMBA_CACHE_DIR=empty) for _ in range(times)]
    return [f"{statistics.median(cold):.2f}", f"{statistics.median(warm):.2f}"]


def write_table(path: Path) -> None:
    """Numbers and words, on whose products and sums the label depends."""
    generator = np.random.default_rng(0)
    words = {name: generator.integers(0, n, ROWS) for name, n in (("job", 12), ("town", 40))}
    numbers = {name: generator.normal(size=ROWS).round(3) for name in "abcdef"}
    odds = 2 * numbers["a"] * numbers["b"] + np.sin(3 * numbers["c"]) + words["job"] % 3 - 1
    frame = pd.DataFrame(
        numbers | {name: [f"{name} {k}" for k in of] for name, of in words.items()}
    )
    frame["y"] = np.where(generator.random(ROWS) < 1 / (1 + np.exp(-odds)), "yes", "no")
    frame.to_csv(path, index=False)


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "table.csv"), Path(folder, "table.model")
        write_table(path)
        given = {"path": str(path), "model": str(model), "budget": BUDGET}
        setup = TABLE.format(**given)
        for name, statement in IMPORTS.items():
            times = [seconds("", statement, folder) for _ in range(TIMES + 1)][1:]
            rows.append([name, "", f"{statistics.median(times):.2f}"])  # the first may compile
        seconds(setup + FIT, SAVE.format(**given), folder)
        for name, begun, statement in (
            ("first fit of `AMMClassifier`, 500 sparse rows", FIRST_FIT, "estimator.fit(X, y)"),
            (f"first fit of `PolyplaneClassifier`, a table of {ROWS:,} rows", setup, FIT),
            ("loading its file, and a first prediction", setup, PREDICT.format(**given)),
            (f"exploring that table's file for {BUDGET} s", setup, EXPLORE.format(**given)),
        ):
            rows.append([name, *cold_and_warm(begun, statement, folder)])
    publish(
        "startup",
        "Start-up",
        f"Seconds in a new process, medians of {TIMES}, or of {COLD_TIMES} where something is "
        "compiled or may be: on a machine where nothing has been compiled yet, and in later "
        "processes. `import polyplane` loads names when they are first used; an estimator needs "
        "scikit-learn and Numba, whose own imports are beside it.",
        table(["what", "nothing compiled", "later"], rows),
    )
