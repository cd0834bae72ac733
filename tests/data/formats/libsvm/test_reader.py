"""LIBSVM text: values to the last bit, every oddity of the format, and errors that say where."""

import contextlib
import io
import lzma
from decimal import Decimal
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from polyplane.data.chunks import BadRows, DataError
from polyplane.data.formats.libsvm import blocks as text_blocks
from polyplane.data.formats.libsvm import reader as libsvm_text
from tests.examples import examples
from tests.real_data import N_FEATURES, ROOT, _need

pytestmark = pytest.mark.loops
ALL_ROWS = 1 << 62


def read(text, **options):
    (found,) = chunks(text, ALL_ROWS, **options)
    return found


def chunks(text, chunk_rows, **options):
    options.setdefault("bad", BadRows())
    return list(libsvm_text.chunks(io.BytesIO(text), "rows.txt", chunk_rows, **options))


def written(X, y, base=1):
    file = io.BytesIO()
    libsvm_text.write(file, X, y, base)
    return file.getvalue()


def small_blocks(size):
    """Blocks of so few bytes that lines grow out of them."""
    return mock.patch.object(libsvm_text, "BLOCK", size)


def assert_same(found, wanted):
    """Two chunks are equal to the last bit."""
    assert found.X.shape == wanted.X.shape
    np.testing.assert_array_equal(found.X.indptr, wanted.X.indptr)
    np.testing.assert_array_equal(found.X.indices, wanted.X.indices)
    assert found.X.data.tobytes() == wanted.X.data.tobytes()
    assert found.y.dtype == wanted.y.dtype
    np.testing.assert_array_equal(found.y, wanted.y)


def together(parts):
    """Chunks as one."""
    width = max(part.X.shape[1] for part in parts)
    for part in parts:
        part.X.resize(part.X.shape[0], width)
    return libsvm_text.Chunk(
        sp.vstack([part.X for part in parts], format="csr"), np.concatenate([p.y for p in parts])
    )


def single(text):
    with np.errstate(over="ignore"):
        return np.float32(float(text))


def midpoint_text(value):
    """The number between a float32 and the next, with all its digits."""
    between = (float(value) + float(np.nextafter(value, np.float32(np.inf)))) / 2
    return f"{Decimal(between):f}"


finite_floats = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32)
few_digits = st.text("0123456789", min_size=1, max_size=24)
exponents = st.one_of(
    st.just(""),
    st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 400)).map(
        lambda parts: "".join(map(str, parts))
    ),
)
number_texts = st.one_of(
    finite_floats.map(repr),
    st.tuples(finite_floats, st.integers(0, 25)).map(lambda pair: f"{pair[0]:.{pair[1]}g}"),
    st.tuples(st.floats(-1e9, 1e9), st.integers(0, 25)).map(lambda pair: f"{pair[0]:.{pair[1]}f}"),
    singles.map(str),
    st.floats(2.0**-40, 2.0**40, width=32).map(np.float32).map(midpoint_text),
    st.floats(2.0**-40, 2.0**40, width=32).map(np.float32).map(lambda v: midpoint_text(v) + "1"),
    st.tuples(
        st.sampled_from(["", "+", "-"]),
        st.one_of(
            few_digits,
            few_digits.map(lambda text: text + "."),
            few_digits.map(lambda text: "." + text),
            st.tuples(few_digits, few_digits).map(".".join),
        ),
        exponents,
    ).map("".join),
)


