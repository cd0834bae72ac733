"""What is wrong with a source is told once, with its place, and nothing is left behind."""

import io
import os
import re
import struct
import threading

import numpy as np
import pyarrow as pa
import pytest

from polyplane.data.chunks import Chunk, DataError
from polyplane.data.reading import read, stream
from polyplane.data.writing import write
from tests.data.compressions import COMPRESSIONS

ROWS = "".join(f"{k % 3} 1:{k} {2 + k % 9}:0.{k}\n" for k in range(300)).encode()


def streamed(path, **options):
    for _ in stream(path, chunk_rows=50, **options):
        pass


def mixed(path, **options):
    for _ in stream(path, chunk_rows=50, **options).shuffled(0):
        pass


WAYS = {
    "read": read,
    "read and keep": lambda path, **options: read(path, cache=True, **options),
    "stream": streamed,
    "stream and keep": lambda path, **options: streamed(path, cache=True, **options),
    "shuffle": mixed,
}


@pytest.fixture(params=WAYS)
def reading(request):
    """Each way in turn."""
    return WAYS[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows"


def assert_refused(reading, path, words, line=None, column=None, **options):
    """One sentence with its place; no file, no thread."""
    before = sorted(os.listdir(path.parent))
    with pytest.raises(DataError, match=words) as caught:
        reading(path, **options)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(path), line, column)
    assert str(error).startswith(str(path))
    assert "\n" not in str(error)
    assert len(error.problem) < 300
    assert sorted(os.listdir(path.parent)) == before
    assert not any(thread.name == "polyplane reader" for thread in threading.enumerate())


# Files


def test_an_absent_file(reading, path):
    assert_refused(reading, path, "there is no such file: check the path")


def test_a_folder(reading, path):
    path.mkdir()
    assert_refused(reading, path, "is a folder: name a file in it")


@pytest.mark.parametrize("name", ["rows", "rows.csv", "rows.parquet", "rows.npy", "rows.gz"])
def test_an_empty_file(reading, tmp_path, name):
    path = tmp_path / name
    path.touch()
    assert_refused(reading, path, "is empty: rows were expected")


@pytest.mark.parametrize("text", [b"\n\n \n", b"# nothing\n", b"\xef\xbb\xbf\n"])
def test_a_file_without_rows(reading, path, text):
    path.write_bytes(text)
    assert_refused(reading, path, "found no rows, expected at least one")


def test_a_table_that_is_only_a_header(reading, path):
    path.write_bytes(b"a,b,label\n")
    assert_refused(reading, path, "found no rows, expected at least one")


