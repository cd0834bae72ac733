"""Training from files: the same model as from memory, or a sentence that says why not."""

import io
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from polyplane import (
    AMMClassifier,
    HullerClassifier,
    LaSVMClassifier,
    MMClassifier,
    SoftPlanesClassifier,
)
from polyplane.data.chunks import Chunk, DataError
from polyplane.data.reading import read, stream
from polyplane.data.writing import write
from polyplane.estimator.files.saving import load, save
from polyplane.estimator.fitting.streams import RowStream, fit_stream
from tests.contract.sameness import assert_same_model, assert_same_scores, set_where_there

ONE_PASS = {"max_iter": 1, "shuffle": False, "random_state": 0}
MACHINES = [
    AMMClassifier(alpha=0.01, prune_interval=30, **ONE_PASS),
    HullerClassifier(C=1.0, gamma=0.1, **ONE_PASS),
    LaSVMClassifier(gamma=0.1, **ONE_PASS),
]


@pytest.fixture
def rows():
    """Sparse rows of small whole numbers, of three classes that no plane parts."""
    X = np.random.default_rng(0).integers(0, 4, (60, 5)).astype(np.float32)
    X[0, 4] = 1  # the last column is met at once
    return sp.csr_matrix(X), (X[:, 0] + X[:, 1]).astype(np.int64) % 3


@pytest.fixture
def path(tmp_path, rows):
    path = tmp_path / "rows.libsvm"
    write(path, [Chunk(*rows)])
    return path


@pytest.fixture(params=MACHINES, ids=lambda machine: type(machine).__name__)
def machine(request):
    return clone(request.param)


def by_hand(model, chunks, classes=None):
    """Visit chunks one by one."""
    for chunk in chunks:
        model.partial_fit(chunk.X, chunk.y, classes=classes)
        classes = None
    return model.finish() if hasattr(model, "finish") else model


def assert_same(model, other, X):
    assert_same_model(model, other)
    assert_same_scores(model, other, X)


# The same model


@pytest.mark.parametrize("cache", [False, True])
def test_a_pass_in_order_is_partial_fit_of_each_chunk(machine, path, rows, cache):
    chunks = stream(path, chunk_rows=13, cache=cache)
    expected = by_hand(clone(machine), chunks)
    assert fit_stream(machine, chunks) is machine
    assert_same(machine, expected, rows[0])
    assert machine.n_iter_ == 1


@pytest.mark.parametrize("cache", [False, True])
def test_with_classes_announced_it_is_fit_in_memory(machine, path, rows, cache):
    expected = clone(machine).fit(*rows)
    fit_stream(machine, stream(path, chunk_rows=13, cache=cache), classes=[0, 1, 2])
    assert_same(machine, expected, rows[0])


def test_each_pass_has_an_order_of_its_own_that_the_seed_decides(machine, path, rows):
    machine.set_params(max_iter=2, shuffle=True, random_state=5)
    model, expected = clone(machine), clone(machine)
    chunks = stream(path, chunk_rows=13)
    fit_stream(model, chunks)
    assert chunks.n_passes == 2
    seed = np.random.RandomState(5).randint(2**31)
    orders = [list(chunks.shuffled([seed, k])) for k in range(2)]
    assert_same(model, by_hand(expected, [chunk for order in orders for chunk in order]), rows[0])
    firsts = [order[0].X.toarray().tolist() for order in orders]
    assert firsts[0] != firsts[1]
    assert model.n_iter_ == 2


