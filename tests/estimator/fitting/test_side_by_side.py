"""Tasks in threads: all are done, those that are given to others too, and an error ends them."""

import threading
from functools import partial

import pytest

from polyplane.estimator.fitting.side_by_side import Hands, for_each, share_out

PATIENCE = 30.0  # seconds, so that what hangs fails


def silent(n_rows, n_planes, error):
    """No bar."""


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_everything_is_done_once(n_threads):
    done = []
    for_each(lambda k, report: done.append(k), 7, n_threads, silent)
    assert sorted(done) == list(range(7))


def test_a_thread_that_waits_is_given_a_part():
    done, is_given = {}, threading.Event()

    def part(report, hands):
        done["part"] = threading.get_ident()
        is_given.set()

    def whole(report, hands):
        done["whole"] = threading.get_ident()
        while not hands.are_idle:
            pass
        hands.give(part)
        assert is_given.wait(PATIENCE)

    share_out([whole], 2, silent)
    assert done["part"] != done["whole"]


def test_parts_of_parts_are_done_before_the_work_is_over():
    done = []

    def task(depth, report, hands):
        done.append(depth)
        if depth < 6:
            hands.give(partial(task, depth + 1))
            hands.give(partial(task, depth + 1))

    share_out([partial(task, 0)], 3, silent)
    assert len(done) == 2**7 - 1


def test_alone_nobody_waits():
    seen = []
    share_out([lambda report, hands: seen.append((hands.are_idle, hands.are_several))], 1, silent)
    assert seen == [(False, False)]
    assert not Hands().are_idle


def test_an_error_ends_the_others_at_their_next_report():
    n_reports, has_begun = [], threading.Event()

    def fails(report, hands):
        assert has_begun.wait(PATIENCE)
        raise ValueError("no")

    def reports(report, hands):
        has_begun.set()
        while True:
            n_reports.append(1)
            report(1, 1, 0.0)

    with pytest.raises(ValueError, match="no"):
        share_out([reports, fails], 2, silent)
    assert n_reports


def test_an_error_wakes_threads_that_wait():
    def fails(report, hands):
        while not hands.are_idle:
            pass
        raise KeyError("gone")

    with pytest.raises(KeyError):
        share_out([fails], 3, silent)


def test_ctrl_c_in_the_caller_ends_the_threads(monkeypatch):
    threads, original = [], threading.Thread.join

    def interrupted(thread, timeout=None):
        monkeypatch.setattr(threading.Thread, "join", original)
        threads.append(thread)
        raise KeyboardInterrupt

    def reports(report, hands):
        while True:
            report(1, 1, 0.0)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        share_out([reports, reports], 2, silent)
    assert not any(thread.is_alive() for thread in threads)
