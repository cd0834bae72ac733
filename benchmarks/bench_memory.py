"""Peak memory of `fit` beyond the data, in a process of its own (Linux)."""

import json
import subprocess
import sys

from benchmarks.race import publish, table

CHILD = """
import json, sys
import numpy as np
from polyplane import AMMClassifier
from tests.real_data import mnist, mnist_bytes
storage = sys.argv[1]
X, y, _, _ = mnist() if storage == "csr" else mnist_bytes()
if storage == "float32":
    X = X.astype(np.float32)
y = y.astype(np.int64)
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if storage == "csr" else X.nbytes
model = AMMClassifier(alpha=6.5 if storage != "csr" else 1e-4, max_iter=2)
model.fit(X[:500], y[:500])  # loads the compiled code
def kib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # the high-water mark starts anew
before = kib("VmRSS")
model.fit(X, y)
print(json.dumps({"data": size, "grown": 1024 * (kib("VmHWM") - before)}))
"""


def main():
    rows = []
    for storage in ("csr", "float32", "bytes"):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, storage], capture_output=True, text=True, check=True
        )
        facts = json.loads(done.stdout)
        data, grown = facts["data"], facts["grown"]
        rows.append(
            [storage, f"{data / 2**20:.1f}", f"{grown / 2**20:.1f}", f"{1 + grown / data:.2f}"]
        )
    publish(
        "memory",
        "Peak memory of fit",
        "MNIST, ten classes, two epochs; what the process grew by at its peak during `fit`.",
        table(["storage", "data, MiB", "fit adds, MiB", "peak over data"], rows),
    )
