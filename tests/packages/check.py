"""`make dist`: look into the built packages, install the wheel alone, and use it.

The new environment has Python, pip and what the wheel depends on: no compiler is asked for, and
nothing of the repository can be imported in it.
"""

import argparse
import csv
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

LARGEST = 1_000_000  # bytes of a package
NEEDED = "polyplane/py.typed", "polyplane/report/page/page.css", "polyplane/report/page/page.js"
STRANGE = ".csv", ".gz", ".npz", ".parquet", ".arrow", ".svmlight", ".model", ".safetensors", ".pyc"
PROGRAM = """
import sys
import polyplane as pp
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = pp.AMMClassifier(random_state=0).fit(X, y)
assert model.score(X, y) > 0.8, model.score(X, y)
assert all(getattr(pp, name) is not None for name in pp.__all__ if name != "plots")
assert sys.prefix in pp.__file__, pp.__file__
pp.show_versions()
"""


def check_wheel(path: Path) -> None:
    """Check size, files, licence, type marker and command of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        commands = wheel.read(f"{info}/entry_points.txt").decode()
    _refuse(path, path.stat().st_size > LARGEST, f"is larger than {LARGEST:,} bytes")
    _refuse(
        path, {name.split("/")[0] for name in names} != {"polyplane", info}, "has other folders"
    )
    _check_names(path, names)
    missing = {*NEEDED, f"{info}/licenses/LICENSE"} - set(names)
    _refuse(path, missing, f"lacks {missing}")
    _refuse(path, metadata["License-Expression"] != "BSD-3-Clause", "does not name its licence")
    _refuse(path, "polyplane = polyplane.cli.main:main" not in commands, "has no command")


def check_sdist(path: Path) -> None:
    """Check size and files of a source distribution."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    _refuse(path, path.stat().st_size > LARGEST, f"is larger than {LARGEST:,} bytes")
    _check_names(path, names)
    missing = {*(f"src/{name}" for name in NEEDED), "LICENSE", "pyproject.toml"} - set(names)
    _refuse(path, missing, f"lacks {missing}")


def use_wheel(path: Path, constraints: Path, folder: Path) -> None:
    """Install a wheel into a new environment; train, predict and export with it."""
    venv.create(folder / "env", with_pip=True)
    python, command = folder / "env/bin/python", folder / "env/bin/polyplane"
    quiet = ["-qq", "--disable-pip-version-check"]
    _run(folder, python, "-m", "pip", "install", *quiet, "-c", constraints, path)
    _run(folder, python, "-c", PROGRAM)
    with (folder / "rows.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "town", "bought"])
        for k in range(400):
            age, town = 20 + k * 7 % 50, ["Ulm", "Bonn", ""][k % 3]
            rows.writerow([age, town, "yes" if age > 40 and town == "Ulm" else "no"])
    _run(folder, command, "--version")
    _run(folder, command, "train", "rows.csv", "-a", "amm", "-m", "rows.model", "--seed", "0")
    _run(folder, command, "predict", "rows.model", "rows.csv", "-o", "labels.txt")
    n_labels = len((folder / "labels.txt").read_text().split())
    _refuse(path, n_labels < 400, f"predicts {n_labels} labels for 400 rows")
    _run(folder, command, "export", "rows.model", "-o", "rows.h")
    _run(folder, command, "export", "rows.model", "-o", "rows.sql", "--dialect", "sqlite")
    _run(folder, command, "demo", "--quiet")
    _run(folder, python, "-m", "pip", "install", *quiet, "-c", constraints, f"{path}[onnx,plots]")
    _run(folder, command, "export", "rows.model", "-o", "rows.onnx")
    _run(folder, python, "-c", "import polyplane as pp; pp.plots.plot_planes")
    _run(folder, python, "-m", "pip", "check", *quiet)


def _check_names(path: Path, names: list[str]) -> None:
    strange = [name for name in names if name.endswith(STRANGE) or "tests/" in name]
    _refuse(path, strange, f"holds tests, data or caches: {strange[:5]}")


def _refuse(path: Path, is_wrong: object, words: str) -> None:
    if is_wrong:
        sys.exit(f"{path.name} {words}.")


def _run(folder: Path, *words: str | Path) -> None:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env={"HOME": str(folder)}
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


def main() -> None:
    """Check the only wheel and the only source distribution of a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--constraints", type=Path, required=True)
    given = parser.parse_args()
    (wheel,), (sdist,) = given.folder.glob("*.whl"), given.folder.glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    with tempfile.TemporaryDirectory() as folder:
        use_wheel(wheel.resolve(), given.constraints.resolve(), Path(folder))
    for path in (wheel, sdist):
        print(f"{path}: {path.stat().st_size:,} bytes, checked")


if __name__ == "__main__":
    main()
