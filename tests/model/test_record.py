"""A finished model: threads share the rows out and nothing else."""

import threading

import numpy as np
import pytest

from polyplane.engine.order import in_place
from polyplane.engine.rows import dense_rows
from polyplane.model.record import PlaneRecord

N_ROWS = 40


@pytest.fixture
def record(monkeypatch):
    monkeypatch.setattr("polyplane.model.record.ROWS_WORTH_A_THREAD", 4)
    sums = np.arange(48, dtype=np.float32).reshape(3, 16)
    return PlaneRecord(sums, np.array([0, 0, 1], np.int32), 0.5, 2)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 100])
def test_every_row_is_scored_once_whatever_the_number_of_threads(record, n_jobs):
    def count(rows, order, scorer, out):
        out += 1 + order

    order = in_place(N_ROWS)[::-1].copy()
    rows, out = dense_rows(np.ones((N_ROWS, 2), np.float32), 1), np.zeros(N_ROWS, np.int64)
    record._scored(count, rows, order, out, n_jobs)
    np.testing.assert_array_equal(out, 1 + order)


def test_each_thread_has_scratch_of_its_own(record):
    meeting, scratch = threading.Barrier(2), {}

    def meet(rows, order, scorer, out):
        meeting.wait(timeout=60)  # both threads are at work
        scratch.setdefault(threading.get_ident(), (rows.page_value, scorer.scores))

    rows = dense_rows(np.ones((N_ROWS, 2), np.float32), 1)
    record._scored(meet, rows, in_place(N_ROWS), np.empty(N_ROWS), 2)
    (page, scores), (other_page, other_scores) = scratch.values()
    assert not np.shares_memory(page, other_page)
    assert not np.shares_memory(scores, other_scores)


def test_planes_and_intercepts_are_scaled_sums(record):
    np.testing.assert_array_equal(record.planes(), [[8, 16], [8.5, 16.5], [9, 17]])
    np.testing.assert_array_equal(record.intercepts(), [0, 0.5, 1])


def test_without_planes_the_lowest_class_wins():
    record = PlaneRecord(np.zeros((3, 16), np.float32), np.empty(0, np.int32), 0.5, 2)
    rows = dense_rows(np.ones((5, 2), np.float32), 1)
    assert record.classes_of(rows, in_place(5)).tolist() == [0] * 5
    assert record.plane_scores(rows, in_place(5)).shape == (5, 0)
