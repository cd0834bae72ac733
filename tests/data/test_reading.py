"""All rows, or chunks of them: no row lost, no thread left, several files as one."""

import gc
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplane.data.chunk_sizes import joined, mixed
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.formats.libsvm import reader as libsvm_text
from polyplane.data.reading import ahead, read, stream
from tests.real_data import ROOT, _need, libsvm_set, mnist_bytes


def some_rows(n_rows, width=7, seed=0):
    """Sparse rows of small numbers, each with its place in column 0, and labels."""
    generator = np.random.default_rng(seed)
    X = generator.integers(-2, 3, (n_rows, width)).astype(np.float32)
    X[:, 0] = 1 + np.arange(n_rows)
    X[-1, -1] = 1
    return X, generator.integers(0, 3, n_rows)


def text_of(X, y, base=1):
    file = io.BytesIO()
    libsvm_text.write(file, X, y, base)
    return file.getvalue()


@pytest.fixture
def rows():
    return some_rows(100)


@pytest.fixture
def path(tmp_path, rows):
    path = tmp_path / "rows.libsvm"
    path.write_bytes(text_of(*rows))
    return path


def all_rows(chunks):
    """Dense rows and labels of some chunks."""
    whole = joined(list(chunks))
    return (whole.X if isinstance(whole.X, np.ndarray) else whole.X.toarray()), whole.y


def assert_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Chunks


def test_read_gives_all_rows(path, rows):
    X, y = read(path)
    assert (X.dtype, X.indices.dtype, y.dtype) == (np.float32, np.int32, np.int64)
    assert_equal((X.toarray(), y), rows)


@pytest.mark.parametrize("chunk_rows", [1, 7, 50, 100, 1000])
def test_chunks_have_the_size_asked_for_in_every_pass(path, rows, chunk_rows):
    chunks = stream(path, chunk_rows=chunk_rows)
    for _ in range(3):
        found = list(chunks)
        sizes = [chunk.X.shape[0] for chunk in found]
        assert sizes[:-1] == [chunk_rows] * (len(sizes) - 1)
        assert_equal(all_rows(found), rows)
    assert chunks.n_passes == 3


