"""Raw tables as people find them, as frames for boosting and as numbers for everyone else."""

import functools
import gzip
import io
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

RARE = 20  # rows: categories met no more often stand together
FOLDER = Path(os.environ.get("POLYPLANE_DATA", "../shared/data")) / "tables"


class Table(NamedTuple):
    """Where a table is and what is in it."""

    file: str
    label: str | int
    separator: str = ","
    test: str = ""  # a file of its own; without, a quarter of the rows or one fold of them
    leaks: tuple[str, ...] = ()
    is_headed: bool = True
    n_folds: int = 1  # of small tables, each of which is the test part once


TABLES = {
    "adult": Table("adult/adult.data.gz", "ltgt50k", test="adult/adult.test.gz"),
    "bank_marketing": Table("bank_marketing/bank-additional-full.csv.gz", "y", ";"),
    "telco_churn": Table(
        "telco_churn/WA_Fn-UseC_-Telco-Customer-Churn.csv.gz", "Churn", leaks=("customerID",)
    ),
    "titanic": Table(
        "titanic/titanic.csv.gz", "Survived", leaks=("PassengerId", "Name", "Ticket", "Cabin"),
        n_folds=5,
    ),
    "german_credit": Table("german_credit/german.data.gz", "CLASSIFICATION", " ", n_folds=5),
    "nsl_kdd": Table(
        "nsl_kdd/KDDTrain+_20Percent.txt.gz", 41, test="nsl_kdd/KDDTest+.txt.gz", leaks=("42",),
        is_headed=False,
    ),
    "diamonds": Table("diamonds/diamonds.csv.gz", "cut"),
    "wine_quality": Table("wine_quality/winequality-white.csv.gz", "quality", ";"),
    "hotel_bookings": Table(
        "hotel_bookings/hotel_bookings.csv.gz", "is_canceled",
        leaks=("reservation_status", "reservation_status_date"),
    ),
    "late_flights": Table("flights/late_flights.csv.gz", "late"),
    "stroke": Table("stroke/stroke.csv.gz", "stroke", leaks=("id",)),
    "hr_attrition": Table("hr_attrition/hr_attrition.csv.gz", "Attrition", n_folds=5),
    "spaceship": Table(
        "spaceship/spaceship.csv.gz", "Transported", leaks=("PassengerId", "Name")
    ),
    "electricity": Table("electricity/electricity.csv.gz", "class"),
    "loan_prediction": Table(
        "loan_prediction/loan_prediction.csv.gz", "Loan_Status", leaks=("Loan_ID",), n_folds=5
    ),
    "phishing_urls": Table("phishing_urls/phishing_urls.csv.gz", "status", leaks=("url",)),
}  # fmt: skip


def _stripped(value):
    """Text without blanks around it, truth values as text; missing values stay missing."""
    return str(value).strip() if isinstance(value, str | bool) else value


def _read(table, file):
    text = gzip.decompress((FOLDER / file).read_bytes()).decode()
    frame = pd.read_csv(
        io.StringIO(text), sep=table.separator, skipinitialspace=True,
        header=0 if table.is_headed else None, na_values=["?", "NULL", "NA", ""],
    )  # fmt: skip
    frame.columns = [str(name).strip() for name in frame.columns]
    for name in frame.select_dtypes(["object", "string"]):
        frame[name] = (
            frame[name].astype("object").map(_stripped).replace(["", "NULL", "NA", "?"], None)
        )
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().sum() == frame[name].notna().sum():
            frame[name] = numbers
    return frame.drop(columns=[name for name in table.leaks if name in frame])


@functools.cache
def frames(name, fold=0):
    """Frame and labels to train on, frame and labels to test on; texts are categories."""
    table = TABLES[name]
    label = str(table.label)
    train = _read(table, table.file)
    if table.test:
        test = _read(table, table.test)
    elif table.n_folds > 1:
        parts = StratifiedKFold(table.n_folds, shuffle=True, random_state=0)
        rows, test_rows = list(parts.split(train, train[label]))[fold]
        train, test = train.iloc[rows], train.iloc[test_rows]
    else:
        train, test = train_test_split(train, test_size=0.25, random_state=0)
    y, y_test = (frame[label].astype(str).str.rstrip(".") for frame in (train, test))
    if name == "nsl_kdd":  # attack or not: many attacks are in one of the two only
        y, y_test = ((part != "normal").astype(str) for part in (y, y_test))
    X, X_test = train.drop(columns=label), test.drop(columns=label)
    for column in X.select_dtypes(["object", "string"]):
        known = pd.CategoricalDtype(sorted(X[column].dropna().unique()))
        X[column], X_test[column] = X[column].astype(known), X_test[column].astype(known)
    return X, y.to_numpy(), X_test, y_test.to_numpy()


@functools.cache
def numbers(name, fold=0):
    """The same as float32: one column a category, medians and an indicator for what is missing."""
    X, y, X_test, y_test = frames(name, fold)
    parts, parts_test = [], []
    for column in X:
        if isinstance(X[column].dtype, pd.CategoricalDtype):
            counts = X[column].value_counts()
            often = list(counts.index[counts > RARE])
            for seen, out in ((X, parts), (X_test, parts_test)):
                codes = pd.Categorical(seen[column].astype("object"), often).codes
                out.append(np.eye(len(often) + 1, dtype=np.float32)[codes])  # -1: all others
        else:
            middle, has_gaps = X[column].median(), X[column].isna().any()
            for seen, out in ((X, parts), (X_test, parts_test)):
                values = seen[column].to_numpy(np.float64, na_value=np.nan)
                gaps = np.isnan(values)
                out.append(np.where(gaps, middle, values).astype(np.float32)[:, None])
                if has_gaps:
                    out.append(gaps.astype(np.float32)[:, None])
    return np.hstack(parts), y, np.hstack(parts_test), y_test
