"""The program as a shell runs it: pipes, terminals of all kinds, full disks, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest

from polyplane.cli.failures import INTERRUPTED, NO_READER
from polyplane.estimator.files.saving import load

pytestmark = pytest.mark.compiled  # other processes: without the JIT they would show nothing new
PROGRAM = [sys.executable, "-m", "polyplane"]


def run(*words, **options):
    return subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, timeout=120, check=False, **options
    )


def environment(**changes):
    return {**os.environ, "COLUMNS": "80", **changes}


def test_rows_come_through_a_pipe(files, rows):
    text = (files / "rows.libsvm").read_bytes()
    done = run("predict", files / "numbered.model", "-", input=text)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    expected = load(files / "numbered.model").predict(rows[0]).tolist()
    assert [int(line) for line in done.stdout.split()] == expected


def test_a_reader_that_goes_is_no_error(files, tmp_path):
    text = (files / "rows.csv").read_text().partition("\n")
    (tmp_path / "long.csv").write_text(text[0] + "\n" + text[2] * 3000)
    with subprocess.Popen(
        [*PROGRAM, "predict", files / "named.model", tmp_path / "long.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline().strip() in (b"red", b"green", b"blue")
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(timeout=120) == NO_READER
    assert b"Traceback" not in errors
    assert b"Exception" not in errors


def test_help_whose_reader_goes_is_no_error():
    with subprocess.Popen(
        [*PROGRAM, "train", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (1, NO_READER)  # click ends with 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(files):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "convert", files / "rows.csv", "-", "--to", "csv"],
            stdout=full, stderr=subprocess.PIPE, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_narrow_terminal_without_colours_that_knows_ascii_only(files):
    changes = {"COLUMNS": "40", "NO_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    done = run("evaluate", files / "named.model", files / "rows.csv", env=environment(**changes))
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert all(len(line) <= 40 for line in done.stdout.splitlines())
    assert b"precision" in done.stdout


def test_no_bars_and_no_colours_go_into_files(files):
    done = run("info", files / "rows.csv", env=environment())
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"\r" not in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_leaves_nothing_behind(files, tmp_path):
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*PROGRAM, "predict", files / "named.model", "-", "-o", tmp_path / "labels.txt"],
        stdin=reading, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    os.close(reading)
    os.write(writing, (files / "rows.csv").read_bytes())
    deadline = time.monotonic() + 60
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert os.listdir(tmp_path), "the file is being written"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode == INTERRUPTED
    assert b"Stopped." in errors
    assert b"Traceback" not in errors
    assert os.listdir(tmp_path) == []
