"""`save` and `load`: the same bits, the same training from there on, and nothing believed."""

import contextlib
import json
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC

import polyplane as pp
from polyplane.data.table.categories import Pair
from polyplane.data.table.layout import Layout, Source
from polyplane.estimator.files.saving import SavedModel, read_model, write_model
from polyplane.estimator.parameters import REGISTRY
from polyplane.model.format.model_file import read_file, write_file
from tests.examples import IS_NIGHT

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
PIXELS, DIGITS = load_digits(n_class=4, return_X_y=True)
PIXELS = PIXELS[:300].astype(np.float32)
DIGITS = DIGITS[:300]
NEW = PIXELS[::-1] + 0.5
LABELS = {
    "integers": DIGITS,
    "small integers": DIGITS.astype(np.int8),
    "floats": DIGITS.astype(np.float64),
    "text": np.array(["null", "eins", "zwei", "drei"])[DIGITS],
    "objects": np.array(["null", "eins", "zwei", "drei"], object)[DIGITS],
    "truth": DIGITS > 1,
}
MACHINES = [name for name in pp.__all__ if name.endswith("Classifier")]


def quick(name, **parameters):
    """A machine that is trained in no time."""
    machine = getattr(pp, name)
    if name == "PolyplaneClassifier":
        recipes = {
            "knots": {"n_planes": 3, "columns": "knots", "directions": "principal", "max_iter": 2},
            "linear": {"n_planes": 1, "units": 1, "columns": "plain", "max_iter": 2},
        }
        return machine(recipes=recipes, random_state=1, **parameters)
    if name == "SoftPlanesClassifier":
        parameters = {
            "n_planes": 3,
            "columns": "knots",
            "step_size": 0.3,
            "directions": "principal",
            "relevance": 1.0,
            **parameters,
        }
    return machine(max_iter=2, random_state=1, **parameters)


def kept(model, tmp_path):
    """The model, by way of a file."""
    pp.save(model, tmp_path / "model")
    return pp.load(tmp_path / "model")


@pytest.mark.parametrize("name", MACHINES)
def test_a_loaded_model_predicts_and_learns_the_same_bits(name, tmp_path):
    model = quick(name).fit(PIXELS, DIGITS)
    loaded = kept(model, tmp_path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    for _ in range(2):
        for X in (PIXELS, NEW, sp.csr_matrix(NEW)):
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
            np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        for one in (model, loaded):  # a class and a column that are new
            wider = PIXELS if name == "SoftPlanesClassifier" else np.hstack([NEW, PIXELS[:, :1]])
            one.partial_fit(wider[:50], np.where(DIGITS[:50] == 2, 7, DIGITS[:50]))
        if name != "SoftPlanesClassifier":
            break
    again = PIXELS if name == "SoftPlanesClassifier" else np.hstack([PIXELS, PIXELS[:, :1]])
    np.testing.assert_array_equal(loaded.decision_function(again), model.decision_function(again))
    assert 7 in loaded.classes_


def test_every_machine_is_there():
    assert {cls.__name__ for cls in REGISTRY.values()} >= set(MACHINES)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["AMMClassifier", "LaSVMClassifier"])
def test_labels_keep_their_kind(name, kind, tmp_path):
    model = quick(name).fit(PIXELS, LABELS[kind])
    loaded = kept(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(NEW).dtype == model.predict(NEW).dtype
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_names_of_features_are_kept(tmp_path):
    table = pd.DataFrame(PIXELS, columns=[f"pixel {k}" for k in range(64)])
    loaded = kept(quick("AMMClassifier").fit(table, DIGITS), tmp_path)
    np.testing.assert_array_equal(loaded.feature_names_in_, table.columns)
    with pytest.raises(ValueError, match="found no column 'pixel 0'"):
        loaded.predict(table.rename(columns={"pixel 0": "other"}))


@pytest.mark.parametrize("value", [3, None, np.random.RandomState(4), np.int64(5)])
def test_random_states_are_kept(value, tmp_path):
    model = quick("AMMClassifier").set_params(random_state=value).fit(PIXELS, DIGITS)
    loaded = kept(model, tmp_path)
    if isinstance(value, np.random.RandomState):
        assert loaded.random_state.randint(1 << 30) == value.randint(1 << 30)
    else:
        assert loaded.random_state == value


def test_class_weights_are_kept(tmp_path):
    weights = {0: 2.0, 1: 0.5}
    model = quick("AMMClassifier", class_weight=weights).fit(PIXELS, DIGITS)
    assert kept(model, tmp_path).class_weight == weights


@pytest.mark.parametrize("scaler", [MaxAbsScaler(), MinMaxScaler(), StandardScaler()])
def test_a_scaler_comes_along(scaler, tmp_path):
    model = make_pipeline(scaler, quick("AMMClassifier")).fit(PIXELS, DIGITS)
    loaded = kept(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))


