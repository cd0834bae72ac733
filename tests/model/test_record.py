"""A finished classifier: planes of all its models side by side, scored in shares and chunks."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane.engine.order import in_place
from polyplane.engine.planes import NO_PLANE
from polyplane.engine.rows import dense_rows
from polyplane.model.decomposition import Decomposition
from polyplane.model.record import FinishedPlanes, record_of

N_ROWS, N_COLUMNS = 40, 2
NO_SCORE = -np.inf


def decomposed(kind, ranks, combine="margin"):
    return Decomposition(kind, combine, np.array(ranks, np.int32))


def finished(sums, owner, scale=1.0):
    """Planes of a model; `sums` is [plane, feature] here."""
    owner = np.array(owner, np.int32)
    sums = np.array(sums, np.float32).reshape(owner.size, N_COLUMNS + 1).T
    return FinishedPlanes(sums, owner, np.full(owner.size, scale, np.float32))


@pytest.fixture
def record():
    """Three planes of two classes: 0 8 16, 0.5 8.5 16.5 and 1 9 17, the constant first."""
    planes = finished([[0, 16, 32], [2, 18, 34], [1, 17, 33]], [0, 1, 0], 0.5)
    return record_of([[planes]], decomposed("joint", [0, 1]), NO_SCORE)


# ---- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 100])
def test_every_row_is_scored_once_whatever_the_number_of_threads(record, n_jobs, monkeypatch):
    monkeypatch.setattr("polyplane.model.record.ROWS_WORTH_A_THREAD", 4)

    def count(rows, order, out):
        out += 1 + order

    order = in_place(N_ROWS)[::-1].copy()
    rows, out = dense_rows(np.ones((N_ROWS, 2), np.float32), 1), np.zeros(N_ROWS, np.int64)
    record._shared_out(count, rows, order, out, n_jobs)
    np.testing.assert_array_equal(out, 1 + order)


def test_each_thread_has_scratch_of_its_own(record, monkeypatch):
    monkeypatch.setattr("polyplane.model.record.ROWS_WORTH_A_THREAD", 4)
    meeting, scratch = threading.Barrier(2), {}

    def meet(rows, order, scorer, out):
        meeting.wait(timeout=60)  # both threads are at work
        scratch.setdefault(threading.get_ident(), (rows.page_value, scorer.scores))

    monkeypatch.setattr("polyplane.model.record.plane_scores", meet)
    rows = dense_rows(np.ones((N_ROWS, 2), np.float32), 1)
    record.plane_scores(rows, in_place(N_ROWS), n_jobs=2)
    (page, scores), (other_page, other_scores) = scratch.values()
    assert not np.shares_memory(page, other_page)
    assert not np.shares_memory(scores, other_scores)


# ---- one model -------------------------------------------------------------------------------


def test_planes_and_intercepts_are_scaled_sums_by_class_and_age(record):
    np.testing.assert_array_equal(record.planes(), [[8, 16], [8.5, 16.5], [9, 17]])
    np.testing.assert_array_equal(record.intercepts(), [0, 0.5, 1])
    assert record.plane_class.tolist() == [0, 0, 1]


def test_without_planes_the_lowest_class_wins():
    for kind in ("joint", "ovr", "ovo"):
        decomposition = decomposed(kind, [0, 1, 2])
        models = [finished([], []) for _ in decomposition.problems()]
        record = record_of([models], decomposition, NO_SCORE)
        rows = dense_rows(np.ones((5, 2), np.float32), 1)
        assert record.classes_of(rows, in_place(5)).tolist() == [0] * 5
        assert record.deciding_planes(rows, in_place(5)).tolist() == [NO_PLANE] * 5
        assert record.plane_scores(rows, in_place(5)).shape == (5, 0)


# ---- several models --------------------------------------------------------------------------

CLASSIFIERS = [
    ("joint", "margin", 1),
    ("joint", "margin", 2),
    ("ovr", "margin", 2),
    ("ovo", "margin", 1),
    ("ovo", "vote", 2),
]


@st.composite
def classifiers(draw, kind, combine, n_estimators, n_classes=3):
    """Models of planes of small whole numbers, every class having one at least."""
    decomposition = decomposed(kind, draw(st.permutations(range(n_classes))), combine)
    n_codes = n_classes if kind == "joint" else 2
    models = []
    for _ in range(n_estimators):
        models.append([])
        for _ in decomposition.problems():
            more = draw(st.lists(st.integers(0, n_codes - 1), max_size=3))
            owner = draw(st.permutations([*range(n_codes), *more]))
            cells = st.lists(st.integers(-2, 2), min_size=3 * len(owner), max_size=3 * len(owner))
            models[-1].append(finished(draw(cells), owner, draw(st.sampled_from([0.5, 1.0, 2.0]))))
    rows = st.lists(st.integers(-2, 2), min_size=N_COLUMNS, max_size=N_COLUMNS)
    X = np.array(draw(st.lists(rows, min_size=1, max_size=5)), np.float32)
    return decomposition, models, X


def mean_sides(models, place, x):
    """Best score of each side of a problem on one row, the mean over estimators."""
    features = np.array([1, *x], np.float32)
    by_estimator = []
    for problems in models:
        sums, owner, scales = problems[place]
        scores = scales * (features @ sums)
        by_estimator.append([scores[owner == code].max() for code in np.unique(owner)])
    return np.mean(by_estimator, axis=0)


def expected_scores(decomposition, models, x):
    problems = decomposition.problems()
    of_groups = np.concatenate([mean_sides(models, p, x) for p in range(len(problems))])
    if decomposition.kind == "joint":  # codes are classes as they were met
        return of_groups[np.argsort(decomposition.ranks)]
    return decomposition.class_scores(of_groups[None].astype(np.float32))[0]


@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_class_scores_are_made_of_the_best_planes_of_each_model(kind, combine, n_estimators, data):
    decomposition, models, X = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE)
    rows, order = dense_rows(X, 1), in_place(len(X))
    found = record.class_scores(rows, order)
    expected = [expected_scores(decomposition, models, x) for x in X]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(record.classes_of(rows, order), np.argmax(expected, axis=1))


@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_the_deciding_plane_is_the_first_best_that_speaks_for_the_winner(
    kind, combine, n_estimators, data
):
    decomposition, models, X = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE)
    rows, order = dense_rows(X, 1), in_place(len(X))
    by_plane, winners = record.plane_scores(rows, order), record.classes_of(rows, order)
    for scores, winner, plane in zip(
        by_plane, winners, record.deciding_planes(rows, order), strict=True
    ):
        speak = [
            j
            for j in range(record.n_planes)
            if record.plane_class[j] == winner and record.plane_sign[j] == 1
        ]
        assert plane == max(speak, key=lambda j: (scores[j], -j))


@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=10)
def test_planes_stand_by_estimator_problem_class_and_age(kind, combine, n_estimators, data):
    decomposition, models, _ = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE)
    rank = decomposition.ranks if kind == "joint" else np.arange(2)
    expected = []
    for problems in models:
        for sums, owner, scales in problems:
            by_class = sorted(range(owner.size), key=lambda j: (rank[owner[j]], j))
            expected.extend((sums[:, j] * scales[j]).tolist() for j in by_class)
    found = np.column_stack([record.intercepts(), record.planes()])
    assert found.tolist() == expected
    assert (np.diff(record.group) >= 0).all()


@pytest.mark.parametrize("numbers_at_once", [1, 7, 50])
@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
def test_how_many_scores_are_held_at_once_changes_nothing(
    kind, combine, n_estimators, numbers_at_once, monkeypatch
):
    generator = np.random.default_rng(0)
    decomposition = decomposed(kind, [1, 3, 0, 2], combine)
    n_codes = 4 if kind == "joint" else 2
    models = [
        [
            finished(generator.normal(size=(3 * n_codes, 3)), np.tile(np.arange(n_codes), 3))
            for _ in decomposition.problems()
        ]
        for _ in range(n_estimators)
    ]
    record = record_of(models, decomposition, NO_SCORE)
    rows, order = dense_rows(generator.normal(size=(N_ROWS, 2)), 1), in_place(N_ROWS)[::-1].copy()

    def results():
        return (
            record.class_scores(rows, order),
            record.classes_of(rows, order),
            record.deciding_planes(rows, order),
        )

    whole = results()
    monkeypatch.setattr("polyplane.model.record.NUMBERS_AT_ONCE", numbers_at_once)
    for found, expected in zip(results(), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_side_without_planes_may_have_a_score_of_its_own():
    """A polytope around class 0: its planes speak for class 1, who wins where they are above 0."""
    planes = finished([[-1, 1, 0], [-1, -1, 0]], [1, 1])
    record = record_of([[planes]], decomposed("joint", [0, 1]), 0.0)
    rows = dense_rows(np.array([[0, 0], [3, 0], [-2, 0], [1, 0]], np.float32), 1)
    assert record.class_scores(rows, in_place(4)).tolist() == [[0, -1], [0, 2], [0, 1], [0, 0]]
    assert record.classes_of(rows, in_place(4)).tolist() == [0, 1, 1, 0]
    assert record.deciding_planes(rows, in_place(4)).tolist() == [NO_PLANE, 0, 1, NO_PLANE]


def test_a_side_without_planes_loses_its_problem():
    """In pairs 0-1 and 0-2 class 0 has no planes."""
    decomposition = decomposed("ovo", [0, 1, 2])
    models = [
        finished([[-50, 0, 0]], [1]),
        finished([[-60, 0, 0]], [1]),
        finished([[1, 0, 0], [1.5, 0, 0]], [0, 1]),
    ]
    record = record_of([models], decomposition, NO_SCORE)
    rows = dense_rows(np.zeros((1, 2), np.float32), 1)
    assert record.class_scores(rows, in_place(1)).tolist() == [[-2, 0.5, 1.5]]
