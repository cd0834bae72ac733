"""Kernel machines on a cluster: the cascade is the machine that all rows give, in the end."""

import numpy as np
import pytest
import scipy.sparse as sp

import polyplane as pp

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'polyplane[dask]'")

import dask.array as da
from dask.delayed import delayed

from polyplane.backends import dask_cluster

pytestmark = pytest.mark.compiled


def rows(n=1500, seed=0, n_classes=2):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, 3)).astype(np.float32)
    lean = X[:, 0] ** 2 + X[:, 1] - 1 + 0.1 * generator.standard_normal(n)
    return X, np.digitize(lean, np.linspace(0, 2, n_classes - 1)) if n_classes > 2 else (
        lean > 0
    ).astype(int)


def lasvm(**settings):
    return pp.LaSVMClassifier(**{"C": 5.0, "max_iter": 3, "random_state": 0} | settings)


def huller(**settings):
    return pp.HullerClassifier(**{"C": 5.0, "max_iter": 10, "random_state": 0} | settings)


def parts_of(X, y, n_parts, order=None):
    order = np.arange(len(y)) if order is None else order
    return [delayed((X[cut], y[cut])) for cut in np.array_split(order, n_parts)]


def objective(model, client, X, y):
    """Of training in one process: a cascade of one part that makes one round."""
    alone = dask_cluster.fit(model, parts_of(X, y, 1), client=client, rounds=1)
    return alone.evals_result_["cascade"]["dual_objective"][-1]


@pytest.mark.parametrize("machine", [lasvm, huller])
def test_one_part_is_fit_bit_for_bit(client, machine):
    X, y = rows()
    expected, made = machine().fit(X, y), machine()
    dask_cluster.fit(made, da.from_array(X, chunks=(-1, -1)), da.from_array(y, chunks=-1),
                     client=client, rounds=1)  # fmt: skip
    np.testing.assert_array_equal(made.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(made.support_, expected.support_)
    if machine is lasvm:  # the sum of the machine's own coefficients, by its definition
        a = made.dual_coef_[0]
        K = np.exp(-made.gamma_ * np.square(X[made.support_][:, None] - X[made.support_]).sum(2))
        found = made.evals_result_["cascade"]["dual_objective"]
        assert found == [pytest.approx(np.abs(a).sum() - a @ K @ a / 2, rel=1e-5)]


@pytest.mark.parametrize("machine", [lasvm, huller])
@pytest.mark.parametrize("n_parts", [2, 7])
def test_parts_reach_what_all_rows_give(client, machine, n_parts):
    X, y = rows()
    expected = machine().fit(X, y)
    best = objective(machine(), client, X, y)
    made = dask_cluster.fit(machine(), parts_of(X, y, n_parts), client=client)
    course = made.evals_result_["cascade"]
    assert course["dual_objective"][-1] == pytest.approx(best, rel=0.01)
    assert course["violators"][-1] <= course["violators"][0]
    assert np.mean(made.predict(X) != expected.predict(X)) <= 0.005
    held = X[made.support_]  # numbers are those of all rows
    np.testing.assert_array_equal(made.support_vectors_, held)


def test_classes_in_different_parts_are_brought_together(client):
    """Parts of one class have no model of their own; feedback finds their vectors."""
    X, y = rows(n_classes=3)
    order = np.argsort(y, kind="stable")
    expected = lasvm().fit(X, y)
    made = dask_cluster.fit(lasvm(), parts_of(X, y, 6, order), client=client, rounds=8)
    assert np.mean(made.predict(X) != expected.predict(X)) <= 0.02
    objectives = made.evals_result_["cascade"]["dual_objective"]
    assert objectives[-1] > objectives[0]


def test_sparse_rows_weights_and_empty_parts(client):
    X, y = rows()
    X = np.round(np.maximum(X, 0), 1)
    settings = {"class_weight": "balanced", "gamma": 0.5}
    parts = [delayed((sp.csr_matrix(X[cut]), y[cut])) for cut in (slice(0, 700), slice(700, 1500))]
    parts.insert(1, delayed((sp.csr_matrix(X[:0]), y[:0])))
    made = dask_cluster.fit(lasvm(**settings), parts, client=client)
    expected = lasvm(**settings).fit(X, y)
    assert np.mean(made.predict(X) != expected.predict(X)) <= 0.01
    assert sp.issparse(made.support_vectors_)


def test_a_cascade_goes_on_from_its_file(client, tmp_path):
    X, y = rows()
    parts, path = parts_of(X, y, 5), tmp_path / "model"
    whole = dask_cluster.fit(lasvm(), parts, client=client, rounds=3)
    dask_cluster.fit(lasvm(), parts, client=client, rounds=1, checkpoint=path)
    made = dask_cluster.fit(pp.load(path), parts, client=client, rounds=3, resume=True)
    np.testing.assert_array_equal(made.dual_coef_, whole.dual_coef_)
    assert made.evals_result_ == whole.evals_result_


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (pp.KernelPegasosClassifier(), "choose one of HullerClassifier, LaSVMClassifier"),
        (lasvm(kernel="precomputed"), "must be named"),
        (lasvm(warm_start=True), "warm_start"),
    ],
)
def test_what_cannot_cascade_is_refused(client, estimator, words):
    with pytest.raises((TypeError, ValueError), match=words):
        dask_cluster.fit(estimator, parts_of(*rows(), 2), client=client)
