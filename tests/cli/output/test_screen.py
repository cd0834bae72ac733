"""Results on standard output, everything else on standard error."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from polyplane.cli.output.screen import Screen, as_json
from polyplane.training.work import progress


@pytest.fixture
def made():
    def new(width=80, is_terminal=False, encoding="utf-8", **options):
        files = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2)]
        consoles = [
            Console(file=file, width=width, force_terminal=is_terminal, highlight=False)
            for file in files
        ]
        screen = Screen(**options, out=consoles[0], err=consoles[1])

        def read():
            for file in files:
                file.flush()
            return [file.buffer.getvalue().decode(encoding) for file in files]

        return screen, read

    return new


def test_with_json_only_the_result_is_on_standard_output(made, capsys):
    screen, read = made(json=True)
    screen.say("words")
    screen.table(["a"], [["b"]])
    screen.note("remark")
    screen.result({"x": np.float32(0.5), "y": np.arange(2), "z": float("nan"), 1: "ü"})
    assert json.loads(capsys.readouterr().out) == {"x": 0.5, "y": [0, 1], "z": None, "1": "ü"}
    assert read() == ["", "remark\n"]


def test_without_json_there_is_no_result(made, capsys):
    screen, read = made()
    screen.result({"x": 1})
    screen.say("words [bold]")
    assert capsys.readouterr().out == ""
    assert "words" in read()[0]


def test_quiet_leaves_out_remarks_and_progress_but_no_results_and_warnings(made):
    screen, read = made(quiet=True)
    screen.note("remark")
    screen.warn("warning")
    screen.say("result")
    with screen.progress("Work", 10) as advance:
        advance(10, "words")
    assert read() == ["result\n", "warning\n"]


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(made, monkeypatch):
    clock = iter([0.0, 5.0, 11.0, 12.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    screen, read = made()
    with screen.progress("Reading", 1_000) as advance:
        advance(100)
        advance(120)
        advance(10)
        advance(400, "3 planes")
    assert read()[1].splitlines() == [
        "Reading: 220 of 1,000 rows, 20 rows/s",
        "Reading: 630 of 1,000 rows, 21 rows/s, 3 planes",
    ]


def test_progress_is_a_bar_on_a_terminal(made):
    screen, read = made(is_terminal=True)
    with screen.progress("Reading", 4) as advance:
        advance(4, "done")
    assert "Reading" in read()[1]


def test_a_bar_shows_time_that_goes_on_before_the_first_row(made):
    screen, read = made(is_terminal=True)
    with screen.progress("Predicting"):
        pass
    assert "0:00:00" in read()[1]


def test_a_table_that_is_too_wide_is_a_list(made):
    columns, rows = ["name", "first", "second"], [["x", 1, 22], ["y", 3, 4]]
    wide, read_wide = made(width=40)
    wide.table(columns, rows, "Title")
    assert "second" in read_wide()[0].splitlines()[2]
    narrow, read_narrow = made(width=20)
    narrow.table(columns, rows)
    assert read_narrow()[0].splitlines() == [
        "name x", "  first  1", "  second 22", "name y", "  first  3", "  second 4",
    ]  # fmt: skip


def test_ascii_terminals_get_ascii(made):
    screen, read = made(encoding="ascii")
    screen.say("1 ± 2")
    screen.table(["a", "±"], [["b", "1"]])
    assert read()[0].startswith("1 +- 2\n")


def test_json_is_ascii_and_finite():
    assert as_json({"a": "ü", "b": [float("inf")]}) == '{"a": "\\u00fc", "b": [null]}'
