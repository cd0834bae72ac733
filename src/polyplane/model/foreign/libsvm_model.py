"""Reader of models that LIBSVM's `svm-train` writes.

Keys     `svm_type`, `kernel_type` and its numbers, `nr_class`, `total_sv`, `label`, `nr_sv` (how
         many vectors each class has, which stand together in that order) and `rho` (of each pair
         of classes, 0-1, 0-2, ... 1-2, ...); `probA`, `probB` and the like are passed over.
Rows     after `SV`, one a support vector: nr_class - 1 coefficients, `index:value ...`.
Pairs    i < j decide by  sum over class i of coef[j - 1] K + sum over class j of coef[i] K - rho,
         which speaks for i where it is positive.
Format   README and svm.cpp of LIBSVM 3.37, https://www.csie.ntu.edu.tw/~cjlin/libsvm
"""

from dataclasses import dataclass

import numpy as np

from polyplane.arrays import Array
from polyplane.model.foreign.model_text import (
    MOST_COEF0,
    MOST_DEGREE,
    SparseText,
    TextModel,
    number_rows,
)

__all__ = ["SvmText", "libsvm_model"]

CLASSIFIERS = ("c_svc", "nu_svc")
OTHERS = {
    "one_class": "a one-class SVM",
    "epsilon_svr": "a regression",
    "nu_svr": "a regression",
}
KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
MOST_GAMMA = 1e38  # float32 ends soon after
MOST_CLASSES = 256  # each pair has arrays of its own, however few vectors it has


@dataclass(frozen=True)
class SvmText:
    """Support vectors with the coefficients of all pairs of classes."""

    kernel: dict[str, float | int | str]  # as our kernel machines call it
    labels: Array
    starts: Array  # [class + 1]: where the vectors of each class begin
    coefs: Array  # [vector, nr_class - 1]
    rho: Array  # [pair]
    vectors: SparseText

    @property
    def codes(self) -> Array:
        """The class of each vector."""
        return np.repeat(np.arange(self.labels.size, dtype=np.int32), np.diff(self.starts))

    def pair(self, i: int, j: int) -> tuple[Array, Array, float]:
        """Return vectors, coefficients and rho of the pair i < j."""
        of_i, of_j = (np.arange(self.starts[k], self.starts[k + 1]) for k in (i, j))
        coefs = np.concatenate([self.coefs[of_i, j - 1], self.coefs[of_j, i]])
        place = i * self.labels.size - i * (i + 1) // 2 + j - i - 1
        return np.concatenate([of_i, of_j]), coefs, float(self.rho[place])


def libsvm_model(model: TextModel) -> SvmText:
    """The classifier that a file of LIBSVM holds."""
    model.classifier("svm_type", CLASSIFIERS, OTHERS)
    kernel = _kernel(model)
    n_classes = model.whole("nr_class", 2, MOST_CLASSES)
    labels = model.labels("label", n_classes)
    n_vectors = model.whole("total_sv", 1)
    counts = np.array(model.wholes("nr_sv", n_classes, 0))
    if counts.sum() != n_vectors:
        problem = f"nr_sv adds up to {counts.sum():,}, but total_sv is {n_vectors:,}"
        model.refuse(problem, model.keys["nr_sv"][0])
    rho = model.numbers("rho", n_classes * (n_classes - 1) // 2)
    heads, vectors = model.halves(n_vectors, "total_sv")
    coefs = number_rows(heads, n_classes - 1, model.first_line, model.path)
    starts = np.concatenate([[0], counts.cumsum()])
    return SvmText(kernel, labels, starts, coefs, rho, vectors)


def _kernel(model: TextModel) -> dict[str, float | int | str]:
    name = model.word("kernel_type")
    if name not in KERNELS:
        reason = "names only rows that it does not hold" if name == "precomputed" else "is unknown"
        problem = f"its kernel '{name}' {reason}; {', '.join(KERNELS)} are read"
        model.refuse(problem, model.keys["kernel_type"][0])
    kernel: dict[str, float | int | str] = {"kernel": KERNELS[name]}
    if name != "linear":
        kernel["gamma"] = model.number("gamma", 0, MOST_GAMMA)
    if name == "polynomial":
        kernel["degree"] = model.whole("degree", 1, MOST_DEGREE)
    if name in ("polynomial", "sigmoid"):
        kernel["coef0"] = model.number("coef0", -MOST_COEF0, MOST_COEF0)
    return kernel
