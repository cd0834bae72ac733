"""A path of alphas across a cluster: fits of the cluster, judged by rows that they left out."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.estimator.online_classifier import training_of
from polyplane.tuning.held_out import parts_of

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

import dask.dataframe as dd
from dask.delayed import delayed
from distributed import Client, LocalCluster, wait

from polyplane.backends import dask_cluster
from polyplane.backends.dask_cluster import bytes_sent
from tests.backends.small_rows import arrays, machine, rows

ALPHAS = [1e-1, 1e-3, 1e-5]


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def same_path(one, other):
    for name in ("alphas", "errors", "standard_errors", "fold_errors", "passes", "curves"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for a, b in zip(one.models, other.models, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            same_model(a, b)


def same_model(one, other):
    np.testing.assert_array_equal(one.planes_, other.planes_)
    np.testing.assert_array_equal(one.intercepts_, other.intercepts_)
    assert one.get_params() == other.get_params()
    assert (one.n_steps_, one.n_iter_) == (other.n_steps_, other.n_iter_)


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        machine(max_iter=5),
        machine(class_weight={0: 0.0, 1: 3.0}),
        pp.PegasosClassifier(random_state=1, max_iter=3, multi_class="ovo"),
        pp.CPMClassifier(random_state=1, max_iter=3, entropy=0.0, n_planes=4),
        pp.MMClassifier(random_state=1, max_iter=3, init="kmeans"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_one_partition_is_the_path_of_one_process(client, estimator, halving):
    X, y = rows()
    how = {"alphas": ALPHAS, "cv": 3, "halving": halving}
    expected = pp.alpha_path(estimator, X, y, **how)
    same_path(dask_cluster.alpha_path(estimator, *arrays(X, y, 1), client=client, **how), expected)


@pytest.mark.parametrize("n_partitions", [2, 5])
def test_models_are_those_of_fits(client, n_partitions):
    parts = arrays(*rows(), n_partitions)
    path = dask_cluster.alpha_path(machine(), *parts, alphas=ALPHAS, cv=2, client=client)
    for alpha, model in zip(ALPHAS, path.models, strict=True):
        expected = dask_cluster.fit(machine(alpha=alpha), *parts, client=client)
        same_model(model, expected)
        np.testing.assert_array_equal(model.history_, expected.history_)


def test_errors_are_those_of_fits_without_the_fold(client):
    """Unshuffled, what a model makes of rows left out is what a fit makes of the others."""
    X, y = rows()
    estimator, cuts = machine(shuffle=False, average=False), np.array_split(np.arange(600), 3)
    pieces = [delayed((X[cut], y[cut])) for cut in cuts]
    path = dask_cluster.alpha_path(
        estimator, pieces, alphas=ALPHAS, cv=3, client=client, learners=3, mixes=1
    )
    seed = training_of(path.models[0]).seed
    parts = [parts_of(y[cut], 3, [seed, k] if k else seed) for k, cut in enumerate(cuts)]
    part = np.concatenate(parts)
    for k, alpha in enumerate(ALPHAS):
        for fold in range(3):
            kept = [delayed((X[cut][own != fold], y[cut][own != fold]))
                    for cut, own in zip(cuts, parts, strict=True)]  # fmt: skip
            one = clone(estimator).set_params(alpha=alpha)
            dask_cluster.fit(one, kept, client=client, learners=3, mixes=1)
            wrong = one.predict(X[part == fold]) != y[part == fold]
            assert path.fold_errors[k, fold, 0] == np.mean(wrong)
    assert path.errors == pytest.approx(
        [np.average(each[:, 0], weights=np.bincount(part)) for each in path.fold_errors]
    )


def test_what_is_clearly_behind_goes_no_further(client):
    parts = arrays(*rows(3000), 4)
    how = {"alphas": [1e3, 1e-3, 1e-4], "cv": 3, "client": client}
    whole = dask_cluster.alpha_path(machine(max_iter=4), *parts, **how)
    halved = dask_cluster.alpha_path(machine(max_iter=4), *parts, halving=True, **how)
    assert halved.models[0] is None
    assert np.isnan(halved.errors[0])
    for k in np.flatnonzero(~np.isnan(halved.errors)):
        np.testing.assert_array_equal(halved.fold_errors[k], whole.fold_errors[k])
        same_model(halved.models[k], whole.models[k])


def test_seeds_are_orders_of_the_same_folds(client):
    parts = arrays(*rows(), 2)
    path = dask_cluster.alpha_path(
        machine(random_state=None), *parts, alphas=ALPHAS[:2], cv=2, n_seeds=3, client=client
    )
    assert path.fold_errors.shape == (2, 2, 3)
    assert not np.isnan(path.fold_errors).any()
    assert len({*path.fold_errors.ravel().tolist()}) > 1
    assert all(model.random_state is None for model in path.models)


def test_tables_and_sparse_files_are_taken_as_by_fit(client, tmp_path):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["a"] = np.array(["red", "green", "blue", "black", "white"])[X[:, 0].astype(int)]
    labels = pd.Series(np.array(["no", "yes", "maybe"])[y])
    given = dd.from_pandas(table, npartitions=2), dd.from_pandas(labels, npartitions=2)
    path = dask_cluster.alpha_path(machine(), *given, alphas=ALPHAS[1:], cv=2, client=client)
    expected = dask_cluster.fit(machine(alpha=ALPHAS[1]), *given, client=client)
    np.testing.assert_array_equal(path.models[0].predict(table), expected.predict(table))
    assert path.errors.max() < 0.5

    X[300:, 5] = 0  # the second file has fewer columns
    for k, some in enumerate((slice(300), slice(300, None))):
        write(tmp_path / f"{k}.libsvm", [Chunk(sp.csr_matrix(X[some]), y[some])])
    path = dask_cluster.alpha_path(
        machine(), str(tmp_path / "*.libsvm"), alphas=ALPHAS[1:], cv=2, client=client
    )
    expected = dask_cluster.alpha_path(
        machine(), *arrays(X, y, 2), alphas=ALPHAS[1:], cv=2, client=client
    )
    same_path(path, expected)


def test_rows_stay_where_they_are(client):
    X, y = rows(20_000)
    wide = np.hstack([X] * 20)
    held = client.persist(arrays(wide, y, 2))
    wait(held)
    before = bytes_sent(client)
    path = dask_cluster.alpha_path(
        machine(max_iter=1), *held, alphas=ALPHAS[:2], cv=2, client=client, mixes=1
    )
    assert not np.isnan(path.errors).any()
    assert bytes_sent(client) - before < wide.nbytes / 2  # less than one partition


def test_what_has_no_path_is_refused(client):
    parts = arrays(*rows(), 2)
    for estimator, words in (
        (pp.PolyplaneClassifier(), "hyperplane machines that take an alpha"),
        (pp.LaSVMClassifier(), "hyperplane machines that take an alpha"),
        (pp.GAMMClassifier(), "clones"),
        (machine(mode="batch"), "'online'"),
        (machine(early_stopping=True), "early_stopping=False"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            dask_cluster.alpha_path(estimator, *parts, client=client)
    for how, words in (
        ({"alphas": [1e-3, 1e-3]}, "twice"),
        ({"cv": 1}, "at least 2 folds"),
        ({"learners": 0}, "at least 1"),
    ):
        with pytest.raises(ValueError, match=words):
            dask_cluster.alpha_path(machine(), *parts, client=client, **how)
