"""Decompression: known by the first bytes, from any source, and damage never passes for an end."""

import gzip
import io
import os
import sys

import pytest

from polyplane.data.chunks import DataError
from polyplane.data.decompress import name_of, open_bytes
from tests.data.compressions import COMPRESSIONS

TEXT = b"".join(b"%d %d:%d\n" % (i % 7, i, i * i % 977) for i in range(20_000))
with_every_compression = pytest.mark.parametrize("kind", COMPRESSIONS)


@with_every_compression
def test_an_archive_is_known_by_its_first_bytes_not_by_its_name(kind, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(COMPRESSIONS[kind](TEXT))
    for source in (path, str(path), io.BytesIO(path.read_bytes()), path.open("rb")):
        with open_bytes(source) as file:
            assert file.read() == TEXT


@pytest.mark.parametrize("text", [TEXT, b"1\n", b"1 1:2", b"\x1f", b"BZ"])
def test_plain_bytes_come_as_they_are_whatever_the_name(text, tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(text)
    for source in (path, io.BytesIO(text)):
        with open_bytes(source) as file:
            assert file.read() == text


@with_every_compression
def test_archives_one_after_the_other_are_one_text(kind):
    archive = COMPRESSIONS[kind](TEXT) + COMPRESSIONS[kind](b"1 1:1\n")
    assert open_bytes(io.BytesIO(archive)).read() == TEXT + b"1 1:1\n"


@with_every_compression
def test_an_archive_cut_anywhere_is_an_error_not_an_end(kind):
    archive = COMPRESSIONS[kind](TEXT)
    for end in [*range(6, 40), len(archive) // 2, *range(len(archive) - 20, len(archive))]:
        named = io.BytesIO(archive[:end])
        named.name = "rows"
        with pytest.raises(DataError, match=f"rows: the {kind} archive is") as caught:
            open_bytes(named).read()
        assert caught.value.path == "rows"


@with_every_compression
def test_a_damaged_archive_is_an_error(kind):
    archive = bytearray(COMPRESSIONS[kind](TEXT))
    middle = len(archive) // 2
    archive[middle : middle + 40] = bytes(40)
    with pytest.raises(DataError, match=f"the {kind} archive is"):
        open_bytes(io.BytesIO(archive)).read()


@with_every_compression
def test_an_archive_is_read_in_blocks_of_any_size(kind):
    for size in (1, 1000, 1 << 20):
        file, found = open_bytes(io.BytesIO(COMPRESSIONS[kind](TEXT[:5000]))), b""
        room = bytearray(size)
        while n := file.readinto(room):
            found += room[:n]
        assert found == TEXT[:5000]


def test_what_cannot_be_opened_says_why(tmp_path):
    (tmp_path / "empty").touch()
    for name, words in {"absent": "no such file", ".": "is a folder", "empty": "is empty"}.items():
        with pytest.raises(DataError, match=words) as caught:
            open_bytes(tmp_path / name)
        assert caught.value.path == os.fspath(tmp_path / name)
    with pytest.raises(DataError, match="is empty"):
        open_bytes(io.BytesIO())
    with pytest.raises(DataError, match='mode "rb"'):
        open_bytes(io.StringIO("1 1:1"))
    with pytest.raises(DataError, match="cannot be opened"):
        open_bytes("a\0b")


def test_a_minus_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert name_of("-") == "standard input"
    assert open_bytes("-").read() == TEXT
    assert not sys.stdin.buffer.closed


@with_every_compression
def test_only_what_was_opened_here_is_closed(kind, tmp_path):
    path = tmp_path / "rows"
    for data in (TEXT, COMPRESSIONS[kind](TEXT)):
        path.write_bytes(data)
        with path.open("rb") as mine:
            open_bytes(mine).close()
            assert not mine.closed
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for data in (TEXT, COMPRESSIONS[kind](TEXT)):
        path.write_bytes(data)
        open_bytes(path).close()
    if before is not None:
        assert set(os.listdir("/proc/self/fd")) <= before
