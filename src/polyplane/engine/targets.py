"""Targets of a model: the class of each row as this model sees it, and its weight.

Models trained side by side share rows, labels and weights; they differ in their codes. One model
of all classes calls class c by the code c; one of a pair calls the two 0 and 1 and leaves the
others out; one of a class against the rest calls it 1 and all others 0.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.jit import inlined, jit
from polyplane.engine.tiles import at, span

__all__ = [
    "LEFT_OUT",
    "TargetSpans",
    "Targets",
    "label_of",
    "rows_of",
    "spans_of_targets",
    "weight_of",
]

LEFT_OUT = -1  # code of a class whose rows the model does not visit


class Targets(NamedTuple):
    """Classes and weights of all rows, and one model's view of the classes."""

    labels: Any  # [row] int32: class of the row
    codes: Any  # [class] int32: what the model calls the class
    weights: Any  # [row] float32: factor of the row's update; empty where all are 1


class TargetSpans(NamedTuple):
    """Targets as spans, for use inside a loop."""

    labels: Any
    codes: Any
    weights: Any
    are_weighted: Any


@inlined
def spans_of_targets(targets: Any) -> Any:
    """The targets as a loop sees them; `targets` must be its argument."""
    return TargetSpans(
        span(targets.labels), span(targets.codes), span(targets.weights), targets.weights.size > 0
    )


@inlined
def label_of(targets: Any, i: Any) -> Any:
    """The code of row i's class."""
    return at(targets.codes, at(targets.labels, i))


@inlined
def weight_of(targets: Any, i: Any) -> Any:
    """The factor of row i's update."""
    return at(targets.weights, i) if targets.are_weighted else np.float32(1)


@jit
def _pick_rows(order: Any, labels: Any, codes: Any, out: Any) -> Any:
    n = 0
    for i in order:
        out[n] = i
        n += codes[labels[i]] != LEFT_OUT
    return n


def rows_of(order: Any, targets: Targets) -> Any:
    """Return the rows of `order` that the model visits, as a new array."""
    if (targets.codes != LEFT_OUT).all():
        return order.copy()
    out = np.empty(order.size + 1, order.dtype)
    return out[: _pick_rows(order, targets.labels, targets.codes, out)]
