"""Texts on the command line become the values that estimators and readers want."""

import pytest

from polyplane.cli.failures import CallError
from polyplane.cli.input.estimators import made
from polyplane.cli.options.algorithms import algorithm_of, algorithms
from polyplane.cli.options.shared_options import reading_of, reading_options, words_of_reading
from polyplane.cli.options.train_request import Checkpoint, train_request


@pytest.mark.parametrize(
    ("algorithm", "name", "text", "value"),
    [
        ("polyplane", "alpha", "auto", "auto"),
        ("polyplane", "alpha", "1e-3", 1e-3),
        ("polyplane", "n_planes", "16", 16),
        ("amm", "max_iter", "1e2", 100),
        ("amm", "max_planes", "none", None),
        ("amm", "class_weight", "balanced", "balanced"),
        ("amm", "class_weight", "yes=2,no=0.5", {"yes": 2.0, "no": 0.5}),
        ("amm", "class_weight", "1=2, -1=3", {1: 2.0, -1: 3.0}),
        ("huller", "C", "none", None),
        ("huller", "gamma", "scale", "scale"),
        ("huller", "gamma", "0.5", 0.5),
        ("lasvm", "kernel", "poly", "poly"),
    ],
)
def test_a_text_is_the_value_that_it_says(algorithm, name, text, value):
    found = algorithm_of(algorithm).values_of({name: text})[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("algorithm", "name", "text", "words"),
    [
        (
            "amm",
            "alpha",
            "small",
            "--alpha is 'small', expected a number from 1e-15 to 1e15, or auto",
        ),
        ("amm", "max_iter", "2.5", "--epochs is '2.5', expected a whole number"),
        ("amm", "max_iter", "auto", "--epochs is 'auto'"),
        ("amm", "multi_class", "all", "expected joint or ovr or ovo"),
        ("amm", "class_weight", "yes", "balanced, none, or weights such as yes=2,no=1"),
        ("amm", "class_weight", "yes=much", "--class-weight is 'yes=much'"),
        ("lasvm", "C", "none", "--C is 'none', expected a number from 1e-15 to 1e15"),
    ],
)
def test_a_text_that_says_nothing_is_refused(algorithm, name, text, words):
    with pytest.raises(CallError, match=words):
        algorithm_of(algorithm).values_of({name: text})


def test_an_option_of_other_algorithms_is_refused_by_name():
    with pytest.raises(CallError, match="--entropy is no option of --algorithm amm, but of cpm"):
        algorithm_of("amm").values_of({"entropy": "0.5"})
    with pytest.raises(CallError, match="expected one of polyplane, amm"):
        algorithm_of("svm")
    assert algorithm_of("AMMClassifier") is algorithms()["amm"]


def test_a_value_outside_its_range_is_blamed_on_its_option():
    with pytest.raises(CallError, match=r"--alpha is -1\.0, expected a number from 1e-15 to"):
        made("amm", {"alpha": -1.0})
    with pytest.raises(CallError, match="--jobs is 0, expected none or a whole number"):
        made("AMMClassifier", {"n_jobs": 0})


def test_settings_are_said_as_options_that_set_them():
    amm = algorithm_of("amm")
    said = {"alpha": 1e-5, "average": False, "shuffle": True, "max_planes": None, "max_iter": 7}
    options = [amm.parameters[name].text_of(value) for name, value in said.items()]
    assert options == [
        "--alpha 1e-05",
        "--no-average",
        "--shuffle",
        "--max-planes none",
        "--epochs 7",
    ]
    assert amm.parameters["class_weight"].text_of({"a": 2.0}) == "--class-weight a=2"


def test_options_of_reading_are_converted():
    given = {
        "label": "-1", "drop": ["name", "3"], "delimiter": "tab", "base": "0", "n_hash": "64",
        "missing": "zero", "header": False,
    }  # fmt: skip
    assert reading_of(given) == {
        "label": -1, "drop": ["name", 3], "delimiter": "\t", "base": 0, "n_hash": 64,
        "missing": "zero", "header": False,
    }  # fmt: skip
    assert reading_of({"label": "none"}) == {"label": None}
    assert reading_of({"label": "class"}) == {"label": "class"}
    with pytest.raises(CallError, match="--n-features is 'many', expected a whole number"):
        reading_of({"n_features": "many"})


def asked(**others):
    return {"data": ["rows.csv"], "algorithm": "amm", "parameters": {}, "reading": {}, **others}


def test_a_request_holds_what_was_asked():
    request = train_request(
        **asked(parameters={"alpha": "1e-3"}, reading={"on_bad": "skip", "base": 1}, seed=5,
                checkpoint="5m", scale="maxabs", model="out.model")
    )  # fmt: skip
    assert request.algorithm == "AMMClassifier"
    assert request.parameters == {"alpha": 1e-3, "random_state": 5}
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


def test_other_scales_are_refused():
    with pytest.raises(CallError, match="--scale is 'big', expected one of none, maxabs, standard"):
        train_request(**asked(scale="big"))


@pytest.mark.parametrize(
    "words",
    [
        ["--label", "none"],
        ["--label=-1", "--drop", "2", "--drop", "name", "--missing", "skip"],
        ["--delimiter", "tab", "--no-header", "--text-labels", "--on-bad", "skip"],
        ["--n-features", "7", "--base", "0", "--labels", "a b.txt"],
    ],
)
def test_options_of_reading_are_spelt_as_they_were_given(words):
    by_spelling = {option.spellings[0]: option for option in reading_options()}
    given = {}
    pieces = iter([part for word in words for part in word.split("=")])
    for word in pieces:
        option = by_spelling[word.replace("--no-", "--")]
        if option.kind is bool:
            given[option.name] = not word.startswith("--no-")
        elif option.kind == list[str]:
            given.setdefault(option.name, []).append(next(pieces))
        else:
            given[option.name] = next(pieces)
    assert words_of_reading(reading_of(given)) == words
