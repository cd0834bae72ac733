"""Rows and labels as users hand them in, sound and unsound."""

import copy

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tests.contract.conftest import sees_every_storage
from tests.contract.sameness import assert_same_model, has_planes, scores_of, set_where_there
from tests.definition import multiplies


@pytest.mark.loops
def test_storage_changes_no_bit_on_whole_numbers(estimator, X, y, storages):
    expected = clone(estimator).fit(X, y)
    scores = expected.decision_function(X)
    for storage, rows in storages.items():
        model = estimator.fit(rows, y)
        assert_same_model(model, expected, storage)
        np.testing.assert_array_equal(model.decision_function(rows), scores, storage)


@pytest.mark.loops
def test_a_model_scores_rows_of_any_storage_alike(estimator, X, y, storages):
    model = estimator.fit(X, y)
    expected = scores_of(model, X)
    for storage, rows in storages.items():
        for ours, theirs in zip(scores_of(model, rows), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, storage)


def strided(array):
    """The same values with gaps between them."""
    wide = np.zeros(2 * array.size, array.dtype)
    wide[::2] = array
    return wide[::2]


def frozen(array):
    """A copy that cannot be written to."""
    made = array.copy()
    made.flags.writeable = False
    return made


def with_part(csr, name, convert):
    """The same matrix, one of its three arrays stored otherwise, as users of scipy may do."""
    made = copy.copy(csr)  # scipy's own would make its arrays plain again
    setattr(made, name, convert(getattr(made, name)))
    return made


PARTS = {  # of CSR, stored oddly: of whole numbers all are the same bits
    "strided": strided,
    "big-endian": lambda part: part.astype(part.dtype.newbyteorder(">")),
    "read-only": frozen,
    "int64": lambda part: part.astype(np.int64),
    "uint16": lambda part: part.astype(np.uint16),
}
BROKEN_PARTS = {
    ("indptr", "floats"): np.float64,
    ("indices", "floats"): np.float64,
    ("indices", "truth values"): np.bool_,
    ("indptr", "a column"): lambda part: part[:, None],
}


@pytest.mark.loops
def test_odd_parts_of_csr_change_no_bit(estimator, X, y):
    estimator.set_params(max_iter=1)
    csr = sp.csr_array(X)
    expected = clone(estimator).fit(csr, y)
    scores = expected.decision_function(csr)
    for kind, convert in PARTS.items():
        if kind == "int64" and not sees_every_storage(estimator):
            continue  # loops are compiled anew for them
        odd = csr
        for name in ("data", "indices", "indptr"):
            odd = with_part(odd, name, convert)
            one = with_part(csr, name, convert)
            np.testing.assert_array_equal(expected.decision_function(one), scores, kind)
        assert_same_model(clone(estimator).fit(odd, y), expected, kind)
        np.testing.assert_array_equal(expected.decision_function(odd), scores, kind)


@pytest.mark.parametrize(("name", "kind"), BROKEN_PARTS, ids=" of ".join)
def test_parts_of_csr_that_are_none_are_refused(machine, X, y, name, kind):
    convert = BROKEN_PARTS[name, kind]
    broken = with_part(sp.csr_array(X), name, convert)
    words = rf"^X is a broken CSR matrix: its {name} .*\.$"
    with pytest.raises(ValueError, match=words):
        machine.fit(broken, y)
    model = machine.set_params(max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match=words):
        model.predict(broken)


