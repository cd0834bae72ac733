"""Fuzzing of the LIBSVM reader: only DataError may come out, and scikit-learn must agree.

`python -m tests.data.formats.libsvm.fuzz_coverage 60` takes a minute, `... 60 corpus/` keeps what
it finds.
With NUMBA_DISABLE_JIT=1 the loops are Python: the fuzzer then sees which lines an input reaches,
and an index out of range is an exception.
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

import atheris
import numba
import numpy as np
from sklearn.datasets import load_svmlight_file

# Numba cannot compile what has been instrumented
traced = atheris.instrument_imports(include=["polyplane.data"])
with traced if numba.config.DISABLE_JIT else contextlib.nullcontext():
    from polyplane.data.chunks import BadRows, DataError
    from polyplane.data.formats.libsvm import reader as libsvm_text

ALPHABET = b"0123456789::..--+eE  \n\n\r\t#qid1111"
# what scikit-learn reads and we refuse, or it reads without looking
OUR_RULES = ("stands twice", "too large", "above", "where an index", "qid", "several", "label")
SEEDS = (
    b"1 1:2 3:0.25\n-1 qid:2 2:1e-3 # n\r\n\n+2.5 1:-7 5:123456789.5\n3 9:1 4:0.1",
    b"-1 3:1 11:1 14:1 \n+1 0:0.5 1:-0.25\n",
)


def outcome(work):
    """What the work returns, or its error."""
    try:
        return work()
    except DataError as error:
        return error


def whole(text):
    return next(libsvm_text.chunks(io.BytesIO(text), "fuzz", sys.maxsize, bad=BadRows()), None)


def in_chunks(text, chunk_rows):
    parts = libsvm_text.chunks(io.BytesIO(text), "fuzz", chunk_rows, bad=BadRows(skips=True))
    return sum(part.y.size for part in parts)


def agree(text, found):
    """Compare with scikit-learn where it reads the text."""
    try:
        X, y = load_svmlight_file(io.BytesIO(text), zero_based="auto")
    except (ValueError, OverflowError, IndexError):
        return
    if found is None:
        assert not y.size, text
        return
    if isinstance(found, DataError):
        assert any(words in found.problem for words in OUR_RULES), (text, found)
        return
    with np.errstate(over="ignore"):
        wanted = X.data.astype(np.float32)
    assert found.X.data.tobytes() == wanted.tobytes(), text
    assert np.array_equal(found.X.indices, X.indices), text
    assert np.array_equal(found.X.indptr, X.indptr), text
    assert found.y.dtype.kind == "U" or np.array_equal(found.y, y), text


def one_input(data):
    source = atheris.FuzzedDataProvider(data)
    size, is_tidy = source.ConsumeIntInRange(1, 200), source.ConsumeBool()
    text = source.ConsumeBytes(sys.maxsize)
    if is_tidy:
        text = bytes(ALPHABET[byte % len(ALPHABET)] for byte in text)
    libsvm_text.BLOCK = size
    found = outcome(lambda: whole(text))
    outcome(lambda: in_chunks(text, size % 5 + 1))
    if is_tidy:
        agree(text, found)


def main():
    seconds, *folders = sys.argv[1:] or ["60"]
    with tempfile.TemporaryDirectory() as seeds:
        for number, seed in enumerate(SEEDS):
            (Path(seeds) / str(number)).write_bytes(seed + b"\x40\x00")  # raw, blocks of 64
        options = [f"-max_total_time={seconds}", "-max_len=400", *folders, seeds]
        atheris.Setup([sys.argv[0], *options], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
