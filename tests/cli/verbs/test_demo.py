"""The demo as a user runs it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits

from polyplane.cli.main import main
from polyplane.cli.verbs import demo
from polyplane.hyperplane.amm import AMMClassifier
from polyplane.kernel.huller import HullerClassifier
from polyplane.report.pictures import ink, pictures, signs
from tests.cli.documented import check

pytestmark = pytest.mark.compiled
FEW_ROWS = """
from polyplane.cli.verbs import demo
rows = demo.digits()
demo.digits = lambda: rows._replace(X=rows.X[:200], y=rows.y[:200])
demo.main()
"""


@pytest.fixture(scope="module")
def shown():
    """What it says, without a terminal and of fewer rows."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FEW_ROWS,
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert "Traceback" not in done.stderr
    return done.stdout


def test_numbers_for_programs(monkeypatch, capsys):
    rows = demo.digits()
    few = rows._replace(X=rows.X[:300], y=rows.y[:300])
    monkeypatch.setattr(demo, "digits", lambda: few)
    monkeypatch.setattr(demo, "ALGORITHMS", {"AMM": AMMClassifier, "Huller": HullerClassifier})
    assert main(["demo", "--json"]) == 0
    found = check("demo", capsys.readouterr().out)
    assert [outcome["algorithm"] for outcome in found["outcomes"]] == ["AMM", "Huller"]


def test_it_shows_all_algorithms_once(shown):
    for name in demo.ALGORITHMS:
        assert sum(line.startswith(f"│ {name} ") for line in shown.splitlines()) == 1


def test_a_model_is_saved_loaded_exported_and_used(shown):
    assert "predicts the same bits" in shown
    assert "digits.onnx" in shown
    assert "digits.h" in shown
    assert "not written" not in shown
    assert "The model's probabilities" in shown


def test_it_ends_with_three_commands(shown):
    last = [line.split()[:2] for line in shown.splitlines()[-3:]]
    assert last == [["polyplane", verb] for verb in ("explore", "train", "predict")]


def test_every_fourth_digit_is_a_test_row():
    rows = demo.digits()
    assert rows.X.shape == (1348, 64)
    assert rows.X_test.shape == (449, 64)
    X, y = load_digits(return_X_y=True)
    np.testing.assert_array_equal(rows.X_test, X[3::4])
    np.testing.assert_array_equal(rows.y_test, y[3::4])


def drawn(console, images):
    with console.capture() as captured:
        pictures(console, images, [f"picture {k}" for k in range(len(images))])
    return captured.get().splitlines()


def test_pictures_fit_the_terminal():
    images = [ink(np.eye(6)), signs(np.eye(6) - 0.5)]
    narrow = drawn(Console(width=10, force_terminal=False), images)
    assert len(narrow) == 4
    assert narrow[-1] == "picture"
    wide = drawn(Console(width=40, force_terminal=False), images)
    assert [len(line) <= 16 for line in wide] == [True] * 4
    assert wide[0].startswith("▒▒ ")


def test_pictures_in_colour_have_two_pixels_a_letter():
    console = Console(width=40, force_terminal=True, color_system="truecolor", no_color=False)
    line = drawn(console, [ink(np.array([[0.0], [1.0]]))])[0]
    assert "38;2;0;0;0" in line
    assert "48;2;255;255;255" in line
