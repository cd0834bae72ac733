"""What a model of BudgetedSVM's `budgetedsvm-train` says: Pegasos, AMM or BSGD.

Keys     `ALGORITHM` (0 Pegasos, 1 AMM batch, 2 AMM online, 3 LLSVM, 4 BSGD), `DIMENSION`, in which
         a bias counts as the last feature, `NUMBER_OF_CLASSES`, `LABELS`, `NUMBER_OF_WEIGHTS` (of
         each class, or of BSGD in all), `BIAS_TERM` (the value of that feature; 0: none), and of
         BSGD the kernel: its number and three of its numbers.
Rows     after `MODEL:`. Planes: label, degradation d, `index:value ...`; w is d times the values.
         BSGD: `-k:alpha` for class k of `LABELS`, `index:value ...`; class k scores the sum of
         alpha_k K.
Kernels  exp(-gamma/2 |x - z|^2), (x z + coef)^degree, x z, tanh(degree x z + coef).
Format   README and src/ of BudgetedSVM 1.1, https://github.com/djurikom/BudgetedSVM
"""

import re
from dataclasses import dataclass

import numpy as np

from polyplane.arrays import Array
from polyplane.model.foreign.model_text import (
    MOST_COEF0,
    MOST_DEGREE,
    SparseText,
    TextModel,
    end_of_numbers,
    number_rows,
)

__all__ = ["BudgetText", "SparsePlanesText", "budgeted_model"]

PEGASOS, AMM_BATCH, AMM_ONLINE, LLSVM, BSGD = range(5)
RBF, EXPONENTIAL, POLYNOMIAL, LINEAR, SIGMOID, OWN = range(6)
UNREAD_KERNELS = {EXPONENTIAL: "exponential", OWN: "user-defined"}
MOST_CLASSES = 10_000  # each has arrays of its own, however few vectors it has
_alphas = re.compile(rb"(?: *-[^ ]*)*")


@dataclass(frozen=True)
class SparsePlanesText:
    """Planes of Pegasos or AMM, whose weights are still text."""

    labels: Array
    owner: Array  # [plane] int32: code of its class
    degradations: Array  # [plane]: W = degradation * row
    bias: float  # the value of the last feature; 0: there is none
    n_features: int  # with the bias
    is_pegasos: bool
    rows: SparseText


@dataclass(frozen=True)
class BudgetText:
    """Support vectors of BSGD, with a coefficient for each class."""

    labels: Array
    kernel: dict[str, float | int | str]  # as our kernel machines call it
    n_features: int
    alphas: SparseText  # by class, counted from 1 as features are
    vectors: SparseText


def budgeted_model(model: TextModel) -> SparsePlanesText | BudgetText:
    """The classifier that a file of BudgetedSVM holds."""
    algorithm = model.whole("ALGORITHM", PEGASOS, BSGD)
    if algorithm == LLSVM:
        problem = "is a model of LLSVM; Pegasos, AMM and BSGD are read"
        model.refuse(problem, model.keys["ALGORITHM"][0])
    n_classes = model.whole("NUMBER_OF_CLASSES", 2, MOST_CLASSES)
    labels = model.labels("LABELS", n_classes)
    n_features = model.whole("DIMENSION", 1)
    bias = model.number("BIAS_TERM")
    if algorithm == BSGD:
        return _budget(model, labels, n_features, bias)
    counts = model.wholes("NUMBER_OF_WEIGHTS", n_classes, 1)
    if algorithm == PEGASOS and max(counts) > 1:
        problem = "NUMBER_OF_WEIGHTS is above 1, but a model of Pegasos has one of each class"
        model.refuse(problem, model.keys["NUMBER_OF_WEIGHTS"][0])
    if bias != 0 and n_features == 1:
        model.refuse("DIMENSION is 1, which is the bias: there is no feature", 1)
    heads, rows = model.halves(sum(counts), "NUMBER_OF_WEIGHTS", end_of_numbers)
    found = number_rows(heads, 2, model.first_line, model.path)
    owner = np.repeat(np.arange(n_classes, dtype=np.int32), counts)
    strays = np.flatnonzero(found[:, 0] != labels[owner])
    if strays.size:
        expected = labels[owner[strays[0]]]
        problem = f"found a weight of {found[strays[0], 0]:g}, expected {expected} by the counts"
        model.refuse(problem, model.first_line + int(strays[0]))
    is_pegasos = algorithm == PEGASOS
    return SparsePlanesText(labels, owner, found[:, 1], bias, n_features, is_pegasos, rows)


def _budget(model: TextModel, labels: Array, n_features: int, bias: float) -> BudgetText:
    if bias != 0:
        problem = "BIAS_TERM is not 0, as it is in all that BSGD of BudgetedSVM 1.1 writes"
        model.refuse(problem, model.keys["BIAS_TERM"][0])
    kernel = _kernel(model)
    n_vectors = model.whole("NUMBER_OF_WEIGHTS", 1)
    heads, vectors = model.halves(n_vectors, "NUMBER_OF_WEIGHTS", _end_of_alphas)
    alphas = [(b" " + head).replace(b" -", b" ") for head in heads]
    in_place = SparseText(alphas, vectors.first_line, vectors.path)
    return BudgetText(labels, kernel, n_features, in_place, vectors)


def _kernel(model: TextModel) -> dict[str, float | int | str]:
    kind = model.whole("KERNEL_FUNCTION", RBF, OWN)
    if kind in UNREAD_KERNELS:
        problem = f"its kernel is {UNREAD_KERNELS[kind]}; RBF, polynomial, linear, sigmoid are read"
        model.refuse(problem, model.keys["KERNEL_FUNCTION"][0])
    if kind == LINEAR:
        return {"kernel": "linear"}
    if kind == RBF:
        return {"kernel": "rbf", "gamma": model.number("KERNEL_GAMMA_PARAM", 0) / 2}
    degree = model.number("KERNEL_DEGREE_PARAM", 0)
    coef0 = model.number("KERNEL_COEF_PARAM", -MOST_COEF0, MOST_COEF0)
    if kind == SIGMOID:
        return {"kernel": "sigmoid", "gamma": degree, "coef0": coef0}
    if degree != round(degree) or degree > MOST_DEGREE:
        problem = f"the degree is {degree:g}, expected a whole number from 1 to {MOST_DEGREE}"
        model.refuse(problem, model.keys["KERNEL_DEGREE_PARAM"][0])
    return {"kernel": "poly", "gamma": 1.0, "degree": round(degree), "coef0": coef0}


def _end_of_alphas(row: bytes) -> int:
    """Where the first index that is not negative begins."""
    found = _alphas.match(row)
    return found.end() if found else 0
