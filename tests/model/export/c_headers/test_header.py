"""Headers compile without a warning, as C and as C++, and hold the model to the last bit."""

import ctypes
import re

import numpy as np
import pytest

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
from polyplane.estimator.files.exporting import to_c
from polyplane.model.export.c_headers import text as c_text
from polyplane.model.export.c_headers.text import Header
from polyplane.model.format.model_file import ModelError
from tests.exported import STRICT, compile_c, compiled, needs_a_compiler, pointer, run_c
from tests.model.export.onnx_graphs.test_model import LABELS, curved_classes

SET = {
    "n_planes": 2,
    "start_scale": 3.0,
    "step_size": 0.3,
    "init": "subset",
    "units": 1,
    "shrinkage": 0.05,
    "learn_from": "unsure",
}
VARIANTS = [
    AMMClassifier(),
    AMMClassifier(multi_class="ovo", n_estimators=2),
    AMMClassifier(multi_class="ovo", combine="margin"),
    CPMClassifier(sides="negative", multi_class="ovr"),
    Poly2Classifier(),
    SoftPlanesClassifier(columns="knots", multi_class="ovo", directions="principal", **SET),
    SoftPlanesClassifier(columns="plain", multi_class="ovr", **SET),
    HullerClassifier(),
    LaSVMClassifier(kernel="poly"),
    KernelPegasosClassifier(kernel="sigmoid", multi_class="ovr"),
    LaSVMClassifier(kernel="linear"),
]


def fitted(variant, **settings):
    """The variant with two passes over small rows."""
    return variant.set_params(random_state=0, max_iter=2, **settings).fit(*curved_classes())


@pytest.mark.compiled
@needs_a_compiler
@pytest.mark.parametrize("language", [["c", "-std=c99"], ["c++", "-std=c++11"]])
def test_all_kinds_compile_together_without_a_warning(language, tmp_path):
    names = [f"model_{k}" for k in range(len(VARIANTS))]
    for name, variant in zip(names, VARIANTS, strict=True):
        to_c(fitted(variant), tmp_path / f"{name}.h")
    includes = "".join(f'#include "{name}.h"\n' for name in [*names, *names])
    calls = "".join(f"    sum += {name}_predict(x);\n" for name in names)
    source = tmp_path / "program.txt"
    source.write_text(f"{includes}int main(void) {{\n    static float x[5];\n    int sum = 0;\n"
                      f"{calls}    return sum > 99;\n}}\n")  # fmt: skip
    kind, standard = language
    compile_c(["-x", kind, standard, *STRICT, "-c", source, "-o", tmp_path / "program.o"])


@needs_a_compiler
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_text(kind, tmp_path):
    labels, _ = LABELS[kind]
    X, y = curved_classes(labels.size)
    model = PegasosClassifier(random_state=0, max_iter=2).fit(X, labels[y])
    found = run_c(to_c(model, name="model"), X, labels.size, tmp_path)
    assert found["label"] == [str(label) for label in model.predict(X).tolist()]


@needs_a_compiler
def test_rows_of_whole_numbers_have_the_same_bits_where_sums_are_whole(tmp_path):
    X, _ = curved_classes()
    model = fitted(AMMClassifier(average=False))
    found = run_c(to_c(model, name="model"), X, 3, tmp_path)
    np.testing.assert_array_equal(found["scores"], model.decision_function(X))


# ---- sparse rows -----------------------------------------------------------------------------


@needs_a_compiler
def test_sparse_rows_score_like_dense_ones(tmp_path):
    X, _ = curved_classes()
    model = fitted(AMMClassifier())
    text = to_c(model, name="model")
    dense = run_c(text, X, 3, tmp_path)
    library, scores = compiled(text, tmp_path), np.empty(3, np.float32)
    for row, number, expected in zip(X, dense["label"], dense["scores"], strict=True):
        there = np.flatnonzero(row)
        columns = np.append(there, [-4, -3, -2, -1, 5, 6]).astype(np.int32)  # no such columns
        values = np.append(row[there], [7] * 6).astype(np.float32)
        found = library.run_sparse(
            pointer(columns), pointer(values), ctypes.c_long(columns.size), pointer(scores)
        )
        assert found == int(number)
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("variant", "has_sparse_rows"),
    [
        (AMMClassifier(), True),
        (SoftPlanesClassifier(columns="plain", **SET), True),
        (SoftPlanesClassifier(columns="knots", **SET), False),
        (Poly2Classifier(), False),
        (HullerClassifier(), False),
    ],
    ids=repr,
)
def test_sparse_rows_are_for_planes_over_plain_columns(variant, has_sparse_rows):
    assert ("predict_sparse(" in to_c(fitted(variant))) == has_sparse_rows


# ---- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "suffix"), [(np.float32, "f"), (np.float64, "")])
def test_numbers_are_written_to_the_last_bit(kind, suffix):
    facts = np.finfo(kind)
    bits = np.random.default_rng(0).integers(0, 1 << 31, 3_000).astype(np.uint32).view(np.float32)
    some = bits[np.isfinite(bits)].astype(kind) * kind(1 / 3)
    special = [facts.max, facts.smallest_subnormal, facts.tiny, -0.0, 1, 1e10, 0.1]
    numbers = np.concatenate([np.array(special, kind), some])
    header = Header("model")
    header.table("NUMBERS", numbers)
    body = "".join(header.parts).split("{")[1]
    written = re.findall(rf"([-+.0-9e]+){suffix},", body)
    assert np.array(written, kind).tobytes() == numbers.tobytes()
    assert all("." in text or "e" in text for text in written)  # else they were whole numbers
    assert max(map(len, "".join(header.parts).splitlines())) <= 100


def test_numbers_that_c_cannot_write_are_refused():
    for strange in (np.nan, np.inf):
        with pytest.raises(ModelError, match="numbers that are not finite"):
            Header("model").table("NUMBERS", np.array([strange], np.float32))


def test_more_numbers_than_a_compiler_takes_are_refused(monkeypatch):
    monkeypatch.setattr(c_text, "MOST_NUMBERS", 20)
    for variant in (AMMClassifier(), Poly2Classifier(), HullerClassifier(gamma=0.1)):
        with pytest.raises(ModelError, match=r"above the 20 that compilers can take: export it to"):
            to_c(fitted(variant))