@given(texts=st.lists(number_texts, min_size=1, max_size=20))
@example(texts=["1e-400", "1e-46", "7.006492321624085e-46", "1e-38", "1.17549435e-38", "-0", "+.5"])
@example(texts=["3.4028235677973362e38", "16777217", "16777217.0000000000000000001", "5e-324"])
@example(texts=["0." + "0" * 50 + "1e50", "1" + "0" * 60 + "e-60", "9007199254740993", "1E+5"])
@settings(deadline=None, max_examples=examples(150))
def test_values_are_what_python_reads_rounded_to_float32(texts):
    texts = [text for text in texts if np.isfinite(single(text))]
    entries = " ".join(f"{i}:{text}" for i, text in enumerate(texts, 1))
    wanted = np.array([single(text) for text in texts], np.float32)
    found = read(f"0 {entries}\n".encode()).X.data
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.compiled
def test_values_next_to_the_middle_of_two_float32_are_exact():
    generator = np.random.default_rng(0)
    values = generator.standard_normal(3_000).astype(np.float32)
    middles = (values.astype(float) + np.nextafter(values, np.float32(9)).astype(float)) / 2
    near = [np.nextafter(middles, way) for way in (-np.inf, np.inf)] + [middles]
    texts = [repr(number) for number in np.concatenate(near).tolist()]
    text = "\n".join(f"1 1:{text}" for text in texts).encode()
    wanted = np.array([float(text) for text in texts]).astype(np.float32)
    assert read(text).X.data.tobytes() == wanted.tobytes()


@st.composite
def matrices(draw):
    """CSR matrices of any finite float32, with empty rows and columns far out."""
    n_rows, n_columns = draw(st.integers(1, 6)), draw(st.sampled_from([1, 7, 2**31 - 2]))
    rows = []
    for _ in range(n_rows):
        columns = draw(st.sets(st.integers(0, n_columns - 1), max_size=6))
        rows.append({column: draw(singles) for column in sorted(columns)})
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row], np.int32)
    values = np.array([value for row in rows for value in row.values()], np.float32)
    return sp.csr_matrix((values, columns, starts), shape=(n_rows, n_columns))


@given(X=matrices(), base=st.sampled_from([0, 1]), data=st.data())
@settings(deadline=None, max_examples=examples(100))
def test_what_is_written_reads_back_the_same(X, base, data):
    whole, any_number = st.integers(-(2**53) + 1, 2**53 - 1), finite_floats
    kind = data.draw(st.sampled_from([whole, any_number]))
    y = np.array(data.draw(st.lists(kind, min_size=X.shape[0], max_size=X.shape[0])), float)
    X = X if base == 1 else X[:, : 2**31 - 3]
    found = read(written(X, y, base), n_features=X.shape[1], base=base)
    assert found.X.shape == X.shape
    assert found.X.indices.dtype == np.int32
    np.testing.assert_array_equal(found.X.indptr, X.indptr)
    np.testing.assert_array_equal(found.X.indices, X.indices)
    assert found.X.data.tobytes() == X.data.tobytes()
    np.testing.assert_array_equal(found.y, y)


def test_values_are_written_in_few_digits():
    values = np.float32([[0.1, 1e-4, 1 / 3, 255, -0.5, 1e22, 2.5e-7, 99999.99, 123456.7, 1e-30]])
    entries = (
        "1:0.1 2:0.0001 3:0.33333334 4:255 5:-0.5 6:1e+22 7:2.5e-7 8:99999.99 9:123456.7 10:1e-30"
    )
    assert written(values, [7]) == f"7 {entries}\n".encode()


def test_a_dense_matrix_is_written_without_its_zeros_and_columns_in_order():
    shuffled = sp.csr_matrix(([2.0, 1.0, 3.0], [2, 0, 0], [0, 2, 3]), shape=(2, 3))
    assert written(np.array([[1, 0, 2], [3, 0, 0]]), [1.0, 2.5]) == b"1 1:1 3:2\n2.5 1:3\n"
    assert written(shuffled, [True, False], base=0) == b"1 0:1 2:2\n0 0:3\n"


@pytest.mark.parametrize("label", ["a b", "", "a#", "1:2", "a,b", "a\n"])
def test_labels_that_would_not_read_back_are_not_written(label):
    with pytest.raises(DataError, match="cannot write"):
        written(np.ones((1, 1)), np.array([label], str))


