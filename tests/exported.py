"""Exported models at work: ONNX in ONNX Runtime, C compiled by the system's compiler."""

import ctypes
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

COMPILER = shutil.which("cc")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
needs_a_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler, cc")

PROGRAM = """
#include "model.h"
void run(const float *x, long n, int *numbers, float *scores, float *probabilities) {
    for (long i = 0; i < n; i++) {
        const float *row = x + i * MODEL_N_FEATURES;
        numbers[i] = model_predict(row);
        model_scores(row, scores + i * MODEL_N_CLASSES);
        PROBABILITIES
    }
    (void)probabilities;
}
const char *label(int number) { return MODEL_CLASSES[number]; }
"""
PROBABILITIES = "model_probabilities(row, probabilities + i * MODEL_N_CLASSES);"
SPARSE_PROGRAM = """
int run_sparse(const int32_t *columns, const float *values, long n, float *scores) {
    model_scores_sparse(columns, values, (size_t)n, scores);
    return model_predict_sparse(columns, values, (size_t)n);
}
"""


def run_onnx(model, X):
    """What ONNX Runtime makes of the rows, by output; the model is checked first."""
    onnx.checker.check_model(model, full_check=True)
    assert {entry.domain for entry in model.opset_import} == {""}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    made = session.run(names, {"X": np.asarray(X, np.float32)})
    return dict(zip(names, made, strict=True))


def compiled(text, folder):
    """A library of the header, of which functions begin with `model`."""
    (folder / "model.h").write_text(text)
    with_probabilities = PROBABILITIES if "model_probabilities(" in text else ""
    source = PROGRAM.replace("PROBABILITIES", with_probabilities)
    if "model_predict_sparse(" in text:
        source += SPARSE_PROGRAM
    (folder / "program.c").write_text(source)
    shared = ["-O1", "-fPIC", "-shared", "-o", folder / "program.so"]
    compile_c(["-std=c99", *STRICT, *shared, folder / "program.c", "-lm"])
    library = ctypes.CDLL(str(folder / "program.so"))
    library.label.restype = ctypes.c_char_p
    return library


