"""Frames of any library, and files of the same table, become the same rows."""

import datetime
import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import DataError
from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv.reader import CsvOptions
from polyplane.data.table.frames import frame_of, has_texts, is_frame, rows_of
from polyplane.data.table.layout import Layout

polars = pytest.importorskip("polars")

NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6, width=32))
WORDS = st.one_of(st.none(), st.sampled_from(["red", "green", "dark blue", "größe", "x,y", 'q"q']))
DATES = st.one_of(st.none(), st.datetimes(datetime.datetime(1950, 1, 1)).map(lambda d: d.replace(
    microsecond=0)))  # fmt: skip
FLAGS = st.one_of(st.none(), st.booleans())
KINDS = {
    "number": (NUMBERS.map(lambda v: None if v is None else float(v)), pa.float64()),
    "whole": (st.one_of(st.none(), st.integers(-1000, 1000)), pa.int64()),
    "word": (WORDS, pa.string()),
    "date": (DATES, pa.timestamp("us")),
    "flag": (FLAGS, pa.bool_()),
}


@st.composite
def tables(draw):
    """A table of a few columns, each of a kind that all libraries know."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))
    n_rows = draw(st.integers(1, 70))
    columns = {}
    for k, kind in enumerate(kinds):
        values, arrow = KINDS[kind]
        cells = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
        columns[f"{kind} {k}"] = pa.array(cells, arrow)
    return pa.table(columns)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def learned(frame, **options):
    layout = Layout(grows=False, **options)
    return dense(rows_of(frame_of(frame), layout)), layout


@settings(deadline=None)
@given(tables())
def test_rows_that_were_learned_from_become_the_same_rows_again(table):
    X, layout = learned(table)
    again = Layout.from_dict(layout.to_dict(), is_frozen=True)
    np.testing.assert_array_equal(dense(rows_of(frame_of(table), again)), X)
    assert again == layout
    assert X.shape == (table.num_rows, layout.width)
    assert len(layout.feature_names) == len(set(layout.feature_names)) == layout.width


@settings(deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_columns_are_found_by_name_and_others_are_not_read(table, random):
    X, layout = learned(table)
    names = table.column_names
    random.shuffle(names)
    other = table.select(names).append_column("new", pa.array(["text"] * table.num_rows))
    np.testing.assert_array_equal(dense(rows_of(frame_of(other), layout)), X)


@settings(deadline=None)
@given(tables(), st.integers(1, 20))
def test_a_layout_that_grows_keeps_earlier_columns_in_place(table, n_rows):
    layout, parts = Layout(grows=True), []
    for start in range(0, table.num_rows, n_rows):
        parts.append(dense(rows_of(frame_of(table.slice(start, n_rows)), layout)))
    layout.categories.is_frozen = True
    again = dense(rows_of(frame_of(table), layout))
    for k, part in enumerate(parts):
        place = slice(k * n_rows, k * n_rows + len(part))
        np.testing.assert_array_equal(again[place, : part.shape[1]], part)
        assert not again[place, part.shape[1] :].any()


@settings(deadline=None)
@given(tables())
def test_pandas_polars_and_arrow_give_the_same_rows(table):
    expected, layout = learned(table)
    for frame in (table.to_pandas(), polars.from_arrow(table), *_pandas_variants(table)):
        X, other = learned(frame)
        np.testing.assert_array_equal(X, expected)
        assert other.feature_names == layout.feature_names


def _pandas_variants(table):
    """Nullable types, and columns of Python's own values."""
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    yield table.to_pandas().convert_dtypes()


@settings(deadline=None)
@given(tables())
def test_a_file_of_the_same_table_gives_the_same_rows(table):
    expected, layout = learned(table)
    other = Layout(grows=False)
    text = table.to_pandas().to_csv(index=False).encode()
    options = CsvOptions(label=None, header=True, delimiter=",")
    chunks = list(csv_text.chunks(io.BytesIO(text), "f", 1 << 40, options, None, other))
    if [source.kind for source in other.sources] == [s.kind for s in layout.sources]:
        np.testing.assert_array_equal(dense(chunks[0].X), expected)
    else:  # a column of nothing but gaps says nothing of its type in text
        gaps = [table.column(k).null_count == table.num_rows for k in range(table.num_columns)]
        assert any(gaps)


