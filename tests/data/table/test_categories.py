"""Categories: columns of pairs stay where they are, however the rows are cut."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from polyplane.data.table import categories
from polyplane.data.table.categories import (
    MISSING,
    REST,
    VALUE,
    WORD,
    Categories,
    Facet,
    Pair,
    common,
    word_facet,
)
from polyplane.data.table.spelling import texts_of
from polyplane.data.table.texts import NONE

TEXTS = st.sampled_from(["red", "green", "blue", " red ", "?", "", None, "NA", "größe"])


def facets_of(tells_missing=False, **columns):
    return [
        Facet(name, VALUE, texts_of(pa.array(column)), tells_missing)
        for name, column in columns.items()
    ]


def numbers_of(known, facets):
    known.meet(facets)
    return np.stack([known.table_of(one)[one.texts.codes] for one in facets], axis=1)


def test_values_are_numbered_row_by_row_and_from_left_to_right():
    known = Categories()
    facets = facets_of(colour=["red", "blue", "red"], size=["big", "big", "small"])
    np.testing.assert_array_equal(numbers_of(known, facets), [[0, 1], [2, 1], [0, 3]])
    assert [pair.name for pair in known.numbers] == [
        "colour=red",
        "size=big",
        "colour=blue",
        "size=small",
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1), st.data(), st.booleans())
def test_numbers_do_not_depend_on_where_rows_are_cut(rows, data, tells_missing):
    whole, cut = Categories(), Categories()
    a, b = (pa.array(column, pa.string()) for column in zip(*rows, strict=True))
    expected = numbers_of(whole, facets_of(tells_missing, a=a, b=b))
    at = data.draw(st.integers(0, len(rows)))
    parts = [
        numbers_of(cut, facets_of(tells_missing, a=a[part], b=b[part]))
        for part in (slice(0, at), slice(at, None))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    assert cut == whole


def test_spaces_do_not_count_and_a_missing_value_has_no_column_unless_it_is_one():
    column = [" red", "red ", "?", None, "", " NA "]
    numbers = numbers_of(Categories(), facets_of(a=column))
    assert numbers[:, 0].tolist() == [0, 0, NONE, NONE, NONE, NONE]
    known = Categories()
    numbers = numbers_of(known, facets_of(True, a=column))
    assert numbers[:, 0].tolist() == [0, 0, 1, 1, 1, 1]
    assert list(known.numbers) == [Pair("a", VALUE, "red"), Pair("a", MISSING)]


def test_values_of_a_dictionary_that_no_row_has_get_no_column():
    known = Categories()
    unused_first = pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["a", "b"]))
    np.testing.assert_array_equal(numbers_of(known, facets_of(x=unused_first)), [[0], [NONE]])
    assert list(known.numbers) == [Pair("x", VALUE, "b")]


def test_numbers_can_be_categories_and_gaps_do_not_make_them_others():
    whole, real = pa.array([7, 3, None, 7]), pa.array([7.0, 3.0, None, 7.0])
    for column in (whole, real):
        known = Categories()
        np.testing.assert_array_equal(numbers_of(known, facets_of(a=column)), [[0], [1], [-1], [0]])
        assert [pair.value for pair in known.numbers] == ["7", "3"]


def test_frozen_categories_give_new_values_the_column_of_the_rest_or_none():
    known = Categories()
    numbers_of(known, facets_of(a=["x"]))
    known.is_frozen = True
    np.testing.assert_array_equal(numbers_of(known, facets_of(a=["y", "x"])), [[NONE], [0]])
    assert known.width == 1
    known.is_frozen = False
    known.add(Pair("a", REST))
    known.is_frozen = True
    np.testing.assert_array_equal(numbers_of(known, facets_of(a=["y", "x"])), [[1], [0]])


def test_hashed_columns_depend_on_source_and_value_alone():
    first, second = Categories(n_hash=1000), Categories(n_hash=1000)
    forward = numbers_of(first, facets_of(a=["x", "y", None]))
    backward = numbers_of(second, facets_of(a=[None, "y", "x"]))
    np.testing.assert_array_equal(forward, backward[::-1])
    assert first.width == 1000
    assert forward[0, 0] == 245  # the CRC-32 of "a=x" is a promise: models store the columns
    assert numbers_of(first, facets_of(b=["x"]))[0, 0] != forward[0, 0]


def test_what_comes_after_too_many_values_is_the_rest_of_its_column(monkeypatch):
    monkeypatch.setattr(categories, "MOST_CATEGORIES", 3)
    known = Categories()
    numbers_of(known, facets_of(fine=["a", "a"], name=["x", "y"]))
    found = numbers_of(known, facets_of(fine=["a", "b", "a"], name=["z", "u", "x"]))
    assert [pair.what for pair in known.numbers] == [VALUE] * 3 + [REST, REST]
    np.testing.assert_array_equal(found, [[0, 3], [4, 3], [0, 1]])


def test_common_values_are_frequent_and_not_too_many(monkeypatch):
    (facet,) = facets_of(a=["x"] * 3 + ["y"] * 2 + ["z"] * 2 + ["u"])
    assert common(facet, 1).tolist() == [True, True, True, False]
    monkeypatch.setattr(categories, "MOST_OF_A_COLUMN", 2)
    assert common(facet, 1).tolist() == [True, True, False, False]  # of equals the first met


def test_words_are_counted_once_a_row_whatever_their_letters():
    texts = texts_of(pa.array(["Free free CALL!", None, "call me", "Free free CALL!"]))
    facet = word_facet("sms", texts)
    counts = dict(zip(facet.values.to_pylist(), facet.counts().tolist(), strict=True))
    assert counts == {"free": 2, "call": 3, "me": 1}
    known = Categories()
    known.meet([facet])
    assert list(known.numbers) == [
        Pair("sms", WORD, "call"),
        Pair("sms", WORD, "free"),
        Pair("sms", WORD, "me"),
    ]
    starts, columns = facet.entries(known.table_of(facet))
    rows = [sorted(columns[a:b].tolist()) for a, b in itertools.pairwise(starts)]
    assert rows == [[0, 1], [], [0, 2], [0, 1]]


def test_a_pair_that_is_added_after_others_is_known():
    known = Categories()
    known.meet(facets_of(a=["red", "green"]))
    known.add(Pair("a", VALUE, "blue"))
    assert known.known == {("a", VALUE): {"red": 0, "green": 1, "blue": 2}}
