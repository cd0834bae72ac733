"""One record for each format says what functions, command line and documents say."""

import inspect
import re
from pathlib import Path

import pytest

import polyplane as pp
from polyplane.cli.program import program
from polyplane.model.export.export_formats import DIALECTS, EXPORT_FORMATS
from polyplane.model.export.sql_queries.text import DIALECTS as BY_NAME

ROOT = Path(__file__).parents[3]
FORMATS = pytest.mark.parametrize("one", EXPORT_FORMATS.values(), ids=EXPORT_FORMATS)


@FORMATS
def test_each_format_has_a_public_function_with_its_options(one):
    function = getattr(pp, f"to_{one.name}")
    parameters = [*inspect.signature(function).parameters]
    options = [option.name for option in one.options]
    assert parameters == ["model", "path", *options, "column_names"]
    assert [*inspect.signature(one.maker()).parameters] == ["exported", "path", *options]


@FORMATS
def test_the_command_line_has_its_options(one):
    options = {option.name: option for option in program.commands["export"].params}
    assert one.name in options["to"].type.choices
    assert {option.name for option in one.options} <= options.keys()


@FORMATS
def test_the_page_names_what_the_record_names(one):
    page = (ROOT / "docs" / "export.md").read_text("utf-8")
    options = " ".join(f"`{option.name}`" for option in one.options)
    cells = [f"`{one.name}`", f"`pp.to_{one.name}`", " ".join(one.suffixes), options]
    line = "| " + " | ".join([*cells, "; ".join(one.refuses)]) + " |"
    assert re.sub(" +", " ", line) in page


def test_suffixes_say_which_format_it_is():
    suffixes = [suffix for one in EXPORT_FORMATS.values() for suffix in one.suffixes]
    assert len(set(suffixes)) == len(suffixes)


def test_dialects_are_those_that_are_written():
    assert tuple(BY_NAME) == DIALECTS
