"""A fit that is interrupted, kept in a file and resumed gives the model of a fit that was not."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import polyplane as pp
from polyplane.training.work.interruption import interrupts_wait
from polyplane.training.work.progress import heard_by

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
PIXELS, DIGITS = load_digits(return_X_y=True)
PIXELS, DIGITS = PIXELS[:600], DIGITS[:600]


class Pause(KeyboardInterrupt):
    """What a listener raises where everything is in order."""


@contextlib.contextmanager
def paused_after(n_reports):
    """Interrupt the training inside at a report; searches are left alone."""
    left = [n_reports]

    @contextlib.contextmanager
    def listen(work):
        def report(n_rows, size, error):
            left[0] -= not work.is_search
            if left[0] < 0:
                raise Pause

        yield report

    with heard_by(listen):
        yield


def assert_same(one, other):
    np.testing.assert_array_equal(one.decision_function(PIXELS), other.decision_function(PIXELS))
    assert one.n_steps_ == other.n_steps_
    assert one.n_iter_ == other.n_iter_
    if hasattr(one, "history_"):
        np.testing.assert_array_equal(one.history_, other.history_)


MACHINES = {
    "amm": pp.AMMClassifier(max_iter=3),
    "amm in batch": pp.AMMClassifier(max_iter=4, mode="batch"),
    "amm, one against the rest, two threads": pp.AMMClassifier(
        max_iter=2, multi_class="ovr", n_jobs=2
    ),
    "amm, stopped early": pp.AMMClassifier(max_iter=8, early_stopping=True, n_iter_no_change=2),
    "amm in the order given": pp.AMMClassifier(max_iter=3, shuffle=False, prune_interval=77),
    "gamm": pp.GAMMClassifier(max_iter=3),
    "samm": pp.SAMMClassifier(max_iter=3),
    "mm": pp.MMClassifier(max_iter=3, n_estimators=2),
    "cpm": pp.CPMClassifier(max_iter=3, n_planes=4),
    "cpm by steps": pp.CPMClassifier(max_steps=300, n_planes=4, multi_class="ovr"),
    "poly2": pp.Poly2Classifier(max_iter=2),
    "polyplane": pp.SoftPlanesClassifier(n_planes=3, columns="rank", max_iter=4),
    "huller": pp.HullerClassifier(max_iter=2),
    "lasvm": pp.LaSVMClassifier(max_iter=2, multi_class="ovr"),
    "lasvm on a budget": pp.LaSVMClassifier(max_iter=2, budget=20, cache_mb=1),
    "kernel pegasos": pp.KernelPegasosClassifier(max_iter=2),
    "kernel perceptron": pp.KernelPerceptronClassifier(max_iter=2),
}


def machine_called(name):
    model = MACHINES[name]
    return type(model)(**(model.get_params() | {"random_state": 5}))


@pytest.mark.parametrize("name", MACHINES)
def test_an_interrupted_fit_goes_on_to_the_same_model(name, tmp_path):
    whole = machine_called(name).fit(PIXELS, DIGITS)
    model, n_pauses = machine_called(name), 0
    with contextlib.suppress(Pause), paused_after(2):
        model.fit(PIXELS, DIGITS)
        pytest.fail("nothing was interrupted")
    while True:
        n_pauses += 1
        pp.save(model, tmp_path / "model")
        model = pp.load(tmp_path / "model")
        assert model.predict(PIXELS).shape == DIGITS.shape
        try:
            with paused_after(n_pauses**2):
                model.resume(PIXELS, DIGITS)
        except Pause:
            continue
        break
    assert n_pauses > 1 or name == "cpm by steps"
    assert_same(model, whole)
    with pytest.raises(ValueError, match="no interrupted fit"):
        model.resume(PIXELS, DIGITS)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("name", ["amm", "huller", "kernel pegasos", "polyplane"])
def test_an_interrupted_stream_goes_on_to_the_same_model(name, shuffle, tmp_path):
    rows = tmp_path / "rows.npz"
    np.savez(rows, X=PIXELS.astype(np.float32), y=DIGITS)

    def stream():
        return pp.stream(rows, chunk_rows=100)

    whole = machine_called(name).set_params(shuffle=shuffle).fit(stream())
    model, n_pauses = machine_called(name).set_params(shuffle=shuffle), 0
    with contextlib.suppress(Pause), paused_after(1):
        model.fit(stream())
    for n_chunks in (0, 3, 4, 100):
        pp.save(model, tmp_path / "model")
        model = pp.load(tmp_path / "model")
        with contextlib.suppress(Pause), paused_after(n_chunks):
            n_pauses += 1
            model.resume(stream())
    assert_same(model, whole)
    with pytest.raises(ValueError, match="no interrupted fit"):
        model.resume(stream())


@pytest.mark.parametrize("name", ["amm", "huller"])
def test_other_rows_are_refused(name):
    model = machine_called(name)
    with contextlib.suppress(Pause), paused_after(1):
        model.fit(PIXELS, DIGITS)
    before = model.decision_function(PIXELS)
    with pytest.raises(ValueError, match="began with 600 rows, and X has 599"):
        model.resume(PIXELS[1:], DIGITS[1:])
    with pytest.raises(ValueError, match="labels are not those"):
        model.resume(PIXELS, DIGITS[::-1])
    np.testing.assert_array_equal(model.decision_function(PIXELS), before)
    assert_same(model.resume(PIXELS, DIGITS), machine_called(name).fit(PIXELS, DIGITS))


def test_a_shorter_stream_is_refused(tmp_path):
    for name, n in (("long", 600), ("short", 200)):
        np.savez(tmp_path / f"{name}.npz", X=PIXELS[:n].astype(np.float32), y=DIGITS[:n])
    model = machine_called("amm")
    with contextlib.suppress(Pause), paused_after(3):
        model.fit(pp.stream(tmp_path / "long.npz", chunk_rows=100))
    with pytest.raises(ValueError, match="ends before the place where training was interrupted"):
        model.resume(pp.stream(tmp_path / "short.npz", chunk_rows=100))
    model.resume(pp.stream(tmp_path / "long.npz", chunk_rows=100))
    assert model.n_iter_ == 3


@pytest.mark.parametrize("go_on", ["fit", "partial_fit"])
@pytest.mark.parametrize("name", ["amm", "huller"])
def test_training_of_another_kind_ends_the_interrupted_fit(name, go_on):
    model = machine_called(name).set_params(warm_start=True)
    with contextlib.suppress(Pause), paused_after(1):
        model.fit(PIXELS, DIGITS)
    getattr(model, go_on)(PIXELS, DIGITS)
    with pytest.raises(ValueError, match="no interrupted fit"):
        model.resume(PIXELS, DIGITS)


def test_there_must_be_a_fit():
    with pytest.raises(NotFittedError):
        pp.AMMClassifier().resume(PIXELS, DIGITS)
    with pytest.raises(NotFittedError):
        pp.HullerClassifier().resume(PIXELS, DIGITS)


def test_an_interrupted_search_leaves_nothing():
    model = pp.AMMClassifier(alpha="auto")

    @contextlib.contextmanager
    def listen(work):
        assert work.is_search

        def report(n_rows, size, error):
            raise Pause

        yield report

    with pytest.raises(Pause), heard_by(listen):
        model.fit(PIXELS, DIGITS)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("name", ["amm", "cpm", "lasvm"])
def test_ctrl_c_waits_for_a_place_to_go_on_from(name):
    whole = machine_called(name).fit(PIXELS, DIGITS)
    model = machine_called(name).set_params(max_iter=whole.max_iter)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while not hasattr(model, "classes_") or timer.is_alive():
            model.fit(PIXELS, DIGITS)
    except KeyboardInterrupt:
        pass
    timer.join()
    with contextlib.suppress(ValueError):  # it may have come just before or after a fit
        model.resume(PIXELS, DIGITS)
    assert_same(model, whole)


def test_ctrl_c_is_heard_where_it_is_let_through():
    after = []

    def press():
        with interrupts_wait() as let_through:
            let_through()
            signal.raise_signal(signal.SIGINT)
            after.append("pressed")
            let_through()
            after.append("let through")

    with pytest.raises(KeyboardInterrupt):
        press()
    assert after == ["pressed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_only_the_second_ctrl_c_is_heard_at_once():
    after = []

    def press(n_times):
        with interrupts_wait(), interrupts_wait():
            for _ in range(n_times):
                signal.raise_signal(signal.SIGINT)
            after.append(n_times)

    for n_times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            press(n_times)
    assert after == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
