"""Training as a walk over rows: what is due is done on time, wherever the caller cuts."""

import contextlib
import importlib.util
import itertools
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from sklearn.base import clone

from polyplane import AMMClassifier, MMClassifier, PegasosClassifier, stream
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.engine.planes.planes import (
    CREATED,
    LANES_USED,
    MISTAKES,
    NO_PLANE,
    PRUNED,
    live_lanes,
    with_classes,
    with_planes,
    zero_planes,
)
from polyplane.model.many_classes.decomposition import Problem
from polyplane.training.job import Job, Settings
from polyplane.training.planes.algorithm import PlaneAlgorithm, nothing
from polyplane.training.planes.passes import visit
from polyplane.training.planes.state import PlaneModel
from polyplane.training.search import best_value, contest
from polyplane.training.search.best_value import ALPHAS
from polyplane.training.work import progress, progress_bar
from polyplane.training.work.side_by_side import for_each
from tests.exact import only_model
from tests.searches import looks_at_held_out_rows, lowest_after_looks, lowest_as_fitted

GENERATOR = np.random.default_rng(0)
X = GENERATOR.integers(0, 4, (40, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 1]).astype(int) % 3
ONLINE = [PegasosClassifier(), MMClassifier(), AMMClassifier()]


@pytest.fixture(params=[*ONLINE, AMMClassifier(mode="batch")], ids=repr)
def estimator(request):
    return clone(request.param).set_params(random_state=0)


def new_model(n_planes=0):
    """A model in training with so many planes of one class."""
    planes = with_classes(zero_planes(2, keeps_average=False), 1, 100)
    if n_planes:
        starts = np.arange(3 * n_planes, dtype=np.float32).reshape(n_planes, 3)
        planes = with_planes(planes, np.zeros(n_planes), starts)
    return PlaneModel(Problem(), 0, planes, alpha=1.0, constant=0.0, seed=0, n_features=2)


def silent(n_rows, n_planes, error):
    pass


def job_with(steps, interval=100, between=nothing):
    """An algorithm with these steps."""
    algorithm = PlaneAlgorithm(steps=steps, between=between)
    return Job(algorithm, Settings(prune_interval=interval))


# ---- the walk --------------------------------------------------------------------------------


def walk_along(cuts, n_rows, interval):
    """Walk over rows in parts cut at `cuts`: rows in the order met, steps of acts, notes."""
    met, acts = [], []

    def steps(model, data, order, chosen):
        met.extend(order.tolist())
        model.planes.counts[MISTAKES] += (order % 3 == 0).sum()
        return model.n_steps + order.size

    model = new_model()
    job = job_with(steps, interval, lambda model, settings: acts.append(model.n_steps))
    for part in np.split(np.arange(n_rows), cuts):
        visit(job, model, None, part, silent)
    return met, acts, model.history


@given(st.integers(1, 200), st.integers(1, 30), st.lists(st.integers(0, 200)).map(sorted))
@settings(deadline=None, max_examples=50)
def test_where_the_rows_are_cut_changes_nothing(n_rows, interval, cuts):
    met, acts, notes = walk_along([c for c in cuts if c <= n_rows], n_rows, interval)
    assert met == list(range(n_rows))
    assert acts == list(range(interval, n_rows + 1, interval))
    assert (met, acts, notes) == walk_along([], n_rows, interval)


def test_history_notes_powers_of_two_then_every_ten_thousand():
    _, _, notes = walk_along([], 35_000, 50_000)
    steps = [note[0] for note in notes]
    assert steps == [*(2**k for k in range(14)), 10_000, 20_000, 30_000]


def test_the_error_noted_is_that_of_the_steps_since_the_note_before():
    _, _, notes = walk_along([], 20, 50)  # every third row is a mistake: 0, 3, 6, ...
    assert [note[4] for note in notes] == [1, 0, 1 / 2, 1 / 4, 3 / 8]


