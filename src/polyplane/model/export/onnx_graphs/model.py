"""A fitted classifier as an ONNX model; what takes rows of numbers has ai.onnx operators alone.

Input    X, float32, rows by columns; of a table with other columns an input for each of them
Outputs  label, of the type of the labels; scores, float32, rows by classes; probabilities, the
         same shape, where the estimator has them
Numbers  float32 like the engine's, in the order of the runtime's sums: scores differ from ours by
         rounding. What the engine does in float64, which is little, is float64 here, too.
"""

import json
import os
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from polyplane import __version__
from polyplane.arrays import Array
from polyplane.model.export.content import Exported, Planes, Scaling, sides_of_problems
from polyplane.model.export.onnx_graphs.graph import Graph
from polyplane.model.export.onnx_graphs.kernels import leads
from polyplane.model.export.onnx_graphs.planes import group_scores, plane_scores
from polyplane.model.export.onnx_graphs.table import ROWS, input_names, table_inputs, table_rows
from polyplane.model.many_classes.decision_rules import rule_of
from polyplane.model.many_classes.decomposition import Decomposition

__all__ = ["as_onnx", "onnx_model"]

OPSET, IR_VERSION = 17, 8  # what ONNX Runtime has read since 1.12
DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1}  # of operators for text
OUTPUTS = {
    "label": "label of the class that scores highest",
    "scores": "score of each class, in the order of the metadata's `classes`",
    "probabilities": "probability of each class, in the same order",
}
LARGEST = np.finfo(np.float32).max


def as_onnx(exported: Exported, path: str | os.PathLike[str] | None) -> ModelProto:
    """Return the model; ONNX does not depend on the name of its file."""
    return onnx_model(exported, __version__)


def onnx_model(exported: Exported, version: str) -> ModelProto:
    """The model, with its classes as JSON in its metadata."""
    table = exported.table
    names = [] if table is None else input_names(table, OUTPUTS)
    graph = Graph(names)
    x = ROWS if table is None else table_rows(graph, table, names)
    for scaling in exported.scalings:
        x = _scaled(graph, x, scaling)
    scores = graph.add("Identity", _class_scores(graph, x, exported), result="scores")
    labels = _label_array(exported.classes)
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", labels, best, result="label")
    by_class = ["N", int(exported.classes.size)]
    outputs = [_value("label", labels, ["N"]), _value("scores", np.float32(0), by_class)]
    if exported.calibration is not None:
        _probabilities(graph, scores, exported.calibration)
        outputs.append(_value("probabilities", np.float32(0), by_class))
    inputs = [_value(ROWS, np.float32(0), ["N", exported.n_columns])]
    if table is not None:
        inputs = table_inputs(table, names)
    model = helper.make_model(
        graph.made(exported.title, inputs, outputs),
        opset_imports=[
            helper.make_opsetid("", OPSET),
            *(helper.make_opsetid(name, DOMAINS[name]) for name in sorted(graph.domains)),
        ],
        ir_version=IR_VERSION,
        producer_name="polyplane",
        producer_version=version,
        doc_string=f"{exported.summary()}.",
    )
    helper.set_model_props(model, _metadata(exported, labels))
    return model


def _value(name: str, example: Any, shape: list[Any]) -> Any:
    dtype = np.asarray(example).dtype
    kind = TensorProto.STRING if dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_value_info(name, kind, shape, OUTPUTS.get(name, "rows of columns"))


def _metadata(exported: Exported, labels: Array) -> dict[str, str]:
    metadata = {"estimator": exported.title, "classes": json.dumps(labels.tolist())}
    if exported.column_names:
        metadata["columns"] = json.dumps(list(exported.column_names))
    return metadata


def _label_array(classes: Array) -> Array:
    """Labels of a type that ONNX has: truth values, int64, float, double or text."""
    kind = classes.dtype.kind
    if kind == "b":
        return classes
    if kind in "iu":
        whole = classes.astype(np.int64)
        return whole if (whole == classes).all() else classes
    if kind == "f":
        return classes.astype(np.float32 if classes.dtype.itemsize <= 4 else np.float64)
    return np.array([str(label) for label in classes.tolist()], object)


def _scaled(graph: Graph, x: str, scaling: Scaling) -> str:
    """Means can be large beside deviations: in float64, rounded in the end."""
    wide = graph.cast(x, np.float64)
    if scaling.shift is not None:
        wide = graph.add("Sub", wide, scaling.shift)
    if scaling.divisor is not None:
        wide = graph.add("Div", wide, scaling.divisor)
    x = graph.cast(wide, np.float32)
    if scaling.limits is None:
        return x
    low, high = scaling.limits
    return graph.add("Clip", x, np.float32(low), np.float32(high))


# ---- classes -----------------------------------------------------------------------------


def _class_scores(graph: Graph, x: str, exported: Exported) -> str:
    scorer = exported.scorer
    decomposition = exported.decomposition
    if not isinstance(scorer, Planes):
        led = leads(graph, x, scorer, exported.n_columns)
        if not decomposition.is_joint:
            return _of_leads(graph, led, np.float64, decomposition)
        is_second = np.isin(np.arange(decomposition.n_classes), decomposition.ranks[1:2])
        return graph.cast(graph.add("Mul", led, is_second.astype(np.float64)), np.float32)
    planes = plane_scores(graph, x, scorer, exported.n_columns)
    groups = group_scores(graph, planes, scorer)
    if decomposition.is_joint:
        return groups
    sides = graph.add("Reshape", groups, np.array([0, decomposition.n_groups() // 2, 2]))
    second, first = (graph.add("Gather", sides, np.int64(side), axis=2) for side in (1, 0))
    return _of_leads(graph, graph.add("Sub", second, first), np.float32, decomposition)


def _of_leads(graph: Graph, led: str, kind: type, decomposition: Decomposition) -> str:
    """Scores of classes from how far the second side of each problem leads."""

    def added_up(for_second: str, for_first: str | None) -> str:
        return _added_up(graph, for_second, for_first, decomposition)

    rule = rule_of(decomposition.kind, decomposition.combine)
    return rule.onnx(graph, led, kind, added_up, decomposition.n_classes)


def _added_up(
    graph: Graph, for_second: str, for_first: str | None, decomposition: Decomposition
) -> str:
    """Add up what pairs give to their classes; each class is in as many pairs as all others.

    Sums over an axis that is not the last run in order, as in
    `model/many_classes/decomposition.py`. The rest, to which nothing is given, is no class.
    """
    sides = sides_of_problems(decomposition)
    if for_first is None:
        problem = np.argsort(sides[:, 1])
        return graph.cast(graph.add("Gather", for_second, problem, axis=1), np.float32)
    owner = np.concatenate([sides[:, 1], sides[:, 0]])
    pair = np.tile(np.arange(len(sides)), 2)
    gains = np.lexsort([pair, owner]).reshape(decomposition.n_classes, -1)
    both = graph.add("Concat", for_second, for_first, axis=1)
    of_classes = graph.add("Gather", both, gains.T.copy(), axis=1)
    return graph.cast(graph.add("ReduceSum", of_classes, np.array([1]), keepdims=0), np.float32)


def _probabilities(graph: Graph, scores: str, calibration: float) -> None:
    """Shares of exp(score * calibration)."""
    finite = graph.add("Clip", scores, -LARGEST, LARGEST)
    best = graph.add("ReduceMax", finite, axes=[1], keepdims=1)
    below = graph.add("Mul", graph.add("Sub", finite, best), np.float32(calibration))
    graph.add("Softmax", below, axis=1, result="probabilities")
