"""Parameters at the ends of their ranges and beyond: finite scores, or the range that works."""

from dataclasses import fields

import numpy as np
import pytest

import polyplane as pp
from polyplane.estimator.parameters import REGISTRY
from tests.contract.conftest import SET

EXTREMES = [5e-324, 1e-300, 1e-45, 1e-30, 1e-15, 1e10, 1e15, 1e30, 1e45, 1e300]
BEYOND_ITS_END = 0.37  # a number that a parameter of real numbers allows


def real_parameters():
    """Every parameter of every machine that takes real numbers."""
    for name, made in REGISTRY.items():
        for field in fields(made):
            takes_any = field.name == "random_state"
            if field.metadata["allowed"].allows(BEYOND_ITS_END) and not takes_any:
                yield pytest.param(made, field.name, id=f"{name}-{field.name}")


def names_of(made):
    """The parameters of a machine."""
    return {field.name for field in fields(made)}


def field_of(made, name):
    """A parameter as it is declared."""
    return next(field for field in fields(made) if field.name == name)


def scale_is_asked_for(machine, value):
    """Whether products of columns with so large a factor would overflow."""
    is_factor = isinstance(machine, pp.Poly2Classifier) and value >= 1e10
    return is_factor and (value == machine.gamma or (value == machine.coef0 and value > 1e20))


@pytest.mark.parametrize(("made", "name"), list(real_parameters()))
def test_scores_are_finite_or_refused_before_and_after_a_file(made, name, X, y, tmp_path):
    fixed = SET | {"columns": "plain"} if made is pp.SoftPlanesClassifier else {}
    for value in EXTREMES:
        machine = made(**(fixed | {"max_iter": 1, "random_state": 0, name: value}))
        if not field_of(made, name).metadata["allowed"].allows(value):
            with pytest.raises(ValueError, match=rf"{name} must be a number .*; got .*\.$"):
                machine.fit(X, y)
            continue
        if scale_is_asked_for(machine, value):
            with pytest.raises(ValueError, match=r"scale the columns.*\.$"):
                machine.fit(X, y)
            continue
        scores = machine.fit(X, y).decision_function(X)
        assert np.isfinite(scores).all(), value
        pp.save(machine, tmp_path / "model")
        loaded = pp.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.decision_function(X), scores)


@pytest.mark.parametrize("alpha", [1e-45, 1e-300])
@pytest.mark.parametrize("made", [m for m in REGISTRY.values() if "alpha" in names_of(m)])
def test_a_tiny_alpha_is_refused_with_the_range_that_works(made, alpha, X, y):
    if made is pp.SoftPlanesClassifier:
        pytest.skip("which may go without regularisation")
    with pytest.raises(ValueError, match=r"alpha must be a number from 1e-15 to 1e15"):
        made(alpha=alpha).fit(X, y)


@pytest.mark.compiled  # many columns, which take minutes otherwise
def test_scores_that_overflow_by_the_scale_of_the_data_are_noticed():
    X = np.full((6, 400_000), 9e9, np.float32)
    X[::2] = -X[::2]
    model = pp.PegasosClassifier(alpha=1e-15, max_iter=1).fit(X, [0, 1] * 3)
    with pytest.raises(ValueError, match=r"^PegasosClassifier: scores .* overflow .*\.$"):
        model.decision_function(X)