@pytest.mark.loops
@pytest.mark.parametrize("convert", [np.float64, sp.csr_array], ids=["float64", "CSR"])
def test_storage_changes_no_bit_on_fractions_either(estimator, X, y, convert):
    X = X / np.float32(3)
    expected = clone(estimator).fit(X, y)
    model = estimator.fit(convert(X), y)
    assert_same_model(model, expected)
    for ours, theirs in zip(scores_of(model, convert(X)), scores_of(expected, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_input_is_left_as_it_was(machine, y, storages):
    machine.set_params(max_iter=1)
    before = joblib.hash([storages, y])
    for rows in storages.values():
        machine.fit(rows, y).predict(rows)
    assert joblib.hash([storages, y]) == before


def words_of_refusal(estimator, scale):
    """Why a machine that multiplies values has to refuse rows of this scale, or None."""
    if multiplies(estimator) and scale > 1:
        return r"products .* would overflow.*MaxAbsScaler\.$"
    takes_variance = getattr(estimator, "gamma", None) == "scale" and estimator.kernel != "linear"
    if takes_variance and scale < 1e-19:
        return r"^The variance of X is .* vanish in float32.*StandardScaler\.$"
    return None


@pytest.mark.loops
@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1e9])
def test_extreme_scales_stay_finite_or_are_refused_with_advice(estimator, X, y, scale):
    X = X.astype(np.float64) * scale
    words = words_of_refusal(estimator, scale)
    if words is not None:
        with pytest.raises(ValueError, match=words):
            estimator.fit(X, y)
        return
    model = estimator.fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    if has_planes(model):
        assert np.isfinite(model.planes_).all()
        assert np.isfinite(model.history_["error"]).all()


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
def test_values_that_would_overflow_are_refused_with_advice(machine, X, y, convert):
    with pytest.raises(ValueError, match=r"^Input X [^.]* as large as 3e\+13.*MaxAbsScaler\.$"):
        machine.fit(convert(X * 1e13), y)
    model = machine.fit(X, y)
    with pytest.raises(ValueError, match=r"MaxAbsScaler\.$"):
        model.predict(convert(X * 1e13))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
def test_missing_and_infinite_values_are_refused(machine, X, y, convert, bad):
    unsound = X.copy()
    unsound[7, 3] = bad
    words = r"contains NaN.*\.$" if np.isnan(bad) else r"contains infinity.*\.$"
    if not (np.isnan(bad) and convert is np.asarray):  # that is a table
        with pytest.raises(ValueError, match=words):
            machine.fit(convert(unsound), y)
    model = machine.fit(X, y)
    with pytest.raises(ValueError, match=words):
        model.predict(convert(unsound))


@pytest.mark.loops
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((8, 5)),
        np.zeros((8, 5)),
        np.repeat([[1, 2, 0, 0, 3], [0, 1, 1, 0, 0]], 4, axis=0),
        np.eye(8, 5),
    ],
    ids=["one row eight times", "zero rows", "two rows four times", "last rows zero"],
)
@pytest.mark.parametrize("y", [[0, 1] * 4, [0, 0, 0, 0, 1, 1, 1, 1]], ids=["mixed", "halves"])
def test_duplicate_contradictory_and_empty_rows_are_learned(estimator, rows, y):
    model = estimator.fit(rows, y)
    assert np.isfinite(model.decision_function(rows)).all()
    assert set(model.predict(rows)) <= {0, 1}


def test_a_constant_column_does_no_harm(machine, X, y):
    X = np.column_stack([X, np.full(len(X), 7, np.float32)])
    assert np.isfinite(machine.fit(X, y).decision_function(X)).all()


@pytest.mark.loops
def test_a_single_column_and_two_rows_suffice(estimator):
    model = estimator.fit([[1.0], [-1.0]], [0, 1])
    assert model.predict([[1.0], [-1.0]]).tolist() == [0, 1]


def test_one_row_is_one_class_and_refused_by_fit(machine, X, y):
    with pytest.raises(ValueError, match="class"):
        machine.fit(X[:1], y[:1])


def test_one_class_is_refused_by_fit(machine, X):
    name = type(machine).__name__
    with pytest.raises(ValueError, match=rf"^{name} needs rows of at least 2 classes.*'same'.*\.$"):
        machine.fit(X, ["same"] * len(X))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 4, 5]),
        np.array([-7, 0, 70_000]),
        np.array([1, 2, 200], np.uint8),
        np.array([-1.0, 0.0, 1.0]),
        np.array(["ant", "bee", "cow"]),
        np.array(["ant", "bee", "cow"], object),
    ],
    ids=lambda labels: f"{labels[0]!r} of {labels.dtype}",
)
def test_labels_come_back_as_they_were_given(machine, X, y, labels):
    expected = clone(machine).fit(X, y).predict(X)
    model = machine.fit(X, labels[y])
    np.testing.assert_array_equal(model.classes_, labels)
    np.testing.assert_array_equal(model.predict(X), labels[expected])
    assert model.classes_.dtype == labels.dtype
    assert model.predict(X).dtype == labels.dtype


@pytest.mark.parametrize("labels", [np.array([False, True]), np.array([-1.0, 1.0])])
def test_two_labels_come_back_as_they_were_given(machine, X, y, labels):
    y = np.minimum(y, 1)
    expected = clone(machine).fit(X, y)
    model = machine.fit(X, labels[y])
    np.testing.assert_array_equal(model.predict(X), labels[expected.predict(X)])
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert model.predict(X).dtype == labels.dtype


