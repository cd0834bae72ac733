"""The kernels that have a formula: what users call them, and how other languages compute them.

A kernel is a named tuple and its value by tiles in `engine/support/gram.py`, and an entry here:
estimators, model files, ONNX and C take it from there. In C, `name_product` is x z.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from polyplane.engine.support.gram import LinearKernel, PolynomialKernel, RbfKernel, SigmoidKernel

__all__ = ["FORMULAS", "KernelFormula", "entry_of"]


class KernelFormula(ABC):
    """One kernel."""

    name: ClassVar[str]  # to users, and in files
    kind: ClassVar[type]  # its tuple
    c: ClassVar[str]  # what follows `float name_kernel(const float *x, const float *z) {`

    def made(self, gamma: Any, coef0: Any, degree: Any, offset: Any) -> Any:
        """Its tuple, of which it takes the numbers that it has."""
        given = {"gamma": gamma, "coef0": coef0, "degree": degree, "offset": offset}
        return self.kind(**{name: given[name] for name in self.kind._fields})  # type: ignore[attr-defined]

    @abstractmethod
    def onnx(self, graph: Any, x: str, products: str, formula: Any, support: Any) -> str:
        """Values of the kernel of rows x with all of `support`, given their products."""


class Rbf(KernelFormula):
    """exp(-gamma |x - z|^2)."""

    name, kind = "rbf", RbfKernel
    c = """\
    float sum = 0.0f;
    for (int32_t j = 0; j < NAME_WIDTH; j++) sum += (x[j] - z[j]) * (x[j] - z[j]);
    return expf(-NAME_GAMMA * sum);
"""

    def onnx(self, graph: Any, x: str, products: str, formula: Any, support: Any) -> str:
        """|x - z|^2 is |x|^2 + |z|^2 - 2 x z, which rounding must not take below zero."""
        lengths = graph.add("ReduceSumSquare", x, axes=[1], keepdims=1)
        both = graph.add("Add", lengths, support.squared_lengths)
        distance = graph.add("Sub", both, graph.add("Mul", products, np.float32(2)))
        distance = graph.add("Max", distance, np.float32(0))
        values: str = graph.add("Exp", graph.add("Mul", distance, np.float32(-formula.gamma)))
        return values


class Linear(KernelFormula):
    """x z."""

    name, kind = "linear", LinearKernel
    c = "    return name_product(x, z);\n"

    def onnx(self, graph: Any, x: str, products: str, formula: Any, support: Any) -> str:
        return products


class Polynomial(KernelFormula):
    """(gamma x z + coef0)^degree."""

    name, kind = "poly", PolynomialKernel
    c = """\
    float base = NAME_GAMMA * name_product(x, z) + NAME_COEF0, power = 1.0f;
    for (int32_t k = 0; k < NAME_DEGREE; k++) power *= base;
    return power;
"""

    def onnx(self, graph: Any, x: str, products: str, formula: Any, support: Any) -> str:
        base = _base(graph, products, formula)
        values: str = graph.add("Pow", base, np.float32(formula.degree))
        return values


class Sigmoid(KernelFormula):
    """tanh(gamma x z + coef0)."""

    name, kind = "sigmoid", SigmoidKernel
    c = "    return tanhf(NAME_GAMMA * name_product(x, z) + NAME_COEF0);\n"

    def onnx(self, graph: Any, x: str, products: str, formula: Any, support: Any) -> str:
        values: str = graph.add("Tanh", _base(graph, products, formula))
        return values


def _base(graph: Any, products: str, formula: Any) -> str:
    """gamma x z + coef0."""
    scaled = graph.add("Mul", products, np.float32(formula.gamma))
    base: str = graph.add("Add", scaled, np.float32(formula.coef0))
    return base


FORMULAS: dict[str, KernelFormula] = {
    entry.name: entry for entry in (Rbf(), Linear(), Polynomial(), Sigmoid())
}


def entry_of(formula: Any) -> KernelFormula:
    """The entry of a tuple."""
    return next(entry for entry in FORMULAS.values() if entry.kind is type(formula))
