"""Help is complete, readable at any width, and there at once."""

import subprocess
import sys

import pytest

from polyplane.cli.options.algorithms import algorithms
from polyplane.cli.options.help_text import help_of
from polyplane.cli.options.verb_list import VERBS, verb_called


def test_overview_names_every_verb(call):
    asked, unasked = call("--help"), call()
    assert asked.code == unasked.code == 0
    assert asked.out == unasked.out
    for name in VERBS:
        assert f"\n  {name} " in asked.out


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_explained(name, call):
    verb = verb_called(name)
    text = call(name, "--help").out
    assert f"polyplane {verb.example}" in text
    for option in verb.options:
        assert option.help.endswith((".", ")")), option.name
        assert all(spelling in text for spelling in option.spellings)
        assert option.denial in text


@pytest.mark.parametrize("name", VERBS)
def test_no_two_options_are_spelt_alike(name):
    options = verb_called(name).options
    spellings = [one for o in options for one in (*o.spellings, *[o.denial] * o.can_be_denied)]
    assert len(set(spellings)) == len(spellings)
    assert len({option.key for option in options}) == len(options)


@pytest.mark.parametrize("name", VERBS)
def test_help_is_as_narrow_as_the_terminal(name):
    lines = help_of(verb_called(name), 40).splitlines()
    example = next(k for k, line in enumerate(lines) if line == "Example") + 1
    assert all(
        len(line) <= 40 for k, line in enumerate(lines) if k != example and "Usage" not in line
    )


def test_help_of_one_algorithm_speaks_of_it_alone(call):
    cpm = call("train", "-a", "cpm", "--help").out
    assert "--entropy" in cpm
    assert "Planes of each polytope" in cpm
    assert "--mode online" not in cpm
    assert cpm == call("train", "--algorithm=cpm", "--help").out
    every = call("train", "--help").out
    assert all(f"Only {name}" in every for name in ("amm", "cpm", "samm", "lasvm"))
    assert all(f"\n  {name} " in every for name in algorithms())


def test_help_does_not_load_what_it_does_not_need():
    slow = ["numpy", "numba", "sklearn", "pyarrow", "click", "rich"]
    code = (
        "import sys; from polyplane.cli.main import main; main(sys.argv[1:]); "
        f"print([name for name in {slow} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "--n-planes" in done.stdout
