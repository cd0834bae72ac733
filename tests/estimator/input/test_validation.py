"""What is handed in is checked once, before any loop reads it, and not copied."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplane import PegasosClassifier
from polyplane.engine.rows.storage import CsrRows, DenseRows
from polyplane.estimator.input import validation
from polyplane.estimator.input.validation import read_matrix, read_matrix_and_labels, row_weights
from polyplane.training.rows import codes_of

X = np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0], [4, 5, 6]], np.float32)
Y = np.array([0, 1, 0, 1])


def rows_of(X):
    return read_matrix(PegasosClassifier(), X, reset=True, constant=1.0)


# ---- labels ----------------------------------------------------------------------------------

LABELS = {
    "small whole numbers": st.integers(-5, 5).map(np.int64),
    "whole numbers": st.integers(-(2**62), 2**62).map(np.int64),
    "whole numbers around the limit of the table": st.sampled_from(
        [-65_537, -65_536, -65_535, 0, 65_535, 65_536, 65_537]
    ).map(np.int64),
    "bytes": st.integers(0, 255).map(np.uint8),
    "floats": st.floats(allow_nan=False, allow_infinity=False).map(np.float64),
    "whole floats": st.integers(-9, 9).map(np.float64),
    "truth values": st.booleans().map(np.bool_),
    "text": st.text("abc", max_size=3),
}


def lists_of(kind, min_size):
    return st.lists(LABELS[kind], min_size=min_size, max_size=12)


def as_labels(values, kind):
    """Text that is cut to nothing still is text."""
    return np.array(values, "U3" if kind == "text" else None)


@pytest.mark.parametrize("kind", LABELS)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_codes_of_first_labels_are_those_of_unique(kind, data):
    y = as_labels(data.draw(lists_of(kind, 1)), kind)
    labels, codes = codes_of(y, None)
    expected_labels, expected_codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(codes, expected_codes)
    assert labels.dtype == y.dtype


@pytest.mark.parametrize("kind", LABELS)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_known_labels_keep_their_codes_and_new_ones_follow(kind, data):
    known = data.draw(lists_of(kind, 1).map(lambda values: list(dict.fromkeys(values))))
    known = as_labels(known, kind)
    y = as_labels(data.draw(lists_of(kind, 1)), kind)
    labels, codes = codes_of(y, known)
    np.testing.assert_array_equal(labels[: known.size], known)
    np.testing.assert_array_equal(labels[known.size :], np.setdiff1d(y, known))
    np.testing.assert_array_equal(labels[codes], y)


@pytest.mark.parametrize(
    ("known", "y"),
    [
        (np.array([2, 1]), np.array([1.0, 2.0, 3.0])),
        (np.array([2.0, 1.5]), np.array([2, 3], np.uint8)),
        (np.array([False, True]), np.array([1, 0, 2])),
        (np.array(["b"]), np.array(["b", "a"], object)),
    ],
)
def test_labels_of_another_type_meet_their_equals(known, y):
    labels, codes = codes_of(y, known)
    assert labels[: known.size].tolist() == known.tolist()
    assert labels[codes].tolist() == y.tolist()


@pytest.mark.parametrize(
    ("known", "y", "words"),
    [
        (np.array(["a"]), np.array([1]), "^y holds numbers, but earlier labels are text"),
        (np.array(["a"], object), np.array([1]), "^y holds numbers, but earlier labels are text"),
        (np.array([1]), np.array(["a"]), "^y holds text, but earlier labels are numbers"),
    ],
)
def test_numbers_and_text_do_not_mix(known, y, words):
    with pytest.raises(ValueError, match=words):
        codes_of(y, known)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", None], "y holds None"),
        (np.array([None, 1.0], object), "y holds None"),
        (np.array([1, "a"], object), "several types, such as 1 and 'a'"),
        (pd.Series([True, "a"]), "several types, such as True and 'a'"),
        (np.array(["2020-01-01", "2021-01-01"], "M8[s]"), "y holds dates"),
        (pd.Series(pd.to_timedelta([1, 2])), "y holds durations"),
    ],
)
def test_labels_that_cannot_be_ordered_or_saved_are_refused(y, words):
    X = np.eye(2, dtype=np.float32)
    with pytest.raises(ValueError, match=words):
        PegasosClassifier().fit(X, y)
    with pytest.raises(ValueError, match=words.replace("y holds", "classes holds")):
        PegasosClassifier().partial_fit(X, ["a", "b"], classes=y)


def test_no_classes_at_all_are_refused_in_words():
    with pytest.raises(ValueError, match="classes"):
        PegasosClassifier().partial_fit(X, Y, classes=[])


# ---- matrices --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_dense_rows_are_not_copied(dtype):
    matrix = X.astype(dtype)
    rows = rows_of(matrix)
    assert isinstance(rows, DenseRows)
    assert rows.values.dtype == dtype
    assert np.shares_memory(rows.values, matrix)


def test_truth_values_are_bytes_without_a_copy():
    matrix = X > 0
    rows = rows_of(matrix)
    assert rows.values.dtype == np.uint8
    assert np.shares_memory(rows.values, matrix)
    np.testing.assert_array_equal(rows.values, matrix)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
def test_sparse_rows_in_order_are_not_copied(index, value):
    matrix = sp.csr_array(X.astype(value))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    rows, _ = read_matrix_and_labels(PegasosClassifier(), matrix, Y, reset=True, constant=1.0)
    assert isinstance(rows, CsrRows)
    assert np.shares_memory(rows.values, matrix.data)
    assert np.shares_memory(rows.columns, matrix.indices)
    assert rows.starts.dtype == np.int64  # one for each row: loops know them in this width alone
    if index == np.int64:
        assert np.shares_memory(rows.starts, matrix.indptr)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.longdouble, object])
def test_other_numbers_become_float32(dtype):
    rows = rows_of(X.astype(dtype))
    assert rows.values.dtype == np.float32
    np.testing.assert_array_equal(rows.values, X)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.uint8])
def test_other_numbers_in_sparse_rows_become_float32(dtype):
    rows = rows_of(sp.csr_array(X.astype(dtype)))
    assert rows.values.dtype == np.float32
    np.testing.assert_array_equal(rows.values, X[X > 0].astype(dtype))


def test_sparse_rows_in_disorder_are_put_in_order_in_a_copy():
    parts = [2.0, 1.0, 1.0, 5.0], [2, 0, 2, 1], [0, 3, 4]
    matrix = sp.csr_array(tuple(np.array(part) for part in parts), shape=(2, 3))
    rows = rows_of(matrix)
    assert rows.values.tolist() == [1, 3, 5]
    assert rows.columns.tolist() == [0, 2, 1]
    assert rows.starts.tolist() == [0, 2, 3]
    assert matrix.indices.tolist() == [2, 0, 2, 1]
    assert matrix.data.tolist() == [2, 1, 1, 5]


def broken_csr(**parts):
    """A CSR matrix with parts of it replaced behind scipy's back."""
    matrix = sp.csr_array(X)
    for name, values in parts.items():
        setattr(matrix, name, np.array(values, getattr(matrix, name).dtype))
    return matrix


