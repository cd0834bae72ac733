"""Parameters: each has a range, and an error names estimator, parameter, range and value."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

import polyplane
from polyplane import (
    AMMClassifier,
    HullerClassifier,
    LaSVMClassifier,
    MMClassifier,
    PegasosClassifier,
)
from polyplane.estimator.parameters import (
    REGISTRY,
    Range,
    at_least,
    between,
    either,
    is_flag,
    one_of,
    parameter,
    positive,
    register,
)

X, Y = np.eye(4, dtype=np.float32), [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        (positive(), [1e-15, 1, np.float32(2), 1e15], [0, 1e-300, -1, 1e16, np.nan, True, "1"]),
        (at_least(1), [1, 10**20, np.int8(3)], [0, 1.0, True, "1", None]),
        (at_least(0, whole=False), [0, 0.5, np.float64(1)], [-1e-9, np.inf, np.nan, False]),
        (between(0, 1), [0.5, np.float32(0.25)], [0, 1, -1, np.nan, "0.5"]),
        (one_of("online", "batch"), ["online", "batch"], ["Batch", None, 1, b"batch"]),
        (one_of(None), [None], [0, False, "None"]),
        (is_flag(), [True, False, np.True_], [0, 1, None, "True"]),
        (either(one_of("auto"), at_least(1)), ["auto", 1], ["none", 0, None]),
    ],
    ids=lambda value: value.words if isinstance(value, Range) else "",
)
def test_a_range_allows_what_its_words_say(allowed, inside, outside):
    assert [value for value in inside if not allowed.allows(value)] == []
    assert [value for value in outside if allowed.allows(value)] == []


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            PegasosClassifier(alpha=-1),
            "PegasosClassifier: alpha must be a number from 1e-15 to 1e15, or 'auto'; got -1.",
        ),
        (
            PegasosClassifier(max_iter=2.5),
            "PegasosClassifier: max_iter must be a whole number of at least 1; got 2.5.",
        ),
        (
            MMClassifier(n_planes=0),
            "MMClassifier: n_planes must be a whole number of at least 1; got 0.",
        ),
        (
            MMClassifier(validation_fraction=1.0),
            "MMClassifier: validation_fraction must be a number between 0 and 1; got 1.0.",
        ),
        (
            AMMClassifier(mode="offline"),
            "AMMClassifier: mode must be 'online' or 'batch'; got 'offline'.",
        ),
        (
            AMMClassifier(shuffle="no"),
            "AMMClassifier: shuffle must be True or False; got 'no'.",
        ),
        (
            AMMClassifier(class_weight="even"),
            "AMMClassifier: class_weight must be None, 'balanced' or a dict from label to weight; "
            "got 'even'.",
        ),
        (
            AMMClassifier(n_jobs=0),
            "AMMClassifier: n_jobs must be None or a whole number other than 0; got 0.",
        ),
        (
            AMMClassifier(max_planes=0),
            "AMMClassifier: max_planes must be None, or a whole number of at least 1; got 0.",
        ),
        (
            HullerClassifier(C=0),
            "HullerClassifier: C must be a number from 1e-15 to 1e15, or None; got 0.",
        ),
        (
            HullerClassifier(kernel="gauss"),
            "HullerClassifier: kernel must be 'rbf' or 'linear' or 'poly' or 'sigmoid' or "
            "'precomputed', or a function of two matrices; got 'gauss'.",
        ),
        (
            LaSVMClassifier(gamma="none"),
            "LaSVMClassifier: gamma must be a number from 1e-30 to 1e30, or 'scale' or 'auto'; "
            "got 'none'.",
        ),
        (
            LaSVMClassifier(coef0=float("nan")),
            "LaSVMClassifier: coef0 must be a number from -1e10 to 1e10; got nan.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_names_estimator_parameter_range_and_value(estimator, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        estimator.fit(X, Y)


@pytest.mark.parametrize("name", ["alpha", "class_weight", "n_jobs", "max_iter", "shuffle"])
def test_an_array_is_refused_like_any_other_value(name):
    with pytest.raises(ValueError, match=f"^PegasosClassifier: {name} must be "):
        PegasosClassifier(**{name: np.array([1, 2])}).fit(X, Y)


@pytest.mark.parametrize("name", ["kernel", "gamma", "coef0", "budget", "C"])
def test_an_array_is_refused_by_kernel_machines_too(name):
    with pytest.raises(ValueError, match=f"^HullerClassifier: {name} must be "):
        HullerClassifier(**{name: np.array([1, 2])}).fit(X, Y)


@pytest.mark.parametrize("made", [PegasosClassifier, LaSVMClassifier])
def test_parameters_are_checked_by_partial_fit_too(made):
    with pytest.raises(ValueError, match=rf"^{made.__name__}: tol must be "):
        made(tol=-1).partial_fit(X, Y)


def test_numbers_of_numpy_are_numbers():
    model = AMMClassifier(
        alpha=np.float32(0.01), max_iter=np.int64(2), n_jobs=np.int64(1), shuffle=np.True_
    )
    assert model.fit(X, Y).n_steps_ == 8


def test_numbers_of_numpy_are_numbers_to_kernel_machines():
    model = LaSVMClassifier(
        kernel="poly", gamma=np.float32(1), coef0=np.float32(1), degree=np.int64(2), C=np.float32(2)
    )
    assert model.fit(X, Y).n_steps_ == 4


def test_the_constructor_stores_and_checks_nothing():
    assert PegasosClassifier(alpha="nonsense").alpha == "nonsense"


def test_parameters_go_by_name_only():
    with pytest.raises(TypeError, match="positional"):
        PegasosClassifier(0.1)


@pytest.mark.parametrize("name", [n for n in polyplane.__all__ if n.endswith("Classifier")])
def test_the_docstring_tells_every_parameter(name):
    estimator = getattr(polyplane, name)
    assert REGISTRY[name] is estimator
    text = inspect.getdoc(estimator)
    for field in dataclasses.fields(estimator):
        kind = field.metadata["allowed"].kind()
        assert f"\n{field.name} : {kind}, default={field.default!r}\n    " in text


def test_a_class_inherits_parameters_and_enters_the_registry_by_name(monkeypatch):
    monkeypatch.setattr("polyplane.estimator.parameters.REGISTRY", entered := {})

    @register
    class Milder(PegasosClassifier):
        """A subclass."""

        mildness: float = parameter(default=0.5, allowed=between(0, 1), meaning="How mild.")

    assert entered == {"Milder": Milder}
    assert Milder(mildness=0.2, alpha=1.0).get_params()["alpha"] == 1.0
    with pytest.raises(ValueError, match=r"^Milder: mildness must be a number between 0 and 1; "):
        Milder(mildness=2).fit(X, Y)