@pytest.mark.parametrize("kind", COMPRESSIONS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_an_archive_cut_short(reading, path, kind, share):
    archive = COMPRESSIONS[kind](ROWS)
    path.write_bytes(archive[: int(share * len(archive))])
    assert_refused(reading, path, f"the {kind} archive is (cut short|damaged)")


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_an_archive_of_nothing(reading, path, kind):
    path.write_bytes(COMPRESSIONS[kind](b""))
    assert_refused(reading, path, "found no rows, expected at least one")


def written(kind, path):
    if kind == "idx":
        path.write_bytes(b"\0\0\x08\x02" + struct.pack(">II", 200, 4) + bytes(800))
        return
    rows = np.random.default_rng(0).random((200, 4)).astype(np.float32)
    write(path, [Chunk(rows, np.arange(200) % 3)], format=kind)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npz", "npy", "idx"])
def test_a_file_of_every_kind_cut_short(reading, path, kind):
    written(kind, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    assert_refused(reading, path, "found (a file that cannot be read|the end in row|no end)")


@pytest.mark.parametrize("way", ["grows", "shrinks", "is replaced", "vanishes"])
def test_a_file_that_changes_while_it_is_read(path, way):
    path.write_bytes(ROWS)

    def change():
        if way == "grows":
            path.write_bytes(ROWS + ROWS)
        elif way == "shrinks":
            path.write_bytes(ROWS[:-6])
        elif way == "is replaced":
            path.with_name("other").write_bytes(ROWS)
            os.replace(path.with_name("other"), path)
        else:
            path.unlink()

    for options in ({}, {"cache": True}):
        path.write_bytes(ROWS)
        chunks = iter(stream(path, chunk_rows=50, **options))
        next(chunks)
        change()
        with pytest.raises(DataError, match="changed while it was read: read it again") as caught:
            list(chunks)
        assert caught.value.path == str(path)
        assert set(os.listdir(path.parent)) <= {path.name}


def test_a_file_that_changes_while_all_of_it_is_read(path, monkeypatch):
    path.write_bytes(ROWS)
    facts = os.stat(path)

    class Source(io.FileIO):
        def readinto(self, room):
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
            return super().readinto(room)

    monkeypatch.setattr("builtins.open", lambda file, *args, **options: Source(file))
    with pytest.raises(DataError, match="changed while it was read"):
        read(path)


def test_a_disk_that_fails_on_the_way(reading, path, monkeypatch):
    path.write_bytes(ROWS)

    class Source(io.FileIO):
        def readinto(self, room):
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().readinto(room)

    usual = open

    def opened(file, mode="r", *args, **options):
        is_ours = file == path and options.get("buffering") == 0
        return Source(file) if is_ours else usual(file, mode, *args, **options)

    monkeypatch.setattr("builtins.open", opened)
    assert_refused(reading, path, r"cannot be read \(Input/output error\)")


def test_an_unknown_format(reading, path):
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0" * 20)
    assert_refused(reading, path, "bytes that are no text, expected a format among libsvm, csv")
    path.write_bytes(b"GIF87a")
    assert_refused(reading, path, "nothing but labels, expected `index:value` after them")


# LIBSVM text


@pytest.mark.parametrize(
    ("line", "words", "column", "options"),
    [
        (b"1 5:1 5:2", "the index 5 stands twice", 7, {}),
        (b"1 0:1", "found the index 0, but base=1 was stated", 3, {"base": 1}),
        (b"1 12:1", "the index 12 is too large: with n_features=11", 3, {"n_features": 11}),
        (b"1 1:1e39", "the value '1e39' is too large for float32", 5, {}),
        (b"1 what", "found 'what'; index:value was expected", 3, {}),
        (b"\xff\xff 1:1", "a label in UTF-8 was expected", 1, {}),
    ],
)
def test_a_bad_line_of_libsvm_text(reading, path, line, words, column, options):
    path.write_bytes(ROWS + line + b"\r\n" + ROWS)
    assert_refused(reading, path, words, 301, column, **options)


def test_an_index_0_after_rows_that_start_at_1(path):
    path.write_bytes(ROWS + b"1 0:1\n")
    words = "found the index 0 after rows read with indices from 1 on: state base=0"
    for way in ("stream", "stream and keep", "shuffle"):
        assert_refused(WAYS[way], path, words, 301, 3)
    assert read(path)[0].shape == (301, 11)  # all rows are seen before any is handed on


def test_nothing_but_labels(reading, path):
    path.write_bytes(b"1\n0\n1\n" * 70)
    assert_refused(reading, path, "found nothing but labels, expected `index:value` after them")
    reading(path, n_features=3)


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize("suffix", ["", ".libsvm", ".csv"])
def test_text_in_utf16(reading, tmp_path, mark, suffix):
    path = tmp_path / f"rows{suffix}"
    coding = "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"
    text = "a,b\n1,2\n" if suffix == ".csv" else "1 1:1\n"
    path.write_bytes(mark + text.encode(coding))
    assert_refused(reading, path, "UTF-16")


@pytest.mark.compiled
def test_a_line_of_100_megabytes(path):
    path.write_bytes(b"1 " + b"x" * 100_000_000)
    assert_refused(read, path, "found 'x{40}...'; index:value was expected", 1, 3)
    path.write_bytes(b"1 1:" + b"1" * 100_000_000)
    assert_refused(streamed, path, "the value '1{40}...' is too large for float32", 1, 5)


# Tables


@pytest.mark.parametrize(
    ("line", "words", "column"),
    [
        (b"1,2", "found 2 fields, expected 3", 3),
        (b"1,2,3,4", "found 4 fields, expected 3", 4),
        (b"1,x,0", "found 'x' in column 'b', expected a number", 2),
        (b"1e39,1,0", "found an infinite value in column 'a'", 1),
        (b"1,2,", "found no label in column 'label'", 3),
    ],
)
def test_a_bad_line_of_csv(reading, path, line, words, column):
    path.write_bytes(b"a,b,label\n" + b"1,2,0\n" * 100 + line + b"\n" + b"1,2,0\n" * 9)
    assert_refused(reading, path, words, 102, column)


def test_a_nul_byte_in_csv(reading, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b,label\n" + b"1,2,0\n" * 100 + b"1,\0,0\n")
    assert_refused(reading, path, "NUL", 102)


def test_a_bad_row_of_parquet(reading, path):
    table = pa.table({"a": [1.0] * 99 + [float("inf")], "label": [0, 1] * 50})
    pa.parquet.write_table(table, path)
    assert_refused(reading, path, "row 100: found an infinite value in column 'a'", column=1)


def test_places_are_shown_in_one_form(path):
    path.write_bytes(b"1 1:1\n1 1:x\n")
    with pytest.raises(DataError) as caught:
        read(path)
    expected = f"{path}, line 2, column 5: found 'x'; a number was expected"
    assert re.fullmatch(re.escape(expected), str(caught.value))