def test_the_first_rows_of_a_stream_are_kept(tmp_path):
    model = pp.SoftPlanesClassifier(random_state=1).partial_fit(PIXELS[:100], DIGITS[:100])
    loaded = kept(model, tmp_path)
    for one in (model, loaded):
        one.partial_fit(PIXELS[100:], DIGITS[100:])
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))


def test_what_stands_beside_the_model_is_kept(tmp_path):
    layout = Layout([Source("age", "number", 3.5), Source("town", "category")], True, "label", 2)
    layout.categories.add(Pair("town", "value", "Ulm"))
    model = quick("AMMClassifier").fit(PIXELS, DIGITS)
    facts = {"data": ["a", "b"], "stream": True, "chunk_rows": 100}
    write_model(SavedModel(model, layout=layout, training=facts), tmp_path / "model")
    saved = read_model(tmp_path / "model")
    assert saved.layout.to_dict() == layout.to_dict()
    assert saved.layout.categories.is_frozen
    assert saved.training == facts
    assert saved.version == pp.__version__


def test_saving_twice_gives_the_same_file(tmp_path):
    model = quick("LaSVMClassifier").fit(PIXELS, DIGITS)
    pp.save(model, tmp_path / "one")
    pp.save(pp.load(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (pp.AMMClassifier(), "is not fitted"),
        (SVC(), "is not a polyplane classifier"),
        (make_pipeline(Normalizer(), pp.AMMClassifier()), "a pipeline can be saved if"),
        (
            pp.HullerClassifier(kernel=lambda a, b: a @ b.T).fit(PIXELS[:50], DIGITS[:50]),
            "kernel is <function .* which a model file cannot hold",
        ),
    ],
)
def test_what_cannot_be_saved_is_refused_in_a_sentence(model, words, tmp_path):
    with pytest.raises(pp.ModelError, match=words):
        pp.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# ---- files that were made by hand --------------------------------------------------------


def sound_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    for name in MACHINES:
        pp.save(quick(name).fit(PIXELS, DIGITS), folder / name)
    pp.save(pp.SoftPlanesClassifier().partial_fit(PIXELS[:99], DIGITS[:99]), folder / "stream")
    return Sound({path.name: read_file(path) for path in folder.iterdir()})


class Sound(dict):
    """Files by name, of which nobody wants to see all numbers."""

    def __repr__(self):
        return f"<{len(self)} files>"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return sound_files(tmp_path_factory)


