"""What the four kernel machines have in common: kernels, problems, streams, odd rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import (
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)

from polyplane import (
    HullerClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaSVMClassifier,
)
from polyplane.engine.support.support_set import active_slots
from polyplane.model.kernels.kernel_values import kernel_block
from polyplane.training.job import Settings
from polyplane.training.kernels import chunks
from polyplane.training.kernels.chunks import DEAD_SHARE
from tests.kernel.conftest import (
    assert_same_bits,
    everything,
    halves,
    in_chunks,
    kernel_rows,
    pixels,
)

pytestmark = pytest.mark.loops

MACHINES = [
    HullerClassifier(C=4.0, n_removal=2, max_iter=2),
    LaSVMClassifier(C=2.0),
    KernelPegasosClassifier(alpha=0.01, max_iter=2),
    KernelPerceptronClassifier(max_iter=2, fit_intercept=True),
]
EPS = float(np.finfo(np.float32).eps)
KERNELS = {
    "rbf": (rbf_kernel, {"gamma": 0.125}),
    "linear": (linear_kernel, {}),
    "poly": (polynomial_kernel, {"gamma": 0.015625, "coef0": 1.0, "degree": 2}),
    "sigmoid": (sigmoid_kernel, {"gamma": 0.015625, "coef0": -0.25}),
}
with_every_kernel = pytest.mark.parametrize("kernel", KERNELS)
with_some_kernels = pytest.mark.parametrize(  # without the JIT one is like another
    "kernel", ["rbf", *(pytest.param(k, marks=pytest.mark.compiled) for k in KERNELS if k != "rbf")]
)
in_both_storages = pytest.mark.parametrize(
    "convert",
    [
        pytest.param(np.asarray, id="dense"),
        pytest.param(sp.csr_array, id="CSR", marks=pytest.mark.compiled),
    ],
)


@pytest.fixture(params=MACHINES, ids=lambda machine: type(machine).__name__)
def machine(request):
    """Each machine in turn, unfitted and seeded."""
    return clone(request.param).set_params(gamma=0.1, random_state=0)


def dot(A, B):
    """A linear kernel of a user's, for arrays and for sparse matrices."""
    values = A @ B.T
    return values.toarray() if sp.issparse(values) else values


def after_stream(machine, X, y, size=9):
    """The machine after a stream, where it has a `finish` finished."""
    in_chunks(machine, X, y, size)
    return machine.finish() if hasattr(machine, "finish") else machine


# ---- kernels ---------------------------------------------------------------------------------


@with_every_kernel
def test_the_decision_is_the_sum_of_kernels_around_support_vectors(machine, kernel):
    X, y = pixels(0, n=40)
    function, its = KERNELS[kernel]
    machine.set_params(kernel=kernel, **its).fit(X, y)
    new = np.random.default_rng(1).integers(0, 6, (17, X.shape[1])).astype(np.float64)
    K = function(machine.support_vectors_.astype(np.float64), new, **its)
    [coefs] = machine.dual_coef_
    expected = coefs @ K + machine.intercept_
    bound = np.abs(coefs) @ (np.abs(K) + 1) * 8 * EPS + np.abs(machine.intercept_) * EPS
    assert (np.abs(machine.decision_function(new) - expected) <= bound).all()


@with_some_kernels
@in_both_storages
def test_precomputed_values_are_the_same_kernel(machine, kernel, convert):
    X, y = pixels(1, n=40)
    function, its = KERNELS[kernel]
    machine.set_params(kernel=kernel, shuffle=False, **its).fit(X, y)
    rows = clone(machine).set_params(kernel=exact_block(machine)).fit(X, y)
    K = exact_block(machine)(X, X)
    given = clone(machine).set_params(kernel="precomputed").fit(convert(K), y)
    for same, scored in ((rows, X), (given, convert(K))):
        np.testing.assert_array_equal(same.support_, machine.support_)
        np.testing.assert_array_equal(same.dual_coef_, machine.dual_coef_)
        np.testing.assert_array_equal(same.intercept_, machine.intercept_)
        np.testing.assert_array_equal(same.decision_function(scored), machine.decision_function(X))
    np.testing.assert_allclose(K, function(X, X, **its), rtol=1e-5, atol=1e-5)


