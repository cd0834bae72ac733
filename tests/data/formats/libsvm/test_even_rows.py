"""The loop for even rows of LIBSVM text: the same rows as the careful one, or none."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.libsvm.block_reader import RowReader, room_for
from polyplane.data.formats.libsvm.state import UNEVEN_END
from polyplane.data.formats.text.blocks import TextBlock, TextBlocks
from tests.data.formats.libsvm.test_reader import BAD_ROWS, assert_same, number_texts, read, single
from tests.examples import examples

pytestmark = pytest.mark.loops

OTHERS = b"0 " + b" ".join(b"%d:1" % k for k in range(1, 40)) + b"\n"


def alone(row):
    """A row by itself, whose table has no room for eight entries at a time."""
    return read(b"#\n" + row + b"\n", base=1, text_labels=False)


def among_others(row):
    """The same row, read between others."""
    found = read(OTHERS + row + b"\n" + OTHERS, base=1, text_labels=False)
    assert found.X[0].nnz == found.X[-1].nnz == 39
    return Chunk(found.X[1:-1], found.y[1:-1])


def assert_equal_rows(found, wanted):
    """The same rows, up to columns that others have."""
    assert found.y.tolist() == wanted.y.tolist()
    assert found.X.indptr.tolist() == wanted.X.indptr.tolist()
    assert found.X.indices.tolist() == wanted.X.indices.tolist()
    assert found.X.data.tobytes() == wanted.X.data.tobytes()


def is_even(row):
    """Whether the fastest loop reads the row."""
    text = row + b"\n"
    block = TextBlock(len(text))
    TextBlocks(io.BytesIO(text), "rows.txt").fill(block)
    reader = RowReader("rows.txt", None, None, None, BadRows())
    reader.table = room_for(1, text.count(b":") + 8)
    reader.parse(block, block.end, 1)
    return reader._state[UNEVEN_END] == 0


def assert_same_outcome(row):
    """A row is read or refused among others as it is alone."""
    try:
        wanted, refusal = alone(row), None
    except DataError as error:
        wanted, refusal = None, (error.problem, error.column)
    if refusal is None:
        assert_equal_rows(among_others(row), wanted)
    else:
        with pytest.raises(DataError) as caught:
            among_others(row)
        assert (caught.value.problem, caught.value.column) == refusal


EVEN = [
    b"1", b"-1 ", b"+1\r", b"7 1:1", b"7 1:1 ", b"7 1:1\r", b"7\t1:1\t2:2", b"1.5 1:1", b"-2e3 1:1",
    b"1e-3 1:1.5 2:2e5", b"3 qid:12 1:0 2:5", b"-1 qid:7",
    b"1 1:1 9999999:1", b"1 1:0 2:-0 3:12 4:-7 5:999", b"1 1:1234567 2:-123456", b"1 1:5. 2:-5.",
    b"1 1:0.5 2:-0.25 3:1 4:1234.56789012345", b"1 2:0.0039215686274509803 3:1.2345678901234567",
    b"1 2:1e5 3:1E+15 4:-1.5e-07 5:9.86899159742946E-02 6:0.25",
    b"1 " + b" ".join(b"%d:%d.%d" % (k, k, k) for k in range(1, 100)),
]  # fmt: skip
UNEVEN = [
    b"", b" 1 1:1", b"1  1:1", b"1 1:1  2:1", b"1 1:1  ", b"1 1:1 # c", b"1 1:1 qid:3", b"1 1:+5",
    b"1 12345678:1", b"1 1:12345678", b"1 1:.5", b"1 1:1e16", b"1 1:1e-005", b"1 2:1 1:1",
    b"1 1:12345.123456789012345678", b"1 0:1", b"spam 1:1", b"1 1:2 7", b"1 7 1:2", b"1 7",
]  # fmt: skip


@pytest.mark.parametrize("row", EVEN)
def test_rows_of_the_usual_forms_are_even(row):
    assert is_even(row)
    assert_same_outcome(row)


@pytest.mark.parametrize("row", UNEVEN)
def test_other_rows_are_not(row):
    with contextlib.suppress(DataError):
        assert not is_even(row)
    assert_same_outcome(row)


@pytest.mark.parametrize("row", [row for row, _, _ in BAD_ROWS])
def test_a_bad_row_is_refused_wherever_it_stands(row):
    assert_same_outcome(row)


@given(texts=st.lists(number_texts, min_size=1, max_size=20))
@example(texts=["0.5", "1e-46", "16777217", "16777217e0", "167772.17e2", "1.6777217E7", "-0"])
@example(texts=["0.00000000000000000000001", "1.2345678901234567890123", "999999.99999999999999"])
@settings(deadline=None, max_examples=examples(150))
def test_values_among_others_are_what_python_reads_rounded_to_float32(texts):
    texts = [text for text in texts if np.isfinite(single(text))]
    row = "0 " + " ".join(f"{i}:{text}" for i, text in enumerate(texts, 1))
    wanted = np.array([single(text) for text in texts], np.float32)
    assert among_others(row.encode()).X.data.tobytes() == wanted.tobytes()


ROW = b"-1 qid:7 3:1 11:0.25 14:-7 123:4.5e-3 1234:12 2000:1 2001:1 2002:1 2003:255 2004:0.125"


@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, len(ROW) - 1),
            st.integers(0, 2),
            st.sampled_from([*(bytes([byte]) for byte in b" 0123456789:.-+eE#\t\r\0\x0bq"), b""]),
        ),
        min_size=1,
        max_size=3,
    )
)
@settings(deadline=None, max_examples=examples(200))
def test_a_damaged_row_is_read_or_refused_as_if_it_were_alone(edits):
    row = ROW
    for place, n_removed, inserted in edits:
        row = row[:place] + inserted + row[place + n_removed :]
    assert_same_outcome(row)


@pytest.mark.compiled
def test_rows_that_end_anywhere_in_a_block_are_all_read():
    generator = np.random.default_rng(0)
    rows = []
    for _ in range(5_000):
        columns = np.sort(generator.choice(10_000, generator.integers(0, 40), replace=False)) + 1
        values = generator.choice([b"1", b"25", b"0.5", b"-3.25e-2"], columns.size)
        entries = b" ".join(b"%d:%s" % pair for pair in zip(columns, values, strict=True))
        rows.append(b"%d %s" % (generator.integers(10), entries))
    text = b"\n".join(rows)
    assert_same(read(text), read(text.replace(b"\n", b" #\n")))


@pytest.mark.compiled
def test_a_row_of_very_many_entries_is_read():
    n = 100_000
    row = b"1 " + b" ".join(b"%d:%d" % (k, k % 7) for k in range(1, n + 1))
    found = read(OTHERS + row + b"\n" + OTHERS)
    assert np.array_equal(found.X[1].indices, np.arange(n))
    assert np.array_equal(found.X[1].data, np.arange(1, n + 1) % 7)
    assert np.array_equal(found.X[2].data, np.ones(39))


def test_a_wide_index_before_a_narrow_one_is_put_in_order():
    usual = b"1 " + b" ".join(b"%d:1" % k for k in range(1, 9)) + b"\n"
    late = b"1 1:1 2:1 3:1 4:1 5:1 6:1 900000:1 8:1\n"
    found = read(usual + late + usual * 2)
    assert found.X.shape == (4, 900_000)
    assert found.X[1].indices.tolist() == [0, 1, 2, 3, 4, 5, 7, 899_999]
    with pytest.raises(DataError, match="the index 900000 is too large"):
        read(usual + late + usual * 2, n_features=10)
