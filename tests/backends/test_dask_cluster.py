"""A real cluster of two processes: it is the sequential algorithm, and survives what goes wrong."""

import functools
import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import packed
from tests.real_data import libsvm_set

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

import dask
import dask.array as da
import dask.dataframe as dd
from dask.delayed import delayed
from distributed import Client, LocalCluster, wait

from polyplane.backends import dask_cluster, dask_partitions, dask_rounds, dask_rows
from polyplane.backends.dask_cluster import bytes_sent
from tests.backends.small_rows import arrays, machine, rows, same


@delayed
def made(start, end, n=600):
    """A partition that can be made again wherever it is wanted."""
    X, y = rows(n)
    return X[start:end], y[start:end]


# ---- the sequential algorithm ------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        machine(),
        pp.MMClassifier(random_state=1, max_iter=3),
        pp.PegasosClassifier(random_state=1, max_iter=3, multi_class="ovo"),
        pp.PassiveAggressiveClassifier(random_state=1, max_iter=3),
        pp.CPMClassifier(random_state=1, max_iter=3, entropy=0.0, n_planes=4),
        pp.SoftPlanesClassifier(random_state=1, learn_from="most"),  # else rows may rest in `fit`
        pp.SoftPlanesClassifier(random_state=1, class_weight={0: 0.0, 1: 3.0}),
        machine(alpha="auto"),
        machine(class_weight="balanced"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_one_partition_is_fit_bit_for_bit(client, estimator):
    X, y = rows()
    expected = type(estimator)(**estimator.get_params()).fit(X, y)
    same(dask_cluster.fit(estimator, *arrays(X, y, 1), client=client), expected)
    np.testing.assert_array_equal(estimator.history_, expected.history_)


def test_what_all_rows_tell_does_not_depend_on_partitions(client):
    """Settings, maps of columns, first planes and weights of classes; so only orders differ."""
    X, y = rows()
    settings = {"random_state": 1, "max_iter": 3, "class_weight": "balanced"}
    machines = [pp.SoftPlanesClassifier(shuffle=False, **settings), machine(alpha="auto")]
    for estimator in machines:
        for n_partitions in (2, 8):
            parts = arrays(X, y, n_partitions)
            made = clone(estimator)
            dask_cluster.fit(made, *parts, client=client, learners=1)
            expected = clone(estimator).fit(X, y)
            assert made._training.found == expected._training.found
            if not estimator.shuffle:
                np.testing.assert_allclose(made.planes_, expected.planes_, rtol=1e-4, atol=1e-6)


def test_a_sample_has_rows_of_every_class(client, monkeypatch):
    """Classes that are rare, and sorted to the end, have planes as well."""
    monkeypatch.setattr(dask_rows, "SAMPLED_ROWS", 300)
    X, y = rows(3000)
    y = np.sort(y)
    y[-3:] = 7
    estimator = pp.SoftPlanesClassifier(random_state=1, max_iter=3)
    dask_cluster.fit(estimator, *arrays(X, y, 6), client=client, learners=2)
    assert estimator.classes_.tolist() == [0, 1, 2, 7]
    assert set(estimator.plane_classes_) == {0, 1, 2, 7}


def test_polyplane_goes_on_from_a_checkpoint(client, tmp_path):
    X, y = rows(3000)
    parts, path = arrays(X, y, 4), tmp_path / "model"
    settings = {"random_state": 1, "max_iter": 4, "class_weight": "balanced"}
    whole = dask_cluster.fit(pp.SoftPlanesClassifier(**settings), *parts, client=client)

    def stop(estimator):
        if estimator.n_iter_ == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dask_cluster.fit(
            pp.SoftPlanesClassifier(**settings), *parts, client=client, checkpoint=path,
            callback=stop,
        )  # fmt: skip
    half = pp.load(path)
    assert half.class_weight == "balanced"
    assert half.score(X, y) > 0.5
    same(dask_cluster.fit(half, *parts, client=client, resume=True), whole)
    assert whole.score(X, y) > 0.9


@pytest.mark.parametrize("n_partitions", [2, 8, 32])
def test_one_learner_is_fit_however_rows_are_cut(client, n_partitions):
    X, y = rows()
    estimator = machine(shuffle=False)
    dask_cluster.fit(estimator, *arrays(X, y, n_partitions), client=client, learners=1)
    same(estimator, machine(shuffle=False).fit(X, y))


def test_all_kinds_of_input_give_the_same_model(client, tmp_path):
    X, y = rows()
    X[:, 0] += 1  # no row is empty, and the first file shows all columns
    cuts = [slice(0, 300), slice(300, 600)]
    expected = dask_cluster.fit(machine(), *arrays(X, y, 2), client=client)
    parts = [(delayed(X[cut]), delayed(y[cut])) for cut in cuts]
    same(dask_cluster.fit(machine(), parts, client=client), expected)
    pairs = [delayed((sp.csr_matrix(X[cut]), y[cut])) for cut in cuts]
    same(dask_cluster.fit(machine(), pairs, client=client), expected)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=2)
    labels = dd.from_pandas(pd.Series(y), npartitions=2)
    of_frame = dask_cluster.fit(machine(), frame, labels, client=client)
    np.testing.assert_array_equal(of_frame.planes_, expected.planes_)
    assert of_frame.feature_names_in_.tolist() == list("abcdef")
    for kind in ("libsvm", "csv", "npz"):
        for k, cut in enumerate(cuts):
            write(tmp_path / f"{kind}-{k}.{kind}", [Chunk(X[cut], y[cut])])
        pattern = str(tmp_path / f"{kind}-*.{kind}")
        same(dask_cluster.fit(machine(), pattern, client=client), expected)


