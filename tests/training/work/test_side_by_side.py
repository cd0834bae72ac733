"""Work in threads: all of it is done, and an error or Ctrl-C ends it."""

import threading

import pytest

from polyplane.training.work import side_by_side
from polyplane.training.work.side_by_side import for_each

PATIENCE = 30.0  # seconds, so that what hangs fails


def silent(n_rows, n_planes, error):
    """No bar."""


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_everything_is_done_once(n_threads):
    done = []
    for_each(lambda k, report: done.append(k), 7, n_threads, silent)
    assert sorted(done) == list(range(7))


def test_two_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=PATIENCE)
    for_each(lambda k, report: meeting.wait(), 2, 2, silent)


def test_reports_of_threads_are_heard():
    heard = []
    for_each(lambda k, report: report(k, 1, 0.5), 3, 2, lambda *given: heard.append(given))
    assert sorted(heard) == [(0, 1, 0.5), (1, 1, 0.5), (2, 1, 0.5)]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_others_at_their_next_report(error):
    n_begun, has_begun = [], threading.Event()

    def work(k, report):
        n_begun.append(k)
        if k == 1:
            assert has_begun.wait(PATIENCE)
            raise error("no")
        has_begun.set()
        while True:
            report(1, 1, 0.0)

    with pytest.raises(error, match="no"):
        for_each(work, 9, 2, silent)
    assert len(n_begun) <= 3  # what has not begun does not begin any more


def test_an_error_of_a_report_is_raised_in_the_caller():
    def refuse(n_rows, n_planes, error):
        raise KeyboardInterrupt("enough")

    with pytest.raises(KeyboardInterrupt, match="enough"):
        for_each(lambda k, report: report(1, 1, 0.0), 4, 2, refuse)


def test_ctrl_c_in_the_caller_ends_the_threads(monkeypatch):
    threads = []

    def interrupted(futures, return_when):
        raise KeyboardInterrupt

    def work(k, report):
        threads.append(threading.current_thread())
        while True:
            report(1, 1, 0.0)

    monkeypatch.setattr(side_by_side, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        for_each(work, 2, 2, silent)
    assert not any(thread.is_alive() for thread in threads)
