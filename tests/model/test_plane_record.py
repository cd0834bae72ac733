"""A finished classifier: planes of all its models side by side, scored in shares and chunks."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_softmax, logsumexp, softmax

from polyplane.engine.order import in_place
from polyplane.engine.planes.planes import NO_PLANE
from polyplane.engine.rows.storage import csr_rows, dense_rows
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import FinishedPlanes, record_of
from tests.examples import examples

pytestmark = pytest.mark.loops

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
    monkeypatch.setattr("polyplane.model.plane_record.ROWS_WORTH_A_THREAD", 4)

    def count(rows, order, out):
        out += 1 + order

    order = in_place(N_ROWS)[::-1].copy()
    rows, out = dense_rows(np.ones((N_ROWS, 2), np.float32), 1), np.zeros(N_ROWS, np.int64)
    record._shared_out(count, rows, order, out, n_jobs)
    np.testing.assert_array_equal(out, 1 + order)


def test_each_thread_has_scratch_of_its_own(record, monkeypatch):
    monkeypatch.setattr("polyplane.model.plane_record.ROWS_WORTH_A_THREAD", 4)
    meeting, scratch = threading.Barrier(2), {}

    def meet(rows, order, scorer, out):
        meeting.wait(timeout=60)  # both threads are at work
        scratch.setdefault(threading.get_ident(), (rows.page_value, scorer.scores))

    monkeypatch.setattr("polyplane.model.plane_record.plane_scores", meet)
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
SOFT_CLASSIFIERS = [*CLASSIFIERS, ("ovo", "soft", 1), ("ovo", "soft", 2), ("ovr", "margin", 1)]


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


def mean_sides(models, place, x, score_of=np.max):
    """Score of each side of a problem on one row, the mean over estimators."""
    features = np.array([1, *x], np.float32)
    by_estimator = []
    for problems in models:
        sums, owner, scales, _ = problems[place]
        scores = scales * (features @ sums)
        by_estimator.append([score_of(scores[owner == code]) for code in np.unique(owner)])
    return np.mean(by_estimator, axis=0)


def expected_scores(decomposition, models, x, score_of=np.max):
    problems = range(len(decomposition.problems()))
    of_groups = np.concatenate([mean_sides(models, p, x, score_of) for p in problems])
    if decomposition.kind == "joint":  # codes are classes as they were met
        return of_groups[np.argsort(decomposition.ranks)]
    return decomposition.class_scores(of_groups[None].astype(np.float32))[0]


@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(25))
def test_class_scores_are_made_of_the_best_planes_of_each_model(kind, combine, n_estimators, data):
    decomposition, models, X = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE)
    rows, order = dense_rows(X, 1), in_place(len(X))
    found = record.class_scores(rows, order)
    expected = [expected_scores(decomposition, models, x) for x in X]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(record.classes_of(rows, order), np.argmax(expected, axis=1))


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(25))
def test_the_deciding_plane_is_the_first_best_that_speaks_for_the_winner(
    kind, combine, n_estimators, is_soft, data
):
    decomposition, models, X = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE, is_soft)
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
@settings(deadline=None, max_examples=examples(10))
def test_planes_stand_by_estimator_problem_class_and_age(kind, combine, n_estimators, data):
    decomposition, models, _ = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE)
    rank = decomposition.ranks if kind == "joint" else np.arange(2)
    expected = []
    for problems in models:
        for sums, owner, scales, _ in problems:
            by_class = sorted(range(owner.size), key=lambda j: (rank[owner[j]], j))
            expected.extend((sums[:, j] * scales[j]).tolist() for j in by_class)
    found = np.column_stack([record.intercepts(), record.planes()])
    assert found.tolist() == expected
    assert (np.diff(record.group) >= 0).all()


def random_record(kind, combine, n_estimators, is_soft=False, per_code=3, size=1.0):
    """Four classes, so many planes of each code."""
    generator = np.random.default_rng(0)
    decomposition = decomposed(kind, [1, 3, 0, 2], combine)
    n_codes = 4 if kind == "joint" else 2
    shape = per_code * n_codes, N_COLUMNS + 1
    owner = np.tile(np.arange(n_codes), per_code)
    models = [
        [finished(size * generator.normal(size=shape), owner) for _ in decomposition.problems()]
        for _ in range(n_estimators)
    ]
    return record_of(models, decomposition, NO_SCORE, is_soft)


@pytest.mark.parametrize("numbers_at_once", [1, 7, 50])
@pytest.mark.parametrize(("kind", "combine", "n_estimators"), CLASSIFIERS)
def test_how_many_scores_are_held_at_once_changes_nothing(
    kind, combine, n_estimators, numbers_at_once, monkeypatch
):
    generator = np.random.default_rng(0)
    record = random_record(kind, combine, n_estimators)
    rows, order = dense_rows(generator.normal(size=(N_ROWS, 2)), 1), in_place(N_ROWS)[::-1].copy()

    def results():
        return (
            record.class_scores(rows, order),
            record.classes_of(rows, order),
            record.deciding_planes(rows, order),
        )

    whole = results()
    monkeypatch.setattr("polyplane.model.plane_record.NUMBERS_AT_ONCE", numbers_at_once)
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


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("kind", ["joint", "ovr"])
def test_a_class_without_planes_has_finite_scores(kind, is_soft):
    decomposition = decomposed(kind, [0, 1, 2])
    models = [finished([[-50, 0, 0]], [1]) for _ in decomposition.problems()]
    record = record_of([models], decomposition, NO_SCORE, is_soft)
    rows = dense_rows(np.zeros((1, 2), np.float32), 1)
    expected = [[-51, -50, -51]] if kind == "joint" else [[1, 1, 1]]
    assert record.class_scores(rows, in_place(1)).tolist() == expected


# ---- soft scores -----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "combine", "n_estimators"), SOFT_CLASSIFIERS)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(25))
def test_soft_class_scores_are_made_of_all_planes_of_each_model(kind, combine, n_estimators, data):
    """To rounding of float32; votes may change with it, where a lead is nearly zero."""
    decomposition, models, X = data.draw(classifiers(kind, combine, n_estimators))
    record = record_of(models, decomposition, NO_SCORE, is_soft=True)
    rows, order = dense_rows(X, 1), in_place(len(X))
    found = record.class_scores(rows, order)
    np.testing.assert_array_equal(record.classes_of(rows, order), found.argmax(axis=1))
    if combine != "vote":
        expected = [expected_scores(decomposition, models, x, logsumexp) for x in X]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-6)


def test_the_soft_winner_need_not_have_the_best_plane():
    planes = finished([[1, 0, 0], *[[0.5, 0, 0]] * 3, [0.6, 0, 0]], [0, 1, 1, 1, 1])
    rows = dense_rows(np.zeros((1, 2), np.float32), 1)
    for is_soft, winner, plane in [(False, 0, 0), (True, 1, 4)]:
        record = record_of([[planes]], decomposed("joint", [0, 1]), NO_SCORE, is_soft)
        assert record.classes_of(rows, in_place(1)).tolist() == [winner]
        assert record.deciding_planes(rows, in_place(1)).tolist() == [plane]


def test_one_soft_model_is_decided_by_the_short_cut(monkeypatch):
    """The other way, over class scores, gives the same and would pass unnoticed."""
    rows = dense_rows(np.ones((3, 2), np.float32), 1)
    expected = [
        random_record("joint", "margin", n, True).classes_of(rows, in_place(3)) for n in (1, 2)
    ]
    monkeypatch.setattr("polyplane.model.plane_record.soft_group_scores", None)
    found = random_record("joint", "margin", 1, True).classes_of(rows, in_place(3))
    np.testing.assert_array_equal(found, expected[0])
    with pytest.raises(TypeError):
        random_record("joint", "margin", 2, True).classes_of(rows, in_place(3))


def test_a_side_with_a_score_of_its_own_may_win_where_planes_are_soft():
    planes = finished([[-1, 0, 0], [-1, 0, 0], [-1.5, 0, 0]], [1, 1, 1])
    record = record_of([[planes]], decomposed("joint", [0, 1]), 0.0, is_soft=True)
    rows = dense_rows(np.zeros((1, 2), np.float32), 1)
    lead = np.log(2 * np.exp(-1) + np.exp(-1.5))
    np.testing.assert_allclose(record.class_scores(rows, in_place(1)), [[0, lead]], atol=1e-6)
    assert record.classes_of(rows, in_place(1)).tolist() == [int(lead > 0)]


# ---- probabilities ---------------------------------------------------------------------------


def expected_logs(record, scores):
    """From class scores, by the definition."""
    return log_softmax(record.calibration * scores.astype(np.float64), axis=1)


@pytest.mark.parametrize("calibration", [1.0, 0.2, 3.0])
@pytest.mark.parametrize(("kind", "combine", "n_estimators"), SOFT_CLASSIFIERS)
def test_probabilities_equal_their_definition(kind, combine, n_estimators, calibration):
    record = random_record(kind, combine, n_estimators, is_soft=True)
    record = replace(record, calibration=calibration)
    rows = dense_rows(np.random.default_rng(1).normal(size=(N_ROWS, 2)), 1)
    order = in_place(N_ROWS)
    expected = expected_logs(record, record.class_scores(rows, order))
    logs, shares = record.log_probabilities(rows, order), record.probabilities(rows, order)
    assert logs.dtype == shares.dtype == np.float64
    np.testing.assert_allclose(logs, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shares, np.exp(expected), rtol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(shares.argmax(axis=1), record.classes_of(rows, order))


def test_probabilities_over_the_rest_are_those_on_which_all_problems_agree():
    """It is class c, and none of the others, by problems that know nothing of each other."""
    record = random_record("ovr", "vote", 1, is_soft=True)
    rows = dense_rows(np.random.default_rng(1).normal(size=(N_ROWS, 2)), 1)
    of_problems = expit(record.class_scores(rows, in_place(N_ROWS)).astype(np.float64))
    n_classes = of_problems.shape[1]
    agreed = np.stack(
        [
            np.where(np.arange(n_classes) == c, of_problems, 1 - of_problems).prod(axis=1)
            for c in range(n_classes)
        ],
        axis=1,
    )
    expected = agreed / agreed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(record.probabilities(rows, in_place(N_ROWS)), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")
def test_probabilities_are_finite_where_scores_are_not():
    record = random_record("ovr", "vote", 1, is_soft=True)
    rows, order = dense_rows(np.full((1, 2), 3e38, np.float32), 1), in_place(1)
    assert not np.isfinite(record.class_scores(rows, order)).all()
    assert np.isfinite(record.log_probabilities(rows, order)).all()
    assert np.isfinite(record.probabilities(rows, order)).all()


@pytest.mark.parametrize("kind", ["joint", "ovr", "ovo"])
def test_with_two_classes_probabilities_of_all_kinds_are_the_same(kind):
    planes = finished([[1, 2, 0], [0, 1, 1], [0, 0, 3]], [0, 1, 0])
    record = record_of([[planes]], decomposed(kind, [0, 1], "soft"), NO_SCORE, True, 2.0)
    rows = dense_rows(np.array([[1, 1], [0, 2]], np.float32), 1)
    sides = [[np.log(np.exp(3) + np.exp(3)), 2], [np.log(np.exp(1) + np.exp(6)), 2]]
    expected = softmax(2 * np.array(sides), axis=1)
    np.testing.assert_allclose(record.probabilities(rows, in_place(2)), expected, rtol=1e-5)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4, 1e30, 1e38])
@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize(("kind", "combine", "n_estimators"), SOFT_CLASSIFIERS)
def test_probabilities_of_scores_of_any_size_are_finite(kind, combine, n_estimators, is_soft, size):
    """Scores can be too large for float32; a row of zeros has only constants."""
    record = random_record(kind, combine, n_estimators, is_soft, size=size)
    X = np.array([[0, 0], [1, 2], [-3, 5], [1e-30, 0]])
    with np.errstate(all="ignore"):
        logs = record.log_probabilities(dense_rows(X, 1), in_place(4))
        shares = record.probabilities(dense_rows(X, 1), in_place(4))
    assert np.isfinite(logs).all()
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-14)


def test_the_least_probability_is_not_zero():
    planes = finished([[1e4, 0, 0], [0, 0, 0]], [0, 1])
    record = record_of([[planes]], decomposed("joint", [0, 1]), NO_SCORE, is_soft=True)
    rows = dense_rows(np.zeros((1, 2), np.float32), 1)
    assert record.log_probabilities(rows, in_place(1)).tolist() == [[0, -700]]


@pytest.mark.parametrize(
    ("kind", "combine", "n_estimators"),
    [("joint", "margin", 1), ("ovr", "margin", 2), ("ovo", "vote", 1), ("ovo", "soft", 1)],
)
def test_threads_storage_and_company_change_no_soft_result(
    kind, combine, n_estimators, monkeypatch
):
    """To the last bit."""
    monkeypatch.setattr("polyplane.model.plane_record.ROWS_WORTH_A_THREAD", 4)
    record = random_record(kind, combine, n_estimators, is_soft=True, per_code=9)
    X = np.random.default_rng(1).integers(0, 5, (13, N_COLUMNS))
    stored = [
        dense_rows(X.astype(np.float32), 1),
        dense_rows(X.astype(np.uint8), 1),
        csr_rows(sp.csr_array(X.astype(np.float32)), 1),
    ]

    def results(rows, order, n_jobs):
        methods = (
            record.class_scores, record.classes_of, record.deciding_planes,
            record.log_probabilities, record.probabilities,
        )  # fmt: skip
        return [method(rows, order, n_jobs) for method in methods]

    whole = results(stored[0], in_place(len(X)), 1)
    some = np.array([7, 3, 3, 11, 0], np.int32)
    for rows in stored:
        for order, n_jobs in [(in_place(len(X)), 3), (some, 1), (some[:1], 1)]:
            for found, expected in zip(results(rows, order, n_jobs), whole, strict=True):
                np.testing.assert_array_equal(found, expected[order])
