"""MM: the paper, reductions, and planes that part."""

from dataclasses import replace

import numpy as np
import pytest

from polyplane import AMMClassifier, MMClassifier, PegasosClassifier
from polyplane.hyperplane.multi_hyperplane import MM
from tests.exact import only_model, random_problem, sums_of
from tests.reference.multi_hyperplane import multi_hyperplane

pytestmark = pytest.mark.loops


def start_of(machine):
    """Theta before the first step, by the seed that the model drew."""
    model, labels = only_model(machine), range(machine.classes_.size)
    planes = [model.start_of(machine.n_planes, label, model.own.start_length) for label in labels]
    return np.concatenate(planes).astype(np.float64)


def test_equals_the_paper_transcribed():
    """On rows that are not whole numbers scores do not tie, and rounding does not decide."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(150, 7)), generator.integers(0, 3, 150)
    for alpha in (1e-1, 1e-2, 1e-4):
        model = MMClassifier(
            alpha=alpha, n_planes=3, max_iter=2, shuffle=False, average=False, random_state=1
        ).fit(X, y)
        rows = np.hstack([np.ones((150, 1)), X])
        owner = np.repeat([0, 1, 2], 3)
        order = np.tile(np.arange(150), 2)
        expected = np.array(multi_hyperplane(rows, y, start_of(model), owner, alpha, order))
        found, found_owner = sums_of(model)
        assert found_owner.tolist() == owner.tolist()
        np.testing.assert_allclose(found, expected[:, 1:], rtol=1e-4, atol=1e-4)
        winners = owner[np.argmax(rows @ expected.T, axis=1)]
        assert model.predict(X).tolist() == winners.tolist()


def test_one_plane_per_class_is_the_multi_class_svm():
    X, y = random_problem(2, n_classes=4)
    machine = MMClassifier(n_planes=1, random_state=0).fit(X, y)
    linear = PegasosClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(machine.planes_, linear.planes_)


def test_amm_that_may_not_grow_is_mm():
    """AMM whose classes are full from the start takes the same steps: growth is the difference."""
    X, y = random_problem(3, n=120, n_classes=2, low=-2)
    machine = MMClassifier(n_planes=2, random_state=0, shuffle=False, max_iter=1)
    machine.fit(X, y)
    adaptive = AMMClassifier(prune_interval=10**9, max_planes=2, shuffle=False, max_iter=1)
    adaptive._training = adaptive_start(machine, X, y)
    adaptive.n_features_in_ = X.shape[1]
    adaptive.set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(adaptive.planes_, machine.planes_)


def adaptive_start(machine, X, y):
    """What MM starts from: the same planes, and no room left."""
    fresh = MMClassifier(**machine.get_params())
    fresh.set_params(max_iter=1)
    standing = replace(MM, steps=lambda model, data, order, chosen: model.n_steps + order.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MMClassifier, "algorithm", standing)
        model = only_model(fresh.fit(X, y))
    model.n_steps = 0
    model.history.clear()
    return fresh._training


def test_planes_of_one_class_part():
    """Symmetry is broken: no two planes of a class are equal after training."""
    X, y = random_problem(7, n=200, width=8)
    planes = MMClassifier(n_planes=3, random_state=0).fit(X, y).planes_
    assert len(np.unique(planes, axis=0)) == len(planes)


def test_two_planes_solve_what_one_cannot():
    """Exclusive or: each class needs two planes."""
    generator = np.random.default_rng(0)
    X = generator.choice([-1.0, 1.0], (400, 2)) + generator.normal(0, 0.1, (400, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    settings_ = {"alpha": 1e-3, "random_state": 0}
    assert MMClassifier(n_planes=1, **settings_).fit(X, y).score(X, y) < 0.8
    assert MMClassifier(n_planes=2, **settings_).fit(X, y).score(X, y) == 1
