"""Our scaling is scikit-learn's, bit for bit, so that models see what they were trained on."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from polyplane.estimator.files.fitted import scaler_of, sklearn_scaler_of
from polyplane.model.format.checks import Unsound
from polyplane.model.format.schema import Reader, Writer
from polyplane.model.input.scaling import SCALER

GENERATOR = np.random.default_rng(3)
ROWS = (GENERATOR.standard_normal((60, 5)) * [1, 1e-3, 1e4, 3, 0] + [0, 1, -50, 9, 7]).astype("f4")
NEW = (3 * GENERATOR.standard_normal((200, 5)) * [1, 1e-3, 1e4, 3, 1]).astype("f4")
SCALERS = [
    MaxAbsScaler(),
    MinMaxScaler(),
    MinMaxScaler((-1, 2), clip=True),
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
]
OF_SPARSE = [scaler for scaler in SCALERS if not getattr(scaler, "with_mean", True)]
OF_SPARSE.append(MaxAbsScaler())
if hasattr(MaxAbsScaler(), "clip"):
    SCALERS.append(MaxAbsScaler(clip=True))
    OF_SPARSE.append(MaxAbsScaler(clip=True))
# earlier ones took means away in float64
IS_SAME_SCALING = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def kept(scaler):
    """By way of a file."""
    out = Writer()
    plain = SCALER.write(scaler, "scaler", out)
    return SCALER.read(plain, "scaler", Reader(out.arrays))


def assert_same(found, expected, scaler):
    if IS_SAME_SCALING or not isinstance(scaler, StandardScaler):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("fitted_on", [np.float32, np.float64])
@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_dense_rows_are_scaled_to_the_same_bits(scaler, fitted_on, dtype):
    scaler.fit(ROWS.astype(fitted_on))
    new = np.clip(NEW, 0, 255).astype(dtype) if dtype == np.uint8 else NEW.astype(dtype)
    before = new.copy()
    for ours in (scaler_of(scaler), kept(scaler_of(scaler))):
        assert_same(ours.scaled(new), scaler.transform(new), scaler)
    np.testing.assert_array_equal(new, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaler", OF_SPARSE, ids=repr)
def test_sparse_rows_are_scaled_to_the_same_bits(scaler, dtype):
    scaler.fit(sp.csr_matrix(ROWS))
    new = sp.csr_matrix(np.where(NEW > 0, NEW, 0).astype(dtype))
    found, expected = kept(scaler_of(scaler)).scaled(new), scaler.transform(new)
    assert_same(found.data, expected.data, scaler)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_sparse_rows_are_not_shifted():
    scaler = scaler_of(StandardScaler().fit(ROWS))
    with pytest.raises(ValueError, match="Sparse rows cannot be shifted"):
        scaler.scaled(sp.csr_matrix(NEW))


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_a_scaler_comes_back_and_can_be_fitted_further(scaler):
    scaler.fit(ROWS)
    again = sklearn_scaler_of(kept(scaler_of(scaler)))
    assert type(again) is type(scaler)
    assert again.get_params() == scaler.get_params()
    np.testing.assert_array_equal(again.transform(NEW), scaler.transform(NEW))
    for one in (scaler, again):
        one.partial_fit(NEW)
    np.testing.assert_array_equal(again.transform(NEW), scaler.transform(NEW))


def test_a_scaler_of_columns_with_gaps_is_kept_again_and_again():
    rows = ROWS.copy()
    rows[0, 0] = np.nan
    scaler = StandardScaler().fit(rows)
    assert np.ndim(scaler.n_samples_seen_) == 1
    once = sklearn_scaler_of(kept(scaler_of(scaler)))
    twice = sklearn_scaler_of(kept(scaler_of(once)))
    np.testing.assert_array_equal(twice.transform(NEW), scaler.transform(NEW))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("kind", "robust", "not one of maxabs, minmax, standard"),
        ("columns", 6, "of other columns"),
        ("low", 2.0, "within nothing"),
        ("names", ["a"], "names are too many"),
    ],
)
def test_a_scaler_that_does_not_fit_together_is_refused(field, value, words):
    out = Writer()
    plain = SCALER.write(scaler_of(MaxAbsScaler().fit(ROWS)), "scaler", out)
    with pytest.raises(Unsound, match=words):
        SCALER.read({**plain, field: value}, "scaler", Reader(out.arrays))
    worse = {**out.arrays, "scaler.scale": np.zeros(5, np.float32)}
    with pytest.raises(Unsound, match="divides by 0"):
        SCALER.read(plain, "scaler", Reader(worse))
