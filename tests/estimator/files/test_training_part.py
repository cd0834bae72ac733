"""The training part of a file: left out, or saved in the middle of a fit."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.training.work.progress import heard_by
from tests.estimator.files.test_frozen_files import paused

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
FLOWERS, KINDS = load_iris(return_X_y=True)
NEW = FLOWERS[::-1] + 0.25
MACHINES = [name for name in pp.__all__ if name.endswith("Classifier")]
CANNOT = "it predicts, but cannot learn on; call fit without warm_start"
OURS = {"n_planes": 2, "columns": "knots", "step_size": 0.3, "start_scale": 1.0}
SHOWN = (
    "classes_", "planes_", "intercepts_", "plane_classes_", "plane_signs_", "planes_per_class_",
    "n_planes_", "n_steps_", "n_iter_", "alpha_", "history_", "entropy_",
    "support_", "support_vectors_", "n_support_", "problems_", "dual_coef_", "intercept_",
    "gamma_", "n_features_in_",
)  # fmt: skip


def machine(name):
    if name == "PolyplaneClassifier":
        recipes = {"few": OURS | {"max_iter": 2}, "more": OURS | {"max_iter": 3}}
        return pp.PolyplaneClassifier(recipes=recipes, random_state=0)
    more = OURS if name == "SoftPlanesClassifier" else {}
    return getattr(pp, name)(max_iter=2, random_state=0, **more)


def without_training(model, path):
    pp.save(model, path, training=False)
    return pp.load(path)


@pytest.mark.parametrize("name", MACHINES)
def test_a_model_without_its_training_shows_and_predicts_the_same(name, tmp_path):
    model = machine(name).fit(FLOWERS, KINDS)
    loaded = without_training(model, tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    for method in ("predict", "decision_function", "predict_proba", "assign", "plane_scores"):
        if hasattr(model, method):
            expected = getattr(model, method)(NEW)
            np.testing.assert_array_equal(getattr(loaded, method)(NEW), expected, method)
    for shown in SHOWN:
        assert hasattr(loaded, shown) == hasattr(model, shown), shown
        if hasattr(model, shown):
            np.testing.assert_array_equal(getattr(loaded, shown), getattr(model, shown), shown)
    for twin in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(twin.decision_function(NEW), model.decision_function(NEW))


@pytest.mark.parametrize("name", MACHINES)
def test_a_model_without_its_training_says_that_it_cannot_learn_on(name, tmp_path):
    model = machine(name).fit(FLOWERS, KINDS)
    loaded = without_training(model, tmp_path / "model")
    scores = loaded.decision_function(NEW)
    stream = OneChunk()
    calls = [
        lambda: loaded.partial_fit(FLOWERS, KINDS),
        lambda: loaded.resume(FLOWERS, KINDS),
        lambda: loaded.resume(stream),
        *(
            [
                lambda: loaded.set_params(warm_start=True).fit(FLOWERS, KINDS),
                lambda: loaded.set_params(warm_start=True).fit(stream),
            ]
            if "warm_start" in loaded.get_params()
            else []
        ),
        *([loaded.finish] if hasattr(loaded, "finish") else []),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"^{name}: the model was saved without .*{CANNOT}"):
            call()
        np.testing.assert_array_equal(loaded.decision_function(NEW), scores)
    if "warm_start" in loaded.get_params():
        loaded.set_params(warm_start=False)
    loaded.fit(FLOWERS, KINDS)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))


@pytest.mark.parametrize(
    "settings",
    [{"columns": "plain"}, {"columns": "rank"}, {"columns": "knots", "directions": "principal"}],
    ids=str,
)
def test_mapped_columns_without_a_training_are_explained_exported_and_saved(settings, tmp_path):
    model = pp.SoftPlanesClassifier(max_iter=2, random_state=0, **{**OURS, **settings})
    model.fit(FLOWERS, KINDS)
    loaded = without_training(model, tmp_path / "one")
    for one in (model.explain(NEW), loaded.explain(NEW)):
        np.testing.assert_array_equal(one.contributions, model.explain(NEW).contributions)
    assert pp.to_c(loaded, name="f") == pp.to_c(model, name="f")
    assert pp.to_onnx(loaded) == pp.to_onnx(model)
    again = without_training(loaded, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_columns_that_a_stream_left_alone_are_said_to_be_so_without_a_training(tmp_path):
    ink = np.random.default_rng(0).random((600, 100))
    model = pp.SoftPlanesClassifier(random_state=0).partial_fit(ink, KINDS[np.arange(600) % 150])
    assert model._training.columns.map.is_as_is


class OneChunk:
    """A stream of all rows at once."""

    is_once = False

    def __iter__(self):
        yield from self.shuffled(())

    def shuffled(self, seed):
        yield Chunk(FLOWERS.astype(np.float32), KINDS)


def test_settings_are_not_searched_for_a_model_that_cannot_learn_on(tmp_path):
    loaded = without_training(machine("AMMClassifier").fit(FLOWERS, KINDS), tmp_path / "model")
    loaded.set_params(warm_start=True, alpha="auto")
    works = []

    def listen(work):
        works.append(work)
        raise AssertionError("it was searched")

    with heard_by(listen), pytest.raises(ValueError, match=CANNOT):
        loaded.fit(FLOWERS, KINDS)
    assert works == []


def test_a_model_without_its_training_is_smaller_and_can_be_saved_again(tmp_path):
    model = make_pipeline(StandardScaler(), machine("LaSVMClassifier")).fit(FLOWERS, KINDS)
    pp.save(model, tmp_path / "whole")
    loaded = without_training(model, tmp_path / "one")
    pp.save(loaded, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").stat().st_size < (tmp_path / "whole").stat().st_size / 2


# ---- in the middle of a fit ----------------------------------------------------------------


def test_saving_in_the_middle_of_a_fit_changes_nothing(tmp_path):
    """What is saved is the model so far, and early stopping looks at planes, not at their past."""
    made = {"max_iter": 6, "early_stopping": True, "random_state": 0}
    expected = pp.AMMClassifier(**made).fit(FLOWERS, KINDS)
    model = pp.AMMClassifier(**made)
    with paused():
        model.fit(FLOWERS, KINDS)
    for _ in range(30):
        pp.save(model, tmp_path / "model")
        loaded = pp.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
        with paused():
            model.resume(FLOWERS, KINDS)
            break
    np.testing.assert_array_equal(model.decision_function(NEW), expected.decision_function(NEW))
    loaded.resume(FLOWERS, KINDS)
    np.testing.assert_array_equal(loaded.decision_function(NEW), expected.decision_function(NEW))