SEEDS = range(4)  # of AMM they are 0.3 points apart, in one process as well


@functools.cache
def sequential_error():
    X, y, X_test, y_test = libsvm_set("ijcnn1")
    models = [pp.AMMClassifier(random_state=seed).fit(X, y) for seed in SEEDS]
    return np.mean([1 - model.score(X_test, y_test) for model in models])


@pytest.mark.parametrize(
    ("n_partitions", "is_sorted"), [(2, False), (8, True)], ids=["2-mixed", "8-sorted"]
)
def test_two_learners_are_as_good_as_one_process(client, n_partitions, is_sorted):
    """A short one of `benchmarks dask_accuracy`."""
    X, y, X_test, y_test = libsvm_set("ijcnn1")
    order = np.random.default_rng(0).permutation(y.size)
    order = order[np.argsort(y[order], kind="stable")] if is_sorted else order
    parts = [delayed((X[part], y[part])) for part in np.array_split(order, n_partitions)]
    if is_sorted:
        parts = dask_cluster.mix_rows(parts)
    held, errors = client.persist(parts), []
    for seed in SEEDS:
        estimator = pp.AMMClassifier(random_state=seed)
        dask_cluster.fit(estimator, held, client=client, learners=2)
        errors.append(1 - estimator.score(X_test, y_test))
    assert np.mean(errors) <= sequential_error() + 0.002


def test_mixing_more_often_keeps_count(client):
    """Of passes, steps and rows, whatever the partitions are."""
    X, y = rows()
    for n_partitions, mixes in ((2, 4), (3, 4), (6, 2), (5, 3), (8, 1), (4, 1 / 2), (2, 1 / 5)):
        estimator = machine()
        dask_cluster.fit(
            estimator, *arrays(X, y, n_partitions), client=client, learners=2, mixes=mixes
        )
        assert estimator.n_iter_ == 3
        assert estimator.n_steps_ == pytest.approx(3 * 300, rel=0.25)  # of a learner
    one = dask_cluster.fit(machine(), *arrays(X, y, 1), client=client, learners=2, mixes=4)
    same(one, machine().fit(X, y))


def long_training(**settings):
    """Its steps see rows that are written out."""
    return pp.SoftPlanesClassifier(**{"random_state": 1, "max_iter": 30, "n_planes": 4} | settings)