def test_a_full_loop_is_given_room_and_called_again_with_the_rest():
    met = []

    def fills_up_at_the_second_row(model, data, order, chosen):
        visited = order[:2] if model.planes.owner.size == 16 else order
        met.append(visited.tolist())
        model.planes.owner[14] = 0  # a plane is born
        model.planes.counts[[LANES_USED, CREATED]] = 15
        return model.n_steps + visited.size

    model = new_model(n_planes=14)
    model.n_steps = 20
    visit(job_with(fills_up_at_the_second_row), model, None, np.arange(5), silent)
    assert met == [[0, 1], [2, 3, 4]]
    assert model.planes.owner.size == 32
    assert live_lanes(model.planes).size == 15


def test_rows_follow_their_plane_when_room_is_made():
    model = new_model(n_planes=14)
    before = model.planes.sums.copy()
    model.planes.owner[[0, 3]] = NO_PLANE  # two planes are pruned
    model.planes.counts[PRUNED] = 2
    chosen = np.array([-2, -1, 0, 1, 3, 4, 13], np.int32)
    stops = iter([2, 3])

    def steps(model, data, order, chosen):
        return model.n_steps + next(stops)

    model.n_steps = 20
    visit(job_with(steps), model, None, np.arange(5), silent, chosen)
    assert chosen.tolist() == [-2, -1, -1, 0, -1, 2, 11]
    np.testing.assert_array_equal(model.planes.sums[:, 11], before[:, 13])


def test_the_report_is_told_rows_planes_and_error_of_each_part():
    told = []

    def steps(model, data, order, chosen):
        model.planes.counts[MISTAKES] += 1
        return model.n_steps + order.size

    model = new_model(n_planes=3)
    visit(job_with(steps), model, None, np.arange(6), lambda *told_now: told.append(told_now))
    assert told == [(1, 3, 1), (1, 3, 1), (2, 3, 1 / 2), (2, 3, 1 / 2)]


def test_returning_to_a_snapshot_undoes_all_since():
    estimator = AMMClassifier(random_state=0, max_iter=1).fit(X, Y)
    model, scores = only_model(estimator), estimator.plane_scores(X)
    snapshot, history = model.snapshot(), list(model.history)
    estimator.partial_fit(X, Y).partial_fit(X[:, :], Y)
    model = only_model(estimator)
    model.return_to(snapshot)
    assert model.history == history
    assert estimator.n_steps_ == 40
    np.testing.assert_array_equal(estimator.plane_scores(X), scores)


