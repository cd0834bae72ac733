"""The cache gives the same rows, bit for bit, or is not used."""

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplane.data import reading
from polyplane.data.chunks import DataError
from polyplane.data.formats.arrow import cache as arrow_cache
from polyplane.data.formats.arrow.cache import cache_path_of
from polyplane.data.reading import read, stream
from polyplane.engine.jit import jit_is_disabled

TEXT = b"".join(b"%d 1:%d.5 %d:-1\n" % (k % 3, k, 2 + k % 7) for k in range(60))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_bytes(TEXT)
    return path


def facts_of(X, y):
    """All that can be seen of rows and labels, to the last bit."""
    parts = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    seen = [(part.dtype.str, part.tobytes()) for part in parts]
    return X.shape, seen, y.dtype.str, y.tolist() if y.dtype.kind == "U" else y.tobytes()


def chunks_of(source, **options):
    return [facts_of(*chunk) for chunk in stream(source, **options)]


def is_parsed(monkeypatch, source, **options):
    """Whether a pass reads the source itself."""
    parsed = []
    whole = reading.chunks_of

    def noted(*args):
        parsed.append(args[0])
        return whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(reading, "chunks_of", noted)
        found = chunks_of(source, cache=True, **options)
    assert found == chunks_of(source, **options)
    return bool(parsed)


def only(*paths):
    """Whether there is nothing else in their folder."""
    return sorted(os.listdir(paths[0].parent)) == sorted(path.name for path in paths)


# The same rows

SOURCES = {
    "sparse": TEXT,
    "empty rows": b"1\n2\n3 5:1\n4\n",
    "widths that grow": b"".join(b"%d %d:1\n" % (k, 1 + k) for k in range(50)),
    "fractions after whole labels": b"".join(b"%d 1:1\n" % k for k in range(20)) + b"0.1 1:2\n" * 9,
    "labels of text": b"".join(b"%s 1:%d\n" % (b"x" * (1 + k % 5), k) for k in range(1, 30)),
    "texts in many letters": "é 1:1\nß 2:1\n漢字 1:3\n".encode() * 7,
    "odd values": b"1 1:-0 2:1e-45 3:3.4e38\n2 1:0\n",
    "dense": b"a,b,label\n" + b"".join(b"%d,-0.0,%d\n" % (k % 37, k % 4) for k in range(40)),
    "dense, fractions after whole labels": b"1,2,3\n4,5,6.5\n7,8,9\n" * 9,
    "categories": b"a,c,label\n"
    + b"".join(b"%d,c%d,yes\n" % (k * 7 % 10, k % 11) for k in range(60)),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_rows_and_labels_come_back_bit_for_bit(name, chunk_rows, tmp_path, monkeypatch):
    path = tmp_path / "rows"
    path.write_bytes(SOURCES[name])
    options = {"chunk_rows": chunk_rows}
    assert is_parsed(monkeypatch, path, **options)
    assert only(path, cache_path_of(path))
    assert not is_parsed(monkeypatch, path, **options)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(60, dtype=np.uint8).reshape(20, 3), np.arange(20, dtype=np.uint8)),
        (np.arange(60, dtype=np.float64).reshape(20, 3), np.arange(20) % 2 == 0),
        (np.arange(60).reshape(20, 3), np.linspace(0, 1, 20, dtype=np.float32)),
        (np.arange(60).reshape(20, 3), np.full(20, (1 << 62) + 1)),
        (np.arange(60).reshape(20, 3), np.full(20, (1 << 64) - 1, np.uint64)),
        (np.arange(60).reshape(20, 3), np.array(["ab", "c"] * 10)),
    ],
)
def test_arrays_of_every_type_come_back(X, y, tmp_path, monkeypatch):
    path = tmp_path / "X.npy"
    np.save(path, X)
    np.save(tmp_path / "y.npy", y)
    for is_first in (True, False):
        assert is_parsed(monkeypatch, path, chunk_rows=7) == is_first
    np.save(tmp_path / "y.npy", y[::-1])
    assert is_parsed(monkeypatch, path, chunk_rows=7)
    (tmp_path / "y.npy").unlink()
    assert is_parsed(monkeypatch, path, chunk_rows=7)
    assert not is_parsed(monkeypatch, path, chunk_rows=7)