def test_a_long_training_is_mixed_less_often_and_goes_on_where_it_stopped(client, tmp_path):
    X, y = rows(1200)
    parts, path, passes = arrays(X, y, 4), tmp_path / "model", []

    def note(estimator):
        passes.append(estimator.n_iter_)
        if len(passes) == 20:
            raise KeyboardInterrupt

    whole = dask_cluster.fit(long_training(), *parts, client=client, callback=note)
    assert passes == list(range(2, 31, 2))
    with pytest.raises(KeyboardInterrupt):
        dask_cluster.fit(
            long_training(), *parts, client=client, callback=note, checkpoint=path
        )  # fmt: skip
    half = pp.load(path)
    assert half.n_iter_ == 10
    same(dask_cluster.fit(half, *parts, client=client, resume=True), whole)
    assert whole.score(X, y) > 0.9


def test_rows_that_are_kept_as_they_are_seen_change_nothing(client, monkeypatch):
    """And neither does a learner that makes its passes in one task, or in many."""
    parts, kept, models = arrays(*rows(1200), 4), [], []

    def spy(rows, *words):
        made = dask_rounds.rows_as_seen(rows, *words)
        kept.append(made is not rows)
        return made

    monkeypatch.setattr(dask_cluster, "rows_as_seen", spy)
    for n_bytes in (dask_rounds.LEG_BYTES, 0):
        monkeypatch.setattr(dask_rounds, "LEG_BYTES", n_bytes)
        made = long_training(max_iter=5, n_estimators=2, class_weight={0: 2.0})
        models.append(dask_cluster.fit(made, *parts, client=client, learners=2, mixes=1 / 2))
    assert kept == [True, False]
    same(*models)