def test_later_passes_are_as_wide_as_the_first_has_ended(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n0 2:1\n1 5:1\n")
    chunks = stream(path, chunk_rows=1)
    assert [chunk.X.shape[1] for chunk in chunks] == [1, 2, 5]
    assert [chunk.X.shape[1] for chunk in chunks] == [5, 5, 5]
    assert read(path)[0].shape == (3, 5)


@pytest.mark.parametrize("chunk_rows", [0, -1, 2.5, "9"])
def test_a_size_that_cannot_be_is_refused(path, chunk_rows):
    with pytest.raises(ValueError, match=r"chunk_rows is .*at least 1"):
        stream(path, chunk_rows=chunk_rows)


def test_files_of_other_values_first_have_the_same_columns_with_one_layout(tmp_path, caplog):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("town,age,label\nUlm,1,0\nBonn,2,1\n")
    test.write_text("town,age,label\nBonn,2,1\nUlm,1,0\n")
    layout = stream(train).layout
    (X, _), (X_test, _) = (read(path, layout=layout) for path in (train, test))
    np.testing.assert_array_equal(X.toarray(), X_test.toarray()[::-1])
    assert not caplog.messages
    read(train)
    (remark,) = caplog.messages  # that they would not have them without
    assert "layout=pp.stream(path).layout" in remark


def test_a_table_of_numbers_has_the_columns_of_any_other(tmp_path, caplog):
    path = tmp_path / "train.csv"
    path.write_text("size,age,label\n1,1,0\n2,2,1\n")
    read(path)
    assert not caplog.messages


def test_no_labels_are_none(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.ones((5, 2), np.float32))
    assert read(path)[1] is None
    assert [chunk.y.size for chunk in stream(path, chunk_rows=2)] == [0, 0, 0]
    assert [chunk.y.size for chunk in stream(path, chunk_rows=2).shuffled(0)] == [0, 0, 0]


# Bad rows


def test_bad_rows_are_skipped_and_counted_in_each_pass(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n2 x\n3 1:3\n4 2:1 2:1\n")
    chunks = stream(path, on_bad="skip", chunk_rows=1)
    for _ in range(2):
        assert [chunk.y.tolist() for chunk in chunks] == [[1], [3]]
        assert chunks.bad.n_skipped == 2
        assert [(error.line, error.column) for error in chunks.bad.errors] == [(2, 3), (4, 7)]
    assert read(path, on_bad="skip")[1].tolist() == [1, 3]
    with pytest.raises(DataError, match="line 2, column 3"):
        list(stream(path))
    with pytest.raises(ValueError, match="on_bad is 'ignore', expected 'raise' or 'skip'"):
        stream(path, on_bad="ignore")


def test_where_all_rows_are_bad_the_first_is_told(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_bytes(b"1 x\n2 y\n")
    for reading in (read, lambda *args, **options: list(stream(*args, **options))):
        with pytest.raises(DataError, match=r"all of its 2 rows are bad; the first: .*line 1"):
            reading(path, on_bad="skip")


def test_left_out_rows_of_tables_are_counted_once_a_pass(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,label\n1,1\n?,0\n2,1\n")
    chunks = stream(path, missing="skip")
    for _ in range(2):
        assert all_rows(chunks)[1].tolist() == [1, 1]
        assert chunks.layout.n_left_out == 1


# Several files


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6)), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_several_files_are_one_stream_as_wide_as_the_widest(tmp_path, shapes, chunk_rows):
    parts = [some_rows(*shape, seed) for seed, shape in enumerate(shapes)]
    paths = [tmp_path / f"{k}.libsvm" for k in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(text_of(*part))
    width = max(width for _, width in shapes)
    wide = [np.pad(X, [(0, 0), (0, width - X.shape[1])]) for X, _ in parts]
    expected = np.concatenate(wide), np.concatenate([y for _, y in parts])
    X, y = read(paths)
    assert_equal((X.toarray(), y), expected)
    found = list(stream(paths, chunk_rows=chunk_rows))
    widths = [chunk.X.shape[1] for chunk in found]
    assert widths == sorted(widths)
    assert {chunk.X.shape[0] for chunk in found[:-1]} <= {chunk_rows}
    assert_equal(all_rows(found), expected)


def test_a_pattern_stands_for_files_in_the_order_of_their_names(tmp_path):
    (tmp_path / "folder.libsvm").mkdir()
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.libsvm").write_bytes(f"{ord(name)} 1:1\n".encode())
        (tmp_path / f"{name}.libsvm.polyplane.arrow").write_bytes(b"a cache")
    assert read(f"{tmp_path}/*")[1].tolist() == [97, 98, 99]
    assert read(tmp_path / "?.libsvm")[1].tolist() == [97, 98, 99]
    assert read([f"{tmp_path}/[bc]*", tmp_path / "a.libsvm"])[1].tolist() == [98, 99, 97]
    with pytest.raises(DataError, match=r"none\*: found no file of that name"):
        stream(f"{tmp_path}/none*")
    with pytest.raises(DataError, match="found no file"):
        stream([])


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path):
    path = tmp_path / "rows[1].libsvm"
    path.write_bytes(b"1 1:1\n")
    assert read(path)[1].tolist() == [1]


def test_files_go_on_where_the_first_starts(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(b"spam 0:1 2:2\n")
    second.write_bytes(b"7 1:3 2:4\n")
    X, y = read([first, second])
    assert X.toarray().tolist() == [[1, 0, 2], [0, 3, 4]]
    assert y.tolist() == ["spam", "7"]
    first.write_bytes(b"8 1:1 2:2\n")
    assert read([first, second])[0].toarray().tolist() == [[1, 2], [3, 4]]
    second.write_bytes(b"7 1:3\n7 0:4\n")
    with pytest.raises(DataError, match="2, line 2, column 3: found the index 0, but base=1"):
        read([first, second])
    second.write_bytes(b"spam 1:3\n")
    with pytest.raises(DataError, match="the label 'spam' is not a finite number"):
        read([first, second])


def test_text_goes_together_with_other_sparse_rows(tmp_path):
    text, packed = tmp_path / "1.libsvm", tmp_path / "2.npz"
    text.write_bytes(b"1 0:1 2:2\n")
    sp.save_npz(packed, sp.csr_matrix(np.float32([[0, 3, 0, 4]])))
    np.save(tmp_path / "2_y.npy", [7])
    X, y = read([text, packed])
    assert X.toarray().tolist() == [[1, 0, 2, 0], [0, 3, 0, 4]]
    assert y.tolist() == [1, 7]


@pytest.mark.parametrize("source", [None, 3, np.ones(3), b"rows", [None]])
def test_what_is_no_source_is_told(source):
    with pytest.raises(TypeError, match=r"A source is .*, expected a path"):
        read(source)


def test_tables_are_read_by_the_columns_of_the_first(tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_bytes(b"a,b,label\n1,red,x\n2,blue,y\n")
    second.write_bytes(b"label,b,a\ny,green,3\nx,red,4\n")
    X, y = read([first, second])
    assert X.toarray().tolist() == [[1, 1, 0, 0], [2, 0, 1, 0], [3, 0, 0, 1], [4, 1, 0, 0]]
    assert y.tolist() == ["x", "y", "y", "x"]
    learned = stream(first)
    list(learned)
    X, _ = read(second, layout=learned.layout)
    assert X.toarray().tolist() == [[3, 0, 0, 1], [4, 1, 0, 0]]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (np.ones((2, 3), np.float32), "found dense rows of 3 values, expected dense rows of 2"),
        (b"1 1:1\n", "found sparse rows, expected dense rows of 2"),
    ],
)
def test_files_that_do_not_go_together_are_told(tmp_path, second, words):
    first, other = tmp_path / "1.npy", tmp_path / "2.npy"
    np.save(first, np.ones((2, 2), np.float32))
    np.save(tmp_path / "1_y.npy", np.arange(2))
    if isinstance(second, bytes):
        other = tmp_path / "2.libsvm"
        other.write_bytes(second)
    else:
        np.save(other, second)
    for reading in (read, lambda source: list(stream(source))):
        with pytest.raises(DataError, match=words) as caught:
            reading([first, other])
        assert caught.value.path == str(other)


def test_files_with_and_without_labels_do_not_go_together(tmp_path):
    for name in "12":
        np.save(tmp_path / f"{name}.npy", np.ones((2, 2), np.float32))
    np.save(tmp_path / "1_y.npy", np.arange(2))
    with pytest.raises(DataError, match="found no labels, expected labels that are numbers"):
        read([tmp_path / "1.npy", tmp_path / "2.npy"])
    with pytest.raises(ValueError, match="labels names one file, but there are 2 sources"):
        read([tmp_path / "1.npy", tmp_path / "2.npy"], labels=tmp_path / "1_y.npy")


# Pipes


def test_standard_input_is_read_once(monkeypatch, rows):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text_of(*rows))))
    chunks = stream("-", chunk_rows=30)
    assert chunks.is_once
    assert_equal(all_rows(chunks), rows)
    with pytest.raises(DataError, match="standard input: can be read only once"):
        iter(chunks)


