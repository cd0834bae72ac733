"""One estimator in several threads: readers see the state before or after, writers wait."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from tests.contract.sameness import with_given_gamma
from tests.definition import visits

CLASSES = [0, 1, 2]
CHUNKS = np.split(np.arange(48), 4)
LONGEST = 60  # seconds that anybody may wait


def in_threads(*works):
    """Call all at once; whatever goes wrong in one of them is raised here."""
    barrier = threading.Barrier(len(works))

    def started(work):
        barrier.wait(LONGEST)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [task.result(LONGEST) for task in [pool.submit(started, work) for work in works]]


@pytest.mark.parametrize("has_predicted", [True, False], ids=["known", "new"])
def test_readers_see_the_state_before_or_after_a_chunk(streaming, X, y, has_predicted):
    machine = with_given_gamma(streaming)
    twin, states = clone(machine), []
    for chunk in CHUNKS:
        twin.partial_fit(X[chunk], y[chunk], classes=CLASSES)
        states.append(twin.decision_function(X))
    machine.partial_fit(X[CHUNKS[0]], y[CHUNKS[0]], classes=CLASSES)
    is_over, seen = threading.Event(), []

    def read():
        while not is_over.is_set():
            seen.append(machine.decision_function(X))

    def write():
        try:
            for chunk in CHUNKS[1:]:
                if has_predicted:
                    machine.predict(X[:1])
                machine.partial_fit(X[chunk], y[chunk])
        finally:
            is_over.set()

    in_threads(read, read, write)
    seen.append(machine.decision_function(X))
    places = [place_among(scores, states) for scores in seen]
    assert None not in places
    assert places[-1] == len(CHUNKS) - 1


def place_among(scores, states):
    """The state that these scores are of, or None."""
    for place, expected in enumerate(states):
        if np.array_equal(scores, expected):
            return place
    return None


def test_a_reader_does_not_starve_beside_a_busy_writer(streaming, X, y):
    machine = with_given_gamma(streaming).partial_fit(X, y, classes=CLASSES)
    has_begun, has_read = threading.Event(), threading.Event()

    def read():
        assert has_begun.wait(LONGEST)
        machine.predict(X)
        has_read.set()

    def write():
        for _ in range(1000):
            machine.partial_fit(X, y)
            has_begun.set()
            if has_read.is_set():
                return
        raise AssertionError("a reader waited for a thousand steps")

    in_threads(read, write)


def test_writers_wait_for_each_other(streaming_machine, X, y):
    machine = with_given_gamma(streaming_machine)
    machine.partial_fit(X, y, classes=CLASSES)
    n_steps = machine.n_steps_

    def write():
        for chunk in CHUNKS:
            machine.partial_fit(X[chunk], y[chunk])
            machine.predict(X[:3])

    in_threads(write, write, write, write)
    assert machine.n_steps_ == n_steps + 4 * visits(machine, y)
    machine.partial_fit(X, y)
    assert np.isfinite(machine.decision_function(X)).all()


def test_a_reader_waits_for_the_first_fit(streaming_machine, X, y):
    """Nobody sees half a model: there is none before."""
    expected = clone(streaming_machine).fit(X, y).decision_function(X)
    is_training = threading.Event()
    read_training = streaming_machine._read_training

    def noted(*arguments):
        is_training.set()
        return read_training(*arguments)

    streaming_machine._read_training = noted

    def read():
        assert is_training.wait(LONGEST)
        return streaming_machine.decision_function(X)

    _, found = in_threads(lambda: streaming_machine.fit(X, y), read)
    np.testing.assert_array_equal(found, expected)