def test_learners_learn_what_is_near_unless_their_number_is_given(client):
    workers = sorted(client.nthreads())

    def learned_by(places, learners):
        parts = [
            client.persist(made(75 * k, 75 * k + 75), workers=[workers[place]])
            for k, place in enumerate(places)
        ]
        wait(parts)
        loaded = dask_rows.load_rows(client, dask_partitions.partitions_of(parts), 2)
        (one,) = dask_rounds.plan_of(loaded, learners, 1, 3).rounds
        return [[part.number for part in learner.parts] for learner in one]

    neighbours = [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert learned_by([0, 0, 0, 0, 1, 1, 1, 1], None) == neighbours
    assert learned_by([1, 0, 1, 0, 1, 0, 1, 0], None) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert learned_by([1, 0, 1, 0, 1, 0, 1, 0], 2) == neighbours
    assert learned_by([1, 0, 1, 1, 1, 1, 1, 1], None) == neighbours  # near would be too uneven


@pytest.mark.parametrize(
    ("n_passes", "mixes"), [(1, 4), (5, 4), (12, 1), (20, 1), (40, 1 / 2), (60, 1 / 3)]
)
def test_learners_are_mixed_20_times_at_most(client, n_passes, mixes):
    parts = dask_partitions.partitions_of(*arrays(*rows(), 8))
    loaded = dask_rows.load_rows(client, parts, 2)
    plan = dask_rounds.plan_of(loaded, 2, None, n_passes)
    assert (len(plan.rounds), plan.n_at_once) == (max(1, mixes), max(1, round(1 / mixes)))
    made = [k for first, after in plan.stretches(0, n_passes) for k in range(first, after)]
    assert made == list(range(n_passes))
    assert dask_rounds.plan_of(loaded, 1, None, n_passes).n_at_once == 1


# ---- what goes wrong ---------------------------------------------------------------------


def when_learning(client, worker, act):
    """Call `act` as soon as the worker, or any, has a learner's task at hand; in a thread."""

    def watch():
        for _ in range(3000):
            at_hand = client.processing()
            keys = (
                at_hand.get(worker, ()) if worker else [k for one in at_hand.values() for k in one]
            )
            if any("_learn" in str(key) for key in keys):
                act()
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_killed_worker_changes_nothing(client):
    n = 60_000
    parts = [made(start, start + n // 4, n) for start in range(0, n, n // 4)]
    undisturbed = dask_cluster.fit(machine(), parts, client=client, learners=2)
    processes = client.run(os.getpid)
    victim = sorted(processes)[0]
    killers = []

    def kill(estimator):
        if estimator.n_iter_ == 1:
            words = victim, lambda: os.kill(processes[victim], signal.SIGKILL)
            killers.append(when_learning(client, *words))

    disturbed = dask_cluster.fit(machine(), parts, client=client, learners=2, callback=kill)
    killers[0].join()
    assert processes[victim] not in client.run(os.getpid).values()  # it was hit
    same(disturbed, undisturbed)
    client.wait_for_workers(2)


def test_ctrl_c_leaves_the_last_round_and_a_checkpoint_to_resume_from(client, tmp_path):
    n = 60_000
    parts = [made(start, start + n // 2, n) for start in (0, n // 2)]
    undisturbed = dask_cluster.fit(machine(max_iter=4), parts, client=client)
    estimator, path = machine(max_iter=4), tmp_path / "model"

    def interrupt(estimator):
        if estimator.n_iter_ == 2:
            when_learning(client, None, lambda: os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        dask_cluster.fit(estimator, parts, client=client, checkpoint=path, callback=interrupt)
    assert estimator.n_iter_ == 2
    two = dask_cluster.fit(machine(max_iter=4), parts, client=client, rounds=2)
    same(estimator, two)
    same(pp.load(path), two)
    resumed = dask_cluster.fit(pp.load(path), parts, client=client, resume=True)
    same(resumed, undisturbed)


def test_a_straggler_changes_nothing(client):
    """Work that waits may be moved to an idle worker; the result is the same."""
    undisturbed = dask_cluster.fit(
        machine(), [made(start, start + 100) for start in range(0, 600, 100)], client=client
    )
    slow = [delayed(late)(start, start + 100, 0.5 * (start == 0)) for start in range(0, 600, 100)]
    same(dask_cluster.fit(machine(), slow, client=client), undisturbed)


def late(start, end, seconds):
    time.sleep(seconds)
    X, y = rows()
    return X[start:end], y[start:end]


def test_a_worker_without_memory_is_a_sentence_that_names_the_partition():
    X, y = rows()
    parts = [delayed((X, y)), delayed(greedy)(X, y)]
    estimator = machine()
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0",
            memory_limit="600MB", silence_logs="CRITICAL",
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(ConnectionError, match=r"at partition \d, or one .*beside.*memory"),
    ):  # fmt: skip
        dask_cluster.fit(estimator, parts, client=client)
    assert not hasattr(estimator, "classes_")


def greedy(X, y):
    """More and more memory, until somebody minds; but not for ever."""
    held = []
    for _ in range(40):
        held.append(np.ones(25_000_000 // 8))
        time.sleep(0.1)
    return X, y


def test_empty_partitions_and_partitions_of_one_class_are_no_trouble(client):
    X, y = rows()
    order = np.argsort(y, kind="stable")
    cuts = [order[:0], order[:100], order[:0], order[100:400], order[400:], order[:0]]
    parts = [delayed((X[cut], y[cut])) for cut in cuts]
    full = [delayed((X[cut], y[cut])) for cut in cuts if cut.size]
    with pytest.warns(UserWarning, match="Partitions 1 to 1.*only the class 0.*mix_rows"):
        one = dask_cluster.fit(machine(), parts, client=client, learners=3)
    with pytest.warns(UserWarning, match="mix_rows"):
        same(one, dask_cluster.fit(machine(), full, client=client, learners=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        dask_cluster.fit(machine(), dask_cluster.mix_rows(parts), client=client)
    with pytest.raises(ValueError, match="no rows in any of its 1 partitions"):
        dask_cluster.fit(machine(), parts[:1], client=client)
    with pytest.raises(ValueError, match="at least 2 classes"):
        dask_cluster.fit(machine(), parts[:2], client=client)


def test_a_file_that_cannot_be_read_is_named(client, tmp_path):
    X, y = rows()
    write(tmp_path / "a.libsvm", [Chunk(X, y)])
    (tmp_path / "b.libsvm").write_text("1 1:1\n1 2:x\n")
    with pytest.raises(pp.DataError, match=r"b\.libsvm, line 2"):
        dask_cluster.fit(machine(), str(tmp_path / "*.libsvm"), client=client)
    gone = [str(tmp_path / "a.libsvm"), str(tmp_path / "gone.libsvm")]
    with pytest.raises(pp.DataError, match=r"gone\.libsvm"):
        dask_cluster.fit(machine(), gone, client=client)
    (tmp_path / "c.csv").write_text("a,b,label\n1,2,0\n2,4,1\n" + "3,5,1\n" * 300)
    (tmp_path / "d.csv").write_text("a,c,label\n1,2,0\n2,3,1\n3,4,1\n")
    with pytest.raises(pp.DataError, match=r"d\.csv.*'b'"):
        dask_cluster.fit(machine(), str(tmp_path / "[cd].csv"), client=client)


def test_a_partition_that_cannot_be_used_is_numbered_and_leaves_the_estimator(client):
    X, y = rows()
    estimator = machine()
    parts = [delayed((X, y)), delayed((X, y[:-1]))]
    with pytest.raises(ValueError, match="Partition 1 cannot be used: X has 600 rows"):
        dask_cluster.fit(estimator, parts, client=client)
    with pytest.raises(ValueError, match="Partition 1 has text or numbers"):
        dask_cluster.fit(estimator, [parts[0], delayed((X, y.astype(str)))], client=client)
    with pytest.raises(ValueError, match="Partition 1 has 5 columns, and partition 0 has 6"):
        dask_cluster.fit(estimator, [parts[0], delayed((X[:, 1:], y))], client=client)
    with pytest.raises(ValueError, match="Partition 1 is of another kind than partition 0"):
        dask_cluster.fit(estimator, [parts[0], delayed((sp.csr_matrix(X), y))], client=client)
    gaps = np.where(X == 4, np.nan, X)
    with pytest.raises(ValueError, match=r"Partition 1 cannot be used: .*NaN"):
        dask_cluster.fit(estimator, [parts[0], delayed((gaps, y))], client=client)
    with pytest.raises(ValueError, match=r"Partition 0 cannot be used: .*NaN.*dataframes"):
        dask_cluster.fit(estimator, [delayed((gaps, y)), parts[0]], client=client)
    assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (pp.GAMMClassifier(), "clones"),
        (pp.SAMMClassifier(), "penalty"),
        (machine(mode="batch"), "'online'"),
        (machine(early_stopping=True), "evaluate"),
        (machine(warm_start=True), "resume=True"),
        (pp.SoftPlanesClassifier(early_stopping=True), "evaluate"),
        (pp.CPMClassifier(max_steps=10), "rounds"),
    ],
)
def test_what_cannot_be_mixed_is_refused_with_a_reason(client, estimator, words):
    with pytest.raises((TypeError, ValueError), match=words):
        dask_cluster.fit(estimator, *arrays(*rows(), 2), client=client)


def test_input_that_is_cut_otherwise_is_refused(client):
    X, y = rows()
    of_rows, of_labels = arrays(X, y, 2)
    fit = dask_cluster.fit
    with pytest.raises(ValueError, match="between its columns"):
        fit(machine(), of_rows.rechunk((300, 3)), of_labels, client=client)
    with pytest.raises(ValueError, match="other rows"):
        fit(machine(), of_rows, of_labels.rechunk((200, 400)), client=client)
    with pytest.raises(ValueError, match="dask collection"):
        fit(machine(), of_rows, y, client=client)
    with pytest.raises(TypeError, match="names of files"):
        fit(machine(), X, client=client)
    with pytest.raises(ValueError, match="nothing to resume"):
        fit(machine(), of_rows, of_labels, client=client, resume=True)
    with pytest.raises(ValueError, match="at least 1"):
        fit(machine(), of_rows, of_labels, client=client, rounds=0)
    for mixes in (0, -1, 1.5, 0.4):
        with pytest.raises(ValueError, match=r"mixes=.*1/2 in every second"):
            fit(machine(), of_rows, of_labels, client=client, mixes=mixes)
    fitted = machine().fit(X[:, :5], np.minimum(y, 1))
    with pytest.raises(ValueError, match=r"does not: \[2\]"):
        fit(fitted, of_rows, of_labels, client=client, resume=True)
    with pytest.raises(ValueError, match="X has 6 columns, and the model to resume 5"):
        fit(fitted, of_rows, da.minimum(of_labels, 1), client=client, resume=True)


def test_nothing_is_left_of_an_earlier_fit(client):
    X, y = rows()
    estimator = machine().fit(pd.DataFrame(X, columns=list("abcdef")), y)
    dask_cluster.fit(estimator, *arrays(X, y, 1), client=client)
    same(estimator, machine().fit(X, y))
    assert not hasattr(estimator, "feature_names_in_")


# ---- files in ranges ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz"])
def test_tables_in_files_are_laid_out_and_cut(client, tmp_path, monkeypatch, kind):
    """Text with line ends in it, gaps, and words as labels; model files know the columns."""
    X, y = rows(3000)
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["a"] = np.array(["red", 'gr"een', "bl\nue", "black, or", "white"])[X[:, 0].astype(int)]
    table.loc[::7, "b"] = np.nan
    table["label"] = np.array(["no", "yes", "maybe"])[y]
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        table.to_parquet(path, row_group_size=500)
    else:
        table.to_csv(path, index=False)
    monkeypatch.setattr(dask_partitions, "LEAST_RANGE_BYTES", 1000)
    whole = pp.read(path)
    settings = {"random_state": 1, "max_iter": 3, "shuffle": False}
    expected = pp.SoftPlanesClassifier(**settings).fit(*whole)
    for n_learners in (1, 4):
        made = pp.SoftPlanesClassifier(**settings)
        dask_cluster.fit(made, path, client=client, learners=n_learners, rounds=3)
        if n_learners == 1:
            np.testing.assert_array_equal(made.planes_, expected.planes_)
        known = pp.stream(path)
        known.all_chunks()
        assert made.layout_.feature_names == known.layout.feature_names
        pp.save(made, tmp_path / "model")
        again = pp.load(tmp_path / "model")
        np.testing.assert_array_equal(
            again.predict(table.drop(columns="label")), made.predict(whole[0])
        )
        assert dask_cluster.evaluate(made, path, client=client).error == pytest.approx(
            1 - made.score(*whole)
        )


def test_a_large_file_is_cut_for_the_learners(client, tmp_path, monkeypatch):
    X, y = rows(3000)
    X[:, 0] += 1
    path = tmp_path / "rows.libsvm"
    write(path, [Chunk(X, y)])
    monkeypatch.setattr(dask_partitions, "LEAST_RANGE_BYTES", 1000)
    parts = dask_partitions.partitions_of(str(path), n_wanted=6)
    assert len(parts) == 6
    chunks = client.gather(client.compute([part.chunk for part in parts]))
    np.testing.assert_array_equal(np.vstack([one.X.toarray() for one in chunks]), X)
    estimator = machine(shuffle=False)
    dask_cluster.fit(estimator, str(path), client=client, learners=1)
    same(estimator, machine(shuffle=False).fit(X, y))


# ---- rows stay ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        machine(max_iter=9),
        pp.SoftPlanesClassifier(random_state=1, max_iter=9, n_planes=64, compress=False),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_models_travel_and_rows_do_not(client, estimator):
    """Two models a worker and round at most, counting what the client hands to the first worker."""
    parts = [delayed(wide)(start, start + 2500) for start in range(0, 20_000, 2500)]
    totals, on_wire, sizes = [bytes_sent(client)], [], []
    client.run(bytes_on_wire)
    client.amm.stop()  # Dask's search for spare copies, every 2 s, may hit one that is needed next

    def note(estimator):
        totals.append(bytes_sent(client))
        on_wire.append(sum(client.run(bytes_on_wire).values()))
        sizes.append(packed(estimator).count_bytes())

    dask_cluster.fit(clone(estimator), parts, client=client, callback=note, mixes=1)
    client.amm.start()
    assert max(on_wire[1:]) < wide(0, 2500)[0].nbytes  # less than one partition
    between = slice(1, -1)  # before the first round rows are sampled, after the last one used
    counted, sent = np.diff(totals)[between], np.array(on_wire)[between]
    np.testing.assert_allclose(sent, counted, rtol=0.1)  # that much Dask says about them
    from_client, after = np.array(sizes)[:-2], np.array(sizes)[between]
    assert ((sent + from_client) / np.maximum(from_client, after) <= 2 * 2).all()


def bytes_on_wire(dask_worker):
    """That a worker has sent to others and to clients since this was last asked."""
    sent = [one["compressed"] for one in dask_worker.transfer_outgoing_log]
    dask_worker.transfer_outgoing_log.clear()
    return sum(sent)


def wide(start, end):
    """So that models are larger than what Dask says about them."""
    X, y = rows(20_000)
    return np.hstack([X] * 20)[start:end], y[start:end]


def test_rows_that_are_on_workers_already_stay_there(client):
    X, y = rows(20_000)
    wide = np.hstack([X] * 20)
    held = client.persist(arrays(wide, y, 8))
    wait(held)
    before = bytes_sent(client)
    dask_cluster.fit(machine(max_iter=1), *held, client=client)
    assert bytes_sent(client) - before < wide.nbytes / 8  # less than one partition


# ---- a look at the rows ------------------------------------------------------------------


def test_a_sample_comes_from_all_partitions(client):
    X, y = rows(3000)
    y = np.sort(y)
    y[-3:] = 7
    some, labels = dask_cluster.sample(*arrays(X, y, 5), n_rows=600, client=client)
    assert some.shape == (labels.size, 6)
    assert 600 <= labels.size <= 720
    assert np.count_nonzero(labels == 7) == 3
    everything = dask_cluster.sample(*arrays(X, y, 5), n_rows=9000, client=client)
    np.testing.assert_array_equal(everything[0], X)
    np.testing.assert_array_equal(everything[1], y)
    with pytest.raises(ValueError, match="at least 1"):
        dask_cluster.sample(*arrays(X, y, 5), n_rows=0, client=client)


def test_searches_of_scikit_learn_spread_over_the_workers(client):
    X, y = rows()
    search = GridSearchCV(machine(), {"alpha": [1e-2, 1e-4]}, cv=2, n_jobs=-1)
    with joblib.parallel_config("dask", client=client):
        found = clone(search).fit(X, y)
    expected = search.set_params(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


# ---- prediction --------------------------------------------------------------------------


def test_prediction_and_evaluation_are_those_of_one_process(client, tmp_path):
    X, y = rows()
    estimator = machine().fit(X, y)
    of_rows, of_labels = arrays(X, y, 3)
    expected = estimator.predict(X)
    called = dask_cluster.predict(estimator, of_rows)
    assert called.chunks == of_labels.chunks
    np.testing.assert_array_equal(called.compute(), expected)
    parts = [delayed((X[:10], y[:10])), delayed((X[:0], y[:0])), delayed((X[10:], y[10:]))]
    made = client.gather(client.compute(dask_cluster.predict(estimator, parts)))
    np.testing.assert_array_equal(np.concatenate(made), expected)
    write(tmp_path / "rows.libsvm", [Chunk(X, y)])
    for given in ((of_rows, of_labels), (parts,), (str(tmp_path / "rows.libsvm"),)):
        found = dask_cluster.evaluate(estimator, *given, client=client)
        assert found.n_rows == y.size
        assert found.error == pytest.approx(np.mean(expected != y))
        np.testing.assert_array_equal(found.confusions.sum(axis=1), np.bincount(y))
    with pytest.raises(ValueError, match="no labels"):
        dask_cluster.evaluate(estimator, of_rows, client=client)


def test_tables_with_text_and_gaps_are_laid_out_by_a_sample(client):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["a"] = np.array(["red", "green", "blue", "black", "white"])[X[:, 0].astype(int)]
    table.loc[::7, "b"] = np.nan
    labels = pd.Series(np.array(["no", "yes", "maybe"])[y])
    expected = machine().fit(table, labels)
    for n_partitions in (1, 3):
        frame = dd.from_pandas(table, npartitions=n_partitions)
        answers = dd.from_pandas(labels, npartitions=n_partitions)
        estimator = dask_cluster.fit(machine(), frame, answers, client=client)
        assert estimator.layout_.feature_names == expected.layout_.feature_names
        if n_partitions == 1:
            same(estimator, expected)
        called = dask_cluster.predict(estimator, frame).compute()
        np.testing.assert_array_equal(called, estimator.predict(table))