def test_types_say_what_columns_are():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int32"),
            "decimal": [decimal.Decimal("1.5"), None, decimal.Decimal("2.5")],
            "flag": pd.array([True, None, False], dtype="boolean"),
            "when": pd.to_datetime(["2024-01-31", None, "2024-02-29"]).tz_localize("Europe/Paris"),
            "day": [datetime.date(2024, 1, 31), None, datetime.date(2024, 2, 29)],
            "long": pd.to_timedelta(["1 days", None, "2 hours"]),
            "time": [datetime.time(1, 0), None, datetime.time(2, 30)],
            "category": pd.Categorical([3, None, 5]),
            "text": ["a", None, "b"],
            "numbers": ["1", "NA", " 2.5 "],
            "truth": ["True", None, "false"],
            "iso": ["2024-01-31", "", "2024-02-29 12:00"],
            "mixed": ["a", 1, None],
        }
    )
    X, layout = learned(frame)
    assert {source.name: source.kind for source in layout.sources} == {
        "whole": "number", "decimal": "number", "flag": "flag", "when": "date", "day": "date",
        "long": "seconds", "time": "seconds", "category": "category", "text": "category",
        "numbers": "number", "truth": "flag", "iso": "date", "mixed": "category",
    }  # fmt: skip
    column = dict(zip(layout.feature_names, X.T, strict=True))
    np.testing.assert_array_equal(column["whole"], [1, 2, 3])
    np.testing.assert_array_equal(column["whole missing"], [0, 1, 0])
    np.testing.assert_array_equal(column["long"], [86400, 46800, 7200])
    np.testing.assert_array_equal(column["time"], [3600, 6300, 9000])
    np.testing.assert_array_equal(column["day"], [0, 14.5, 29])
    np.testing.assert_array_equal(column["day month=2"], [0, 0, 1])
    np.testing.assert_array_equal(column["iso hour=12"], [0, 0, 1])
    np.testing.assert_array_equal(column["category=5"], [0, 0, 1])
    np.testing.assert_array_equal(column["category missing"], [0, 1, 0])
    np.testing.assert_array_equal(column["mixed=1"], [0, 1, 0])
    assert "day hour=0" not in column  # it does not vary


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.250+02:00",
                                  "%Y-%m-%dT%H:%M-0330", "%Y-%m-%dT%H:%M:%S+02"])  # fmt: skip
def test_dates_of_a_time_zone_are_as_its_clocks_show_them(form):
    texts = pd.date_range("2024-01-31 22:00", periods=60, freq="7h").strftime(form)
    X, layout = learned(pa.table({"a": texts.tolist()}))
    clock = texts.str.replace(r"(Z|[+-]\d\d(:?\d\d)?)$", "", regex=True)
    expected, of_clock = learned(pa.table({"a": clock.tolist()}))
    assert layout.sources[0].kind == "date"
    assert layout == of_clock
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("text", ["2024-01-31Z", "2024-01-31+02:00", "2024-01-31T12Z", "12:00Z",
                                  "2024-02-30T12:00Z", "2024-01-31T12:00X"])  # fmt: skip
def test_other_texts_with_a_zone_are_no_dates(text):
    _, layout = learned(pa.table({"a": [text, "2024-01-31T12:00Z"]}))
    assert layout.sources[0].kind == "category"


