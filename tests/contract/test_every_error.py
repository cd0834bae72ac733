"""What began anew is undone by an error and kept by Ctrl-C; what goes on is kept."""

import contextlib

import numpy as np
import pytest
from sklearn.base import clone

from polyplane.training.work.progress import heard_by

CLASSES = [0, 1, 2]


class Broken(Exception):
    """An error in the middle of the work."""


@contextlib.contextmanager
def raising(error, n_reports=0):
    """Raise an error where rows have been learned, at a report; searches are left alone."""
    left = [n_reports]

    @contextlib.contextmanager
    def listen(work):
        def report(n_rows, size, share):
            left[0] -= not work.is_search
            if left[0] < 0:
                raise error

        yield report

    with heard_by(listen):
        yield


def test_an_error_undoes_a_fit_that_began_anew(machine, X, y):
    with pytest.raises(Broken), raising(Broken):
        machine.fit(X, y)
    assert not hasattr(machine, "classes_")
    before = machine.fit(X, y).decision_function(X)
    n_steps = machine.n_steps_
    with pytest.raises(Broken), raising(Broken):
        machine.fit(X[::-1], y)
    np.testing.assert_array_equal(machine.decision_function(X), before)
    assert machine.n_steps_ == n_steps


def test_ctrl_c_keeps_what_a_new_fit_has_learned(machine, X, y):
    if not hasattr(machine, "shuffle") or hasattr(machine, "recipes"):
        pytest.skip("a blend predicts once a recipe is done")
    with pytest.raises(KeyboardInterrupt), raising(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.n_steps_ > 0
    assert np.isfinite(machine.decision_function(X)).all()


def test_an_error_leaves_a_training_that_goes_on_where_it_was(streaming_machine, X, y):
    streaming_machine.partial_fit(X[:16], y[:16], classes=CLASSES)
    n_steps = streaming_machine.n_steps_
    with pytest.raises(Broken), raising(Broken):
        streaming_machine.partial_fit(X[16:], y[16:])
    if streaming_machine.n_steps_ > n_steps:  # else the rows were kept to start from
        assert np.isfinite(streaming_machine.decision_function(X)).all()
    streaming_machine.partial_fit(X[16:], y[16:])
    assert streaming_machine.n_steps_ > n_steps


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt])
def test_classes_that_are_refused_half_way_leave_nothing(
    streaming_machine, X, y, error, monkeypatch
):
    """As where models of new classes do not fit into memory."""
    first = y < 2
    model = streaming_machine.partial_fit(X[first], y[first], classes=[0, 1])
    twin = clone(model).partial_fit(X[first], y[first], classes=[0, 1])

    def refuse(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("polyplane.training.planes.models.check_memory", refuse)
        patch.setattr("polyplane.training.kernels.family.check_memory", refuse)
        with pytest.raises(error):
            model.partial_fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
    model.partial_fit(X, y)
    twin.partial_fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
