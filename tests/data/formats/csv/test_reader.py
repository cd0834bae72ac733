"""CSV text: what is read equals what was written, and what cannot be read is named exactly."""

import contextlib
import csv
import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.csv import reader as csv_text
from polyplane.data.formats.csv import records as csv_records
from polyplane.data.formats.csv.reader import CsvOptions, chunks
from polyplane.data.table.layout import Layout
from polyplane.engine.inspection import LARGEST

pytestmark = pytest.mark.loops


def read(text, chunk_rows=1000, bad=None, layout=None, **options):
    """All chunks of a text or of bytes."""
    data = text.encode() if isinstance(text, str) else text
    return list(chunks(io.BytesIO(data), "f.csv", chunk_rows, CsvOptions(**options), bad, layout))


def read_one(text, **options):
    (chunk,) = read(text, **options)
    return chunk


def error_of(text, **options):
    with pytest.raises(DataError) as caught:
        read(text, **options)
    assert caught.value.path == "f.csv"
    return caught.value


def set_block_bytes(patch, n_bytes):
    """Make blocks of a file so large, the first as well."""
    patch.setattr(csv_records, "FIRST_BYTES", n_bytes)
    patch.setattr(csv_records, "BLOCK_BYTES", n_bytes)


def dense(chunk):
    return chunk.X.toarray() if sp.issparse(chunk.X) else chunk.X


# What is read


def test_numbers_are_dense_float32_and_whole_labels_integers():
    chunk = read_one("a,b,label\n1,2.5,0\n-3e2,.5,1\n")
    assert chunk.X.dtype == np.float32
    assert chunk.X.flags.c_contiguous
    assert chunk.X.flags.writeable
    np.testing.assert_array_equal(chunk.X, [[1, 2.5], [-300, 0.5]])
    assert chunk.y.dtype == np.int64
    assert chunk.y.tolist() == [0, 1]


def test_labels_with_fractions_are_floats_and_text_is_text():
    assert read_one("1,0.5\n2,1\n").y.tolist() == [0.5, 1.0]
    assert read_one("1,cat\n2,dog\n").y.tolist() == ["cat", "dog"]


def test_without_a_label_all_columns_are_features():
    chunk = read_one("1,2\n3,4\n", label=None)
    np.testing.assert_array_equal(chunk.X, [[1, 2], [3, 4]])
    assert chunk.y.shape == (0,)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("has_last_end", [True, False])
def test_line_ends_and_delimiters_are_found_out(end, delimiter, has_last_end):
    lines = ["a b", "1 2", "", "3 4"]
    text = end.join(line.replace(" ", delimiter) for line in lines) + end * has_last_end
    chunk = read_one(text)
    np.testing.assert_array_equal(chunk.X, [[1], [3]])
    assert chunk.y.tolist() == [2, 4]


def test_quotes_hide_delimiters_line_ends_and_quotes():
    chunk = read_one('name,y\n"a,b",1\n"c\n""d""",2\n"a,b",3\n')
    np.testing.assert_array_equal(dense(chunk), [[1, 0], [0, 1], [1, 0]])
    layout = Layout()
    read('name,y\n"c\n""d""",2\n', layout=layout)
    assert layout.feature_names == ['name=c\n"d"']


