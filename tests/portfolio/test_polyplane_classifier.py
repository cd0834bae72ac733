"""PolyplaneClassifier: splits, trials, blend, refit, and what a fit knows."""

import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss

import polyplane as pp
from polyplane import PolyplaneClassifier, SoftPlanesClassifier
from polyplane.model.input.input_rows import checked_rows
from polyplane.portfolio import fit, refit, split
from polyplane.portfolio.recipes import (
    EFFORTS,
    RECIPES,
    STATISTICS,
    STREAM,
    TABLE,
    WIDE,
    recipes_for,
    settings_of,
)
from polyplane.portfolio.split import held_out_places, splits_of, without
from polyplane.training.rows import TrainingData
from tests.real_data import libsvm_set, mnist_bytes

pytestmark = pytest.mark.compiled

FEW = {
    "linear": {"n_planes": 1, "units": 1, "columns": "plain", "relevance": 0.0, "max_iter": 4},
    "knots": {"n_planes": 6, "columns": "knots", "relevance": 1.0, "max_iter": 5},
    "turned": {"n_planes": 4, "columns": "fine", "directions": "principal", "max_iter": 3},
}


def rings(n=400, seed=0, n_classes=2):
    """Classes by the distance from the middle; one label in ten is wrong."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3)).astype(np.float32) * [1, 5, 0.2] + [0, 20, 1]
    far = np.hypot(X[:, 0], (X[:, 1] - 20) / 5)
    y = np.digitize(far, np.quantile(far, np.arange(1, n_classes) / n_classes))
    is_wrong = generator.random(n) < 0.1
    return X.astype(np.float32), np.where(is_wrong, generator.integers(0, n_classes, n), y)


def classifier(**settings):
    return PolyplaneClassifier(**{"recipes": FEW, "random_state": 0} | settings)


# ---- recipes -----------------------------------------------------------------------------------


def test_recipes_are_settings_of_the_algorithm():
    names = [recipe.name for recipe in RECIPES]
    assert len(set(names)) == len(names)
    for recipe in RECIPES:
        settings = settings_of(recipe.settings)
        assert settings.pop("statistics") in STATISTICS
        model = SoftPlanesClassifier(**settings)
        pp.estimator.parameters.check_parameters(model)
        assert recipe.why.endswith(".")
    SoftPlanesClassifier(**STREAM)


@pytest.mark.parametrize("quality", [1, 2, 3])
@pytest.mark.parametrize("data", [TABLE, WIDE])
@pytest.mark.parametrize("n_classes", [2, 10, 1_000])
def test_a_linear_recipe_is_always_tried(quality, data, n_classes):
    chosen = recipes_for(quality, data, n_classes)
    assert any(recipe.settings.get("n_planes") == 1 for recipe in chosen)
    assert len(chosen) > 1


def test_the_table_of_recipes_is_shown():
    table = PolyplaneClassifier.recipe_table()
    assert table["recipe"].tolist() == [recipe.name for recipe in RECIPES]


@pytest.mark.parametrize(
    "recipes", [["none such"], [], {}, {"a": 3}, "fine", {"a": {"no_setting": 1}}]
)
def test_recipes_that_are_none_are_refused(recipes):
    X, y = rings(60)
    with pytest.raises(ValueError, match="recipes"):
        PolyplaneClassifier(recipes=recipes).fit(X, y)


def test_pairs_of_classes_cannot_be_blended():
    X, y = rings(60)
    with pytest.raises(ValueError, match="'ovo'"):
        PolyplaneClassifier(recipes={"pairs": {"multi_class": "ovo"}}).fit(X, y)


# ---- splits ------------------------------------------------------------------------------------


def data_of(X, y, weights=None):
    none = np.empty(0, np.float32)
    return TrainingData(
        checked_rows(X, 1.0), y.astype(np.int32), none if weights is None else weights
    )


@pytest.mark.parametrize("quality", [2, 3])
def test_rows_are_tried_or_judged_and_of_every_class(quality):
    effort = EFFORTS[quality]._replace(rows_to_try=200)
    X, y = rings(1_000, n_classes=3)
    X[:, 0] = np.arange(1_000)
    found = splits_of(data_of(X, y), effort, 0)
    assert len(found) == (3 if quality == 2 else 4)
    judged_places = np.concatenate([one.judged_places for one in found])
    assert np.unique(judged_places).size == judged_places.size == 200 * len(found)
    for one in found:
        tried, judged = one.tried.rows.values[:, 0], one.judged.rows.values[:, 0]
        assert not set(tried) & set(judged)
        assert len(tried) == 200
        assert len(judged) == 200
        np.testing.assert_array_equal(judged, one.judged_places)
        for part in (one.tried.labels, one.judged.labels):
            np.testing.assert_allclose(np.bincount(part) / 200, np.bincount(y) / 1_000, atol=0.01)


def test_few_judged_rows_call_for_more_splits():
    X, y = rings(10_000)
    assert [len(splits_of(data_of(X, y), EFFORTS[quality], 0)) for quality in (1, 2)] == [1, 2]
    effort = EFFORTS[2]._replace(rows_to_judge=2_000)
    assert len(splits_of(data_of(X, y), effort, 0)) == 1


def test_rows_of_a_class_that_no_recipe_has_met_are_not_judged():
    X, y = rings(300)
    y[:3] = [2, 3, 4]
    for one in splits_of(data_of(X, y), EFFORTS[2], 0):
        assert set(one.judged.labels) <= set(one.tried.labels)


def test_rows_without_weight_are_neither_tried_nor_judged():
    X, y = rings(500)
    weights = (np.arange(500) % 5 > 0).astype(np.float32)
    [one] = splits_of(data_of(X, y, weights), EFFORTS[1], 0)
    assert (one.tried.weights > 0).all()
    assert (one.judged.weights > 0).all()
    assert one.tried.labels.size + one.judged.labels.size == 400


def test_of_many_rows_some_of_the_judged_ones_are_held_out(monkeypatch):
    monkeypatch.setattr(split, "MANY_ROWS", 1_000)
    X, y = rings(2_000)
    data = data_of(X, y)
    [one] = splits_of(data, EFFORTS[1], 0)
    held = held_out_places(2_000, one)
    assert held.size == 100
    np.testing.assert_array_equal(np.flatnonzero(without(data, held).weights == 0), np.sort(held))
    assert set(held) <= set(one.judged_places)
    few = data_of(X[:500], y[:500])
    assert held_out_places(500, splits_of(few, EFFORTS[1], 0)[0]).size == 0


# ---- what a fit knows --------------------------------------------------------------------------


def test_a_fit_says_what_was_tried_and_what_to_expect():
    X, y = rings(1_500)
    model = PolyplaneClassifier(random_state=0, quality=1).fit(X, y)
    trials = model.trials_
    assert trials["weight"].sum() == pytest.approx(1)
    assert {"recipe", "log_loss", "log_loss_se", "error", "auc", "seconds"} <= set(trials)
    assert set(model.recipes_) == set(trials["recipe"][trials["weight"] > 0])
    expected = model.expected_
    assert expected.n_rows == 300
    assert expected.error < expected.linear.error
    X_new, y_new = rings(4_000, seed=1)
    spread = np.hypot(expected.model.error_se, 0.005)
    assert abs(np.mean(model.predict(X_new) != y_new) - expected.error) < 3 * spread
    assert "a linear model" in str(expected)


@pytest.mark.parametrize("n_rows", [300, 1_500])
def test_of_random_labels_nothing_is_learned(n_rows, monkeypatch):
    monkeypatch.setattr(split, "MANY_ROWS", 1_000)
    generator = np.random.default_rng(0)
    errors, losses = [], []
    for seed in range(3):
        X, y = generator.normal(size=(n_rows, 8)), generator.integers(0, 2, n_rows)
        expected = PolyplaneClassifier(random_state=seed, n_jobs=2).fit(X, y).expected_
        errors.append((expected.error - 0.5) / expected.model.error_se)
        losses.append((expected.log_loss - np.log(2)) / expected.model.log_loss_se)
    assert np.mean(errors) > -1.2
    assert np.mean(losses) > -1.2


def test_rows_of_an_eval_set_judge_the_recipes():
    X, y = rings(600)
    model = classifier().fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    assert model.expected_.n_rows == 200
    other = classifier().fit(X[:400], y[:400], eval_set=[(X[400:500], y[400:500])])
    assert other.expected_.n_rows == 100
    with pytest.raises(ValueError, match="labels that y does not"):
        classifier().fit(X, y, eval_set=(X, y + 7))
    with pytest.raises(ValueError, match="a pair"):
        classifier().fit(X, y, eval_set=[(X, y), (X, y)])


def test_recipes_of_a_model_are_refitted_without_a_trial():
    X, y = rings(500)
    model = classifier().fit(X, y)
    again = PolyplaneClassifier(recipes=model.recipes_, random_state=0).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert again.expected_ is None
    assert len(again.trials_) == 0
    assert again.recipes_ == model.recipes_


def test_recipes_may_be_named():
    X, y = rings(300)
    model = PolyplaneClassifier(recipes=["linear", "fine"], random_state=0).fit(X, y)
    assert model.trials_["recipe"].tolist() == ["linear", "fine"]


# ---- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1 / 1024, 1024.0])
def test_the_unit_of_weights_does_not_matter(factor):
    X, y = rings(300)
    weights = np.random.default_rng(0).integers(1, 9, len(y)) / 4
    one, other = (classifier().fit(X, y, sample_weight=weights * f) for f in (1, factor))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.expected_ == other.expected_


def test_weight_0_leaves_the_row_out():
    X, y = rings(400)
    weights = (np.arange(400) % 4 > 0).astype(float)
    one = classifier().fit(X, y, sample_weight=weights)
    other = classifier().fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_weights_of_classes_move_log_odds_by_their_logarithm():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(6_000, 2))
    y = (generator.random(6_000) < 1 / (1 + np.exp(3 - 2 * X[:, 0]))).astype(int)
    model = PolyplaneClassifier(
        class_weight={0: 1.0, 1: 20.0}, recipes=["linear"], random_state=0
    ).fit(X, y)
    log_odds = np.diff(model.predict_log_proba(X), axis=1).ravel()
    slope, offset = np.polyfit(X[:, 0], log_odds, 1)
    assert slope == pytest.approx(2, abs=0.3)
    assert offset == pytest.approx(np.log(20) - 3, abs=0.3)


# ---- threads, storage, files -------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_and_storage_change_no_bit(n_classes):
    X, y = rings(300, n_classes=n_classes)
    X = np.round(X).astype(np.float32)
    base = classifier().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(classifier(n_jobs=3).fit(X, y).predict_proba(X), base)
    sparse = sp.csr_array(X)
    np.testing.assert_array_equal(classifier().fit(sparse, y).predict_proba(sparse), base)


def test_a_frame_is_taken_as_it_is():
    X, y = rings(400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["d"] = np.where(y == 1, "left", "right")
    frame.loc[::7, "a"] = np.nan
    model = classifier().fit(frame, y)
    assert np.mean(model.predict(frame) != y) < 0.05
    explained = model.explain(frame[:5])
    np.testing.assert_allclose(
        explained.contributions.sum(axis=1) + explained.base,
        np.abs(model.decision_function(frame[:5])),
        rtol=1e-3, atol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("training", [True, False])
def test_a_file_predicts_the_same_bits_and_goes_on(training, tmp_path):
    X, y = rings(400, n_classes=3)
    model = classifier().fit(X, y)
    pp.save(model, tmp_path / "model", training=training)
    again = pp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.planes_, model.planes_)
    assert again.expected_ == model.expected_
    pd.testing.assert_frame_equal(again.trials_, model.trials_)
    explained = again.explain(X[:3]).contributions
    np.testing.assert_array_equal(explained, model.explain(X[:3]).contributions)
    if training:
        for one in (model, again):
            one.partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.recipes_ == model.recipes_
    else:
        with pytest.raises(ValueError, match="without its training state"):
            again.partial_fit(X[:50], y[:50])


# ---- streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[1], [30, 31, 200], [399]])
def test_chunks_of_a_stream_change_no_bit(cuts):
    X, y = rings(400)
    whole, parts = PolyplaneClassifier(random_state=0), PolyplaneClassifier(random_state=0)
    whole.partial_fit(X, y, classes=[0, 1])
    for rows in np.split(np.arange(400), cuts):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    alone = SoftPlanesClassifier(random_state=0, **STREAM).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(
        whole.decision_function(X), alone.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_a_stream_goes_on_from_a_fit_in_small_steps():
    X, y = rings(600)
    model = classifier().fit(X, y)
    before = model.predict_proba(X)
    model.partial_fit(X[:1], y[:1])
    assert np.abs(model.predict_proba(X) - before).mean() < 0.02
    model.partial_fit(X[:50], y[:50] + 2)  # classes that the fit did not know
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.predict_proba(X).shape == (600, 4)


# ---- Ctrl-C ------------------------------------------------------------------------------------


def interrupted(monkeypatch, where, n_calls):
    """Let the n-th call of a function of the portfolio be interrupted."""
    original, count = getattr(fit, where), [0]

    def stops(*arguments, **named):
        count[0] += 1
        if count[0] == n_calls:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    monkeypatch.setattr(fit, where, stops)


def test_an_interruption_of_trials_leaves_the_best_recipe_so_far(monkeypatch):
    X, y = rings(400)
    expected = classifier().fit(X, y)
    seen = []

    def stop_after_two(*arguments):
        *rest, done = arguments

        def told(trial):
            done(trial)
            seen.append(trial)
            if len(seen) == 2:
                raise KeyboardInterrupt

        return original(*rest, told)

    original = fit.tried_recipes
    model = classifier()
    with monkeypatch.context() as patch:
        patch.setattr(fit, "tried_recipes", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    best = min(seen, key=lambda trial: trial.score.log_loss)
    assert [member.name for member in model._training.blended] == [best.name]
    assert log_loss(y, model.predict_proba(X)) < np.log(2)
    model.resume(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("goes_through_a_file", [False, True])
def test_an_interruption_of_the_refit_leaves_members_that_are_done(
    goes_through_a_file, monkeypatch, tmp_path
):
    X, y = rings(400)
    recipes = {**FEW, "other": FEW["knots"] | {"shrinkage": 1.0}}
    expected = classifier(recipes=recipes).fit(X, y)
    assert len(expected.recipes_) > 1
    model = classifier(recipes=recipes)
    original, count = refit.train_on_all, [0]

    def stop_in_the_second(algorithm, view, views, report):
        def told(*arguments):
            report(*arguments)
            if count[0] == 2 and algorithm.n_steps_ > 500:
                signal.raise_signal(signal.SIGINT)

        count[0] += 1
        return original(algorithm, view, views, told)

    with monkeypatch.context() as patch:
        patch.setattr(refit, "train_on_all", stop_in_the_second)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert len(model._training.blended) == 1
    assert model._training.is_unfinished
    model.predict(X)
    if goes_through_a_file:
        pp.save(model, tmp_path / "model")
        model = pp.load(tmp_path / "model")
    model.resume(X, y)
    assert not model._training.is_unfinished
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_an_error_leaves_the_estimator_as_it_was(monkeypatch):
    X, y = rings(200)
    model = classifier().fit(X, y)
    before = model.predict_proba(X)
    interrupted(monkeypatch, "splits_of", 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_resume_without_an_interruption_is_refused():
    X, y = rings(100)
    with pytest.raises(ValueError, match="no interrupted fit"):
        classifier().fit(X, y).resume(X, y)


# ---- odd data ----------------------------------------------------------------------------------


def fitted_without_warnings(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PolyplaneClassifier(random_state=0, n_jobs=2, **settings).fit(X, y)
    shares = model.predict_proba(X)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    return model


def test_thirty_rows_are_enough():
    X, y = rings(30)
    model = fitted_without_warnings(X, y)
    assert model.expected_ is None  # six rows judge nothing
    assert len(model.recipes_) == len(model.trials_) or len(model.trials_) == 0


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_a_few_rows_are_taken(n_rows):
    X, _ = rings(n_rows)
    fitted_without_warnings(X, np.arange(n_rows) % 2)


def test_a_class_of_one_row_is_known():
    X, y = rings(300)
    y[17] = 9
    model = fitted_without_warnings(X, y)
    assert model.classes_.tolist() == [0, 1, 9]


def test_a_judged_part_may_lack_a_class():
    X, y = rings(300)
    y[:3] = 5
    model = fitted_without_warnings(X, y)
    assert 5 in model.classes_
    lacking = classifier().fit(X, y, eval_set=(X[10:60], y[10:60] % 2))
    assert np.isfinite(lacking.expected_.log_loss)


def test_a_thousand_classes_are_taken():
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(1_000), 3)
    X = (np.column_stack([y % 32, y // 32]) + generator.normal(0, 0.1, (3_000, 2))).astype("f4")
    model = fitted_without_warnings(X, y, recipes=["linear", "fine"])
    assert model.classes_.size == 1_000
    assert np.mean(model.predict(X) == y) > 0.05


def test_one_column_is_enough():
    X, y = rings(300)
    fitted_without_warnings(X[:, :1], y)


def test_columns_that_never_change_say_nothing():
    X, y = np.ones((200, 3), np.float32), np.arange(200) % 4 == 0
    model = fitted_without_warnings(X, y)
    assert model.predict_proba(X)[0, 1] == pytest.approx(0.25, abs=0.1)
    assert not model.predict(X).any()


def test_rows_of_one_class_by_weight_are_refused():
    X, y = rings(50)
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="only one class"):
        classifier().fit(X, y * 0)


# ---- real data ---------------------------------------------------------------------------------


def test_real_data_pendigits():
    X, y, X_test, y_test = libsvm_set("pendigits")
    model = PolyplaneClassifier(random_state=0, n_jobs=2).fit(X, y)
    assert np.mean(model.predict(X_test) != y_test) < 0.03


def test_real_data_digits_in_bytes():
    X, y, X_test, y_test = mnist_bytes()
    model = PolyplaneClassifier(random_state=0, n_jobs=2).fit(X[::15], y[::15])
    assert any(one["multi_class"] == "ovr" for one in model.recipes_.values())
    assert np.mean(model.predict(X_test) != y_test) < 0.06


def test_a_clone_has_the_parameters_and_no_training():
    model = classifier(quality=3).fit(*rings(100))
    made = clone(model)
    assert made.get_params() == model.get_params()
    assert not hasattr(made, "classes_")