BROKEN = {
    "boundaries that fall": (dict(indptr=[0, 5, 3, 3, 6]), "indptr does not rise"),
    "boundaries past the end": (dict(indptr=[0, 1, 3, 3, 7]), "indptr does not rise"),
    "boundaries below zero": (dict(indptr=[-1, 1, 3, 3, 6]), "indptr does not rise"),
    "boundaries from one": (dict(indptr=[1, 1, 3, 3, 6]), "indptr does not rise"),
    "too few columns": (dict(indices=[1, 0, 2]), "indptr does not rise"),
    "a column too high": (dict(indices=[1, 0, 2, 0, 1, 3]), "column 3 in a matrix of 3 columns"),
    "a column too low": (dict(indices=[-1, 0, 2, 0, 1, 2]), "column -1 in a matrix of 3 columns"),
}


@pytest.mark.parametrize(("parts", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_sparse_matrix_is_refused_before_a_loop_reads_it(parts, words):
    with pytest.raises(ValueError, match=rf"^X is a broken CSR matrix: .*{words}.*\.$"):
        rows_of(broken_csr(**parts))
    with pytest.raises(ValueError, match=words):
        PegasosClassifier().fit(broken_csr(**parts), Y)
    with pytest.raises(ValueError, match=words):
        PegasosClassifier().fit(X, Y).predict(broken_csr(**parts))


def test_the_largest_value_allowed_is_allowed():
    assert rows_of(X * 1e10 / 6).values.max() == 1e10
    with pytest.raises(ValueError, match="MaxAbsScaler"):
        rows_of(np.nextafter(X * 1e10 / 6, np.inf))


# ---- weights ---------------------------------------------------------------------------------


def test_no_weights_are_an_empty_array():
    assert row_weights(Y, None, None).size == 0


def test_weights_multiply_and_are_float32():
    weights = row_weights(Y, [1, 2, 3, 4], {1: 10})
    assert weights.dtype == np.float32
    assert weights.tolist() == [1, 20, 3, 40]


def test_balanced_weights_add_up_to_the_number_of_rows():
    y = np.array(["a", "b", "b", "b"])
    assert row_weights(y, None, "balanced").tolist() == [2, *[np.float32(2 / 3)] * 3]


def test_weights_given_are_left_as_they_were():
    given_weights = np.array([1.0, 2, 3, 4])
    row_weights(Y, given_weights, {1: 10})
    assert given_weights.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 1e39])
