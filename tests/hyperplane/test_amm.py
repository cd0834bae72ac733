"""AMM online and batch: the paper, reductions, pruning, and Theorem 3."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import AMMClassifier
from polyplane.engine.planes.planes import (
    CREATED,
    MISTAKES,
    PRUNED,
    with_classes,
    zero_planes,
)
from polyplane.engine.planes.pruning import prune
from polyplane.engine.rows.storage import dense_rows
from polyplane.engine.steps.hinge import HingeRule, hinge_epoch
from polyplane.engine.targets import Targets
from tests.exact import (
    ALPHAS,
    as_fractions,
    only_model,
    problems,
    random_problem,
    sums_of,
)
from tests.examples import examples
from tests.reference import amm

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "average": False, "fit_intercept": False}


def assert_same(model, reference, X, exact, alpha):
    expected = amm.sums(reference, alpha)
    found, owner = sums_of(model)
    counts = only_model(model).planes.counts
    assert owner.tolist() == [reference.owner[j] for j in expected]
    assert found.tolist() == [[float(v) for v in plane] for plane in expected.values()]
    assert counts[[CREATED, PRUNED]].tolist() == [reference.created, reference.pruned]
    if expected:
        assert model.predict(X).tolist() == amm.predictions(reference, exact)


@settings(deadline=None, max_examples=examples(120))
@given(problems(), st.sampled_from(ALPHAS), st.integers(1, 3), st.integers(3, 40), st.booleans())
def test_equals_the_paper_transcribed(problem, alpha, n_epochs, interval, grow_rivals):
    """Alg. 2 in exact rational arithmetic: planes, owners, births, prunings, predictions."""
    X, y = problem
    model = AMMClassifier(
        alpha=alpha, max_iter=n_epochs, prune_interval=interval, prune_budget=3,
        grow_rivals=grow_rivals, **PLAIN,
    ).fit(X, y)  # fmt: skip
    exact, exact_alpha = as_fractions(X), as_fractions([[alpha]])[0, 0]
    order = np.tile(np.arange(len(y)), n_epochs)
    reference = amm.online(exact, y, exact_alpha, order, interval, 3, y.max() + 1, grow_rivals)
    assert_same(model, reference, X, exact, exact_alpha)
    assert only_model(model).planes.counts[MISTAKES] == reference.mistakes


@settings(deadline=None, max_examples=examples(80))
@given(problems(), st.sampled_from(ALPHAS), st.integers(1, 5), st.integers(3, 40), st.booleans())
def test_batch_equals_the_paper_transcribed(problem, alpha, n_passes, interval, grow_rivals):
    """Alg. 1 likewise, with the number of passes that it takes until z stays."""
    X, y = problem
    model = AMMClassifier(
        mode="batch", alpha=alpha, max_iter=n_passes, prune_interval=interval, prune_budget=3,
        grow_rivals=grow_rivals, **PLAIN,
    ).fit(X, y)  # fmt: skip
    exact, exact_alpha = as_fractions(X), as_fractions([[alpha]])[0, 0]
    reference, _, n_done = amm.batch(
        exact, y, exact_alpha, range(len(y)), interval, 3, y.max() + 1, n_passes, grow_rivals
    )
    assert model.n_iter_ == n_done
    assert_same(model, reference, X, exact, exact_alpha)


@pytest.mark.compiled
@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-4])
def test_equals_the_paper_on_longer_runs(alpha):
    """2,000 rows that are not whole numbers, against float64 with explicit shrinking."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(2_000, 12))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = AMMClassifier(alpha=alpha, max_iter=1, prune_interval=300, **PLAIN).fit(X, y)
    reference = amm.online(X, y, alpha, range(2_000), 300, 10, 2)
    found, owner = sums_of(model)
    assert owner.tolist() == list(reference.owner.values())
    expected = np.array(list(amm.sums(reference, alpha).values()))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert model.predict(X).tolist() == amm.predictions(reference, X)


def test_batch_with_one_pass_is_the_online_scan():
    X, y = random_problem(2, low=-2)
    common = {"max_iter": 1, "random_state": 0}
    online = AMMClassifier(**common).fit(X, y)
    batch = AMMClassifier(mode="batch", **common).fit(X, y)
    np.testing.assert_array_equal(online.planes_, batch.planes_)


