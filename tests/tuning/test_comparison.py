"""Classifiers that somebody brings are judged on the same rows, whatever they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import polyplane as pp
from polyplane.report.page.sections import SECTIONS
from polyplane.tuning.code import code_of_model
from polyplane.tuning.comparison import OF_EXPLORATIONS
from tests.tuning import problems

pytestmark = pytest.mark.compiled


class Silent(DecisionTreeClassifier):
    """Neither probabilities nor scores."""

    @property
    def predict_proba(self):
        raise AttributeError


@pytest.fixture(scope="module")
def found():
    models = {
        "<logistic>": LogisticRegression(),
        "tree": Silent(max_depth=4, random_state=0),
        "planes": pp.SoftPlanesClassifier(random_state=0),
        "kernel": pp.HullerClassifier(C=10.0, random_state=0),
    }
    return pp.compare(models, *problems.xor(600), n_folds=3)


def test_the_best_is_named_and_the_others_measured_beside_the_first(found):
    table = found.table.set_index("machine")
    assert found.verdict in ("planes", "a tie")
    assert np.isnan(table.lead["<logistic>"])
    assert table.p["planes"] < 0.001
    assert table.lead["planes"] == pytest.approx(table.error["<logistic>"] - table.error["planes"])
    assert (table.bytes > 0).all()
    assert (table.microseconds > 0).all()
    assert (table.rows == 600).all()
    assert set(found.models) == set(table.index)


def test_its_page_has_the_same_parts(found, tmp_path):
    page = found.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    for key, _, _ in SECTIONS:
        assert (f'<section id="{key}"' in page) is (key not in OF_EXPLORATIONS)
    assert "&lt;logistic&gt;" in page
    assert "<logistic>" not in page


@pytest.mark.parametrize(
    "model",
    [pp.AMMClassifier(alpha=1e-3), make_pipeline(SimpleImputer(), LogisticRegression(C=0.5))],
)
def test_the_code_to_paste_has_its_imports(model):
    X, y = problems.xor(100)
    scope = {"X": X, "y": y}
    exec(code_of_model(model), scope)
    assert repr(scope["model"]) == repr(model)


def test_models_that_are_given_stay_as_they_are():
    model = LogisticRegression()
    pp.compare([model, LinearSVC(), LogisticRegression(C=2.0)], *problems.linear(120), n_folds=2)
    assert not hasattr(model, "coef_")


def test_names_are_those_of_classes_and_each_is_there_once():
    X, y = problems.linear(120)
    found = pp.compare([LogisticRegression(), LogisticRegression(C=2.0)], X, y, n_folds=2)
    assert list(found.models) == ["LogisticRegression", "LogisticRegression 2"]
    assert found.verdict == "a tie"
    assert list(pp.compare(LogisticRegression(), X, y, n_folds=2).models) == ["LogisticRegression"]


def test_the_same_folds_are_for_all():
    X, y = problems.linear(200)
    same = pp.compare({"a": LogisticRegression(), "b": LogisticRegression()}, X, y, n_folds=4)
    first, second = same.lines
    assert first["error"] == second["error"]
    assert (second["lead"], second["p"]) == (0, 1)


@pytest.fixture(scope="module")
def frame():
    X, y = problems.xor(300)
    frame = pd.DataFrame(X, columns=["width", "height", "c", "d"])
    frame["colour"] = np.array(["red", "blue", "blue"])[np.arange(300) % 3]
    frame.loc[::7, "c"] = np.nan
    return frame, y


def with_indicators(model):
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder=SimpleImputer())
    return make_pipeline(columns, model)


def test_tables_go_to_models_as_they_are(frame):
    models = {
        "ours": pp.AMMClassifier(random_state=0),
        "theirs": with_indicators(LogisticRegression()),
    }
    found = pp.compare(models, *frame, n_folds=2)
    assert set(found.table["machine"]) == set(models)
    assert found.content["n_columns"] == 5
    assert found.content["planes"]["machine"] == found.content["rows"]["machine"] == "ours"
    names = {name for row in found.content["rows"]["list"] for name, _, _ in row["columns"]}
    assert {"width", "height"} <= names <= {*frame[0].columns}
    assert {"red", "blue"} >= {
        value
        for row in found.content["rows"]["list"]
        for name, value, _ in row["columns"]
        if name == "colour"
    }
    assert found.content["regions"]["machines"] == ["ours"]  # the other knows no laid-out rows
    assert "<h1>" in found.to_html()


def test_of_two_of_ours_both_have_regions_of_a_table(frame):
    models = [pp.PegasosClassifier(random_state=0), pp.AMMClassifier(random_state=0)]
    found = pp.compare(models, *frame, n_folds=2)
    assert sorted(found.content["regions"]["machines"]) == ["AMMClassifier", "PegasosClassifier"]


def test_columns_that_a_step_has_made_are_called_as_it_calls_them(frame):
    found = pp.compare(with_indicators(pp.AMMClassifier(random_state=0)), *frame, n_folds=2)
    names = {name for row in found.content["rows"]["list"] for name, _, _ in row["columns"]}
    assert {"remainder__width", "remainder__height"} <= names


def test_tables_without_a_model_of_ours_show_what_there_is(frame):
    found = pp.compare(with_indicators(LogisticRegression()), *frame, n_folds=2)
    assert not {"planes", "rows", "regions"} & found.content.keys()
    assert "No algorithm here can explain single rows" in found.to_html()


@pytest.mark.parametrize(
    ("models", "error", "words"),
    [({}, ValueError, "no model"), ({"a": 3}, TypeError, "expected a classifier")],
)
def test_what_is_no_model_is_refused(models, error, words):
    with pytest.raises(error, match=words):
        pp.compare(models, *problems.linear(20))


class Interrupted(DecisionTreeClassifier):
    """Ctrl-C in the middle of its fit."""

    def fit(self, X, y):
        raise KeyboardInterrupt


def test_ctrl_c_leaves_the_models_that_have_been_judged():
    X, y = problems.xor(100)
    models = {"tree": DecisionTreeClassifier(), "long": Interrupted(), "more": LinearSVC()}
    found = pp.compare(models, X, y, n_folds=2)
    assert set(found.models) == {"tree"}
    assert "Stopped early" in found.to_html()
    with pytest.raises(KeyboardInterrupt):
        pp.compare(Interrupted(), X, y, n_folds=2)


def test_a_model_that_fails_is_named():
    models = {"good": LinearSVC(), "bad": LogisticRegression(C=-1.0)}
    with pytest.raises(ValueError, match="'C' parameter") as caught:
        pp.compare(models, *problems.xor(100), n_folds=2)
    assert caught.value.__notes__ == ["bad is the model that failed."]


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="but one label"):
        pp.compare(LinearSVC(), np.zeros((9, 2)), np.zeros(9))