def test_columns_and_classes_first_met_in_later_files_are_learned(machine, tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    first, third = b"1 1:9\n2 2:9\n", b"3 5:9\n"
    for path, lines in zip(paths, (first, first + third, first), strict=True):
        path.write_bytes(lines * 20)
    set_where_there(machine, prune_interval=1000)
    fit_stream(machine, stream(paths, chunk_rows=10))
    assert machine.classes_.tolist() == [1, 2, 3]
    assert machine.n_features_in_ == 5
    assert machine.predict(9 * np.eye(5, dtype=np.float32)[[0, 1, 4]]).tolist() == [1, 2, 3]


def test_a_model_that_goes_on_takes_narrower_rows(machine, path, tmp_path, rows):
    narrow = tmp_path / "narrow"
    narrow.write_bytes(b"1 1:1\n2 2:1\n")
    fit_stream(machine.set_params(warm_start=True), stream(path))
    n_steps = machine.n_steps_
    fit_stream(machine, stream(narrow))
    assert machine.n_steps_ > n_steps
    assert machine.n_features_in_ == 5


def test_it_starts_anew_unless_told_to_go_on(machine, path, rows):
    chunks = stream(path, chunk_rows=13)
    expected = fit_stream(clone(machine), chunks)
    assert_same(fit_stream(machine.fit(*rows), chunks), expected, rows[0])
    machine.set_params(warm_start=True)
    fit_stream(machine, chunks)
    assert machine.n_steps_ == 2 * expected.n_steps_


def test_dense_rows_are_learned_as_they_are(tmp_path, rows):
    path = tmp_path / "rows.parquet"
    X = rows[0].toarray().astype(np.uint8)
    write(path, [Chunk(X, rows[1])])
    model = fit_stream(clone(MACHINES[0]), stream(path, chunk_rows=50), classes=[0, 1, 2])
    assert_same(model, clone(MACHINES[0]).fit(X, rows[1]), X)


def test_a_pipe_is_learned_in_one_pass(machine, path, rows):
    expected = fit_stream(clone(machine), stream(path))
    pipe = io.BytesIO(path.read_bytes())
    assert_same(fit_stream(machine, stream(pipe)), expected, rows[0])
    with pytest.raises(ValueError, match="max_iter=2 passes need a stream that can be read again"):
        fit_stream(machine.set_params(max_iter=2), stream(io.BytesIO(path.read_bytes())))


def test_there_is_one_bar_for_all_chunks(machine, path, capsys):
    fit_stream(machine.set_params(verbose=True, max_iter=2), stream(path, chunk_rows=13))
    shown = capsys.readouterr().out
    assert shown.count(type(machine).__name__) == 1
    assert "pass 2 of 2" in shown
    assert machine.verbose is True


# Refusals


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (AMMClassifier(alpha="auto"), 'alpha="auto" needs all rows at once'),
        (AMMClassifier(early_stopping=True), "early_stopping needs .*set it to False"),
        (AMMClassifier(class_weight="balanced"), 'class_weight="balanced" needs .*give a dict'),
        (HullerClassifier(class_weight="balanced"), 'class_weight="balanced" needs all rows'),
        (HullerClassifier(kernel="precomputed"), "kernel='precomputed' needs all rows at once"),
        (AMMClassifier(mode="batch"), r"AMMClassifier\(mode='batch'\) has no partial_fit"),
        (MMClassifier(init="kmeans"), 'init="kmeans" needs all rows'),
        (AMMClassifier(alpha=-1), "alpha must be"),
    ],
)
def test_what_needs_all_rows_is_refused(made, words, path):
    with pytest.raises(ValueError, match=words) as caught:
        fit_stream(made, stream(path))
    assert str(caught.value).count("\n") == 0
    assert not hasattr(made, "classes_")


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_fit_on_a_stream_takes_nothing_beside_it(machine, path, name):
    with pytest.raises(ValueError, match=f": {name} does not go with a stream"):
        machine.fit(stream(path), **{name: [0, 1]})
    assert not hasattr(machine, "classes_")


def test_fit_hands_a_stream_on(machine, path):
    machine.set_params(random_state=0)
    expected = fit_stream(clone(machine), stream(path))
    X, _ = read(path)
    np.testing.assert_array_equal(
        machine.fit(stream(path)).decision_function(X), expected.decision_function(X)
    )


@pytest.mark.compiled
def test_the_machine_to_try_first_learns_from_a_stream(path):
    model = SoftPlanesClassifier(max_iter=1, random_state=0).fit(stream(path))
    X, y = read(path)
    assert model.predict(X).shape == y.shape


def test_a_stream_of_one_class_is_refused(machine, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"7 1:1\n" * 30)
    with pytest.raises(
        ValueError, match=r"at least 2 classes; the stream holds only one class, 7\.$"
    ):
        fit_stream(machine, stream(path))
    assert not hasattr(machine, "classes_")


def test_a_stream_without_labels_is_refused(machine, tmp_path):
    np.save(tmp_path / "X.npy", np.ones((5, 2), np.float32))
    with pytest.raises(ValueError, match="The stream has no labels"):
        fit_stream(machine, stream(tmp_path / "X.npy"))


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_error_leaves_the_estimator_as_it_was(machine, path, rows, shuffle):
    with open(path, "ab") as file:
        file.write(b"1 what\n")
    chunks = stream(path, chunk_rows=13)
    machine.set_params(shuffle=shuffle)
    with pytest.raises(DataError, match="line 61, column 3"):
        fit_stream(machine, chunks)
    assert not hasattr(machine, "classes_")
    expected = clone(machine).fit(*rows)
    model = clone(machine).fit(*rows)
    with pytest.raises(DataError, match="line 61, column 3"):
        fit_stream(model, chunks)
    assert_same(model, expected, rows[0])
    assert no_reader_is_left()


def no_reader_is_left():
    return not any(thread.name == "polyplane reader" for thread in threading.enumerate())


# Ctrl-C


def interrupting(monkeypatch, machine, n_chunks, n_times=1):
    """Press Ctrl-C while so many chunks have been learned and the next is at work."""
    learn, done = type(machine).partial_fit, []

    def pressed(self, X, y, classes=None):
        if len(done) == n_chunks:
            for _ in range(n_times):
                signal.raise_signal(signal.SIGINT)
        learn(self, X, y, classes)
        done.append(X.shape[0])

    monkeypatch.setattr(type(machine), "partial_fit", pressed)
    return done


