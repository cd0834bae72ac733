"""Saving and loading a model of 1,000 planes over a million columns, beside plain file access."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.race import publish, table

N_PLANES, N_COLUMNS = 1_000, 1_000_000
MEMORY = """
import json, sys, time
def kib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
def start_anew():
    open("/proc/self/clear_refs", "w").write("5")
    return kib("VmRSS")
"""
WRITE = (
    MEMORY
    + """
import os
import numpy as np, scipy.sparse as sp
import polyplane as pp
path, plain, n_planes, n_columns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
columns = np.arange(n_planes) * (n_columns // n_planes)
X = sp.csr_matrix(
    (np.ones(n_planes, np.float32), columns, np.arange(n_planes + 1)), (n_planes, n_columns)
)
small = pp.PegasosClassifier(average=False).fit(X[:3, :9], np.arange(3))
pp.save(small, path)
model = pp.PegasosClassifier(average=False).partial_fit(X, np.arange(n_planes))
model._training.models[0].planes.sums[:] += np.float32(0.5)  # no page of zeros that is not there
before = start_anew()
start = time.perf_counter()
pp.save(model, path)
seconds = time.perf_counter() - start
grown = kib("VmHWM") - before
data = model._training.models[0].planes.sums
start = time.perf_counter()
with open(plain, "wb") as file:
    file.write(data.data)
    file.flush()
    os.fsync(file.fileno())
print(json.dumps({
    "seconds": seconds, "plain": time.perf_counter() - start, "grown": 1024 * grown,
    "bytes": os.path.getsize(path), "score": float(model.plane_scores(X[5:6])[0, 5]),
}))
"""
)
READ = (
    MEMORY
    + """
import polyplane as pp
from polyplane.estimator.files import saving  # imports are not what is measured
from polyplane.engine.inspection import largest_magnitude
import numpy as np
largest_magnitude(np.ones(9, np.float32)), largest_magnitude(np.ones(9))
path, plain = sys.argv[1], sys.argv[2]
start = time.perf_counter()
with open(plain, "rb", buffering=0) as file:
    room = bytearray(1 << 20)
    while file.readinto(room):
        pass
plain_seconds = time.perf_counter() - start
before = start_anew()
start = time.perf_counter()
model = pp.load(path)
print(json.dumps({
    "seconds": time.perf_counter() - start, "plain": plain_seconds,
    "grown": 1024 * (kib("VmHWM") - before),
}))
"""
)


def child(code: str, *words: object) -> dict:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def forget(*paths: Path) -> None:
    """Let the disk be read, not the system's memory of it."""
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        os.fsync(number)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(number)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model, plain = Path(folder, "model"), Path(folder, "plain")
        written = child(WRITE, model, plain, N_PLANES, N_COLUMNS)
        forget(model, plain)
        cold = child(READ, model, plain)
        warm = child(READ, model, plain)
    size = written["bytes"]
    rows = []
    for name, found in (("save", written), ("load, from disk", cold), ("load, again", warm)):
        seconds, beside = found["seconds"], found["plain"]
        extra = found["grown"] / size
        memory = 1 + extra if name == "save" else extra
        rows.append(
            [name, f"{seconds:.2f}", f"{size / seconds / 1e9:.2f}", f"{beside:.2f}",
             f"{seconds / beside:.2f}", f"{memory:.2f}"]
        )  # fmt: skip
    publish(
        "model_files",
        "Model files",
        f"A model of {N_PLANES:,} planes over {N_COLUMNS:,} columns, {size / 1e9:.2f} GB. Beside "
        "it the same bytes written (with fsync) or read plainly. Memory is the peak while saving "
        "(the model included) or what loading adds, over the size of the file; checksum and a look "
        "for NaN are part of loading.",
        table(["", "seconds", "GB/s", "plain, s", "ratio", "memory / file"], rows),
    )
