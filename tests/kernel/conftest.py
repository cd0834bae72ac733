"""What a fitted kernel machine holds, and kernel values exactly as it saw them."""

import itertools

import numpy as np
import pytest

from polyplane.engine.jit import jit_is_disabled
from polyplane.engine.order import in_place
from polyplane.engine.rows.storage import dense_rows
from polyplane.engine.support.support_set import NOT_THERE, active_slots
from polyplane.model.kernels.kernel_values import kernel_block, rows_at_hand
from tests.exact import only_model

FEW = 30 if jit_is_disabled() else 60  # rows
MANY = 40 if jit_is_disabled() else 300  # rows, where a stream is cut
FEW_EXAMPLES = 3 if jit_is_disabled() else 8


def halves(seed, n=FEW, width=4, noise=0.15):
    """Two classes, in part confused, that a curved surface parts."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, width)).astype(np.float32)
    y = (np.square(X[:, :2]).sum(axis=1) > 1.4).astype(np.int64)
    is_flipped = generator.random(n) < noise
    return X, np.where(is_flipped, 1 - y, y)


def apart(seed, n=FEW, width=4, gap=0.6):
    """Two classes that a plane parts, rows of both far enough from it."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, width)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    X[:, 0] += np.float32(gap) * (2 * y - 1)
    return X, y


def pixels(seed, n=MANY, width=5, n_classes=2):
    """Small whole numbers; the classes are stripes across two columns."""
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 6, (n, width)).astype(np.float64)
    return X, ((X[:, 0] + X[:, 1]) // 3).astype(np.int64) % n_classes


def some_weights(seed, n):
    """Exact in float32."""
    return np.random.default_rng(seed).choice([0.5, 1.0, 1.5, 4.0], n)


def kernel_rows(X):
    """Rows of an array as kernels take them."""
    numbers = in_place(len(X))
    return rows_at_hand(dense_rows(np.ascontiguousarray(X), 0.0), numbers, numbers, numbers)


def gram_of(estimator, X):
    """Kernel values between all rows of X as training saw them, in float64."""
    rows = kernel_rows(X)
    values = kernel_block(estimator._training.kernel, rows, rows, 1, False)
    return values[:, : len(X)].astype(np.float64)


def coins_of(estimator, n_rows, n_coins):
    """The coins of its only problem, from the first row on."""
    generator = np.random.default_rng(only_model(estimator).seed)
    return generator.random((n_rows, n_coins))


def listed_rows(estimator):
    """Numbers of the support vectors of the only problem, as its list of active ones has them."""
    held = only_model(estimator).held
    return held.row[active_slots(held)].tolist()


def coefs_of(estimator, n_rows, problem=0):
    """`dual_coef_` of a problem by number of the row."""
    out = np.zeros(n_rows)
    out[estimator.support_] = estimator.dual_coef_[problem]
    return out


def everything(estimator, X):
    """All that a fitted machine shows, for comparison bit by bit."""
    vectors = estimator.support_vectors_
    return [
        estimator.support_,
        vectors if isinstance(vectors, np.ndarray) else vectors.toarray(),
        estimator.dual_coef_,
        estimator.intercept_,
        estimator.n_support_,
        estimator.decision_function(X),
        np.array(estimator.n_steps_),
    ]


def assert_same_bits(one, other, X, of_other=None):
    """Both machines show the same; `of_other` is X as the other is to see it."""
    theirs = everything(other, X if of_other is None else of_other)
    for mine, its in zip(everything(one, X), theirs, strict=True):
        np.testing.assert_array_equal(mine, its)


def in_chunks(estimator, X, y, size, sample_weight=None):
    """The machine after partial_fit over chunks of so many rows; all classes are named at once."""
    bounds = [*range(0, len(y), size), len(y)]
    for start, stop in itertools.pairwise(bounds):
        part = slice(start, stop)
        weight = None if sample_weight is None else sample_weight[part]
        estimator.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weight)
    return estimator


def vectors_of(estimator, model):
    """Slots in use, and kernel values among the vectors in training, recomputed."""
    training, slots = estimator._training, active_slots(model.held)
    rows = training.support.chosen(model.held.place[slots])
    values = kernel_block(training.kernel, rows, rows, 1, False)[:, : slots.size]
    values[np.arange(slots.size), np.arange(slots.size)] = model.held.own[slots]
    return slots, values


def assert_lines_are_true(estimator):
    """Every line of the cache is what the kernel says, to the last bit."""
    for model in estimator._training.models:
        slots, values = vectors_of(estimator, model)
        held = model.held
        owners = held.owner[held.owner != NOT_THERE]
        assert np.unique(owners).size == owners.size
        for k, slot in enumerate(slots.tolist()):
            if held.line[slot] != NOT_THERE:
                assert held.owner[held.line[slot]] == slot
                np.testing.assert_array_equal(held.gram[held.line[slot], slots], values[k])


@pytest.fixture
def tiny_cache(monkeypatch):
    """Room for eight lines of kernel values, whatever `cache_mb` says."""
    monkeypatch.setattr("polyplane.training.kernels.family.MEGABYTE", 1)


@pytest.fixture
def small_shares(monkeypatch):
    """A thread for every few rows, where otherwise hundreds are needed to be worth one."""
    monkeypatch.setattr("polyplane.model.kernels.kernel_values.ROWS_WORTH_A_THREAD", 1)
    monkeypatch.setattr("polyplane.model.kernels.kernel_record.ROWS_WORTH_A_THREAD", 1)