@pytest.mark.parametrize(
    ("text", "has_header"),
    [
        ("a,b\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("a,1\nb,2\n", False),
        ("colour,kind\nred,x\nblue,y\n", True),
        ("red,x\nblue,y\nred,y\n", False),
        (",b\n1,2\n", True),
    ],
)
def test_a_header_is_found_out(text, has_header):
    n_rows = text.count("\n") - has_header
    assert len(read_one(text).y) == n_rows


def test_a_header_can_be_stated():
    assert len(read_one("1,2\n3,4\n", header=True).y) == 1
    assert len(read_one("a,b\nc,d\n", header=False).y) == 2


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    chunk = read_one(b"\xef\xbb\xbflabel,a\n1,2\n")
    assert chunk.y.tolist() == [1]


def test_a_header_longer_than_a_block_does_not_hide_the_rows(monkeypatch):
    set_block_bytes(monkeypatch, 16)
    chunk = read_one("a_long_name,another_name,label\nx,1,0\ny,2,1\n")
    np.testing.assert_array_equal(dense(chunk), [[1, 1, 0], [2, 0, 1]])


def test_an_empty_file_is_an_error_and_a_header_alone_is_no_rows():
    assert "found no text" in str(error_of(""))
    assert "found no text" in str(error_of("\n \r\n\n"))
    assert read("a,b,label\n") == []


def test_one_column_is_an_error_unless_there_is_no_label():
    assert "found 1 column, expected at least one besides the label" in str(error_of("1\n2\n"))
    np.testing.assert_array_equal(read_one("1\n2\n", label=None).X, [[1], [2]])


# Text and missing values


def test_text_becomes_columns_behind_the_numbers_and_rows_sparse():
    layout = Layout()
    first, second = read("x,1,0\ny,0,1\nx,3,1\nz,4,0\n", chunk_rows=3, layout=layout)
    assert isinstance(first.X, sp.csr_matrix)
    assert first.X.indices.dtype == np.int32
    assert first.X.has_canonical_format
    np.testing.assert_array_equal(dense(first)[:, :3], [[1, 1, 0], [0, 0, 1], [3, 1, 0]])
    np.testing.assert_array_equal(dense(second), [[4, 0, 0, 1]])
    assert layout.feature_names == ["2", "1=x", "1=y", "1=z"]


def test_hashed_text_has_a_fixed_width_and_adds_up_where_it_meets():
    chunk = read_one("x,y,1,0\ny,x,0,1\n", categories="hash", n_hash=1)
    np.testing.assert_array_equal(dense(chunk), [[1, 2], [0, 2]])


def test_a_test_file_has_the_columns_of_its_training_file():
    layout = Layout()
    read("age,job,label\n1,cook,0\n2,smith,1\n", layout=layout)
    frozen = Layout.from_dict(layout.to_dict(), is_frozen=True)
    chunk = read_one("job,age\nsmith,3\nking,4\n", layout=frozen)
    np.testing.assert_array_equal(dense(chunk), [[3, 0, 1], [4, 0, 0]])
    assert chunk.y.shape == (0,)


def test_numbers_named_as_text_are_categories():
    chunk = read_one("7,1\n8,0\n7,1\n", text_columns=[0, 1])
    np.testing.assert_array_equal(dense(chunk), [[1, 0], [0, 1], [1, 0]])
    assert chunk.y.tolist() == ["1", "0", "1"]


@pytest.mark.parametrize("absent", ["", "?", "NA", "nan", " ? ", '""'])
def test_missing_values_are_errors_or_zeros_or_rows_left_out(absent):
    text = f"1,r,0\n{absent},g,1\n3,{absent},1\n4,r,0\n"
    error = error_of(text, header=False, missing="error")
    assert (error.line, error.column) == (2, 1)
    assert "missing='zero'" in str(error)
    zeros = read_one(text, missing="zero")
    np.testing.assert_array_equal(dense(zeros), [[1, 1, 0], [0, 0, 1], [3, 0, 0], [4, 1, 0]])
    filled = read_one(text)
    expected = [[1, 1, 0, 0, 0], [3, 0, 1, 1, 0], [3, 0, 0, 0, 1], [4, 1, 0, 0, 0]]
    np.testing.assert_array_equal(dense(filled), expected)  # number, r, missing, g, missing
    layout = Layout()
    kept = read_one(text, missing="skip", layout=layout)
    np.testing.assert_array_equal(dense(kept), [[1, 1], [4, 1]])
    assert kept.y.tolist() == [0, 0]
    assert layout.n_left_out == 2


def test_a_missing_label_is_never_zero():
    error = error_of("1,2\n3,\n", missing="zero")
    assert (error.line, error.column) == (2, 2)
    assert read_one("1,2\n3,\n", missing="skip").y.tolist() == [2]


@pytest.mark.parametrize("number", ["0001_01", "1_0", "٣"])
def test_what_only_python_takes_for_a_number_is_text(number):
    layout = Layout()
    chunk = read_one(f"{number},1,{number}\n{number},2,{number}\n", layout=layout)
    assert [source.kind for source in layout.sources] == ["category", "number"]
    assert chunk.y.tolist() == [number] * 2


def test_a_label_that_reads_infinite_among_texts_is_a_text():
    assert read_one("1,inf\n2,a\n3,b\n").y.tolist() == ["inf", "a", "b"]


def test_an_infinite_label_is_not_missing():
    assert error_of("1,2\n1,inf\n", missing="skip").line == 2


# What is remarked


def remarks_of(caplog, text, **options):
    """What the reader remarks on the way, once however often it is read."""
    caplog.clear()
    layout = Layout()
    for _ in range(2):
        read(text, layout=layout, **options)
    return [record.getMessage() for record in caplog.records]


def test_a_first_line_of_numbers_and_a_word_is_read_with_a_remark(caplog):
    text = "0,1,2,label\n5.1,3.5,1.4,a\n4.9,3,1.4,b\n"
    (remark,) = remarks_of(caplog, text)
    assert remark.startswith("f.csv, line 1: ")
    assert "header=True" in remark
    assert "--header" in remark
    assert remarks_of(caplog, text, header=False) == remarks_of(caplog, text, header=True) == []
    assert remarks_of(caplog, "5,1,2,a\n5,3,1,a\n4,3,1,b\n") == []
    assert remarks_of(caplog, "1,2,3,a\n5,3,1,a\n4,3,1,b\n") == []


def test_a_first_line_that_is_bad_may_be_a_header():
    error = error_of("0,1,2,label\n5.1,3.5,1.4,1\n4.9,3,1.4,2\n4.9,3,1.4,2\n")
    assert error.line == 1
    assert "header=True" in str(error)
    assert "--header" in str(error)
    assert "header" not in str(error_of("1,x\n1,2\n1,3\n", header=False))


@pytest.mark.parametrize("text", ["1 2 3\n4 5 6\n", "a b y\n1 2 3\n4 5 6\n"])
def test_columns_parted_by_blanks_are_refused_with_the_delimiter(text):
    error = error_of(text)
    assert "delimiter=' '" in str(error)
    assert "--delimiter ' '" in str(error)
    assert dense(read_one(text, delimiter=" ")).tolist() == [[1, 2], [4, 5]]


def test_all_columns_that_hold_text_are_named_at_once():
    row = ",".join("1" * 30)
    texts = "1," + ",".join("x" * 28) + ",1"
    error = error_of(f"{row}\n" * 5 + texts + "\n1,1,x" + ",1" * 27 + "\n")
    assert (error.line, error.column) == (6, 2)
    assert "columns 3, 4, 5, " in str(error)
    assert "and 17 more" in str(error)
    error = error_of("a,b,c,y\n1,1,1,1\n1,1,1,1\n1,x,1,1\n1,1,z,1\n")
    assert "column 'b'" in str(error)
    assert str(error).endswith("; such fields stand in column 'c', too")


def test_decimal_commas_are_remarked(caplog):
    (remark,) = remarks_of(caplog, "a;b;y\n1,5;2;0\n2,25;3;1\n-3;3;1\n")
    assert remark.startswith("f.csv: ")
    assert "column 'a'" in remark
    assert "'1,5'" in remark
    assert remarks_of(caplog, "a;b;y\nx,5;2;0\n2,25;3;1\n") == []


def test_a_field_of_several_lines_is_remarked(caplog):
    text = 'a,b,y\nx,1,0\n"5 inch,1,1\nx,1,1\nx,2,0\n6 inch",1,0\nx,1,1\n'
    (remark,) = remarks_of(caplog, text)
    assert remark.startswith("f.csv, line 3: ")
    assert "4 lines" in remark
    assert remarks_of(caplog, 'a,b,y\n"x, y",1,0\n"5"" inch",1,1\n') == []


# What cannot be read

BAD_ROWS = [
    ("1,2,3\n4,x,6\n7,8,9\n1,1,1\n", 2, 2, "found 'x', expected a number"),
    ("a,b,y\n1,2,3\n\n4,5\n", 4, 3, "found 2 fields, expected 3"),
    ("1,2,3\n1,2,3\n1,2,3,4\n", 3, 4, "found 4 fields, expected 3"),
    ("a,b,y\r\n1,2,3\r\n1,1_0,2\r\n1,2,3\r\n", 3, 2, "found '1_0' in column 'b', expected"),
    ("1,2,3\n1e39,2,3\n", 2, 1, "found an infinite value, expected a number below 3.4e38"),
    ("1,2,3\n1,inf,3\n", 2, 2, "found an infinite value"),
    ('"a\nb",2,3\nc,2,3\n"d\n",x,3\nc,1,1\n', 4, 2, "found 'x', expected a number"),
    (b"a\xff,2,3\nb,2,3\n", 1, 1, "expected UTF-8"),
    ("1,2,3\n1,2,x\n1,2,5\n", 2, 3, "found 'x', expected a number"),
    ("1,2,3\n1,2,inf\n", 2, 3, "found an infinite label, expected a finite number; if labels"),
    ("1,2,3\n1,2,-1e999\n", 2, 3, "found an infinite label"),
    ("1,2,3\n1,2,\n", 2, 3, "found no label"),
]
with_bad_rows = pytest.mark.parametrize(("text", "line", "column", "words"), BAD_ROWS)


@with_bad_rows
def test_a_bad_row_is_named_by_line_and_column(text, line, column, words):
    error = error_of(text)
    assert (error.line, error.column) == (line, column)
    assert words in str(error)


@with_bad_rows
def test_bad_rows_are_skipped_and_counted_where_that_is_wanted(text, line, column, words):
    bad = BadRows(skips=True)
    n_kept = sum(len(chunk.y) for chunk in read(text, bad=bad))
    data = text if isinstance(text, bytes) else text.encode()
    records = list(filter(None, csv.reader(io.StringIO(data.decode("latin-1"), newline=""))))
    assert n_kept == len(records) - 1 - (records[0][0] == "a")
    assert bad.n_skipped == 1
    assert (bad.errors[0].line, bad.errors[0].column) == (line, column)


def test_the_first_bad_row_is_named_whatever_is_wrong_with_it():
    text = "1,2\n1,2\n1,2\n,2\nx,2\n1e99,2\n1,2,3\n"
    assert error_of(text, missing="error").line == 4
    bad = BadRows(skips=True)
    read(text, bad=bad, missing="error")
    assert [error.line for error in bad.errors] == [4, 5, 6, 7]


def test_text_that_comes_later_in_a_column_of_numbers_is_an_error(monkeypatch):
    set_block_bytes(monkeypatch, 64)
    error = error_of("1,2\n" * 100 + "x,2\n")
    assert (error.line, error.column) == (101, 1)
    assert "name it in text_columns" in str(error)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("a,b\n1,2\n".encode("utf-16"), "found UTF-16, expected UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "found a NUL byte"),
        (b"1,2\n3,\x004\n", "line 2: found a NUL byte"),
        (b"gr\xf6\xdfe,label\n1,2\n", "line 1: found other bytes in the header, expected UTF-8"),
        (b'1,2\n3,"4\n5,6\n', "line 2: found a quote that is not closed"),
    ],
)
def test_files_of_another_kind_are_errors_even_where_bad_rows_are_skipped(data, words):
    assert words in str(error_of(data, bad=BadRows(skips=True)))


