"""Whatever stands in labels, column names and file names, the terminal gets only letters."""

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplane import AMMClassifier
from polyplane.cli.failures import tell
from polyplane.cli.output.printable import printable
from polyplane.cli.verbs.predict import _Terminal
from polyplane.estimator.files.saving import SavedModel, write_model

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = ["x\x1b]0;title\x07", "y\x9b31m\u202e", "z\nsecond\rline"]


@given(st.text())
def test_text_without_controls_is_left_alone_and_all_others_are_seen(text):
    shown = printable(text)
    assert not CONTROL.search(shown)
    assert "\n" not in shown
    shown.encode()
    if shown == text:
        assert text.isprintable() or not CONTROL.search(text)


@pytest.mark.parametrize("text", ["naïve", "日本語", "👩‍💻", "a\u00a0b", "\\x1b"])
def test_letters_of_all_languages_stay(text):
    assert printable(text) == text


@pytest.fixture
def hostile(tmp_path):
    """A table and a model whose labels, columns and file name move the cursor."""
    generator = np.random.default_rng(0)
    X, y = generator.random((60, 2)), np.array(HOSTILE)[np.arange(60) % 3]
    names = ["a\x1b[31m", "b\u202e"]
    path = tmp_path / "rows\x1b[2J.csv"
    quoted = ['"' + label + '"' for label in y]
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X, quoted, strict=True)]
    path.write_text("\n".join([",".join([*names, "label"]), *lines]), newline="")
    model = tmp_path / "model\x1b[2J"
    write_model(SavedModel(AMMClassifier(max_iter=1, random_state=0).fit(X, y)), model)
    return path, model


def calls(path, model, folder):
    yield "train", path, "-a", "amm", "-m", folder / "new\x1b[2J.model"
    yield "evaluate", model, path
    yield "info", model
    yield "info", path
    yield "explore", path, "--folds", "2"
    yield "info", "no\x1bfile"
    yield "evaluate", model, path, "--label", "no\x1bcolumn"
    yield "predict", path, path


@pytest.mark.compiled
def test_nothing_from_outside_reaches_the_terminal_raw(hostile, tmp_path, call):
    seen = ""
    for words in calls(*hostile, tmp_path):
        done = call(*words)
        assert not CONTROL.search(done.out + done.err), words
        seen += done.out + done.err
    assert "\\x1b]0;title\\x07" in seen
    assert "\\u202e" in seen


def test_errors_are_escaped_too(capsys):
    tell("no\x1b[2Jfile\udc80")
    assert capsys.readouterr().err == "polyplane: no\\x1b[2Jfile\\udc80.\n"


def test_predictions_on_a_terminal_are_escaped_and_elsewhere_as_they_are(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("sys.stdout", screen)
    _Terminal().write(b"x\x1b[2J\nplain\n")
    assert screen.getvalue() == "x\\x1b[2J\nplain\n"


@pytest.mark.compiled
def test_a_prediction_is_one_line_whatever_the_label(hostile, tmp_path, call):
    _, model = hostile
    rows = tmp_path / "plain.csv"
    rows.write_text("\n".join("0.5,0.5" for _ in range(7)) + "\n" + "0.1,0.9")
    done = call("predict", model, rows, "--label", "none")
    assert done.out.count("\n") == 8
