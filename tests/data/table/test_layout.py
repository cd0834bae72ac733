"""Tables: which column is the label, and columns that keep their places."""

import pytest

from polyplane.data.chunks import DataError
from polyplane.data.table.categories import Pair
from polyplane.data.table.layout import Layout, TableOptions, places_in

pytestmark = pytest.mark.loops

NUMBERS = ["number"] * 3


def label_of(names, label="auto"):
    return places_in(Layout(), names, NUMBERS, TableOptions(label=label), "f").label


@pytest.mark.parametrize(
    ("names", "label", "position"),
    [
        (["a", "b", "c"], "auto", 2),
        (None, "auto", 2),
        (["a", "Class", "c"], "auto", 1),
        (["y", "label", "c"], "auto", 1),
        (["a", "b", "c"], "a", 0),
        (["a", "b", "c"], 0, 0),
        (None, -2, 1),
        (["a", "b", "label"], None, None),
    ],
)
def test_the_label_is_found_by_name_or_position_else_it_is_the_last(names, label, position):
    assert label_of(names, label) == position


@pytest.mark.parametrize(
    ("names", "label", "words"),
    [
        (["a", "b", "c"], "d", "called 'd', found 0 columns of that name; the names are 'a', 'b'"),
        (["a", "a", "c"], "a", "called 'a', found 2 columns of that name"),
        (None, "a", "found no names of columns"),
        (None, 3, "found 3 columns, expected one at position 3"),
        (None, -4, "found 3 columns, expected one at position -4"),
    ],
)
def test_a_label_that_cannot_be_found_is_an_error(names, label, words):
    with pytest.raises(DataError, match=words):
        label_of(names, label)


def test_blanks_around_names_of_training_are_no_part_of_the_names_of_files():
    layout, options = Layout(), TableOptions(label=None)
    places_in(layout, ["int ", " b", "b", "c "], ["number"] * 4, options, None)
    found = places_in(layout, ["c", "b", "int", " b"], ["number"] * 4, options, "f")
    assert found.sources == [2, 3, 1, 0]
    with pytest.raises(DataError, match="found no column 'int ', expected"):
        places_in(layout, ["c", "b", "int", "  int", " b"], ["number"] * 5, options, "f")


def test_columns_keep_their_places_in_files_of_another_order():
    layout = Layout()
    options = TableOptions()
    first = places_in(layout, ["a", "b", "c", "y"], ["number", "undecided"] * 2, options, "f")
    assert (first.numbers, first.texts, first.label) == ([0, 2], [1], 3)
    assert layout.label_is_text
    names = ["new", "c", "y", "b", "a"]
    second = places_in(layout, names, ["number"] * 5, options, "f")
    assert (second.numbers, second.texts, second.label) == ([4, 1], [3], 2)


def test_without_names_columns_are_matched_in_order():
    layout = Layout()
    places_in(layout, None, NUMBERS, TableOptions(label=0), "f")
    without_label = places_in(layout, None, NUMBERS[:2], TableOptions(label=None), "f")
    assert without_label.numbers == [0, 1]
    with pytest.raises(DataError, match="found 3 columns besides the label, expected 2"):
        places_in(layout, None, NUMBERS, TableOptions(label=None), "f")


@pytest.mark.parametrize(
    ("first", "second", "label"),
    [
        (["label", "a", "b"], ["a", "b"], None),
        (["label", "a", "b"], ["b", "y", "label", "a"], 2),
        (None, None, 2),
        (None, 2, None),
    ],
)
def test_in_a_second_file_the_label_is_that_of_the_first_or_there_is_none(first, second, label):
    layout = Layout()
    places_in(layout, first, NUMBERS, TableOptions(), "f")
    names, width = (None, second or 3) if first is None else (second, len(second))
    places = places_in(layout, names, ["number"] * width, TableOptions(), "f")
    assert places.label == label
    assert len(places.numbers) == 2


def test_dropped_columns_are_not_read_and_named_ones_are_text():
    options = TableOptions(drop=["id"], text_columns=["zip", "y"])
    layout = Layout()
    places = places_in(layout, ["id", "zip", "a", "y"], ["number"] * 4, options, "f")
    assert (places.numbers, places.texts, places.label) == ([2], [1], 3)
    assert layout.label_is_text


def test_a_layout_survives_plain_values():
    layout = Layout()
    places_in(layout, ["a", "b", "y"], ["number", "category", "number"], TableOptions(), "f")
    layout.categories.add(Pair("b", "value", "red"))
    again = Layout.from_dict(layout.to_dict(), is_frozen=False)
    assert again == layout
    assert again.feature_names == ["a", "b=red"]
    assert Layout.from_dict(layout.to_dict(), is_frozen=True).categories.is_frozen


@pytest.mark.parametrize(
    "wrong", [{"missing": "mean"}, {"categories": "none"}, {"n_hash": 0}], ids=str
)
def test_options_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TableOptions(**wrong)


def test_columns_that_lack_are_named_together_and_those_set_aside_are_not_missed():
    layout = Layout()
    names = ["a", "id", "b", "c"]
    places_in(layout, names, ["number"] * 4, TableOptions(label=None), None)
    layout.sources[1] = layout.sources[1]._replace(kind="aside")
    with pytest.raises(DataError, match="found no columns 'a', 'c', expected all"):
        places_in(layout, ["b", "new"], ["number"] * 2, TableOptions(label=None), None)
    found = places_in(layout, ["c", "b", "a"], ["number"] * 3, TableOptions(label=None), None)
    assert found.sources == [2, None, 1, 0]


def test_the_policy_for_missing_values_travels_with_the_layout():
    layout = Layout()
    places_in(layout, ["a", "y"], ["number"] * 2, TableOptions(missing="zero"), "f")
    again = Layout.from_dict(layout.to_dict(), is_frozen=True)
    places_in(again, ["a", "y"], ["number"] * 2, TableOptions(), "f")
    assert again.missing == "zero"


@pytest.mark.parametrize(
    ("name", "value"),
    [("missing", "maybe"), ("sources", [["a", "colour", 0, 0]]), ("pairs", [["a", "value"]])],
)
def test_a_layout_of_another_program_is_refused(name, value):
    plain = Layout().to_dict() | {name: value}
    with pytest.raises(ValueError, match=r"unknown|unpack"):
        Layout.from_dict(plain, is_frozen=True)