def test_fractions_as_labels_are_refused(machine, X, y):
    with pytest.raises(ValueError, match="Unknown label type"):
        machine.fit(X, y + 0.5)


def test_missing_labels_are_refused(machine, X, y):
    labels = y.astype(np.float64)
    labels[3] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        machine.fit(X, labels)


def with_nan(X, bad=np.nan, row=7):
    unsound = X.copy()
    unsound[row, 3] = bad
    return unsound


def widened(X):
    return np.column_stack([X, X])


# What is wrong with a call on a model fitted to X and y, and a word of the message.
UNSOUND = {
    "a missing value": (lambda X, y: dict(X=with_nan(X), y=y), "NaN"),
    "a missing value in wider rows": (lambda X, y: dict(X=with_nan(widened(X)), y=y), "NaN"),
    "values too large": (lambda X, y: dict(X=X * 1e13, y=y), "MaxAbsScaler"),
    "a label too few": (lambda X, y: dict(X=X, y=y[1:]), "inconsistent numbers"),
    "fractions as labels": (lambda X, y: dict(X=widened(X), y=y + 0.5), "Unknown label type"),
    "no rows": (lambda X, y: dict(X=X[:0], y=y[:0]), "0 sample"),
    "one dimension": (lambda X, y: dict(X=X[0], y=y), "2D"),
    "negative weights": (
        lambda X, y: dict(X=widened(X), y=y, sample_weight=-1.0 - y),
        "Negative values",
    ),
}
UNSOUND_FOR_FIT = {
    **{words: one for words, one in UNSOUND.items() if "missing" not in words},  # which is a table
    "an infinite value": (lambda X, y: dict(X=with_nan(X, np.inf), y=y), "infinity"),
    "both": (lambda X, y: dict(X=with_nan(with_nan(X), np.inf, 2), y=y), "infinite"),
    "one class": (lambda X, y: dict(X=X, y=y * 0), "class"),
    "one class in narrower rows": (lambda X, y: dict(X=X[:, :3], y=y * 0), "class"),
}
UNSOUND_FOR_VALIDATION = (
    lambda X, y: dict(X=widened(X), y=y, eval_set=(widened(X), y + 9)),
    "labels that y does not",
)
UNSOUND_FOR_PARTIAL_FIT = {
    **UNSOUND,
    "narrower rows": (lambda X, y: dict(X=X[:, :3], y=y), "features"),
    "text after numbers": (lambda X, y: dict(X=widened(X), y=y.astype(str)), "y holds text"),
}


def assert_refused_without_harm(model, method, unsound, X, y):
    arguments, words = unsound
    before, scores = joblib.hash(vars(model)), model.decision_function(X)
    with pytest.raises(ValueError, match=words):
        getattr(model, method)(**arguments(X, y))
    assert joblib.hash(vars(model)) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize("unsound", UNSOUND_FOR_FIT.values(), ids=UNSOUND_FOR_FIT.keys())
def test_a_refused_fit_leaves_the_model_as_it_was(machine, X, y, unsound):
    model = machine.fit(X, y)
    model.predict(X)
    assert_refused_without_harm(model, "fit", unsound, X, y)


def test_a_fit_refused_for_its_validation_leaves_the_model_as_it_was(hyperplanes, X, y):
    model = hyperplanes.fit(X, y)
    model.predict(X)
    assert_refused_without_harm(model, "fit", UNSOUND_FOR_VALIDATION, X, y)


@pytest.mark.parametrize(
    "unsound", UNSOUND_FOR_PARTIAL_FIT.values(), ids=UNSOUND_FOR_PARTIAL_FIT.keys()
)
def test_a_refused_chunk_leaves_the_model_as_it_was(streaming_machine, X, y, unsound):
    model = streaming_machine.partial_fit(X, y)
    model.predict(X)
    assert_refused_without_harm(model, "partial_fit", unsound, X, y)


def test_classes_for_which_memory_is_short_leave_the_model_as_it_was(streaming_machine, X, y):
    set_where_there(streaming_machine, multi_class="ovo")
    twin = clone(streaming_machine).partial_fit(X, y)
    model = streaming_machine.partial_fit(X, y)
    model.predict(X)
    too_many = lambda X, y: dict(X=X, y=y, classes=np.arange(400_000)), "GB of memory"
    assert_refused_without_harm(model, "partial_fit", too_many, X, y)
    for one in (model, twin):
        one.partial_fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))
