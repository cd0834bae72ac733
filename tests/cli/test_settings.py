"""Texts on the command line become the parameters of estimators and the options of readers."""

import dataclasses
import json

import pytest

from polyplane.cli.failures import CallError
from polyplane.cli.program import READING_NAMES, _reading_options, program
from polyplane.cli.settings import NOT_SETTINGS, estimator_class, parsed_settings
from polyplane.cli.training.train_request import Checkpoint, train_request
from polyplane.data.formats.which import ReadOptions
from polyplane.model.format.algorithm_names import ALGORITHMS


@pytest.mark.parametrize(
    ("algorithm", "text", "value"),
    [
        ("soft-planes", "alpha=auto", "auto"),
        ("soft-planes", "alpha=1e-3", 1e-3),
        ("soft-planes", "n_planes=16", 16),
        ("amm", "max_iter=1e2", 100),
        ("amm", "max_planes=none", None),
        ("amm", "shuffle=false", False),
        ("amm", "shuffle=Yes", True),
        ("amm", "class_weight=balanced", "balanced"),
        ("amm", "class_weight=yes=2,no=0.5", {"yes": 2.0, "no": 0.5}),
        ("amm", "class_weight=1=2, -1=3", {1: 2.0, -1: 3.0}),
        ("huller", "C=none", None),
        ("huller", "gamma=scale", "scale"),
        ("huller", "gamma=0.5", 0.5),
        ("lasvm", "kernel=poly", "poly"),
    ],
)
def test_a_text_becomes_the_value_that_it_means(algorithm, text, value):
    (found,) = parsed_settings(estimator_class(algorithm), [text]).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alpha=small", "alpha must be a number from 1e-15 to 1e15, or 'auto'"),
        ("alpha=-1", "alpha must be a number"),
        ("alpha=nan", "alpha must be a number"),
        ("max_iter=2.5", "max_iter must be a whole number"),
        ("max_iter=inf", "max_iter must be a whole number"),
        ("multi_class=all", "must be 'joint' or 'ovr' or 'ovo'"),
        ("class_weight=yes=much", "a dict from label to weight"),
        ("class_weight==2", "a dict from label to weight"),
        ("entropy=0.5", "amm has no such setting"),
        ("random_state=3", "amm has no such setting"),
        ("n_plane=3", "Did you mean max_planes"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(text, words):
    with pytest.raises(CallError, match=words):
        parsed_settings(estimator_class("amm"), [text])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_settings_are_listed_and_their_defaults_can_be_set(algorithm, call):
    kind = estimator_class(algorithm)
    fields = {one.name: one for one in dataclasses.fields(kind) if one.name not in NOT_SETTINGS}
    listed = json.loads(call("train", "-a", algorithm, "--list-settings", "--json").out)
    assert {one["name"]: one["default"] for one in listed["settings"]} == {
        name: field.default for name, field in fields.items()
    }
    texts = [f"{name}={field.default}" for name, field in fields.items()]
    assert parsed_settings(kind, texts) == {n: field.default for n, field in fields.items()}
    shown = call("train", "--list-settings", "-a", algorithm).out
    assert all(f"{name} = " in shown for name in fields)


def test_options_of_reading_are_those_of_the_readers():
    fields = {field.name for field in dataclasses.fields(ReadOptions)}
    assert set(READING_NAMES) == fields | {"on_bad"}
    for verb in ("train", "predict", "evaluate", "explore", "convert", "info"):
        assert set(READING_NAMES) <= {one.name for one in program.commands[verb].params}


def test_options_of_reading_are_converted():
    absent = dict.fromkeys(READING_NAMES) | {"drop": (), "text_columns": ()}
    assert _reading_options(absent) == {}
    given = absent | {
        "label": "-1", "drop": ("name", "3"), "delimiter": "tab", "base": "0", "n_hash": 64,
        "missing": "zero", "header": False,
    }  # fmt: skip
    assert _reading_options(given) == {
        "label": -1, "drop": ["name", 3], "delimiter": "\t", "base": 0, "n_hash": 64,
        "missing": "zero", "header": False,
    }  # fmt: skip
    assert _reading_options(absent | {"label": "none"}) == {"label": None}
    assert _reading_options(absent | {"label": "class"}) == {"label": "class"}


def asked(**others):
    return {"data": ["rows.csv"], "algorithm": "amm", "reading": {}, **others}


def test_a_request_holds_what_was_asked():
    request = train_request(
        **asked(settings=["alpha=1e-3"], reading={"on_bad": "skip", "base": 1}, seed=5,
                checkpoint="5m", scale="maxabs", model="out.model")
    )  # fmt: skip
    assert (request.algorithm, request.settings, request.seed) == ("amm", ["alpha=1e-3"], 5)
    assert (request.on_bad, request.reading) == ("skip", {"base": 1})
    assert request.checkpoint == Checkpoint(seconds=300.0)
    assert (request.scale, request.model, request.data) == ("maxabs", "out.model", ["rows.csv"])
    assert train_request(**asked()).checkpoint is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", Checkpoint(seconds=60.0)),
        ("1.5h", Checkpoint(seconds=5400.0)),
        ("100000", Checkpoint(rows=100_000)),
        ("1e6", Checkpoint(rows=1_000_000)),
    ],
)
def test_checkpoints_are_times_or_rows(text, expected):
    assert train_request(**asked(checkpoint=text)).checkpoint == expected


@pytest.mark.parametrize("text", ["", "0", "-5s", "5d", "often", "1.5"])
def test_other_checkpoints_are_refused(text):
    with pytest.raises(CallError, match="--checkpoint is"):
        train_request(**asked(checkpoint=text))
