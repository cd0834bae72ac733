"""An exploration of rows on a cluster is that of the same rows here."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import polyplane as pp
from polyplane.data.chunks import Chunk
from polyplane.data.writing import write
from polyplane.tuning.budget import Budget

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

import dask.array as da
import dask.dataframe as dd
from dask.delayed import delayed
from distributed import Client, LocalCluster, wait

from polyplane.backends import dask_cluster, dask_look
from polyplane.backends.dask_cluster import bytes_sent

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def rows(n=500, n_columns=4):
    X = np.random.default_rng(0).standard_normal((n, n_columns)).astype(np.float32).round(3)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def budget():
    """The same work each time."""
    return Budget(rows=[200, 500])


def errors_of(exploration):
    return {name: [(run.n_rows, run.error) for run in runs]
            for name, runs in exploration.runs.items()}  # fmt: skip


def test_matrices_are_explored_as_they_are_here(client):
    X, y = rows()
    expected = pp.explore(X, y, budget=budget(), n_jobs=1)
    arrays = da.from_array(X, chunks=(130, -1)), da.from_array(y, chunks=130)
    sparse = [delayed((sp.csr_matrix(X[k::2]), y[k::2])) for k in range(2)]
    found = dask_cluster.explore(*arrays, client=client, budget=budget(), n_jobs=1)
    assert isinstance(found, type(expected))
    assert errors_of(found) == errors_of(expected)
    assert (found.n_met, found.n_rows) == (expected.n_met, expected.n_rows) == (500, 500)
    assert found.verdict == expected.verdict
    assert dask_cluster.explore(sparse, client=client, budget=budget(), n_jobs=1).n_rows == 500


@pytest.mark.parametrize("kind", ["frame", "files"])
def test_columns_of_tables_keep_their_names(client, tmp_path, kind):
    X, y = rows()
    table = pd.DataFrame(X, columns=["height", "width", "depth", "price"])
    table["colour"] = np.where(X[:, 0] > 0, "red", "blue")
    if kind == "frame":
        given = dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
        reading = {}
    else:
        for k in range(2):
            path = tmp_path / f"{k}.csv"
            table.assign(label=y)[k * 250 : (k + 1) * 250].to_csv(path, index=False)
        given, reading = (str(tmp_path / "*.csv"),), {"label": "label"}
    found = dask_cluster.explore(*given, client=client, budget=budget(), n_jobs=1, **reading)
    expected = pp.explore(table, y, budget=budget(), n_jobs=1)
    assert errors_of(found).keys() == errors_of(expected).keys()
    assert found.n_met == 500
    assert all(name in found.to_html() for name in ("height", "colour"))
    if kind == "frame":
        assert errors_of(found) == errors_of(expected)


def test_only_a_sample_leaves_the_workers(client, monkeypatch):
    monkeypatch.setattr(dask_look, "MOST_ROWS", 1000)
    X, y = rows(40_000)
    parts = client.persist([delayed((X[k::4], y[k::4])) for k in range(4)])
    wait(parts)
    before = bytes_sent(client)
    found = dask_cluster.explore(parts, client=client, budget=Budget(rows=[300]), n_jobs=1)
    assert (found.n_met, found.n_rows) == (40_000, 300)
    assert bytes_sent(client) - before < X.nbytes // 4  # a single partition is as much


def test_places_are_those_among_all_rows(client, monkeypatch):
    monkeypatch.setattr(dask_look, "MOST_ROWS", 120)
    X, y = rows(3000)
    arrays = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    loaded = dask_look._loaded(*arrays, client, {})
    found = dask_look._sample_of(loaded, 0)
    assert 120 <= found.n_rows <= 220
    np.testing.assert_array_equal(found.X, X[found.places])
    np.testing.assert_array_equal(found.y, y[found.places])


def test_wide_files_are_explored_with_all_their_columns(client, tmp_path):
    """A sample may have no value in the last column; the exploration has it all the same."""
    X, y = rows()
    X[:, 3] = 0
    X[7, 3] = 1
    write(tmp_path / "a.libsvm", [Chunk(X[:250], y[:250])])
    write(tmp_path / "b.libsvm", [Chunk(X[250:], y[250:])])
    found = dask_cluster.explore(
        [str(tmp_path / "a.libsvm"), str(tmp_path / "b.libsvm")], client=client,
        budget=Budget(rows=[200]), n_jobs=1,
    )  # fmt: skip
    assert found.n_met == 500