@pytest.mark.parametrize("name", SOURCES)
def test_chunks_of_another_size_hold_the_same_rows(name, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(SOURCES[name])
    list(stream(path, cache=True, chunk_rows=8))
    X, y = read(path)
    found, labels = read(path, cache=True)
    assert facts_of(found, labels)[:2] == facts_of(X, y)[:2]
    np.testing.assert_array_equal(labels, y)
    sizes = [chunk.X.shape[0] for chunk in stream(path, cache=True, chunk_rows=5)]
    assert sizes[:-1] == [5] * (len(sizes) - 1)
    assert sum(sizes) == len(y)


def test_every_pass_of_a_stream_gives_the_same_rows(path):
    chunks = stream(path, cache=True, chunk_rows=30)
    first, *others = ([facts_of(*chunk) for chunk in chunks] for _ in range(3))
    assert others == [first, first]


def test_archives_are_cached_and_pipes_are_not(tmp_path, monkeypatch):
    archive, pipe = tmp_path / "rows.gz", tmp_path / "pipe"
    archive.write_bytes(gzip.compress(TEXT))
    assert is_parsed(monkeypatch, archive)
    assert not is_parsed(monkeypatch, archive)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    assert chunks_of(pipe, cache=True) == chunks_of(archive)
    writer.join()
    assert only(pipe, archive, cache_path_of(archive))


# Whose it is


def test_a_changed_source_is_read_again(path, monkeypatch):
    list(stream(path, cache=True))
    path.write_bytes(TEXT.replace(b"-1", b"-2"))
    assert is_parsed(monkeypatch, path)
    assert not is_parsed(monkeypatch, path)


@pytest.mark.parametrize("options", [{"base": 0}, {"n_features": 99}, {"text_labels": True}])
def test_changed_options_are_obeyed(path, monkeypatch, options):
    list(stream(path, cache=True))
    assert is_parsed(monkeypatch, path, **options)
    assert not is_parsed(monkeypatch, path, **options)
    assert is_parsed(monkeypatch, path)


def test_another_version_is_written_anew(path, monkeypatch):
    list(stream(path, cache=True))
    monkeypatch.setattr(arrow_cache, "VERSION", arrow_cache.VERSION + 1)
    assert is_parsed(monkeypatch, path)


def test_skipped_rows_are_counted_from_the_cache_and_never_pass_for_none(path, monkeypatch):
    path.write_bytes(TEXT + b"1 x\n")
    for _ in range(2):
        chunks = stream(path, cache=True, on_bad="skip")
        list(chunks)
        assert chunks.bad.n_skipped == 1
        assert [(error.line, error.column) for error in chunks.bad.errors] == [(61, 3)]
        assert not is_parsed(monkeypatch, path, on_bad="skip")
    with pytest.raises(DataError, match="line 61, column 3"):
        list(stream(path, cache=True))
    assert only(path, cache_path_of(path))


def test_columns_learned_before_belong_to_the_cache(tmp_path, monkeypatch):
    first, second, third = (tmp_path / f"{name}.csv" for name in "abc")
    first.write_bytes(b"a,label\nred,1\nblue,0\n")
    second.write_bytes(b"a,label\ngreen,1\nblue,0\n")
    third.write_bytes(b"a,label\nblack,1\nwhite,0\n")
    assert is_parsed(monkeypatch, [first, second])
    assert not is_parsed(monkeypatch, [first, second])
    assert is_parsed(monkeypatch, second)  # alone, green is the first column
    assert is_parsed(monkeypatch, [first, second])
    assert is_parsed(monkeypatch, [third, second])
    chunks = stream([first, second], cache=True)
    passes = [[facts_of(*chunk)[1:] for chunk in chunks] for _ in range(3)]
    assert passes[0] == passes[1] == passes[2]
    assert chunks.layout.feature_names == ["a=red", "a=blue", "a=green"]


def test_a_layout_comes_from_the_cache_as_from_the_source(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"n,a,label\n1,red,x\n2,?,y\n3,blue,x\n")
    layouts = []
    for _ in range(2):
        chunks = stream(path, cache=True, missing="skip")
        list(chunks)
        layouts.append((chunks.layout.to_dict(), chunks.layout.n_left_out))
    assert layouts[0] == layouts[1]
    assert layouts[0][1] == 1
    frozen = chunks.layout.from_dict(chunks.layout.to_dict(), is_frozen=True)
    X, _ = read(path, cache=True, missing="skip", layout=frozen)
    assert X.shape == (2, 3)


# Damage


@settings(
    deadline=None,
    max_examples=30 if jit_is_disabled() else 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_damaged_cache_never_changes_a_row(path, data):
    expected = chunks_of(path, chunk_rows=20)
    cache = cache_path_of(path)
    cache.unlink(missing_ok=True)
    assert chunks_of(path, chunk_rows=20, cache=True) == expected
    content = bytearray(cache.read_bytes())
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    cache.write_bytes(content)
    assert chunks_of(path, chunk_rows=20, cache=True) == expected
    assert chunks_of(path, chunk_rows=20, cache=True) == expected
    assert only(path, cache)


@pytest.mark.parametrize(
    "content", [b"", b"ARROW1\0\0", b"ARROW1\0\0 what ARROW1", b"1 1:1\n" * 99]
)
def test_a_foreign_file_is_written_anew(path, monkeypatch, content):
    cache_path_of(path).write_bytes(content)
    assert is_parsed(monkeypatch, path)
    assert not is_parsed(monkeypatch, path)


def test_rows_before_the_damage_are_handed_on_once(path):
    expected = chunks_of(path, chunk_rows=20)
    list(stream(path, cache=True, chunk_rows=20))
    cache = cache_path_of(path)
    content = bytearray(cache.read_bytes())
    place = content.rindex(np.float32(50.5).tobytes())  # in the last chunk
    content[place] ^= 1
    cache.write_bytes(content)
    chunks = iter(stream(path, cache=True, chunk_rows=20))
    assert [facts_of(*chunk) for chunk in chunks] == expected
    assert np.float32(50.5).tobytes() in cache.read_bytes()


def test_columns_are_learned_anew_after_damage(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_bytes(SOURCES["categories"])
    list(stream(path, cache=True, chunk_rows=20))
    cache = cache_path_of(path)
    content = bytearray(cache.read_bytes())
    content[content.index(np.float32([7, 1, 4, 1]).tobytes())] ^= 1
    cache.write_bytes(content)
    assert is_parsed(monkeypatch, path, chunk_rows=20)
    assert not is_parsed(monkeypatch, path, chunk_rows=20)


# Nothing half-written


def test_a_pass_that_ends_early_leaves_nothing(path):
    for _ in stream(path, cache=True, chunk_rows=10):
        break
    assert only(path)
    path.write_bytes(TEXT + b"1 x\n")
    with pytest.raises(DataError):
        list(stream(path, cache=True, chunk_rows=10))
    assert only(path)


def test_a_source_that_changes_meanwhile_leaves_nothing(path):
    def change():
        for chunk in stream(path, cache=True, chunk_rows=10):
            path.write_bytes(TEXT)
            yield chunk

    with pytest.raises(DataError, match="changed while it was read: read it again"):
        list(change())
    assert only(path)


@pytest.mark.parametrize("fails", ["open", "write", "fsync", "replace"])
def test_where_nothing_can_be_written_rows_are_only_handed_on(path, monkeypatch, fails):
    expected = chunks_of(path, chunk_rows=10)

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if fails == "write":
            patch.setattr(arrow_cache, "_as_column", fail)
        else:
            patch.setattr(arrow_cache.os, fails, fail)
        assert chunks_of(path, chunk_rows=10, cache=True) == expected
    assert only(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_read_only_folder_goes_uncached(path):
    expected = chunks_of(path)
    path.parent.chmod(0o555)
    try:
        assert chunks_of(path, cache=True) == expected
    finally:
        path.parent.chmod(0o755)
    assert only(path)


def test_what_cannot_be_opened_goes_uncached(path):
    cache_path_of(path).mkdir()
    assert chunks_of(path, cache=True) == chunks_of(path)
    assert not any(cache_path_of(path).iterdir())


def test_two_passes_at_once_leave_one_file(path):
    first, second = (iter(stream(path, cache=True, chunk_rows=10)) for _ in range(2))
    found = [(facts_of(*a), facts_of(*b)) for a, b in zip(first, second, strict=True)]
    assert [a for a, _ in found] == [b for _, b in found] == chunks_of(path, chunk_rows=10)
    assert only(path, cache_path_of(path))


def test_a_cache_is_as_private_as_its_source(path):
    path.chmod(0o600)
    list(stream(path, cache=True))
    assert cache_path_of(path).stat().st_mode & 0o777 == 0o600


WRITES_SLOWLY = """
    import sys, time
    from polyplane.data.reading import stream
    for chunk in stream(sys.argv[1], cache=True, chunk_rows=10):
        print("one", flush=True)
        time.sleep(0.2)
"""


def test_a_process_killed_while_it_writes_leaves_nothing_that_counts(path, monkeypatch):
    command = [sys.executable, "-c", textwrap.dedent(WRITES_SLOWLY), str(path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        for _ in range(3):
            child.stdout.readline()
        (unfinished,) = path.parent.glob(".*.unfinished")
        assert not cache_path_of(path).exists()
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not cache_path_of(path).exists()
        assert is_parsed(monkeypatch, path)
        assert not is_parsed(monkeypatch, path)
        assert only(unfinished, path, cache_path_of(path))
    finally:
        child.kill()


def test_a_cache_that_is_cut_while_it_is_read_ends_nothing(tmp_path):
    path = tmp_path / "X.npy"
    X = np.random.default_rng(0).random((2000, 100)).astype(np.float32)
    np.save(path, X)
    list(stream(path, cache=True, chunk_rows=50))
    script = f"""
import os
import numpy as np
from polyplane.data.reading import stream
found = []
for chunk in stream({str(path)!r}, cache=True, chunk_rows=50):
    if not found:
        os.truncate({str(cache_path_of(path))!r}, 5_000)
    found.append(chunk)
X = np.concatenate([chunk.X for chunk in found])
assert X.tobytes() == np.load({str(path)!r}).tobytes()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_of_chunks_long_gone_is_handed_back(tmp_path):
    path = tmp_path / "X.npy"
    X = np.random.default_rng(0).random((2000, 1000)).astype(np.float32)
    np.save(path, X)
    list(stream(path, cache=True, chunk_rows=50))
    again = stream(path, cache=True, chunk_rows=50)
    for chunks in (again, again.shuffled(0)):
        before = pa.total_allocated_bytes()
        held = [pa.total_allocated_bytes() - before for _ in chunks]
        assert max(held) < X.nbytes / 2
