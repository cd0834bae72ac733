"""The page: one file that asks nobody for anything, in which what comes from outside is text."""

import base64
import html
import json
import re
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import polyplane as pp
from polyplane.report.columns import Columns, Table
from polyplane.report.findings import count_region_columns, regions_of, rows_explained
from polyplane.report.images import guessed_shape, png
from polyplane.report.page.charts import Chart, axis_of, logs_of, words
from polyplane.report.page.page import page_of
from polyplane.report.page.sections import SECTIONS
from polyplane.tuning.budget import Budget
from tests.report.page.hostile import hostile_table
from tests.tuning import problems

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def hostile_page():
    frame, y = hostile_table()
    return pp.explore(frame, y, budget=Budget(rows=(300,)), n_folds=2).to_html()


@pytest.fixture(scope="module")
def found():
    return pp.explore(*problems.xor(200), budget=Budget(rows=(200,)), n_folds=2)


def test_the_page_holds_all_it_needs(found):
    page = found.to_html()
    assert len(page.encode()) <= 2_000_000
    assert not re.findall(r"""(?:src|href)=(?!["']?(?:#|data:))""", page)
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    for key, title, _ in SECTIONS:
        assert f'<section id="{key}"' in page
        assert title in page


def cells_of(regions):
    """[pair, machine, line, column]: places of labels."""
    n, n_machines = regions["grid"], len(regions["machines"])
    codes = np.frombuffer(zlib.decompress(base64.b64decode(regions["cells"])), np.uint8)
    return codes.reshape(-1, n_machines, n, n)


def table_of(X, y):
    return Table(X, y, Columns([f"column {k + 1}" for k in range(X.shape[1])]))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_regions_are_what_models_say_along_two_columns(storage):
    X, y = problems.xor(200)
    models = {"one": pp.PegasosClassifier(random_state=0).fit(X, y),
              "many": pp.AMMClassifier(random_state=0).fit(X, y)}  # fmt: skip
    found = regions_of(models, table_of(storage(X), y), [2, 0, 3])
    assert found["names"] == ["column 3", "column 1", "column 4"]
    grids = [np.linspace(*each, found["grid"]) for each in found["ranges"]]
    for pair, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        row = np.median(X, axis=0)
        places = [[2, 0, 3][k] for k in (a, b)]
        for line, column in [(0, 0), (0, -1), (9, 5), (-1, 20)]:
            row[places] = grids[a][column], grids[b][line]
            said = [model.predict(row[None])[0] for model in models.values()]
            assert cells_of(found)[pair, :, line, column].tolist() == said
    assert np.allclose(found["dots"], X[:150, [2, 0, 3]].T, rtol=1e-3)
    assert found["dot_labels"] == y[:150].tolist()


def test_regions_start_where_labels_change():
    X, _ = problems.xor(200)
    models = {"one": pp.PegasosClassifier(random_state=0).fit(X, X[:, 2] > 0)}
    assert regions_of(models, table_of(X, X[:, 2] > 0), [0, 1, 2])["start"] == (0, 2)


def test_what_would_change_a_label_may_be_a_category():
    generator = np.random.default_rng(0)
    colours = generator.integers(0, 3, 200)
    X = np.hstack([generator.normal(size=(200, 1)), np.eye(3)[colours]]).astype(np.float32)
    columns = Columns(["size", "colour"], np.array([0, 1, 1, 1]), ["", "red", "green", "blue"])
    y = np.where(colours == 0, "warm", "cold")
    model = pp.PegasosClassifier(random_state=0).fit(X, y)
    for rows in (X, sp.csr_matrix(X)):
        found = rows_explained(model, Table(rows, y, columns), np.arange(200), None, [0, 1])
        for one in found:
            ((name, value, label),) = one["changes"]
            assert (name, value == "red", label != one["winner"]) == (
                "colour", one["winner"] == "cold", True
            )  # fmt: skip


def test_regions_of_forty_columns_are_small():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 60)).astype(np.float32)
    y = X @ generator.normal(size=60) > 0
    models = {"one": pp.PegasosClassifier(random_state=0).fit(X, y)}
    found = regions_of(models, table_of(X, y), range(40))
    assert cells_of(found).shape == (780, 1, found["grid"], found["grid"])
    assert len(json.dumps(found)) < 500_000


@pytest.mark.parametrize(("microseconds", "n_columns"), [(0.0, 40), (1.0, 39), (1e6, 6)])
def test_dear_predictions_have_regions_of_fewer_columns(microseconds, n_columns):
    assert count_region_columns(microseconds) == n_columns


