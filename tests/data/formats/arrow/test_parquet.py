"""Parquet and Arrow IPC: what is written comes back, and damaged files are refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.arrow import parquet
from polyplane.data.table.layout import Layout, TableOptions

MIXED = {
    "a": pa.array([1, 2, None, 4], pa.int8()),
    "colour": pa.array(["r", "g", None, "r"]).dictionary_encode(),
    "yes": [True, False, True, True],
    "class": ["p", "q", "p", "q"],
}


def dense(chunk):
    return chunk.X.toarray() if sp.issparse(chunk.X) else chunk.X


def write_parquet(path, table):
    pq.write_table(table, path)


def write_arrow_file(path, table):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_arrow_stream(path, table):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def read_from_pipe(path, *arguments, **named):
    with open(path, "rb") as file:
        yield from parquet.arrow_chunks("-", *arguments, file=file, **named)


FORMATS = {
    "Parquet": (write_parquet, parquet.chunks),
    "Arrow file": (write_arrow_file, parquet.arrow_chunks),
    "Arrow stream": (write_arrow_stream, parquet.arrow_chunks),
    "Arrow file through a pipe": (write_arrow_file, read_from_pipe),
    "Arrow stream through a pipe": (write_arrow_stream, read_from_pipe),
}
in_every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.keys())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows"


def read(path, table, form=FORMATS["Parquet"], chunk_rows=1000, bad=None, layout=None, **options):
    """All chunks of a table stored in a format."""
    write, chunks = form
    write(path, pa.table(table))
    return list(chunks(path, chunk_rows, TableOptions(**options), bad, layout))


# Tables


@in_every_format
def test_numbers_truth_values_and_text_become_rows(path, form):
    layout = Layout()
    first, second = read(path, MIXED, form, chunk_rows=3, layout=layout, missing="zero")
    np.testing.assert_array_equal(dense(first), [[1, 1, 1, 0], [2, 0, 0, 1], [0, 1, 0, 0]])
    np.testing.assert_array_equal(dense(second), [[4, 1, 1, 0]])
    assert first.y.tolist() == ["p", "q", "p"]
    assert layout.feature_names == ["a", "yes", "colour=r", "colour=g"]


@in_every_format
def test_rows_with_missing_values_are_errors_that_name_row_and_column(path, form):
    with pytest.raises(DataError, match="row 3: found no value in column 'a'") as caught:
        read(path, MIXED, form, missing="error")
    assert caught.value.column == 1
    bad = BadRows(skips=True)
    (chunk,) = read(path, MIXED, form, bad=bad, missing="error")
    assert chunk.y.tolist() == ["p", "q", "q"]
    assert bad.n_skipped == 1
    layout = Layout()
    read(path, MIXED, form, layout=layout, missing="skip")
    assert layout.n_left_out == 1


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(21, 2)),
        pa.dictionary(pa.int8(), pa.int32()),
    ],
    ids=str,
)
def test_numbers_of_any_type_are_float32(path, kind):
    is_dictionary = pa.types.is_dictionary(kind)
    plain = pa.array([1, 2, 120], kind.value_type if is_dictionary else pa.int64())
    column = plain.dictionary_encode().cast(kind) if is_dictionary else plain.cast(kind)
    (chunk,) = read(path, {"a": column, "b": [0.5, 0, 0], "y": [1, 2, 3]})
    assert chunk.X.dtype == np.float32
    np.testing.assert_array_equal(chunk.X, [[1, 0.5], [2, 0], [120, 0]])


def test_columns_of_bytes_stay_bytes_even_where_some_are_missing(path):
    table = {"a": pa.array([1, None], pa.uint8()), "b": [True, False], "y": [0, 1]}
    (chunk,) = read(path, table, missing="zero")
    assert chunk.X.dtype == np.uint8
    np.testing.assert_array_equal(chunk.X, [[1, 1], [0, 0]])


def test_nan_is_missing_and_infinity_is_an_error(path):
    table = {"a": [1.0, np.nan, np.inf, 1e39], "y": [0, 1, 2, 3]}
    bad = BadRows(skips=True)
    (chunk,) = read(path, table, missing="zero", bad=bad)
    np.testing.assert_array_equal(chunk.X, [[1], [0]])
    assert [str(error).split(": ")[1] for error in bad.errors] == ["row 3", "row 4"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 1, 2]),
        np.array([-1.0, 1.0, 0.5]),
        np.array([True, False, True]),
        np.array(["x", "yy", "z"]),
        np.array([1, 2, 3], np.uint8),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(path, labels):
    (chunk,) = read(path, {"a": [1, 2, 3], "y": labels})
    assert chunk.y.dtype == labels.dtype
    np.testing.assert_array_equal(chunk.y, labels)


def test_a_missing_label_does_not_change_the_type_of_the_others(path):
    (chunk,) = read(path, {"a": [1, 2, 3], "y": [5, None, 7]}, missing="skip")
    assert chunk.y.dtype == np.int64
    assert chunk.y.tolist() == [5, 7]


def test_only_columns_of_use_need_a_known_type(path):
    table = {"when": pa.array([b"0", b"1"], pa.binary()), "a": [1, 2], "y": [0, 1]}
    with pytest.raises(DataError, match=r"found binary in column 'when', expected number"):
        read(path, table)
    (chunk,) = read(path, table, drop=["when"])
    np.testing.assert_array_equal(chunk.X, [[1], [2]])


@pytest.mark.parametrize("form", ["Parquet", "Arrow file"])
@pytest.mark.parametrize(
    "kind",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.large_string())],
    ids=str,
)
def test_text_of_any_type_is_text(path, kind, form):
    write, chunks = FORMATS[form]
    is_view = kind == pa.string_view()  # to which Arrow 17 cannot cast
    texts = pa.array(["x", None, "y"], kind if is_view else pa.string()).cast(kind)
    try:
        write(path, pa.table({"a": texts, "y": [0, 1, 2]}))
    except pa.ArrowNotImplementedError:
        pytest.skip("this Arrow cannot write such a file")
    (chunk,) = chunks(path, 1000, TableOptions(missing="zero"), None, None)
    np.testing.assert_array_equal(dense(chunk), [[1, 0], [0, 0], [0, 1]])


def test_a_column_of_nothing_is_missing_throughout(path):
    (chunk,) = read(path, {"a": pa.nulls(2), "b": [1, 2], "y": [0, 1]}, missing="zero")
    np.testing.assert_array_equal(chunk.X, [[0, 1], [0, 2]])


def test_a_second_file_must_have_the_kinds_of_the_first(path):
    layout = Layout()
    read(path, {"a": [1], "y": [0]}, layout=layout)
    with pytest.raises(DataError, match="found text such as 'x' in column 'a', expected numbers"):
        read(path, {"a": ["x"], "y": [0]}, layout=layout)


# Lists


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.uint8(), 2)], ids=str)
@in_every_format
def test_a_column_of_lists_is_the_matrix(path, kind, form):
    table = {"label": [7, 8, 9], "pixels": pa.array([[1, 2], [3, 4], [5, 6]], kind)}
    first, second = read(path, table, form, chunk_rows=2)
    np.testing.assert_array_equal(np.concatenate([first.X, second.X]), [[1, 2], [3, 4], [5, 6]])
    assert first.X.dtype == (np.uint8 if kind.value_type == pa.uint8() else np.float32)
    assert first.y.tolist() == [7, 8]


def test_lists_of_another_length_and_values_missing_in_them_are_bad_rows(path):
    table = {"x": [[1.0, 2], [3], None, [4, None], [5, np.inf], [6, 7]], "y": range(6)}
    bad = BadRows(skips=True)
    (chunk,) = read(path, table, bad=bad)
    np.testing.assert_array_equal(chunk.X, [[1, 2], [6, 7]])
    assert chunk.y.tolist() == [0, 5]
    assert [str(error).split(": ")[1] for error in bad.errors] == [f"row {k}" for k in (2, 3, 4, 5)]
    (zeros,) = read(path, table, bad=BadRows(skips=True), missing="zero")
    np.testing.assert_array_equal(zeros.X, [[1, 2], [4, 0], [6, 7]])


def test_bad_sparse_rows_are_met_one_by_one(path):
    table = {
        "indices": [[0, 2], [1], [-1], None, [3, 3, 1], [0], [5], [None]],
        "values": [[1.0, 2], [1, 2], [1], [1], [1, 2, 4], [None], [np.inf], [1]],
        "label": range(8),
    }
    bad = BadRows(skips=True)
    (chunk,) = read(path, table, bad=bad, missing="zero")
    assert chunk.y.tolist() == [0, 4, 5]
    np.testing.assert_array_equal(
        chunk.X.toarray()[:, :4], [[1, 0, 2, 0], [0, 4, 0, 3], [0, 0, 0, 0]]
    )
    assert chunk.X.has_canonical_format
    assert bad.n_skipped == 5


# Written and read again


@st.composite
def chunk_lists(draw):
    """Chunks of one kind, dense, bytes or sparse, with labels or without."""
    kind = draw(st.sampled_from(["float32", "uint8", "sparse"]))
    labels = draw(st.sampled_from(["none", "int64", "float64", "text"]))
    width = draw(st.integers(1, 5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    out = []
    for n_rows in draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)):
        X = generator.integers(0, 3, (n_rows, width)).astype(np.uint8)
        y = generator.integers(0, 3, n_rows)
        y = {"none": np.empty(0), "text": np.array(list("abc"))[y]}.get(labels, y)
        y = y.astype(labels) if labels in ("int64", "float64") else y
        stored = {"sparse": lambda X: sp.csr_matrix(X, dtype=np.float32)}.get(kind)
        out.append(Chunk(stored(X) if stored else X.astype(kind), y))
    return out


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunk_lists(), st.integers(1, 30))
def test_what_is_written_comes_back(tmp_path, written, chunk_rows):
    path = tmp_path / "written.parquet"
    n_rows = parquet.write(path, written)
    got = list(parquet.chunks(path, chunk_rows))
    assert n_rows == sum(chunk.X.shape[0] for chunk in got)
    for chunk in got:
        assert sp.issparse(chunk.X) == sp.issparse(written[0].X)
        assert chunk.X.dtype == written[0].X.dtype
        assert chunk.y.dtype.kind == written[0].y.dtype.kind
    np.testing.assert_array_equal(
        np.concatenate([dense(chunk) for chunk in got]),
        np.concatenate([dense(chunk) for chunk in written]),
    )
    for part in (got, written):
        assert part[0].y.size in (0, part[0].X.shape[0])
    np.testing.assert_array_equal(
        np.concatenate([chunk.y for chunk in got]), np.concatenate([chunk.y for chunk in written])
    )


def test_sparse_chunks_that_grew_wider_are_read_with_the_last_width(path):
    written = [
        Chunk(sp.csr_matrix(np.ones((1, width), np.float32)), np.zeros(1)) for width in (1, 5, 2)
    ]
    parquet.write(path, written)
    assert [chunk.X.shape for chunk in parquet.chunks(path, 1)] == [(1, 5)] * 3


def test_names_are_those_of_dense_columns(path):
    parquet.write(path, [Chunk(np.ones((2, 2), np.float32), np.array([0, 1]))], ["left", "right"])
    assert pq.read_schema(path).names == ["left", "right", "label"]


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "label"]])
def test_names_that_cannot_be_are_refused(path, names):
    with pytest.raises(ValueError, match="expected 2 different ones"):
        parquet.write(path, [Chunk(np.ones((1, 2), np.float32), np.zeros(1))], names)


def test_a_failure_leaves_the_old_file_and_nothing_else(path):
    path.write_bytes(b"old")

    def failing():
        yield Chunk(np.ones((1, 2), np.float32), np.zeros(1))
        raise DataError("the source ends here")

    with pytest.raises(DataError, match="ends here"):
        parquet.write(path, failing())
    with pytest.raises(ValueError, match="no chunks"):
        parquet.write(path, [])
    widths = [Chunk(np.ones((1, width), np.float32), np.zeros(1)) for width in (2, 3)]
    with pytest.raises(ValueError, match="expected the same in all"):
        parquet.write(path, widths)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@in_every_format
def test_a_file_of_no_rows_yields_nothing(path, form):
    table = {"a": pa.array([], pa.float32()), "y": pa.array([], pa.int64())}
    assert read(path, table, form) == []


@in_every_format
def test_a_file_of_no_columns_is_an_error(path, form):
    with pytest.raises(DataError, match="found 0 columns"):
        read(path, {}, form)
