"""The check of packages finds what must not be in them."""

import zipfile

import pytest

from tests.packages.check import NEEDED, check_wheel

INFO = "polyplane-0.1.0.dist-info"
GOOD = {
    **dict.fromkeys(NEEDED, ""),
    f"{INFO}/licenses/LICENSE": "BSD",
    f"{INFO}/METADATA": "License-Expression: BSD-3-Clause\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\npolyplane = polyplane.cli.main:main\n",
}


def wheel_of(folder, files):
    path = folder / "polyplane.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def test_a_good_wheel_passes(tmp_path):
    check_wheel(wheel_of(tmp_path, GOOD))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tests/test_it.py": ""}, "other folders"),
        ({"polyplane/rows.csv": ""}, "holds tests, data or caches"),
        ({"polyplane/large.py": "#" * 1_100_000}, "larger than"),
        ({f"{INFO}/METADATA": "Name: polyplane\n"}, "licence"),
        ({f"{INFO}/entry_points.txt": ""}, "no command"),
    ],
)
def test_a_wheel_with_a_fault_is_refused(tmp_path, more, words):
    with pytest.raises(SystemExit, match=words):
        check_wheel(wheel_of(tmp_path, {**GOOD, **more}))


@pytest.mark.parametrize("name", [*NEEDED, f"{INFO}/licenses/LICENSE"])
def test_a_wheel_without_a_file_that_is_needed_is_refused(tmp_path, name):
    files = {one: text for one, text in GOOD.items() if one != name}
    with pytest.raises(SystemExit, match="lacks"):
        check_wheel(wheel_of(tmp_path, files))
