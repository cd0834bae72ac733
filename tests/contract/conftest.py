"""Every estimator of the registry, variants of them that take other paths, and small data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import polyplane
from polyplane import (
    AMMClassifier,
    CPMClassifier,
    GAMMClassifier,
    HullerClassifier,
    KernelPegasosClassifier,
    KernelPerceptronClassifier,
    LaSVMClassifier,
    MMClassifier,
    PegasosClassifier,
    Poly2Classifier,
    PolyplaneClassifier,
    SAMMClassifier,
    SoftPlanesClassifier,
)
from polyplane.engine.jit import jit_is_disabled
from polyplane.estimator.parameters import REGISTRY, parameter, positive, with_parameters
from tests.contract.sameness import has_planes

for name in polyplane.__all__:  # a name enters the registry when it is first used
    getattr(polyplane, name)


FEW_LINES = {"default": 2.0**-20, "allowed": positive(), "meaning": "One byte."}


@with_parameters
class HullerOfFewLines(HullerClassifier):
    """Its cache holds the fewest lines of kernel values that a step can do with."""

    cache_mb: float = parameter(**FEW_LINES)


@with_parameters
class LaSVMOfFewLines(LaSVMClassifier):
    """The same of the other machine that has a cache."""

    cache_mb: float = parameter(**FEW_LINES)


FEW = 2 if jit_is_disabled() else 3  # passes: a first one, and one that goes on from it
SET = {"n_planes": 3, "shrinkage": 0.1, "learn_from": "unsure", "units": 1}
RECIPES = {
    "plain": SET | {"columns": "plain", "relevance": 0.0, "max_iter": FEW},
    "linear": {"columns": "knots", "n_planes": 1, "units": 1, "relevance": 0.0, "max_iter": FEW},
}
PORTFOLIO = PolyplaneClassifier(recipes=RECIPES)
OTHERS = "PolyplaneClassifier", "SoftPlanesClassifier"  # which have variants of their own
MACHINES = [  # one of each: what happens before and after the loops depends on nothing else
    *(made() for name, made in REGISTRY.items() if name not in OTHERS),
    SoftPlanesClassifier(columns="plain", alpha=1e-3, **SET),
    PORTFOLIO,
]
IN_BATCHES = AMMClassifier(mode="batch")  # the only one that cannot learn chunk by chunk
OTHER_LOOPS = [  # variants that take other paths inside the loops
    *MACHINES,
    IN_BATCHES,
    AMMClassifier(grow_rivals=True),
    CPMClassifier(sides="positive", n_planes=3, multi_class="ovr"),
    GAMMClassifier(clone_probability=0.5, prune_interval=20, prune_budget=3.0),
    SAMMClassifier(mu=0.01, l1=0.001),
    KernelPegasosClassifier(kernel="poly", coef0=1.0, budget=4),
]
FITTED_TO_DATA = SoftPlanesClassifier(relevance=1.0)  # after a first training
PAIRS = AMMClassifier(multi_class="ovo")
SAME_LOOPS = [  # variants that take other paths around them
    FITTED_TO_DATA,
    PAIRS,
    SoftPlanesClassifier(
        columns="knots", multi_class="ovo", directions="principal", **SET | {"units": 2}
    ),
    SoftPlanesClassifier(
        columns="rank", scores="normal", multi_class="ovr", fit_intercept=False, **SET
    ),
    MMClassifier(n_planes=7),  # more planes than a tile has lanes
    AMMClassifier(prune_interval=7, prune_budget=3.0),
    AMMClassifier(max_planes=2),
    AMMClassifier(fit_intercept=False),
    AMMClassifier(multi_class="ovo", combine="margin"),
    AMMClassifier(multi_class="ovr", n_estimators=3),
    AMMClassifier(n_estimators=2),
    MMClassifier(multi_class="ovo"),
    PegasosClassifier(average=False),
    PegasosClassifier(multi_class="ovr"),
    Poly2Classifier(gamma=0.5, coef0=2.0),
    CPMClassifier(entropy=0.0),
    CPMClassifier(max_steps=100),
    CPMClassifier(sides="negative"),
    SAMMClassifier(mu=0.0),
    HullerClassifier(kernel="poly", coef0=1.0, budget=20),
    HullerOfFewLines(C=1.0, n_removal=3, multi_class="ovr"),
    LaSVMClassifier(kernel="linear", multi_class="ovr", finishes=False),
    LaSVMClassifier(budget=4, n_reprocess=2, combine="margin"),
    LaSVMOfFewLines(),
    KernelPegasosClassifier(average=False, pack=19, multi_class="ovr"),
    KernelPerceptronClassifier(kernel="linear", fit_intercept=True, average=False),
]
EVERY = [*OTHER_LOOPS, *SAME_LOOPS]


def named(variants):
    """Variants as parameters of a fixture, each under its own name."""
    return [pytest.param(made, id=name_of(made), marks=marks_of(made)) for made in variants]


OF_ONE_ALGORITHM = {  # tests that set parameters, or look at models, which a portfolio has not
    "test_planes_widen_with_the_rows",
    "test_one_epoch_of_fit_equals_partial_fit_over_any_chunks",
    "test_works_in_cross_validation_and_grid_search",
    "test_set_params_reaches_the_next_fit",
    "test_parameters_set_after_fit_leave_the_model_alone",
    "test_odd_parts_of_csr_change_no_bit",
    "test_parts_of_csr_that_are_none_are_refused",
    "test_input_is_left_as_it_was",
    "test_a_fit_refused_for_its_validation_leaves_the_model_as_it_was",
    "test_classes_for_which_memory_is_short_leave_the_model_as_it_was",
    "test_ties_of_rows_of_bits_go_to_the_lowest_class",
    "test_plane_scores_are_the_planes_times_the_rows",
    "test_class_scores_follow_from_plane_scores_by_definition",
    "test_planes_of_one_class_stand_together",
    "test_the_intercept_of_a_plane_is_its_score_on_a_row_of_zeros",
    "test_a_reader_waits_for_the_first_fit",
    "test_weight_0_leaves_the_row_out_of_fit",
}


def pytest_collection_modifyitems(items):
    """Leave the portfolio out of tests of what only a single algorithm has."""
    for item in items:
        variants = getattr(getattr(item, "callspec", None), "params", {}).values()
        name = item.originalname if hasattr(item, "originalname") else item.name
        if name in OF_ONE_ALGORITHM and any(one is PORTFOLIO for one in variants):
            item.add_marker(pytest.mark.skip(reason="of one algorithm: tests/portfolio"))


def name_of(variant):
    """Return a short name of a variant."""
    return type(variant).__name__ if variant is PORTFOLIO else repr(variant)


def marks_of(variant):
    """Without the JIT, which is there to look inside the loops, the others would take minutes."""
    return [pytest.mark.compiled] if variant in SAME_LOOPS else []


def streams(variant):
    """Whether it learns chunk by chunk."""
    return hasattr(variant, "partial_fit")


def few_passes(variant):
    """Unfitted, seeded and with few passes."""
    made = clone(variant).set_params(random_state=0)
    if jit_is_disabled() and "n_landmarks" in made.get_params():
        made.set_params(n_landmarks=24)  # whose squares are what a step takes
    return made.set_params(max_iter=FEW) if "max_iter" in made.get_params() else made


def sees_every_storage(variant):
    """Whether its loops are compiled for storages whose loops differ in nothing but a type.

    One machine of each family is; without the JIT, where types cost nothing, all are.
    """
    return jit_is_disabled() or type(variant) in (PegasosClassifier, LaSVMClassifier)


@pytest.fixture(params=named(MACHINES))
def machine(request):
    """Each machine once, for what it shares with its variants: checks, labels, weights, copies."""
    return few_passes(request.param)


@pytest.fixture(params=named(filter(streams, MACHINES)))
def streaming_machine(request):
    """Each machine that learns chunk by chunk, once."""
    return few_passes(request.param)


@pytest.fixture(params=named([*OTHER_LOOPS, FITTED_TO_DATA, PAIRS]))
def loop(request):
    """Each variant that takes another path inside the loops, a search, and models side by side."""
    return few_passes(request.param)


@pytest.fixture(params=named(EVERY))
def estimator(request):
    """Each variant in turn."""
    return few_passes(request.param)


@pytest.fixture(params=named(filter(streams, EVERY)))
def streaming(request):
    """Each variant that learns chunk by chunk."""
    return few_passes(request.param)


@pytest.fixture(params=named(filter(has_planes, EVERY)))
def hyperplanes(request):
    """Each variant of a hyperplane machine."""
    return few_passes(request.param)


@pytest.fixture(params=named(filter(streams, filter(has_planes, EVERY))))
def streaming_hyperplanes(request):
    """Each variant of a hyperplane machine that learns chunk by chunk."""
    return few_passes(request.param)


@pytest.fixture
def X():
    """Rows of small whole numbers, some of them zero."""
    return np.random.default_rng(0).integers(0, 4, (48, 5)).astype(np.float32)


@pytest.fixture
def y(X):
    """Three classes that no plane parts: classes need several."""
    return (X[:, 0] + X[:, 1]).astype(np.int64) % 3


@pytest.fixture
def storages(request, X):
    """The same rows in every storage that users hand in.

    Loops are compiled anew for long columns: without the JIT all loops see them, compiled those of
    one machine of each family, and all in checks of scikit-learn.
    """
    variant = next(
        request.getfixturevalue(name)
        for name in ("estimator", "machine")
        if name in request.fixturenames
    )
    csr = sp.csr_array(X)
    wide = np.zeros((96, 10), np.float32)
    wide[::2, ::2] = X
    always = {
        "float32": X,
        "float64": X.astype(np.float64),
        "uint8": X.astype(np.uint8),
        "CSR": csr,
        "CSR matrix of float64": sp.csr_matrix(X.astype(np.float64)),
    }
    compiled_anew = {"CSR with int64 columns": with_long_columns(csr)}
    made_plain = {  # before any loop sees them
        "read-only": read_only(X),
        "int64": X.astype(np.int64),
        "F-ordered": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "list": X.tolist(),
        "CSR in disorder": in_disorder(csr),
        "CSC": sp.csc_array(X),
    }
    return (
        always
        | (compiled_anew if sees_every_storage(variant) else {})
        | ({} if jit_is_disabled() else made_plain)
    )


def read_only(array):
    """A copy that cannot be written to."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def with_long_columns(csr):
    """The same matrix with int64 columns and row boundaries."""
    copy = csr.copy()
    copy.indices, copy.indptr = copy.indices.astype(np.int64), copy.indptr.astype(np.int64)
    return copy


def in_disorder(csr):
    """The same matrix, each row backwards and each value v stored as v - 1 and 1."""
    values, columns, starts = [], [], [0]
    for i in range(csr.shape[0]):
        row = slice(csr.indptr[i], csr.indptr[i + 1])
        backwards = csr.indices[row][::-1]
        columns.extend([*backwards, *backwards])
        values.extend([*(csr.data[row][::-1] - 1), *np.ones(backwards.size)])
        starts.append(len(columns))
    parts = np.array(values, np.float32), np.array(columns, np.int32), np.array(starts, np.int32)
    return sp.csr_array(parts, shape=csr.shape)