def test_values_that_are_not_finite_and_labels_too_many_are_not_written():
    with pytest.raises(DataError, match="not finite"):
        written(np.array([[np.nan]]), [1])
    with pytest.raises(DataError, match="2 labels"):
        written(np.ones((1, 1)), [1, 2])


@pytest.mark.parametrize("n_at_once", [1, 3, 7, 1000])
def test_rows_that_are_written_in_pieces_are_the_same_text(n_at_once, monkeypatch):
    X = np.random.default_rng(0).integers(0, 3, (20, 5)).astype(np.float32) / 7
    X[3:6] = 0
    whole = written(X, np.arange(20) % 3)
    assert whole.count(b"\n") == 20
    monkeypatch.setattr("polyplane.data.formats.libsvm.writer.ENTRIES_AT_ONCE", n_at_once)
    assert written(X, np.arange(20) % 3) == whole
    np.testing.assert_array_equal(read(whole, n_features=5).X.toarray(), X)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["a9a", "reuters-lasvm", "sector", "shuttle", "ijcnn1"])
def test_real_sets_are_read_as_scikit_learn_reads_them(name):
    path = ROOT / name / "train.libsvm.xz"
    _need(path)
    text = lzma.decompress(path.read_bytes())
    X, y = load_svmlight_file(io.BytesIO(text), n_features=N_FEATURES[name], zero_based=False)
    wanted = libsvm_text.Chunk(X.astype(np.float32), y.astype(np.int64))
    found = read(text, n_features=N_FEATURES[name])
    assert_same(found, wanted)
    assert_same(together(chunks(text, 1000, n_features=N_FEATURES[name])), wanted)
    assert_same(read(written(found.X, found.y), n_features=N_FEATURES[name]), wanted)


BAD_ROWS = [
    (b"1 1:2 3:x", 9, "'x'; a number was expected"),
    (b"1 1:2 3 5:6", 7, "'3'; index:value was expected"),
    (b"1 1:0.5-3 3:1", 5, "'0.5-3'"),
    (b"1 1:-", 5, "'-'"),
    (b"1 1:--3", 5, "'--3'"),
    (b"1 1:1.2.3", 5, "'1.2.3'"),
    (b"1 1:1e", 5, "'1e'"),
    (b"1 1:1e+ 2:1", 5, "'1e+'"),
    (b"1 1:1_0", 5, "'1_0'"),
    (b"1 1:1,5", 5, "'1,5'"),
    (b"1 1:.", 5, "'.'"),
    (b"1 1:", 5, "no value"),
    (b"1 1: 2:3", 5, "no value"),
    (b"1 :5", 3, "an index, a whole number, was expected"),
    (b"1 a:5", 3, "found 'a' where an index"),
    (b"1 +1:5", 3, "found '+1' where an index"),
    (b"1 1:2:3", 5, "'2:3'"),
    (b"1 -2:1", 3, "negative"),
    (b"1 1:nan", 5, "'nan' is not finite"),
    (b"1 1:-Inf 2:1", 5, "'-Inf' is not finite"),
    (b"1 1:1e39", 5, "too large for float32"),
    (b"1 1:-3.4028236e38", 5, "too large for float32"),
    (b"1 1:1" + b"0" * 50, 5, "too large for float32"),
    (b"1 1:1e999999999999999999999", 5, "too large for float32"),
    (b"1 1:0x1F", 5, "hexadecimal"),
    (b"1 2147483647:1", 3, "above 2,147,483,646"),
    (b"1 99999999999999999999999:1", 3, "above 2,147,483,646"),
    (b"1 2:1 2:1", 7, "the index 2 stands twice"),
    (b"1 3:1 2:1 9:4 3:1", 15, "the index 3 stands twice"),
    (b"1 3:1 2:1 " + b"0" * 5000 + b"3:1", 11, "the index 3 stands twice"),
    (b"1 1:1 qid:3", 7, "`qid:n` stands once, after the label"),
    (b"1 qid:3 qid:4 1:1", 9, "`qid:n` stands once, after the label"),
    (b"1 qid:x 1:1", 3, "`qid:n` stands once, after the label"),
    (b"1:2 2:3", 1, "label of the row was expected"),
    (b" 1:2 2:3", 2, "label of the row was expected"),
    (b"1,3 1:2", 1, "several labels"),
    (b"nan 1:2", 1, "not finite"),
    (b"1e999 1:2", 1, "not a finite number"),
    (b"spam 1:2", 1, "state text_labels=True"),
    (b"1\x00 1:2", 1, "a label in UTF-8 was expected"),
    (b"\xff\xfe 1:2", 1, "a label in UTF-8 was expected"),
    (b"1 1:\x002", 5, "NUL byte"),
    (b"1 1:1\x00", 5, "NUL byte"),
    (b"1 1:2\x0b2:3", 5, "'2\\x0b2:3'"),
    (b"1 1:" + b"7" * 70 + b"x", 5, "'" + "7" * 40 + "...'"),
    (b"1 1:" + b"7" * 50_000 + b"x", 5, "'" + "7" * 40 + "...'"),
    (b"1 " + b"7" * 5000 + b"x", 3, "'" + "7" * 40 + "...'"),
]
with_every_bad_row = pytest.mark.parametrize(
    ("row", "column", "words"), BAD_ROWS, ids=[repr(row[0][:20]) for row in BAD_ROWS]
)


