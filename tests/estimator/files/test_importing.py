"""Imported models decide as the programs that wrote them, and can be saved and exported."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC, NuSVC

import polyplane as pp
from polyplane.engine.jit import jit_is_disabled
from polyplane.engine.rows.storage import dense_rows
from polyplane.estimator.files.importing import import_model, is_text_model
from tests.model.foreign.test_model_text import LINEAR, SVM

FILES = Path(__file__).parents[2] / "model" / "foreign" / "files"
FEW = 80 if jit_is_disabled() else 120  # rows to train on
X, Y = make_classification(
    220, 6, n_informative=4, n_classes=4, n_clusters_per_class=1, class_sep=0.7, random_state=3
)
X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, 0, X).astype(np.float32)
NEW = X[120:150] if jit_is_disabled() else X[120:]
SETTINGS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.5},
    "sigmoid": {"gamma": 0.1, "coef0": -0.5},
}
LABELS = {2: np.array([-1, 1, -1, 1]), 3: np.array([7, -3, 0, 7]), 4: np.arange(4)}


def labels_of(n_classes):
    """Labels of all rows, of so many classes."""
    return LABELS[n_classes][Y]


# ---- the formats, as their READMEs have them ---------------------------------------------


def entries(row):
    return "".join(f"{j + 1}:{x:.17g} " for j, x in enumerate(row) if x != 0)


def write_libsvm(path, svc, kind="c_svc"):
    """A fitted SVC as `svm-train` would have written it.

    With two classes scikit-learn has turned the signs around, so that the second is positive.
    """
    sign = -1 if svc.classes_.size == 2 else 1
    names = {"poly": "polynomial"}
    lines = [f"svm_type {kind}", f"kernel_type {names.get(svc.kernel, svc.kernel)}"]
    of_kernel = {"poly": ["degree", "gamma", "coef0"], "rbf": ["gamma"], "linear": [],
                 "sigmoid": ["gamma", "coef0"]}  # fmt: skip
    lines += [f"{key} {getattr(svc, key)}" for key in of_kernel[svc.kernel]]
    lines += [f"nr_class {svc.classes_.size}", f"total_sv {svc.n_support_.sum()}"]
    for key, values in [
        ("rho", -sign * svc.intercept_), ("label", svc.classes_), ("nr_sv", svc.n_support_)
    ]:  # fmt: skip
        lines.append(" ".join([key, *(f"{value:.17g}" for value in values)]))
    lines.append("SV")
    dual, vectors = svc.dual_coef_, svc.support_vectors_
    if sp.issparse(dual):
        dual, vectors = dual.toarray(), vectors.toarray()
    for coefs, row in zip(sign * dual.T, vectors, strict=True):
        lines.append("".join(f"{coef:.17g} " for coef in coefs) + entries(row))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_liblinear(path, model, bias, solver):
    """A fitted linear model as `train` would have written it; its first label is positive."""
    is_two = model.classes_.size == 2 and solver != "MCSVM_CS"
    classes = model.classes_[::-1] if is_two else model.classes_
    w = model.coef_
    if bias >= 0:
        w = np.hstack([w, np.atleast_1d(model.intercept_)[:, None] / bias])
    lines = [f"solver_type {solver}", f"nr_class {classes.size}",
             f"label {' '.join(map(str, classes))}", f"nr_feature {model.coef_.shape[1]}",
             f"bias {bias}", "w"]  # fmt: skip
    lines += ["".join(f"{x:.17g} " for x in row) for row in w.T]
    path.write_text("\n".join(lines) + "\n")
    return path


# ---- LIBSVM ------------------------------------------------------------------------------


def pair_scores(model, rows):
    """What each pair i < j of the file's classes scores, i being positive, as in LIBSVM."""
    record = model._record()
    leads = record.leads(dense_rows(rows, 0.0), np.arange(len(rows)))
    problems = [problem.classes for problem in record.decomposition.problems()]
    pairs = [(i, j) for i in range(model.classes_.size) for j in range(i + 1, model.classes_.size)]
    return -leads[:, [problems.index(pair) for pair in pairs]], pairs