def exact_block(machine):
    """The kernel of a fitted machine as a function of two arrays, without what is added to it."""
    kernel = machine._record().kernel

    def values(A, B):
        ours, theirs = (kernel_rows(M) for M in (A, B))
        return kernel_block(kernel, theirs, ours, 1, False)[:, : len(B)]

    return values


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
def test_a_function_is_called_on_rows_as_they_were_handed_in(machine, convert):
    X, y = pixels(2, n=40)
    kinds = set()

    def noting(A, B):
        kinds.update([sp.issparse(A), sp.issparse(B)])
        assert A.shape[1] == B.shape[1] == X.shape[1]
        return dot(A, B)

    named = clone(machine).set_params(kernel="linear").fit(convert(X), y)
    function = machine.set_params(kernel=noting).fit(convert(X), y)
    assert_same_bits(named, function, X)
    assert kinds == {convert is sp.csr_array}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinity"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "NaN or infinity"),
        (lambda A, B: np.ones((len(A), len(B) + 1)), "must be"),
        (lambda A, B: np.ones(len(A)), "must be"),
    ],
    ids=["NaN", "infinity", "too wide", "flat"],
)
class TestAnUnsoundKernel:
    def test_is_refused_with_advice(self, machine, values, words):
        X, y = pixels(3, n=20)
        with pytest.raises(ValueError, match=words):
            machine.set_params(kernel=values).fit(X, y)
        with pytest.raises(ValueError, match=words):
            clone(machine).partial_fit(X, y)

    def test_leaves_a_new_machine_unfitted(self, machine, values, words):
        X, y = pixels(3, n=20)
        with pytest.raises(ValueError, match=words):
            machine.set_params(kernel=values).fit(X, y)
        with pytest.raises(NotFittedError):
            machine.predict(X)

    def test_leaves_a_fitted_machine_as_it_was(self, machine, values, words):
        X, y = pixels(3, n=20)
        before = everything(machine.fit(X, y), X)
        with pytest.raises(ValueError, match=words):
            machine.set_params(kernel=values).fit(X, y)
        machine.set_params(kernel="rbf")
        for old, new in zip(before, everything(machine, X), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_in_a_later_chunk_leaves_the_stream_as_it_was(self, machine, values, words):
        X, y = pixels(3, n=30)
        sound = [True]

        def kernel(A, B):
            return dot(A, B) if sound[0] else values(A, B)

        machine.set_params(kernel=kernel).partial_fit(X[:20], y[:20])
        before = everything(machine, X)
        sound[0] = False
        with pytest.raises(ValueError, match=words):
            machine.partial_fit(X[20:], y[20:])
        sound[0] = True
        for old, new in zip(before, everything(machine, X), strict=True):
            np.testing.assert_array_equal(old, new)


def test_precomputed_values_are_refused_in_a_stream_and_where_not_square(machine):
    X, y = pixels(3, n=20)
    machine.set_params(kernel="precomputed")
    with pytest.raises(ValueError, match="needs all rows"):
        machine.partial_fit(dot(X, X), y)
    with pytest.raises(ValueError, match="square"):
        machine.fit(dot(X, X)[:, :7], y)
    with pytest.raises(NotFittedError):
        machine.predict(X)


def test_gamma_scale_and_auto_are_those_of_scikit_learn(machine):
    X, y = pixels(4, n=20)
    for stored in (X, X.astype(np.uint8), sp.csr_array(X)):
        machine.set_params(gamma="scale").fit(stored, y)
        assert machine.gamma_ == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-12)
    assert machine.set_params(gamma="auto").fit(X, y).gamma_ == 1 / X.shape[1]
    assert machine.set_params(gamma="scale").fit(np.ones((4, 2)), [0, 1, 0, 1]).gamma_ == 1


# ---- problems --------------------------------------------------------------------------------


