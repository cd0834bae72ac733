"""Categories: columns of text values stay where they are, however the rows are cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplane.data.chunks import DataError
from polyplane.data.table import categories
from polyplane.data.table.categories import NONE, Categories, texts_of

TEXTS = st.sampled_from(["red", "green", "blue", " red ", "?", "", None, "NA", "größe"])


def columns_of(known, **columns):
    return known.columns_of(list(columns), [texts_of(pa.array(c)) for c in columns.values()], "f")


def test_values_are_numbered_row_by_row_and_from_left_to_right():
    known = Categories()
    numbers = columns_of(known, colour=["red", "blue", "red"], size=["big", "big", "small"])
    np.testing.assert_array_equal(numbers, [[0, 1], [2, 1], [0, 3]])
    assert list(known.numbers) == [
        ("colour", "red"),
        ("size", "big"),
        ("colour", "blue"),
        ("size", "small"),
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1), st.data())
def test_numbers_do_not_depend_on_where_rows_are_cut(rows, data):
    whole, cut = Categories(), Categories()
    a, b = (pa.array(column, pa.string()) for column in zip(*rows, strict=True))
    expected = whole.columns_of(["a", "b"], [texts_of(a), texts_of(b)], "f")
    at = data.draw(st.integers(0, len(rows)))
    parts = [
        cut.columns_of(["a", "b"], [texts_of(a[part]), texts_of(b[part])], "f")
        for part in (slice(0, at), slice(at, None))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    assert cut == whole


def test_spaces_do_not_count_and_missing_values_have_no_column():
    known = Categories()
    numbers = columns_of(known, a=[" red", "red ", "?", None, "", " NA "])
    assert numbers[:, 0].tolist() == [0, 0, NONE, NONE, NONE, NONE]


def test_values_of_a_dictionary_that_no_row_has_get_no_column():
    known = Categories()
    unused_first = pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["a", "b"]))
    np.testing.assert_array_equal(columns_of(known, x=unused_first), [[0], [NONE]])
    assert list(known.numbers) == [("x", "b")]


def test_numbers_can_be_categories():
    np.testing.assert_array_equal(
        columns_of(Categories(), a=[7, 3, None, 7]), [[0], [1], [-1], [0]]
    )


def test_frozen_categories_give_new_values_no_column():
    known = Categories()
    columns_of(known, a=["x"])
    known.is_frozen = True
    np.testing.assert_array_equal(columns_of(known, a=["y", "x"]), [[NONE], [0]])
    assert known.width == 1


def test_hashed_columns_depend_on_source_and_value_alone():
    first, second = Categories(n_hash=1000), Categories(n_hash=1000)
    forward = columns_of(first, a=["x", "y", None])
    backward = columns_of(second, a=[None, "y", "x"])
    np.testing.assert_array_equal(forward, backward[::-1])
    assert first.width == 1000
    assert forward[0, 0] == 245  # the CRC-32 of "a=x" is a promise: models store the columns
    assert columns_of(first, b=["x"])[0, 0] != forward[0, 0]


def test_too_many_values_are_an_error_that_names_the_column(monkeypatch):
    monkeypatch.setattr(categories, "MOST_CATEGORIES", 3)
    known = Categories()
    columns_of(known, fine=["a", "a"], name=["x", "y"])
    with pytest.raises(DataError, match=r"drop=\('name',\)"):
        columns_of(known, fine=["a"], name=["z"])