def check_votes(model, rows, expected, scores, pairs, labels):
    """The class with the most votes wins; of several it may be any."""
    votes = np.zeros((len(rows), len(labels)))
    for column, (i, j) in zip(scores.T, pairs, strict=True):
        votes[:, i] += column > 0
        votes[:, j] += column <= 0
    found = np.searchsorted(np.sort(labels), model.predict(rows))
    ranks = np.argsort(np.argsort(labels))
    is_best = (votes == votes.max(axis=1, keepdims=True))[:, np.argsort(ranks)]
    assert is_best[np.arange(len(rows)), found].all()
    is_clear = is_best.sum(axis=1) == 1
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(model.predict(rows)[is_clear], expected[is_clear])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", SETTINGS)
def test_an_svm_scores_and_votes_as_libsvm_does(kernel, n_classes, is_sparse, tmp_path):
    rows = X[:FEW].astype(np.float64)
    svc = SVC(kernel=kernel, C=2.0, decision_function_shape="ovo", **SETTINGS[kernel])
    svc.fit(sp.csr_matrix(rows) if is_sparse else rows, labels_of(n_classes)[:FEW])
    model = import_model(write_libsvm(tmp_path / "a.model", svc), n_features=6)
    expected = svc.decision_function(sp.csr_matrix(NEW, dtype=float) if is_sparse else NEW)
    if n_classes == 2:
        np.testing.assert_allclose(model.decision_function(NEW), expected, atol=2e-5)
        expected = -expected[:, None]
    scores, pairs = pair_scores(model, NEW)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=2e-5)
    theirs = svc.predict(sp.csr_matrix(NEW, dtype=float) if is_sparse else NEW)
    check_votes(model, NEW, theirs, expected, pairs, svc.classes_)
    np.testing.assert_array_equal(model.predict(sp.csr_matrix(NEW)), model.predict(NEW))
    assert model.classes_.tolist() == svc.classes_.tolist()


def test_an_svm_has_the_parameters_of_the_file(tmp_path):
    svc = SVC(C=2.0, **SETTINGS["rbf"]).fit(X[:FEW], labels_of(3)[:FEW])
    model = import_model(write_libsvm(tmp_path / "a.model", svc), n_features=6)
    assert isinstance(model, pp.LaSVMClassifier)
    assert (model.kernel, model.gamma, model.C) == ("rbf", 0.5, 2.0)
    np.testing.assert_array_equal(model.n_support_, svc.n_support_)
    np.testing.assert_array_equal(model.support_vectors_.toarray(), svc.support_vectors_)
    assert model.problems_ == [(-3, 0), (-3, 7), (0, 7)]
    expected = np.zeros_like(model.dual_coef_)  # ours are those of the second side
    ends = np.concatenate([[0], svc.n_support_.cumsum()])
    of_class = [slice(ends[k], ends[k + 1]) for k in range(3)]
    for p, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        expected[p, of_class[i]] = -svc.dual_coef_[j - 1, of_class[i]]
        expected[p, of_class[j]] = -svc.dual_coef_[i, of_class[j]]
    np.testing.assert_array_equal(model.dual_coef_, expected)
    np.testing.assert_array_equal(model.intercept_, -svc.intercept_)


def test_nu_svm_is_an_svm_too(tmp_path):
    svc = NuSVC(nu=0.3, gamma=0.5).fit(X[:FEW], labels_of(2)[:FEW])
    model = import_model(write_libsvm(tmp_path / "a.model", svc, "nu_svc"), n_features=6)
    found = model.decision_function(NEW)
    np.testing.assert_allclose(found, svc.decision_function(NEW), rtol=1e-5, atol=2e-5)


def new_iris():
    """The rows for which the programs were asked."""
    rows, _ = load_iris(return_X_y=True)
    return rows[np.random.default_rng(1).permutation(150)][100:].astype(np.float32)


def test_a_file_of_libsvm_itself_scores_as_svm_predict_does():
    model = import_model(FILES / "iris_svm.model")
    expected = np.loadtxt(FILES / "iris_svm.values")
    scores, pairs = pair_scores(model, new_iris())
    np.testing.assert_allclose(scores, expected[:, 1:], atol=2e-5)
    assert model._training.labels.tolist() == [-1, 7, 3]
    check_votes(model, new_iris(), expected[:, 0], expected[:, 1:], pairs, np.array([-1, 7, 3]))


