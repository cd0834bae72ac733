"""Files that take their place when they are whole, and what is left where that never happens."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from polyplane import whole_files
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.whole_files import whole_file

KILLED = """
import os, signal, sys
from pathlib import Path
from polyplane.whole_files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names_in(folder):
    return sorted(os.listdir(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path):
    path = tmp_path / "model.pp"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
        assert done.returncode == -signal.SIGKILL
    assert len(names_in(tmp_path)) == 1  # the second has removed that of the first
    with whole_file(path) as file:
        file.write(b"whole")
    assert names_in(tmp_path) == ["model.pp"]


def test_files_of_other_names_and_of_writers_at_work_stay(tmp_path):
    path = tmp_path / "m"
    others = [".m.pp.1.unfinished", ".m.x.unfinished", "m.1.unfinished", ".n.1.unfinished"]
    for other in others:
        (tmp_path / other).write_bytes(b"")
    (tmp_path / ".m.999999999.unfinished").write_bytes(b"")
    with whole_file(path) as first:
        with whole_file(path) as second:
            first.write(b"first")
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == sorted([*others, "m"])


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


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz"])
def test_arrays_that_cannot_be_written_name_their_file(tmp_path, monkeypatch, name):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "#hidden")

    monkeypatch.setattr("polyplane.data.formats.numpy.writer.tempfile.TemporaryFile", refuse)
    with pytest.raises(PermissionError) as caught:
        write(tmp_path / name, [Chunk(np.ones((2, 2), np.float32), np.array([0, 1]))])
    assert caught.value.filename == str(tmp_path / name)
