"""Rows that are made, learned and let go of: the same as `partial_fit`, and as rounds by hand."""

import itertools
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.files.saving import packed, unpacked
from polyplane.estimator.learners.travelling_models import (
    Journey,
    Moment,
    has_begun,
    mixed_shares,
    next_model,
)

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from dask.delayed import delayed
from distributed import Client, LocalCluster

from polyplane.backends import dask_cluster, dask_stream
from polyplane.backends.dask_cluster import bytes_sent
from tests.backends.small_rows import rows, same

CLASSES = np.arange(3)


def machine(**more):
    return pp.AMMClassifier(**{"random_state": 1, "prune_interval": 100} | more)


def cut(X, y, ends):
    """Parts, some of which may be empty."""
    bounds = [0, *sorted(ends), len(y)]
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]


def by_hand(model, parts, n_learners, every, n_first):
    """Rounds as the first page of `dask_stream` has them, in this process."""
    model.set_params(shuffle=False)
    left, begun = [], False
    for X, y in parts:
        while not begun and len(y):
            model.partial_fit(X[:n_first], y[:n_first], classes=CLASSES)
            begun, X, y = has_begun(model._training), X[n_first:], y[n_first:]
        left += [(X, y)] if begun else []
    parts = left
    now = packed(model)
    starts = range(0, len(parts), n_learners * every)
    for k, start in enumerate(starts):
        some = parts[start : start + n_learners * every]
        groups = np.array_split(np.arange(len(some)), min(n_learners, len(some)))
        shares = []
        for group in groups:
            journey = Journey(now)
            for place in group:
                if len(some[place][1]):
                    journey.visit(*some[place])
            shares.append(journey.shares())
        if len(shares) == 1:
            now = journey.along().model
            continue
        while len(shares) > 1:
            pairs = [shares[k : k + 2] for k in range(0, len(shares), 2)]
            shares = [mixed_shares(*two, 0.9) if len(two) == 2 else two[0] for two in pairs]
        now = next_model(now, shares[0], Moment(k, len(starts), 0))
    return unpacked(now)


MACHINES = {
    "amm": machine,
    "pegasos, pairs": lambda: pp.PegasosClassifier(random_state=1, multi_class="ovo"),
    "mm": lambda: pp.MMClassifier(random_state=1),
    "passive-aggressive": lambda: pp.PassiveAggressiveClassifier(random_state=1, average=False),
    "amm, weighted, two models": lambda: machine(class_weight={1: 2.0}, n_estimators=2),
}
STORAGE = {
    "dense": np.asarray,
    "bytes": lambda X: X.astype(np.uint8),
    "sparse": sp.csr_matrix,
}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_is_rounds_by_hand_and_one_learner_is_partial_fit(client, data):
    name = data.draw(st.sampled_from(sorted(MACHINES)))
    stored = STORAGE[data.draw(st.sampled_from(sorted(STORAGE)))]
    n_learners, every = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    X, y = rows(seed=data.draw(st.integers(0, 5)))
    ends = data.draw(st.lists(st.integers(0, 600), max_size=9))
    parts = [(stored(some), labels) for some, labels in cut(X, y, ends)]
    made = dask_cluster.partial_fit(
        MACHINES[name](), [delayed(part) for part in parts], classes=CLASSES, client=client,
        learners=n_learners, every=every,
    )  # fmt: skip
    n_first = dask_stream.FIRST_ROWS
    same(made, by_hand(MACHINES[name](), parts, n_learners, every, n_first))
    if n_learners == 1:
        alone = MACHINES[name]()
        for part in parts:
            if len(part[1]):
                alone.partial_fit(*part, classes=CLASSES)
        same(made, alone)


@delayed
def first_rows_and_more(start, end):
    return long_rows(start, end)


def long_rows(start, end):
    X, y = rows(40_000)
    return X[start:end], y[start:end]


def test_first_rows_are_learned_once_and_by_one(client):
    """More of them than the first that one learner learns."""
    bounds = list(range(0, 40_001, 5_000))
    bounds.remove(5_000)
    pairs = list(itertools.pairwise(bounds))
    parts = [first_rows_and_more(*pair) for pair in pairs]
    rounds = []
    made = dask_cluster.partial_fit(
        machine(), parts, classes=CLASSES, client=client, learners=2, every=1,
        callback=lambda model: rounds.append(model.n_steps_),
    )  # fmt: skip
    here = [long_rows(*pair) for pair in pairs]
    same(made, by_hand(machine(), here, 2, 1, dask_stream.FIRST_ROWS))
    assert len(rounds) == 4


def test_goes_on_where_it_stopped(client, tmp_path):
    X, y = rows()
    parts = [delayed(part) for part in cut(X, y, [100, 200, 300, 400])]
    whole = dask_cluster.partial_fit(
        machine(), parts, classes=CLASSES, client=client, learners=1, every=2
    )
    half = dask_cluster.partial_fit(
        machine(), parts[:2], classes=CLASSES, client=client, learners=1,
        checkpoint=tmp_path / "model",
    )  # fmt: skip
    for model in (half, pp.load(tmp_path / "model")):
        same(dask_cluster.partial_fit(model, parts[2:], client=client, learners=1), whole)
        assert model.shuffle  # as it was set


