"""Kernel machines as ONNX: values of a kernel with all support vectors, then one product.

Kernel values are float32; coefficients, of which large ones may cancel, float64, as in training.
"""

from typing import Any

import numpy as np

from polyplane.engine.support.gram import LinearKernel, PolynomialKernel, RbfKernel, SigmoidKernel
from polyplane.model.export.content import Support, formula_of, support_of
from polyplane.model.export.onnx_graph import Graph, check_bytes
from polyplane.model.kernel_record import KernelRecord

__all__ = ["leads"]


def leads(graph: Graph, x: str, record: KernelRecord, n_columns: int) -> str:
    """How far the second side of each problem leads, in float64."""
    formula, n_problems = formula_of(record), len(record.expansions)
    check_bytes(record.support.size * (4 * n_columns + 8 * n_problems))
    support = support_of(record, n_columns)
    products = graph.add("MatMul", x, support.vectors.T.copy())
    values = _BODIES[type(formula)](graph, x, products, formula, support)
    sums = graph.add("MatMul", graph.cast(values, np.float64), support.coefs)
    return graph.add("Add", sums, record.intercepts)


def _linear(graph: Graph, x: str, products: str, formula: Any, support: Support) -> str:
    return products


def _base(graph: Graph, products: str, formula: Any) -> str:
    """gamma x z + coef0."""
    scaled = graph.add("Mul", products, np.float32(formula.gamma))
    return graph.add("Add", scaled, np.float32(formula.coef0))


def _polynomial(graph: Graph, x: str, products: str, formula: Any, support: Support) -> str:
    return graph.add("Pow", _base(graph, products, formula), np.float32(formula.degree))


def _sigmoid(graph: Graph, x: str, products: str, formula: Any, support: Support) -> str:
    return graph.add("Tanh", _base(graph, products, formula))


def _rbf(graph: Graph, x: str, products: str, formula: Any, support: Support) -> str:
    """|x - z|^2 is |x|^2 + |z|^2 - 2 x z, which rounding must not take below zero."""
    lengths = graph.add("ReduceSumSquare", x, axes=[1], keepdims=1)
    both = graph.add("Add", lengths, support.squared_lengths)
    distance = graph.add("Sub", both, graph.add("Mul", products, np.float32(2)))
    distance = graph.add("Max", distance, np.float32(0))
    return graph.add("Exp", graph.add("Mul", distance, np.float32(-formula.gamma)))


_BODIES = {
    LinearKernel: _linear,
    PolynomialKernel: _polynomial,
    RbfKernel: _rbf,
    SigmoidKernel: _sigmoid,
}
