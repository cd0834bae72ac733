"""Raw tables as people find them: each becomes the same rows from pandas, polars and the file."""

import gzip
import io
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from tests.real_data import raw_table

polars = pytest.importorskip("polars")


class Table(NamedTuple):
    """Where a table is, how others are told to read it, and what is in it."""

    file: str
    label: str | int
    n_rows: int
    kinds: dict  # columns of each kind
    separator: str = ","
    is_headed: bool = True
    has_quotes: bool = True
    aside: tuple = ()


TABLES = [
    Table("adult/adult.data.gz", "ltgt50k", 32_561, {"number": 6, "category": 8}),
    Table("bank_marketing/bank-additional-full.csv.gz", "y", 41_188,
          {"number": 10, "category": 10}, ";"),
    Table("telco_churn/WA_Fn-UseC_-Telco-Customer-Churn.csv.gz", "Churn", 7_043,
          {"number": 4, "category": 15, "aside": 1}, aside=("customerID",)),
    Table("titanic/titanic.csv.gz", "Survived", 891,
          {"number": 5, "category": 3, "aside": 3},
          aside=("PassengerId", "Name", "Ticket")),
    Table("german_credit/german.data.gz", "CLASSIFICATION", 1_000,
          {"number": 7, "category": 13}, " "),
    Table("nsl_kdd/KDDTrain+_20Percent.txt.gz", 41, 25_192,
          {"number": 39, "category": 3}, is_headed=False),
    Table("diamonds/diamonds.csv.gz", "cut", 53_940, {"number": 7, "category": 2}),
    Table("wine_quality/winequality-white.csv.gz", "quality", 4_898, {"number": 11}, ";"),
    Table("hotel_bookings/hotel_bookings.csv.gz", "is_canceled", 119_390,
          {"number": 19, "category": 11, "date": 1}),
    Table("sms_spam/SMSSpamCollection.gz", 0, 5_574, {"text": 1}, "\t", False, False),
]  # fmt: skip


def read_by_pandas(path, table):
    """The table, and nothing done to its cells."""
    return pd.read_csv(
        path, sep=table.separator, header=0 if table.is_headed else None, low_memory=False,
        quoting=0 if table.has_quotes else 3,
    )  # fmt: skip


def read_by_polars(path, table):
    text = gzip.decompress(path.read_bytes())
    frame = polars.read_csv(
        io.BytesIO(text), separator=table.separator, has_header=table.is_headed,
        infer_schema_length=None, quote_char='"' if table.has_quotes else None,
    )  # fmt: skip
    return frame.filter(~polars.all_horizontal(polars.all().is_null()))  # an empty line is no row


def rows_of_frame(frame, table):
    """Rows of the frame without its label, whose name may be padded."""
    names = list(frame.columns)
    stripped = [name.strip() if isinstance(name, str) else name for name in names]
    is_named = isinstance(table.label, str)
    place = stripped.index(table.label) if is_named else table.label
    kept = [name for k, name in enumerate(names) if k != place]
    return rows_of(frame_of(frame[kept]), Layout(grows=False))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file.split("/")[0])
def test_pandas_polars_and_the_file_give_the_same_rows(table):
    path, layout = raw_table(table.file), Layout()
    delimiter = " " if table.separator == " " else None
    X, y = pp.read(path, label=table.label, layout=layout, delimiter=delimiter)
    assert X.shape == (table.n_rows, layout.width)
    assert y.shape == (table.n_rows,)
    kinds = [source.kind for source in layout.sources]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == table.kinds
    assert layout.set_aside == list(table.aside)
    for read in (read_by_pandas, read_by_polars):
        other = rows_of_frame(read(path, table), table)
        assert other.shape == X.shape
        difference = abs(other - X)
        assert (difference.nnz if sp.issparse(X) else np.count_nonzero(difference)) == 0


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file.split("/")[0])
def test_the_file_again_is_the_same_rows(table):
    path, layout = raw_table(table.file), Layout()
    delimiter = " " if table.separator == " " else None
    X, _ = pp.read(path, label=table.label, layout=layout, delimiter=delimiter)
    kept = Layout.from_dict(layout.to_dict(), is_frozen=True)
    again, _ = pp.read(path, layout=kept, delimiter=delimiter)
    difference = abs(again - X)
    assert (difference.nnz if sp.issparse(X) else np.count_nonzero(difference)) == 0
