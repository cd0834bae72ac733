"""Exported classifiers decide like ours: every machine, all kinds of labels, pipelines."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import polyplane
from polyplane import (
    AMMClassifier,
    CPMClassifier,
    HullerClassifier,
    KernelPegasosClassifier,
    LaSVMClassifier,
    PegasosClassifier,
    Poly2Classifier,
    SoftPlanesClassifier,
)
from polyplane.estimator.files.exporting import to_c, to_onnx
from polyplane.model.format.model_file import ModelError
from tests.contract.conftest import EVERY, SET, few_passes
from tests.exported import (
    COMPILER,
    STRICT,
    assert_same_scores,
    compile_c,
    largest_part,
    needs_a_compiler,
    run_c,
    run_onnx,
)

VARIANTS = [
    *EVERY,
    AMMClassifier(multi_class="ovo", combine="margin", n_estimators=2, fit_intercept=False),
    CPMClassifier(multi_class="ovr", sides="negative"),
    Poly2Classifier(n_hash=20, multi_class="ovr"),
    Poly2Classifier(n_hash=20, fit_intercept=False, coef0=0.5),
    SoftPlanesClassifier(columns="knots", multi_class="ovr", n_estimators=2, **SET),
    SoftPlanesClassifier(columns="rank", multi_class="ovo", combine="vote", **SET),
    LaSVMClassifier(kernel="sigmoid", gamma=0.1, coef0=-0.5),
]
OF_TWO_CLASSES = [
    AMMClassifier(), CPMClassifier(sides="negative"), Poly2Classifier(), HullerClassifier(),
    SoftPlanesClassifier(columns="knots", n_estimators=2, directions="principal", **SET),
    SoftPlanesClassifier(columns="fine", relevance=2.0, **SET),
]  # fmt: skip
IN_STREAMS = [
    AMMClassifier(), AMMClassifier(n_estimators=2), AMMClassifier(multi_class="ovo"),
    CPMClassifier(), CPMClassifier(sides="negative", multi_class="ovr"),
    SoftPlanesClassifier(**SET), SoftPlanesClassifier(multi_class="ovo", **SET),
    KernelPegasosClassifier(), HullerClassifier(multi_class="ovr"),
]  # fmt: skip
NEVER_SEEN = pytest.mark.parametrize(
    ("classes", "seen"),
    [([-1, 0, 1, 2, 7], [0, 1, 2]), ([-1, 0, 1, 2, 7], [2]), ([0, 1], [1]), ([0], [0])],
)
DOCS = Path(__file__).parents[3] / "docs" / "export.md"


def many_rows(n_classes=4, n=160):
    """Real columns, a column of few values and one of bits; classes that no plane parts."""
    generator = np.random.default_rng(n_classes)
    X = generator.standard_normal((n, 5)).astype(np.float32) * 2
    X[:, 3] = generator.integers(0, 5, n)
    X[:, 4] = generator.integers(0, 2, n)
    y = (np.floor(X[:, 0]) + np.floor(X[:, 1]) + X[:, 3]).astype(np.int64) % n_classes
    return X, y


def new_rows(n=150):
    """Rows like those, some far outside."""
    X, _ = many_rows(3, n)
    X[::10] *= 50
    return X


def fitted(variant, n_classes=3):
    """The variant with few passes over some rows."""
    return few_passes(variant).fit(*many_rows(n_classes))


def assert_says_the_same(model, X, found):
    """Labels are the same, scores and probabilities to rounding."""
    np.testing.assert_array_equal(found["label"], model.predict(X))
    assert_same_scores(model, X, found["scores"])
    if hasattr(model, "predict_proba"):
        limit = 1e-6 * largest_part(model, X)
        expected = model.predict_proba(X)
        np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=limit)
        np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)


@pytest.mark.compiled
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_onnx_says_what_the_estimator_says(variant, n_classes):
    model, X = fitted(variant, n_classes), new_rows()
    made = to_onnx(model)
    found = run_onnx(made, X)
    assert_says_the_same(model, X, found)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    assert run_onnx(made, X[:0])["label"].shape == (0,)


@pytest.mark.compiled
@needs_a_compiler
@pytest.mark.parametrize(
    ("variant", "n_classes"),
    [*((variant, 4) for variant in VARIANTS), *((variant, 2) for variant in OF_TWO_CLASSES)],
    ids=repr,
)
def test_c_says_what_the_estimator_says(variant, n_classes, tmp_path):
    model, X = fitted(variant, n_classes), new_rows()
    found = run_c(to_c(model, name="model"), X, n_classes, tmp_path)
    found["label"] = [int(label) for label in found["label"]]
    assert_says_the_same(model, X, found)


# ---- streams -------------------------------------------------------------------------------


def streamed(variant, classes, seen):
    """A model that was told of classes, some of which it never saw."""
    X, y = many_rows(3)
    rows = np.isin(y, seen)
    return few_passes(variant).partial_fit(X[rows], y[rows], classes=classes)


@pytest.mark.compiled
@NEVER_SEEN
@pytest.mark.parametrize("variant", IN_STREAMS, ids=repr)
def test_onnx_treats_classes_never_seen_alike(variant, classes, seen):
    model = streamed(variant, classes, seen)
    assert_says_the_same(model, new_rows(), run_onnx(to_onnx(model), new_rows()))


@pytest.mark.compiled
@needs_a_compiler
@NEVER_SEEN
@pytest.mark.parametrize("variant", IN_STREAMS, ids=repr)
def test_c_treats_classes_never_seen_alike(variant, classes, seen, tmp_path):
    model = streamed(variant, classes, seen)
    found = run_c(to_c(model, name="model"), new_rows(), len(classes), tmp_path)
    found["label"] = [int(label) for label in found["label"]]
    assert_says_the_same(model, new_rows(), found)


@pytest.mark.compiled
def test_columns_met_later_are_exported_too():
    X, y = many_rows(3)
    model = AMMClassifier(random_state=0).partial_fit(X[:50, :3], y[:50], classes=[0, 1, 2])
    model.partial_fit(X, y)
    assert_says_the_same(model, new_rows(), run_onnx(to_onnx(model), new_rows()))


@pytest.mark.compiled
def test_models_of_sparse_rows_take_dense_ones():
    X, y = many_rows(3)
    X = np.where(X > 0, X, 0)
    for variant in (AMMClassifier(), HullerClassifier(gamma=0.1)):
        model = few_passes(variant).fit(sp.csr_matrix(X), y)
        assert_says_the_same(model, X, run_onnx(to_onnx(model), X))


# ---- pipelines -----------------------------------------------------------------------------

SCALERS = [
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False)],
    [MaxAbsScaler()],
    [MinMaxScaler((-1, 2), clip=True)],
    [MinMaxScaler()],
    ["passthrough", MaxAbsScaler(), StandardScaler()],
]
IN_PIPELINES = [AMMClassifier(), SoftPlanesClassifier(columns="knots", **SET), LaSVMClassifier()]


@pytest.mark.compiled
@pytest.mark.parametrize("scalers", SCALERS, ids=str)
@pytest.mark.parametrize("variant", IN_PIPELINES, ids=repr)
def test_scalers_of_a_pipeline_are_part_of_the_export(scalers, variant, tmp_path):
    X, y = many_rows(3)
    X = X + np.float32([0, 10, -30, 0, 0])
    model = make_pipeline(*scalers, few_passes(variant)).fit(X, y)
    X[::7] *= 2  # beyond what was seen
    limit = 1e-5 * largest_part(model[-1], model[:-1].transform(X))
    found = [run_onnx(to_onnx(model), X)["scores"]]
    if COMPILER:
        found.append(run_c(to_c(model, name="model"), X, 3, tmp_path)["scores"])
    for scores in found:
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=0, atol=limit)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


@pytest.mark.skipif(not hasattr(MaxAbsScaler(), "clip"), reason="this scikit-learn cannot cut")
def test_values_that_a_scaler_cuts_are_cut():
    X, y = many_rows(3, 60)
    model = make_pipeline(MaxAbsScaler(clip=True), few_passes(PegasosClassifier())).fit(X, y)
    found = run_onnx(to_onnx(model), 100 * X)["scores"]
    limit = 1e-6 * largest_part(model[-1], np.sign(X))
    np.testing.assert_allclose(found, model.decision_function(100 * X), rtol=0, atol=limit)


@needs_a_compiler
def test_sparse_rows_are_taken_where_zeros_stay_zeros():
    X, y = many_rows(3, 60)
    for scaler in (MaxAbsScaler(), StandardScaler(with_mean=False), MinMaxScaler()):
        model = make_pipeline(scaler, few_passes(PegasosClassifier())).fit(X, y)
        assert ("predict_sparse(" in to_c(model)) == (not isinstance(scaler, MinMaxScaler))


def test_the_metadata_name_estimator_classes_and_columns():
    X, y = many_rows(3, 60)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "ü"])
    model = make_pipeline(MaxAbsScaler(), few_passes(PegasosClassifier())).fit(frame, y + 0.0)
    made = to_onnx(model)
    metadata = {entry.key: entry.value for entry in made.metadata_props}
    assert metadata["estimator"] == "PegasosClassifier"
    assert json.loads(metadata["classes"]) == [0.0, 1.0, 2.0]
    assert json.loads(metadata["columns"]) == list("abcdü")
    assert (made.producer_name, made.producer_version) == ("polyplane", polyplane.__version__)
    assert made.doc_string == "PegasosClassifier: 5 columns, 3 classes, 3 planes."
    assert "columns" not in {entry.key for entry in to_onnx(model[-1]).metadata_props}


# ---- files ---------------------------------------------------------------------------------


@pytest.fixture
def pegasos():
    """A small model."""
    return few_passes(PegasosClassifier()).fit(*many_rows(3, 60))


def test_files_hold_what_is_returned(pegasos, tmp_path):
    made = to_onnx(pegasos, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == made
    text = to_c(pegasos, str(tmp_path / "model.h"))
    assert (tmp_path / "model.h").read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["model.h", "model.onnx"]


@pytest.mark.parametrize("export", [to_onnx, to_c])
def test_a_failure_leaves_the_old_file_and_nothing_else(export, pegasos, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyplane.whole_files.os.fsync", fail)
    with pytest.raises(
        ModelError, match=r"model: cannot be written \(No space.*nothing was changed"
    ):
        export(pegasos, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model"]
    with pytest.raises(ModelError, match=r"absent.*cannot be written"):
        export(pegasos, tmp_path / "absent" / "model")


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        (None, None, "polyplane"),
        ("digits.h", None, "digits"),
        ("My digits-2.tar.h", None, "My_digits_2"),
        ("2.h", None, "model_2"),
        ("über.h", None, "model__ber"),
        ("digits.h", "other_1", "other_1"),
    ],
)
def test_functions_are_named_like_the_file(file, name, expected, pegasos, tmp_path):
    text = to_c(pegasos, file and tmp_path / file, name)
    assert f"static inline int {expected}_predict(const float *x)" in text
    assert f"#define {expected.upper()}_N_FEATURES 5" in text
    assert re.search(r"\bname_|\bNAME_", text) is None


@pytest.mark.parametrize("name", ["", "2", "a-b", "_a", "é", "a b"])
def test_a_name_that_is_none_in_c_is_refused(name, pegasos):
    with pytest.raises(ModelError, match="with which names in C cannot begin"):
        to_c(pegasos, name=name)


# ---- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("export", [to_onnx, to_c])
def test_what_cannot_be_exported_is_told_in_a_sentence(export, pegasos):
    X, y = many_rows(3, 60)
    one_scaler = StandardScaler().fit(X[:, :3])
    gram = HullerClassifier(kernel="precomputed").fit(X @ X.T, y > 0)
    function = HullerClassifier(kernel=lambda a, b: a @ b.T).fit(X, y > 0)
    for model, words in [
        (LogisticRegression().fit(X, y), "LogisticRegression cannot be exported: give a fitted"),
        (make_pipeline(StandardScaler()).fit(X), "StandardScaler cannot be exported: give a"),
        (Pipeline([("none", "passthrough")]), "Pipeline cannot be exported: give a fitted"),
        (make_pipeline(RobustScaler().fit(X), pegasos), "RobustScaler cannot be exported: before"),
        (make_pipeline(one_scaler, pegasos), "StandardScaler was fitted on 3 columns, the"),
        (gram, "a kernel that is precomputed or a function cannot be exported"),
        (function, "a kernel that is precomputed or a function cannot be exported"),
    ]:
        with pytest.raises(ModelError, match=words):
            export(model)


@pytest.mark.parametrize("export", [to_onnx, to_c])
def test_models_that_are_not_fitted_are_refused(export, pegasos):
    for model in (
        AMMClassifier(),
        HullerClassifier(),
        make_pipeline(StandardScaler(), AMMClassifier()),
        make_pipeline(StandardScaler(), pegasos),
    ):
        with pytest.raises(NotFittedError, match="is not fitted: call `fit` before exporting"):
            export(model)


def test_without_onnx_the_error_says_what_to_install(pegasos, monkeypatch):
    for module in [
        name for name in sys.modules if name.startswith("polyplane.model.export.onnx_graphs.model")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match=r"`pip install polyplane\[onnx\]` first"):
        to_onnx(pegasos)
    assert "int polyplane_predict" in to_c(pegasos)


# ---- docs ----------------------------------------------------------------------------------


def blocks(language):
    """The examples of the docs in some language, but for those about tables."""
    page = DOCS.read_text().partition("\n## Tables\n")[0]
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.compiled
@needs_a_compiler
def test_the_examples_of_the_docs_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = many_rows(3, 60)
    scope = {"X": X, "y": y, "X_new": X}
    for code in blocks("python"):
        exec(code, scope)
    expected = scope["model"].predict(X)
    assert scope["labels"].tolist() == expected.tolist()
    [program] = blocks("c")
    (tmp_path / "main.c").write_text(program)
    compile_c(["-std=c99", *STRICT, "main.c", "-o", "main", "-lm"])
    row = " ".join(str(x) for x in X[0].tolist())
    found = subprocess.run(["./main"], input=row, capture_output=True, text=True, check=True)
    label, score = found.stdout.split()
    assert label == str(expected[0])
    np.testing.assert_allclose(float(score), scope["scores"][0].max(), rtol=1e-4)


def test_labels_that_are_not_unicode_are_refused_by_onnx():
    X, y = np.eye(4, dtype=np.float32), np.array(["a\ud800", "b"] * 2)
    model = PegasosClassifier(random_state=0).fit(X, y)
    with pytest.raises(ModelError, match=r"label 'a\\ud800' is not Unicode"):
        to_onnx(model)
