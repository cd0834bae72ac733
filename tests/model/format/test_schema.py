"""A table of fields is enough to write a record, to read it, and to say what is wrong with it."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplane.model.format.checks import Unsound, need
from polyplane.model.format.model_file import ModelError
from polyplane.model.format.schema import (
    Count,
    Flag,
    Generator,
    GeneratorState,
    Labels,
    Many,
    Maybe,
    Nested,
    Number,
    Numbers,
    Plain,
    Reader,
    Table,
    Wholes,
    Word,
    Writer,
)


class Point(NamedTuple):
    """A record within another."""

    n_steps: int
    best: float


class Record(NamedTuple):
    """Something of each kind."""

    sums: np.ndarray
    owner: np.ndarray
    starts: np.ndarray
    name: str
    is_over: bool
    points: list
    last: Point | None
    weights: np.ndarray | None
    doubled: np.ndarray


POINT = Table(Point, {"steps": Count(), "best": Number(may_be_endless=True)}, {"steps": "n_steps"})
TABLE = Table(
    Record,
    {
        "sums": Numbers("float32", ("feature", "plane")),
        "classes": Wholes("int32", ("plane",), -1, "feature"),
        "starts": Wholes("int64", ("plane + 1",)),
        "name": Word(("up", "down")),
        "over": Flag(),
        "points": Many(Nested(POINT)),
        "last": Maybe(Nested(POINT)),
        "weights": Maybe(Numbers("float32|float64", ("plane",))),
    },
    {"classes": "owner", "over": "is_over"},
    derived={"doubled": lambda made: 2 * made["sums"]},
    check=lambda record: need(record.starts[0] == 0, "starts do not start"),
)
SUMS = np.arange(6, dtype=np.float32).reshape(2, 3)
RECORD = Record(
    SUMS, np.array([1, 0, -1], np.int32), np.arange(4), "up", True,
    [Point(1, np.inf), Point(2, 0.25)], None, np.ones(3), 2 * SUMS,
)  # fmt: skip


def written(record=RECORD):
    out = Writer()
    plain = TABLE.write(record, "a.b", out)
    return json.loads(json.dumps(plain, allow_nan=False)), out.arrays


def test_a_record_is_read_as_it_was_written():
    plain, arrays = written()
    found = TABLE.read(plain, "a.b", Reader(arrays))
    for ours, theirs in zip(found, RECORD, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert TABLE.write(found, "a.b", Writer()) == plain


def test_names_are_those_of_the_table_and_derived_fields_are_left_out():
    plain, arrays = written()
    assert set(plain) == {"name", "over", "points", "last"}
    assert set(arrays) == {"a.b.sums", "a.b.classes", "a.b.starts", "a.b.weights"}
    assert plain["points"][0] == {"steps": 1, "best": "inf"}
    plain, arrays = written(RECORD._replace(weights=None))
    assert plain["weights"] is None
    assert TABLE.read(plain, "a.b", Reader(arrays)).weights is None


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "left", "a.b.name is 'left', which is not one of up, down"),
        ("name", ["up"], "which is not one of"),
        ("over", 1, "a.b.over is 1, which is not true or false"),
        ("points", {}, "a.b.points is {}, which is not a list"),
        ("points", [3], "a.b.points.0 is 3, which is not a record"),
        ("points", [{"steps": -1, "best": 0}], "a.b.points.0.steps is -1, which is not a whole"),
        ("points", [{"steps": True, "best": 0}], "is True, which is not a whole number"),
        ("points", [{"steps": 2**63, "best": 0}], "not a whole number in its range"),
        ("points", [{"steps": 1}], "a.b.points.0.best is None, which is not a number"),
        ("last", {"steps": 1, "best": "nan"}, "a.b.last.best is 'nan', which is not a number"),
    ],
)
def test_values_are_of_their_kind(field, value, words):
    plain, arrays = written()
    with pytest.raises(Unsound, match=words):
        TABLE.read({**plain, field: value}, "a.b", Reader(arrays))


@pytest.mark.parametrize(
    ("field", "array", "words"),
    [
        ("sums", None, "the array a.b.sums is missing"),
        ("sums", SUMS.astype(np.float64), "a.b.sums is not of float32 in 2 dimensions"),
        ("sums", SUMS[0], "not of float32 in 2 dimensions"),
        ("sums", np.full((2, 3), np.nan, np.float32), "NaN or infinity"),
        ("classes", np.array([1, 0], np.int32), "the array a.b.classes has length 2 instead of 3"),
        ("classes", np.array([1, 0, 2], np.int32), "a.b.classes is out of range"),
        ("classes", np.array([1, 0, -2], np.int32), "a.b.classes is out of range"),
        ("starts", np.arange(3), "the array a.b.starts has length 3 instead of 4"),
        ("starts", np.arange(1, 5), "starts do not start"),
        ("weights", np.ones(3, np.int64), "not of float32 or float64 in 1 dimensions"),
    ],
)
def test_arrays_are_of_their_kind(field, array, words):
    plain, arrays = written()
    arrays[f"a.b.{field}"] = array
    if array is None:
        del arrays[f"a.b.{field}"]
    with pytest.raises(Unsound, match=words):
        TABLE.read(plain, "a.b", Reader(arrays))


def kept(kind, value):
    plain = json.loads(json.dumps(kind.write(value, "a", Writer()), allow_nan=False))
    return kind.read(plain, "a", Reader({}), {})


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 5]), np.array([1, 2], np.uint8), np.array([0.5, 1.0]), np.array([1.5], "f4"),
        np.array([False, True]), np.array(["a", "bcd"]), np.array(["a"], "<U9"),
        np.array(["z", "ä"], object),
    ],
    ids=lambda labels: f"{labels.dtype}",
)  # fmt: skip
def test_labels_keep_their_type(labels):
    found = kept(Labels(), labels)
    np.testing.assert_array_equal(found, labels)
    assert found.dtype == labels.dtype


@pytest.mark.parametrize(
    "plain",
    [
        None, [], {}, {"values": [1, 2], "type": "int63"}, {"values": [1, 2.5], "type": "int64"},
        {"values": [2, 1], "type": "int64"}, {"values": [1, 1], "type": "int64"},
        {"values": [1, 300], "type": "uint8"}, {"values": [], "type": "int64"},
        {"values": [True], "type": "int64"}, {"values": ["a", 1], "type": "text"},
        {"values": ["a"], "type": "text x"}, {"values": "ab", "type": "text"},
    ],
    ids=str,
)  # fmt: skip
def test_labels_that_are_none_are_refused(plain):
    with pytest.raises((Unsound, ValueError, OverflowError)):
        Labels().read(plain, "labels", Reader({}), {})


def test_labels_of_other_objects_are_not_written():
    with pytest.raises(ModelError, match="labels are objects other than text"):
        Labels().write(np.array([None, "a"], object), "labels", Writer())


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(PLAIN)
def test_any_setting_is_read_as_it_was_written(value):
    assert kept(Plain(), value) == value


def test_settings_of_numpy_are_read_as_they_were_written():
    assert kept(Plain(), np.int64(3)) == 3
    assert isinstance(kept(Plain(), np.float32(0.5)), np.float32)
    state = np.random.RandomState(7)
    assert kept(Plain(), state).randint(1 << 30) == state.randint(1 << 30)
    with pytest.raises(ModelError, match=r"a is <function .* which a model file cannot hold"):
        Plain().write(lambda: 0, "a", Writer())


def test_generators_go_on_where_they_were():
    generator = np.random.default_rng(3)
    generator.random(5)
    found = kept(Generator(), generator)
    assert kept(GeneratorState(), generator.bit_generator.state) == generator.bit_generator.state
    assert found.random() == generator.random()
    for wrong in (None, {}, {"bit_generator": "MT19937"}, {"state": 3}, [1]):
        with pytest.raises(Unsound, match="not a generator"):
            Generator().read(wrong, "a", Reader({}), {})
