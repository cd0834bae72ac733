"""Members of a blend folded into one model score what they score together."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyplane import SoftPlanesClassifier
from polyplane.estimator.fitting.restoring import training_of
from polyplane.model.input.column_maps import AS_IS, folded_map
from polyplane.model.input.input_rows import checked_rows
from polyplane.training.blended.training import BlendedTraining, Member
from polyplane.training.state import known_classes

pytestmark = pytest.mark.compiled

MEMBERS = {
    "kinds": [{"columns": kind} for kind in ("plain", "rank", "knots", "fine")],
    "directions": [{"columns": "knots", "directions": "principal"}, {"columns": "plain"}],
    "normal scores": [{"columns": "rank", "scores": "normal"}, {"columns": "fine", "units": 3}],
    "against the rest": [{"multi_class": "ovr", "columns": "knots"}, {"columns": "fine"}],
    "seeds": [{"columns": "fine", "n_estimators": 3}, {"columns": "plain", "n_planes": 1}],
    "as they are": [{"columns": AS_IS}, {"columns": AS_IS, "n_planes": 1}],
    "as they are, and mapped": [{"columns": AS_IS}, {"columns": "rank"}],
}


def table(n_classes, n_rows=300, seed=0):
    """Numbers, flags, few values and a column that never changes."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 6)) * [1, 10, 0.1, 1, 1, 0] + [0, 5, 0, 0, 0, 3]
    X[:, 3] = X[:, 3] > 0
    X[:, 4] = np.clip(np.round(X[:, 4]), -2, 2)
    y = (np.abs(X[:, 0]) + X[:, 2] * 3 > 0.7).astype(int) + (n_classes - 2) * (X[:, 1] > 12)
    return X.astype(np.float32), y


def blend_of(settings, X, y):
    """A blend of members with different weights."""
    members = []
    for k, one in enumerate(settings):
        given = {"n_planes": 4, "max_iter": 2, "random_state": 0} | one
        model = SoftPlanesClassifier(**given).fit(X, y)
        members.append(Member(str(k), 0.5, 0.3 + 0.4 * k, model))
    labels = training_of(members[0].estimator).labels
    return BlendedTraining("joint", 0, known_classes(labels), X.shape[1], members=members)


def scores_of(blend, X):
    """Scores of the folded model."""
    record, columns = blend.folded
    rows = columns.for_prediction(checked_rows(X, 1.0))
    return record.class_scores(rows, np.arange(X.shape[0]))


def expected_scores(blend, X):
    """The weighted sum of the members' own scores."""
    total = 0.0
    for member in blend.members:
        own = member.estimator.decision_function(X)
        if own.ndim == 1:
            own = np.column_stack([np.zeros_like(own), own])
        total = total + member.weight * own
    return total


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_folded_blend_scores_the_weighted_sum_of_its_members(name, n_classes, is_sparse):
    X, y = table(n_classes)
    X = sp.csr_array(X) if is_sparse else X
    blend = blend_of(MEMBERS[name], X, y)
    found, expected = centred(scores_of(blend, X)), centred(expected_scores(blend, X))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_knots_of_all_members_become_one_map():
    X, y = table(2)
    blend = blend_of(MEMBERS["kinds"], X, y)
    maps = [training_of(member.estimator).columns.map for member in blend.members]
    union = folded_map(maps)
    for j in range(X.shape[1]):
        own = [one.knots_of(j) for one in maps]
        np.testing.assert_array_equal(union.knots_of(j), np.unique(np.concatenate(own)))


def test_wide_sparse_rows_keep_only_columns_in_use():
    generator = np.random.default_rng(0)
    X = np.zeros((80, 1_000), np.float32)
    X[:, ::20] = generator.random((80, 50)) < 0.2
    y = X[:, ::40].sum(axis=1) > X[:, 20::40].sum(axis=1)
    X = sp.csr_array(X)
    blend = blend_of([{"columns": AS_IS}, {"columns": AS_IS, "n_planes": 1}], X, y.astype(int))
    record, columns = blend.folded
    assert columns.used is not None
    assert len(record.sums) < 60
    expected = centred(expected_scores(blend, X))
    np.testing.assert_allclose(centred(scores_of(blend, X)), expected, atol=1e-4)


def test_members_with_other_directions_are_refused():
    X, y = table(2)
    blend = blend_of([{"columns": "knots", "directions": "principal"}] * 2, X, y)
    other = SoftPlanesClassifier(
        columns="knots", directions="principal", n_planes=4, max_iter=2, random_state=0
    )
    blend.members[1].estimator = other.fit(X[:100] * 2, y[:100])
    with pytest.raises(ValueError, match="different directions"):
        _ = blend.folded