@with_every_bad_row
def test_an_error_says_where_what_was_found_and_what_was_expected(row, column, words):
    text = b"# header\r\n1 1:2 7:3.5\r\n\n" + row + b"\n2 1:1\n"
    for work in (read, lambda text: chunks(text, 2)):
        with pytest.raises(DataError) as caught:
            work(text)
        error = caught.value
        assert (error.path, error.line, error.column) == ("rows.txt", 4, column)
        assert words in error.problem
        assert str(error).startswith(f"rows.txt, line 4, column {column}: ")


@with_every_bad_row
def test_a_bad_row_is_skipped_and_counted(row, column, words):
    text = b"1 1:2 7:3.5\n" + row + b"\n2 1:1\n" + row + b"\n"
    wanted = read(b"1 1:2 7:3.5\n2 1:1\n")
    for work in (read, lambda text, bad: together(chunks(text, 1, bad=bad))):
        bad = BadRows(skips=True)
        assert_same(work(text, bad=bad), wanted)
        assert bad.n_skipped == 2
        assert [error.line for error in bad.errors] == [2, 4]
        assert bad.errors[0].column == column


class FailingFile(io.BytesIO):
    """A disk that fails after so many bytes."""

    def __init__(self, text, error):
        super().__init__(text)
        self.error = error

    def readinto(self, room):
        n = super().readinto(room)
        if n == 0:
            raise self.error
        return n


def test_rows_before_a_failure_of_the_file_are_read():
    text, error = b"1 1:1\n" * 100, OSError("disk")
    with small_blocks(64), pytest.raises(OSError, match="disk"):
        list(libsvm_text.chunks(FailingFile(text, error), "f", ALL_ROWS, bad=BadRows()))
    file = FailingFile(text[: 49 * 6] + b"1 1:x\n" + text, error)
    with small_blocks(64), pytest.raises(DataError, match="line 50"):
        list(libsvm_text.chunks(file, "f", ALL_ROWS, bad=BadRows()))


def test_indices_out_of_order_are_sorted_with_their_values():
    found = read(b"1 5:50 2:20 9:90 1:-1.5\n2 3:30\n")
    assert found.X.indices.tolist() == [0, 1, 4, 8, 2]
    assert found.X.data.tolist() == [-1.5, 20, 50, 90, 30]
    assert found.X.has_canonical_format