def test_a_file_of_liblinear_itself_scores_as_predict_does():
    model = import_model(FILES / "iris_linear.model")
    expected = np.loadtxt(FILES / "iris_linear.values")
    np.testing.assert_allclose(model.decision_function(new_iris()), expected[:, 1], atol=5e-6)
    np.testing.assert_array_equal(model.predict(new_iris()), expected[:, 0])


def test_a_pair_without_vectors_decides_by_rho(tmp_path):
    (tmp_path / "a.model").write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 2\nrho 0.5 -1.5 0\n"
        "label 1 2 3\nnr_sv 1 1 0\nSV\n1 0 1:1\n-1 0 1:-1\n"
    )
    model = import_model(tmp_path / "a.model")
    scores, _ = pair_scores(model, np.array([[2.0], [-1.0]], np.float32))
    np.testing.assert_array_equal(scores, [[3.5, 1.5, 0], [-2.5, 1.5, 0]])


# ---- LIBLINEAR ---------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("solver", ["L2R_L2LOSS_SVC", "MCSVM_CS", "L2R_LR"])
def test_planes_score_as_liblinear_does(solver, n_classes, bias, tmp_path):
    settings = {"fit_intercept": bias > 0, "intercept_scaling": max(bias, 1), "random_state": 0}
    if solver == "L2R_LR" and n_classes == 2:
        linear = LogisticRegression(solver="liblinear", **settings)
    else:
        joint = {"multi_class": "crammer_singer"} if solver == "MCSVM_CS" else {"dual": False}
        linear = LinearSVC(max_iter=2_000, tol=0.1, **joint, **settings)
    linear.fit(X[:FEW], labels_of(n_classes)[:FEW])
    if solver == "MCSVM_CS" and n_classes == 2:  # of which scikit-learn keeps the difference
        solver = "L2R_L2LOSS_SVC"
    model = import_model(write_liblinear(tmp_path / "a.model", linear, bias, solver))
    assert isinstance(model, pp.PegasosClassifier)
    assert model.fit_intercept == (bias > 0)
    for rows in (NEW, sp.csr_matrix(NEW)):
        found = model.decision_function(rows)
        np.testing.assert_allclose(found, linear.decision_function(NEW), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(model.predict(rows), linear.predict(NEW))


def test_many_columns_and_classes_have_room(tmp_path):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((300, 40))
    labels = rng.permutation(40)
    lines = ["solver_type L2R_LR", "nr_class 40", "label " + " ".join(map(str, labels)),
             "nr_feature 300", "bias -1", "w"]  # fmt: skip
    lines += ["".join(f"{x:.17g} " for x in row) for row in w]
    (tmp_path / "a.model").write_text("\n".join(lines) + "\n")
    model = import_model(tmp_path / "a.model")
    rows = rng.standard_normal((10, 300)).astype(np.float32)
    np.testing.assert_allclose(model.decision_function(rows)[:, labels], rows @ w, atol=1e-4)


# ---- a fitted estimator ------------------------------------------------------------------


def write_one(kind, path):
    """A model of a kind that X can be shown to."""
    y = labels_of(3)[:FEW]
    if kind == "libsvm":
        return write_libsvm(path, SVC(gamma=0.5).fit(X[:FEW], y))
    linear = LinearSVC(dual=False).fit(X[:FEW], y)
    return write_liblinear(path, linear, 1, "L2R_L2LOSS_SVC")


KINDS = ["libsvm", "liblinear"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_import_is_the_same_and_cannot_learn_on(kind, tmp_path):
    model = import_model(write_one(kind, tmp_path / "a.model"))
    pp.save(model, tmp_path / "saved")
    loaded = pp.load(tmp_path / "saved")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    pp.to_c(model, tmp_path / "model.h")
    for one in (model, loaded):
        with pytest.raises(ValueError, match="it predicts, but cannot learn on"):
            one.partial_fit(X[:FEW], labels_of(3)[:FEW])
    model.fit(X[:FEW], labels_of(3)[:FEW]).partial_fit(X[:FEW], labels_of(3)[:FEW])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_file_gives_the_same_model(kind, tmp_path):
    path = write_one(kind, tmp_path / "a.model")
    for name in ("first", "second"):
        pp.save(import_model(path), tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


# ---- columns -----------------------------------------------------------------------------


def test_columns_beyond_those_of_the_vectors_can_be_stated(tmp_path):
    svc = SVC(gamma=0.5).fit(X[:FEW], labels_of(2)[:FEW])
    wide = SVC(gamma=0.5).fit(np.hstack([X[:FEW], np.zeros((FEW, 2))]), labels_of(2)[:FEW])
    path = write_libsvm(tmp_path / "a.model", svc)
    assert import_model(path).n_features_in_ == 6
    model, rows = import_model(path, n_features=8), np.hstack([NEW, NEW[:, :2]])
    np.testing.assert_allclose(
        model.decision_function(rows), wide.decision_function(rows), atol=2e-5
    )
    with pytest.raises(pp.ModelError, match="index 6 is too large"):
        import_model(path, n_features=5)


def test_the_number_of_columns_may_be_stated_of_planes(tmp_path):
    path = write_one("liblinear", tmp_path / "a.model")
    model = import_model(path, n_features=9)
    assert model.n_features_in_ == 9
    rows = np.hstack([NEW, np.zeros((len(NEW), 3), np.float32)])
    found = import_model(path).decision_function(NEW)
    np.testing.assert_allclose(model.decision_function(rows), found, rtol=1e-6, atol=1e-6)
    with pytest.raises(pp.ModelError, match="has 6 features, but n_features=5 was stated"):
        import_model(path, n_features=5)


# ---- what is no model --------------------------------------------------------------------

BAD = [
    (SVM, "1:2 3:4", "1:2 1:4", "line 12: the index 1 stands twice"),
    (SVM, "2:1", "0:1", "line 13: found the index 0"),
    (SVM, "2:1", "-2:1", "line 13: the index '-2' is negative"),
    (SVM, "2:1", "2:1 7", "line 13: found '7'; index:value was expected"),
    (SVM, "2:1", "2:nan", "line 13: the value 'nan' is not finite"),
    (SVM, "2:1", "2:-inf", "line 13: the value '-inf' is not finite"),
    (SVM, "2:1", "2:1e39", "line 13: the value '1e39' is too large for float32"),
    (SVM, "2:1", "2:1e20", "line 13: the value 1e\\+20 is beyond 1e\\+10"),
    (SVM, "2:1", "2:1 # 3:1", "line 13: found '#'"),
    (SVM, "2:1", "qid:1 2:1", "line 13: found 'qid'"),
    (SVM, "2:1", "2147483646:1", "line 13: the index 2,147,483,646 is above 16,777,216"),
    (SVM, "2:1", "2147483648:1", "line 13: the index '2147483648' is above"),
    (
        SVM,
        "gamma 0.5",
        "gamma 1e300",
        "line 4: gamma is 1e\\+300, expected a number above 0 and up to 1e\\+38",
    ),
    (LINEAR, "4 5 6", "4 5 1e300", "the weight of feature 2 does not fit into float32"),
]


@pytest.mark.parametrize(("text", "old", "new", "words"), BAD)
def test_one_sentence_says_where_and_what_is_wrong(text, old, new, words, tmp_path):
    path = tmp_path / "a.model"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    tracemalloc.start()
    with pytest.raises(pp.ModelError, match=words) as caught:
        import_model(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000  # whatever the file states
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.compiled
@pytest.mark.parametrize("text", [SVM, LINEAR])
def test_damage_is_a_model_error_or_another_model(text, tmp_path):
    path, rng = tmp_path / "a.model", np.random.default_rng(0)
    n_refused = 0
    for _ in range(150):
        damaged = bytearray(text.encode())
        for place in rng.integers(0, len(damaged), rng.integers(1, 4)):
            damaged[place] = rng.choice(bytearray(b"0123456789.-+e: \n\tnaifSVw#\xff\x00"))
        path.write_bytes(damaged)
        try:
            model = import_model(path)
        except pp.ModelError:
            n_refused += 1
            continue
        pp.save(model, tmp_path / "saved")
        rows = np.ones((2, model.n_features_in_), np.float32)
        scores = model.decision_function(rows)
        np.testing.assert_array_equal(pp.load(tmp_path / "saved").decision_function(rows), scores)
    assert 20 < n_refused < 150


def test_text_models_are_told_from_ours(tmp_path):
    path = write_one("liblinear", tmp_path / "a.model")
    assert is_text_model(path)
    pp.save(import_model(path), tmp_path / "saved")
    assert not is_text_model(tmp_path / "saved")
    with pytest.raises(pp.ModelError, match="is no text model"):
        import_model(tmp_path / "saved")
