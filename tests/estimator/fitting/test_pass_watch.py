"""Looking at a fit after each pass tells what it has reached, and changes nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import hinge_loss as sklearn_hinge_loss
from sklearn.metrics import log_loss

import polyplane as pp
from polyplane.estimator.fitting.pass_watch import PassRecord, hinge_loss
from tests.estimator.fitting.test_resuming import MACHINES, machine_called

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
PIXELS, DIGITS = load_digits(return_X_y=True)
X, Y = PIXELS[:300], DIGITS[:300]
X_LATER, Y_LATER = PIXELS[300:400], DIGITS[300:400]
SETS = [(X, Y), (X_LATER, Y_LATER)]
SMALL = {"amm": pp.AMMClassifier(max_iter=4), "huller": pp.HullerClassifier(max_iter=3),
         "polyplane": pp.SoftPlanesClassifier(n_planes=2, max_iter=4)}  # fmt: skip


@pytest.fixture(params=SMALL)
def machine(request):
    model = SMALL[request.param]
    return type(model)(**(model.get_params() | {"random_state": 5}))


def assert_same(one, other):
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert (one.n_steps_, one.n_iter_) == (other.n_steps_, other.n_iter_)
    if hasattr(one, "history_"):
        np.testing.assert_array_equal(one.history_, other.history_)


@pytest.mark.parametrize("name", [name for name in MACHINES if "stopped early" not in name])
def test_looking_changes_no_bit(name):
    plain = machine_called(name).fit(X, Y)
    records = []
    watched = machine_called(name).fit(X, Y, eval_set=SETS, callbacks=[records.append])
    assert_same(plain, watched)
    assert plain.evals_result_ == {}
    (loss,) = watched.evals_result_["valid_0"].keys() - {"error"}
    assert loss == ("log_loss" if hasattr(watched, "predict_proba") else "hinge")
    for results in watched.evals_result_.values():
        assert len(results[loss]) == len(results["error"]) == watched.n_iter_ == len(records)


def test_results_are_those_of_the_model_after_each_pass(machine):
    """A shorter fit is not the same as a part of a longer one, so the model is asked on its way."""
    found = []

    def ask(record):
        chances = machine.predict_proba(X_LATER) if hasattr(machine, "predict_proba") else None
        found.append((machine.decision_function(X_LATER), machine.predict(X_LATER), chances))

    machine.fit(X, Y, eval_set=(X_LATER, Y_LATER), callbacks=ask)
    results = machine.evals_result_
    assert list(results) == ["valid_0"]
    assert len(found) == machine.n_iter_
    for k, (scores, predicted, chances) in enumerate(found):
        assert results["valid_0"]["error"][k] == np.mean(predicted != Y_LATER)
        if chances is None:
            expected = sklearn_hinge_loss(Y_LATER, scores, labels=machine.classes_)
            assert results["valid_0"]["hinge"][k] == pytest.approx(expected, rel=1e-5)
        else:
            expected = -np.log(chances[np.arange(Y_LATER.size), Y_LATER]).mean()
            assert results["valid_0"]["log_loss"][k] == pytest.approx(expected)


def test_the_last_pass_is_the_model_unless_it_is_compressed():
    model = pp.SoftPlanesClassifier(n_planes=2, max_iter=3, compress=False, random_state=0)
    model.fit(X, Y, eval_set=(X_LATER, Y_LATER))
    expected = log_loss(Y_LATER, model.predict_proba(X_LATER), labels=model.classes_)
    assert model.evals_result_["valid_0"]["log_loss"][-1] == pytest.approx(expected)


def test_records_tell_of_each_set_and_cannot_be_changed(machine):
    records = []
    machine.fit(X, Y, eval_set=SETS, callbacks=[records.append, lambda record: None])
    assert [record.n_iter for record in records] == list(range(1, machine.n_iter_ + 1))
    assert all(isinstance(record, PassRecord) for record in records)
    for place, record in enumerate(records):
        for name, results in machine.evals_result_.items():
            loss = results.get("log_loss", results.get("hinge"))
            assert (record.losses[name], record.errors[name]) == (
                loss[place],
                results["error"][place],
            )
        with pytest.raises(TypeError):
            record.losses["valid_0"] = 0.0
    assert np.all(np.diff([record.seconds for record in records]) >= 0)
    machine.evals_result_["valid_0"]["error"].clear()
    assert len(machine.evals_result_["valid_0"]["error"]) == machine.n_iter_


def test_a_callback_ends_the_training(machine):
    machine.fit(X, Y, callbacks=lambda record: record.n_iter == 2)
    assert machine.n_iter_ == 2
    assert machine.evals_result_ == {}
    with pytest.raises(ValueError, match="no interrupted fit"):
        machine.resume(X, Y)
    assert machine.predict(X_LATER).size == Y_LATER.size


def test_every_callback_is_told_even_if_one_ends_it(machine):
    told = []
    machine.fit(X, Y, callbacks=[lambda record: True, lambda record: told.append(record.n_iter)])
    assert told == [1]


def test_an_interruption_in_between_can_be_resumed(machine):
    whole = pickle.loads(pickle.dumps(machine)).fit(X, Y, eval_set=SETS)

    def interrupt(record):
        if record.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, Y, eval_set=SETS, callbacks=interrupt)
    assert machine.n_iter_ == 2
    assert len(machine.evals_result_["valid_1"]["error"]) == 2
    pickle.loads(pickle.dumps(machine)).resume(X, Y)
    machine.resume(X, Y, eval_set=SETS)
    assert_same(machine, whole)
    assert machine.evals_result_ == whole.evals_result_


def test_a_model_file_keeps_the_results(machine, tmp_path):
    machine.fit(X, Y, eval_set=SETS)
    path = tmp_path / "watched.model"
    pp.save(machine, path)
    loaded = pp.load(path)
    assert machine.evals_result_
    assert loaded.evals_result_ == machine.evals_result_
    assert [*loaded.evals_result_["valid_0"]] == [*machine.evals_result_["valid_0"]]
    pp.save(machine, path, training=False)
    assert pp.load(path).evals_result_ == {}


def test_an_interruption_can_be_resumed_from_a_file(machine, tmp_path):
    whole = pickle.loads(pickle.dumps(machine)).fit(X, Y, eval_set=SETS)

    def interrupt(record):
        if record.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, Y, eval_set=SETS, callbacks=interrupt)
    pp.save(machine, tmp_path / "half.model")
    resumed = pp.load(tmp_path / "half.model").resume(X, Y, eval_set=SETS)
    assert resumed.evals_result_ == whole.evals_result_


def test_partial_fit_leaves_the_results_of_the_fit(machine):
    machine.fit(X, Y, eval_set=SETS)
    before = machine.evals_result_
    machine.partial_fit(X_LATER, Y_LATER)
    assert machine.evals_result_ == before
    machine.fit(X, Y)
    assert machine.evals_result_ == {}


# ---- early stopping ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pp.AMMClassifier, pp.SoftPlanesClassifier])
def test_early_stopping_goes_by_the_last_set(kind):
    settings = {"max_iter": 30, "early_stopping": True, "n_iter_no_change": 2, "random_state": 0}
    if kind is pp.SoftPlanesClassifier:
        settings |= {"n_planes": 2}
    by_sets = kind(**settings).fit(X, Y, eval_set=SETS)
    assert_same(by_sets, kind(**settings).fit(X, Y, eval_set=SETS[1:]))
    errors = by_sets.evals_result_["valid_1"]["error"]
    best = int(np.argmin(errors))
    assert len(errors) == min(30, best + 1 + 2)
    assert by_sets.n_iter_ == len(errors)


def test_without_early_stopping_all_passes_are_made():
    model = pp.AMMClassifier(max_iter=9, n_iter_no_change=1, random_state=0)
    assert model.fit(X, Y, eval_set=(X, Y)).n_iter_ == 9


# ---- what is given -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [(X_LATER, Y_LATER), [(X_LATER, Y_LATER)], ((X_LATER, Y_LATER),),
              [[X_LATER, Y_LATER]], (sp.csr_matrix(X_LATER), Y_LATER),
              (X_LATER.tolist(), Y_LATER.tolist())],
    ids=["pair", "list", "tuple", "lists", "sparse", "plain"],
)  # fmt: skip
def test_sets_are_given_in_any_usual_form(given):
    found = pp.PegasosClassifier(max_iter=2, random_state=0).fit(X, Y, eval_set=given)
    expected = np.mean(found.predict(X_LATER) != Y_LATER)
    assert found.evals_result_["valid_0"]["error"][-1] == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eval_set": (X_LATER, Y_LATER + 5)}, r"labels that y does not: \[10, 11, 12, 13, 14\]"),
        ({"eval_set": (X_LATER[:, :9], Y_LATER)}, "features"),
        ({"eval_set": (X_LATER, Y_LATER[:-1])}, "inconsistent"),
        ({"eval_set": [X_LATER, Y_LATER]}, "a pair"),
        ({"eval_set": (X_LATER, Y_LATER, Y_LATER)}, "a pair"),
    ],
)
def test_what_is_no_set_is_refused_before_training(given, message):
    model = pp.AMMClassifier(max_iter=1).fit(X, Y > 4)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, **given)
    assert model.classes_.tolist() == [False, True]


def test_callbacks_are_functions():
    with pytest.raises(TypeError, match="callbacks holds 3"):
        pp.AMMClassifier().fit(X, Y, callbacks=[3])


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, Y]), delimiter=",", fmt="%g")
    return pp.stream(path, chunk_rows=70)


@pytest.mark.parametrize("kind", [pp.AMMClassifier, pp.KernelPerceptronClassifier])
def test_streams_are_looked_at_after_each_pass(kind, stream):
    plain = kind(max_iter=3, random_state=0).fit(stream)
    records = []
    watched = kind(max_iter=3, random_state=0)
    watched.fit(stream, eval_set=(X_LATER, Y_LATER), callbacks=records.append)
    assert_same(plain, watched)
    assert [record.n_iter for record in records] == [1, 2, 3]
    errors = watched.evals_result_["valid_0"]["error"]
    assert errors[-1] == np.mean(watched.predict(X_LATER) != Y_LATER)
    with pytest.raises(ValueError, match="labels that y does not"):
        watched.fit(stream, eval_set=(X_LATER, Y_LATER + 1))
    assert_same(plain, watched)
    watched.fit(stream, callbacks=lambda record: record.n_iter == 2)
    assert watched.n_iter_ == 2


def test_a_stream_that_was_interrupted_goes_on_with_its_curves(stream):
    whole = pp.AMMClassifier(max_iter=3, random_state=0).fit(stream, eval_set=SETS)
    model = pp.AMMClassifier(max_iter=3, random_state=0)

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(stream, eval_set=SETS, callbacks=interrupt)
    model.resume(stream, eval_set=SETS)
    assert_same(whole, model)
    assert model.evals_result_ == whole.evals_result_


def test_curves_and_history_are_data_frames():
    model = pp.AMMClassifier(max_iter=3, random_state=0).fit(X, Y, eval_set=SETS)
    curves = pd.DataFrame(model.evals_result_["valid_1"])
    assert list(curves.columns) == ["hinge", "error"]
    assert len(curves) == 3
    history = pd.DataFrame(model.history_)
    assert list(history.columns) == list(model.history_.dtype.names)
    assert history["step"].tolist() == model.history_["step"].tolist()
    assert history["error"].dtype == np.float64


def test_a_class_that_cannot_win_has_an_endless_loss():
    scores = np.array([[-np.inf, 1.0, 0.0]])
    assert hinge_loss(scores, np.array([0])) == np.inf
    assert hinge_loss(scores, np.array([1])) == 0.0
    assert hinge_loss(np.array([[-np.inf, -np.inf]]), np.array([0])) == 1.0
