"""Kernel models as ONNX: values of a kernel with all support vectors, then one product.

Kernel values are float32; coefficients, of which large ones may cancel, float64, as in training.
"""

import numpy as np

from polyplane.model.export.content import formula_of, support_of
from polyplane.model.export.onnx_graphs.graph import Graph, check_bytes
from polyplane.model.kernels.kernel_formulas import entry_of
from polyplane.model.kernels.kernel_record import KernelRecord

__all__ = ["leads"]


def leads(graph: Graph, x: str, record: KernelRecord, n_columns: int) -> str:
    """Return the lead of the second side of each problem, in float64."""
    formula, n_problems = formula_of(record), len(record.expansions)
    check_bytes(record.support.size * (4 * n_columns + 8 * n_problems))
    support = support_of(record, n_columns)
    products = graph.add("MatMul", x, support.vectors.T.copy())
    values = entry_of(formula).onnx(graph, x, products, formula, support)
    sums = graph.add("MatMul", graph.cast(values, np.float64), support.coefs)
    return graph.add("Add", sums, record.intercepts)
