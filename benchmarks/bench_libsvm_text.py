"""LIBSVM text: megabytes a second of our reader and of scikit-learn's, one core and two."""

import io
import lzma
import time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.race import publish, table
from polyplane.data import libsvm_text
from polyplane.data.chunks import BadRows
from tests.real_data import ROOT, mnist_bytes

ROUNDS = 7
MNIST_ROWS = 20_000
CHUNK_ROWS = 8192


def mnist_texts():
    """MNIST as whole pixels, as shortest float32 decimals, and as scikit-learn writes it."""
    pixels, y = (part[:MNIST_ROWS] for part in mnist_bytes()[:2])
    whole, shortest, sixteen = io.BytesIO(), io.BytesIO(), io.BytesIO()
    scaled = sp.csr_matrix(pixels.astype(np.float32) / np.float32(255))
    libsvm_text.write(whole, pixels, y)
    libsvm_text.write(shortest, scaled, y)
    dump_svmlight_file(sp.csr_matrix(pixels / 255), y, sixteen, zero_based=False)
    return {
        "MNIST, pixels 0 to 255": whole.getvalue(),
        "MNIST, pixel / 255, 8 digits": shortest.getvalue(),
        "MNIST, pixel / 255, 16 digits": sixteen.getvalue(),
    }


def chunks(text):
    """Read in chunks, of which the last is kept."""
    for chunk in libsvm_text.chunks(io.BytesIO(text), "text", CHUNK_ROWS, bad=BadRows()):
        last = chunk
    return last


def whole(text, n_threads):
    return libsvm_text.read(io.BytesIO(text), "text", bad=BadRows(), n_threads=n_threads)


def check(text):
    """Our values are scikit-learn's, rounded to float32."""
    X, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    found = whole(text, 2)
    assert np.array_equal(found.X.indptr, X.indptr)
    assert np.array_equal(found.X.indices, X.indices)
    assert found.X.data.tobytes() == X.data.astype(np.float32).tobytes()
    assert np.array_equal(found.y, y)
    return X, y


def both_times(jobs):
    """Wall and processor seconds of each job in all rounds, after one to warm up."""
    out = {name: [] for name in jobs}
    for turn in range(ROUNDS + 1):
        for name, job in jobs.items():
            start = time.perf_counter(), time.process_time()
            job()
            if turn > 0:
                out[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return {name: np.array(seconds).T for name, seconds in out.items()}


def line_of(name, text):
    X, y = check(text)
    jobs = {
        "peer": lambda: load_svmlight_file(io.BytesIO(text), zero_based=False),
        "chunks": lambda: chunks(text),
        "one": lambda: whole(text, 1),
        "two": lambda: whole(text, 2),
        "write": lambda: libsvm_text.write(io.BytesIO(), X, y),
    }
    seconds = both_times(jobs)
    wall = {job: np.median(pair[0]) for job, pair in seconds.items()}
    processor = {job: np.median(pair[1]) for job, pair in seconds.items()}
    least = {job: pair.min(axis=1) for job, pair in seconds.items()}
    megabytes = len(text) / 1e6
    return [
        name,
        f"{megabytes:.1f}",
        f"{len(text) / X.nnz:.1f}",
        *(
            f"{megabytes / processor[job]:.0f} ({megabytes / least[job][1]:.0f})"
            for job in ("peer", "chunks", "one", "write")
        ),
        f"{processor['peer'] / processor['one']:.0f}",
        f"{wall['peer'] / wall['two']:.0f}",
        f"{wall['one'] / wall['two']:.2f} ({least['one'][0] / least['two'][0]:.2f})",
    ]


def main():
    texts = mnist_texts()
    for name in ("a9a", "reuters-lasvm"):
        texts[name] = lzma.decompress((ROOT / name / "train.libsvm.xz").read_bytes())
    header = [
        "text", "MB", "bytes an entry", "scikit-learn", f"chunks of {CHUNK_ROWS:,} rows",
        "whole, one thread", "write", "one thread / scikit-learn",
        "two threads / scikit-learn", "two threads / one",
    ]  # fmt: skip
    publish(
        "libsvm_text",
        "LIBSVM text",
        f"Megabytes per second of processor time, medians of {ROUNDS} rounds that take turns "
        "(fastest in brackets): text in memory, new arrays each time, every value compared with "
        "scikit-learn's. With two threads, ratios of elapsed time: they say little where other "
        "work has a core.",
        table(header, [line_of(name, text) for name, text in texts.items()]),
    )
