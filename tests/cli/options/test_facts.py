"""What the command line says of algorithms is what the algorithms say."""

import dataclasses
import json

import pytest

import polyplane
from polyplane.cli.input.estimators import estimator_class, made
from polyplane.cli.options import facts
from polyplane.cli.options.algorithms import algorithms, stored_facts
from polyplane.cli.options.shared_options import parameter_options, reading_options
from polyplane.data.formats.which import ReadOptions
from polyplane.estimator.parameters import REGISTRY


def test_the_stored_facts_are_those_of_today():
    assert stored_facts() == json.loads(json.dumps(facts.facts())), "run `make facts`"


def test_the_text_of_facts_is_their_json():
    found = facts.facts()
    assert json.loads(facts.as_text(found)) == json.loads(json.dumps(found))


def test_every_estimator_has_a_short_name():
    for name in polyplane.__all__:
        getattr(polyplane, name)
    assert {one.class_name for one in algorithms().values()} == set(REGISTRY)
    assert next(iter(algorithms())) == "polyplane"
    assert {"lasvm", "kernel-perceptron", "poly2", "mm"} <= set(algorithms())


@pytest.mark.parametrize("name", algorithms())
def test_every_parameter_is_an_option_and_its_default_can_be_said(name):
    algorithm, kind = algorithms()[name], estimator_class(name)
    own_words = {"random_state", "verbose", "warm_start", "categorical_features"}
    fields = {field.name: field for field in dataclasses.fields(kind)}
    assert set(algorithm.parameters) == set(fields) - own_words
    options = {option.name: option for option in parameter_options()}
    for parameter in algorithm.parameters.values():
        assert options[parameter.name].spellings == [parameter.option]
        default = fields[parameter.name].default
        if parameter.is_flag:
            assert isinstance(default, bool)
            continue
        said = parameter.text_of(default).removeprefix(f"{parameter.option} ")
        assert parameter.value_of(said) == default
    assert made(name, {}).get_params() == kind().get_params()


def test_options_of_reading_are_those_of_the_readers():
    fields = [field.name for field in dataclasses.fields(ReadOptions)]
    assert [option.name for option in reading_options()] == [*fields, "on_bad"]
    stored = {plain["name"]: plain["default"] for plain in stored_facts()["reading"]}
    assert ReadOptions(**stored) == dataclasses.replace(
        ReadOptions(), drop=stored["drop"], text_columns=stored["text_columns"]
    )