def test_sample_weights_that_are_no_weights_or_overflow_are_refused(bad):
    with pytest.raises(ValueError, match=r"sample_weight|Negative values"):
        row_weights(Y, [1, 1, bad, 1], None)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 1e39, "heavy"])
def test_class_weights_that_are_no_weights_are_refused(bad):
    with pytest.raises(ValueError, match="class_weight"):
        row_weights(Y, None, {1: bad})


# ---- chunks that scikit-learn need not look at -------------------------------------------------


def trained():
    return PegasosClassifier(random_state=0).partial_fit(X, Y)


def as_csr(matrix, value, index):
    rows = matrix(X.astype(value))
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    return rows


PLAIN_ROWS = [
    *(X.astype(dtype) for dtype in (np.float32, np.float64, np.uint8)),
    *(
        as_csr(matrix, value, index)
        for matrix in (sp.csr_matrix, sp.csr_array)
        for value in (np.float32, np.float64)
        for index in (np.int32, np.int64)
    ),
]
PLAIN_LABELS = [
    Y, Y.astype(np.uint8), Y.astype(np.float64), Y.astype(np.float32), Y > 0, Y * 2**40,
]  # fmt: skip
try:
    ONE_SPARSE_ROW = sp.csr_array(X[0])
except ValueError:  # SciPy 1.13 and 1.14 have one dimension in COO only
    ONE_SPARSE_ROW = sp.coo_array(X[0])
OTHER_ROWS = [
    X.tolist(), X[0], X[:0], X[:, :2], X[None], np.asfortranarray(X), X.astype(np.int64), X > 1,
    X.astype(object), X.astype(str), X.astype(">f4"), np.matrix(X), np.ma.masked_array(X),
    ONE_SPARSE_ROW, sp.csr_array(X[:0]), sp.csr_array(X[:, :2]), sp.csc_matrix(X),
    sp.csr_matrix(X.astype(int)), sp.csr_matrix(X, dtype=complex), None, "X",
]  # fmt: skip
OTHER_LABELS = [
    Y.tolist(), Y[:, None], Y[:3], Y[:0], Y.astype(str), Y.astype(object), Y + 0.3, Y * np.nan,
    Y * 1j, np.ma.masked_array(Y), np.array(1), None, "Y",
]  # fmt: skip


