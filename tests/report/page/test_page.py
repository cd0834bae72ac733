"""The page: one file that asks nobody for anything, in which what comes from outside is text."""

import html
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyplane as pp
from polyplane.report.page.charts import axis_of, logs_of, words
from polyplane.report.page.images import guessed_shape, png
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


def test_pictures_are_found_and_written():
    X, _ = pp.datasets.infinite_digits(60)
    assert guessed_shape(X) == (28, 28)
    noise = np.random.default_rng(0).random((60, 784))
    assert guessed_shape(noise) is None
    assert guessed_shape(noise[:, :700]) is None
    assert png(np.zeros((2, 3, 3))).startswith("data:image/png;base64,iVBOR")


def test_digits_have_pictures_of_planes():
    X, y = pp.datasets.infinite_digits(600)
    few = y < 3
    page = pp.explore(X[few], y[few], budget=Budget(rows=(150,)), n_folds=2).to_html()
    assert page.count("data:image/png") > 9
    assert "too many to bend" in page
    assert len(page.encode()) <= 2_000_000


def test_notebooks_show_the_page_in_a_frame(found):
    frame = found._repr_html_()
    assert frame.startswith("<iframe")
    (page,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(page) == found.to_html()
    assert str(found) == found.summary