def by_row(machine, problem, n_rows, numbers=None):
    """Coefficients of a problem by row, and its intercept."""
    out = np.zeros(n_rows)
    numbers = np.arange(n_rows) if numbers is None else numbers
    out[numbers[machine.support_]] = machine.dual_coef_[problem]
    return out, machine.intercept_[problem]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_one_against_the_rest_is_the_binary_machine_alone(machine, label):
    X, y = pixels(5, n=45, n_classes=3)
    machine.set_params(multi_class="ovr", shuffle=False).fit(X, y)
    alone = clone(machine).fit(X, y == label)
    place = machine.problems_.index((None, label))
    coefs, intercept = by_row(machine, place, len(y))
    expected, its = by_row(alone, 0, len(y))
    np.testing.assert_array_equal(coefs, expected)
    assert intercept == its
    scores = alone.decision_function(X).astype(np.float32)
    np.testing.assert_array_equal(machine.decision_function(X)[:, label], scores)


def test_one_against_the_rest_is_the_binary_machine_alone_in_shuffled_passes(machine):
    X, y = pixels(5, n=45, n_classes=3)
    machine.set_params(multi_class="ovr").fit(X, y)
    for label in range(3):
        alone = clone(machine).fit(X, y == label)
        scores = alone.decision_function(X).astype(np.float32)
        np.testing.assert_array_equal(machine.decision_function(X)[:, label], scores)


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_a_pair_of_classes_is_the_binary_machine_on_its_rows(machine, pair):
    X, y = pixels(6, n=45, n_classes=3)
    machine.set_params(multi_class="ovo", shuffle=False).fit(X, y)
    numbers = np.flatnonzero(np.isin(y, pair))
    alone = clone(machine).fit(X[numbers], y[numbers])
    place = machine.problems_.index(pair)
    coefs, intercept = by_row(machine, place, len(y))
    expected, its = by_row(alone, 0, len(y), numbers)
    np.testing.assert_array_equal(coefs, expected)
    assert intercept == its


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_every_problem_keeps_the_budget(machine, multi_class):
    X, y = pixels(7, n=45, n_classes=3)
    machine.set_params(multi_class=multi_class, budget=6, max_iter=2)
    for fitted in (machine.fit(X, y), after_stream(clone(machine), X, y)):
        for model in fitted._training.models:
            assert 2 <= active_slots(model.held).size <= 6
        assert (np.count_nonzero(fitted.dual_coef_, axis=1) <= 6).all()
        assert fitted.support_.size > 6


@in_both_storages
@pytest.mark.parametrize(("n_classes", "n_problems"), [(2, 1), (3, 3), (4, 6)])
def test_support_vectors_are_rows_of_x(machine, convert, n_classes, n_problems):
    X, y = pixels(8, n=40, n_classes=n_classes)
    machine.fit(convert(X), y)
    vectors, support = machine.support_vectors_, machine.support_
    assert sp.issparse(vectors) == (convert is sp.csr_array)
    dense = vectors.toarray() if sp.issparse(vectors) else vectors
    np.testing.assert_array_equal(dense, X[support])
    assert np.unique(support).size == support.size
    assert machine.dual_coef_.shape == (n_problems, support.size)
    assert machine.intercept_.shape == (n_problems,)
    np.testing.assert_array_equal(machine.n_support_, np.bincount(y[support], minlength=n_classes))


# ---- odd rows --------------------------------------------------------------------------------


def test_identical_rows_of_one_class_score_alike_and_are_told_from_the_other(machine):
    X = np.array([[3, 4]] * 4 + [[4, 1]] * 4, np.float32)
    y = np.array([0] * 4 + [1] * 4)
    machine.set_params(gamma=0.5, max_iter=6).fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), y)
    assert np.unique(machine.decision_function(X)).size == 2


# ---- streams ---------------------------------------------------------------------------------


def test_warm_start_goes_on_where_the_fit_ended(machine):
    X, y = pixels(12, n=40, n_classes=3)
    stream = clone(machine)
    machine.set_params(warm_start=True, shuffle=False, max_iter=1)
    for part in (slice(0, 25), slice(25, 40)):
        machine.fit(X[part], y[part])
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2])
        if hasattr(stream, "finish"):
            stream.finish()
        assert_same_bits(stream, machine, X)
    assert machine.n_steps_ == 80  # of pairs of three classes, each row is in two


