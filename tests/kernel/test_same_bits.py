"""What changes the time of a kernel machine, and not one bit of what it learns."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from polyplane import (
    HullerClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaSVMClassifier,
)
from tests.exact import only_model
from tests.kernel.conftest import (
    FEW_EXAMPLES,
    MANY,
    assert_lines_are_true,
    assert_same_bits,
    in_chunks,
    pixels,
)

pytestmark = pytest.mark.loops

CACHED = [
    HullerClassifier(C=4.0, n_removal=3, n_sweeps=2),
    LaSVMClassifier(C=10.0, n_reprocess=2),
]
MACHINES = [
    HullerClassifier(n_removal=2),
    *CACHED,
    LaSVMClassifier(C=0.1, finishes=False),
    KernelPegasosClassifier(alpha=0.01, max_iter=2),
    KernelPegasosClassifier(alpha=0.01, max_iter=2, average=False),
    KernelPerceptronClassifier(max_iter=3),
    KernelPerceptronClassifier(max_iter=3, average=False),
]


def each(machines):
    """The machines as parameters of a test, seeded."""
    made = [clone(machine).set_params(gamma=0.1, random_state=0) for machine in machines]
    return pytest.mark.parametrize("machine", made, ids=repr)


@each(MACHINES)
@settings(deadline=None, max_examples=FEW_EXAMPLES)
@given(size=st.integers(1, MANY))
def test_partial_fit_over_any_chunks_is_one_unshuffled_pass(machine, size):
    X, y = pixels(2)
    whole = clone(machine).set_params(max_iter=1, shuffle=False).fit(X, y)
    streamed = in_chunks(clone(machine), X, y, size)
    if getattr(machine, "finishes", hasattr(machine, "finish")):
        streamed.finish()
    assert_same_bits(whole, streamed, X)


@pytest.mark.compiled  # Python's own lock lets only one thread walk
@pytest.mark.parametrize("budget", [None, 10])
@each(MACHINES)
def test_the_number_of_threads_changes_no_bit(machine, small_shares, budget):
    X, y = pixels(3, n=80, n_classes=3)
    one, two = (clone(machine).set_params(budget=budget, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_same_bits(one, two, X)


@pytest.mark.parametrize("budget", [None, 25])
@each(CACHED)
def test_the_size_of_the_cache_changes_no_bit(machine, request, budget):
    X, y = pixels(4)
    machine = clone(machine).set_params(gamma=0.5, budget=budget)
    large = clone(machine).fit(X, y)
    request.getfixturevalue("tiny_cache")
    small = clone(machine).fit(X, y)
    assert only_model(small).held.owner.size == 8 < large.support_.size
    assert_same_bits(large, small, X)
    assert_lines_are_true(small)
