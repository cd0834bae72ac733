"""LIBSVM text: megabytes a second of our reader and of scikit-learn's, one core and two."""

import io
import lzma
import time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.race import publish, table
from polyplane.data.chunks import BadRows
from polyplane.data.formats.libsvm import reader as libsvm_text
from tests.real_data import ROOT, mnist_bytes

ROUNDS = 7
MNIST_ROWS = 20_000
CHUNK_ROWS = 8192
COPIES = {"a9a": 40, "reuters-lasvm": 3, "sector": 1, "ijcnn1": 1, "shuttle": 1}


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


def seconds_of(jobs, rounds):
    """By job: elapsed, of the processor, and of this thread, in all rounds but one to warm up."""
    out = {name: [] for name in jobs}
    clocks = time.perf_counter, time.process_time, time.thread_time
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            start = np.array([clock() for clock in clocks])
            job()
            if turn > 0:
                out[name].append([clock() for clock in clocks] - start)
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
    seconds = seconds_of(jobs, ROUNDS)
    processor = {job: np.median(s[1]) for job, s in seconds.items()}
    least = {job: found.min(axis=1) for job, found in seconds.items()}
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
        f"{np.median(seconds['one'][0]) / np.median(seconds['two'][0]):.2f} "
        f"({least['one'][0] / least['two'][0]:.2f})",
    ]


def main():
    texts = mnist_texts()
    for name, times in COPIES.items():
        text = lzma.decompress((ROOT / name / "train.libsvm.xz").read_bytes())
        texts[f"{name}, {times} times"] = text * times
    header = [
        "text", "MB", "bytes an entry", "scikit-learn", f"chunks of {CHUNK_ROWS:,} rows",
        "whole", "write", "whole / scikit-learn", "two threads / one",
    ]  # fmt: skip
    publish(
        "libsvm_text",
        "LIBSVM text",
        f"Megabytes per second of processor time, medians of {ROUNDS} rounds that take turns "
        "(fastest in brackets): text in memory, new arrays each time, every value compared with "
        "scikit-learn's. Two threads beside one by elapsed time, which says little where other "
        "work has a core.",
        table(header, [line_of(name, text) for name, text in texts.items()]),
    )