@pytest.mark.parametrize("name", ["rows.libsvm", "rows.csv"])
def test_files_and_arrays_are_the_same_rows(client, tmp_path, monkeypatch, name):
    X, y = rows(3000)
    write(tmp_path / name, [Chunk(X, y)])
    monkeypatch.setattr("polyplane.backends.dask_partitions.LEAST_RANGE_BYTES", 1 << 12)
    monkeypatch.setattr("polyplane.backends.dask_partitions.RANGE_BYTES", 1 << 14)
    of_file = dask_cluster.partial_fit(
        machine(), str(tmp_path / name), classes=CLASSES, client=client, learners=1
    )
    X_read, y_read = pp.read(tmp_path / name)[:2]
    expected = machine().partial_fit(X_read, y_read, classes=CLASSES)
    np.testing.assert_allclose(of_file.planes_, expected.planes_, rtol=1e-5)
    assert of_file.n_steps_ == 3000
    arrays = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    made = dask_cluster.partial_fit(machine(), *arrays, classes=CLASSES, client=client, learners=1)
    same(made, machine().partial_fit(X, y, classes=CLASSES))


@delayed
def perhaps_lost(marker, part):
    """The first worker that makes these rows is gone."""
    if not os.path.exists(marker):
        with open(marker, "x"):
            os.kill(os.getpid(), signal.SIGKILL)
    return part


def test_a_worker_that_is_lost_changes_nothing(tmp_path):
    X, y = rows()
    parts = cut(X, y, [150, 300, 450])
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        some = [delayed(part) for part in parts[:3]]
        made = dask_cluster.partial_fit(
            machine(), [*some, perhaps_lost(str(tmp_path / "marker"), parts[3])],
            classes=CLASSES, client=client, learners=2, every=1,
        )  # fmt: skip
    assert (tmp_path / "marker").exists()
    same(made, by_hand(machine(), parts, 2, 1, dask_stream.FIRST_ROWS))


@delayed
def wide_rows(seed, n=6000):
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 255, (n, 400), dtype=np.uint8)
    return X, (X[:, 0] > 127).astype(int)


def test_rows_do_not_travel(client):
    """What workers hand out is models, in every round: at most two a worker."""
    parts, sent = [wide_rows(seed) for seed in range(12)], [0]
    model, sizes = machine(alpha=100.0), []

    def note(model):
        sent.append(bytes_sent(client))
        sizes.append(packed(model).count_bytes())

    sent[0] = bytes_sent(client)
    dask_cluster.partial_fit(
        model, parts, classes=[0, 1], client=client, learners=2, every=2, callback=note
    )
    assert len(sizes) == 3
    assert (np.diff(sent) <= 2 * 2 * np.array(sizes)).all()
    assert sent[-1] - sent[0] < 6000 * 400  # a single partition is more


@pytest.mark.parametrize(
    ("estimator", "X", "more", "words"),
    [
        (machine(), None, {"classes": None}, "give classes"),
        (machine(alpha="auto"), None, {}, 'alpha="auto" needs all rows'),
        (pp.SoftPlanesClassifier(), None, {}, r"dask_cluster\.fit"),
        (pp.GAMMClassifier(), None, {}, "clones carry"),
        (machine(), None, {"every": 0}, "at least 1"),
        (machine(), "unknown label", {}, r"Partition 1 cannot be used: y holds labels that are"),
        (machine(), "narrow", {}, "Partition 1 cannot be used"),
        (machine(), "empty", {}, "no rows in any of its 2 partitions"),
        (machine(), "frame", {}, "dask_cluster.fit learns"),
        (machine(), "frames", {}, "rows are a table"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(client, estimator, X, more, words):
    first, labels = rows(60)
    inputs = {
        None: [delayed((first, labels))],
        "unknown label": [delayed((first, labels)), delayed((first, labels + 1))],
        "narrow": [delayed((first, labels)), delayed((first[:, :3], labels))],
        "empty": [delayed((first[:0], labels[:0]))] * 2,
        "frame": dd.from_pandas(pd.DataFrame(first), npartitions=2),
        "frames": [delayed((pd.DataFrame(first), labels))],
    }
    call = {"classes": CLASSES, "client": client, "learners": 2} | more
    with pytest.raises((TypeError, ValueError), match=words):
        dask_cluster.partial_fit(estimator, inputs[X], **call)


def test_rows_that_workers_hold_are_for_fit(client):
    parts = client.persist([delayed(rows)(60)])
    with pytest.raises(ValueError, match="on the workers already"):
        dask_cluster.partial_fit(machine(), parts, classes=CLASSES, client=client)
