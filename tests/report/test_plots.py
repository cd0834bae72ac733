"""Pictures of matplotlib: each is drawn, and shows what its model says."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import polyplane as pp
from tests.tuning import problems

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def board():
    X, y = problems.rings(400)
    return pp.AMMClassifier(random_state=0).fit(X, y), X, y


def test_planes_are_bars_with_names_or_pictures(board):
    model, _, _ = board
    axes = pp.plots.plot_planes(model, names=["left", "up"])
    assert len(axes) == min(12, model.n_planes_)
    texts = {text.get_text() for text in axes[0].get_yticklabels()}
    assert texts == {"left", "up"}
    assert len(pp.plots.plot_planes(model, shape=(1, 2))[0].images) == 1


def test_regions_have_the_labels_of_the_model(board):
    model, X, y = board
    ax = pp.plots.plot_regions(model, X, y, n_points=20)
    mesh = ax.collections[0]
    sides = [np.linspace(X[:, k].min(), X[:, k].max(), 20) for k in (0, 1)]
    cells = np.stack([np.tile(sides[0], 20), np.repeat(sides[1], 20)], axis=1).astype(np.float32)
    assert mesh.get_array().ravel().tolist() == model.predict(cells).tolist()
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [str(label) for label in model.classes_.tolist()]


def test_given_axes_are_drawn_on(board):
    _, ax = matplotlib.pyplot.subplots()
    model, X, _ = board
    assert pp.plots.plot_regions(model, X, ax=ax) is ax
    assert pp.plots.plot_path([0.1, 0.01], [0.2, 0.3], ax=ax) is ax


def test_curves_are_those_of_the_model():
    X, y = problems.additive(400)
    model = pp.SoftPlanesClassifier(n_planes=1, columns="knots", random_state=0)
    model.fit(X, y)
    ax, _ = pp.plots.plot_splines(model, X, columns=[0, 1], names=[*"abcd"])
    x, line = ax.lines[0].get_data()
    rows = np.repeat(np.median(X, axis=0)[None], x.size, axis=0)
    start = model.decision_function(rows[:1])
    rows[:, 0] = x
    np.testing.assert_allclose(line, model.decision_function(rows) - start, atol=1e-4)
    assert ax.get_xlabel() == "a"


def test_pipelines_are_drawn_as_well():
    X, y = problems.additive(300)
    model = make_pipeline(MaxAbsScaler(), pp.AMMClassifier(random_state=0)).fit(X, y)
    assert pp.plots.plot_history(model)[1].get_ylabel() == "planes"
    assert pp.plots.plot_splines(model, X, columns=[0])


def test_calibration_is_what_came_true():
    class Model:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.stack([1 - X[:, 0], X[:, 0]], axis=1)

    X = np.repeat([[0.05], [0.95]], 100, axis=0)
    y = np.array(["a", "b"])[np.r_[np.arange(100) < 10, np.arange(100) < 80].astype(int)]
    ax = pp.plots.plot_calibration(Model(), X, y)
    np.testing.assert_allclose(ax.lines[1].get_data(), [[0.05, 0.95], [0.1, 0.8]])


def test_paths_of_another_length_are_refused():
    with pytest.raises(ValueError, match="3 alphas"):
        pp.plots.plot_path([1, 2, 3], [0.1, 0.2])


def test_the_extra_is_named_where_matplotlib_is_absent(monkeypatch):
    monkeypatch.setattr(pp.plots, "pyplot", None)
    with pytest.raises(ImportError, match=r"polyplane\[plots\]"):
        pp.plots.plot_path([1], [0.1])
