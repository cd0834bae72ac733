"""This tree raced against an earlier commit: passes of a fit, predictions, and imports.

`BEFORE=<commit> python -m benchmarks before`. Both are run in processes of their own that take
turns, on the same rows, and must reach the same planes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.race import as_installed, publish, table
from benchmarks.sets import load

COMMIT = os.environ.get("BEFORE", "e9d5574")
ROOT = Path(__file__).parent.parent
ROUNDS, FEW = 5, 500
IMPORT = """
import time
start = time.process_time()
import polyplane
polyplane.AMMClassifier
print(time.process_time() - start)
"""
FITS = """
import json, sys, time
import numpy as np, scipy.sparse as sp, polyplane
found = {}
for name in json.loads(sys.argv[2]):
    y = np.load(f"{sys.argv[1]}/{name}.y.npy")
    is_sparse = name.startswith("a9a")
    X = sp.load_npz(f"{sys.argv[1]}/{name}.npz") if is_sparse else np.load(f"{sys.argv[1]}/{name}.npy")
    model = polyplane.AMMClassifier(max_iter=1, random_state=0).fit(X, y)
    for what, work in {"fit": lambda: model.fit(X, y), "predict": lambda: model.predict(X)}.items():
        work()
        times = []
        for _ in range(15):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        found[f"{name}, {what}"] = min(times)
    found[name] = float(np.abs(model.planes_).sum())
print(json.dumps(found))
"""  # noqa: E501


def rows_in(folder: Path) -> list[str]:
    """The sets, written where both find them."""
    digits, y, _, _ = load("MNIST")
    sets = {"a9a": load("a9a")[:2], "MNIST, 2 or not": (digits, y == 2), "MNIST": (digits, y)}
    few = {f"{name}, {FEW} rows": (X[:FEW], y[:FEW]) for name, (X, y) in sets.items()}
    for name, (X, y) in (sets | few).items():
        np.save(folder / f"{name}.y.npy", y)
        if sp.issparse(X):
            sp.save_npz(folder / f"{name}.npz", X)
        else:
            np.save(folder / f"{name}.npy", X)
    return list(sets | few)


def said(source: Path, cache: Path, *words: str) -> str:
    """What Python prints that runs these words on the sources of one side, its bytecode at hand."""
    own = as_installed(cache, PYTHONPATH=str(source), NUMBA_CACHE_DIR=str(cache))
    done = subprocess.run(
        [sys.executable, "-c", *words], capture_output=True, text=True, check=True, cwd=cache,
        env=own,
    )  # fmt: skip
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = rows_in(folder)
        (folder / "before").mkdir()
        packed = subprocess.run(
            ["git", "-C", ROOT, "archive", COMMIT, "src"], check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder / "before"], input=packed.stdout, check=True)
        sides = {"before": folder / "before" / "src", "now": ROOT / "src"}
        found = {side: [] for side in sides}
        for _ in range(ROUNDS + 1):
            for side, source in sides.items():
                cache = folder / f"cache of {side}"
                cache.mkdir(exist_ok=True)
                times = json.loads(said(source, cache, FITS, str(folder), json.dumps(names)))
                times["import polyplane.AMMClassifier"] = float(said(source, cache, IMPORT))
                found[side].append(times)
    least = {
        side: {what: min(one[what] for one in runs[1:]) for what in runs[0]}
        for side, runs in found.items()
    }
    reached = {side: {name: least[side].pop(name) for name in names} for side in sides}
    rows = [
        [what, f"{1e3 * before:.2f}", f"{1e3 * least['now'][what]:.2f}",
         f"{least['now'][what] / before:.2f}"]
        for what, before in least["before"].items()
    ]  # fmt: skip
    publish(
        "before",
        f"This tree beside {COMMIT}",
        "AMM in one pass and its predictions; milliseconds of the processor, the least of "
        f"{ROUNDS} processes on each side, which take turns. Planes are "
        + ("the same." if reached["before"] == reached["now"] else "NOT the same."),
        table(["", "before", "now", "ratio"], rows),
    )