def outcome_of(work):
    """What a model has learned or foretells, or what it refuses in which words."""
    try:
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            found = work()
    except Exception as error:
        return type(error), str(error)
    state = found if isinstance(found, np.ndarray) else found.decision_function(X)
    return state.tolist(), [str(warning.message) for warning in met]


@pytest.mark.parametrize("rows", PLAIN_ROWS)
def test_plain_chunks_go_past_scikit_learn(monkeypatch, rows):
    models = [trained() for _ in PLAIN_LABELS]
    wanted = models[0].predict(X).tolist()
    monkeypatch.setattr(validation, "validate_data", None)
    assert models[0].predict(rows).tolist() == wanted
    for model, y in zip(models, PLAIN_LABELS, strict=True):
        model.partial_fit(rows, y)
        assert model.n_steps_ == 8


def fitted_before():
    """Machines before a fit: one that knows nothing, one of other columns, one of names."""
    wide, names = np.hstack([X, X]), pd.DataFrame(X, columns=["a", "b", "c"])
    machines = [PegasosClassifier(random_state=0) for _ in range(3)]
    return [machines[0], machines[1].fit(wide, Y), machines[2].fit(names, Y)]


def outcomes_of_fits(rows, y):
    """What fits have learned, and of which columns, or what they refuse in which words."""
    found = []
    for model in fitted_before():
        learned = outcome_of(lambda model=model: model.fit(rows, y).planes_)
        known = {name: vars(model).get(name) for name in ("n_features_in_", "feature_names_in_")}
        found.append((learned, repr(known)))
    return found


@pytest.mark.parametrize("rows", PLAIN_ROWS)
def test_a_fit_of_plain_rows_goes_past_scikit_learn(monkeypatch, rows):
    machines = [fitted_before() for _ in PLAIN_LABELS]
    monkeypatch.setattr(validation, "validate_data", None)
    for models, y in zip(machines, PLAIN_LABELS, strict=True):
        for model in models:
            assert model.fit(rows, y).n_features_in_ == 3
            assert not hasattr(model, "feature_names_in_")


def outcomes_of(rows, y):
    """What becomes of rows and labels in a prediction, a chunk and fits."""
    chunks = [outcome_of(lambda y=y: trained().partial_fit(rows, y)) for y in (y, Y[:1])]
    return [outcome_of(lambda: trained().predict(rows)), *chunks, outcomes_of_fits(rows, y)]


@pytest.mark.parametrize("rows", PLAIN_ROWS + OTHER_ROWS, ids=lambda rows: repr(rows)[:30])
def test_all_rows_are_read_or_refused_as_scikit_learn_does_it(monkeypatch, rows):
    fast = [*outcomes_of(rows, Y), outcomes_of_fits(rows, Y[:1])]
    monkeypatch.setattr(validation, "_is_plain", lambda *_: False)
    assert [*outcomes_of(rows, Y), outcomes_of_fits(rows, Y[:1])] == fast


@pytest.mark.parametrize("y", PLAIN_LABELS + OTHER_LABELS, ids=lambda y: repr(y)[:30])
def test_all_labels_are_read_or_refused_as_scikit_learn_does_it(monkeypatch, y):
    fast = outcomes_of(X, y)
    monkeypatch.setattr(validation, "_is_plain", lambda *_: False)
    assert outcomes_of(X, y) == fast


def test_plain_rows_of_a_model_that_knows_names_are_warned_of():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = PegasosClassifier().fit(frame, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e11])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_bad_values_in_plain_chunks_are_refused(kind, bad):
    model, rows = trained(), X.copy()
    rows[1, 0] = bad
    for work in (lambda: model.partial_fit(kind(rows), Y), lambda: model.predict(kind(rows))):
        with pytest.raises(ValueError, match="Input X"):
            work()
    assert model.n_steps_ == 4


def test_broken_plain_chunks_are_refused():
    rows = sp.csr_matrix(X)
    rows.indices[0] = 3
    model = trained()
    for work in (lambda: model.partial_fit(rows, Y), lambda: model.predict(rows)):
        with pytest.raises(ValueError, match="broken CSR"):
            work()
