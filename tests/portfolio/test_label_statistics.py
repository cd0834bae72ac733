"""Target statistics in fits: what is chosen, what is expected, files, exports and interruptions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import polyplane as pp
from polyplane import PolyplaneClassifier
from polyplane.cli.main import main
from polyplane.data.table.layout import LaidOut, Layout
from polyplane.model.input.input_rows import checked_rows
from polyplane.portfolio import fit
from polyplane.portfolio.label_statistics import label_statistics, widened
from polyplane.training.rows import TrainingData
from tests.data.table.test_statistics import kept
from tests.exported import cells_of, needs_a_compiler, run_c_table, run_onnx_table

pytestmark = pytest.mark.compiled

FEW = {
    "linear": {"n_planes": 1, "units": 1, "columns": "plain", "relevance": 0.0, "max_iter": 4},
    "target": {"n_planes": 4, "columns": "knots", "max_iter": 6, "statistics": "target"},
}


def flights(n=1_200, seed=0):
    """Labels that depend on pairs of a carrier and a flight number, and on a number."""
    generator = np.random.default_rng(seed)
    carrier = generator.choice([f"carrier {k}" for k in range(8)], n)
    flight = generator.integers(1, 15, n).astype(float)
    flight[generator.random(n) < 0.05] = np.nan
    frame = pd.DataFrame(
        {"distance": generator.normal(size=n), "carrier": carrier, "flight": flight}
    )
    pair = pd.util.hash_pandas_object(frame[["carrier", "flight"]], index=False).to_numpy() % 7
    is_late = (pair < 3) ^ (generator.random(n) < 0.1)
    return frame, np.where(is_late, "late", "in time")


def classifier(**settings):
    return PolyplaneClassifier(**{"recipes": FEW, "random_state": 0} | settings)


def test_a_pair_of_keys_that_decides_is_found_and_read():
    X, y = flights()
    model = classifier().fit(X, y)
    new, labels = flights(seed=1)
    assert set(model.recipes_) >= {"target"}
    assert model.layout_.statistics.places()[-1] == (1, 2)
    assert (model.predict(new) == labels).mean() > 0.8
    assert model.expected_.error < 0.25
    assert model.expected_.linear.error > 0.3
    assert any("carrier and flight" in name for name in model.layout_.feature_names)


def test_without_a_recipe_that_reads_them_there_are_none():
    X, y = flights(400)
    model = classifier(recipes={"linear": FEW["linear"]}).fit(X, y)
    assert model.layout_.statistics is None
    assert model._training.n_columns == model.layout_.width


@pytest.mark.parametrize("n_rows", [400, 1_500])
def test_of_random_labels_with_unique_pairs_nothing_is_learned(n_rows):
    """Rows whose own labels reached their statistics would look as if they could be told apart."""
    generator = np.random.default_rng(0)
    place = np.arange(n_rows)
    X = pd.DataFrame(
        {
            "first": pd.Categorical([f"a{k}" for k in place // 8]),
            "second": pd.Categorical([f"b{k}" for k in place % 8 + 8 * (place // 64)]),
            "number": generator.normal(size=n_rows),
        }
    )
    assert len(X[["first", "second"]].drop_duplicates()) == n_rows
    y = generator.integers(0, 2, n_rows)
    model = PolyplaneClassifier(random_state=0).fit(X, y)
    low, high = model.expected_.model.interval("error")
    assert low < 0.5 < high
    assert model.expected_.log_loss > np.log(2) - 3 * model.expected_.model.log_loss_se
    fresh = generator.integers(0, 2, n_rows)
    assert log_loss(fresh, model.predict_proba(X)) > np.log(2) - 0.05


def test_pairs_are_chosen_by_what_they_add_to_single_keys():
    X, y = flights()
    X["other"] = np.random.default_rng(5).choice(list("pqrs"), len(X))
    layout, rows = kept(X)
    codes = (y == "late").astype(np.int32)
    data = TrainingData(checked_rows(rows, 1.0), codes, np.empty(0, np.float32))
    found = label_statistics(layout.keyed, data, np.arange(2), ["in time", "late"], 0)
    names = [layout.sources[key.place].name for key in layout.keys]
    singles = [keys for keys in found.combinations if len(keys) == 1]
    pairs = [tuple(names[k] for k in keys) for keys in found.combinations if len(keys) == 2]
    assert len(singles) == 3
    assert pairs == [("carrier", "flight")]


def test_wider_rows_have_the_columns_behind_theirs():
    X, _ = flights(50)
    layout, rows = kept(X)
    data = TrainingData(checked_rows(rows, 1.0), np.zeros(50, np.int32), np.empty(0, np.float32))
    behind = np.arange(100, dtype=np.float32).reshape(50, 2)
    wide = widened(data, behind, layout.width)
    found = np.zeros((50, layout.width + 2), np.float32)
    for i in range(50):
        part = slice(wide.rows.starts[i], wide.rows.starts[i + 1])
        found[i, wide.rows.columns[part]] = wide.rows.values[part]
    np.testing.assert_array_equal(found, np.hstack([rows.toarray(), behind]))


def test_a_row_alone_equals_the_row_in_its_batch():
    X, y = flights(600)
    model = classifier().fit(X, y)
    new, _ = flights(30, seed=2)
    new.loc[3, "carrier"] = "another carrier"
    new.loc[4, "carrier"] = None
    together = model.predict_proba(new)
    alone = np.vstack([model.predict_proba(new.iloc[[i]]) for i in range(30)])
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("training", [True, False])
def test_a_file_predicts_the_same_bits(training, tmp_path):
    X, y = flights(600)
    model = classifier().fit(X, y)
    pp.save(model, tmp_path / "model", training=training)
    again = pp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if training:
        for one in (model, again):
            one.partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@needs_a_compiler
def test_onnx_and_c_give_the_same_probabilities(tmp_path):
    X, y = flights(600)
    model = classifier().fit(X, y)
    new, _ = flights(40, seed=2)
    new.loc[3, "carrier"] = "another carrier"
    new.loc[4, "carrier"] = None
    new.loc[5, "flight"] = 999.0
    cells = cells_of(new, model.layout_)
    expected = model.predict_proba(new)
    in_onnx = run_onnx_table(pp.to_onnx(model), cells)
    np.testing.assert_allclose(in_onnx["probabilities"], expected, atol=1e-5)
    in_c = run_c_table(pp.to_c(model, name="model"), cells, 2, tmp_path)
    np.testing.assert_allclose(in_c["probabilities"], expected, atol=1e-5)


def test_contributions_of_pairs_are_shared_by_their_columns():
    X, y = flights(600)
    model = classifier().fit(X, y)
    found = model.explain(X[:20])
    assert found.contributions.shape == (20, 3)
    lead = np.abs(model.decision_function(X[:20]))
    np.testing.assert_allclose(found.lead, lead, atol=1e-4)
    shares = model.feature_importances_
    assert min(shares[1:]) > shares[0]


def test_recipes_of_a_model_are_refitted_with_their_statistics():
    X, y = flights(600)
    model = classifier().fit(X, y)
    again = PolyplaneClassifier(recipes=model.recipes_, random_state=0).fit(X, y)
    assert again.layout_.statistics.places() == model.layout_.statistics.places()
    assert (again.predict(X) == model.predict(X)).mean() > 0.95


def test_rows_of_an_eval_set_get_statistics_of_training_rows():
    X, y = flights(900)
    model = classifier().fit(X[:600], y[:600], eval_set=(X[600:], y[600:]))
    assert model.layout_.statistics is not None
    wrong = (model.predict(X[600:]) != y[600:]).mean()
    assert model.expected_.error == pytest.approx(wrong, abs=1e-9)


@pytest.mark.parametrize("where", ["tried_recipes", "refit"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(where, monkeypatch):
    X, y = flights(600)
    expected = classifier().fit(X, y)
    original = getattr(fit, where)

    def stops(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    model = classifier()
    with monkeypatch.context() as patch:
        patch.setattr(fit, where, stops)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    if where == "tried_recipes":
        assert (model.predict(X) == y).mean() > 0.5
        model.resume(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    else:
        assert (model.predict(X) == y).mean() > 0.7


def test_rows_that_a_layout_has_made_keep_their_keys():
    X, y = flights(600)
    layout, rows = kept(X)
    model = classifier().fit(LaidOut(rows, layout), y)
    np.testing.assert_array_equal(model.predict_proba(X), classifier().fit(X, y).predict_proba(X))
    assert isinstance(model.layout_, Layout)


def test_the_command_line_trains_predicts_and_goes_on_with_statistics(tmp_path, capsys):
    X, y = flights(600)
    path = tmp_path / "flights.csv"
    X.assign(status=y).to_csv(path, index=False)
    model = tmp_path / "flights.model"
    assert main(["train", str(path), "--label", "status", "-m", str(model), "--seed", "0"]) == 0
    trained = pp.load(model)
    assert trained.layout_.statistics is not None
    assert "(3 features)" not in capsys.readouterr().out
    known = PolyplaneClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(trained.predict_proba(X), known.predict_proba(X))
    out = tmp_path / "out.csv"
    assert main(["predict", str(model), str(path), "-o", str(out)]) == 0
    found = pd.read_csv(out, header=None).iloc[:, 0].to_numpy()
    np.testing.assert_array_equal(found, trained.predict(X))
