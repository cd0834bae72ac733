"""The command line: help, training beside Python, and predictions beside reading alone."""

import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polyplane as pp
from benchmarks.race import as_installed, publish, race, table
from polyplane.cli.main import main as polyplane
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from tests.real_data import ROOT, mnist_bytes

EPOCHS = 10
ROUNDS = 5
TINY = "1 1:1 2:0.5\n0 1:-1 2:0.2\n1 1:2 3:1\n0 2:-1\n"


def quietly(*words: object) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert polyplane([*map(str, words), "--quiet"]) == 0


def seconds_of(folder: Path, *words: str) -> float:
    """Of a command in a process of its own, start-up included."""
    found = []
    for _ in range(11):
        start = time.perf_counter()
        command = [sys.executable, "-m", "polyplane", *words]
        subprocess.run(command, check=True, capture_output=True, env=as_installed(folder))
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def rows_in(folder: Path) -> dict[str, Path]:
    X, y, _, _ = mnist_bytes()
    write(folder / "mnist.libsvm", [Chunk(X, y)] * 3)
    X, y = pp.read(ROOT / "a9a" / "train.libsvm.xz")
    write(folder / "a9a.libsvm", [Chunk(X, y)] * 30)
    return {"MNIST three times": folder / "mnist.libsvm", "a9a thirty times": folder / "a9a.libsvm"}


def training(path: Path, folder: Path, clock) -> tuple[float, float]:
    """Seconds of the verb, and of the same in Python: read, fit, save."""

    def in_python():
        X, y = pp.read(path)
        pp.save(pp.AMMClassifier(max_iter=EPOCHS, random_state=1).fit(X, y), folder / "model")

    words = [
        "train",
        path,
        "-a",
        "amm",
        "--set",
        f"max_iter={EPOCHS}",
        "--seed",
        1,
        "-m",
        folder / "model",
    ]
    found = race({"python": in_python, "verb": lambda: quietly(*words)}, ROUNDS, clock)
    return found["verb"], found["python"]


def predicting(path: Path, folder: Path, clock) -> tuple[float, float]:
    """Seconds of the verb, and of reading the rows alone."""

    def read():
        for _ in pp.stream(path):
            pass

    words = ["predict", folder / "model", path, "-o", folder / "labels"]
    found = race({"read": read, "verb": lambda: quietly(*words)}, ROUNDS, clock)
    return found["verb"], found["read"]


def main():
    os.environ["COLUMNS"] = "100"
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in ((), ("train",)):
            command = " ".join(["polyplane", *words, "--help"])
            rows.append([command, f"{seconds_of(folder, *words, '--help'):.3f}", "", ""])
        tiny, model = str(folder / "tiny.libsvm"), str(folder / "tiny.model")
        Path(tiny).write_text(TINY)
        words = ["train", tiny, "-a", "amm", "-m", model, "--quiet"]
        rows.append(["train on four rows, all in", f"{seconds_of(folder, *words):.2f}", "", ""])
        words = ["predict", model, tiny]
        rows.append(["predict four rows, all in", f"{seconds_of(folder, *words):.2f}", "", ""])
        for data, path in rows_in(folder).items():
            verb, python = training(path, folder, time.perf_counter)
            rows.append([f"train on {data}, beside Python", f"{verb:.2f}", f"{python:.2f}",
                         f"{verb / python:.3f}"])  # fmt: skip
            verb, read = predicting(path, folder, time.perf_counter)
            rows.append([f"predict {data}, beside reading alone", f"{verb:.2f}", f"{read:.2f}",
                         f"{read / verb:.0%} of its speed"])  # fmt: skip
    publish(
        "command_line",
        "The command line",
        f"Seconds, medians of runs that take turns. Training is AMM in {EPOCHS} passes over LIBSVM "
        "text, reading and writing included on both sides; both in one process, so that neither "
        "imports. Predictions are streamed from text to a file of labels; beside them the same "
        "text is only read.",
        table(["", "seconds", "beside it", "ratio"], rows),
    )