def test_rare_and_unseen_values_share_a_column():
    values = ["often"] * 60 + ["rare", "scarce"] + ["common"] * 38
    _, layout = learned(pa.table({"a": values}))
    assert layout.feature_names == ["a=often", "a rest", "a=common"]
    X = dense(rows_of(frame_of(pa.table({"a": ["rare", "new", "often", None]})), layout))
    np.testing.assert_array_equal(X, [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("found", [[7], [0.5], [True], [None], [float("nan")]])
@pytest.mark.parametrize("values", [["1", "2", "a"], ["x"] * 60 + ["y", "z"]])
def test_a_number_may_be_new_among_numbers_or_rare_among_words(values, found):
    _, layout = learned(pa.table({"a": values}))
    rows_of(frame_of(pd.DataFrame({"a": found})), layout)


@pytest.mark.parametrize("found", [[None], [float("nan")], ["new"], ["7"]])
def test_no_value_or_a_new_word_may_stand_among_words(found):
    _, layout = learned(pa.table({"a": ["yes", "no", "yes"]}))
    assert not dense(rows_of(frame_of(pd.DataFrame({"a": found})), layout)).any()


def test_a_gap_that_training_had_not_met_is_the_median():
    _, layout = learned(pa.table({"a": [1.0, 5.0, 9.0]}))
    X = rows_of(frame_of(pa.table({"a": pa.array([None, 2.0])})), layout)
    np.testing.assert_array_equal(X, [[5.0], [2.0]])


@pytest.mark.parametrize("cells", [[None, None], [np.nan, np.nan], ["", "NA"], [pd.NaT, pd.NaT]])
def test_a_column_without_a_value_in_training_takes_any_value_later(cells):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": cells})
    _, layout = learned(frame)
    if isinstance(cells[0], type(pd.NaT)):
        assert layout.sources[1].kind == "date"
        return
    assert layout.sources[1].kind == "empty"
    later = pd.DataFrame({"a": [1.0] * 4, "b": ["text", None, "7", "nan"]})
    X = dense(rows_of(frame_of(later), layout))
    np.testing.assert_array_equal(X, [[1, 0, 1], [1, 0, 1], [1, 7, 0], [1, 0, 1]])
    for i, cell in enumerate(["text", None, 7.0, np.nan]):
        one = pd.DataFrame({"a": [1.0], "b": [cell]})
        np.testing.assert_array_equal(dense(rows_of(frame_of(one), layout)), X[[i]])
    dates = pd.DataFrame({"a": [1.0], "b": [np.datetime64("2020-01-01", "s")]})
    np.testing.assert_array_equal(dense(rows_of(frame_of(dates), layout)), X[[0]])


def test_no_row_of_a_frame_is_left_out():
    layout = Layout(missing="skip")
    rows_of(frame_of(pa.table({"a": [1.0, 5.0]})), layout.copied())
    with pytest.raises(DataError, match="row 1 of X: found no value in column 'a'"):
        rows_of(frame_of(pa.table({"a": [1.0, None]})), layout)


@pytest.mark.parametrize("value", [None, 3.0, "same"])
def test_columns_that_are_missing_everywhere_or_of_one_value(value):
    frame = pd.DataFrame({"a": [value] * 60, "b": range(60)})
    X, layout = learned(frame)
    np.testing.assert_array_equal(dense(rows_of(frame_of(frame), layout)), X)
    assert np.isfinite(X).all()


def test_a_hundred_thousand_categories_are_bounded():
    codes = np.random.default_rng(0).zipf(1.3, 300_000) % 100_000
    texts = [f"v{code}" for code in codes.tolist()]
    frame = pa.table({"a": texts})
    layout = Layout(grows=False)
    X = rows_of(frame_of(frame), layout)
    assert layout.width <= 4_097
    assert X.nnz == len(codes)
    growing = Layout(grows=True)
    rows_of(frame_of(pa.table({"a": [f"v{k}" for k in range(100_000)] * 2})), growing)
    assert growing.width <= (1 << 16) + 1


def test_ids_and_names_are_set_aside_unless_the_user_insists():
    n = 200
    frame = pd.DataFrame(
        {
            "id": [f"C-{k:05d}" for k in range(n)],
            "ticket": [f"t{k // 2}" for k in range(n)],
            "text": [f"hello number{k} and welcome to this place" for k in range(n)],
            "x": np.arange(n) // 2,
        }
    )
    X, layout = learned(frame)
    assert layout.set_aside == ["id", "ticket"]
    assert "text word=welcome" in layout.feature_names
    insisted = Layout(grows=False)
    rows_of(frame_of(frame), insisted, ["id"])
    assert insisted.set_aside == ["ticket"]
    without = frame.drop(columns=["id", "ticket"])
    np.testing.assert_array_equal(dense(rows_of(frame_of(without), layout)), X)


@pytest.mark.parametrize(
    ("name", "numbers", "is_aside"),
    [
        ("row", np.arange(100), True),
        ("row", np.arange(1, 101).astype(float), True),
        ("row", np.arange(2, 102), False),  # it may be anything
        ("id", np.arange(100)[::-1] * 37 + 12, True),
        ("user_id", np.arange(100) * 37, True),
        ("PassengerId", np.arange(100) * 37, True),
        ("user id ", np.arange(100) * 10**14, True),
        ("paid", np.arange(100) * 37, False),
        ("id", np.arange(100) // 2, False),  # of two rows each
        ("id", np.arange(100) + 0.5, False),
        ("id", np.arange(49), False),
        ("id", np.where(np.arange(100) == 7, np.nan, np.arange(100)), False),
    ],
)
def test_numbers_that_tell_rows_apart_are_set_aside(name, numbers, is_aside):
    frame = pd.DataFrame({"a": np.arange(len(numbers)) % 3, name: numbers})
    layout = learned(frame)[1]
    assert layout.set_aside == [name] * is_aside
    assert learned(frame[[name]])[1].set_aside == []  # nothing else is left
    insisted = Layout(grows=False)
    rows_of(frame_of(frame), insisted, [name])
    assert insisted.sources[1].kind == "category"
    for grows in (True, False):
        layout = Layout(grows=grows)
        file = io.BytesIO(frame.to_csv(index=False).encode())
        options = CsvOptions(label=None, header=True)
        list(csv_text.chunks(file, "f", 1000, options, None, layout))
        assert layout.set_aside == [name.strip()] * is_aside


def test_a_file_with_other_numbers_that_tell_rows_apart_is_remarked(caplog):
    text = "a,amount\n" + "".join(f"{k % 3},{k * 37 % 1009}\n" for k in range(100))
    options, layout = CsvOptions(label=None, header=True), Layout()
    list(csv_text.chunks(io.BytesIO(text.encode()), "f", 1000, options, None, layout))
    assert layout.set_aside == []
    (message,) = caplog.messages
    assert "column 'amount' holds a different whole number in every row" in message


def test_a_table_of_nothing_but_ids_is_refused():
    words = "found no column to learn from: .*, pass categorical_features="
    with pytest.raises(DataError, match=words):
        learned(pa.table({"id": [f"C-{k:05d}" for k in range(100)]}))


@pytest.mark.parametrize(
    "names", [[0, 1], [("a", 1), ("b", 2)], [1.5, None], ["=", " rest"], ["", "\n"]], ids=str
)
def test_names_may_be_anything(names):
    frame = pd.DataFrame([[1.0, "a"], [2.0, "b"], [None, "a"]])
    frame.columns = pd.Index(names, tupleize_cols=False)
    X, layout = learned(frame)
    expected, _ = learned(frame.set_axis(["p", "q"], axis=1))
    np.testing.assert_array_equal(X, expected)
    again = Layout.from_dict(layout.to_dict(), is_frozen=True)
    np.testing.assert_array_equal(dense(rows_of(frame_of(frame), again)), X)


def test_columns_without_names_are_known_by_their_order():
    _, layout = learned(pd.DataFrame([[1, "a"], [2, "b"]]))
    X = dense(rows_of(frame_of(pd.DataFrame([[7, "b"]], columns=["p", "q"])), layout))
    np.testing.assert_array_equal(X, [[7, 0, 1]])
    with pytest.raises(DataError, match="found 3 columns"):
        rows_of(frame_of(pd.DataFrame([[7, "b", 1]])), layout)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"a": ["x"], "b": ["p"]}, "found text such as 'x' in column 'a', expected numbers"),
        ({"a": [np.datetime64("2020-01-01", "s")], "b": ["p"]}, "found dates in column 'a'"),
        ({"a": [np.inf], "b": ["p"]}, "row 0 of X: found an infinite value in column 'a'"),
        ({"b": ["p"]}, "found no column 'a'"),
    ],
)
def test_what_has_changed_since_training_is_named(frame, words):
    _, layout = learned(pd.DataFrame({"a": [1.0, 2.0], "b": ["p", "q"]}))
    with pytest.raises(DataError, match=words):
        rows_of(frame_of(pd.DataFrame(frame)), layout)