def compile_c(arguments):
    """Run the compiler, which must have nothing to say."""
    made = subprocess.run([COMPILER, *arguments], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""


def run_c(text, X, n_classes, folder):
    """What the header makes of the rows: numbers of classes, scores and probabilities."""
    library = compiled(text, folder)
    X = np.ascontiguousarray(X, np.float32)
    numbers = np.empty(len(X), np.int32)
    scores, probabilities = np.full((2, len(X), n_classes), np.nan, np.float32)
    arrays = (numbers, scores, probabilities)
    library.run(pointer(X), ctypes.c_long(len(X)), *map(pointer, arrays))
    labels = [library.label(int(number)).decode() for number in numbers]
    return {"label": labels, "scores": scores, "probabilities": probabilities}


def pointer(array):
    """Where an array begins."""
    return array.ctypes.data_as(ctypes.c_void_p)


def assert_same_scores(model, X, scores):
    """Scores by class are those of `decision_function`, but for rounding of what they sum up."""
    expected = model.decision_function(X)
    found = scores.astype(np.float64)
    if expected.ndim == 1:
        found = found[:, 1] - found[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * largest_part(model, X))


def largest_part(model, X):
    """What scores are sums or differences of: scores of planes, or terms of support vectors."""
    if hasattr(model, "plane_scores"):
        return max(1.0, float(np.abs(model.plane_scores(X)).max(initial=0)))
    values = pairwise_kernels(
        model.support_vectors_, X, metric=model.kernel, filter_params=True,
        gamma=model.gamma_, coef0=model.coef0, degree=model.degree,
    )  # fmt: skip
    terms = np.abs(model.dual_coef_) @ np.abs(values)
    return max(1.0, float(terms.max(initial=0)))


# ---- tables ----------------------------------------------------------------------------------

TABLE_PROGRAM = """
#include "model.h"
void run(const model_row *rows, long n, int *numbers, float *scores, float *probabilities,
         float *x) {
    for (long i = 0; i < n; i++) {
        const model_row *row = rows + i;
        numbers[i] = model_predict(row);
        model_scores(row, scores + i * MODEL_N_CLASSES);
        model_columns(row, x + i * MODEL_WIDTH);
        PROBABILITIES
    }
    (void)probabilities;
}
const char *label(int number) { return MODEL_CLASSES[number]; }
long width(void) { return MODEL_WIDTH; }
long size(void) { return (long)sizeof(model_row); }
"""


def cells_of(frame, layout):
    """The columns of a pandas frame that are read, as programs hold them: numbers and texts."""
    found = []
    for place, source in enumerate(layout.sources):
        column = frame[source.name] if layout.has_names else frame.iloc[:, place]
        if source.kind in ("number", "flag", "seconds", "empty"):
            found.append(_as_numbers(column))
        elif source.kind == "date":
            moments = pd.to_datetime(column).to_numpy("datetime64[us]")
            found.append((moments - np.datetime64(0, "us")) / np.timedelta64(1, "s"))
        elif source.kind != "aside":
            found.append([None if pd.isna(text) else str(text) for text in column])
    return found


def _as_numbers(column):
    if column.dtype.kind == "m":
        return column.to_numpy("timedelta64[us]") / np.timedelta64(1, "s")
    plain = [str(value).strip().lower() for value in column]
    flags = {"true": 1.0, "false": 0.0}
    return pd.to_numeric(
        pd.Series([flags.get(value, value) for value in plain]), errors="coerce"
    ).to_numpy(np.float64)


def run_onnx_table(model, cells):
    """What ONNX Runtime makes of the columns of a table."""
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    inputs = {}
    for place, column in zip(session.get_inputs(), cells, strict=True):
        kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
        if place.type == "tensor(string)":
            column = np.array(["" if text is None else text for text in column], object)
        inputs[place.name] = np.asarray(column, kinds.get(place.type)).reshape(-1, 1)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def run_c_table(text, cells, n_classes, folder):
    """What the header makes of the columns of a table, and the numbers that its model sees."""
    (folder / "model.h").write_text(text)
    with_probabilities = PROBABILITIES if "model_probabilities(" in text else ""
    (folder / "program.c").write_text(TABLE_PROGRAM.replace("PROBABILITIES", with_probabilities))
    library_path = folder / "program.so"
    shared = ["-O1", "-fPIC", "-shared", "-o", library_path]
    compile_c(["-std=c99", *STRICT, *shared, folder / "program.c", "-lm"])
    library = ctypes.CDLL(str(library_path))
    library.label.restype = ctypes.c_char_p
    is_text = [isinstance(column, list) for column in cells]
    kinds = [ctypes.c_char_p if one else ctypes.c_double for one in is_text]
    row_type = type("Row", (ctypes.Structure,), {
        "_fields_": [(f"f{k}", kind) for k, kind in enumerate(kinds)]
    })  # fmt: skip
    assert ctypes.sizeof(row_type) == library.size()
    n_rows = len(cells[0])
    rows = (row_type * n_rows)()
    for k, column in enumerate(cells):
        for i, value in enumerate(column):
            if is_text[k]:
                value = None if value is None else value.encode()
            setattr(rows[i], f"f{k}", value)
    numbers = np.empty(n_rows, np.int32)
    scores, probabilities = np.full((2, n_rows, n_classes), np.nan, np.float32)
    x = np.full((n_rows, library.width()), np.nan, np.float32)
    arrays = (numbers, scores, probabilities, x)
    library.run(ctypes.byref(rows), ctypes.c_long(n_rows), *map(pointer, arrays))
    labels = [library.label(int(number)).decode() for number in numbers]
    return {"label": labels, "scores": scores, "probabilities": probabilities, "x": x}
