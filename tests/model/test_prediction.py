"""A fitted model by itself says what its estimator says, to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import polyplane as pp
from polyplane.estimator.files.fitted import fitted_of
from polyplane.model.format.prediction_part import read_fitted
from polyplane.model.prediction import n_threads
from tests.model.input.test_scaling import assert_same

GENERATOR = np.random.default_rng(9)
X = GENERATOR.integers(0, 9, (90, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 1]).astype(np.int64) % 3
NEW = GENERATOR.integers(0, 12, (70, 5)).astype(np.float32)
OURS = {"n_planes": 2, "step_size": 0.3, "start_scale": 1.0, "max_iter": 1}
MACHINES = [
    pp.AMMClassifier(max_iter=1),
    pp.CPMClassifier(n_planes=2, max_iter=1),
    pp.PegasosClassifier(max_iter=1, n_estimators=2, multi_class="ovr"),
    pp.SoftPlanesClassifier(columns="plain", **OURS),
    pp.SoftPlanesClassifier(columns="knots", multi_class="ovo", **OURS),
    pp.Poly2Classifier(max_iter=1, n_hash=7),
    pp.HullerClassifier(max_iter=1),
]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_it_says_what_the_estimator_says(machine, tmp_path):
    model = machine.set_params(random_state=0).fit(X, Y)
    pp.save(model, tmp_path / "model")
    for fitted in (fitted_of(model), read_fitted(tmp_path / "model")):
        assert fitted.title == type(model).__name__
        assert fitted.has_planes == hasattr(model, "planes_")
        for rows in (NEW, NEW.astype(np.uint8), sp.csr_matrix(NEW), NEW[:1], NEW.astype("f8")):
            names = ["predict", "decision_function"]
            names += ["assign"] if fitted.has_planes else []
            names += ["predict_proba"] if fitted.has_probabilities else []
            for name in names:
                expected = getattr(model, name)(rows)
                np.testing.assert_array_equal(getattr(fitted, name)(rows), expected, name)
        sizes = model.planes_per_class_ if fitted.has_planes else model.n_support_
        np.testing.assert_array_equal(fitted.sizes(), sizes)
        vectors = model.planes_ if fitted.has_planes else model.support_vectors_
        np.testing.assert_allclose(fitted.norms(), np.linalg.norm(vectors, axis=1), rtol=1e-5)


@pytest.mark.parametrize("scaler", [StandardScaler(), MaxAbsScaler()], ids=repr)
def test_it_scales_as_the_pipeline_does(scaler, tmp_path):
    model = make_pipeline(scaler, pp.AMMClassifier(max_iter=1, random_state=0)).fit(X, Y)
    pp.save(model, tmp_path / "model")
    fitted = read_fitted(tmp_path / "model")
    scaled = fitted.scaled(NEW)
    assert_same(scaled, model[0].transform(NEW), scaler)
    found = fitted.decision_function(scaled)
    np.testing.assert_array_equal(found, model[-1].decision_function(scaled))
    np.testing.assert_array_equal(fitted.scaled(NEW.astype(np.uint8)), scaled)


def test_rows_of_another_width_are_refused():
    fitted = fitted_of(pp.AMMClassifier(max_iter=1, random_state=0).fit(X, Y))
    for rows in (NEW[:, :4], np.hstack([NEW, NEW]), sp.csr_matrix(NEW[:, :4])):
        with pytest.raises(ValueError, match=r"AMMClassifier: X has \d+ columns, .* on 5\."):
            fitted.predict(rows)


def test_what_is_not_there_is_not_asked_for():
    fitted = fitted_of(pp.HullerClassifier(max_iter=1, random_state=0).fit(X, Y))
    with pytest.raises(TypeError, match="HullerClassifier has no planes"):
        fitted.assign(NEW)


def test_threads_are_counted_as_joblib_counts_them():
    joblib = pytest.importorskip("joblib")
    for n_jobs in (None, 1, 3, -1, -2, -1000):
        assert n_threads(n_jobs) == joblib.effective_n_jobs(n_jobs)
