"""Exit codes and sentences: whatever goes wrong, no traceback unless it was asked for."""

import importlib
import subprocess
import sys

import pytest

import polyplane
from polyplane.cli.failures import BAD_CALL, BAD_INPUT, DONE, INTERRUPTED
from polyplane.cli.program import program
from polyplane.cli.verbs import info


def test_version(call):
    assert call("--version") == (DONE, f"polyplane {polyplane.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'?"),
        (["--wat"], "--wat"),
        (["predict"], "Missing argument 'MODEL'"),
        (["predict", "a.model"], "Missing argument 'DATA"),
        (["info", "rows.csv", "--rwos", "3"], "--rwos"),
        (["train", "rows.csv", "--set"], "--set"),
        (["train", "rows.csv", "--set", "quality=none"], "--set quality=none: quality must be"),
        (["train", "rows.csv", "--set", "mode=batch"], "polyplane has no such setting"),
        (["train", "rows.csv", "-a", "amm", "--set", "max_plane=3"], "Did you mean max_planes"),
        (["train", "rows.csv", "--set", "max_iter"], "--set is 'max_iter', expected NAME=VALUE"),
        (["train"], "Missing argument 'DATA...'"),
        (["train", "rows.csv", "-a", "svm"], "'svm' is not one of 'amm', "),
        (["train", "rows.csv", "--scale", "big"], "'big' is not one of 'none', 'maxabs'"),
        (["explore", "rows.csv", "--rows", "many"], "'many' is not a valid integer"),
        (["export", "a.model"], "name it with -o"),
        (["export", "a.model", "-o", "model.txt"], "expected one of onnx, c"),
        (["convert", "rows.csv", "rows.xlsx"], "states no format"),
        (["convert", "rows.csv", "rows.idx"], "states the format idx"),
        (["convert", "rows.csv", "-"], "pass --to FORMAT"),
        (["info", "rows.csv", "--base", "7"], "'7' is not one of '0', '1'"),
        (["info", "rows.csv", "--missing", "maybe"], "'maybe' is not one of 'fill'"),
        (["info", "rows.csv", "--on-bad", "maybe"], "'maybe' is not one of 'raise'"),
        (["explore", "rows.csv", "--folds", "1"], "--folds is 1"),
        (["explore", "rows.csv", "--rows", "3"], "--rows is 3"),
    ],
)  # fmt: skip
def test_a_call_that_makes_no_sense_has_code_2(words, sentence, call):
    code, out, err = call(*words)
    assert code == BAD_CALL
    assert out == ""
    assert sentence in err
    assert err.startswith("polyplane: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("info", ["absent.csv"]),
        ("evaluate", ["absent.model", "rows.csv"]),
        ("predict", ["rows.csv", "rows.csv"]),
        ("export", ["rows.csv", "-o", "out.onnx"]),
        ("convert", ["absent-*.csv", "out.csv"]),
        ("explore", ["absent.csv"]),
    ],
)
def test_a_file_that_is_at_fault_has_code_1(verb, words, call, files, monkeypatch):
    monkeypatch.chdir(files)
    code, out, err = call(verb, *words, "--json")
    assert code == BAD_INPUT
    assert out == ""
    assert words[0].split("*")[0] in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def failing(error):
    def run(screen, **asked):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), INTERRUPTED, "Stopped. Nothing was left half-written."),
        (ZeroDivisionError("0/0"), BAD_INPUT, "An error in polyplane itself, ZeroDivisionError"),
        (MemoryError(), BAD_INPUT, "not enough memory"),
        (OSError(28, "No space left on device", "out.csv"), BAD_INPUT, "out.csv: No space left"),
        (PermissionError(13, "Permission denied", "x"), BAD_INPUT, "check the permissions"),
    ],
)
def test_a_failure_is_one_sentence_and_with_debug_a_traceback(
    error, code, words, call, monkeypatch
):
    monkeypatch.setattr(info, "run", failing(error))
    done = call("info", "rows.csv")
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert done.err.count("\n") == 1
    told = call("info", "rows.csv", "--debug")
    assert told.code == code
    assert "Traceback" in told.err


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("polyplane tr", {"train"}),
        ("polyplane train --algorithm kernel", {"kernel-pegasos", "kernel-perceptron"}),
        ("polyplane export m --to o", {"onnx"}),
    ],
)
def test_verbs_and_algorithms_are_completed(typed, expected, call, monkeypatch):
    monkeypatch.setenv("_POLYPLANE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    done = call()
    assert done.code == DONE
    assert {line.removeprefix("plain,") for line in done.out.split()} == expected


def test_each_verb_has_a_module_with_a_function_run():
    for name in program.commands:
        assert callable(importlib.import_module(f"polyplane.cli.verbs.{name}").run)


@pytest.mark.parametrize(
    ("words", "closed", "sentence"),
    [
        ("--help", ">&-", "Standard output is closed"),
        ("info rows.csv", ">&-", "Standard output is closed"),
        ("predict a.model -", "<&-", "Standard input is closed"),
        ("info absent.csv", "<&-", "absent.csv"),
    ],
)
def test_streams_that_are_closed_end_in_a_sentence(words, closed, sentence):
    command = f"{sys.executable} -m polyplane {words} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode in (BAD_CALL, BAD_INPUT)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_with_standard_error_closed_nothing_is_said_elsewhere():
    command = f"{sys.executable} -m polyplane info absent.csv 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")


def test_a_missing_value_is_explained_in_words_of_the_command_line(call, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("a,b,label\n1,2,x\n3,,y\n")
    done = call("info", path, "--missing", "error")
    assert done.code == BAD_INPUT
    assert "--missing zero" in done.err
    assert "missing='" not in done.err
