"""What records of algorithms say holds: each field is noticed where it is used."""

import contextlib

import numpy as np
import pytest
from sklearn.base import clone

from polyplane import MMClassifier, SoftPlanesClassifier
from polyplane.engine.planes.planes import count_planes
from polyplane.estimator.parameters import REGISTRY
from polyplane.estimator.shell import job_of
from polyplane.training.work.progress import heard_by

SEARCHED = [
    (kind, name) for kind in REGISTRY.values() for name in getattr(kind.algorithm, "searched", ())
]
FIXED = "CPMClassifier", "MMClassifier"  # numbers of planes


@pytest.mark.parametrize(("kind", "name"), SEARCHED)
def test_a_parameter_that_is_searched_needs_all_rows_and_is_kept_in_later_chunks(kind, name, X, y):
    model = kind(**{name: "auto"}, max_iter=1, random_state=0)
    with pytest.raises(ValueError, match=f'{name}="auto" needs all rows'):
        clone(model).partial_fit(X, y)
    model.fit(X, y)
    assert model._training.found.keys() == {name}
    assert getattr(model, f"{name}_") == model._training.found[name]
    given = clone(model).set_params(**{name: model._training.found[name]}).fit(X, y)
    np.testing.assert_array_equal(given.decision_function(X), model.decision_function(X))
    if hasattr(model, "partial_fit"):
        found = getattr(model, f"{name}_")
        assert getattr(model.partial_fit(X, y), f"{name}_") == found


@pytest.mark.parametrize("name", FIXED)
def test_memory_is_asked_for_as_many_planes_as_a_model_starts_with(name, X, y):
    model = REGISTRY[name](random_state=0).fit(X, y)
    algorithm, settings = job_of(model, {})
    for part in model._training.models:
        n_codes = part.planes.room_left.size
        assert count_planes(part.planes) == algorithm.first_planes(settings, n_codes)


@pytest.mark.parametrize(
    ("model", "is_told"),
    [
        (MMClassifier(n_planes=2), True),
        (MMClassifier(n_planes=2, init="subset"), False),
        (SoftPlanesClassifier(n_planes=2), False),
    ],
)
def test_errors_are_told_of_rows_that_are_new(model, is_told, X, y):
    """No row is new where planes start from all of them."""
    errors = []

    @contextlib.contextmanager
    def listen(work):
        yield lambda n_rows, size, error: errors.append(error)

    with heard_by(listen):
        clone(model).set_params(max_iter=1, random_state=0).fit(X, y)
    assert np.isfinite(errors).any() == is_told


def test_prototypes_need_all_rows(X, y):
    with pytest.raises(ValueError, match='init="subset" needs all rows'):
        MMClassifier(init="subset").partial_fit(X, y)