@pytest.mark.parametrize("kind", ["joint", "ovr"])
def test_every_pass_has_an_order_of_its_own(kind, monkeypatch):
    orders = []
    monkeypatch.setattr(
        "polyplane.training.planes.passes.visit",
        lambda job, model, data, order, *_: orders.append(order),
    )
    PegasosClassifier(max_iter=3, multi_class=kind, random_state=0).fit(X, Y)
    passes = [np.array(orders[k]) for k in range(0, len(orders), len(orders) // 3)]
    for order in passes:
        assert sorted(order) == list(range(len(X)))
    assert all((one != other).any() for one, other in itertools.combinations(passes, 2))


# ---- going on --------------------------------------------------------------------------------


def test_warm_start_in_batch_mode_adds_steps():
    model = AMMClassifier(mode="batch", warm_start=True, max_iter=1).fit(X, Y).fit(X, Y)
    assert model.n_steps_ == 80


def test_warm_start_welcomes_new_classes_and_columns(estimator):
    estimator.set_params(warm_start=True).fit(X, Y)
    model = estimator.fit(np.column_stack([X, X]), Y + 1)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.planes_.shape[1] == 10


# ---- the search for alpha --------------------------------------------------------------------


def test_automatic_alpha_is_from_the_grid_and_trains_as_if_given(estimator):
    found = clone(estimator).set_params(alpha="auto").fit(X, Y)
    assert found.alpha_ in ALPHAS
    given_alpha = estimator.set_params(alpha=found.alpha_).fit(X, Y)
    np.testing.assert_array_equal(found.planes_, given_alpha.planes_)
    again = clone(found).fit(X, Y)
    assert again.alpha_ == found.alpha_
    np.testing.assert_array_equal(again.planes_, found.planes_)


def test_automatic_alpha_has_the_lowest_error_on_held_out_rows(estimator):
    with looks_at_held_out_rows() as seen:
        model = estimator.set_params(alpha="auto").fit(X, Y)
    if seen[0].rows.size == Y.size:
        assert model.alpha_ == lowest_as_fitted(seen, "alpha", Y.size)
        return
    for k in range(0, len(seen), 3):  # an alpha, tried without one third of the rows each
        rows = np.concatenate([look.rows for look in seen[k : k + 3]])
        assert sorted(rows.tolist()) == list(range(Y.size))
    assert model.alpha_ == lowest_after_looks(seen, "alpha")


def test_automatic_alpha_of_many_rows_is_judged_by_some_of_one_half(monkeypatch):
    monkeypatch.setattr(best_value, "MANY_ROWS", 40)
    monkeypatch.setattr(best_value, "MOST_JUDGED", 15)
    monkeypatch.setattr(contest, "_close", lambda *_: [])
    monkeypatch.setattr(contest, "take_hinge_steps", lambda _: False)  # so that equals leave
    with looks_at_held_out_rows() as seen:
        model = AMMClassifier(alpha="auto", random_state=0).fit(X, Y)
    assert {look.is_wrong.size for look in seen} == {15}
    assert {tuple(look.rows.tolist()) for look in seen} == {tuple(seen[0].rows.tolist())}
    assert {look.training.courses[0].n_rows for look in seen} == {Y.size // 2}
    assert model.alpha_ == lowest_after_looks(seen, "alpha")


def test_automatic_alpha_of_large_models_has_one_trial_each(monkeypatch):
    monkeypatch.setattr(best_value, "MOST_BYTES", 1_000)
    with looks_at_held_out_rows() as seen:
        model = AMMClassifier(alpha="auto", mode="batch", random_state=0).fit(X, Y)
    assert {tuple(look.rows.tolist()) for look in seen} == {tuple(seen[0].rows.tolist())}
    assert seen[0].rows.size == Y.size // 3
    assert model.alpha_ == lowest_after_looks(seen, "alpha")


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_automatic_alpha_of_a_few_rows(n_rows):
    few = np.arange(n_rows)
    model = AMMClassifier(alpha="auto", random_state=0).fit(X[few], few % 2)
    assert model.alpha_ in ALPHAS


def test_automatic_alpha_does_not_depend_on_the_number_of_threads(estimator):
    estimator.set_params(alpha="auto", max_iter=1)
    alone = clone(estimator).set_params(n_jobs=1).fit(X, Y)
    threaded = estimator.set_params(n_jobs=2).fit(X, Y)
    assert threaded.alpha_ == alone.alpha_
    np.testing.assert_array_equal(threaded.planes_, alone.planes_)


def test_an_alpha_given_after_the_search_is_the_one_in_use():
    model = PegasosClassifier(alpha="auto", random_state=0).fit(X, Y)
    assert model.set_params(alpha=0.5).partial_fit(X, Y).alpha_ == 0.5
    assert model.set_params(alpha="auto").partial_fit(X, Y).alpha_ in ALPHAS


def test_a_search_that_never_was_is_refused_chunk_by_chunk():
    model = PegasosClassifier(random_state=0).fit(X, Y).set_params(alpha="auto")
    with pytest.raises(ValueError, match=r'^alpha="auto" needs all rows .*\.$'):
        model.partial_fit(X, Y)


# ---- threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_work_is_done_once_and_reported(n_threads):
    done, told = [], []

    def work(k, report):
        report(k, 0, 0.0)
        done.append(k)

    for_each(work, 4, n_threads, lambda *told_now: told.append(told_now))
    assert sorted(done) == [0, 1, 2, 3]
    assert sorted(told) == [(k, 0, 0.0) for k in range(4)]


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_in_one_thread_ends_the_other_at_its_next_report(failing, error):
    is_running, finished = threading.Event(), []

    def work(k, report):
        if k == failing:
            is_running.wait(60)
            raise error
        for _ in range(2_000):  # ten seconds, unless it is ended
            report(1, 1, 0.0)
            is_running.set()
            time.sleep(0.005)
        finished.append(k)

    n_threads = threading.active_count()
    with pytest.raises(error):
        for_each(work, 2, 2, silent)
    assert finished == []
    assert threading.active_count() == n_threads


# ---- interruption and progress ---------------------------------------------------------------


def interrupt():
    raise KeyboardInterrupt


def press():
    signal.raise_signal(signal.SIGINT)


def interrupted_after(n_parts, interrupted=interrupt):
    """A progress report that stands for a user who presses Ctrl-C after so many parts."""

    @contextlib.contextmanager
    def progress(title, n_rows, shown, unit):
        parts = itertools.count(1)

        def report(n_visited, n_planes, error):
            if next(parts) == n_parts:
                interrupted()

        yield report

    return progress


@pytest.mark.parametrize("interrupted", [interrupt, press])
def test_an_interrupted_fit_leaves_the_model_reached_so_far(estimator, monkeypatch, interrupted):
    estimator.set_params(shuffle=False, max_iter=3)
    reached = clone(estimator).set_params(max_iter=1).fit(X[:16], Y[:16])
    with monkeypatch.context() as patch:
        patch.setattr(
            "polyplane.estimator.shell.progress",
            interrupted_after(5, interrupted),
        )
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, Y)
    assert estimator.n_steps_ == 16  # the fifth part ends at the fifth power of two
    np.testing.assert_array_equal(estimator.plane_scores(X), reached.plane_scores(X))
    estimator.set_params(warm_start=True).fit(X, Y)
    assert estimator.n_steps_ == 16 + estimator.n_iter_ * len(X)


def test_an_interrupted_chunk_leaves_a_model_that_goes_on(monkeypatch):
    model, whole = AMMClassifier(), AMMClassifier().partial_fit(X, Y, classes=[0, 1, 2])
    with monkeypatch.context() as patch:
        patch.setattr("polyplane.estimator.shell.progress", interrupted_after(4))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y, classes=[0, 1, 2])
    model.partial_fit(X[model.n_steps_ :], Y[model.n_steps_ :])
    np.testing.assert_array_equal(model.planes_, whole.planes_)


@pytest.mark.parametrize("parameters", [{}, {"alpha": "auto"}])
def test_verbose_shows_rows_a_second_and_planes(estimator, parameters, capsys):
    estimator.set_params(verbose=True, **parameters).fit(X, Y)
    shown = capsys.readouterr().out
    assert type(estimator).__name__ in shown
    assert "rows/s" in shown
    assert f"{estimator.n_planes_} planes" in shown


def test_not_verbose_is_silent(estimator, capsys):
    estimator.fit(X, Y).predict(X)
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_notebook_without_widgets_gets_plain_lines(is_stream, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(progress_bar, "get_console", lambda: Console(force_jupyter=True))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(progress, "BETWEEN_LINES", np.inf)  # loops may be compiled for longer
    model = AMMClassifier(verbose=True, max_iter=2, random_state=0)
    if is_stream:
        write(tmp_path / "rows.csv", [Chunk(np.asarray(X, np.float32), np.asarray(Y))])
        model.fit(stream(tmp_path / "rows.csv"))
    else:
        model.fit(X, Y)
    told = capsys.readouterr()
    assert told.out.startswith(f"AMMClassifier: {2 * len(Y):,}")
    assert told.out.count("\n") == 1
    assert "ipywidgets" not in told.out + told.err
