"""What `docs/model_files.md` says is enough: a page of NumPy predicts from files as we do."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import polyplane as pp
from polyplane.model.format.prediction_part import PREDICTION
from polyplane.model.format.schema import Maybe, Nested
from tests.reference.model_file import ModelFile

pytestmark = pytest.mark.compiled  # no loop is looked into here, and without the JIT it is slow
ROOT = Path(__file__).parents[3]
GENERATOR = np.random.default_rng(5)
X = GENERATOR.standard_normal((240, 4)).astype(np.float32)
X[:, 3] = GENERATOR.integers(0, 5, 240)
Y = (np.floor(X[:, 0]) + np.floor(X[:, 1]) + X[:, 3]).astype(np.int64) % 4
NAMES = np.array(["ä", "b", "c", "d"])[Y]
NEW = (GENERATOR.standard_normal((300, 4)) * 2).astype(np.float32)
OURS = {"n_planes": 3, "step_size": 0.3, "start_scale": 1.0, "max_iter": 3}
MACHINES = [
    pp.PegasosClassifier(),
    pp.PegasosClassifier(fit_intercept=False, multi_class="ovr"),
    pp.AMMClassifier(),
    pp.AMMClassifier(n_estimators=3, multi_class="ovo"),
    pp.MMClassifier(multi_class="ovo", combine="margin"),
    pp.SAMMClassifier(mu=1e-3),
    pp.CPMClassifier(n_planes=3),
    pp.CPMClassifier(n_planes=3, sides="negative", multi_class="ovr"),
    pp.SoftPlanesClassifier(columns="plain", **OURS),
    pp.SoftPlanesClassifier(columns="rank", multi_class="ovo", **OURS),
    pp.SoftPlanesClassifier(columns="knots", n_estimators=2, **OURS),
    pp.SoftPlanesClassifier(columns="knots", multi_class="ovr", directions="principal", **OURS),
    pp.PolyplaneClassifier(
        recipes={
            "ovr": OURS | {"columns": "knots", "multi_class": "ovr"},
            "turned": OURS | {"columns": "fine", "directions": "principal"},
            "linear": OURS | {"columns": "plain", "n_planes": 1},
        }
    ),
    pp.Poly2Classifier(coef0=0.5),
    pp.Poly2Classifier(n_hash=9, gamma=0.3),
    pp.HullerClassifier(C=1.0),
    pp.LaSVMClassifier(kernel="poly", degree=2, coef0=1.0, gamma=0.5, multi_class="ovr"),
    pp.LaSVMClassifier(kernel="linear"),
    pp.KernelPegasosClassifier(kernel="sigmoid", gamma=0.05, coef0=0.1),
    make_pipeline(StandardScaler(), pp.AMMClassifier()),
    make_pipeline(MaxAbsScaler(), pp.LaSVMClassifier()),
    make_pipeline(MinMaxScaler((-1, 2), clip=True), pp.PegasosClassifier()),
]


def fitted(machine, y):
    last = machine[-1] if hasattr(machine, "steps") else machine
    last.set_params(random_state=0)
    return machine.fit(X, y)


def assert_predicts_alike(model, path, rows, dense):
    file = ModelFile(path)
    scores = model.decision_function(rows)
    found = file.scores(dense)
    found = found[:, 1] - found[:, 0] if found.shape[1] == 2 else found
    size = np.abs(scores[np.isfinite(scores)]).max()
    np.testing.assert_allclose(found, scores, rtol=0, atol=2e-5 * size)
    best = np.sort(file.scores(dense), axis=1)
    is_clear = best[:, -1] - best[:, -2] > 4e-5 * size
    assert is_clear.mean() > 0.5  # margins that are cut to 1 may well add up to the same
    is_same = np.array(file.predict(dense)) == model.predict(rows)
    assert is_same[is_clear].all()
    assert is_same.mean() > 0.98
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(rows)
        np.testing.assert_allclose(file.probabilities(dense), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("y", [Y, NAMES, Y > 1], ids=["whole numbers", "text", "two classes"])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_a_page_of_numpy_predicts_from_the_file(machine, y, tmp_path):
    model = fitted(machine, y)
    pp.save(model, tmp_path / "model", training=False)
    assert_predicts_alike(model, tmp_path / "model", NEW, NEW)


def test_planes_of_few_of_many_columns_are_described_too(tmp_path):
    columns = np.sort(GENERATOR.permutation(900)[:4])
    wide, new = np.zeros((240, 900), np.float32), np.zeros((300, 900), np.float32)
    wide[:, columns], new[:, columns] = X, NEW
    ours = OURS | {"columns": "auto"}
    model = pp.SoftPlanesClassifier(random_state=0, **ours).fit(sp.csr_matrix(wide), Y)
    pp.save(model, tmp_path / "model")
    assert "prediction.features.columns.used" in ModelFile(tmp_path / "model").arrays
    assert_predicts_alike(model, tmp_path / "model", sp.csr_matrix(new), new)


def test_classes_that_were_met_out_of_order_are_described_too(tmp_path):
    for machine in (pp.AMMClassifier(multi_class="ovo"), pp.HullerClassifier(multi_class="ovr")):
        machine.set_params(random_state=0)
        for label in (2, 0, 3, 1):
            machine.partial_fit(X[label == Y], Y[label == Y])
        machine.partial_fit(X, Y)
        pp.save(machine, tmp_path / "model")
        assert ModelFile(tmp_path / "model").ranks.tolist() == [2, 0, 3, 1]
        assert_predicts_alike(machine, tmp_path / "model", NEW, NEW)


def test_a_matrix_of_kernel_values_is_described_too(tmp_path):
    model = pp.LaSVMClassifier(kernel="precomputed", random_state=0).fit(X @ X.T, Y)
    pp.save(model, tmp_path / "model")
    assert_predicts_alike(model, tmp_path / "model", NEW @ X.T, NEW @ X.T)


def test_the_page_knows_nothing_of_polyplane(tmp_path):
    model = pp.PegasosClassifier(random_state=0).fit(X, Y)
    pp.save(model, tmp_path / "model")
    code = (
        "import sys, json; from tests.reference.model_file import ModelFile; import numpy as np; "
        f"print(json.dumps(ModelFile({str(tmp_path / 'model')!r}).predict(np.eye(4)))); "
        "assert not any(name.startswith('polyplane') for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert json.loads(done.stdout) == model.predict(np.eye(4)).tolist(), done.stderr


def fields_of(table, path=""):
    for name, kind in table.fields.items():
        inner = kind.kind if isinstance(kind, Maybe) else kind
        yield f"{path}{name}"
        if isinstance(inner, Nested):
            yield from fields_of(inner.table, f"{path}{name}.")


def test_the_page_describes_every_field():
    text = (ROOT / "docs" / "model_files.md").read_text()
    described = set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))
    assert described == set(fields_of(PREDICTION))