def test_a_record_without_end_is_an_error_before_memory_is_full(monkeypatch):
    set_block_bytes(monkeypatch, 100)
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 1000)
    assert "line 2: found a quote" in str(error_of('1,2\n"' + "a,b\n" * 1000))
    assert "line 2: found a line" in str(error_of("1,2\n" + "1," * 2000))


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"', "é"])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ValueError, match="delimiter"):
        CsvOptions(delimiter=delimiter)


# Properties


@pytest.mark.parametrize(
    "rows",
    [
        [["1", "nan(1)", "2"], ["1", "2", "3"]],
        [["1", " ", "+2"]],
        [["1", "\u00a0", "2"]],
        [["1", "1e40", "inf"], ["x", "2", "3"]],
        [["1_0", "+Infinity", "1e40"], ["x", "2", "1e-400"]],
    ],
)
def test_all_ways_of_reading_agree(rows):
    text = "".join(",".join(row) + "\n" for row in [["0", "0", "0"]] * 10 + rows)
    results = []
    for ways in (["_typed", "_as_texts"], ["_as_texts"], []):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_text._CsvRows, "WAYS", ways)
            bad = BadRows(skips=True)
            (chunk,) = read(text, bad=bad, missing="zero", header=False, label=None)
            results.append((chunk.X, [(error.line, error.column) for error in bad.errors]))
    for X, errors in results[1:]:
        assert X.tobytes() == results[0][0].tobytes()
        assert errors == results[0][1]


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["-0", "007", "+3", " 4\t", "5.", ".25", "-.5e-3", "1E+2", "1" * 30]),
)


