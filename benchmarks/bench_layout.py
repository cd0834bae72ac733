"""Tables to rows: a million rows of fifty mixed columns beside scikit-learn's encoders; CSV."""

import gzip
import io

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OrdinalEncoder

import polyplane as pp
from benchmarks.race import publish, race, table
from benchmarks.tables import FOLDER, TABLES
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout

N_ROWS, ROUNDS, FILE_ROUNDS = 1_000_000, 3, 9


def mixed(n_rows: int) -> pd.DataFrame:
    """Twenty columns of real numbers, five of whole ones, fifteen of text, ten of categories."""
    random, columns = np.random.default_rng(0), {}
    for k in range(20):
        values = random.normal(size=n_rows)
        if k % 2:
            values[random.random(n_rows) < 0.05] = np.nan
        columns[f"real {k}"] = values
    for k in range(5):
        columns[f"whole {k}"] = random.integers(0, 1_000, n_rows)
    for k in range(15):
        words = np.array([f"value {j}" for j in range(5 * k + 5)], object)
        texts = words[random.integers(0, words.size, n_rows)]
        texts[random.random(n_rows) < 0.03] = None
        columns[f"text {k}"] = texts
    for k in range(10):
        codes = random.integers(0, 20, n_rows)
        columns[f"category {k}"] = pd.Categorical.from_codes(codes, [f"c{j}" for j in range(20)])
    return pd.DataFrame(columns)


def of_frames() -> str:
    frame = mixed(N_ROWS)
    numbers = [name for name in frame if name.split()[0] in ("real", "whole")]
    others = [name for name in frame if name not in numbers]
    known = Layout(grows=False)
    rows_of(frame_of(frame), known)

    def encoders() -> None:
        SimpleImputer(strategy="median").fit_transform(frame[numbers])
        OrdinalEncoder().fit_transform(frame[others])

    seconds = race(
        {
            "polyplane, learned and applied": lambda: rows_of(frame_of(frame), Layout(grows=False)),
            "polyplane, applied": lambda: rows_of(frame_of(frame), known),
            "SimpleImputer and OrdinalEncoder": encoders,
        },
        ROUNDS,
    )
    least = seconds["SimpleImputer and OrdinalEncoder"]
    rows = [[name, f"{one:.2f}", f"{one / least:.2f}"] for name, one in seconds.items()]
    return table(["", "seconds", "ratio"], rows)


def of_files() -> str:
    rows = []
    for name, one in TABLES.items():
        blanks = {"delimiter": " "} if one.separator == " " else {}
        text = gzip.decompress((FOLDER / one.file).read_bytes())
        seconds = race(
            {
                "ours": lambda text=text, one=one, blanks=blanks: pp.read(
                    io.BytesIO(text), format="csv", label=one.label, **blanks
                ),
                "pandas": lambda text=text, one=one: pd.read_csv(
                    io.BytesIO(text), sep=one.separator, low_memory=False
                ),
            },
            FILE_ROUNDS,
        )
        ratio = seconds["ours"] / seconds["pandas"]
        ours, theirs = (f"{1000 * seconds[who]:.1f}" for who in ("ours", "pandas"))
        rows.append([name, f"{len(text) / 1e6:.1f}", ours, theirs, f"{ratio:.2f}"])
    return table(["table", "MB", "rows of X by polyplane, ms", "pandas, ms", "ratio"], rows)


def main():
    publish(
        "layout",
        "Tables to rows",
        f"{N_ROWS:,} rows of 50 columns of a DataFrame: 25 of numbers, half of the real ones with "
        "gaps, 15 of text with gaps, 10 of categories. scikit-learn makes a number of a category, "
        "the layout a column of X for each value.",
        of_frames(),
        "Raw CSV in memory: `pandas.read_csv` leaves a DataFrame, `polyplane.read` X and y.",
        of_files(),
    )
