"""Files that take their place when they are whole, and what is left where that never happens."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import polyplane as pp
from polyplane import whole_files
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.writing import write
from polyplane.whole_files import whole_file

FILLS_THE_DISK = """
import resource, sys
from pathlib import Path
from polyplane.whole_files import whole_file
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with whole_file(Path(sys.argv[1])) as file:
        file.write(bytes(int(sys.argv[2])))
except OSError as error:
    print(error.strerror, error.filename, sep=chr(10))
"""
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


def names_in(folder):
    return sorted(os.listdir(folder))


@ON_POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_mode_of_a_file_that_is_replaced_is_kept(tmp_path, mode):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(mode)
    with whole_file(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 & ~mode == 0  # never readable by more
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@ON_POSIX
def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    with whole_file(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@ON_POSIX
@pytest.mark.parametrize("is_there", [True, False])
def test_a_symbolic_link_is_written_through(tmp_path, is_there):
    folder, link, chain = tmp_path / "models", tmp_path / "link", tmp_path / "chain"
    folder.mkdir()
    if is_there:
        (folder / "today").write_bytes(b"old")
    link.symlink_to("models/today")
    chain.symlink_to(link)
    with whole_file(chain) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert chain.is_symlink()
    assert (folder / "today").read_bytes() == b"new"
    assert names_in(folder) == ["today"]
    assert names_in(tmp_path) == ["chain", "link", "models"]


@ON_POSIX
def test_a_link_to_itself_and_a_pipe_are_refused(tmp_path):
    loop, pipe = tmp_path / "loop", tmp_path / "pipe"
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    for path in (loop, pipe, tmp_path):
        with pytest.raises(OSError) as caught, whole_file(path):  # noqa: PT011  names its file
            pass
        assert caught.value.filename == str(path)
    assert names_in(tmp_path) == ["loop", "pipe"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("ä" * 127)  # 254 bytes
    with whole_file(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_an_error_with_that_name(tmp_path, name):
    with pytest.raises(OSError) as caught, whole_file(tmp_path / name):  # noqa: PT011
        pass
    assert caught.value.filename == str(tmp_path / name)
    model = pp.PegasosClassifier().fit(np.eye(2), [0, 1])
    calls = [
        lambda: pp.save(model, tmp_path / name),
        lambda: pp.load(tmp_path / name),
        lambda: pp.to_c(model, tmp_path / name, "f"),
        lambda: pp.import_model(tmp_path / name),
    ]
    for call in calls:
        with pytest.raises(pp.ModelError, match=r"cannot be (read|written) \("):
            call()
    rows = [Chunk(np.ones((2, 2), np.float32), np.array([0, 1]))]
    with pytest.raises(DataError, match=r"cannot be written \("):
        write(tmp_path / f"{name}.csv", rows)
    assert names_in(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the size of files is not bounded")
@pytest.mark.parametrize("size", [12_000, 1_000_000])  # within the buffer, and beyond it
def test_a_full_disk_is_an_error_with_the_name_of_the_file(tmp_path, size):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FILLS_THE_DISK, str(path), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["File too large", str(path)]
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["model"]


def test_the_last_of_two_writers_wins(tmp_path):
    path = tmp_path / "m"
    with whole_file(path) as first:
        with whole_file(path) as second:
            first.write(b"first")
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == ["m"]


def test_threads_that_write_the_same_name_leave_one_whole_file(tmp_path):
    path = tmp_path / "m"

    def work(letter):
        with whole_file(path) as file:
            for _ in range(100):
                file.write(letter * 100)

    threads = [threading.Thread(target=work, args=(bytes([k]),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names_in(tmp_path) == ["m"]
    found = path.read_bytes()
    assert found == found[:1] * 10_000


def test_an_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "model.pp"

    def refuse(name, *_):
        raise PermissionError(13, "Permission denied", str(name))

    for function in ("open", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(whole_files.os, function, refuse)
            with pytest.raises(PermissionError) as caught, whole_file(path):
                pass
        assert caught.value.filename == str(path)
    assert names_in(tmp_path) == []
