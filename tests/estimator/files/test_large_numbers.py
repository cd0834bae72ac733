"""Columns of large numbers are scaled by the layout of their table, and so by all exports."""

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import polyplane as pp
from polyplane.data.formats.csv import records
from polyplane.data.table.frames import frame_of, rows_of
from polyplane.data.table.layout import Layout
from polyplane.engine.inspection import LARGEST
from tests.estimator.files.test_exported_tables import (
    LINEAR,
    assert_onnx_and_c_say_the_same,
    fitted,
    rows_by,
)
from tests.exported import needs_a_compiler

pytestmark = pytest.mark.compiled
N = 120
NUMBERS = st.one_of(st.none(), st.floats(-1e38, 1e38), st.integers(-(10**18), 10**18).map(float))


def events(n=N, seed=0):
    """Moments in milliseconds, of which the late ones are of another class, and a text."""
    generator = np.random.default_rng(seed)
    moments = 1_700_000_000_000 + generator.integers(0, 86_400_000, n)
    frame = pd.DataFrame(
        {
            "moment": moments,
            "phone": np.where(generator.random(n) < 0.1, np.nan, generator.random(n) * 1e11),
            "town": generator.choice(["Ulm", "Bonn"], n),
            "age": generator.integers(18, 90, n),
        }
    )
    return frame, np.where(moments % 86_400_000 > 43_200_000, "late", "early")


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def test_large_numbers_are_scaled_in_double_precision():
    frame, _ = events()
    layout = Layout(grows=False)
    X = dense(rows_of(frame_of(frame), layout))
    moments = frame["moment"].to_numpy(np.float64)
    origin = np.median(moments)
    unit = np.abs(moments - origin).mean()
    assert layout.sources[0][3:] == (origin, unit)
    np.testing.assert_array_equal(X[:, 0], ((moments - origin) / unit).astype(np.float32))
    assert np.unique(X[:, 0]).size == np.unique(moments).size
    np.testing.assert_array_equal(X[:, 2], frame["age"])  # others are as they were
    assert not layout.sources[3].is_scaled


@pytest.mark.parametrize("estimator", [pp.SoftPlanesClassifier, pp.AMMClassifier])
def test_a_classifier_learns_from_large_numbers(estimator, tmp_path):
    frame, y = events()
    model = estimator(random_state=0).fit(frame, y)
    if estimator is pp.SoftPlanesClassifier:  # the other does not scale ages
        assert model.score(frame, y) > 0.9
    expected = model.decision_function(frame)
    for i in (0, N - 1):
        np.testing.assert_array_equal(model.decision_function(frame.iloc[[i]]), expected[[i]])
    pp.save(model, tmp_path / "m.model")
    again = pp.load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.decision_function(frame), expected)
    far = frame.copy()
    far["moment"] = 1e300
    far["age"] = [10**15] * (N - 1) + [-(10**15)]
    assert np.isfinite(again.decision_function(far)).all()
    X = rows_by(model.layout_, far)
    assert (X[:, 0] <= LARGEST).all()
    np.testing.assert_array_equal(X[:, 2], [LARGEST] * (N - 1) + [-LARGEST])


def test_files_and_frames_scale_alike(tmp_path):
    frame, _ = events()
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet")
    layout = Layout(grows=False)
    expected = dense(rows_of(frame_of(frame), layout))
    for name in ("f.csv", "f.parquet"):
        for own in (Layout(grows=False), layout):
            X, _ = pp.read(tmp_path / name, label=None, layout=own)
            np.testing.assert_array_equal(dense(X), expected)
            assert own == layout


def test_a_table_of_several_blocks_is_scaled_by_all_of_them(monkeypatch):
    numbers = [*range(200), *range(10**12, 10**12 + 200)]
    text = "a,b\n" + "".join(f"{number},{k % 7}\n" for k, number in enumerate(numbers))
    layouts = Layout(grows=False), Layout(grows=False)
    X, _ = pp.read(io.BytesIO(text.encode()), format="csv", label=None, layout=layouts[0])
    monkeypatch.setattr(records, "FIRST_BYTES", 64)
    monkeypatch.setattr(records, "BLOCK_BYTES", 64)
    other, _ = pp.read(io.BytesIO(text.encode()), format="csv", label=None, layout=layouts[1])
    assert layouts[0] == layouts[1]
    np.testing.assert_array_equal(X, other)


def test_infinity_is_refused_in_a_scaled_column():
    frame, y = events()
    model = fitted(frame, y, LINEAR)
    frame["moment"] = np.inf
    with pytest.raises(ValueError, match="infinite value in column 'moment'"):
        model.predict(frame)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_forged_scale_is_refused(unit):
    layout = Layout(grows=False)
    rows_of(frame_of(events()[0]), layout)
    plain = layout.to_dict()
    plain["sources"][0][4] = unit
    with pytest.raises(ValueError, match="'moment' is scaled by no number"):
        Layout.from_dict(plain, is_frozen=True)


@needs_a_compiler
def test_exports_scale_and_clip_as_python_does(tmp_path):
    frame, y = events()
    model = fitted(frame, y, LINEAR)
    folders = [tmp_path / name for name in "abc"]  # a library that is in use stays as it is
    for folder in folders:
        folder.mkdir()
    assert_onnx_and_c_say_the_same(model, frame, folders[0])
    frame["moment"] = frame["moment"].astype(float)
    frame.loc[:5, "moment"] = [1e300, -1e300, 0.0, np.nan, 1e30, -5.0]
    frame["age"] = frame["age"].astype(float)
    frame.loc[:3, "age"] = [1e15, -1e15, 1e39, np.nan]
    assert_onnx_and_c_say_the_same(model, frame, folders[1])
    numbers = frame[["age"]]
    assert_onnx_and_c_say_the_same(fitted(numbers[10:], y[10:], LINEAR), numbers, folders[2])


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=3, max_size=12))
def test_a_row_alone_equals_the_row_in_its_batch(cells):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=float), "b": range(len(cells))})
    layout = Layout(grows=False)
    X = dense(rows_of(frame_of(frame), layout))
    assert np.abs(X).max() <= LARGEST
    for i in range(len(frame)):
        np.testing.assert_array_equal(rows_by(layout, frame.iloc[[i]]), X[[i]])
