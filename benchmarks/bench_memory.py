"""Peak memory of `fit` beyond the data, in a process of its own."""

import json
import subprocess
import sys

from benchmarks.race import publish, table

CHILD = """
import json, resource, sys
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
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def now():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
# bring the high-water mark up to the present, so that what fit adds is seen
filler = np.ones(max(0, peak() - now()) + (64 << 20), np.uint8)
del filler
before_peak, before = peak(), now()
model.fit(X, y)
grown = max(0, peak() - before_peak) + (before_peak - before if peak() > before_peak else 0)
print(json.dumps({"data": size, "grown": grown, "bound": before_peak - before}))
"""


def main():
    rows = []
    for storage in ("csr", "float32", "bytes"):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, storage], capture_output=True, text=True, check=True
        )
        facts = json.loads(done.stdout)
        grown = facts["grown"] or facts["bound"]
        words = f"{grown / 2**20:.1f}" if facts["grown"] else f"below {grown / 2**20:.0f}"
        rows.append(
            [storage, f"{facts['data'] / 2**20:.1f}", words, f"{1 + grown / facts['data']:.2f}"]
        )
    publish(
        "memory",
        "Peak memory of fit",
        "MNIST, ten classes, two epochs; what the process grew by at its peak during `fit`.",
        table(["storage", "data, MiB", "fit adds, MiB", "peak over data"], rows),
    )