def test_files_are_read_again_and_pipes_are_not(path, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert not stream(path).is_once
    assert stream(tmp_path / "pipe").is_once
    assert stream(io.BytesIO(b"1 1:1")).is_once
    assert stream([path, "-"]).is_once


# Order


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=7),
    st.integers(1, 4),
    st.integers(0, 5),
    st.booleans(),
)
def test_mixed_rows_are_the_same_rows_within_each_window(sizes, n_pieces, seed, is_sparse):
    X, y = some_rows(sum(sizes))
    ends = np.cumsum(sizes)
    pieces = []
    for size, end in zip(sizes, ends, strict=True):
        part = slice(end - size, end)
        pieces.append(Chunk(sp.csr_matrix(X[part]) if is_sparse else X[part], y[part]))
    found = list(mixed(pieces, n_pieces, seed))
    places = np.concatenate([all_rows([chunk])[0][:, 0] for chunk in found]).astype(int) - 1
    assert_equal(all_rows(found), (X[places], y[places]))
    windows = [sum(sizes[k : k + n_pieces]) for k in range(0, len(sizes), n_pieces)]
    for start, size in zip(np.cumsum([0, *windows]), windows, strict=False):
        np.testing.assert_array_equal(
            np.sort(places[start : start + size]), np.arange(start, start + size)
        )


def test_a_shuffled_pass_is_decided_by_its_seed(path):
    chunks = stream(path, chunk_rows=10)
    same, again, other = (
        all_rows(chunks.shuffled(seed, window_rows=50))[0][:, 0] for seed in (1, 1, [1, 1])
    )
    assert same.tolist() == again.tolist()
    assert same.tolist() != other.tolist()
    assert set(same[:50]) == set(range(1, 51))
    assert same[:50].tolist() != sorted(same[:50])


