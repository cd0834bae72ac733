"""Passive-Aggressive: the paper, reductions, and what gave it its name."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import PassiveAggressiveClassifier, PegasosClassifier
from tests.exact import (
    as_fractions,
    problems,
    random_problem,
    sums_of,
)
from tests.examples import examples
from tests.reference.passive_aggressive import multi_class, passive_aggressive

pytestmark = pytest.mark.loops

PLAIN = {"shuffle": False, "average": False, "fit_intercept": False}
VARIANTS = st.sampled_from(["PA-I", "PA-II"])
EXACT_C = {"PA-I": [2.0**-k for k in (0, 4, 6)], "PA-II": [2.0**-4]}  # 8 + 1 / (2 C) = 16


def passes(n_rows, n_epochs):
    """The order of so many unshuffled passes."""
    return np.tile(np.arange(n_rows), n_epochs)


@st.composite
def short_problems(draw):
    """Few rows of four signs: |x|^2 = 4, so that a step size is a multiple of a power of two."""
    n_classes = draw(st.integers(3, 4))
    cells = st.lists(st.sampled_from([-1, 1]), min_size=4, max_size=4)
    X = np.array(draw(st.lists(cells, min_size=6, max_size=6)), np.float64)
    rest = draw(st.lists(st.integers(0, n_classes - 1), min_size=2, max_size=2))
    y = np.array([*range(n_classes), *rest])
    return X[: y.size], y[draw(st.permutations(range(y.size)))]


@settings(deadline=None, max_examples=examples(60))
@given(problems(most_classes=2), VARIANTS, st.sampled_from([2.0, 0.25, 2.0**-6]), st.integers(1, 2))
def test_equals_the_paper_transcribed(problem, variant, C, n_epochs):
    """Step sizes are quotients, which are rounded; a loss of nearly 0 makes a step of nearly 0."""
    X, y = problem
    model = PassiveAggressiveClassifier(variant=variant, C=C, max_iter=n_epochs, **PLAIN).fit(X, y)
    exact = as_fractions(X)
    w = passive_aggressive(exact, 2 * y - 1, Fraction(C), variant, passes(len(y), n_epochs))
    sums, owner = sums_of(model)
    assert owner.tolist() == [0, 1]
    assert sums[0].tolist() == (-sums[1]).tolist()
    np.testing.assert_allclose(2 * sums[1], [float(v) for v in w], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.planes_, sums.astype(np.float32))  # the scale is 1
    scores = [float(x @ w) for x in exact]
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=examples(60))
@given(short_problems(), VARIANTS, st.data())
def test_more_classes_equal_the_paper_transcribed_to_the_bit(problem, variant, data):
    """With ties between rivals, which are real: nothing is rounded here."""
    X, y = problem
    C = data.draw(st.sampled_from(EXACT_C[variant]))
    model = PassiveAggressiveClassifier(variant=variant, C=C, max_iter=1, **PLAIN).fit(X, y)
    exact = as_fractions(X)
    W = multi_class(exact, y, y.max() + 1, Fraction(C), variant, passes(len(y), 1))[-1]
    sums, _ = sums_of(model)
    assert sums.tolist() == [[float(v) for v in w] for w in W]
    winners = np.argmax([[float(w @ x) for w in W] for x in exact], axis=1)
    assert model.predict(X).tolist() == winners.tolist()


@pytest.mark.parametrize("variant", ["PA-I", "PA-II"])
def test_weights_of_rows_multiply_their_c(variant):
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(90, 7)), generator.integers(0, 4, 90)
    weights = generator.choice([0.25, 1.0, 3.0], 90)
    model = PassiveAggressiveClassifier(variant=variant, C=0.02, max_iter=2, **PLAIN)
    model.fit(X, y, sample_weight=weights)
    W = multi_class(X, y, 4, 0.02 * weights, variant, passes(90, 2))[-1]
    np.testing.assert_allclose(sums_of(model)[0], W, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_steps_cut_short_it_adds_what_pegasos_adds_when_every_row_violates(n_classes):
    X, y = random_problem(2, n_classes=n_classes, low=-2)
    C = 2.0**-20  # so small that no row ever has its margin
    model = PassiveAggressiveClassifier(variant="PA-I", C=C, max_iter=2, **PLAIN).fit(X, y)
    linear = PegasosClassifier(alpha=2.0**10, max_iter=2, **PLAIN).fit(X, y)
    step = C / 2 if n_classes == 2 else C
    np.testing.assert_array_equal(sums_of(model)[0], sums_of(linear)[0] * step)


def test_the_average_kept_by_increments_equals_its_definition():
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(70, 5)), generator.integers(0, 3, 70)
    made = PLAIN | {"average": True}
    model = PassiveAggressiveClassifier(C=0.1, max_iter=1, **made).fit(X, y)
    seen = np.array(multi_class(X, y, 3, 0.1, "PA-II", passes(70, 1)))
    mean = np.average(seen, axis=0, weights=np.arange(1, 71))  # step t weighs t
    np.testing.assert_allclose(model.planes_, mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["PA-I", "PA-II"])
def test_passive_where_the_margin_is_there_and_aggressive_where_not(n_classes, variant):
    """With a large C a step gives a row the margin 1 over its best rival of before, no more."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=(60, 8))
    y = X[:, :n_classes].argmax(axis=1)
    model = PassiveAggressiveClassifier(variant=variant, C=1e9, average=False)
    model.partial_fit(X[:1], y[:1], classes=range(n_classes))
    n_passive = 0
    for i in range(1, len(y)):
        row, own = X[i : i + 1], y[i]
        [scores], planes = model.plane_scores(row), model.planes_
        rival = max((c for c in range(n_classes) if c != own), key=lambda c: scores[c])
        model.partial_fit(row, y[i : i + 1])
        if scores[own] - scores[rival] >= 1:
            n_passive += 1
            np.testing.assert_array_equal(model.planes_, planes)
        else:
            [after] = model.plane_scores(row)
            assert after[own] - after[rival] == pytest.approx(1, abs=1e-4)
    assert 0 < n_passive < 59


def test_it_has_no_alpha():
    with pytest.raises(TypeError, match="alpha"):
        PassiveAggressiveClassifier(alpha=1.0)
    X, y = random_problem(7)
    with pytest.raises(AttributeError, match="parameter is C"):
        PassiveAggressiveClassifier().fit(X, y).alpha_  # noqa: B018