def test_average_kept_equals_the_mean_over_all_steps():
    """Theta after step t has weight t, and a plane that is not yet born is zero."""
    X, y = random_problem(5, n=40, low=-2)
    model = AMMClassifier(alpha=0.25, prune_interval=10**9)
    every_step, owners = [], []
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
        sums, owner = sums_of(model)
        every_step.append(sums)
        owners.append(owner)
    mean = np.zeros_like(every_step[-1])
    total = sum(range(1, len(y) + 1))
    for t, sums in enumerate(every_step, start=1):
        mean[: len(sums)] += sums * t / total
    by_class = np.argsort(owners[-1], kind="stable")
    scale = 1 / (0.25 * len(y))
    np.testing.assert_allclose(model.planes_, scale * mean[by_class], rtol=1e-5, atol=1e-6)


def test_pruning_keeps_what_theorem_3_allows_and_history_tells():
    X, y = random_problem(8, n=400, low=-2)
    model = AMMClassifier(prune_interval=50, prune_budget=20.0, max_iter=2).fit(X, y)
    history = model.history_
    assert (np.diff(history["step"]) > 0).all()
    assert (history["planes"] == history["created"] - history["pruned"]).all()
    assert history["pruned"][-1] > 0
    assert ((history["error"] >= 0) & (history["error"] <= 1)).all()


def test_max_planes_is_kept():
    X, y = random_problem(9, n=300, low=-3)
    free = AMMClassifier(random_state=0, max_iter=2).fit(X, y)
    capped = AMMClassifier(random_state=0, max_iter=2, max_planes=2).fit(X, y)
    assert np.bincount(free.plane_classes_).max() > 2
    assert np.bincount(capped.plane_classes_).tolist() == [2, 2, 2]


def test_sample_weights_equal_the_paper_with_weighted_steps():
    X, y = random_problem(10, n=40, low=-2)
    weights = np.random.default_rng(0).integers(1, 4, 40).astype(float)
    model = AMMClassifier(alpha=0.25, max_iter=1, **PLAIN).fit(X, y, sample_weight=weights)
    exact, exact_alpha = as_fractions(X), as_fractions([[0.25]])[0, 0]
    whole = as_fractions([weights])[0]
    reference = amm.online(exact, y, exact_alpha, range(40), 10_000, 10, 3, weights=whole)
    assert_same(model, reference, X, exact, exact_alpha)


@pytest.mark.parametrize("seed", range(4))
def test_theorem_3_bounds_the_regret_with_pruning(seed):
    """For fixed z: against W = 0 and against the last W, which both are within 2/lambda."""
    X, y = random_problem(seed, n=60, width=4, n_classes=2, low=-3)
    X /= np.linalg.norm(X, axis=1).max()  # |x| <= 1
    alpha, k, c = 0.05, 10, 1.0
    rows = dense_rows(X, 0.0)
    nothing = np.empty(0, np.float32)
    targets = Targets(y.astype(np.int32), np.arange(2, dtype=np.int32), nothing)
    state = with_classes(zero_planes(4, False), 2, 10**9)
    z = np.full(60, -2, np.int32)
    one = np.arange(60, dtype=np.int32)
    rule = HingeRule(alpha, False)
    t = hinge_epoch(rows, targets, one, state, rule, nothing, z, 0)  # the scan that sets z
    fresh = state._replace(sums=np.zeros_like(state.sums), squared_norms=np.zeros(16))
    losses, planes = [], []
    for t in range(60):
        planes.append((fresh.sums[1:].T / (alpha * max(t, 1)), fresh.owner.copy()))
        losses.append(convex_loss(*planes[-1], X[t], y[t], z[t], alpha))
        hinge_epoch(rows, targets, one[t : t + 1], fresh, rule, nothing, z, t)
        if (t + 1) % k == 0:
            prune(fresh, c)
    bound = (8 + c) * (np.log(60) + 1) / (alpha * 60) + 2 * (4 + c) * c / (k * alpha)
    last, owner = fresh.sums[1:].T / (alpha * 60), fresh.owner
    for W in (np.zeros_like(last), last):
        other = [convex_loss(W, owner, X[t], y[t], z[t], alpha) for t in range(60)]
        assert np.mean(losses) - np.mean(other) <= bound


def convex_loss(W, owner, x, label, plane, alpha):
    """Eq. 8 plus the regulariser; pruned planes and unborn ones are zero planes."""
    live = owner >= 0
    scores = W @ x
    own = scores[plane] if plane >= 0 and live[plane] else 0.0
    rival = max([0.0, *scores[live & (owner != label)]])
    return alpha / 2 * (W[live] ** 2).sum() + max(0.0, 1 + rival - own)
