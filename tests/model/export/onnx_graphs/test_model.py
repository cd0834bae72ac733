"""ONNX of records made by hand, whose scores the record itself gives, and of what models say."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from polyplane import (
    AMMClassifier,
    HullerClassifier,
    LaSVMClassifier,
    PegasosClassifier,
    Poly2Classifier,
    SoftPlanesClassifier,
)
from polyplane.engine.order import in_place
from polyplane.engine.rows.products import poly2_rows
from polyplane.engine.rows.storage import dense_rows, matrix_of, packed
from polyplane.estimator.files.exporting import to_onnx
from polyplane.model.export.content import Exported, planes_of
from polyplane.model.export.onnx_graphs import graph as onnx_graph
from polyplane.model.export.onnx_graphs.model import onnx_model
from polyplane.model.format.model_file import ModelError
from polyplane.model.input.column_maps import column_map
from polyplane.model.many_classes.decomposition import Decomposition
from polyplane.model.plane_record import FinishedPlanes, record_of
from tests.exported import run_onnx

pytestmark = pytest.mark.loops

N_COLUMNS = 3
X = np.random.default_rng(0).standard_normal((50, N_COLUMNS)).astype(np.float32)
LABELS = {  # by kind: labels, and the type of ONNX that they come out as
    "int64": (np.array([-5, 0, 1 << 40]), onnx.TensorProto.INT64),
    "int8": (np.array([1, 2, 3], np.int8), onnx.TensorProto.INT64),
    "uint64": (np.array([1, 2, (1 << 64) - 1], np.uint64), onnx.TensorProto.UINT64),
    "float64": (np.array([-1.0, 2.0, 5.0]), onnx.TensorProto.DOUBLE),
    "float32": (np.array([0, 1, 2], np.float32), onnx.TensorProto.FLOAT),
    "bool": (np.array([False, True]), onnx.TensorProto.BOOL),
    "text": (np.array(["", 'ärger, "NAME_" ??/ \\n', "b" * 90]), onnx.TensorProto.STRING),
    "object": (np.array(["a", "b", "c"], object), onnx.TensorProto.STRING),
}


def exported(record, rows, has_probabilities=False):
    """A record of planes as it is handed over."""
    n_classes = record.decomposition.n_classes
    return Exported(
        title="made by hand",
        n_columns=N_COLUMNS,
        column_names=(),
        classes=np.arange(n_classes),
        table=None,
        scalings=(),
        scorer=planes_of(record, rows),
        decomposition=record.decomposition,
        calibration=record.calibration if has_probabilities else None,
    )


def finished(owner, seed, scale=1.0):
    """Planes of a model with a plane for each entry of `owner`."""
    sums = np.random.default_rng(seed).standard_normal((N_COLUMNS + 1, len(owner)))
    scales = np.full(len(owner), scale, np.float32)
    return FinishedPlanes(sums.astype(np.float32), np.array(owner, np.int32), scales)


def assert_scores_like(record, X):
    """The graph scores like the record, decides like its scores, and shares out likewise."""
    rows, order = dense_rows(X, 1.0), in_place(len(X))
    found = run_onnx(onnx_model(exported(record, rows, True), "1"), X)
    limit = 1e-6 * max(1.0, np.abs(record.plane_scores(rows, order)).max(initial=0))
    expected = record.class_scores(rows, order)
    np.testing.assert_allclose(found["scores"], expected, rtol=0, atol=limit)
    np.testing.assert_array_equal(found["label"], record.classes_of(rows, order))
    probabilities = record.probabilities(rows, order)
    np.testing.assert_allclose(found["probabilities"], probabilities, rtol=0, atol=limit)


# ---- groups and classes ----------------------------------------------------------------------


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("empty_score", [-np.inf, 0.25])
@pytest.mark.parametrize(
    "owner", [[0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3], [3, 0, 0, 0, 1, 2, 2], [0, 0, 3], [2], []]
)
def test_groups_of_any_size_score_like_the_record(owner, empty_score, is_soft):
    ranks = np.array([2, 0, 3, 1], np.int32)
    decomposition = Decomposition("joint", "vote", ranks)
    record = record_of([[finished(owner, 1, 0.5)]], decomposition, empty_score, is_soft, 0.7)
    assert_scores_like(record, X)


@pytest.mark.parametrize("n_estimators", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize(
    ("kind", "combine"), [("ovr", "vote"), ("ovo", "vote"), ("ovo", "margin"), ("ovo", "soft")]
)
def test_problems_and_estimators_are_combined_like_the_record(
    kind, combine, n_classes, n_estimators
):
    ranks = np.random.default_rng(n_classes).permutation(n_classes).astype(np.int32)
    decomposition = Decomposition(kind, combine, ranks)
    models = [
        [finished([0, 1, 1], 100 * e + p) for p in range(len(decomposition.problems()))]
        for e in range(n_estimators)
    ]
    assert_scores_like(record_of(models, decomposition, -np.inf, combine == "soft", 1.3), X)


def test_soft_scores_do_not_overflow():
    decomposition = Decomposition("joint", "vote", np.arange(2, dtype=np.int32))
    record = record_of([[finished([0, 0, 1], 0, 1e6)]], decomposition, -np.inf, True)
    assert_scores_like(record, X)
    huge = record_of([[finished([0, 0, 1], 0, 3e38)]], decomposition, -np.inf, True)
    found = run_onnx(onnx_model(exported(huge, dense_rows(X, 1.0), True), "1"), 1e10 * X)
    assert not np.isnan(found["scores"]).any()
    assert not np.isnan(found["probabilities"]).any()


def test_other_kinds_of_rows_are_refused_by_name():
    decomposition = Decomposition("joint", "vote", np.arange(2, dtype=np.int32))
    record = record_of([[finished([0, 1], 0)]], decomposition, -np.inf)
    with pytest.raises(ModelError, match="planes over ndarray cannot be exported"):
        exported(record, X)


# ---- columns ---------------------------------------------------------------------------------


def few_valued():
    """A column of many values, one of five, one of two, at and between which rows lie."""
    generator = np.random.default_rng(1)
    columns = [generator.exponential(size=400), generator.integers(0, 5, 400) ** 2,
               generator.integers(0, 2, 400) * 3 - 1]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.mark.parametrize("kind", ["rank", "knots", "fine"])
def test_mapped_columns_have_the_same_bits(kind):
    seen = few_valued()
    columns = column_map(dense_rows(seen, 1.0), in_place(len(seen)), N_COLUMNS, kind)
    table = columns.table
    at_knots = np.resize(table.knots, (80, N_COLUMNS))
    beside = np.nextafter(at_knots, np.float32([[np.inf], [-np.inf]] * 40))
    X = np.concatenate([seen[:100] * np.float32(1.1), at_knots, beside, seen[:9] * -1e9])
    rows = columns.for_prediction(dense_rows(X, 1.0))
    expected = matrix_of(packed(rows, in_place(len(X))), columns.n_folded).toarray()
    identity = np.eye(columns.n_folded + 1, columns.n_folded, -1, np.float32)
    owner = np.arange(columns.n_folded, dtype=np.int32)
    planes = FinishedPlanes(identity, owner, np.ones(owner.size, np.float32))
    record = record_of([[planes]], Decomposition("joint", "vote", owner), -np.inf)
    found = run_onnx(onnx_model(exported(record, rows), "1"), X)["scores"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.compiled
def test_rows_of_infinities_do_not_stop_the_session():
    seen = few_valued()
    y = (seen[:, 0] > 1).astype(int)
    model = SoftPlanesClassifier(columns="knots", n_planes=2, max_iter=1, random_state=0)
    made = to_onnx(model.fit(seen, y))
    strange = np.array([[np.inf, 0, 0], [0, -np.inf, 0], [np.nan, 0, 0]], np.float32)
    assert run_onnx(made, strange)["label"].shape == (3,)


# ---- models ----------------------------------------------------------------------------------


def curved_classes(n_classes=3, n=60):
    """Rows of small whole numbers, and classes that no plane parts."""
    X = np.random.default_rng(0).integers(0, 4, (n, 5)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1]).astype(int) % n_classes


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_type(kind):
    labels, expected_type = LABELS[kind]
    X, y = curved_classes(labels.size)
    model = PegasosClassifier(random_state=0, max_iter=2).fit(X, labels[y])
    made = to_onnx(model)
    assert run_onnx(made, X)["label"].tolist() == model.predict(X).tolist()
    assert made.graph.output[0].type.tensor_type.elem_type == expected_type


def test_rows_of_whole_numbers_have_the_same_bits_where_sums_are_whole():
    X, y = curved_classes()
    model = AMMClassifier(average=False, random_state=0, max_iter=2).fit(X, y)
    found = run_onnx(to_onnx(model), X)
    np.testing.assert_array_equal(found["scores"], model.decision_function(X))


@pytest.mark.compiled
@pytest.mark.parametrize(
    "model",
    [
        AMMClassifier(multi_class="ovo"),
        SoftPlanesClassifier(columns="knots", n_planes=2, multi_class="ovr"),
        Poly2Classifier(n_hash=10),
        LaSVMClassifier(),
    ],
    ids=repr,
)  # fmt: skip
def test_another_runtime_says_the_same(model):
    X, y = curved_classes()
    made = to_onnx(model.set_params(random_state=0, max_iter=2).fit(X + X / 7, y))
    [label, scores, *_] = ReferenceEvaluator(made).run(None, {"X": X + X / 7})
    found = run_onnx(made, X + X / 7)
    np.testing.assert_array_equal(label, found["label"])
    limit = 1e-5 * np.abs(scores).max()
    np.testing.assert_allclose(scores, found["scores"], rtol=0, atol=limit)


def test_the_graph_is_of_one_opset_that_runtimes_have():
    made = to_onnx(PegasosClassifier(max_iter=1).fit(*curved_classes()))
    assert [(entry.domain, entry.version) for entry in made.opset_import] == [("", 17)]
    assert made.ir_version == 8
    assert [value.name for value in made.graph.input] == ["X"]
    assert [value.name for value in made.graph.output] == ["label", "scores"]
    sizes = [entry.dim_value for entry in made.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == [0, 5]  # any number of rows


# ---- sizes -----------------------------------------------------------------------------------


def test_more_products_than_a_file_can_hold_are_refused():
    decomposition = Decomposition("joint", "vote", np.arange(2, dtype=np.int32))
    record = record_of([[finished([0, 1], 0)]], decomposition, -np.inf)
    rows = poly2_rows(dense_rows(X, 1.0), 1.0, 1.0, n_hash=N_COLUMNS)
    wide = replace(exported(record, rows), n_columns=30_000)
    with pytest.raises(ModelError, match=r"would take 7\.2 GB as ONNX, whose files end at 2 GB"):
        onnx_model(wide, "1")


@pytest.mark.parametrize(
    "model", [PegasosClassifier(max_iter=1), HullerClassifier(gamma=0.1)], ids=repr
)
def test_more_constants_than_a_file_can_hold_are_refused(model, monkeypatch):
    made = model.fit(*curved_classes())
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 50)
    with pytest.raises(ModelError, match="whose files end at 2 GB: fit with fewer columns"):
        to_onnx(made)
