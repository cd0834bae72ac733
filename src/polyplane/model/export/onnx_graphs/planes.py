"""Planes as ONNX: rows as planes see them, scores of planes, and scores of their groups.

Plain rows   one Gemm over X.
Directions   ranks of columns times weights, behind the columns before these are mapped.
Mapped rows  ranks by interpolation between knots. Which knots a value lies between is found by
             halving, a Gather for each bit: comparing it with all of them would take 62 times the
             memory of X. Hats rise to the left of their place and fall to the right of it, the
             same bits as those of `engine/rows/mapped.py`.
Products     x (A x + b), where one Gemm gives A x + b for all planes, hashed or not.
Groups       one Gather, where groups differ in size, then ReduceMax; of soft groups the log of the
             sum of exponentials, below the maximum, so that none overflows.
"""

import functools
from typing import Any

import numpy as np

from polyplane.arrays import Array
from polyplane.engine.rows.mapped import ColumnTable
from polyplane.engine.rows.turned import Turn
from polyplane.model.export.content import Mapped, Planes
from polyplane.model.export.onnx_graphs.graph import Graph, check_bytes

__all__ = ["group_scores", "plane_scores"]

LARGEST = np.finfo(np.float32).max
ZERO, ONE = np.float32(0), np.float32(1)


def plane_scores(graph: Graph, x: str, planes: Planes, n_columns: int) -> str:
    """Score of each plane."""
    if planes.columns is None:
        sums = graph.add("Gemm", x, planes.sums, planes.constants)
    elif isinstance(planes.columns, Mapped):
        sums = _mapped(graph, x, planes, planes.columns)
    else:
        sums = _products(graph, x, planes, n_columns)
    return graph.add("Mul", sums, planes.scales)


# ---- mapped rows -------------------------------------------------------------------------


def _mapped(graph: Graph, x: str, planes: Planes, columns: Mapped) -> str:
    """Columns that planes see as they are, then linear features of ranks, then hats."""
    table = columns.table
    if columns.turn is not None:
        x = graph.add("Concat", x, _directions(graph, x, columns.turn), axis=1)
    has_knots = np.diff(table.knot_starts) > 0
    plain, ranked = np.flatnonzero(~has_knots), np.flatnonzero(has_knots)
    ranks = _ranks(graph, graph.add("Gather", x, ranked, axis=1), table, ranked)
    parts = []
    if plain.size:
        parts.append((graph.add("Gather", x, plain, axis=1), plain))
    if table.factors[ranked].any():
        parts.append(_linear_features(graph, ranks, table, ranked))
    if table.n_hats.any():
        parts.append(_hats(graph, ranks, table, ranked))
    seen = graph.add("Concat", *(values for values, _ in parts), axis=1)
    features = np.concatenate([places for _, places in parts])
    return graph.add("Gemm", seen, planes.sums[features], planes.constants)


def _directions(graph: Graph, x: str, turn: Turn) -> str:
    ranked = np.flatnonzero(np.diff(turn.knot_starts))
    ranks = _ranks(graph, graph.add("Gather", x, ranked, axis=1), turn, ranked)
    return graph.add("MatMul", ranks, turn.weights)


def _ranks(graph: Graph, x: str, table: ColumnTable | Turn, ranked: Array) -> str:
    """Ranks of the columns with knots: lines between knots, level beyond them."""
    gaps = np.diff(table.knots, append=ZERO)
    rises = np.diff(table.ranks, append=ZERO)
    knot = _knot_before(graph, x, table, ranked)
    distance = graph.add("Sub", x, graph.add("Gather", table.knots, knot))
    share = graph.add("Div", distance, graph.add("Gather", gaps, knot))
    share = graph.add("Clip", share, ZERO, ONE)
    climb = graph.add("Mul", share, graph.add("Gather", rises, knot))
    return graph.add("Add", graph.add("Gather", table.ranks, knot), climb)


def _knot_before(graph: Graph, x: str, table: ColumnTable | Turn, ranked: Array) -> Any:
    """The knot where the line of each value begins: as many inner knots are not above it.

    A value of infinity must not lead beyond the last line.
    """
    starts, ends = table.knot_starts[ranked], table.knot_starts[ranked + 1]
    n_bits = int((ends - starts - 2).max()).bit_length()
    room = (1 << n_bits) - 1
    inner = np.full((ranked.size, room), np.inf, np.float32)
    for row, start, end in zip(inner, starts, ends, strict=True):
        row[: end - start - 2] = table.knots[start + 1 : end - 1]
    before: Any = np.zeros(ranked.size, np.int64)
    for bit in reversed(range(n_bits)):
        step = 1 << bit
        place = graph.add("Add", before, np.arange(ranked.size) * room + step - 1)
        is_passed = graph.add("LessOrEqual", graph.add("Gather", inner.ravel(), place), x)
        passed = graph.add("Mul", graph.cast(is_passed, np.int64), np.int64(step))
        before = graph.add("Add", before, passed)
    knot = graph.add("Add", before, starts.astype(np.int64))
    return graph.add("Min", knot, (ends - 2).astype(np.int64))


