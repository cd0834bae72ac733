"""What single planes are worth equals its definition, whatever the scores and whatever has gone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from polyplane.engine.planes.expendable import changes_without_each, sums_of_units
from tests.examples import examples

pytestmark = pytest.mark.loops


def probabilities(scores, unit, class_of, is_kept, labels):
    """Of the rows' classes: a class scores the sum over its units of log-sum-exps."""
    of_class = np.zeros((len(scores), class_of.max() + 1))
    for u, c in enumerate(class_of):
        of_class[:, c] += logsumexp(scores[:, (unit == u) & is_kept], axis=1)
    return np.exp(of_class - logsumexp(of_class, axis=1, keepdims=True))[
        np.arange(len(labels)), labels
    ]


def looked_at(scores, unit, starts, class_of, is_kept, labels, parts, best):
    """Sums of units as the loop has them, and the odds that it asks for."""
    top = np.empty(best.shape, np.int64)
    rest = np.empty(best.shape)
    sums_of_units(scores, is_kept, starts, parts, best, top, rest)
    totals = np.take_along_axis(parts, top, axis=0) + rest
    of_class = np.zeros((class_of.max() + 1, len(labels)))
    np.add.at(of_class, class_of, best + np.log(totals))
    rows = np.arange(len(labels))
    own = of_class[labels, rows].copy()
    of_class[labels, rows] = -np.inf
    rival = of_class.max(axis=0)
    odds = np.exp(of_class - rival)
    odds[labels, rows] = np.exp(np.clip(own - rival, -700, 700))
    return top, rest, odds


@settings(deadline=None, max_examples=examples(60))
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=6),
    size=st.sampled_from([0.1, 3.0, 60.0]),
    n_gone=st.integers(0, 6),
    n_rows=st.sampled_from([1, 7, 9, 259]),  # more than are taken at once
)
def test_changes_equal_their_definition(seed, sizes, size, n_gone, n_rows):
    generator = np.random.default_rng(seed)
    sizes = sizes[: len(sizes) // 2 * 2]  # two classes of equal numbers of units
    unit = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.append(0, np.cumsum(sizes))
    class_of = np.arange(len(sizes)) // (len(sizes) // 2)
    scores = size * generator.normal(size=(n_rows, unit.size))
    labels = generator.integers(0, 2, n_rows)
    by_plane = np.ascontiguousarray(scores.T)
    best = np.maximum.reduceat(by_plane, starts[:-1], axis=0)
    parts = np.exp(by_plane - best[unit])
    is_kept = np.ones(unit.size, bool)
    for _ in range(n_gone):  # the best first, so that parts have to be taken anew
        left = [u for u in range(len(sizes)) if is_kept[unit == u].sum() > 1]
        if left:
            own = np.flatnonzero((unit == left[0]) & is_kept)
            is_kept[own[scores[:, own].max(axis=0).argmax()]] = False
    before = probabilities(scores, unit, class_of, is_kept, labels)
    look = looked_at(by_plane, unit, starts, class_of, is_kept, labels, parts, best)
    changes = np.empty(unit.size)
    changes_without_each(
        parts, is_kept, starts, look[0], look[1], class_of, labels, look[2], before, changes
    )
    for j in np.flatnonzero(is_kept):
        fewer = is_kept.copy()
        fewer[j] = False
        if fewer[unit == unit[j]].any():
            after = probabilities(scores, unit, class_of, fewer, labels)
            assert changes[j] == pytest.approx(np.abs(after - before).mean(), abs=1e-9)


def test_planes_that_come_back_count_as_before():
    """A look at fewer planes may be given up: sums of all are then what they were."""
    scores = np.array([[0.0, 5.0], [-2_000.0, -3.0], [1.0, 1.0]])
    starts, best = np.array([0, 2, 3]), np.array([[0.0, 5.0], [1.0, 1.0]])
    parts = np.exp(scores - best[[0, 0, 1]])

    def sums(is_kept):
        top, rest = np.empty((2, 2), np.int64), np.empty((2, 2))
        sums_of_units(scores, np.array(is_kept), starts, parts, best, top, rest)
        return best + np.log(np.take_along_axis(parts, top, axis=0) + rest)

    np.testing.assert_allclose(sums([False, True, True]), [[-2_000, -3], [1, 1]])
    np.testing.assert_allclose(sums([True] * 3), [[0, np.logaddexp(5, -3)], [1, 1]])