def test_a_row_that_is_left_out_does_not_scale_its_columns():
    chunk = read_one("a,label\n1e22,\n1,3\n2,4\n", missing="skip")
    np.testing.assert_array_equal(chunk.X, [[1], [2]])


FEATURES = NUMBERS.filter(lambda text: abs(float(text)) <= LARGEST)  # others are scaled


@settings(deadline=None)
@given(
    st.lists(st.tuples(FEATURES, NUMBERS, FEATURES), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from([",", ";"]),
)
def test_numbers_are_those_that_python_reads(rows, end, delimiter):
    text = end.join(delimiter.join(row) for row in rows)
    (chunk,) = read(text, delimiter=delimiter, header=False, label=1)
    expected = np.array([[float(row[0]), float(row[2])] for row in rows]).astype(np.float32)
    assert chunk.X.tobytes() == expected.tobytes()
    assert chunk.y.tolist() == [float(row[1]) for row in rows]


SAMPLE = b'a,b,"c ""q""",label\r\n1,2,"x,\n",0\r\n3,4,y,1\r\n-5e3,,"z",1\r\n'


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(st.binary(max_size=200), st.text('"\r\n,;\t0123.eax?', max_size=60).map(str.encode))
)
@example(b'"')
@example(b"\r")
@example(b",")
@example(b'a,b\n"1",2\n"3,4\n')
def test_random_bytes_raise_nothing_but_data_errors(data):
    for block_bytes in (5, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            set_block_bytes(patch, block_bytes)
            for skips in (False, True):
                with contextlib.suppress(DataError):
                    read(data, bad=BadRows(skips))


def test_a_file_cut_anywhere_raises_nothing_but_data_errors():
    outcomes = set()
    for end in range(len(SAMPLE)):
        try:
            read(SAMPLE[:end], missing="zero")
            outcomes.add("read")
        except DataError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


class Pipe(io.RawIOBase):
    """Brings a few bytes at a time."""

    def __init__(self, data):
        self.rest = io.BytesIO(data)

    def read(self, size=-1):
        return self.rest.read(min(size, 3))


def test_a_pipe_is_read_like_a_file():
    (chunk,) = chunks(Pipe(SAMPLE), "-", 10, CsvOptions(missing="zero"))
    expected = read_one(SAMPLE, missing="zero")
    np.testing.assert_array_equal(dense(chunk), dense(expected))


def test_at_most_about_two_chunks_are_held():
    n_read = []

    class Counted(io.BytesIO):
        def read(self, size=-1):
            n_read.append(size)
            return super().read(size)

    row = b"1," * 50 + b"0\n"
    with pytest.MonkeyPatch.context() as patch:
        set_block_bytes(patch, 2048)
        next(chunks(Counted(row * 400), "f.csv", 100))
    assert sum(n_read) <= 2 * 100 * len(row) + 2 * 2048
