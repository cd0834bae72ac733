"""Files in ranges: the rows of all ranges, one after the other, are those of the file."""

import csv
import gzip
import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.data.chunk_sizes import joined
from polyplane.data.chunks import DataError
from polyplane.data.formats.which import ReadOptions
from polyplane.data.ranges import Range, exact_ranges, quotes_in, ranges_of, read_range, sample_of
from polyplane.data.table.layout import Layout

N_CASES = 60


def exact(path, n_bytes, **options):
    parts = ranges_of(str(path), ReadOptions(**options), n_bytes)
    return exact_ranges(parts, [quotes_in(part) for part in parts])


def all_rows(parts, layout=None, settled=None, **options):
    options = ReadOptions(**options)
    chunks = [read_range(part, options, settled or {}, layout or Layout(), False) for part in parts]
    chunks = [chunk for chunk in chunks if chunk.X.shape[0]]
    return joined(chunks)


def same(found, expected):
    X, y = expected
    dense = [one.toarray() if sp.issparse(one) else one for one in (found.X, X)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(found.y, y)


def field(draw):
    """Texts with all that CSV makes difficult."""
    return "".join(draw.choices(['"', ",", "\n", "\r\n", "a", "b", " ", ";"], k=draw.randint(0, 5)))


def table(draw, n_rows, line_end):
    """Records of a number, a text and a label; texts are in quotes where they must be."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow(["age", "na\nme" if draw.random() < 0.3 else "name", "label"])
    for _ in range(n_rows):
        writer.writerow([draw.randint(0, 99), "x" + field(draw), draw.choice(["yes", "no"])])
    return out.getvalue()


@pytest.mark.parametrize("case", range(N_CASES))
def test_ranges_of_csv_are_the_file(tmp_path, case):
    draw = random.Random(case)
    text = table(draw, draw.randint(3, 60), draw.choice(["\n", "\r\n", "\n\n"]))
    if case % 3 == 0:
        text = text.rstrip("\r\n")
    if case % 5 == 0:
        text = "\ufeff" + text
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode())
    whole = pp.stream(path)
    expected = joined(whole.all_chunks())
    for n_bytes in (20, 100, draw.randint(10, 400), 1 << 20):
        parts = exact(path, n_bytes)
        assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
        same(all_rows(parts, whole.layout), expected)


def test_quotes_that_mean_nothing_are_left_to_the_whole_file(tmp_path):
    path = tmp_path / "inches.tsv"
    lines = ["size\tlabel", *(f"{k}{chr(34) * (k % 4 == 1)}\t{k % 2}" for k in range(200))]
    path.write_text("\n".join(lines) + "\n")
    parts = exact(path, 100)
    assert parts[0] == Range(str(path))
    assert all(part.start == part.stop for part in parts[1:])


@pytest.mark.parametrize("case", range(N_CASES))
def test_ranges_of_libsvm_text_are_the_file(tmp_path, case):
    draw = random.Random(case)
    lines = []
    for _ in range(draw.randint(1, 50)):
        columns = sorted(draw.sample(range(1, 20), draw.randint(0, 6)))
        words = [str(draw.randint(0, 2)), *(f"{k}:{draw.randint(1, 9)}" for k in columns)]
        lines.append(" ".join(words) + draw.choice(["", " # remark", "\n", "\r"]))
    lines.append("1 19:1")
    path = tmp_path / "rows.libsvm"
    path.write_bytes("\n".join(lines).encode())
    expected = pp.read(path)
    for n_bytes in (5, 40, draw.randint(3, 200), 1 << 20):
        same(all_rows(exact(path, n_bytes), settled={"base": 1, "text_labels": False}), expected)


@pytest.mark.parametrize("group_rows", [1, 7, 1000])
def test_ranges_of_parquet_are_the_file(tmp_path, group_rows):
    draw = np.random.default_rng(0)
    columns = {
        "a": draw.standard_normal(100), "town": draw.choice(["Ulm", "Bonn", None], 100),
        "label": draw.choice(["yes", "no"], 100),
    }  # fmt: skip
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=group_rows)
    whole = pp.stream(path)
    expected = joined(whole.all_chunks())
    for n_bytes in (1, 500, 1 << 20):
        same(all_rows(exact(path, n_bytes), whole.layout), expected)


def test_a_sample_of_all_rows_gives_the_layout_of_the_file(tmp_path):
    draw = random.Random(1)
    path = tmp_path / "rows.csv"
    path.write_text(table(draw, 300, "\n").replace(",3", ","))
    whole = pp.stream(path)
    whole.all_chunks()
    layout = sample_of(exact(path, 500), ReadOptions(), 1 << 20)
    assert layout.to_dict() == whole.layout.to_dict()
    columns = {"town": ["Ulm", "Bonn", "Kiel"] * 50, "a": [*range(50)] * 3, "label": [0, 1, 1] * 50}
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=20)
    whole = pp.stream(path)
    whole.all_chunks()
    layout = sample_of(exact(path, 1), ReadOptions(), 1 << 20)
    assert layout.to_dict() == whole.layout.to_dict()


def test_a_sample_reaches_into_every_range(tmp_path):
    path = tmp_path / "sorted.csv"
    towns = ["Ulm"] * 20_000 + ["Bonn"] * 20_000 + ["Kiel"] * 20_000
    path.write_text("\n".join(["town,a,label", *(f"{t},1,{k % 2}" for k, t in enumerate(towns))]))
    layout = sample_of(exact(path, 100_000), ReadOptions(), 1)
    assert {pair[2] for pair in layout.to_dict()["pairs"]} >= {"Ulm", "Bonn", "Kiel"}


def test_the_line_of_an_error_is_that_of_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    lines = ["a,b,label", *(f"{k},1,{k % 2}" for k in range(100))]
    path.write_text("\n".join([*lines, "1,oops,0", *lines[1:]]))
    parts = exact(path, 200)
    layout = sample_of(parts[:2], ReadOptions(), 1 << 20)
    with pytest.raises(DataError, match=r"rows\.csv, line 102, column 2.*oops"):
        all_rows(parts, layout)
    path = tmp_path / "rows.libsvm"
    path.write_text("\n".join([*["1 1:1"] * 50, "1 x:1", *["0 2:1"] * 50]))
    with pytest.raises(DataError, match=r"rows\.libsvm, line 51"):
        all_rows(exact(path, 60))


def test_what_cannot_be_cut_is_one_range(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,label\n" + b"1,0\n" * 1000))
    assert exact(path, 100) == [Range(str(path))]
    assert exact(tmp_path / "gone.csv", 100) == [Range(str(tmp_path / "gone.csv"))]
    old = tmp_path / "old.csv"
    old.write_bytes(b"a,label\r" + b"1,0\r2,1\r" * 100)
    assert len(exact(old, 100)) == 1
    np.savez(tmp_path / "rows.npz", X=np.eye(3), y=np.arange(3))
    assert exact(tmp_path / "rows.npz", 1) == [Range(str(tmp_path / "rows.npz"))]