def test_nothing_from_outside_is_markup(hostile_page):
    before, data = hostile_page.split('<script type="application/json" id="data">')
    data, after = data.split("</script>", 1)
    assert "<" not in data
    found = json.loads(data)
    assert any("<script>" in name for name in found["regions"]["names"])
    for part in (before, after):
        assert "window.hacked = 1</script>" not in part
        assert "<img src=x" not in part
        assert "\u202e" not in part
    assert "&lt;script&gt;window.hacked = 1&lt;/script&gt;" in before


def test_long_names_are_cut(hostile_page):
    assert "x" * 500 not in hostile_page


@given(st.text())
def test_words_are_text_again_when_they_are_read(text):
    made = words(text)
    assert not set(made) & set("<>\"'")
    if text.isprintable():
        assert html.unescape(made) == text


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5), st.booleans())
def test_axes_hold_their_values_and_a_few_ticks(values, from_zero):
    axis = axis_of(values, "x", str, from_zero)
    assert all(-0.001 <= axis.share(value) <= 1.001 for value in values)
    assert 1 <= len(axis.ticks) <= 12


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_axes_of_powers_hold_their_values(values):
    axis = logs_of(values, "x", str)
    assert all(0 <= axis.share(value) <= 1 for value in values)
    assert 1 <= len(axis.ticks) <= 8


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=5))
def test_ticks_of_powers_are_round_and_do_not_overlap(values):
    axis = logs_of(values, "x", lambda v: f"{v:g}")
    assert all(len(text) <= 6 for _, text in axis.ticks)
    places = [axis.share(value) for value, _ in axis.ticks]
    assert np.all(np.diff(places) > 0.04)


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=5))
def test_ticks_of_counts_are_counts(counts):
    axis = axis_of(counts, "planes", lambda v: f"{v:.0f}", True, is_whole=True)
    assert all(float(text) == value for value, text in axis.ticks)


def test_words_beside_a_mark_leave_other_marks_free():
    chart = Chart(axis_of([0, 1], "x", str), axis_of([0, 1], "y", str), "two", "")
    for x, name in ((0.5, "one"), (0.53, "other")):
        chart.dot(x, 0.5, "", "")
        chart.label(x, 0.5, name)
    (one, _), (other, _) = (chart.at(x, 0.5) for x in (0.5, 0.53))
    drawn = re.findall(
        r'<text class="label "[^>]* x="([^"]*)"[^>]*text-anchor="(\w+)"', chart.svg()
    )
    assert [(float(x) < one, anchor) for x, anchor in drawn] == [(True, "end"), (False, "start")]
    assert float(drawn[1][0]) > other


def digits(n_rows):
    """Digits of scikit-learn in three times as many pixels each way, and their labels."""
    X, y = load_digits(return_X_y=True)
    images = X[:n_rows].reshape(-1, 8, 8).repeat(3, axis=1).repeat(3, axis=2)
    return images.reshape(n_rows, -1).astype(np.uint8), y[:n_rows]


def test_pictures_are_found_and_written():
    X, _ = digits(60)
    assert guessed_shape(X) == (24, 24)
    noise = np.random.default_rng(0).random((60, 576))
    assert guessed_shape(noise) is None
    assert guessed_shape(noise[:, :500]) is None
    assert png(np.zeros((2, 3, 3))).startswith("data:image/png;base64,iVBOR")


def test_digits_have_pictures_of_planes():
    X, y = digits(600)
    few = y < 3
    page = pp.explore(X[few], y[few], budget=Budget(rows=(150,)), n_folds=2).to_html()
    assert page.count("data:image/png") > 9
    assert "columns are too many to draw a curve along each" in page
    assert len(page.encode()) <= 2_000_000


def test_notebooks_show_the_page_in_a_frame(found):
    frame = found._repr_html_()
    assert frame.startswith("<iframe")
    (page,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(page) == found.to_html()
    assert str(found) == found.summary


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.25"), (99999.0, "99,999"), (-41310.4, "-41,310"), (1e12, "1e+12"), (3.0, "3")],
)
def test_numbers_of_cells_are_written_out(value, text):
    table = table_of(np.array([[value]]), np.array([0]))
    assert table.cell(0, 0) == text


def test_a_column_that_decides_alone_is_no_noise():
    X, y = problems.random_labels(400)
    X[:, 1] = y
    found = pp.explore(X, y, budget=Budget(rows=(400,)), n_folds=2)
    assert "A column decides nearly alone" in page_of({**found.content, "verdict": "noise"})
