"""The training part of a file: left out, of another version, and what its names are."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.estimator.files import learning
from polyplane.estimator.files.training_tables import TABLES
from polyplane.estimator.fitting.progress import heard_by
from polyplane.model.format import migrations
from polyplane.model.format.migrations import TRAINING_NOW
from polyplane.model.format.model_file import read_file, write_file
from polyplane.model.format.schema import Many, Maybe, Nested, Numbers
from tests.estimator.files.test_old_files import FILES, paused

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
NAMES = FILES / f"training-{TRAINING_NOW}.txt"
FLOWERS, KINDS = load_iris(return_X_y=True)
NEW = FLOWERS[::-1] + 0.25
MACHINES = [name for name in pp.__all__ if name.endswith("Classifier")]
CANNOT = "it predicts, but cannot learn on; call fit without warm_start"
OURS = {"n_planes": 2, "columns": "knots", "step_size": 0.3, "start_scale": 1.0, "search": False}
SHOWN = (
    "classes_", "planes_", "intercepts_", "plane_classes_", "plane_signs_", "planes_per_class_",
    "n_planes_", "n_steps_", "n_iter_", "alpha_", "history_", "entropy_", "settings_",
    "support_", "support_vectors_", "n_support_", "problems_", "dual_coef_", "intercept_",
    "gamma_", "n_features_in_",
)  # fmt: skip


def machine(name):
    more = OURS if name == "PolyplaneClassifier" else {}
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
        lambda: loaded.set_params(warm_start=True).fit(FLOWERS, KINDS),
        lambda: loaded.set_params(warm_start=True).fit(stream),
        *([loaded.finish] if hasattr(loaded, "finish") else []),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"^{name}: the model was saved without .*{CANNOT}"):
            call()
        np.testing.assert_array_equal(loaded.decision_function(NEW), scores)
    loaded.set_params(warm_start=False).fit(FLOWERS, KINDS)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))


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


# ---- versions ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [TRAINING_NOW + 1, 10**6])
def test_a_training_of_an_unknown_version_predicts(version, tmp_path):
    model, path = machine("AMMClassifier").fit(FLOWERS, KINDS), tmp_path / "model"
    pp.save(model, path)
    values, arrays = read_file(path)
    values["training"] = {"version": version, "what": "nobody knows"}
    write_file(path, values, arrays)
    with pytest.warns(UserWarning, match=f"training state of version {version}, .*cannot learn on"):
        loaded = pp.load(path)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
    with pytest.raises(ValueError, match=f"version {version}, .*{CANNOT}"):
        loaded.partial_fit(FLOWERS, KINDS)


def test_a_training_of_an_older_version_is_brought_up_to_date(tmp_path, monkeypatch):
    model, path = machine("AMMClassifier").fit(FLOWERS, KINDS), tmp_path / "model"
    pp.save(model, path)
    values, arrays = read_file(path)
    values["training"]["planes"]["germ"] = values["training"]["planes"].pop("seed")
    arrays["training.planes.models.0.planes.Theta"] = arrays.pop(
        "training.planes.models.0.planes.sums"
    )
    write_file(path, values, arrays)

    def renamed(training, arrays):
        training["planes"]["seed"] = training["planes"].pop("germ")
        name = "training.planes.models.0.planes"
        arrays[f"{name}.sums"] = arrays.pop(f"{name}.Theta")
        return True

    monkeypatch.setattr(learning, "TRAINING_NOW", TRAINING_NOW + 1)
    monkeypatch.setitem(migrations.TRAININGS, TRAINING_NOW, renamed)
    loaded = pp.load(path)
    for one in (model, loaded):
        one.partial_fit(FLOWERS, KINDS)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))


def names_of(table, path):
    for name, kind in table.fields.items():
        inner = kind
        while isinstance(inner, Maybe | Many):
            inner = inner.kind
        if isinstance(inner, Nested):
            yield from names_of(inner.table, f"{path}.{name}")
        else:
            is_array = isinstance(inner, Numbers)
            said = f"{inner.dtype} {list(inner.axes)}" if is_array else type(inner).__name__
            yield f"{path}.{name}: {said}"


def names_now():
    """Of all records, and of the rules of all machines."""
    lines = [name for tag, table in TABLES.items() for name in names_of(table, tag)]
    for name in MACHINES:
        rule = machine(name).fit(FLOWERS, KINDS)._training.models[0].rule
        lines.append(f"rule of {name}: {list(rule._fields if rule is not None else ())}")
    return "\n".join(lines) + "\n"


def test_records_of_a_version_stay_as_they_are():
    """Who changes them raises TRAINING_NOW, and says in TRAININGS how old files become new ones.

    `python -m tests.estimator.files.test_training_part` writes down those of a new version.
    """
    assert names_now() == NAMES.read_text()


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


if __name__ == "__main__":
    NAMES.write_text(names_now())
