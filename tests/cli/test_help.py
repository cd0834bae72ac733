"""Help is complete, as wide as the terminal, and there at once."""

import subprocess
import sys

import click
import pytest

import polyplane
from polyplane.cli.program import program
from polyplane.model.format.algorithm_names import ALGORITHMS


def test_overview_names_every_verb(call):
    asked, unasked = call("--help"), call()
    assert asked.code == unasked.code == 0
    assert asked.out == unasked.out
    for name in program.commands:
        assert f"\n  {name} " in asked.out


@pytest.mark.parametrize("name", program.commands)
def test_every_option_is_explained(name, call):
    text = call(name, "--help").out
    assert f"  polyplane {name}" in text.partition("Example:")[2]
    for option in program.commands[name].params:
        if isinstance(option, click.Option):
            assert option.help.endswith((".", ")")), option.name
            assert all(one in text for one in (*option.opts, *option.secondary_opts))


def test_help_is_as_narrow_as_the_terminal(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text, _, _ = call("train", "--help").out.partition("Example:")
    choices = f"[{'|'.join(ALGORITHMS)}]"
    assert all(len(line) <= 60 for line in text.replace(choices, "").splitlines())


def test_help_does_not_load_what_it_does_not_need():
    slow = ["numpy", "numba", "sklearn", "pyarrow", "rich"]
    code = (
        "import sys; from polyplane.cli.main import main; main(sys.argv[1:]); "
        f"print([name for name in {slow} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "--set NAME=VALUE" in done.stdout


def test_every_estimator_has_a_short_name():
    classes = {name for name in polyplane.__all__ if name.endswith("Classifier")}
    assert set(ALGORITHMS.values()) == classes
    assert {"polyplane", "lasvm", "kernel-perceptron", "poly2", "mm"} <= set(ALGORITHMS)