def test_warm_start_goes_on_with_precomputed_values(machine):
    X, y = pixels(12, n=30)
    machine.set_params(kernel="precomputed", warm_start=True, max_iter=1)
    K = dot(X, X)
    machine.fit(K, y)
    n_steps = machine.n_steps_
    machine.fit(K, y)
    assert machine.n_steps_ == 2 * n_steps
    assert machine.support_.max() < len(y)
    assert machine.predict(K).shape == y.shape


def test_a_class_first_met_later_leaves_older_pairs_alone(machine):
    X, y = pixels(13, n=60, n_classes=3)
    y[:30] %= 2
    both = y < 2
    machine.set_params(multi_class="ovo", combine="margin")
    pair = after_stream(clone(machine), X[both], y[both])
    for start in range(0, 60, 12):
        machine.partial_fit(X[start : start + 12], y[start : start + 12])
    if hasattr(machine, "finish"):
        machine.finish()
    assert machine.classes_.tolist() == [0, 1, 2]
    assert len(machine.intercept_) == 3
    coefs, intercept = by_row(machine, 0, 60)
    expected, its = by_row(pair, 0, 60, np.flatnonzero(both))
    np.testing.assert_array_equal(coefs, expected)
    assert intercept == its
    is_third = y[machine.support_] == 2
    assert is_third.any()
    assert not machine.dual_coef_[0, is_third].any()


def interrupted(monkeypatch, where, after):
    """Let Ctrl-C come at a call of a function of `chunks`."""
    calls, true_one = [0], getattr(chunks, where)

    def counted(*given):
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return true_one(*given)

    monkeypatch.setattr(chunks, where, counted)
    return lambda: monkeypatch.setattr(chunks, where, true_one)


@pytest.mark.parametrize("where", ["_walk", "rows_at_hand", "kernel_block"])
@pytest.mark.parametrize("after", [1, pytest.param(4, marks=pytest.mark.compiled)])
def test_ctrl_c_leaves_a_model_that_can_be_used_and_goes_on(machine, monkeypatch, where, after):
    X, y = pixels(15, n=40)
    machine.set_params(max_iter=10)
    monkeypatch.setattr(Settings, "pack", 8)
    if hasattr(machine, "pack"):
        machine.set_params(pack=8)
    resume = interrupted(monkeypatch, where, after)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    resume()
    n_steps = machine.n_steps_
    assert n_steps % 8 == 0
    assert 0 < n_steps < 400
    scores = machine.decision_function(X)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(machine.predict(X), scores > 0)
    assert (machine.support_ < 40).all()
    machine.partial_fit(X, y)
    assert machine.n_steps_ == n_steps + 40


@pytest.mark.parametrize("after", [0, 3])
def test_ctrl_c_while_a_line_is_computed_costs_no_later_row(tiny_cache, monkeypatch, after):
    X, y = halves(0)
    machine = HullerClassifier(gamma=1.0, random_state=0, max_iter=5)
    resume = interrupted(monkeypatch, "bring_lines", after)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    resume()
    far_away = np.full((1, X.shape[1]), 50.0)
    machine.partial_fit(far_away, [0])
    assert (machine.support_vectors_ == far_away).all(axis=1).any()


def test_support_rows_that_no_problem_needs_are_dropped(machine):
    X, y = pixels(16, n=60, n_classes=3)
    machine.set_params(budget=3)
    for start in range(0, 60, 6):
        machine.partial_fit(X[start : start + 6], y[start : start + 6], classes=[0, 1, 2])
        training = machine._training
        n_live = training.live().size
        assert n_live == machine.support_.size <= 9
        assert training.support.size * (1 - DEAD_SHARE) <= n_live
        assert len(training.places) == training.support.size
        numbers = training.support.numbers
        assert [training.places[k] for k in numbers.tolist()] == list(range(numbers.size))
        np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    rows = training.support
    assert rows.entries.starts[-1] == rows.entries.values.size == rows.entries.columns.size
