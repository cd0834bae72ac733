"""Model files: safetensors that are whole or not there, and that nobody has to trust."""

import contextlib
import errno
import json
import os
import pickle

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.model.format import model_file
from polyplane.model.format.model_file import (
    FORMAT,
    ModelError,
    is_model_file,
    read_file,
    write_file,
)

ARRAYS = {
    "matrix": np.arange(96, dtype=np.float32).reshape(6, 16),
    "nothing": np.zeros((0, 16), np.float32),
    "odd": np.arange(5, dtype=np.int64),
    "bytes": np.array([1, 2, 255], np.uint8),
    "truth": np.array([True, False]),
    "backwards": np.arange(6.0)[::-1],
}
VALUES = {"words": "ä\n", "numbers": [1, 2.5, None, True], "large": 2**100}


@pytest.fixture
def path(tmp_path):
    write_file(tmp_path / "model", VALUES, ARRAYS)
    return tmp_path / "model"


def header_and_rest(path):
    whole = path.read_bytes()
    n = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + n]), whole[8 + n :]


def write_raw(path, header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)


def test_what_was_written_is_read(path):
    values, arrays = read_file(path)
    assert values == VALUES
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].flags.aligned
        assert arrays[name].flags.writeable


def test_it_is_a_safetensors_file(path):
    theirs = safetensors.numpy.load_file(path)
    assert theirs.keys() == ARRAYS.keys()
    assert all(np.array_equal(theirs[name], ARRAYS[name]) for name in ARRAYS)


def test_whole_cache_lines_start_on_one(path):
    header, _ = header_and_rest(path)
    first = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    assert (first + header["matrix"]["data_offsets"][0]) % 64 == 0


def test_a_large_file_is_mapped_and_never_changed(path, monkeypatch):
    monkeypatch.setattr(model_file, "MAPPED", 1)
    before = path.read_bytes()
    _, arrays = read_file(path)
    assert isinstance(_owner(arrays["matrix"]), memoryview | model_file.mmap.mmap)
    arrays["matrix"][:] = 7
    assert path.read_bytes() == before
    np.testing.assert_array_equal(read_file(path)[1]["matrix"], ARRAYS["matrix"])


def _owner(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_file_that_is_cut_is_refused(tmp_path_factory, place):
    path = tmp_path_factory.mktemp("cut") / "model"
    write_file(path, VALUES, ARRAYS)
    whole = path.read_bytes()
    path.write_bytes(whole[: place % len(whole)])
    with pytest.raises(
        ModelError, match=r"^[^\n]*model: is (cut short|not a model|damaged)[^\n]*$"
    ):
        read_file(path)


def test_a_file_that_is_too_long_is_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ModelError, match="damaged"):
        read_file(path)


@given(st.integers(0, 10**6), st.integers(0, 7))
@settings(max_examples=150, deadline=None)
def test_a_flipped_bit_is_refused(tmp_path_factory, place, bit):
    path = tmp_path_factory.mktemp("flipped") / "model"
    write_file(path, VALUES, ARRAYS)
    whole = bytearray(path.read_bytes())
    place %= len(whole)
    whole[place] ^= 1 << bit
    path.write_bytes(whole)
    with contextlib.suppress(ModelError):
        values, arrays = read_file(path)
        # JSON has room for what means nothing, such as one space for another
        assert values == VALUES
        assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_a_huge_declared_shape_allocates_nothing(path):
    header, rest = header_and_rest(path)
    header["matrix"]["shape"] = [1 << 40, 1 << 20]
    write_raw(path, header, rest)
    with pytest.raises(ModelError, match="damaged"):
        read_file(path)
    header["matrix"] = {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}
    write_raw(path, header, rest)
    with pytest.raises(ModelError, match="damaged"):
        read_file(path)


def test_overlapping_arrays_are_refused(path):
    header, rest = header_and_rest(path)
    header["odd"]["data_offsets"] = header["backwards"]["data_offsets"][:1] * 2
    write_raw(path, header, rest)
    with pytest.raises(ModelError, match="damaged"):
        read_file(path)


def test_a_newer_format_says_what_to_do(path):
    header, rest = header_and_rest(path)
    header["__metadata__"]["format"] = str(FORMAT + 1)
    write_raw(path, header, rest)
    with pytest.raises(ModelError, match=rf"newer polyplane \(format {FORMAT + 1}, .*upgrade"):
        read_file(path)


@pytest.mark.parametrize("format", ["0", "-1", "", "one", "1.0", "1" * 12, None])
def test_a_format_that_is_none_is_damaged(path, format):
    header, rest = header_and_rest(path)
    header["__metadata__"]["format"] = format
    write_raw(path, header, rest)
    with pytest.raises(ModelError, match="is damaged: it does not say in which format it is"):
        read_file(path)


class Trap:
    """A pickle that would make a file."""

    def __reduce__(self):
        return os.mkdir, ("trapped",)


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param(pickle.dumps(Trap()), id="pickle"),
        pytest.param(b"", id="empty"),
        pytest.param(b"1 1:1 2:2\n" * 100, id="text"),
        pytest.param(b"\x02\0\0\0\0\0\0\0{}", id="no values"),
        pytest.param(b"\x02\0\0\0\0\0\0\0[]", id="a list"),
        pytest.param((1 << 16).to_bytes(8, "little") + b"[" * (1 << 16), id="deep"),
        pytest.param(b"PK\x03\x04" + bytes(100), id="zip"),
    ],
)
def test_other_files_are_refused_and_nothing_runs(contents, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_bytes(contents)
    with pytest.raises(ModelError, match=r"^\S+: is (not a|a safetensors|cut)[^\n]*$"):
        read_file(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert not is_model_file(tmp_path / "model")


def test_folders_and_missing_files_are_refused(tmp_path, path):
    assert is_model_file(path)
    with pytest.raises(ModelError, match="is a folder, a pipe or a device"):
        write_file(tmp_path, VALUES, ARRAYS)
    with pytest.raises(ModelError, match=r"cannot be read \(Is a directory\)"):
        read_file(tmp_path)
    with pytest.raises(ModelError, match="No such file"):
        read_file(tmp_path / "missing")
    with pytest.raises(ModelError, match="cannot be written"):
        write_file(tmp_path / "no folder" / "model", VALUES, ARRAYS)
    assert not is_model_file(tmp_path / "missing")


@pytest.mark.parametrize("fails_at", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(path, monkeypatch, fails_at):
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fails_at == "write":
        monkeypatch.setattr(model_file, "_bytes_of", fail)
    else:
        monkeypatch.setattr(os, fails_at, fail)
    with pytest.raises(ModelError, match=r"No space left on device\); nothing was changed"):
        write_file(path, {}, {"other": np.zeros(3)})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model"]


def test_a_header_that_nobody_could_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "LONGEST_HEADER", 500)
    with pytest.raises(ModelError, match="6 arrays need a header longer"):
        write_file(tmp_path / "model", VALUES, ARRAYS)
    assert os.listdir(tmp_path) == []
