"""SAMM: the paper, reductions, and what its two penalties do."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from polyplane import AMMClassifier, SAMMClassifier
from polyplane.engine.planes.averaging import mean_sums
from polyplane.engine.planes.planes import live_lanes
from polyplane.hyperplane.sparse_amm import SHARES
from tests.exact import (
    as_fractions,
    only_model,
    random_problem,
)
from tests.reference import sparse_amm
from tests.searches import looks_at_held_out_rows, lowest_after_looks

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "average": False, "fit_intercept": False}
MU = 0.0379  # no threshold is the length of a vector of whole numbers


def by_class(reference, W):
    """Numbers of the planes that are not shrunk to nothing, by class, then by age."""
    return sorted((j for j in W if is_alive(reference, j)), key=lambda j: (reference.owner[j], j))


def is_alive(reference, number):
    return sparse_amm.group_factor(reference.G[number], reference.t, MU) > 0


@pytest.mark.parametrize("l1", [0.0, 2**-7])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_paper_transcribed(seed, l1):
    X, y = random_problem(seed, n=50, width=3, low=-2)
    model = SAMMClassifier(
        alpha=0.125, mu=MU, l1=l1, max_iter=2, prune_interval=30, **PLAIN
    ).fit(X, y)  # fmt: skip
    exact, (alpha, mu, exact_l1) = as_fractions(X), as_fractions([[0.125, MU, l1]])[0]
    order = np.tile(np.arange(len(y)), 2)
    reference = sparse_amm.online(exact, y, alpha, mu, exact_l1, order, 30)
    W = sparse_amm.weights(reference, alpha, mu, exact_l1)
    alive = by_class(reference, W)
    assert reference.dropped > 0
    assert model.plane_classes_.tolist() == [reference.owner[j] for j in alive]
    expected = np.array([[float(v) for v in W[j]] for j in alive])
    np.testing.assert_allclose(model.planes_, expected, rtol=1e-5, atol=1e-6)
    winners = [max(alive, key=lambda j: (W[j] @ x, -reference.owner[j])) for x in exact]
    assert model.predict(X).tolist() == [reference.owner[j] for j in winners]


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("grow_rivals", [False, True])
def test_without_penalties_it_is_amm_that_never_prunes(grow_rivals, average):
    X, y = random_problem(2, n=200, low=-2)
    common = {"grow_rivals": grow_rivals, "average": average, "random_state": 0}
    sparse = SAMMClassifier(mu=0, prune_interval=50, **common).fit(X, y)
    adaptive = AMMClassifier(prune_interval=10**9, **common).fit(X, y)
    np.testing.assert_array_equal(sparse.planes_, adaptive.planes_)
    np.testing.assert_array_equal(sparse.history_, adaptive.history_)


# ---- the penalties ---------------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("mu", "l1"), [(0.01, 0.0), (0.0, 0.01), (0.01, 0.003)])
def test_planes_are_the_sums_with_both_thresholds(mu, l1, average):
    """Of the average, each threshold is its mean, too: that of t with weight t is (2 t + 1) / 3."""
    X, y = random_problem(7, n=120, width=6, low=-2)
    model = SAMMClassifier(alpha=0.01, mu=mu, l1=l1, average=average, max_iter=2).fit(X, y)
    part = only_model(model)
    t = np.arange(1, part.n_steps + 1)
    mean_t = (t * t).sum() / t.sum() if average else part.n_steps
    lanes = live_lanes(part.planes)
    sums = mean_sums(part.planes, part.n_steps)[:, lanes].T.astype(np.float64)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    soft = np.sign(sums) * np.maximum(0, np.abs(sums) - l1 * mean_t)
    W = soft * np.maximum(0, 1 - mu * mean_t / lengths) / (0.01 * part.n_steps)
    is_alive = (lengths > mu * mean_t).ravel()
    order = np.argsort(part.planes.owner[lanes][is_alive], kind="stable")
    found = np.column_stack([model.intercepts_, model.planes_])
    np.testing.assert_allclose(found, W[is_alive][order], rtol=1e-4, atol=1e-5)


def blobs(seed=0):
    """Three round clusters that overlap a little."""
    generator = np.random.default_rng(seed)
    y = np.arange(300) % 3
    centres = np.array([[2, 0], [-1, 1.7], [-1, -1.7]])
    return centres[y] + generator.normal(0, 0.7, (300, 2)), y


@pytest.mark.parametrize("mu", [1e-2, 3e-2])
def test_the_average_keeps_the_classes_that_the_last_step_has(mu):
    """As training settles, sums are hardly longer than the threshold: so must their averages be."""
    X, y = blobs()
    for average in (False, True):
        model = SAMMClassifier(mu=mu, average=average, max_iter=10, random_state=0).fit(X, y)
        assert np.unique(model.plane_classes_).tolist() == [0, 1, 2]
        assert model.score(X, y) > 0.9


def exclusive_or(seed):
    """Two columns that matter and eight that do not: each class needs two planes."""
    X = np.random.default_rng(seed).normal(size=(600, 10))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_planes_of_each_class_fall_to_those_needed_as_mu_rises(seed):
    X, y = exclusive_or(seed)
    machines = [SAMMClassifier(mu=mu, max_iter=20, random_state=0) for mu in (0, 1e-3, 1e-2, 1e-1)]
    counts = [np.bincount(model.fit(X, y).plane_classes_, minlength=2) for model in machines]
    for more, fewer in itertools.pairwise(counts):
        assert (fewer <= more).all()
    assert counts[0].sum() > counts[1].sum()
    assert counts[2].tolist() == [2, 2]
    assert machines[2].score(X, y) > 0.9


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_l1_leaves_the_components_that_matter(seed):
    X, y = exclusive_or(seed)
    whole, sparse = (
        SAMMClassifier(mu=0, l1=l1, max_iter=20, random_state=0).fit(X, y) for l1 in (0, 3e-3)
    )
    assert whole.nonzero_share_ == 1
    assert sparse.nonzero_share_ == np.mean(sparse.planes_ != 0) < 0.3
    assert np.mean(sparse.planes_[:, 2:] != 0) < 0.05
    assert sparse.score(X, y) > 0.9


def test_penalties_that_leave_no_plane_leave_the_first_class():
    X, y = random_problem(10)
    model = SAMMClassifier(mu=100.0, random_state=0).fit(X, y)
    assert model.n_planes_ == 0
    assert model.nonzero_share_ == 0
    assert (model.predict(X) == 0).all()
    assert (model.assign(X) == -1).all()


# ---- tuning ----------------------------------------------------------------------------------


@pytest.mark.compiled
def test_an_automatic_penalty_is_from_the_grid_and_trains_as_if_given():
    X, y = random_problem(11, n=50)
    machine = SAMMClassifier(max_iter=2, random_state=0)
    found = clone(machine).set_params(alpha="auto", mu="auto").fit(X, y)
    length = np.median(np.linalg.norm(np.c_[X, np.ones(50)], axis=1))
    assert any(found.mu_ == pytest.approx(share * length, rel=1e-5) for share in SHARES)
    given_both = machine.set_params(alpha=found.alpha_, mu=found.mu_).fit(X, y)
    np.testing.assert_array_equal(found.planes_, given_both.planes_)


def test_alpha_is_found_first_and_then_the_penalty():
    X, y = random_problem(12, n=100)
    model = SAMMClassifier(max_iter=2, alpha="auto", mu="auto", random_state=0)
    with looks_at_held_out_rows() as seen:
        model.fit(X, y)
    smallest = min(look.settings.mu for look in seen)
    first = list(itertools.takewhile(lambda look: look.settings.mu == smallest, seen))
    then = seen[len(first) :]
    assert model.alpha_ == lowest_after_looks(first, "alpha")
    assert {look.settings.alpha for look in then} == {model.alpha_}
    assert model.mu_ == lowest_after_looks(then, "mu")
    assert min(len(looks) for looks in (first, then)) > 1