def test_indices_start_at_one_unless_there_is_a_zero():
    assert read(b"1 1:1 2:2\n").X.toarray().tolist() == [[1, 2]]
    assert read(b"1 1:1 2:2\n1 0:5 3:3\n").X.toarray().tolist() == [[0, 1, 2, 0], [5, 0, 0, 3]]
    assert read(b"1 2:2 0:1\n").X.toarray().tolist() == [[1, 0, 2]]
    assert read(b"1 1:1\n", base=0).X.toarray().tolist() == [[0, 1]]
    assert read(b"1\n2\n").X.shape == (2, 0)


def test_a_zero_after_rows_that_start_at_one_is_an_error_even_if_bad_rows_are_skipped():
    with pytest.raises(DataError, match="state base=0") as caught:
        chunks(b"1 1:1\n1 1:2\n1 0:1\n", 2, bad=BadRows(skips=True))
    assert (caught.value.line, caught.value.column) == (3, 3)
    with pytest.raises(DataError, match=r"base=1 was stated: state base=0"):
        read(b"1 0:1\n", base=1)
    assert len(chunks(b"1\n1 0:1\n", 1)) == 2  # a row without entries settles nothing


def test_the_width_is_stated_or_grows_with_the_largest_index():
    parts = chunks(b"1 2:1\n1 5:1\n1 1:1\n", 1)
    assert [part.X.shape[1] for part in parts] == [2, 5, 5]
    assert read(b"1 2:1\n", n_features=9).X.shape == (1, 9)
    with pytest.raises(DataError, match="the index 5 is too large: with n_features=4") as caught:
        read(b"1 4:1\n1 5:1 6:1\n", n_features=4)
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(DataError, match="the index 4 is too large: with n_features=4"):
        read(b"1 4:1\n1 0:1\n", n_features=4)
    with small_blocks(6), pytest.raises(DataError, match="the index 4 is too large"):
        read(b"1 4:1\n1 0:1\n", n_features=4)
    bad = BadRows(skips=True)
    assert read(b"1 4:1\n1 7:1 5:1\n2 1:1\n", n_features=4, bad=bad).y.tolist() == [1, 2]


def test_labels_are_numbers_if_the_first_is_and_text_otherwise():
    assert read(b"1\n-2\n+3.0\n").y.tolist() == [1, -2, 3]
    assert read(b"1\n").y.dtype == np.int64
    assert read(b"1\n2.5\n").y.dtype == np.float64
    assert read(b"0.1234567890123456789\n").y.tolist() == [0.1234567890123456789]
    assert read(b"9007199254740993\n").y.dtype == np.float64
    assert read("spam\n1 1:1\nœuf\n".encode()).y.tolist() == ["spam", "1", "œuf"]
    assert read(b"1\nspam\n", text_labels=True).y.tolist() == ["1", "spam"]
    with pytest.raises(DataError, match="'spam' is not a finite number"):
        read(b"spam\n", text_labels=False)


def test_a_table_parted_by_blanks_is_refused_with_the_options_that_read_it():
    with pytest.raises(DataError, match="format='csv' and delimiter=' '"):
        read(b"5.1 3.5 1.4 1\n4.9 3.0 1.4 2\n")


def test_underscores_are_no_part_of_numbers():
    with pytest.raises(DataError, match="found '1_0'; a number was expected"):
        read(b"1 1:1_0\n")
    assert read(b"0001_01 1:1\n7 1:1\n").y.tolist() == ["0001_01", "7"]


@pytest.mark.parametrize("rows", [b"a 1:x\n1 1:1\n2 1:1\n", b"1 1:x\na 1:1\n2 1:1\n"])
def test_a_row_that_is_left_out_does_not_settle_the_kind_of_labels(rows):
    found = read(rows, bad=BadRows(skips=True)).y
    (chunk,) = chunks(rows, 9, bad=BadRows(skips=True))
    assert found.tolist() == chunk.y.tolist() == ([1, 2] if rows[:1] == b"a" else ["a", "2"])