def test_mixed_pieces_that_grew_wider_are_as_wide_as_the_widest(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n0 2:1\n1 5:1\n")
    assert {chunk.X.shape for chunk in stream(path, chunk_rows=1).shuffled(0)} == {(1, 5)}


# The thread


def n_readers():
    return sum(thread.name == "polyplane reader" for thread in threading.enumerate())


def settle(condition):
    """Wait until threads have come as far as they get."""
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("n_ahead", [1, 2, 5])
def test_the_reader_is_never_further_ahead_than_allowed(n_ahead):
    made = []

    def pieces():
        for k in range(20):
            made.append(k)
            yield k

    for k in ahead(pieces(), n_ahead):
        assert settle(lambda k=k: len(made) >= min(20, k + 1 + n_ahead))
        time.sleep(0.005)
        assert len(made) <= k + 1 + n_ahead
    assert n_readers() == 0


def endless(closed):
    try:
        while True:
            yield Chunk(np.ones((1, 1), np.float32), np.ones(1))
    finally:
        closed.set()


@pytest.mark.parametrize("way", ["break", "error", "interrupt", "forgotten"])
def test_the_thread_ends_with_the_loop_however_it_ends(way):
    closed = threading.Event()
    chunks = ahead(endless(closed))
    if way == "forgotten":
        next(chunks)
        del chunks
        gc.collect()
    else:
        error = {"break": None, "error": ValueError, "interrupt": KeyboardInterrupt}[way]
        try:
            for _ in chunks:
                if error is None:
                    break
                raise error
        except (ValueError, KeyboardInterrupt):
            pass
        chunks.close()
    assert closed.is_set()
    assert n_readers() == 0


def test_leaving_a_stream_early_closes_its_files(path, monkeypatch):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for chunks in (stream(path, chunk_rows=1), stream(path, chunk_rows=1).shuffled(0)):
        for _ in chunks:
            break
        del chunks
    assert n_readers() == 0
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) <= before


def test_an_error_comes_after_the_chunks_before_it(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:1\n" * 5 + b"1 x\n")
    found = []

    def follow():
        for chunk in stream(path, chunk_rows=2):
            found.append(chunk.X.shape[0])

    with pytest.raises(DataError, match="line 6"):
        follow()
    assert found == [2, 2]
    assert n_readers() == 0


WAITS_FOR_A_PIPE = """
    import sys, threading
    from polyplane.data.reading import stream
    try:
        for chunk in stream("-", chunk_rows=20_000, format="libsvm"):
            print(len(chunk.y), flush=True)
    except KeyboardInterrupt:
        print("interrupted", threading.active_count() <= 2, flush=True)
"""


def test_ctrl_c_ends_a_loop_that_waits_for_a_silent_pipe():
    command = [sys.executable, "-u", "-c", textwrap.dedent(WAITS_FOR_A_PIPE)]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        child.stdin.write(b"1 1:1\n" * 60_000)  # more than the reader wants at once
        child.stdin.flush()
        assert child.stdout.readline() == b"20000\n"
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)  # the pipe stays open
        assert child.stdout.read().endswith(b"interrupted True\n")
        assert child.returncode == 0, child.stderr.read()
    finally:
        child.kill()


def test_what_was_read_into_the_buffer_of_standard_input_is_not_lost():
    words = "import sys; from polyplane.data.reading import read; sys.stdin.buffer.readline(); "
    command = [sys.executable, "-c", words + "print(read('-')[1])"]
    done = subprocess.run(command, input=b"what\n1 1:1\n2 1:1\n", capture_output=True, check=False)
    assert (done.stdout, done.returncode) == (b"[1 2]\n", 0)


# Real data


@pytest.mark.compiled
def test_real_text_is_read_as_scikit_learn_reads_it():
    X, y, _, _ = libsvm_set("a9a")
    _need(ROOT / "a9a" / "train.libsvm.xz")
    for found in (
        read(ROOT / "a9a" / "train.libsvm.xz", n_features=123),
        joined(list(stream(ROOT / "a9a" / "train.libsvm.xz", n_features=123, chunk_rows=1000))),
    ):
        assert (found[0] != X).nnz == 0
        np.testing.assert_array_equal(found[1], y)


def test_digits_are_read_as_bytes_with_their_labels():
    X, y, _, _ = mnist_bytes()
    found, labels = read(ROOT / "mnist" / "train-images-idx3-ubyte.gz")
    assert found.dtype == np.uint8
    assert_equal((found, labels), (X, y))