def _linear_features(
    graph: Graph, ranks: str, table: ColumnTable, ranked: Array
) -> tuple[str, Array]:
    """(rank - shift) * factor where there is a factor, and which features they are."""
    places = np.flatnonzero(table.factors[ranked])
    columns = ranked[places]
    distance = graph.add("Sub", graph.add("Gather", ranks, places, axis=1), table.shifts[columns])
    return graph.add("Mul", distance, table.factors[columns]), columns


def _hats(graph: Graph, ranks: str, table: ColumnTable, ranked: Array) -> tuple[str, Array]:
    """The hats of all columns, and which features they are."""
    n_hats = table.n_hats[ranked]
    column = np.repeat(np.arange(ranked.size), n_hats)
    number = np.arange(column.size) - np.repeat(n_hats.cumsum() - n_hats, n_hats)
    gaps, top = (n_hats[column] - 1).astype(np.float32), number.astype(np.float32)
    place = graph.add("Mul", graph.add("Gather", ranks, column, axis=1), gaps)
    rising = graph.add("Sub", place, top - ONE)
    falling = graph.add("Sub", ONE, graph.add("Sub", place, top))
    share = graph.add("Max", graph.add("Min", rising, falling), ZERO)
    hats = graph.add("Mul", share, np.float32(table.height))
    return hats, table.first_hat[ranked][column] + number


# ---- products ----------------------------------------------------------------------------


def _products(graph: Graph, x: str, planes: Planes, n: int) -> str:
    n_planes = planes.n_planes
    check_bytes(4 * n * n * n_planes)
    features = planes.of_products(n)
    j, i = np.tril_indices(n)
    square = np.zeros((n, n_planes, n), np.float32)
    square[i, :, j] = features[n:]
    forms = graph.add("Gemm", x, square.reshape(n, -1), features[:n].T.ravel())
    forms = graph.add("Reshape", forms, np.array([0, n_planes, n]))
    terms = graph.add("Mul", forms, graph.add("Unsqueeze", x, np.array([1])))
    return graph.add(
        "Add", graph.add("ReduceSum", terms, np.array([2]), keepdims=0), planes.constants
    )


# ---- groups ------------------------------------------------------------------------------


def group_scores(graph: Graph, scores_of_planes: str, planes: Planes) -> str:
    """Score of each group of planes, the mean of all estimators."""
    starts, sizes = planes.group_starts, planes.group_sizes
    live = np.flatnonzero(sizes)
    scores = _of_live(graph, scores_of_planes, starts[live], sizes[live], planes.is_soft)
    if live.size < sizes.size:
        without = _without_planes(graph, scores_of_planes, planes.empty_score)
        parts = graph.add("Concat", scores, without, axis=1) if live.size else without
        place = np.full(sizes.size, live.size)
        place[live] = np.arange(live.size)
        scores = graph.add("Gather", parts, place, axis=1)
    if planes.group_weights is not None:
        scores = graph.add("Mul", scores, planes.group_weights)
    if planes.n_units > 1:  # one after the other: the order of a sum is part of the result
        shape = np.array([0, sizes.size // planes.n_units, planes.n_units])
        units = graph.add("Reshape", scores, shape)
        numbers = [np.array(unit) for unit in range(planes.n_units)]
        of_unit = [graph.add("Gather", units, number, axis=2) for number in numbers]
        scores = functools.reduce(lambda one, other: graph.add("Add", one, other), of_unit)
    if planes.n_estimators == 1:
        return scores
    shape = np.array([0, planes.n_estimators, sizes.size // planes.n_units // planes.n_estimators])
    return graph.add("ReduceMean", graph.add("Reshape", scores, shape), axes=[1], keepdims=0)


def _of_live(graph: Graph, planes: str, starts: Array, sizes: Array, is_soft: bool) -> str:
    """Groups with planes; short ones are filled up with their last plane, which counts once."""
    size = int(sizes.max(initial=1))
    if size == 1:
        return planes
    numbers = np.arange(size)
    if (sizes == size).all():
        by_group = graph.add("Reshape", planes, np.array([0, sizes.size, size]))
    else:
        index = starts[:, None] + np.minimum(numbers, sizes[:, None] - 1)
        by_group = graph.add("Gather", planes, index, axis=1)
    best = graph.add("ReduceMax", by_group, axes=[2], keepdims=1)
    if is_soft:
        finite = graph.add("Clip", best, -LARGEST, LARGEST)  # inf - inf would be no number
        powers = graph.add("Exp", graph.add("Sub", by_group, finite))
        if sizes.min() < size:
            powers = graph.add("Where", numbers < sizes[:, None], powers, ZERO)
        total = graph.add("ReduceSum", powers, np.array([2]), keepdims=1)
        best = graph.add("Add", best, graph.add("Log", total))
    return graph.add("Squeeze", best, np.array([2]))


def _without_planes(graph: Graph, planes: str, empty_score: float) -> str:
    """Below the lowest plane and zero, as in `engine/planes/scoring.py`, or the score agreed."""
    lowest = graph.add("Min", graph.add("ReduceMin", planes, axes=[1], keepdims=1), ZERO)
    depth = graph.add("Max", graph.add("Mul", lowest, np.float32(-1e-6)), ONE)
    score = graph.add("Sub", lowest, depth)
    if empty_score == -np.inf:
        return score
    return graph.add("Max", score, np.float32(empty_score))