def test_the_kind_of_labels_does_not_depend_on_chunks_and_blocks():
    parts = chunks(b"1\n2\n2.5\n3\n", 1)
    assert [part.y.dtype for part in parts] == [np.int64, np.int64, np.float64, np.float64]
    assert [part.y.tolist() for part in chunks(b"a\n1\n2\n", 2)] == [["a", "1"], ["2"]]
    with pytest.raises(DataError, match="text_labels=True"):
        chunks(b"1\na\n", 1)
    with small_blocks(4):
        assert read(b"# c\n\na\n1\n2\n").y.tolist() == ["a", "1", "2"]


def test_byte_order_marks_are_known():
    assert_same(read(b"\xef\xbb\xbf1 1:2\n"), read(b"1 1:2\n"))
    with pytest.raises(DataError) as caught:
        read(b"\xef\xbb\xbf1 1:x\n")
    assert caught.value.column == 5
    for coding in ("utf-16-le", "utf-16-be"):
        with pytest.raises(DataError, match="UTF-16"):
            read("\ufeff1 1:2\n".encode(coding))
    with pytest.raises(DataError):
        read("1 1:2\n".encode("utf-16-le"))


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only a comment", b"  \r\n\t"])
def test_a_text_without_rows_has_none(text):
    assert chunks(text, 3) == chunks(text, ALL_ROWS, n_features=4) == []


TEXT = b"1 1:2 3:0.25\n-1 qid:2 2:1e-3 # n\r\n\n+2.5 1:-7 5:123456789.5\n3 9:1 4:0.1"


def test_a_text_cut_anywhere_is_read_or_refused():
    n_read = 0
    for end in range(len(TEXT) + 1):
        for text in (TEXT[:end], TEXT[end:]):
            with contextlib.suppress(DataError):
                n_rows = [found.y.size for found in chunks(text, ALL_ROWS)]
                n_read += 1
                assert sum(n_rows) <= 4
    assert n_read > len(TEXT)


def test_a_line_longer_than_allowed_is_an_error(monkeypatch):
    monkeypatch.setattr(text_blocks, "LONGEST_LINE", 1000)
    line = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 120))
    assert len(line) < 1000
    with small_blocks(10):
        assert chunks(line, 5)[0].X.nnz == 119
        with pytest.raises(DataError, match="longer than 1,000 bytes"):
            chunks(line * 20, 5)


@pytest.mark.compiled
def test_a_line_of_a_hundred_megabytes_is_read():
    n = 9_000_000
    X = sp.csr_matrix((np.full(n, 0.5, np.float32), np.arange(n), [0, n]), shape=(1, n))
    text = written(X, [3])
    assert len(text) > 100_000_000
    (found,) = chunks(text, 10)
    assert found.y.tolist() == [3]
    assert np.array_equal(found.X.indices, X.indices)
    assert np.array_equal(found.X.data, X.data)


@pytest.mark.compiled
def test_a_long_row_in_falling_order_is_sorted():
    n = 300_000
    text = b"1 " + b" ".join(b"%d:%d" % (i, i) for i in range(n, 0, -1))
    found = read(text)
    assert np.array_equal(found.X.indices, np.arange(n))
    assert np.array_equal(found.X.data, np.arange(1, n + 1))


def test_a_stream_that_hands_out_single_bytes_is_read():
    class Dripping(io.BytesIO):
        def readinto(self, room):
            return super().readinto(memoryview(room)[:1])

    (found,) = libsvm_text.chunks(Dripping(TEXT), "pipe", 9, bad=BadRows())
    assert_same(found, read(TEXT))


def test_a_small_chunk_of_a_large_block_does_not_keep_its_memory():
    text = b"1 1:1 2:2\n" * 2000
    for part in chunks(text, 1)[:50]:
        for array in (part.X.data, part.X.indices, part.y):
            owner = array if array.base is None else array.base
            assert owner.nbytes <= 64
