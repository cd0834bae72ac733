"""Sources find their reader, by name and by content, and options find their format."""

import dataclasses
import gzip
import io
import os
import struct
import threading

import numpy as np
import pytest

from polyplane.cli import program
from polyplane.data.chunks import BadRows, Chunk, DataError
from polyplane.data.formats.which import (
    FORMATS,
    ReadOptions,
    chunks_of,
    files_of,
    format_by_name,
    format_of,
    read_options,
    settled_by,
)
from polyplane.data.reading import read
from polyplane.data.table.layout import Layout
from polyplane.data.writing import WRITTEN, write
from tests.data.compressions import BY_SUFFIX

X = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5], [6, 7, 0]], np.float32)
Y = np.array([1, 0, 1, 2])
COMPRESSIONS = {"": bytes, **BY_SUFFIX}
SUFFIXES = {
    "libsvm": [".libsvm", ".svm", ".svmlight"], "csv": [".csv"], "arrow": [".arrow", ".ipc"],
    "parquet": [".parquet", ".pq"], "npy": [".npy"], "npz": [".npz"], "idx": [".idx"],
}  # fmt: skip
AS_BYTES = ("libsvm", "csv", "arrow", "idx")  # which pipes and archives can hold


def idx_bytes(array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def content(kind, path):
    """The rows in a format, as bytes; labels that stand in a file of their own are written too."""
    if kind == "idx":
        path.with_name("labels.idx").write_bytes(idx_bytes(Y))
        return idx_bytes(X)
    target = path if kind == "npy" else path.with_name("content")
    write(target, [Chunk(X, Y)], format=kind)
    return target.read_bytes()


def options_of(kind, path):
    return {"labels": path.with_name("labels.idx")} if kind == "idx" else {}


def assert_rows(source, **options):
    found, y = read(source, **options)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_array_equal(dense, X)
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_is_known_by_its_content_whatever_the_name(kind, tmp_path):
    for name in ("rows", "rows.data", "rows.v2"):
        path = tmp_path / name
        path.write_bytes(content(kind, path))
        assert_rows(path, **options_of(kind, path))
        assert_rows(str(path), **options_of(kind, path))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_format_is_known_by_its_name(kind, tmp_path):
    for suffix in [*SUFFIXES[kind], SUFFIXES[kind][0].upper()]:
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(content(kind, path))
        assert_rows(path, **options_of(kind, path))
        assert format_of(str(path), b"nothing that tells") == kind


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", AS_BYTES)
def test_archives_are_read_through_whatever_their_name(kind, compression, tmp_path):
    for name in ("rows", f"rows{SUFFIXES[kind][0]}{compression}", "rows.bin"):
        path = tmp_path / name
        path.write_bytes(COMPRESSIONS[compression](content(kind, path)))
        assert_rows(path, **options_of(kind, path))


def dripping(data):
    """A pipe that hands out single bytes."""
    read_end, write_end = os.pipe()

    def drip():
        with open(write_end, "wb", buffering=0) as pipe:
            for k in range(len(data)):
                pipe.write(data[k : k + 1])

    threading.Thread(target=drip).start()
    return open(read_end, "rb", buffering=0)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", AS_BYTES)
def test_a_format_is_known_in_a_pipe_that_hands_out_single_bytes(kind, compression, tmp_path):
    path = tmp_path / "rows"
    data = COMPRESSIONS[compression](content(kind, path))
    with dripping(data) as pipe:
        assert_rows(pipe, **options_of(kind, path))
    assert_rows(io.BytesIO(data), **options_of(kind, path))


@pytest.mark.parametrize("kind", ["parquet", "npy", "npz"])
def test_what_needs_a_file_is_refused_from_pipes_and_archives(kind, tmp_path):
    path = tmp_path / "rows"
    data = content(kind, path)
    with pytest.raises(DataError, match=f"the stream: {kind} is not read from a pipe"):
        read(io.BytesIO(data))
    path.write_bytes(gzip.compress(data))
    with pytest.raises(DataError, match="unpack it first") as caught:
        read(path)
    assert caught.value.path == str(path)


def test_a_named_pipe_is_read(tmp_path):
    path, data = tmp_path / "pipe", content("libsvm", tmp_path / "rows")
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(data))
    writer.start()
    assert_rows(path)
    writer.join()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"1 1:0.5 3:2\n-1 2:1\n", "libsvm"),
        (b"# 1,2,3\n\n+1 qid:3 1:0.5 # a, b\n", "libsvm"),
        (b"spam\t1:0.5\t7:1\n", "libsvm"),
        (b"1\n2\n", "libsvm"),
        (b"1 \n0 1:5", "libsvm"),
        (b"a,b\n1,2\n", "csv"),
        (b"1;2;3\n", "csv"),
        (b"1\t2\t3\n", "csv"),
        (b"5,2020-01-01 12:30:00\n6,2020-01-01 12:31:00\n", "csv"),
        (b"1 " + b" ".join(b"%d:1" % k for k in range(1, 2000)), "libsvm"),
        (b"1," * 4000, "csv"),
        (b"\xff\xfe1\0 \0001\0:\0", "libsvm"),
    ],
)
def test_texts_are_told_apart(text, kind):
    assert format_of("rows", text[:4096]) == kind


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0" * 50, b"1 1:1\n\0\0"])
def test_bytes_of_no_known_format_are_refused(data, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(data)
    with pytest.raises(DataError, match="no text, expected a format among libsvm, csv") as caught:
        read(path)
    assert caught.value.path == str(path)


# Options


def test_an_unknown_option_is_named(tmp_path):
    with pytest.raises(TypeError, match=r"no option 'lable': expected one of .*label"):
        read(tmp_path / "rows", lable="y")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "xls"}, "format is 'xls', expected one of libsvm, csv"),
        ({"base": 2}, "base is 2, expected 0 or 1"),
        ({"n_features": 0}, "n_features is 0"),
        ({"n_features": 2.5}, "n_features is 2.5"),
        ({"n_features": 1 << 31}, "expected 1 to 2147483647"),
        ({"missing": "drop"}, "missing is 'drop'"),
        ({"delimiter": "::"}, "delimiter is '::'"),
    ],
)
def test_an_option_that_cannot_be_says_what_was_expected(options, words):
    with pytest.raises(ValueError, match=words):
        read("absent", **options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("libsvm", {"label": "y"}), ("csv", {"base": 0}), ("parquet", {"n_features": 3}),
        ("npz", {"drop": [0]}), ("npy", {"part": "test"}), ("idx", {"text_labels": True}),
    ],
)  # fmt: skip
def test_an_option_of_another_format_is_refused(kind, options, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(content(kind, path))
    (name,) = options
    with pytest.raises(ValueError, match=f"is read as {kind}, which has no option '{name}'"):
        read(path, **options)


def test_options_reach_their_format(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 0:5 2:1\n")
    assert read(path, n_features=9, base=0)[0].shape == (1, 9)
    assert read(path, text_labels=True)[1].tolist() == ["1"]
    path.write_bytes(b"a,b,c\n1,2,3\n4,5,6\n")
    found, y = read(path, label="a", drop="b")
    assert (found.tolist(), y.tolist()) == ([[3], [6]], [1, 4])
    assert read(path, label=None)[1] is None
    assert read(path, header=True, text_columns=["b"], label=-1)[0].shape == (2, 3)
    np.savez(tmp_path / "both.npz", x_train=X, y_train=Y, x_test=X[:1], y_test=Y[:1])
    assert read(tmp_path / "both.npz", part="test")[1].tolist() == [1]


def test_a_stated_format_is_believed(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"1 1:5,2:1\n")
    with pytest.raises(DataError, match="found '5,2:1'; a number was expected"):
        read(path, format="libsvm")


def test_labels_beside_a_file_belong_to_it(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    assert files_of(path, read_options({})) == [path]
    np.save(tmp_path / "y.npy", Y)
    assert files_of(path, read_options({})) == [path, tmp_path / "y.npy"]
    stated = read_options({"labels": str(tmp_path / "other.npy")})
    assert files_of(path, stated) == [path, tmp_path / "other.npy"]


# LIBSVM text


@pytest.mark.parametrize(
    ("text", "base", "has_text"),
    [
        (b"1 1:1 3:1\n", 1, False),
        (b"1\n\n1 4:1 0:1\n", 0, False),
        (b"spam 2:1\nham 0:1", 0, True),
    ],
)
def test_the_first_file_settles_indices_and_labels(text, base, has_text, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(text)
    found = settled_by(path, 10, read_options({}))
    assert found == {"base": base, "text_labels": has_text}
    assert settled_by(path, 10, read_options({"base": 0}))["base"] == 0


def test_rows_without_entries_wait_for_the_width(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_bytes(b"1\n2\n3 4:1\n4\n")
    chunks = list(chunks_of(path, 1, read_options({}), BadRows(), Layout(), {}))
    assert [chunk.X.shape for chunk in chunks] == [(1, 4)] * 4
    assert [chunk.y.tolist() for chunk in chunks] == [[1], [2], [3], [4]]


# ---- one record for each format --------------------------------------------------------------


def test_options_of_formats_are_options_of_reading():
    known = {option.name for option in dataclasses.fields(ReadOptions)}
    assert all(form.options <= known for form in FORMATS.values())


def test_each_suffix_states_one_format():
    suffixes = [suffix for form in FORMATS.values() for suffix in form.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert [format_by_name(f"rows{suffix}.gz") for suffix in suffixes] == [
        form.name for form in FORMATS.values() for _ in form.suffixes
    ]


def test_the_command_line_offers_all_formats():
    assert tuple(FORMATS) == program.FORMATS
    assert program.WRITTEN_FORMATS == WRITTEN
