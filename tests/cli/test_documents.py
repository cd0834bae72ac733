"""The page on the command line is true."""

import re

from polyplane.cli import failures
from polyplane.cli.program import program
from tests.cli.documented import PAGE, check


def test_every_verb_is_on_the_page_with_an_example_that_parses():
    text = PAGE.read_text()
    for name in program.commands:
        (example,) = re.findall(
            rf"^\| `{name}` \| `polyplane {name}\b(.*?)` \|", text, re.MULTILINE
        )
        known = {one for option in program.commands[name].params for one in option.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", example)) <= known


def test_every_exit_code_is_on_the_page():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)}
    assert codes == {
        failures.DONE, failures.BAD_INPUT, failures.BAD_CALL, failures.INTERRUPTED,
        failures.NO_READER,
    }  # fmt: skip


def test_keys_of_a_training_are_those_on_the_page(call, files, tmp_path):
    done = call(
        "train",
        files / "rows.csv",
        "-a",
        "amm",
        "--set",
        "max_iter=1",
        "-m",
        tmp_path / "m",
        "--json",
    )
    found = check("train", done.out)
    assert found["algorithm"] == "AMMClassifier"
    evaluated = call("evaluate", tmp_path / "m", files / "rows.csv", "--json")
    assert check("evaluate", evaluated.out)["rows"] == found["rows"]
