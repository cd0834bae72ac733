"""A value is spelled alike whatever stands beside it, in frames and in files."""

import datetime
import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv.reader import CsvOptions
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from polyplane.data.table.spelling import other_spellings, respelled, spelled_objects, texts_of

UTC = datetime.UTC
DAY = datetime.datetime(2020, 1, 31)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 0.1, 1e20, -1e-7, float("inf"), float("nan")]),
    st.sampled_from(
        [np.float32(0.1), np.float16(0.1), np.int64(1), np.bool_(True), np.longdouble(1.5)]
    ),
    st.sampled_from([decimal.Decimal("1.0"), decimal.Decimal("2.55"), decimal.Decimal("1E+3")]),
    st.sampled_from([DAY, DAY.date(), DAY.replace(hour=12), DAY.replace(tzinfo=UTC), pd.NaT]),
    st.sampled_from([pd.Timestamp("2020-01-31", tz="Asia/Tokyo"), np.datetime64("2020-01-31")]),
    st.sampled_from([pd.Timedelta("1h"), datetime.timedelta(1), datetime.time(12), pd.NA]),
    st.sampled_from(["unknown", "1.0", "1", "True", "2020-01-31", " x ", "2020-01-31 00:00:00"]),
)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def rows(frame, layout):
    return dense(rows_of(frame_of(frame), layout))


@settings(deadline=None, max_examples=300)
@example([[1.0, 2.0], ["unknown", "other"]])
@example([[1.0, True], [True, 1.0]])
@example([[DAY, DAY.date()], [1, "x"]])
@example([(None, 0), (None, 10000000512), (None, np.float32(0.1))])
@example([(None, False), (None, np.float16(0.1))])
@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=12).map(list))
def test_a_row_alone_equals_the_row_in_its_batch(cells):
    frame = pd.DataFrame([list(row) for row in cells], columns=["a", "b"], dtype=object)
    frame["c"] = range(len(cells))  # so that there is always a column to learn from
    layout = Layout(grows=False)
    X = _rows_or_problem(frame, layout, ["a"])  # b is what its values look like
    if isinstance(X, str):
        assert "infinite" in X  # a number that no row may have
        return
    layout.categories.is_frozen = True
    np.testing.assert_array_equal(rows(frame, layout), X)
    slack = 1e-7 if any(source.is_scaled for source in layout.sources) else 0
    for i in range(len(frame)):
        one = frame.iloc[[i]]
        for alone in (one, one.infer_objects()):
            found = _rows_or_problem(alone, layout)
            if isinstance(found, str):
                assert "expected texts such as" in found  # all values were words in training
            else:
                # a float32 beside others is spelled in few digits, which only a scale keeps apart
                np.testing.assert_allclose(found, X[[i]], rtol=slack, atol=slack)


def _rows_or_problem(frame, layout, categorical=()):
    try:
        return dense(rows_of(frame_of(frame), layout, categorical))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.0, 2.5], ["1", "2.5"]),
        ([1e20, 2e20, np.inf], ["1e+20", "2e+20", "inf"]),
        ([True, False], ["true", "false"]),
        ([decimal.Decimal("1.50"), decimal.Decimal("2.00")], ["1.5", "2"]),
        ([DAY, DAY.replace(hour=12, microsecond=500_000)], ["2020-01-31", "2020-01-31 12:00:00.5"]),
        ([DAY.date()], ["2020-01-31"]),
        ([datetime.time(12), datetime.time(1, 2, 3, 40)], ["12:00:00", "01:02:03.00004"]),
        ([datetime.timedelta(1), datetime.timedelta(seconds=0.5)], ["86400", "0.5"]),
    ],
)
def test_values_with_a_type_are_spelled_as_objects_are(values, texts):
    assert texts_of(pa.array(values)).values.to_pylist() == texts
    assert spelled_objects(values) == texts


@pytest.mark.parametrize(
    "values", [[True, False], [1.5, 2.0], [1.0, 2.0], [DAY, DAY.replace(hour=12)]], ids=str
)
def test_a_category_of_pandas_is_the_column_of_the_same_texts_and_of_its_file(values):
    values = [*values, values[0]]
    frame = pd.DataFrame({"a": pd.Categorical(values), "b": [1.0, 2.0, 3.0]})
    layout = Layout(grows=False)
    X = rows(frame, layout)
    texts = pd.DataFrame({"a": pd.Categorical(spelled_objects(values)), "b": frame["b"]})
    other = Layout(grows=False)
    np.testing.assert_array_equal(rows(texts, other), X)
    assert other == layout
    text = frame.to_csv(index=False).encode()
    options = CsvOptions(label=None, header=True, delimiter=",", text_columns=("a",))
    for known in (layout, Layout(grows=False)):
        (chunk,) = csv_text.chunks(io.BytesIO(text), "f", 1 << 40, options, None, known)
        np.testing.assert_array_equal(dense(chunk.X), X)
        assert known.feature_names == layout.feature_names


@given(st.sampled_from(["true", "1", "-12", "2020-01-31", "2020-01-31 12:00:00", "x", "1.5", ""]))
def test_other_spellings_are_those_that_are_respelled(value):
    for text in other_spellings(value):
        assert respelled(texts_of(pa.array([text]))).values.to_pylist() == [value]
    assert respelled(texts_of(pa.array([value]))).values.to_pylist() == ([value] if value else [])
    assert bool(other_spellings(value)) == (value not in ("x", "1.5", ""))


def test_large_numbers_stay_apart_as_categories():
    values = [1e20, 2e20, 3e20, np.inf, -np.inf]
    layout = Layout(grows=False)
    X = dense(rows_of(frame_of(pd.DataFrame({"c": values})), layout, ["c"]))
    np.testing.assert_array_equal(X, np.eye(5))


@pytest.mark.parametrize(("name", "cell"), [("a", "\ud800"), ("\ud800", "x")])
def test_text_that_is_not_unicode_is_named(name, cell):
    frame = pd.DataFrame([["x"], [cell]], columns=pd.Index([name], dtype=object), dtype=object)
    with pytest.raises(ValueError, match=r"ud800.*UTF-8 can write"):
        rows(frame, Layout())


def test_types_that_arrow_does_not_know_are_numbers():
    frame = pd.DataFrame({"a": np.array([1.5, 2.5], np.longdouble), "b": pd.to_timedelta(
        [(1 << 62) + 1, 3], unit="ns")})  # fmt: skip
    np.testing.assert_array_equal(
        rows(frame, Layout()), [[1.5, np.float32(2**62 / 1e9)], [2.5, np.float32(3e-9)]]
    )