def parts_of(values, path=()):
    """Where plain values stand in a tree."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from parts_of(value, (*path, key))
    elif isinstance(values, list):
        for place, value in enumerate(values):
            yield from parts_of(value, (*path, place))
    else:
        yield path


def changed(values, path, value):
    """A copy of the tree with another value."""
    copy = json.loads(json.dumps(values))
    spot = copy
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    return copy


HARMLESS = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, MemoryError)
WRONG = [-1, 0, 1, 2, 17, 2**31, 2**63, -(2**63), 2**200, 0.5, 1e300, True, None, "x", [], {}]
STRANGE = [-2, -1, 0, 1, 2, 3, 15, 16, 17, 63, 64, 300, 2**15, 2**31 - 1, -(2**31)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that are too large
@pytest.mark.parametrize("seed", range(8))
def test_no_file_makes_a_model_that_reaches_beyond_itself(sound, tmp_path, seed):
    """Whatever is changed: it is refused in a sentence, or it is a model that does no harm."""
    chance, n_refused = random.Random(seed), 0
    places = {name: list(parts_of(values)) for name, (values, _) in sound.items()}
    for _ in range(50):
        name = chance.choice(sorted(sound))
        values, arrays = sound[name]
        if chance.random() < 0.5:
            place, wrong = chance.choice(places[name]), chance.choice(WRONG)
            values = changed(values, place, wrong)
        else:
            which = chance.choice(sorted(arrays))
            arrays = {**arrays, which: _wrong_array(arrays[which].copy(), chance)}
        write_file(tmp_path / "model", values, arrays)
        try:
            model = pp.load(tmp_path / "model")
        except pp.ModelError as error:
            n_refused += "\n" not in str(error)
            continue
        n_refused -= 1
        with contextlib.suppress(*HARMLESS):
            model.predict(PIXELS)
            model.partial_fit(PIXELS[:20], DIGITS[:20])
            model.predict(PIXELS)
    assert n_refused > 0


def _wrong_array(array, chance):
    kind = chance.choice(["value", "shape", "dtype"])
    if kind == "shape":
        return array[: len(array) // 2] if array.ndim == 1 else array[:, : array.shape[1] // 2]
    if kind == "dtype" or not array.size:
        return array.astype(np.float64 if array.dtype == np.float32 else np.float32)
    wrong = STRANGE if array.dtype.kind == "i" else [np.nan, np.inf, -np.inf]
    array.reshape(-1)[chance.randrange(array.size)] = chance.choice(wrong)
    return array


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (["algorithm"], "pipeline", "no algorithm 'pipeline'"),
        (["algorithm"], "read", "no algorithm 'read'"),
        (["algorithm"], "os.system", "no algorithm"),
        (["algorithm"], "huller", "record is of another algorithm"),
        (["parameters", "alpha"], -1, "alpha must be"),
        (["parameters", "predict"], 1, "predict"),
        (["parameters", "__class__"], 1, "__class__"),
        (["columns"], 10**9, "planes have other features"),
        (["planes", "estimators"], 10**9, "planes are of other problems"),
        (["planes", "decomposition", "kind"], "ovo", "planes are of other problems"),
        (["planes", "empty_score"], 3.0, "neither 0 nor -inf"),
        (["labels", "values"], [3, 2, 1, 0], "not in order"),
        (["labels", "type"], "int8 ", "not a type of labels"),
        (["features", "constant"], "inf", "not a number"),
        (["scaler"], False, "not a record"),
        (["scaler"], [], "not a record"),
        (["scaler"], {}, "scaler.kind"),
        (["history"], None, "history is None"),
    ],
)
def test_a_forged_file_says_what_is_wrong(sound, place, value, words, tmp_path):
    values, arrays = sound["AMMClassifier"]
    write_file(tmp_path / "model", changed(values, ["prediction", *place], value), arrays)
    with pytest.raises(pp.ModelError, match=words):
        pp.load(tmp_path / "model")


PLANES, KERNEL = ["training", "planes"], ["training", "kernel"]
MODEL = [*PLANES, "models", 0]


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("AMMClassifier", [*MODEL, "estimator"], 10**9, "models are missing"),
        ("AMMClassifier", [*MODEL, "rule"], 3, "is not a rule"),
        ("AMMClassifier", [*MODEL, "rule"], {}, "a rule is of another algorithm"),
        ("AMMClassifier", [*MODEL, "alpha"], 0.0, "an alpha is out of its range"),
        ("AMMClassifier", [*MODEL, "steps"], 1, "a history does not rise"),
        ("AMMClassifier", [*MODEL, "generator", "state", "inc"], "x", "not a generator"),
        ("AMMClassifier", PLANES, None, "training.planes is None"),
        ("LaSVMClassifier", [*KERNEL, "models", 0, "rule", "n_reprocess"], 0.5, "rule is of anoth"),
        ("LaSVMClassifier", [*KERNEL, "offset"], 1e300, "offset is 1e\\+300, out of its range"),
        ("LaSVMClassifier", [*KERNEL, "seen"], -1, "seen is -1, which is not a whole number"),
        ("SAMMClassifier", ["prediction", "parameters", "mu"], "auto", "has not been found"),
        ("SoftPlanesClassifier", [*PLANES, "columns"], None, "columns are of another algorithm"),
        ("SoftPlanesClassifier", ["prediction", "features", "columns"], None, "planes have other"),
        ("Poly2Classifier", ["prediction", "features", "products", "gamma"], 0.0, "gamma is out"),
        ("Poly2Classifier", ["prediction", "features", "products"], None, "planes have other"),
        ("CPMClassifier", ["prediction", "parameters", "n_estimators"], 10**400, "beyond all"),
        ("CPMClassifier", [*MODEL, "tally"], None, "not counted as the algorithm counts them"),
    ],
)
def test_a_value_of_another_kind_is_refused(sound, name, place, value, words, tmp_path):
    values, arrays = sound[name]
    write_file(tmp_path / "model", changed(values, place, value), arrays)
    with pytest.raises(pp.ModelError, match=words):
        pp.load(tmp_path / "model")


def test_hats_that_begin_at_the_end_of_int32_are_refused(sound, tmp_path):
    name = "training.planes.columns.scales.first_hat"
    values, arrays = sound["SoftPlanesClassifier"]
    first = arrays[name].copy()
    n_hats = arrays[name.replace("first_hat", "n_hats")]
    column = tuple(np.argwhere(n_hats > 0)[0])
    first[column] = np.iinfo(first.dtype).max  # so that first + n_hats wraps below 0
    write_file(tmp_path / "model", values, {**arrays, name: first})
    with pytest.raises(pp.ModelError, match="hats end nowhere"):
        pp.load(tmp_path / "model")


def test_knots_that_end_nowhere_are_refused_before_memory_is_taken(sound, tmp_path):
    name = "prediction.features.columns.hats.knot_starts"
    values, arrays = sound["SoftPlanesClassifier"]
    starts = arrays[name].copy()
    starts[-1] = 10**7  # of which an index each would be 80 MB
    write_file(tmp_path / "model", values, {**arrays, name: starts})
    tracemalloc.start()
    try:
        with pytest.raises(pp.ModelError, match="knots begin nowhere"):
            pp.load(tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["PassiveAggressiveClassifier", "AROWClassifier"])
def test_a_class_without_its_plane_is_refused(sound, name, tmp_path):
    values, arrays = sound[name]
    owners = arrays["training.planes.models.0.planes.classes"].copy()
    owners[owners == 1] = 0
    forged = {**arrays, "training.planes.models.0.planes.classes": owners}
    write_file(tmp_path / "model", values, forged)
    with pytest.raises(pp.ModelError, match="a class has no plane"):
        pp.load(tmp_path / "model")


def test_a_layout_whose_pairs_name_unknown_sources_is_refused(tmp_path):
    table = pd.DataFrame({"town": ["Ulm", "Bonn", "Ulm"] * 20, "size": np.arange(60.0)})
    path = tmp_path / "model"
    pp.save(quick("AMMClassifier").fit(table, np.arange(60) % 3 == 1), path)
    values, arrays = read_file(path)
    values["prediction"]["table"]["pairs"][0][0] = "village"
    write_file(path, values, arrays)
    with pytest.raises(pp.ModelError, match="column 'village', which the table has not"):
        pp.load(path)


def test_a_missing_array_is_named(sound, tmp_path):
    values, arrays = sound["AMMClassifier"]
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        write_file(tmp_path / "model", values, rest)
        with pytest.raises(pp.ModelError, match=f"the array {name} is missing"):
            pp.load(tmp_path / "model")


@pytest.mark.parametrize("slot", [0.5, 1e9, -2, 250])
def test_totals_that_are_slots_name_a_slot_that_is_there(sound, slot, tmp_path):
    values, arrays = sound["LaSVMClassifier"]
    name = next(name for name in arrays if name.endswith("set.totals"))
    totals = arrays[name].copy()
    totals[0] = slot
    write_file(tmp_path / "model", values, {**arrays, name: totals})
    with pytest.raises(pp.ModelError, match="a slot that is named is not there"):
        pp.load(tmp_path / "model")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded by what Linux knows")
def test_no_value_of_a_file_breaks_what_is_done_with_a_model():
    """One in 307 of all changes of one value, or in 103 at night; `python -m` with 1 tries all."""
    root = Path(__file__).parents[3]
    step = "103" if IS_NIGHT else "307"
    call = [sys.executable, "-m", "tests.estimator.files.forged_files", step]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["AMMClassifier", "HullerClassifier", "SoftPlanesClassifier"])
def test_numbers_that_are_none_are_refused(sound, name, wrong, tmp_path):
    values, arrays = sound[name]
    for array_name, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            worse = array.copy()
            worse.reshape(-1)[-1] = wrong
            write_file(tmp_path / "model", values, {**arrays, array_name: worse})
            with pytest.raises(pp.ModelError, match="NaN or infinity"):
                pp.load(tmp_path / "model")