@pytest.mark.parametrize("shuffle", [False, True])
def test_ctrl_c_waits_for_the_chunk_at_work(machine, path, rows, monkeypatch, shuffle):
    machine.set_params(shuffle=shuffle)
    with monkeypatch.context() as patch:
        done = interrupting(patch, machine, n_chunks=3)
        with pytest.raises(KeyboardInterrupt):
            fit_stream(machine, stream(path, chunk_rows=13))
    assert done == [13] * 4
    assert no_reader_is_left()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert machine.n_iter_ == 0
    if not shuffle:
        assert_same(machine, clone(machine).partial_fit(rows[0][:52], rows[1][:52]), rows[0])
    machine.partial_fit(*rows)


def test_a_second_ctrl_c_does_not_wait(machine, path, monkeypatch):
    done = interrupting(monkeypatch, machine, n_chunks=3, n_times=2)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(machine, stream(path, chunk_rows=13))
    assert done == [13] * 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_chunk_is_learned_leaves_the_estimator_as_it_was(machine, path):
    class Interrupted:
        is_once = False

        def __iter__(self):
            raise KeyboardInterrupt
            yield

        shuffled = __iter__

    with pytest.raises(KeyboardInterrupt):
        fit_stream(machine, Interrupted())
    assert not hasattr(machine, "classes_")


def test_training_in_another_thread_leaves_signals_alone(machine, path, rows):
    expected = fit_stream(clone(machine), stream(path))
    worker = threading.Thread(target=fit_stream, args=(machine, stream(path)))
    worker.start()
    worker.join()
    assert_same(machine, expected, rows[0])


# What is a stream


def test_a_stream_is_told_from_rows(path, rows):
    assert isinstance(stream(path), RowStream)
    for other in (*rows, rows[0].toarray(), [[1]], path, os.fspath(path), None):
        assert not isinstance(other, RowStream)


# Tables


COLOURS = ["red", "blue", "green", "violet"]


def table(n_rows, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": random.integers(0, 9, n_rows).astype(float),
            "colour": np.array(COLOURS, object)[random.integers(0, 4, n_rows)],
        }
    )
    frame.loc[random.random(n_rows) < 0.1, "size"] = np.nan
    frame["kind"] = np.where((frame["colour"] == "red") ^ (frame["size"] > 4), "a", "b")
    return frame


@pytest.fixture
def csv_path(tmp_path):
    path = tmp_path / "table.csv"
    table(200).to_csv(path, index=False)
    return path


def test_a_stream_of_a_table_leaves_its_layout(machine, csv_path, tmp_path):
    rows = stream(csv_path, chunk_rows=50)
    machine.set_params(max_iter=2).fit(rows)
    new = table(50, seed=1).drop(columns="kind")
    assert machine.layout_ == rows.layout
    assert machine.layout_ is not rows.layout
    assert machine.n_features_in_ == 2
    assert machine.feature_names_in_.tolist() == ["size", "colour"]
    new_path = tmp_path / "new.csv"
    new.assign(kind="a").to_csv(new_path, index=False)
    X, _ = read(new_path, layout=rows.layout.copied())
    expected = machine.decision_function(X)
    assert_same_scores_of(machine, new, expected)
    assert_same_scores_of(machine, new[["colour", "size"]], expected)
    save(machine, tmp_path / "table.model")
    assert_same_scores_of(load(tmp_path / "table.model"), new, expected)


def assert_same_scores_of(model, X, expected):
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_a_model_of_one_table_goes_on_with_a_wider_one(machine, csv_path, tmp_path):
    """Columns that the second stream is the first to meet are learned, as without a layout."""
    machine.set_params(warm_start=True).fit(stream(csv_path, chunk_rows=50))
    width = machine.layout_.width
    wide = table(100, seed=2)
    wide.loc[::3, "colour"] = "black"
    wide.to_csv(tmp_path / "wide.csv", index=False)
    rows = stream(tmp_path / "wide.csv", chunk_rows=50, layout=machine.layout_.copied())
    machine.fit(rows)
    assert machine.layout_ == rows.layout
    assert machine.layout_.width == width + 1
    assert machine.predict(wide.drop(columns="kind")).shape == (100,)


def test_a_stream_without_a_table_leaves_no_layout(machine, path, rows):
    machine.fit(stream(path, chunk_rows=20))
    assert not hasattr(machine, "layout_")
    assert machine.n_features_in_ == rows[0].shape[1]


def test_a_layout_that_an_error_interrupts_stays_that_of_before(machine, csv_path, tmp_path):
    machine.set_params(warm_start=True).fit(stream(csv_path, chunk_rows=50))
    before = machine.layout_
    (tmp_path / "bad.csv").write_text("size,colour,kind\n" + "1,red,a\n" * 250 + "x,red,a\n")
    with pytest.raises(DataError):
        machine.fit(stream(tmp_path / "bad.csv", chunk_rows=50))
    assert machine.layout_ is before
    assert machine.n_features_in_ == 2