def test_dates_that_have_become_words_are_named():
    _, layout = learned(pd.DataFrame({"d": ["2020-01-01", "2020-05-06"]}))
    with pytest.raises(DataError, match="found text such as 'soon' in column 'd', expected dates"):
        rows_of(frame_of(pd.DataFrame({"d": ["2020-01-01", "soon"]})), layout)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": []}), "0 sample"),
        (pd.DataFrame(index=[0, 1]), "0 feature"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns called 'a'"),
        (pa.table({"a": [[1, 2]]}), "found list<.*> in column 'a'"),
        (pd.DataFrame({"a": [1j]}), "column 'a'"),
    ],
)
def test_frames_that_are_no_tables_are_refused(frame, words):
    with pytest.raises(ValueError, match=words):
        learned(frame)


@pytest.mark.parametrize("protocol", ["__arrow_c_stream__", "__dataframe__"])
def test_whatever_speaks_a_protocol_is_a_frame(protocol):
    table = pa.table({"a": [1.5, None], "b": ["x", "y"]})
    strange = type(
        "Strange", (), {protocol: lambda self, *a, **k: getattr(table, protocol)(*a, **k)}
    )
    assert is_frame(strange())
    np.testing.assert_array_equal(learned(strange())[0], learned(table)[0])


def test_what_is_a_frame():
    table = pa.table({"a": [1]})
    assert all(map(is_frame, [table, table.to_pandas(), polars.from_arrow(table)]))
    assert is_frame(table.to_batches()[0])
    assert is_frame(pd.DataFrame({"dtype": [1], "ndim": [2]}))
    others = np.ones((2, 2)), [[1]], sp.eye(2), pd.Series([1]), polars.Series([1])
    assert not any(map(is_frame, others))
    assert has_texts(np.array([["a", 1]], object))
    assert not has_texts(np.array([[1.0, 1]], object))
