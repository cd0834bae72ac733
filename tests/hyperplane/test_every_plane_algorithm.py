"""What all algorithms of planes keep, with their variants: storages, chunks and squared norms."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from polyplane import (
    AMMClassifier,
    AROWClassifier,
    CPMClassifier,
    GAMMClassifier,
    MMClassifier,
    PassiveAggressiveClassifier,
    PegasosClassifier,
    SAMMClassifier,
)
from polyplane.engine.planes.planes import CLONED, CREATED, PRUNED, live_lanes
from tests.exact import only_model, random_problem, squared_norms_recomputed, storages
from tests.examples import examples

pytestmark = pytest.mark.loops

PRUNED_OFTEN = {"prune_interval": 17, "prune_budget": 4.0}
VARIANTS = [
    PegasosClassifier(),
    PegasosClassifier(average=False),
    PassiveAggressiveClassifier(variant="PA-I", C=0.1),
    PassiveAggressiveClassifier(C=0.05, average=False),
    AROWClassifier(),
    MMClassifier(),
    AMMClassifier(**PRUNED_OFTEN),
    AMMClassifier(average=False, prune_interval=60),
    GAMMClassifier(clone_probability=1.0, **PRUNED_OFTEN),
    SAMMClassifier(mu=0.01, l1=0.001, prune_interval=37),
    SAMMClassifier(mu=0.1, average=False, prune_interval=20),
    CPMClassifier(n_planes=3, entropy=0.9),
    CPMClassifier(n_planes=3, sides="negative", entropy=0.0),
]
IN_ONE_MODEL = [one for one in VARIANTS if not isinstance(one, CPMClassifier)]  # which has pairs


def each(variants):
    """Return variants as parameters of a test, seeded."""
    made = [clone(variant).set_params(random_state=5) for variant in variants]
    return pytest.mark.parametrize("variant", made, ids=repr)


@each(VARIANTS)
def test_all_storages_give_the_same_bits(variant):
    X, y = random_problem(1, n=80, width=19)
    made = [(stored, clone(variant).fit(stored, y)) for stored in storages(X).values()]
    _, first = made[0]
    for stored, other in made:
        np.testing.assert_array_equal(other.planes_, first.planes_)
        np.testing.assert_array_equal(other.history_, first.history_)
        np.testing.assert_array_equal(other.decision_function(stored), first.decision_function(X))


@each(VARIANTS)
@settings(deadline=None, max_examples=examples(15))
@given(cuts=st.lists(st.integers(1, 199), max_size=8), is_announced=st.booleans())
def test_partial_fit_over_any_chunks_is_one_unshuffled_epoch(variant, cuts, is_announced):
    """Coins belong to steps; where planes are born of rows, so may classes be."""
    X, y = random_problem(4, n=200, low=-2)
    may_be_met = isinstance(variant, AMMClassifier | GAMMClassifier | SAMMClassifier)
    classes = None if may_be_met and not is_announced else [0, 1, 2]
    whole = clone(variant).set_params(max_iter=1, shuffle=False).fit(X, y)
    parts = clone(variant)
    for start, stop in itertools.pairwise([0, *sorted(set(cuts)), len(y)]):
        parts.partial_fit(X[start:stop], y[start:stop], classes=classes)
    np.testing.assert_array_equal(parts.planes_, whole.planes_)
    np.testing.assert_array_equal(parts.history_, whole.history_)


@each(IN_ONE_MODEL)
def test_norms_and_counts_kept_by_increments_equal_their_definition(variant):
    for seed in range(4):
        X, y = random_problem(seed, n=200, width=30 if seed % 2 else 8, low=-2)
        model = clone(variant).fit(X, y)
        planes = only_model(model).planes
        kept, fresh = squared_norms_recomputed(model)
        np.testing.assert_allclose(kept, fresh, rtol=1e-4)
        if isinstance(variant, AMMClassifier | GAMMClassifier):
            np.testing.assert_array_equal(kept, fresh)
            assert planes.counts[CREATED] - planes.counts[PRUNED] == model.n_planes_
        if isinstance(variant, SAMMClassifier):
            inverse = planes.inverse_lengths[live_lanes(planes)]
            np.testing.assert_allclose(inverse, fresh**-0.5, rtol=1e-6)
        assert not isinstance(variant, GAMMClassifier) or planes.counts[CLONED] > 0
